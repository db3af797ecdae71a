"""Results as tables for readers and as JSON for programs."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import Any, cast

import numpy as np
from rich.markup import escape as escape_markup
from rich.padding import Padding
from rich.table import Table as Grid

import temperance
from temperance.app.cli.console import Output, printable
from temperance.app.cli.request import PURPOSES, Request
from temperance.app.cli.trials import CalibrateResult, Trial
from temperance.app.explanation import (
    explain,
    gain_in_words,
    in_percent,
    meaning_of_range,
    modelled,
    verdict,
)
from temperance.app.held_out import HeldOut, coverage, hits
from temperance.calibration import Calibration, with_error
from temperance.data import Risk
from temperance.estimators.prior_scale import WEAK_SCALE
from temperance.losses import Loss

BETAS = "chosen beta"
MOST_COEFFICIENTS = 20  # on a terminal


def escape(text: str) -> str:
    """Return text from files without control characters and rich markup."""
    return escape_markup(printable(text))


def show(request: Request, result: CalibrateResult) -> None:
    """Print the result."""
    if request.json:
        print(json.dumps(_plain(as_record(request, result)), indent=2, allow_nan=False))
        return
    console = Output()
    console.print(_named(_first(settings(request, result))))
    notes = [*result.table.notices, *(f"Warning: {each}" for each in result.warnings)]
    if notes:
        console.print(_bulleted(notes))
    console.print()
    console.print(_choices(result.own.fitted))
    console.print(Padding(escape(explain(result.own.fitted.calibration_)), (1, 0, 0, 0)))
    if request.aim == "coefficients":
        console.print()
        _print_coefficients(console, _coefficients(result.own.fitted))
    if request.compare:
        console.print()
        console.print(_ranked_grid(ranking(result), result.own.name, console.width))
        console.print(_compared_in_words(result.trials))
    if request.report is not None or request.save is not None:
        console.print()
    if request.report is not None:
        console.print(f"The report is in {escape(str(request.report))}", soft_wrap=True)
    if request.save is not None:
        console.print(f"The choice is in {escape(str(request.save))}", soft_wrap=True)


def _first(names_and_values: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the first settings, up to the purpose, for the head of the output."""
    return names_and_values[: [name for name, _ in names_and_values].index("for") + 1]


def settings(request: Request, result: CalibrateResult) -> list[tuple[str, str]]:
    """Return names and values that describe what was done, the most important first."""
    fitted, table = result.own.fitted, result.table
    first = fitted.calibration_
    rows, columns = table.inputs.shape
    inputs = "1 column" if columns == 1 else f"{columns} columns"
    return [
        ("data", f"{table.name}, {rows} rows; {table.target_name} from {inputs}"),
        ("model", _model(fitted)),
        *(
            [("class", modelled_class)]
            if (modelled_class := modelled(fitted, table.target_name))
            else []
        ),
        ("strategy", repr(first.strategy)),
        ("for", _purpose(fitted)),
        ("bounds", f"beta from {first.bounds[0]:g} to {first.bounds[1]:g}"),
        ("prior", _prior(fitted)),
        ("columns", "standardised" if fitted.standardize else "as they are"),
        ("constant", "included" if fitted.fit_intercept else "none"),
        ("seed", str(request.seed)),
        ("version", f"temperance {temperance.__version__}"),
    ]


def _purpose(fitted: Any) -> str:
    """Return what beta was chosen for, and how."""
    chosen = fitted.calibration_
    if chosen.table is None:
        return f"credible sets of the coefficients: {chosen.where}"
    return f"{PURPOSES[chosen.kind]}: {chosen.kind} risk, {chosen.table.method}{_units(fitted)}"


def _prior(fitted: Any) -> str:
    loss = _loss(fitted)
    if fitted.prior_scale == "auto" and loss is not None:
        learnt = loss.likelihood and fitted.calibration_.kind == "predictive"
        units = ", in deviations of the target" if loss.location else ""
        if not learnt:
            return f"weak: standard deviation {WEAK_SCALE:g} of each coefficient{units}"
    if fitted.prior_scale == "auto":
        return "standard deviation of the coefficients learnt from the data"
    return f"standard deviation {fitted.prior_scale:g} of each coefficient"


