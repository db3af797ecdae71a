r"""A weak prior for an unknown noise variance."""

from __future__ import annotations

import numpy as np

from temperance.data import Array
from temperance.models import NormalInverseGammaLinear
from temperance.models.linear.grams import triangle
from temperance.models.linear_predictor import row_space

# The prior has the weight of a fifth of an observation.
SHAPE = 0.1
LEAST_FREEDOM = 5


def weak_noise_model(
    rows: Array, y: Array, weights: Array, prior_variance: float
) -> NormalInverseGammaLinear:
    r"""Return a model whose coefficients have about this prior variance for any noise variance.

    The conjugate prior, theta | s2 ~ N(0, s2 S_0), is in units of the noise.  With S_0 =
    prior_variance / s2_hat it has the requested variance if s2 is near s2_hat, a first estimate
    from the data.  Otherwise a strong signal would be shrunk, and the noise overestimated.
    """
    noise = guessed_noise_variance(rows, y, weights)
    return NormalInverseGammaLinear(a=SHAPE, b=SHAPE * noise, prior_cov=prior_variance / noise)


def guessed_noise_variance(rows: Array, y: Array, weights: Array) -> float:
    r"""Return the residual variance of least squares; for few rows half the mean square of y."""
    spread = float(np.average(y**2, weights=weights)) or 1.0
    coordinates, _ = row_space(rows)
    both = np.column_stack([coordinates, y])
    both *= np.sqrt(weights)[:, None]
    # A triangle with the same second moments replaces the rows.
    few = triangle(both)
    U, singular, _ = np.linalg.svd(few[:, :-1], full_matrices=False)
    rank = int(np.sum(singular > singular.max() * max(rows.shape) * 1e-15))
    freedom = float(weights.sum()) - rank
    if freedom < LEAST_FREEDOM:
        return spread / 2
    residual = few[:, -1] - U[:, :rank] @ (U[:, :rank].T @ few[:, -1])
    # If the fit is perfect, the residual is rounding error.
    return max(float(residual @ residual) / freedom, 1e-12 * spread)
