r"""Information of any loss of a linear predictor; see :mod:`temperance.models.information`.

A loss with kinks has no curvature but at them.  Its mean over new rows has one: the density of the
predictors at the kinks times the jump of the derivative.  With a kernel K_h,

    J = sum_i w_i jump_i K_h(u_i - kink_i) z_i z_i' / sum_i w_i,

Powell's estimate for quantile regression, with the bandwidth of Hall and Sheather.

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
LEVEL = 0.05  # of the intervals for which the bandwidth is best
STEP = 1e-6  # of the predictor on either side of a kink, in units of the loss


def loss_information(
    loss: Loss, Z: Array, offset: Array, data: Data, prior_root: Array
) -> Information:
    """Return the information of a loss of offset + Z theta."""
    if not loss.smooth:
        return kinked_information(loss, Z, offset, data, prior_root)
    unit = loss.unit(data.y)
    scaled, shift = in_units(loss, unit), offset / unit
    centre = np.broadcast_to(scaled.typical(data.y, shift).centre - shift, data.y.shape)
    return linear_predictor_information(
        Z / unit,
        data.weights,
        lambda u: scaled.value(u + shift, data.y),
        lambda u: scaled.derivatives(u + shift, data.y)[:2],
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
    second = kernel_curvature(loss, u, data)
    curvature = (Z.T * (share * second)) @ Z
    if not np.linalg.eigvalsh(curvature)[0] > 0:
        raise NoMinimiserError(
            f"y must leave rows near the kink of the {loss.name} for an estimate of its curvature, "
            "got too few; use Coverage(), which needs none"
        )
    scores, roots = loss.derivatives(u, data.y)[0][:, None] * Z, np.sqrt(second)[:, None] * Z
    return Information(theta, scores, curvature, prior_root, roots)


def kernel_curvature(loss: Loss, u: Array, data: Data) -> Array:
    """Return the curvature of each row that a kernel estimates, (n,)."""
    kinks, unit = np.atleast_2d(loss.bends(data.y)[0])[-1], loss.unit(data.y)
    step = STEP * unit
    after, before = (loss.derivatives(kinks + move, data.y)[0] for move in (step, -step))
    distance = u - kinks
    share = float(np.average(distance > 0, weights=data.weights))
    width = bandwidth(distance, data.weights, float(np.clip(share, 0.05, 0.95)))
    if not width > STEP * unit:
        raise NoMinimiserError(
            "y must have a density where the loss bends, got residuals that are all the same; use "
            "Coverage(), which keeps the prior"
        )
    # Epanechnikov's kernel.
    kernel = 0.75 * np.maximum(1 - (distance / width) ** 2, 0.0) / width
    return (after - before) * kernel


def bandwidth(distance: Array, weights: Array, q: float) -> float:
    """Return the bandwidth of Hall and Sheather for the density at the quantile q."""
    n, z = float(weights.sum()), float(ndtri(q))
    density = np.exp(-(z**2)) / (2 * np.pi)
    h = n ** (-1 / 3) * float(ndtri(1 - LEVEL / 2)) ** (2 / 3)
    h *= (1.5 * density / (2 * z**2 + 1)) ** (1 / 3)
    h = min(h, 0.99 * min(q, 1 - q))
    middle = np.average(distance, weights=weights)
    std = float(np.sqrt(np.average((distance - middle) ** 2, weights=weights)))
    order = np.argsort(distance)
    below = np.cumsum(weights[order]) / n
    quartiles = np.interp([0.25, 0.75], below, distance[order])
    spread = min(std, float(np.diff(quartiles)[0]) / 1.34) or std
    return spread * float(ndtri(q + h) - ndtri(q - h))
