r"""A weak prior for an unknown noise variance."""

from __future__ import annotations

import numpy as np

from temperance.data import Array
from temperance.linear.engine import LinearRows, Noise, decompose
from temperance.models import NormalInverseGammaLinear

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
    spread = float(weights @ y**2 / weights.sum()) or 1.0
    used = slice(None) if weights.all() else weights > 0
    whole = LinearRows(rows[used], y[used], False, Noise(), np.ones(1))
    fits, _ = decompose(whole, weights[used])
    singular = fits.singular[0]
    rank = int(np.sum(singular > singular.max(initial=0.0) * max(rows.shape) * 1e-15))
    freedom = float(weights.sum()) - rank
    if freedom < LEAST_FREEDOM:
        return spread / 2
    # If the fit is perfect, the residual is rounding error.
    return max(float(fits.rest[0]) / freedom, 1e-12 * spread)
