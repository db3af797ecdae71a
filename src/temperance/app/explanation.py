"""The meaning of a calibration, as sentences."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from temperance.app.held_out import HeldOut, missed
from temperance.calibration import NEGLIGIBLE_GAIN, Calibration, with_error
from temperance.losses import Pinball, Poisson
from temperance.protocols import known_noise_variance
from temperance.strategies.selection import suspects

NO_LANDMARK = "The loss is no likelihood: the size of β depends on its units, and 1 is no landmark."


def explain(calibration: Calibration) -> str:
    """Return a few sentences on what the choice means and how certain it is."""
    if calibration.rate is not None:
        return _rate(calibration)
    if calibration.weights is not None:
        gain = _sentence(_gain(calibration))
        return (
            f"{gain} Forecasts are mixed over β, by how well mixtures forecast held-out rows: "
            f"{_mixture(calibration)}.{_better_repair(calibration)}"
        )
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
    if not calibration.at_bound and _unclear(calibration):
        return (
            f"β = {calibration.beta:.3g} has the smallest estimated risk, but {_gain(calibration)}"
            f"{_range(calibration)}"
        )
    gain = _sentence(f"{_gain(calibration)}{_range(calibration)}")
    return f"{_meaning(calibration)} {gain}{_better_repair(calibration)}"


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:]


def _mixture(calibration: Calibration) -> str:
    """Return the largest weights of betas, at most three."""
    assert calibration.weights is not None
    betas, weights = calibration.weights.betas, calibration.weights.weights
    largest = [k for k in np.argsort(-weights)[:3] if weights[k] >= 0.01]
    return _listed(
        [
            f"{100 * weights[k]:.0f} % of the weight is at β = {betas[k]:.3g}"
            for k in sorted(largest)
        ]
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
    return (
        f"Intervals of {levels} % covered {kept} % of the held-out responses, which is not chance, "
        f"and choosing β did not repair it: {remedy}."
    )


def _listed(words: list[str]) -> str:
    """Return words joined by commas, the last by 'and'."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


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
    if not known or calibration.kind == "gibbs" or _unclear(calibration):
        return ""
    effect = "widens" if calibration.beta < 1 else "narrows"
    return (
        " If the noise variance is a guess, a model that infers it is the better repair: "
        f"β {effect} forecasts and coefficients alike."
    )


def _range(calibration: Calibration) -> str:
    """Return which betas would do as well, unless there is only one."""
    low, high = calibration.beta_range or (calibration.beta, calibration.beta)
    if f"{low:.3g}" == f"{high:.3g}":
        return ""
    return f" The data do not tell β from {low:.3g} to {high:.3g} apart."


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


def _unclear(calibration: Calibration) -> bool:
    return isfinite(calibration.gain_standard_error) and calibration.versus_bayes != "better"


def _gain(calibration: Calibration) -> str:
    gain, error = calibration.gain, calibration.gain_standard_error
    if not isfinite(error):
        return f"the estimated gain over Bayes is {gain:.3g} per observation."
    size = f"the estimated gain over Bayes, {with_error(gain, error)} per observation,"
    if calibration.versus_bayes == "the same":
        return f"{size} is at most {NEGLIGIBLE_GAIN:g}: Bayes would do about as well."
    if calibration.versus_bayes == "unknown":
        return f"{size} is less than two standard errors from zero: the data do not tell."
    return f"{size} is clear."
