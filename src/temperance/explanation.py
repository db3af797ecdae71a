"""What a calibration means, in plain words."""

from __future__ import annotations

from math import isfinite

from temperance.calibration import Calibration, with_error
from temperance.selection import suspects


def explain(calibration: Calibration) -> str:
    """Say what the choice means and how sure it is, in a few sentences."""
    if not calibration.minimum.searched:
        return (
            "β was given, not chosen: each observation counts once, as the likelihood says. The "
            "risk is that on the rows which the posterior was fitted to."
        )
    if calibration.flat:
        return (
            "The estimated risk does not depend on β, so the data say nothing about it; β stays "
            "as close to Bayes as the bounds allow."
        )
    if not calibration.at_bound and _unclear(calibration):
        return (
            f"β = {calibration.beta:.3g} has the smallest estimated risk, but {_gain(calibration)}"
        )
    gain = _gain(calibration)
    return f"{_meaning(calibration)} {gain[0].upper()}{gain[1:]}{_better_repair(calibration)}"


def _better_repair(calibration: Calibration) -> str:
    """Say so if the model could be freed of what beta repairs."""
    known = hasattr(calibration.model, "noise_variance")
    if not known or calibration.kind == "gibbs" or _unclear(calibration):
        return ""
    effect = "widens" if calibration.beta < 1 else "narrows"
    return (
        " If the noise variance is a guess, a model that infers it is the better repair: "
        f"β {effect} forecasts and coefficients alike."
    )


def _meaning(calibration: Calibration) -> str:
    beta, upper = calibration.beta, calibration.bounds[1]
    if beta == 0:
        return (
            "The prior alone predicts better than anything learnt from these data (β = 0): check "
            "the model, the units and the prior."
        )
    if calibration.at_bound and beta == upper:
        advice = (
            "it rewards narrow posteriors, so choose the predictive risk if intervals and "
            "probabilities are what you are after"
            if calibration.kind == "gibbs"
            else f"see whether wider bounds do better, or whether {suspects(calibration.model)}"
        )
        return f"The {calibration.kind} risk falls up to the upper bound, β = {beta:.3g}: {advice}."
    amount = f"each observation should count as {beta:.3g} of one"
    if calibration.at_bound:
        return f"The risk is smallest at the lower bound: {amount}, or less; see wider bounds."
    if beta < 1:
        return (
            f"The data deserve less trust than Bayes gives them: {amount}. The calibrated "
            "posterior is the wider one, as a model that is partly wrong should have."
        )
    return (
        f"The data deserve more trust than Bayes gives them: {amount}. The calibrated posterior "
        "is the narrower one."
    )


def _unclear(calibration: Calibration) -> bool:
    return calibration.gain <= 2 * calibration.gain_standard_error


def _gain(calibration: Calibration) -> str:
    gain, error = calibration.gain, calibration.gain_standard_error
    if not isfinite(error):
        return f"the estimated gain over Bayes is {gain:.3g} per observation."
    size = f"the estimated gain over Bayes, {with_error(gain, error)} per observation,"
    if _unclear(calibration):
        return f"{size} is within two standard errors of nothing: Bayes would do about as well."
    return f"{size} is clear."
