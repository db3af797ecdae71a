r"""Predictions of tested rows at one beta under each scale of the prior.

For a training set (see :mod:`temperance.models.hierarchical.training`) and a prior variance kappa
of the coefficients, in units of the noise variance, with shrinkage q = 1 / (1 + beta kappa s^2):

    mean of a row       ybar + z'(beta kappa s c q),
    its variance        kappa (z'diag(q) z + squared length outside the span),
    misfit              Q = beta (rest + sum c^2 q),
    determinant         sum log(1 + beta kappa s^2),

and each of these has a term for the unknown level (the mean response at the centre), which is
N(0, g) before the data and N(ybar (1 - t), g t) after, t = 1 / (1 + g beta N).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array
from temperance.models.hierarchical.training import TestedRows, TrainingSets
from temperance.models.linear.moments import PredictionMoments


class Predictions(NamedTuple):
    """Predictions of p training sets under k scales; the moments have p * k pairs of e rows."""

    moments: PredictionMoments
    log_determinant: Array  # (p, k)
    d_log_determinant: Array


class Level(NamedTuple):
    """Uncertainty of the level at the centre of p training sets, (p,) each."""

    variance: Array
    error: Array
    misfit: Array
    d_variance: Array
    d_error: Array
    d_misfit: Array


def level_at(beta: float, exposure: Array, mean: Array, prior: float) -> Level:
    """Return the uncertainty of the level at ``beta``, with prior variance ``prior``."""
    rate = prior * exposure
    left = 1 / (1 + beta * rate)
    squares = exposure * mean**2
    return Level(
        variance=prior * left,
        error=mean * left,
        misfit=beta * squares * left,
        d_variance=-prior * rate * left**2,
        d_error=-mean * rate * left**2,
        d_misfit=squares * left**2,
    )


def predictions(
    training: TrainingSets, tests: TestedRows, beta: float, scales: Array, prior_level: float
) -> Predictions:
    """Return the predictions of the tested rows from their training sets."""
    square = training.singular[:, None] ** 2  # (p, 1, r)
    scale = scales[:, None]
    left = 1 / (1 + beta * scale * square)  # (p, k, r)
    slope = scale * (training.singular * training.response)[:, None] * left
    squares = tests.along**2
    level = level_at(beta, training.exposure, training.mean, prior_level)
    responses = training.response[:, None] ** 2
    misfit = (responses * left).sum(axis=2) + training.rest[:, None]
    d_misfit = (responses * left**2).sum(axis=2) + training.rest[:, None]
    variance = left @ squares.swapaxes(1, 2) + tests.across[:, None]
    d_variance = -(left**2 * square) @ squares.swapaxes(1, 2)
    shown = tests.along.swapaxes(1, 2)
    return Predictions(
        as_moments(
            error=tests.response[:, None] - (beta * slope) @ shown + level.error[:, None, None],
            variance=scale * variance + level.variance[:, None, None],
            misfit=beta * misfit + level.misfit[:, None],
            d_error=-(slope * left) @ shown + level.d_error[:, None, None],
            d_variance=scale**2 * d_variance + level.d_variance[:, None, None],
            d_misfit=d_misfit + level.d_misfit[:, None],
            exposure=training.exposure,
            weight=tests.weight,
            rows=tests.rows,
        ),
        -np.log(left).sum(axis=2),
        (scale * square * left).sum(axis=2),
    )


def as_moments(
    error: Array,
    variance: Array,
    misfit: Array,
    d_error: Array,
    d_variance: Array,
    d_misfit: Array,
    exposure: Array,
    weight: Array,
    rows: NDArray[np.intp],
) -> PredictionMoments:
    """Return arrays (p, k, e) and (p, k) at one beta as the moments of p * k pairs."""
    p, k, e = error.shape

    def of_rows(part: Array) -> Array:
        return part.reshape(p * k, e, 1)

    def of_pairs(part: Array) -> Array:
        return part.reshape(p * k, 1)

    def repeated(part: Any) -> Any:
        return np.repeat(part, k, axis=0)

    return PredictionMoments(
        of_rows(error),
        of_rows(variance),
        of_pairs(misfit),
        of_rows(d_error),
        of_rows(d_variance),
        of_pairs(d_misfit),
        repeated(exposure),
        repeated(weight),
        repeated(weight.sum(axis=1)),
        repeated(rows),
    )
