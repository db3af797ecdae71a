"""The meaning of a calibration, as sentences."""

from __future__ import annotations

from math import isfinite
from typing import Any

from temperance.app.held_out import HeldOut, missed
from temperance.calibration import (
    NEGLIGIBLE_GAIN,
    VERDICTS,
    Calibration,
    known_noise_variance,
    with_error,
)
from temperance.losses import Pinball, Poisson
from temperance.rules import BetaWeights, Verdict
from temperance.strategies.selection import suspects

LEAST_SHOWN = 0.01  # weight of a beta in a mixture
NO_LANDMARK = "The loss is no likelihood: the size of β depends on its units, and 1 is no landmark."


def explain(calibration: Calibration) -> str:
    """Return a few sentences on what the choice gains, how certain that is, and what it means."""
    if calibration.rate is not None:
        return _rate(calibration)
    if calibration.weights is not None:
        if calibration.flat:
            return (
                "The model can fit the responses exactly, so that held-out rows say nothing about "
                "β: forecasts are Bayes'."
            )
        mixed, apart = _mixture(calibration.weights), _range(calibration, "single β")
        return f"{_gain(calibration)} {mixed}{apart}{_better_repair(calibration)}"
    if not calibration.choice.searched:
        return (
            "β was given, not chosen: each observation counts once, as the likelihood says. The "
            "risk is that on the rows which the posterior was fitted to."
        )
    if calibration.flat:
        near = "Bayes" if calibration.likelihood else "1"
        return (
            "The estimated risk does not depend on β, so the data say nothing about it; β stays "
            f"as close to {near} as the bounds allow."
        )
    if not calibration.likelihood:
        return f"{_weight(calibration)}{_range(calibration)}"
    text = f"{_gain(calibration)} {_meaning(calibration)}{_range(calibration)}"
    return f"{text}{_better_repair(calibration)}"


def verdict(calibration: Calibration) -> Verdict | None:
    """Return whether to keep Bayes or to temper, where held-out rows can say so."""
    held_out = calibration.table is not None and getattr(
        calibration.strategy, "holds_rows_out", True
    )
    if calibration.rate is not None or not held_out or not calibration.likelihood:
        return None
    return calibration.verdict


def gain_in_words(calibration: Calibration) -> str:
    """Return the gain over Bayes with its error, and the verdict if there is one."""
    gain = with_error(calibration.gain, calibration.gain_standard_error)
    found = verdict(calibration)
    advice = "" if found is None else f": {VERDICTS[found]}"
    return f"{gain} over Bayes{_few(calibration)}{advice}"


def meaning_of_range(calibration: Calibration) -> str:
    """Return what the range of beta is, as a phrase."""
    if calibration.rate is not None:
        return calibration.rate.interval_of
    alone = "" if calibration.weights is None else "single betas "
    return f"{alone}not told apart by the data"


def in_percent(weights: BetaWeights) -> str:
    """Return the weights of betas in percent, without those of less than one.

    Examples
    --------
    >>> import numpy as np
    >>> in_percent(BetaWeights(np.array([0.1, 0.3, 1.0]), np.array([0.3, 0.004, 0.696])))
    '30 % at 0.1, 70 % at 1'
    """
    pairs = zip(weights.betas, weights.weights, strict=True)
    return ", ".join(f"{100 * w:.0f} % at {beta:.3g}" for beta, w in pairs if w >= LEAST_SHOWN)


def _mixture(weights: BetaWeights) -> str:
    """Return what is mixed."""
    largest = int(weights.weights.argmax())
    if weights.weights[largest] < 1 - LEAST_SHOWN:
        return "Forecasts are mixed over β, with the weights that forecast held-out rows best."
    beta = weights.betas[largest]
    bayes = ", which is Bayes" if beta == 1 else ""
    return (
        "Forecasts may be mixed over β, but the mixture that forecast held-out rows best has its "
        f"weight at β = {beta:.3g}{bayes}."
    )


