r"""How large and how small numbers may be: products of four of them must be finite, and not zero.

In units of the prior and the noise: inputs whose largest lies between 1e-60 and 1e60, responses of
up to 1e60, weights whose largest lies between 1e-20 and 1e20 and of which none is below 1e-100,
betas of up to 1e150.  Others get one line that names the argument.
"""

from __future__ import annotations

import numpy as np

from temperance.types import Array

LEAST, MOST = 1e-60, 1e60  # of inputs and responses
USUAL = 1e60  # length of all inputs whose columns are taken as they are
LEAST_WEIGHT, LIGHTEST, HEAVIEST = 1e-100, 1e-20, 1e20
MOST_BETA = 1e150
LEAST_VARIANCE, MOST_VARIANCE = 1e-90, 1e90  # of an inverse gamma prior
# Largest prediction of the prior mean, in units of the responses or of the noise: beyond, rounding
# of the predictions is more than 1e-8 of the responses.
FAR_OFF = 1e-8 / float(np.finfo(float).eps)

MOST_DEVIATIONS = 1e-3 / float(np.finfo(float).eps)  # whose rounding is a thousandth of one


def usual(Z: Array) -> bool:
    """Whether squares of inputs are far from all limits."""
    return 1 / USUAL < _length(Z) < USUAL or not Z.any()


def refuse_inputs(Z: Array, scale: Array) -> float:
    """Refuse inputs whose largest entry, in columns of these scales, is beyond the limits.

    Returns a bound on the length of any row.
    """
    length = _length(Z)
    bound = float(length * scale.max(initial=0.0))
    # The largest entry is at least the length over the root of their number.
    if LEAST * Z.size < length * scale.min(initial=np.inf) and bound < MOST:
        return bound
    largest = float((np.abs(Z).max(axis=0, initial=0.0) * scale).max(initial=0.0))
    if largest != 0 and not LEAST <= largest <= MOST:
        raise ValueError(
            f"X must have a largest entry between {LEAST:g} and {MOST:g} in units of the prior's "
            f"and the noise's standard deviations, got {largest:.2g}"
        )
    return bound


def _length(Z: Array) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.linalg.norm(Z))


def refuse_responses(response: Array, unit: str) -> None:
    """Refuse responses in some unit that are too large."""
    largest = float(np.abs(response).max(initial=0.0))
    if not largest <= MOST:
        raise ValueError(f"y must be at most {MOST:g} in units of {unit}, got {largest:g}")


def refuse_rounding(response: Array) -> None:
    """Refuse responses in units of a known noise beside whose own rounding that is nothing."""
    largest = float(np.abs(response).max(initial=0.0))
    if largest > MOST_DEVIATIONS:
        raise ValueError(
            f"noise_variance must not be lost in the rounding of y, got a y that is {largest:.2g} "
            f"standard deviations of the noise from its prior mean, more than {MOST_DEVIATIONS:.2g}"
        )


def refuse_weights(weights: Array) -> None:
    """Refuse weights beyond the limits."""
    if weights.strides == (0,):
        weights = weights[:1]
    largest, least = float(weights.max()), float(weights.min())
    if not LIGHTEST <= largest <= HEAVIEST:
        raise ValueError(
            f"weights must have a largest between {LIGHTEST:g} and {HEAVIEST:g}, got {largest!r}"
        )
    if least < LEAST_WEIGHT:
        raise ValueError(
            f"weights must be at least {LEAST_WEIGHT:g}, or 0 to leave a row out, got {least!r}"
        )


def refuse_alpha(alpha: float) -> None:
    """Refuse an alpha beyond the limits."""
    if alpha > MOST_BETA:
        raise ValueError(f"alpha must be at most {MOST_BETA:g}, got {alpha!r}")


def refuse_betas(beta: Array) -> None:
    """Refuse betas beyond the limits."""
    if beta.size and beta.max() > MOST_BETA:
        raise ValueError(
            f"beta must be at most {MOST_BETA:g}, and bounds as well, got {float(beta.max())!r}"
        )


def refuse_variance(name: str, value: float) -> None:
    """Refuse a scale of the inverse gamma prior beyond the limits."""
    if not LEAST_VARIANCE <= value <= MOST_VARIANCE:
        raise ValueError(
            f"{name} must lie between {LEAST_VARIANCE:g} and {MOST_VARIANCE:g}, got {value!r}"
        )


def refuse_far_predictions(predicted: Array, y: Array, deviation: float) -> None:
    """Refuse predictions of the prior mean beside which responses and noise are rounding."""
    farthest, size = (float(np.abs(part).max(initial=0.0)) for part in (predicted, y))
    if not farthest <= FAR_OFF * max(size, deviation):
        raise ValueError(
            f"prior_mean must predict y to within {FAR_OFF:.0g} times its size, got predictions of "
            f"up to {farthest:.2g} where y is at most {size:.2g}"
        )
