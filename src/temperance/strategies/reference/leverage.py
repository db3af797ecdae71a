r"""What rows say by their leverage: of noise that grows with it, and of rows yet to come."""

from __future__ import annotations

import numpy as np

from temperance.strategies.reference.deletions import Deletions
from temperance.strategies.reference.scales import Scales
from temperance.strategies.reference.second_moment import left_out_intensity, shrinkage_intensity
from temperance.strategies.reference.seen import Seen
from temperance.types import Array

LEAST_RATIO = 1e-8
# Scales at which new rows are compared with those left out: that of the prior, and beyond.
COMPARED = np.array([0.1, 1.0, 10.0])


def deletions_for(seen: Seen, scales: Scales) -> Deletions:
    """Delete rows at the scales that are likely and at those that are compared."""
    both = np.concatenate([scales.kappa, COMPARED])
    return Deletions(seen, float(both.min()), float(both.max()), len(both))


def noise_at_leverage(deletions: Deletions, scales: Scales) -> float:
    r"""How much larger than on average the noise is where rows have leverage.

    .. math::

        \varphi = \exp \sum_\kappa w_\kappa \log \frac{\sum_i h_i u_i}{\sum_i h_i s_\kappa}, \qquad
        u_i = \frac{(r_i - z_i'm_\kappa)^2}{1 - h_i},

    with h the leverages at kappa.  Where the variance of the noise grows with the leverage of the
    rows, the coefficients are less certain than a constant variance says.
    """
    if not len(deletions.seen.basis.sigma):
        return 1.0
    square, _ = deletions.means(scales.kappa)
    ratio = np.divide(square, scales.noise, out=np.ones_like(square), where=scales.noise > 0)
    return float(np.exp(scales.weight @ np.log(np.maximum(ratio, LEAST_RATIO))))


def careful_intensity(deletions: Deletions, axes: Array, beyond: Array) -> float:
    r"""Ledoit and Wolf's intensity, or less if rows that were left out want less.

    Under the posterior of the others a row has the variance :math:`z_i'V_{-i} z_i = v_i / (1 -
    h_i)`, where :math:`v_i = z_i'V z_i` and h is its leverage: on average what a new row has.

    Parameters
    ----------
    deletions : Deletions
    axes, beyond : arrays of shape (d, k) and (d,)
        Rows along the axes, and how far they reach beyond the coordinates.
    """
    plain, basis = plain_intensity(deletions, axes, beyond), deletions.seen.basis
    if not len(basis.sigma):
        return plain
    # Of all copies: count times variance.
    seen = basis.total_leverage(COMPARED) / deletions.seen.counts.sum()
    left_out = deletions.means(COMPARED)[1] * seen
    along = basis.variance(axes, beyond, COMPARED).mean(axis=0)
    return min(left_out_intensity(seen, along, left_out), plain)


def plain_intensity(deletions: Deletions, axes: Array, beyond: Array) -> float:
    """Ledoit and Wolf's intensity, whatever rows that were left out want."""
    seen = deletions.seen
    return shrinkage_intensity(seen.Z, seen.counts, seen.moments)
