r"""New rows: their second moment and their noise, from the rows that were seen."""

from __future__ import annotations

import numpy as np

from temperance.models.linear.rows import CACHED
from temperance.strategies.reference.deletions import Deletions
from temperance.strategies.reference.row_basis import mean_squares, second_moments
from temperance.strategies.reference.scales import Scales
from temperance.strategies.reference.seen import Seen
from temperance.types import Array, batches

LONG = 256  # elements of a row that make light of a loop over rows


def shrinkage_intensity(Z: Array, weights: Array, moments: Array | None = None) -> float:
    r"""How far the off-diagonal second moments should be shrunk to zero, from 0 to 1.

    .. math::

        \rho = \sum_{i \ne j} \mathrm{Var}(c_{ij}) / \sum_{i \ne j} c_{ij}^2, \qquad
        c_{ij} = \overline{x_i x_j},

    with the columns x scaled to mean square 1 and the variance of a mean estimated from the rows.
    The mean products of the columns of Z may be given where they are known.

    References
    ----------
    .. [1] O. Ledoit, M. Wolf, A well-conditioned estimator for large-dimensional covariance
       matrices, Journal of Multivariate Analysis 88, 2004.
    .. [2] J. Schäfer, K. Strimmer, A shrinkage approach to large-scale covariance matrix
       estimation, Statistical Applications in Genetics and Molecular Biology 4, 2005.
    """
    share = weights / weights.sum()
    n, d = Z.shape
    if d <= n:
        products = second_moments(Z, share) if moments is None else moments
        square = np.diag(products)
    else:
        square = mean_squares(Z, share)
    unit = np.sqrt(np.where(square > 0, square, 1.0))
    if d <= n:
        correlations = products / unit / unit[:, None]
        # A difference would leave the rounding of columns that are orthogonal.
        np.fill_diagonal(correlations, 0.0)
        squares = float((correlations**2).sum())
    else:
        # |X'X| = |XX'|, less those with i = j.
        X = np.sqrt(share)[:, None] * (Z / unit)
        squares = float(((X @ X.T) ** 2).sum()) - np.count_nonzero(square)
    if squares <= np.finfo(float).eps * d**2:
        return 0.0
    fourths = _mean_fourths(Z, share, 1 / unit**2)
    return float(np.clip((fourths - squares) / (weights.sum() * squares), 0.0, 1.0))


def _mean_fourths(Z: Array, share: Array, scale: Array) -> float:
    """Mean of sum_{i != j} x_i^2 x_j^2 with x^2 = z^2 times the scale of the column."""
    (n, d), total = Z.shape, 0.0
    ones, most, root = np.ones(d), max(1, CACHED // d), np.sqrt(share)
    alike = bool(np.all(root == root[0]))
    if alike:
        scale = root[0] * scale
    # Rows of few columns are scaled several at a time.
    together = max(1, min(most, LONG // d))
    scales = np.tile(scale, together)
    for part in batches(n, 1, most - most % together):
        squares = np.square(Z[part], order="C")
        whole = len(squares) - len(squares) % together
        squares[:whole].reshape(-1, len(scales))[...] *= scales
        squares[whole:] *= scale
        if not alike:
            squares *= root[part, None]
        lengths = squares @ ones
        total += float(lengths @ lengths - np.vdot(squares, squares))
    return total


def left_out_intensity(seen: Array, along: Array, left_out: Array) -> float:
    r"""How far second moments should be shrunk for the variances of rows that were left out.

    .. math::

        \rho = \arg\min_\rho \sum_\kappa
            \bigl[(1 - \rho)\, v_\kappa + \rho\, a_\kappa - l_\kappa\bigr]^2,
            \qquad 0 \le \rho \le 1

    Parameters
    ----------
    seen, along, left_out : arrays of shape (kappas,)
        Mean variances v, a, l of the predictor: at the rows that were seen, at rows along the axes,
        and at rows under the posterior of the others.
    """
    gap, wanted = along - seen, left_out - seen
    if gap @ gap <= np.finfo(float).eps * (seen @ seen):
        return 1.0  # the axes are no other than the rows: nothing speaks against them
    return float(np.clip(gap @ wanted / (gap @ gap), 0.0, 1.0))


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
