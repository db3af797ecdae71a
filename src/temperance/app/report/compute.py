"""The numbers of a report, from a fitted estimator and the table it was fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from temperance.app import held_out
from temperance.app.explanation import (
    LEAST_SHOWN,
    explain,
    fared,
    in_percent,
    meaning_of_range,
    modelled,
    name_of_choice,
    verdict,
)
from temperance.app.report.contents import (
    Band,
    Coefficient,
    Contents,
    HeldOutSummary,
    Interval,
    Marginals,
    ReliabilityCurve,
    ReportPart,
    StrategyChoice,
)
from temperance.app.tables import Table
from temperance.calibration import VERDICTS, Calibration, with_error
from temperance.checks import shown
from temperance.data import Array
from temperance.forecasts import Forecast
from temperance.losses import Pinball
from temperance.strategies.rate import assessed

MOST_MARGINALS = 12
MOST_COEFFICIENTS = 200
GRID = 80
STEPS, EVEN_STEPS = 36, 12  # of the slider, in log beta and evenly over the bounds
GRAIN = 1e-3  # smallest beta of the slider, unless a smaller one is chosen
# Probabilities of the points that outline densities: even steps of a Gaussian.
DRAWN = special.ndtr(np.linspace(-3.6, 3.6, 25))
LEVELS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
BINS = 10


def compute(
    fitted: Any,
    table: Table,
    choices: Mapping[str, Calibration],
    own: str,
    held: held_out.HeldOut,
    ranking: list[tuple[str, ...]],
    notices: list[str],
    settings: list[tuple[str, str]],
    command: str,
) -> Contents:
    """Return the contents of a report.

    Parameters
    ----------
    fitted : GibbsRegressor or GibbsClassifier, fitted to the table
    table : Table
    choices : what each strategy chose, by name
    own : name of the requested strategy
    held : forecasts of held-out rows
    ranking : headings, then strategies on held-out rows; empty if they were not compared
    notices : sentences of warning
    settings : names and values to reproduce the result
    command : the command that produces the same report
    """
    calibration = assessed(fitted.calibration_)
    chosen = [_taken(strategy, each, strategy == own) for strategy, each in choices.items()]
    slider = _slider(calibration)
    risk = calibration.curve(slider.betas)
    # None is the choice itself, which may be a mixture over betas.
    requested = [None if k == slider.at else float(b) for k, b in enumerate(slider.betas)]
    laws = [_laws(fitted, beta) for beta in requested]
    names = [name for name, _ in fitted.parts()]
    bands = _bands(fitted, table, names, requested)
    parts = [
        _part(fitted, calibration, name, chosen, slider, risk, k, [e[k] for e in laws], band)
        for k, (name, band) in enumerate(zip(names, bands, strict=True))
    ]
    kept = _held_out(fitted, table, held)
    which = modelled(fitted, table.target_name)
    words = [*([f"The model gives the {which}."] if which else []), explain(calibration)]
    name = name_of_choice(calibration)
    if held.bayes is None:
        compared = fared(fitted, held)
    else:
        compared = _comparison_in_words(held, calibration.kind, name)
    return Contents(
        title=f"How far to trust a model of {table.target_name}",
        words=[*words, compared],
        risk_name=calibration.kind,
        choice_name=name,
        reading=_reading(table),
        widths=_widths(calibration, name),
        band=_band_in_words(fitted),
        bayes=calibration.likelihood,
        parts=parts,
        held_out=kept,
        ranking=ranking,
        notices=notices,
        settings=settings,
        command=command,
    )


def _taken(strategy: str, calibration: Calibration, own: bool) -> StrategyChoice:
    """Return the beta of a strategy, or the weights of betas that are worth a mark."""
    weights = calibration.weights
    if weights is None:
        return StrategyChoice(strategy, calibration.beta, own)
    pairs = zip(weights.betas.tolist(), weights.weights.tolist(), strict=True)
    marks = [(beta, weight) for beta, weight in pairs if weight >= LEAST_SHOWN]
    return StrategyChoice(strategy, calibration.beta, own, marks)


def _reading(table: Table) -> str:
    """Return which levels of text the coefficients compare, or an empty text."""
    pairs = [
        f"{shown(column.name)} with {shown(column.reference)}"
        for column in table.columns
        if column.kind == "levels"
    ]
    return f"Levels of text are compared: {', '.join(pairs)}." if pairs else ""


def _widths(calibration: Calibration, choice: str) -> str:
    """Return what the widths of the coefficients' intervals are for."""
    if calibration.rate is not None:
        return f"Widths under the {choice} are what it was chosen for."
    what = "β was" if calibration.weights is None else "weights were"
    return (
        f"Widths under the {choice} are those of tempered posteriors: {what} chosen for "
        "the risk, not for them."
    )