def _kind(fitted: Any) -> Risk:
    return fitted.parts()[0][1].kind


def _units(fitted: Any) -> str:
    """Return the unit of a risk, if it needs to be named."""
    inferred = isinstance(getattr(fitted, "noise_variance", None), str) and _loss(fitted) is None
    return ", of the standardised target" if inferred and fitted.standardize else ""


def _loss(fitted: Any) -> Loss | None:
    """Return the loss, with its parameters fitted, if it is another than the usual one."""
    return None if fitted._loss() is None else fitted.calibration_.model.row_loss


def _model(fitted: Any) -> str:
    degree = f", powers up to {fitted.degree}" if fitted.degree > 1 else ""
    loss = _loss(fitted)
    if loss is not None:
        numbers: Any = {each.name: getattr(loss, each.name) for each in fields(cast(Any, loss))}
        values = [f", {name} {value:.4g}" for name, value in numbers.items()]
        kind = f", {fitted.posterior} posterior" if loss.binary else ""
        return f"linear predictor{degree}, {loss.name}{''.join(values)}{kind}"
    if hasattr(fitted, "classes_"):
        several = len(fitted.classes_) > 2
        kind = "laplace posterior of all classes" if several else f"{fitted.posterior} posterior"
        return f"logistic regression{degree}, {kind}"
    known = isinstance(fitted.noise_variance, str)
    noise = "unknown" if known else f"{fitted.noise_variance:g}"
    return f"linear regression{degree}, noise variance {noise}"


def _named(names_and_values: list[tuple[str, str]]) -> Grid:
    grid = _grid("", "")
    for name, value in names_and_values:
        grid.add_row(f"[bold]{name}[/bold]", escape(value))
    return grid


def _bulleted(sentences: list[str]) -> Grid:
    grid = Grid.grid(padding=(0, 1, 0, 0))
    for sentence in sentences:
        grid.add_row("[dim]•[/dim]", escape(sentence))
    return grid


def _choices(fitted: Any) -> Grid:
    """Return a line for each quantity."""
    return _named(_quantities(fitted.calibration_))


def _quantities(part: Calibration) -> list[tuple[str, str]]:
    """Return what was gained first, then the choice and its risk."""
    mixed, gains = part.weights is not None, part.table is not None and part.likelihood
    quantities = [("gain", gain_in_words(part))] if gains else []
    beta = f"{part.beta:.4g}" if part.weights is None else f"mixed: {in_percent(part.weights)}"
    quantities += [("beta", beta), ("range", _range(part))]
    if not mixed:
        quantities.append(("alpha", f"{part.alpha:.4g}"))
    if part.table is None:
        return [*quantities, ("rule", part.where)]
    quantities.append(("risk", with_error(part.risk, part.standard_error)))
    if gains:
        quantities.append(("Bayes' risk", f"{part.bayes_risk:.5g}"))
    return quantities if mixed else [*quantities, ("minimum", part.where)]


def _print_coefficients(console: Output, found: list[dict[str, Any]]) -> None:
    """Print estimates and intervals, and how many more there are."""
    several = found[-1]["class"] is not None
    grid = _grid(*(["class"] if several else []), "coefficient", "estimate", "95 % interval")
    for each in found[:MOST_COEFFICIENTS]:
        cells = [*([each["class"]] if several else []), each["name"], f"{each['mean']:.4g}"]
        grid.add_row(*map(escape, cells), f"{each['low']:.4g} to {each['high']:.4g}")
    console.print(grid)
    more = len(found) - MOST_COEFFICIENTS
    if more > 0:
        console.print(f"and {more} more: --json prints all")


def _range(part: Calibration) -> str:
    """Return the range of beta and what it is, if there is one."""
    given = part.weights is None and part.rate is None and not part.choice.searched
    if given or part.beta_range is None:
        return "–"
    low, high = part.beta_range
    if low == high:
        return f"{low:.3g} alone{'' if part.weights is None else ', of single betas'}"
    return f"{low:.3g} to {high:.3g}  ({meaning_of_range(part)})"


