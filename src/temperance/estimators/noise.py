r"""A weak prior for a noise variance that is not known."""

from __future__ import annotations

import numpy as np

from temperance.models import NormalInverseGammaLinear
from temperance.models.linear.fast.grams import triangle
from temperance.models.linear_predictor import row_space
from temperance.types import Array

# The prior counts as much as a fifth of an observation.
SHAPE = 0.1
LEAST_FREEDOM = 5


def weak_noise_model(
    rows: Array, y: Array, weights: Array, prior_variance: float
) -> NormalInverseGammaLinear:
    r"""Return the model whose coefficients have about this prior variance, whatever the noise is.

    The conjugate prior, theta | s2 ~ N(0, s2 S_0), is in units of the noise.  With S_0 =
    prior_variance / s2_hat it is the asked one where s2 is near s2_hat, a first guess from the
    data.  Otherwise a strong signal would be shrunk, and the noise taken for larger than it is.
    """
    noise = guessed_noise_variance(rows, y, weights)
    return NormalInverseGammaLinear(a=SHAPE, b=SHAPE * noise, prior_cov=prior_variance / noise)


def guessed_noise_variance(rows: Array, y: Array, weights: Array) -> float:
    r"""Residual variance of least squares, or half of the mean square of y where rows are few."""
    spread = float(np.average(y**2, weights=weights)) or 1.0
    coordinates, _ = row_space(rows)
    both = np.column_stack([coordinates, y])
    both *= np.sqrt(weights)[:, None]
    # Rows and responses turned into few that have the same products.
    few = triangle(both)
    U, singular, _ = np.linalg.svd(few[:, :-1], full_matrices=False)
    rank = int(np.sum(singular > singular.max() * max(rows.shape) * 1e-15))
    freedom = float(weights.sum()) - rank
    if freedom < LEAST_FREEDOM:
        return spread / 2
    residual = few[:, -1] - U[:, :rank] @ (U[:, :rank].T @ few[:, -1])
    # Where the fit is perfect, what is left is rounding.
    return max(float(residual @ residual) / freedom, 1e-12 * spread)