def _band_in_words(fitted: Any) -> str:
    """Return what the line and the band along a single input are."""
    if hasattr(fitted, "classes_"):
        return "Probability and its 95 % credible band. Points are jittered."
    if fitted.likelihood:
        return "Mean and 95 % band of new responses."
    loss = fitted.calibration_.model.row_loss
    line = f"{loss.quantile:g} quantile" if isinstance(loss, Pinball) else "line"
    return f"Fitted {line} and its 95 % credible band, which is not for new responses."


class Slider(NamedTuple):
    """Ascending betas, the place of the choice, and where the scale of log beta begins, or 0."""

    betas: Array
    at: int
    grain: float


def _slider(calibration: Calibration) -> Slider:
    """Return betas within the bounds, Bayes among them.

    A mixture has a place of its own, at the median of its weights.
    """
    (lower, upper), beta, mixed = calibration.bounds, calibration.beta, calibration.weights
    least = max(lower, min(GRAIN, upper / 100, beta / 8 if 0 < beta < GRAIN else GRAIN))
    marked = [] if mixed is not None else [beta]
    if calibration.likelihood and lower <= 1 <= upper:
        marked.append(1.0)
    around = beta * np.geomspace(1 / 8, 8, 7)
    even = np.linspace(least, upper, EVEN_STEPS)
    betas = np.concatenate([np.geomspace(least, upper, STEPS), even, around])
    betas = np.unique(np.concatenate([betas[(least <= betas) & (betas <= upper)], marked]))
    # Drop neighbours that a plot cannot resolve, but never an end, the choice or Bayes.
    grain = least if betas[0] == 0 else 0.0
    places = np.log(betas + grain)
    apart = np.diff(places, prepend=-np.inf) > 1e-3 * (places[-1] - places[0])
    betas = betas[apart | np.isin(betas, [upper, *marked])]
    at = int(np.searchsorted(betas, beta))
    return Slider(betas if mixed is None else np.insert(betas, at, beta), at, grain)


def _part(
    fitted: Any,
    calibration: Calibration,
    name: str,
    choices: list[StrategyChoice],
    slider: Slider,
    risk: Array,
    k: int,
    laws: list[Forecast],
    band: Band | None,
) -> ReportPart:
    names = ["intercept", *fitted.terms_]
    at = slider.at
    found = verdict(calibration)
    rule = calibration.weights is not None or calibration.rate is not None
    given = not rule and not calibration.choice.searched
    return ReportPart(
        name=name,
        betas=slider.betas,
        grain=slider.grain,
        risk=risk,
        at=at,
        mixed="" if calibration.weights is None else in_percent(calibration.weights),
        beta_range=None if given else calibration.beta_range,
        range_meaning=meaning_of_range(calibration),
        choice_risk=calibration.risk,
        standard_error=calibration.standard_error,
        bayes_risk=calibration.bayes_risk,
        gain=calibration.gain,
        gain_error=calibration.gain_standard_error,
        verdict="" if found is None else VERDICTS[found],
        choices=choices,
        coefficients=_table(
            fitted, names, _laws(fitted, 1.0)[k] if calibration.likelihood else None, laws[at]
        ),
        n_coefficients=len(fitted.terms_) + int(fitted.fit_intercept),
        marginals=_marginals(names, laws, laws[at]),
        band=band,
    )


def _laws(fitted: Any, beta: float | None) -> list[Forecast]:
    """Return the distribution of the coefficients of each part."""
    if hasattr(fitted, "classes_"):
        return fitted.class_coefficients(beta=beta)
    return [fitted.coefficients(beta=beta)]


def _table(
    fitted: Any,
    names: list[str],
    bayes: Forecast | None,
    calibrated: Forecast,
) -> list[Coefficient]:
    """Return the intercept, if there is one, and the coefficients farthest from zero."""
    intercept = [0] if fitted.fit_intercept else []
    listed = np.array(
        [*intercept, *_farthest_from_zero(calibrated, MOST_COEFFICIENTS - len(intercept))]
    )

    def intervals(law: Forecast) -> list[Interval]:
        some = _some(law, listed)
        return [
            Interval(*each) for each in np.column_stack([some.mean, some.interval(0.95)]).tolist()
        ]

    first = [None] * len(listed) if bayes is None else intervals(bayes)
    each = zip(listed, first, intervals(calibrated), strict=True)
    return [Coefficient(names[j], one, other) for j, one, other in each]