def _grid(*headings: str) -> Grid:
    grid = Grid(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        header_style="bold",
        show_header=any(headings),
    )
    for heading in headings:
        grid.add_column(heading)
    return grid


def _ranked_grid(ranking: list[tuple[str, ...]], own: str, width: int) -> Grid:
    """Return the ranking; if it is too wide, columns move together and betas are wrapped."""
    headings, *rows = ranking
    cells = [max(map(len, column)) for column in zip(*ranking, strict=True)]
    grid = _grid(*headings)
    if sum(cells) + 2 * (len(cells) - 1) > width:
        grid.padding = (0, 1, 0, 0)
    for column in grid.columns:
        column.no_wrap = column.header != BETAS
    for row in rows:
        grid.add_row(*map(escape, row), style="bold" if row[1] == own else None)
    return grid


def ranked(trials: list[Trial]) -> list[Trial]:
    """Return strategies by their gain over Bayes, or loss, on held-out rows, the best first."""
    return sorted(trials, key=lambda trial: _measured(trial.held)[0])


def _measured(held: HeldOut) -> tuple[float, float]:
    """Return the loss of held-out rows and its error: as a difference to Bayes, or by itself."""
    return held.mean(held.calibrated.loss if held.gains is None else -held.gains)


def ranking(result: CalibrateResult) -> list[tuple[str, ...]]:
    """Return a row of headings, then the strategies on held-out rows, the best first."""
    if result.own.held.bayes is None:
        return _ranking_by_loss(result)
    last = "in 95 %" if result.own.held.bayes.place is not None else "right"
    rows: list[tuple[str, ...]] = [("", "strategy", BETAS, "gain over Bayes", "log score", last)]
    trials = ranked(result.trials)
    gains = [trial.held.mean(trial.held.gains) for trial in trials]
    for trial, gain in zip(trials, gains, strict=True):
        place = 1 + [mean for mean, _ in gains].index(gain[0])  # equal gains share a rank
        held = trial.held
        score = held.mean(held.calibrated.log_score)
        share = f"{held.mean(hit(held, result))[0]:.1%}"
        rows.append(
            (
                *(str(place), trial.name, _taken(trial)),
                *(with_error(*gain), with_error(*score), share),
            )
        )
    return rows


def _ranking_by_loss(result: CalibrateResult) -> list[tuple[str, ...]]:
    """Return headings and rows where the loss is no likelihood."""
    held, loss = result.own.held, result.own.fitted.calibration_.model.row_loss
    last = "right" if held.calibrated.right is not None else "at or below"
    rows: list[tuple[str, ...]] = [("", "strategy", BETAS, loss.name, last)]
    trials = ranked(result.trials)
    losses = [_measured(trial.held) for trial in trials]
    for trial, found in zip(trials, losses, strict=True):
        place = 1 + [mean for mean, _ in losses].index(found[0])
        share = f"{trial.held.mean(hit(trial.held, result))[0]:.1%}"
        rows.append((str(place), trial.name, _taken(trial), with_error(*found), share))
    return rows


def _taken(trial: Trial) -> str:
    """Return the beta of a strategy, or that it mixes several."""
    part = trial.fitted.calibration_
    return f"{part.beta:.3g}" if part.weights is None else "mixed"


def _compared_in_words(trials: list[Trial]) -> str:
    if trials[0].held.gains is None:
        return (
            "The chosen beta is that on all rows; the rest is of posterior means, from rows held "
            "out in turn, ± one standard error."
        )
    gains = {trial.name: trial.held.mean(trial.held.gains) for trial in trials}
    better = [name for name, (gain, error) in gains.items() if gain > 2 * error]
    worse = [name for name, (gain, error) in gains.items() if gain < -2 * error]
    measure = {"gibbs": "Gibbs risk", "predictive": "log score"}[_kind(trials[0].fitted)]
    clear = [
        f"clearly {how} than Bayes in {measure}: {', '.join(names)}"
        for how, names in (("better", better), ("worse", worse))
        if names
    ]
    found = "; ".join(clear) or "none differs clearly from Bayes"
    return (
        "The chosen beta is from all rows; the rest is from rows held out in turn, ± one "
        f"standard error. {found[0].upper()}{found[1:]}."
    )


