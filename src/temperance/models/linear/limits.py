r"""Limits on the size of numbers, so that products of four of them neither overflow nor vanish.

In units of the prior and the noise: the largest input must lie between 1e-60 and 1e60, responses
must be at most 1e60, the largest weight must lie between 1e-20 and 1e20, positive weights must be
at least 1e-100, and betas at most 1e150.  Other values raise an error that names the argument.
"""

from __future__ import annotations

import numpy as np

from temperance.data import Array

SMALLEST_ENTRY, LARGEST_ENTRY = 1e-60, 1e60  # of inputs and responses
LARGEST_NORM = 1e60  # Frobenius norm up to which columns are not rescaled
SMALLEST_WEIGHT, SMALLEST_MAXIMUM, LARGEST_MAXIMUM = 1e-100, 1e-20, 1e20
MOST_BETA = 1e150
LEAST_VARIANCE, MOST_VARIANCE = 1e-90, 1e90  # of an inverse gamma prior
# Largest prediction of the prior mean, in units of the responses or of the noise.  Beyond it the
# rounding error of the predictions exceeds 1e-8 of the responses.
LARGEST_PREDICTION = 1e-8 / float(np.finfo(float).eps)

# Largest response in standard deviations of the noise: its rounding error is 1e-3 of one.
LARGEST_RESPONSE = 1e-3 / float(np.finfo(float).eps)


def squares_are_safe(Z: Array) -> bool:
    """Return whether squares of the inputs neither overflow nor vanish."""
    return 1 / LARGEST_NORM < _norm(Z) < LARGEST_NORM or not Z.any()


def refuse_inputs(Z: Array, scale: Array) -> float:
    """Refuse inputs whose largest entry, after scaling the columns, is beyond the limits.

    Returns an upper bound on the norm of any scaled row.
    """
    norm = _norm(Z)
    bound = float(norm * scale.max(initial=0.0))
    # The largest entry is at least the norm divided by the square root of the number of entries.
    if SMALLEST_ENTRY * Z.size < norm * scale.min(initial=np.inf) and bound < LARGEST_ENTRY:
        return bound
    largest = float((np.abs(Z).max(axis=0, initial=0.0) * scale).max(initial=0.0))
    if largest != 0 and not SMALLEST_ENTRY <= largest <= LARGEST_ENTRY:
        raise ValueError(
            f"X must have a largest entry between {SMALLEST_ENTRY:g} and {LARGEST_ENTRY:g} in "
            f"units of the prior's and the noise's standard deviations, got {largest:.2g}"
        )
    return bound


def _norm(Z: Array) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.linalg.norm(Z))


def refuse_responses(response: Array, unit: str) -> None:
    """Refuse responses that are too large in the given unit."""
    largest = float(np.abs(response).max(initial=0.0))
    if not largest <= LARGEST_ENTRY:
        raise ValueError(f"y must be at most {LARGEST_ENTRY:g} in units of {unit}, got {largest:g}")


def refuse_rounding(response: Array) -> None:
    """Refuse responses so large that their rounding error hides a known noise variance."""
    largest = float(np.abs(response).max(initial=0.0))
    if largest > LARGEST_RESPONSE:
        raise ValueError(
            f"noise_variance must not be lost in the rounding of y, got a y that is {largest:.2g} "
            f"standard deviations of the noise from its prior mean, at most {LARGEST_RESPONSE:.2g} "
            "are accepted"
        )


def refuse_weights(weights: Array) -> None:
    """Refuse weights beyond the limits."""
    if weights.strides == (0,):
        weights = weights[:1]
    largest, least = float(weights.max()), float(weights.min())
    if not SMALLEST_MAXIMUM <= largest <= LARGEST_MAXIMUM:
        raise ValueError(
            f"weights must have a largest between {SMALLEST_MAXIMUM:g} and {LARGEST_MAXIMUM:g}, "
            f"got {largest!r}"
        )
    if least < SMALLEST_WEIGHT:
        raise ValueError(
            f"weights must be at least {SMALLEST_WEIGHT:g}, or 0 to leave a row out, got {least!r}"
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
    """Refuse predictions of the prior mean whose rounding error hides responses and noise."""
    farthest, size = (float(np.abs(part).max(initial=0.0)) for part in (predicted, y))
    if not farthest <= LARGEST_PREDICTION * max(size, deviation):
        raise ValueError(
            f"prior_mean must predict y to within {LARGEST_PREDICTION:.0g} times its size, got "
            f"predictions of up to {farthest:.2g} where y is at most {size:.2g}"
        )
