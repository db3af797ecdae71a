r"""Free parameters of a loss, fitted together with the coefficients by maximum likelihood.

    (theta, s) = argmin sum_i w_i l_s(o_i + z_i'theta, y_i),

one after the other until s stays where it is.  The prior has no part in it but for a weak one that
decides where the rows do not.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from temperance.data import Array, Data
from temperance.losses.base import Loss
from temperance.models.glm.full_covariance import FullCovariance
from temperance.models.glm.laplace import Laplace
from temperance.models.glm.newton import solve
from temperance.models.glm.rows import Rows, spanning_axes
from temperance.models.glm.units import in_units

MOST_ROUNDS = 50
SETTLED = 1e-8  # relative change of the predictors
EXACT = 1e-6  # of the range of y: residuals that count as none
WEAK = 1e6  # prior standard deviation of a predictor, in units of the loss

AnyLoss = TypeVar("AnyLoss", bound=Loss)


def fitted_to_rows(loss: AnyLoss, Z: Array, offset: Array, data: Data) -> AnyLoss:
    """Return the loss with its free parameter fitted to rows Z with an offset."""
    u = least_squares_predictor(loss, Z, offset, data)
    for _ in range(MOST_ROUNDS):
        refuse_exact_fits(loss, u, data)
        fitted = loss.fitted(u, data.y, data.weights)
        before, u = u, minimising_predictor(fitted, Z, offset, data)
        if np.abs(u - before).max() <= SETTLED * (fitted.unit(data.y) + np.abs(u).max()):
            break
    refuse_exact_fits(loss, u, data)
    return fitted


def refuse_exact_fits(loss: Loss, u: Array, data: Data) -> None:
    """Refuse responses most of which are fitted exactly: the likelihood grows without a bound."""
    if not loss.location:
        return
    close = np.abs(data.y - u) <= EXACT * max(float(np.ptp(data.y)), EXACT)
    if data.weights[close].sum() > 0.5 * data.size:
        raise ValueError(
            f"y must leave residuals from which the scale of the {loss.name} can be found, got "
            f"{close.sum()} of {len(data)} rows fitted exactly; use a loss of "
            "temperance.losses with a scale, or loss='squared'"
        )


def least_squares_predictor(loss: Loss, Z: Array, offset: Array, data: Data) -> Array:
    """Return the predictors of the quadratics that resemble the losses of rows."""
    centre, curvature = loss.typical(data.y, offset)
    root = np.sqrt(data.weights * curvature)
    found = np.linalg.lstsq(root[:, None] * Z, root * (centre - offset), rcond=None)[0]
    return offset + Z @ found


def minimising_predictor(
    loss: Loss, Z: Array, offset: Array, data: Data, beta: float = 1.0
) -> Array:
    """Return the predictors of the coefficients of least loss, with hardly any prior.

    A loss with kinks is smoothed by a Gaussian, the less so the larger beta is, in units of the
    loss.
    """
    unit = loss.unit(data.y)
    size = np.sqrt((Z**2).mean()) or 1.0
    along, _ = spanning_axes(Z * (WEAK / size), data.weights)
    rows = Rows(along, offset / unit, data.y, data.weights[None])
    kind = Laplace if loss.smooth else FullCovariance
    system = kind(in_units(loss, unit)).system(rows)
    beta /= float(np.mean(loss.typical(data.y, offset).curvature)) * unit**2
    mean = system.gaussian(solve(system, beta).x, beta)[0][0]
    return unit * (rows.offset + along @ mean)