def _rate(calibration: Calibration) -> str:
    """Return what a beta means that a rule gave for the sake of credible sets."""
    beta = calibration.beta
    text = f"β = {beta:.3g} was not chosen by risk: {calibration.where}. "
    if calibration.likelihood:
        how = "as wide as" if beta == 1 else "wider than" if beta < 1 else "narrower than"
        text += (
            f"Credible sets of the coefficients are {how} Bayes'; intervals for new responses were "
            "no part of the rule."
        )
    else:
        text += f"It is for credible sets of the coefficients. {NO_LANDMARK}"
    rate = calibration.rate
    if rate is not None and rate.no_single_rate and rate.by_direction is not None:
        least, most = rate.by_direction[[0, -1]]
        text += (
            f" The directions of the coefficients call for rates from {least:.3g} to {most:.3g}, "
            "so no single β fits them all."
        )
    return text


def name_of_choice(calibration: Calibration) -> str:
    """Return the name of the choice."""
    return "chosen β" if calibration.weights is None else "mixture over β"


def unrepaired(calibration: Calibration, held: HeldOut) -> str:
    """Return a sentence if intervals for forecasts are wrong at any beta, or an empty text."""
    # Only a beta chosen on held-out rows is the best for their intervals.
    chosen_on_held_out = calibration.weights is not None or (
        calibration.choice.searched and getattr(calibration.strategy, "holds_rows_out", True)
    )
    shares = missed(held) if chosen_on_held_out and calibration.kind == "predictive" else {}
    if not shares:
        return ""
    levels, kept = (
        _listed([f"{100 * each:.0f}" for each in values])
        for values in (shares.keys(), shares.values())
    )
    remedy = (
        "transform the response (its logarithm, say), or take a model whose noise has heavier "
        "tails or varies with the inputs"
        if known_noise_variance(calibration.model) is None
        else "let the model infer its noise variance"
    )
    if isinstance(getattr(calibration.model, "row_loss", None), Poisson):
        remedy = "take the negative binomial loss, whose counts may vary more"
    how = "choosing β" if calibration.weights is None else "mixing over β"
    return (
        f"Intervals of {levels} % covered {kept} % of the held-out responses, which is not chance, "
        f"and {how} did not repair it: {remedy}."
    )


def _listed(words: list[str]) -> str:
    """Return words joined by commas, the last by 'and'."""
    *first, last = words
    return f"{', '.join(first)} and {last}"


def modelled(fitted: Any, target: str) -> str:
    """Return which of two classes has its probability or margin modelled, or an empty text."""
    classes = list(getattr(fitted, "classes_", ()))
    if len(classes) != 2:
        return ""
    what = "probability" if fitted.likelihood else "margin"
    return f"{what} of {target} = {classes[1]}, against {classes[0]}"


def fared(fitted: Any, held: HeldOut) -> str:
    """Return how the fitted values of a loss that is no likelihood did on rows held out."""
    loss = fitted.calibration_.model.row_loss
    text = f"On held-out rows, the {loss.name} was {with_error(*held.mean(held.calibrated.loss))}"
    if held.calibrated.right is not None:
        right = held.mean(held.calibrated.right.astype(float))[0]
        return f"{text} per row, and {100 * right:.0f} % of the classes were guessed right."
    if isinstance(loss, Pinball):
        share = 100 * held.mean(held.calibrated.below)[0]
        return (
            f"{text} per row, and {share:.0f} % of the responses lay at or below the line, where "
            f"{100 * loss.quantile:.3g} % should."
        )
    return f"{text} per row."


def _better_repair(calibration: Calibration) -> str:
    """Return advice if inferring the noise variance would be the better remedy."""
    known = known_noise_variance(calibration.model) is not None
    if not known or calibration.kind == "gibbs" or not _tempers(calibration):
        return ""
    effect = "changes the widths of" if calibration.weights is not None else "narrows"
    if calibration.weights is None and calibration.beta < 1:
        effect = "widens"
    return (
        " If the noise variance is a guess, a model that infers it is the better repair: "
        f"β {effect} forecasts and coefficients alike."
    )