def _some(law: Forecast, places: NDArray[np.intp]) -> Forecast:
    """Return the distribution of some of the coefficients."""
    return replace(law, location=law.location[..., places], scale=law.scale[..., places])


def _farthest_from_zero(law: Forecast, most: int) -> NDArray[np.intp]:
    """Return the indices of coefficients the most standard deviations from zero."""
    strength = np.abs(law.mean[1:]) / law.std[1:]
    return 1 + np.sort(np.argsort(-strength, kind="stable")[:most])


def _marginals(names: list[str], laws: list[Forecast], chosen: Forecast) -> Marginals:
    shown = _farthest_from_zero(chosen, MOST_MARGINALS)
    some = [_some(law, shown) for law in laws]
    offset, height = zip(*map(_outline, some), strict=True)
    return Marginals(
        [names[j] for j in shown],
        np.stack([law.mean for law in some]),
        np.stack(offset),
        np.stack(height),
        len(names) - 1,
    )


def _outline(law: Forecast) -> tuple[Array, Array]:
    """Return points of the densities, relative to the mean, and heights relative to the peak."""
    points = _quantiles(law)
    with np.errstate(all="ignore"):  # a scale may be zero or infinite
        log_density = law.log_density(points)
        height = np.exp(log_density - log_density.max(axis=0))
    return (points - law.mean).T, height.round(3).T  # enough digits for a plot


def _quantiles(law: Forecast) -> Array:
    """Return approximate quantiles; those of a mixture are between those of its parts."""
    if len(law.weights) == 1:
        return law.quantile(DRAWN)
    parts = zip(law.location, law.scale, law.dof, strict=True)
    found = np.concatenate([Forecast.single(*each).quantile(DRAWN[::3]) for each in parts])
    found.sort(axis=0)
    with np.errstate(all="ignore"):
        below = law.cdf(found)
    each = zip(below.T, found.T, strict=True)
    return np.column_stack([np.interp(DRAWN, *pair) for pair in each])


def _bands(
    fitted: Any, table: Table, names: list[str], betas: list[float | None]
) -> list[Band] | list[None]:
    """Return the forecasts of each part along a single input; None for several, or for margins."""
    margins = hasattr(fitted, "classes_") and not fitted.likelihood
    if table.inputs.shape[1] != 1 or margins:
        return [None] * len(names)
    column = table.inputs.columns[0]
    inputs = table.inputs[column].to_numpy()
    margin = 0.05 * np.ptp(inputs)
    grid = np.linspace(inputs.min() - margin, inputs.max() + margin, GRID)
    frame = table.inputs.iloc[:0].reindex(range(GRID))
    frame[column] = grid
    forecasts = np.stack([_forecast(fitted, frame, beta) for beta in betas], axis=2)
    bands = []
    for k, name in enumerate(names):
        response, label = table.target, table.target_name
        if hasattr(fitted, "classes_"):
            response, label = (response.astype(str) == name).astype(float), f"{label} = {name}"
        mean, low, high = forecasts[:, k]
        points = np.column_stack([inputs, response])
        bands.append(Band(column, label, grid, mean, low, high, points))
    return bands


def _forecast(fitted: Any, frame: Any, beta: float | None) -> Array:
    """Return the mean and the ends of an interval of each part, shape (3, parts, rows)."""
    if not hasattr(fitted, "classes_"):
        law = (fitted.forecast if fitted.likelihood else fitted.fitted_value)(frame, beta=beta)
        return np.stack([law.mean, *law.interval(0.95).T])[:, None]
    ends = fitted.predict_interval(frame, 0.95, beta=beta)
    mean = fitted.predict_proba(frame, beta=beta)
    if ends.ndim == 2:  # two classes: the second
        ends, mean = ends[:, None], mean[:, 1:]
    return np.stack([mean.T, *np.moveaxis(ends, (0, 1, 2), (2, 1, 0))])


