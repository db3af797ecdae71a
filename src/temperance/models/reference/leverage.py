r"""What rows say by their leverage: of noise that grows with it, and of rows yet to come."""

from __future__ import annotations

import numpy as np

from temperance.models.reference.eigenbasis import Eigenbasis
from temperance.models.reference.scales import Scales
from temperance.models.reference.second_moment import left_out_intensity, shrinkage_intensity
from temperance.types import Array

LEAST_RATIO = 1e-8
# Scales at which new rows are compared with those left out: that of the prior, and beyond.
COMPARED = np.array([0.1, 1.0, 10.0])


def noise_at_leverage(
    basis: Eigenbasis, projection: Array, outside: Array, scales: Scales
) -> tuple[float, Array]:
    r"""How much larger than on average the noise is where rows have leverage, and that at each row.

    .. math::

        \varphi = \exp \sum_\kappa w_\kappa \log \frac{\sum_i h_i u_i}{\sum_i h_i s_\kappa}, \qquad
        u_i = \frac{(r_i - z_i'm_\kappa)^2}{1 - h_i},

    with h the leverages at kappa.  Where the variance of the noise grows with the leverage of the
    rows, the coefficients are less certain than a constant variance says.  At a row the noise is
    :math:`\sum_\kappa w_\kappa u_i`.

    Parameters
    ----------
    basis : Eigenbasis
    projection, outside : arrays of shape (rank,) and (n,)
        Of the responses; see :class:`Eigenbasis`.
    scales : Scales
    """
    kappa = scales.kappa
    above, below = np.zeros(len(kappa)), np.zeros(len(kappa))
    row_noise = np.empty(len(outside))
    for some, part in basis.parts(len(kappa)):
        square, leverage = studentised_squares(part, projection, outside[some], kappa)
        above += np.einsum("ig,ig->g", square, leverage)
        below += np.ones(len(leverage)) @ leverage
        row_noise[some] = square @ scales.weight
    below *= scales.noise
    ratio = np.divide(above, below, out=np.ones_like(below), where=below > 0)
    phi = np.exp(scales.weight @ np.log(np.maximum(ratio, LEAST_RATIO)))
    return float(phi), row_noise


def studentised_squares(
    basis: Eigenbasis, projection: Array, outside: Array, kappa: Array
) -> tuple[Array, Array]:
    r"""Squared residuals over what leverage leaves of them, and the leverages, (n, kappas) each.

    .. math:: (r_i - z_i'm_\kappa)^2 / (1 - h_i)

    The leverages are those of all copies of a row together; its residual is that of one copy.
    """
    error = basis.left @ (projection[:, None] * basis.shrinkage(kappa))
    error += outside[:, None]
    leverage, kept = basis.leverages(kappa)
    error *= error
    if np.any(basis.weights != 1):
        error /= basis.weights[:, None]
    if kept.min(initial=np.inf) > 0:
        error /= kept
        return error, leverage
    return np.divide(error, kept, out=np.zeros_like(error), where=kept > 0), leverage


def careful_intensity(Z: Array, basis: Eigenbasis, axes: Array, beyond: Array) -> float:
    r"""Ledoit and Wolf's intensity, or less if rows that were left out want less.

    Under the posterior of the others a row has the variance :math:`z_i'V_{-i} z_i = v_i / (1 -
    h_i)`, where :math:`v_i = z_i'V z_i` and h is its leverage: on average what a new row has.

    Parameters
    ----------
    Z : array of shape (n, d)
        Rows, not whitened.
    basis : Eigenbasis
        Of the whitened rows.
    axes, beyond : arrays of shape (d, k) and (d,)
        Rows along the axes, and how far they reach beyond the coordinates.
    """
    counts = basis.weights
    seen, left_out = np.zeros(len(COMPARED)), np.zeros(len(COMPARED))
    for _, part in basis.parts(len(COMPARED)):
        leverage, kept = part.leverages(COMPARED)  # of all copies: count times variance
        seen += leverage.sum(axis=0)
        left_out += np.divide(leverage, kept, out=leverage.copy(), where=kept > 0).sum(axis=0)
    along = basis.variance(axes, beyond, COMPARED).mean(axis=0)
    wanted = left_out_intensity(seen / counts.sum(), along, left_out / counts.sum())
    return min(wanted, shrinkage_intensity(Z, counts))
