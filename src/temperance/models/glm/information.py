r"""Scores and curvature of any loss of a linear predictor.

A loss with kinks has no second derivative.  It is replaced by its expectation over a Gaussian of
variance h^2 around the predictor, L(u, h^2): of the pinball loss L'' is the kernel estimate of
Powell for the density of the responses, with a Gaussian kernel and, here, Hall and Sheather's
bandwidth.

References
----------
.. [1] J. Powell, Censored regression quantiles, Journal of Econometrics 32, 1986.
.. [2] P. Hall, S. Sheather, On the distribution of a studentized quantile, Journal of the Royal
   Statistical Society B 50, 1988.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from temperance.losses.base import Loss
from temperance.models.information import linear_predictor_information
from temperance.types import Array, Information, NoMinimiserError

BANDWIDTHS = 4  # each from the residuals of the one before
ERROR = 0.05  # of the intervals for which the bandwidth is best


def loss_information(
    loss: Loss, Z: Array, offset: Array, y: Array, weights: Array, prior_root: Array
) -> Information:
    """Return the information of a loss of u = offset + z'theta."""
    centre = np.broadcast_to(loss.typical(y, offset).centre - offset, y.shape)

    def at(bandwidth: float) -> Information:
        variance = np.full(len(y), bandwidth**2)

        def value(u: Array) -> Array:
            if bandwidth == 0:
                return loss.value(offset + u, y)
            return loss.expected(offset + u, variance, y)

        def derivatives(u: Array) -> tuple[Array, Array]:
            if bandwidth == 0:
                return loss.derivatives(offset + u, y)[:2]
            found = loss.partials(offset + u, variance, y)
            return found.mean, found.mean_mean

        return linear_predictor_information(Z, weights, value, derivatives, prior_root, centre)

    if loss.smooth:
        return at(0.0)
    kinks = np.atleast_2d(loss.bends(y)[0])[-1] - offset
    found, fitted = None, np.full(len(y), np.average(kinks, weights=weights))
    for _ in range(BANDWIDTHS):
        found = at(bandwidth_for(kinks - fitted, weights))
        fitted = Z @ found.minimiser
    assert found is not None
    return found


def bandwidth_for(residuals: Array, weights: Array) -> float:
    """Return Hall and Sheather's bandwidth for the density of residuals at 0."""
    n = weights.sum()
    mean = np.average(residuals, weights=weights)
    deviation = np.sqrt(np.average((residuals - mean) ** 2, weights=weights))
    low, high = np.quantile(residuals, [0.25, 0.75], weights=weights, method="inverted_cdf")
    scale = min(deviation, (high - low) / 1.34) or deviation
    if not scale > 0:
        raise NoMinimiserError(
            "y must have a density where the loss bends, got residuals that are all the same; use "
            "Coverage(), which keeps the prior"
        )
    level = float(np.clip(np.average(residuals < 0, weights=weights), 0.5 / n, 1 - 0.5 / n))
    q = special.ndtri(level)
    density = np.exp(-(q**2) / 2) / np.sqrt(2 * np.pi)
    z = special.ndtri(1 - ERROR / 2)
    width = (z**2 * 1.5 * density**2 / (2 * q**2 + 1) / n) ** (1 / 3)
    width = min(width, 0.99 * min(level, 1 - level))
    return float(scale * (special.ndtri(level + width) - special.ndtri(level - width)))
