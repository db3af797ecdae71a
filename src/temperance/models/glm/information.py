r"""Information of any loss of a linear predictor; see :mod:`temperance.models.information`.

A loss with kinks has no curvature but at them.  Its mean over new rows has one: the density of the
predictors at the kinks times the jump of the derivative.  With a kernel K_h,

    J = sum_i w_i jump_i K_h(u_i - kink_i) z_i z_i' / sum_i w_i,

Powell's estimate for quantile regression, with the bandwidth of Hall and Sheather.  The minimiser
is that of the loss itself, but for a much narrower smoothing: at this bandwidth it would be biased.

References
----------
.. [1] J. Powell, Estimation of monotonic regression models under quantile restrictions, in
   Nonparametric and Semiparametric Methods in Econometrics and Statistics, 1991.
.. [2] P. Hall, S. Sheather, On the distribution of a studentized quantile, JRSS B 50, 1988.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from temperance.losses.base import Loss
from temperance.models.glm.nuisance import minimising_predictor
from temperance.models.glm.units import in_units
from temperance.models.information import linear_predictor_information, orthonormal
from temperance.types import Array, Data, Information, NoMinimiserError

NARROW = 1e3  # beta, in units of the loss, at which a Gaussian hardly smooths it
ERROR = 0.05  # of the intervals for which the bandwidth is best
STEP = 1e-6  # of the predictor on either side of a kink, in units of the loss


def loss_information(
    loss: Loss, Z: Array, offset: Array, data: Data, prior_root: Array
) -> Information:
    """Return the information of a loss of u = offset + z'theta."""
    if not loss.smooth:
        return kinked_information(loss, Z, offset, data, prior_root)
    unit = loss.unit(data.y)
    scaled, shift = in_units(loss, unit), offset / unit
    centre = np.broadcast_to(scaled.typical(data.y, shift).centre - shift, data.y.shape)
    return linear_predictor_information(
        Z / unit,
        data.weights,
        lambda u: scaled.value(shift + u, data.y),
        lambda u: scaled.derivatives(shift + u, data.y)[:2],
        prior_root,
        centre,
    )


def kinked_information(
    loss: Loss, Z: Array, offset: Array, data: Data, prior_root: Array
) -> Information:
    """Return the information of a loss with kinks."""
    Q, R, scale = orthonormal(Z, data.weights)
    share = data.weights / data.weights.sum()
    u = minimising_predictor(loss, Z, offset, data, NARROW)
    theta = np.linalg.solve(R, Q.T @ (share * (u - offset))) / scale
    curvature = (Z.T * (share * kernel_curvature(loss, u, data))) @ Z
    size = np.sqrt(np.diagonal(curvature))
    if not (size > 0).all() or np.linalg.eigvalsh(curvature / size[:, None] / size)[0] < 1e-12:
        raise NoMinimiserError(
            f"y must leave rows near the kink of the {loss.name} for an estimate of its curvature, "
            "got too few; use Coverage(), which needs none"
        )
    return Information(theta, loss.derivatives(u, data.y)[0][:, None] * Z, curvature, prior_root)


def kernel_curvature(loss: Loss, u: Array, data: Data) -> Array:
    """Return the curvature of each row that a kernel estimates, (n,)."""
    kinks, step = np.atleast_2d(loss.bends(data.y)[0])[-1], STEP * loss.unit(data.y)
    after, before = (loss.derivatives(kinks + move, data.y)[0] for move in (step, -step))
    width = bandwidth_for(u - kinks, data.weights)
    # Epanechnikov's kernel.
    kernel = 0.75 * np.maximum(1 - ((u - kinks) / width) ** 2, 0.0) / width
    return (after - before) * kernel


def bandwidth_for(residuals: Array, weights: Array) -> float:
    """Return Hall and Sheather's bandwidth for the density of residuals at 0."""
    n = weights.sum()
    mean = np.average(residuals, weights=weights)
    deviation = np.sqrt(np.average((residuals - mean) ** 2, weights=weights))
    order = np.argsort(residuals)
    below = (np.cumsum(weights[order]) - weights[order] / 2) / n
    low, high = np.interp([0.25, 0.75], below, residuals[order])
    scale = min(deviation, (high - low) / 1.34) or deviation
    if not scale > 0:
        raise NoMinimiserError(
            "y must have a density where the loss bends, got residuals that are all the same; use "
            "Coverage(), which keeps the prior"
        )
    level = float(np.clip(np.average(residuals < 0, weights=weights), 0.5 / n, 1 - 0.5 / n))
    q = ndtri(level)
    density = np.exp(-(q**2) / 2) / np.sqrt(2 * np.pi)
    z = ndtri(1 - ERROR / 2)
    width = (z**2 * 1.5 * density**2 / (2 * q**2 + 1) / n) ** (1 / 3)
    width = min(width, 0.99 * min(level, 1 - level))
    return float(scale * (ndtri(level + width) - ndtri(level - width)))
