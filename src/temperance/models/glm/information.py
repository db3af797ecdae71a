r"""Information of any loss of a linear predictor; see :mod:`temperance.models.information`.

A loss with kinks has no curvature but at them.  Its mean over new rows has one: the density of the
predictors at the kinks times the jump of the derivative.  With a kernel K_h,

    J = sum_i w_i [l''(u_i) + sum_k jump_ik K_h(u_i - kink_ik)] z_i z_i' / sum_i w_i,

for pinball losses Powell's estimate, with the bandwidth of Hall and Sheather.

References
----------
.. [1] J. Powell, Estimation of monotonic regression models under quantile restrictions, in
   Nonparametric and Semiparametric Methods in Econometrics and Statistics, 1991.
.. [2] P. Hall, S. Sheather, On the distribution of a studentized quantile, JRSS B 50, 1988.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from temperance.data import Array, Data
from temperance.losses.base import Loss
from temperance.models.glm.nuisance import minimising_predictor
from temperance.models.glm.units import in_units
from temperance.models.information import linear_predictor_information, orthonormal
from temperance.protocols import Information, NoCurvatureError, NoMinimiserError

NARROW = 1e3  # beta, in units of the loss, at which a Gaussian hardly smooths it
FEWEST_BEYOND = 5  # rows on either side of a kink, beside one for each column
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
    if (close := rows_beyond(loss, u, data)) < len(theta) + FEWEST_BEYOND:
        raise NoCurvatureError(
            f"X and y must leave at least {len(theta) + FEWEST_BEYOND} rows on either side of each "
            f"kink of the {loss.name} for an estimate of its curvature, got {close:.3g}; use "
            "Coverage(), which needs none",
            theta,
        )
    second = kernel_curvature(loss, u, data)
    curvature = (Z.T * (share * second)) @ Z
    if not np.linalg.eigvalsh((Q.T * (share * second)) @ Q)[0] > 0:
        raise NoCurvatureError(
            f"y must leave rows near the kink of the {loss.name} for an estimate of its curvature, "
            "got too few; use Coverage(), which needs none",
            theta,
        )
    scores, roots = loss.derivatives(u, data.y)[0][:, None] * Z, np.sqrt(second)[:, None] * Z
    return Information(theta, scores, curvature, prior_root, roots)


def kinks_of(loss: Loss, y: Array) -> Array:
    """Return the places at which derivatives jump, (kinks, n)."""
    places, widths = (np.atleast_2d(each) for each in loss.bends(y))
    return places[(widths == 0).all(axis=1)]


def rows_beyond(loss: Loss, u: Array, data: Data) -> float:
    """Return the weight of rows on the side of a kink on which there are fewest."""
    above = (u > kinks_of(loss, data.y)) @ data.weights
    return float(np.minimum(above, data.size - above).min())


def kernel_curvature(loss: Loss, u: Array, data: Data) -> Array:
    """Return the curvature of each row: its own, and that which a kernel estimates at kinks."""
    total = loss.derivatives(u, data.y)[1]
    for kink in kinks_of(loss, data.y):
        total = total + jump(loss, kink, data.y) * kernel(u - kink, loss, data)
    return total


def jump(loss: Loss, kink: Array, y: Array) -> Array:
    """Return the jumps of the derivatives at kinks, (n,)."""
    step = STEP * loss.unit(y)
    after, before = (loss.derivatives(kink + move, y)[0] for move in (step, -step))
    return after - before


def kernel(distance: Array, loss: Loss, data: Data) -> Array:
    """Return Epanechnikov's kernel at the distances of rows from a kink, (n,)."""
    above = float(np.average(distance > 0, weights=data.weights))
    width = bandwidth(distance, data.weights, float(np.clip(above, 0.05, 0.95)))
    if not width > STEP * loss.unit(data.y):
        raise NoMinimiserError(
            "y must have a density where the loss bends, got residuals that are all the same; use "
            "Coverage(), which keeps the prior"
        )
    return 0.75 * np.maximum(1 - (distance / width) ** 2, 0.0) / width


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