def _held_out(fitted: Any, table: Table, held: held_out.HeldOut) -> HeldOutSummary:
    rows = len(held.weights)
    if held.bayes is None:
        return HeldOutSummary("losses", rows, None, None, _losses(fitted, held))
    both = (held.bayes, held.calibrated)
    scores: list[tuple[str, ...]] = [
        ("log score per row (higher is better)", *_scores(held, *(each.log_score for each in both)))
    ]
    if held.bayes.place is not None:
        for level in (0.5, 0.95):
            inside = (held_out.coverage(each.place, level) for each in both)
            name = f"responses inside {100 * level:.0f} % intervals, in %"
            scores.append((name, *_scores(held, *(100 * each for each in inside))))
        bayes, calibrated = (_intervals_kept(held, each.place) for each in both)
        gaps = (np.mean(np.abs(each.happened - each.promised)) for each in (bayes, calibrated))
        bayes_gap, calibrated_gap = (f"{100 * gap:.1f}" for gap in gaps)
        scores.append(("promised against happened, mean gap in %", bayes_gap, calibrated_gap))
        return HeldOutSummary("intervals", rows, bayes, calibrated, scores)
    happened = table.target[:, None] == fitted.classes_
    right = (held_out.hits(each, table.target, fitted.classes_) for each in both)
    scores.append(("classes guessed right, in %", *_scores(held, *(100 * each for each in right))))
    bayes, calibrated = (
        _probabilities_kept(each.probabilities, happened, held.weights) for each in both
    )
    return HeldOutSummary("probabilities", rows, bayes, calibrated, scores)


def _losses(fitted: Any, held: held_out.HeldOut) -> list[tuple[str, ...]]:
    """Return how the fitted values of a loss that is no likelihood did."""
    found, loss = held.calibrated, fitted.calibration_.model.row_loss
    scores: list[tuple[str, ...]] = [
        (f"{loss.name} per row (lower is better)", with_error(*held.mean(found.loss)))
    ]
    shares = {"classes guessed right, in %": found.right}
    if isinstance(loss, Pinball):
        asked = f"responses at or below the line, in % ({100 * loss.quantile:.3g} is right)"
        shares = {asked: found.below}
    scores += [
        (name, with_error(*held.mean(100.0 * share)))
        for name, share in shares.items()
        if share is not None
    ]
    return scores


def _scores(held: held_out.HeldOut, bayes: Array, calibrated: Array) -> tuple[str, str]:
    first, second = (with_error(*held.mean(values.astype(float))) for values in (bayes, calibrated))
    return first, second


def _intervals_kept(held: held_out.HeldOut, place: Array) -> ReliabilityCurve:
    kept = [held.mean(held_out.coverage(place, level)) for level in LEVELS]
    share, error = np.array(kept).T
    return ReliabilityCurve(LEVELS, share, error)


def _probabilities_kept(probabilities: Array, happened: Array, weights: Array) -> ReliabilityCurve:
    """Return shares of classes (of two, the second) in bins of their forecast probability."""
    skip = 1 if probabilities.shape[1] == 2 else 0
    promised, occurred = (part[:, skip:].ravel() for part in (probabilities, happened))
    index = np.minimum((promised * BINS).astype(int), BINS - 1)
    weight = np.repeat(weights, probabilities.shape[1] - skip)
    count = np.bincount(index, weights=weight, minlength=BINS)
    used = count > 0
    mean, share = (
        np.bincount(index, weights=weight * part, minlength=BINS)[used] / count[used]
        for part in (promised, occurred)
    )
    # One more of each outcome, so that the standard error of a bin is never zero.
    adjusted = (share * count[used] + 1) / (count[used] + 2)
    return ReliabilityCurve(mean, share, np.sqrt(adjusted * (1 - adjusted) / (count[used] + 2)))


def _comparison_in_words(held: held_out.HeldOut, risk: str, choice: str) -> str:
    without = held.bayes
    assert without is not None
    with np.errstate(invalid="ignore"):  # -inf - (-inf) for a class without weight
        change = held.calibrated.log_score - without.log_score
    difference, error = held.mean(change)
    text = "On held-out rows, "
    if without.place is not None:
        bayes, calibrated = (
            held.mean(held_out.coverage(place, 0.95))[0]
            for place in (without.place, held.calibrated.place)
        )
        text += (
            f"Bayes' 95 % intervals held {100 * bayes:.0f} % of the responses and those of the "
            f"{choice} {100 * calibrated:.0f} %; "
        )
    text += f"the log score per row changed by {with_error(difference, error)}"
    if difference > 2 * error:
        return f"{text}: forecasts by the {choice} were clearly better."
    if difference < -2 * error:
        advice = "; --for forecasts would aim at them" if risk == "gibbs" else ""
        return f"{text}: forecasts by the {choice} were clearly worse{advice}."
    return f"{text}, which is no clear difference."