def hit(held: HeldOut, result: CalibrateResult) -> Any:
    """Return whether each row is in its 95 % interval, or has its class, as 0 or 1.

    For a loss of responses that is no likelihood: whether they are at most the fitted value.
    """
    if held.calibrated.below is not None:
        return held.calibrated.below
    if held.calibrated.place is not None:
        return coverage(held.calibrated.place, 0.95)
    return hits(held.calibrated, result.table.target, result.own.fitted.classes_)


def as_record(request: Request, result: CalibrateResult) -> dict[str, Any]:
    """Return all results as plain values."""
    fitted, table = result.own.fitted, result.table
    record: dict[str, Any] = {
        "version": temperance.__version__,
        "command": request.command(),
        "data": table.name,
        "target": table.target_name,
        "task": table.task,
        "rows": len(table.target),
        "columns": list(table.inputs.columns),
        "reference_levels": {
            column.name: column.reference for column in table.columns if column.kind == "levels"
        },
        "settings": dict(settings(request, result)),
        "results": [_result(fitted)],
        "coefficients": _coefficients(fitted),
        "notices": list(table.notices),
        "warnings": result.warnings,
    }
    if request.compare:
        record["comparison"] = [_compared(trial, result) for trial in ranked(result.trials)]
    if request.report is not None:
        record["report"] = str(request.report)
    if request.save is not None:
        record["saved"] = str(request.save)
    return record


def _result(fitted: Any) -> dict[str, Any]:
    part, names = fitted.calibration_, [name for name, _ in fitted.parts()]
    return {
        "class": names[0] or None if len(names) == 1 else None,
        "gain": part.gain,
        "gain_standard_error": part.gain_standard_error,
        "verdict": verdict(part),
        "beta": part.beta,
        "beta_range": None if part.beta_range is None else list(part.beta_range),
        "weights": _weights(part),
        "alpha": part.alpha,
        "n": part.data.size,
        "risk": part.risk,
        "standard_error": part.standard_error,
        "bayes_risk": part.bayes_risk,
        "at_bound": part.at_bound,
        "flat": part.flat,
        "minimum": part.where,
        "meaning": explain(part),
    }


def _weights(part: Calibration) -> dict[str, Any] | None:
    if part.weights is None:
        return None
    return {"betas": part.weights.betas.tolist(), "weights": part.weights.weights.tolist()}


def _coefficients(fitted: Any) -> list[dict[str, Any]]:
    names = ["intercept", *fitted.terms_]
    found, first = [], 0 if fitted.fit_intercept else 1
    labels = [label for label, _ in fitted.parts()]
    laws = fitted.class_coefficients() if labels[0] else [fitted.coefficients()]
    for label, law in zip(labels, laws, strict=True):
        quantities = zip(names, law.mean, *law.interval(0.95).T, strict=True)
        for name, mean, low, high in list(quantities)[first:]:
            found.append(
                {"class": label or None, "name": name, "mean": mean, "low": low, "high": high}
            )
    return found


def _compared(trial: Trial, result: CalibrateResult) -> dict[str, Any]:
    held = trial.held
    if held.gains is None:
        loss, loss_error = _measured(held)
        return {
            "strategy": trial.name,
            "results": [_result(trial.fitted)],
            "held_out_loss": loss,
            "held_out_loss_standard_error": loss_error,
            "held_out_hits": held.mean(hit(held, result))[0],
        }
    gain, gain_error = held.mean(held.gains)
    score, score_error = held.mean(held.calibrated.log_score)
    return {
        "strategy": trial.name,
        "results": [_result(trial.fitted)],
        "held_out_gain": gain,
        "held_out_gain_standard_error": gain_error,
        "held_out_log_score": score,
        "held_out_log_score_standard_error": score_error,
        "held_out_hits": held.mean(hit(held, result))[0],
    }


def _plain(value: Any) -> Any:
    """Return a value with numpy's types as Python's, and numbers that are not finite as null."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