def _range(calibration: Calibration, of: str = "β") -> str:
    """Return which betas would do as well, unless there is only one."""
    low, high = calibration.beta_range or (calibration.beta, calibration.beta)
    if f"{low:.3g}" == f"{high:.3g}":
        return ""
    return f" The data do not tell {of} from {low:.3g} to {high:.3g} apart."


def _weight(calibration: Calibration) -> str:
    """Return what a beta chosen by risk means where the loss is no likelihood."""
    if calibration.at_bound:
        return f"{_at_bound(calibration)} {NO_LANDMARK}"
    return f"β = {calibration.beta:.3g} has the smallest estimated risk. {NO_LANDMARK}"


def _at_bound(calibration: Calibration) -> str:
    """Return what a choice at a bound means."""
    beta, upper = calibration.beta, calibration.bounds[1]
    if beta == 0:
        return (
            "The prior alone predicts better than anything learnt from these data (β = 0): check "
            "the model, the units and the prior."
        )
    if beta == upper:
        advice = (
            "it rewards narrow posteriors and mostly does, so the bound is a convention"
            if calibration.kind == "gibbs"
            else f"see whether wider bounds do better, or whether {suspects(calibration.model)}"
        )
        return f"The {calibration.kind} risk falls up to the upper bound, β = {beta:.3g}: {advice}."
    amount = f"each observation should count as {beta:.3g} of one, or less"
    if not calibration.likelihood:
        amount = f"β = {beta:.3g}"
    return f"The risk is smallest at the lower bound: {amount}; try wider bounds."


def _meaning(calibration: Calibration) -> str:
    if calibration.at_bound:
        return _at_bound(calibration)
    beta = calibration.beta
    if not _tempers(calibration):
        return f"β = {beta:.3g} has the smallest estimated risk."
    amount = f"each observation should count as {beta:.3g} of one"
    if beta < 1:
        return (
            f"The data deserve less trust than Bayes gives them: {amount}. The posterior is wider "
            "than Bayes', as that of a model that is partly wrong should be."
        )
    return (
        f"The data deserve more trust than Bayes gives them: {amount}. The posterior is narrower "
        "than Bayes'."
    )


def _tempers(calibration: Calibration) -> bool:
    """Return whether the verdict is to temper; without one, whether the gain is clear."""
    found = verdict(calibration)
    return calibration.versus_bayes == "better" if found is None else found == "temper"


def _gain(calibration: Calibration) -> str:
    """Return the verdict and the gain over Bayes, as a sentence."""
    gain, error, found = calibration.gain, calibration.gain_standard_error, verdict(calibration)
    keep = found == "keep"
    text = "the estimated gain over it" if keep else "the estimated gain over Bayes"
    text = f"T{text[1:]}" if found is None else f"{_capital(VERDICTS[found])}: {text}"
    size = f"{with_error(gain, error)} per observation"
    if not isfinite(error):
        return f"{text} is {size}, and its error is not known."
    if gain <= 0:
        return f"{text} is {size}."
    text = f"{text}, {size}{_few(calibration)},"
    if calibration.versus_bayes == "the same":
        return f"{text} is at most {NEGLIGIBLE_GAIN:g}."
    if calibration.versus_bayes == "better":
        return f"{text} is clear{' but small' if keep else ''}."
    if found == "temper":
        return f"{text} is more than one standard error from zero, but less than two."
    return f"{text} is less than two standard errors from zero: the data do not tell."


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def _few(calibration: Calibration) -> str:
    """Return whether few rows decide, where the verdict is to temper."""
    few = verdict(calibration) == "temper" and calibration._gain.few_rows
    return ", much of it from few rows" if few else ""
