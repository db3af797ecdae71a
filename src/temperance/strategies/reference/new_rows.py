r"""Second moment and noise of new rows, estimated from the observed rows."""

from __future__ import annotations

import numpy as np

from temperance.data import Array, batches
from temperance.models.linear.rows import CACHED
from temperance.strategies.reference.deletions import Deletions
from temperance.strategies.reference.row_basis import mean_squares, second_moments
from temperance.strategies.reference.scales import Scales
from temperance.strategies.reference.seen import ObservedRows

LONG = 256  # elements per operation for which the overhead of a loop is small


def shrinkage_intensity(Z: Array, weights: Array, moments: Array | None = None) -> float:
    r"""Return the factor, from 0 to 1, by which off-diagonal second moments are shrunk to zero.

    .. math::

        \rho = \sum_{i \ne j} \mathrm{Var}(c_{ij}) / \sum_{i \ne j} c_{ij}^2, \qquad
        c_{ij} = \overline{x_i x_j},

    with the columns x scaled to mean square 1 and the variance of a mean estimated from the rows.
    ``moments`` are the mean products of the columns of Z, if they are known.

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
        # Set, not subtracted: a difference would leave rounding errors for orthogonal columns.
        np.fill_diagonal(correlations, 0.0)
        squares = float((correlations**2).sum())
    else:
        # |X'X| = |XX'|, minus the terms with i = j.
        X = np.sqrt(share)[:, None] * (Z / unit)
        squares = float(((X @ X.T) ** 2).sum()) - np.count_nonzero(square)
    if squares <= np.finfo(float).eps * d**2:
        return 0.0
    fourths = _mean_fourths(Z, share, 1 / unit**2)
    return float(np.clip((fourths - squares) / (weights.sum() * squares), 0.0, 1.0))


def _mean_fourths(Z: Array, share: Array, scale: Array) -> float:
    """Return the mean of sum_{i != j} x_i^2 x_j^2 with x^2 = z^2 times the column's scale."""
    (n, d), total = Z.shape, 0.0
    ones, most, root = np.ones(d), max(1, CACHED // d), np.sqrt(share)
    equal = bool(np.all(root == root[0]))
    if equal:
        scale = root[0] * scale
    # Several short rows are scaled in one operation.
    rows_at_once = max(1, min(most, LONG // d))
    scales = np.tile(scale, rows_at_once)
    for part in batches(n, 1, most - most % rows_at_once):
        squares = np.square(Z[part], order="C")
        whole = len(squares) - len(squares) % rows_at_once
        squares[:whole].reshape(-1, len(scales))[...] *= scales
        squares[whole:] *= scale
        if not equal:
            squares *= root[part, None]
        lengths = squares @ ones
        total += float(lengths @ lengths - np.vdot(squares, squares))
    return total


def left_out_intensity(observed: Array, along: Array, left_out: Array) -> float:
    r"""Return the shrinkage that fits the predictive variances of left-out rows best.

    .. math::

        \rho = \arg\min_\rho \sum_\kappa
            \bigl[(1 - \rho)\, v_\kappa + \rho\, a_\kappa - l_\kappa\bigr]^2,
            \qquad 0 \le \rho \le 1

    Parameters
    ----------
    observed, along, left_out : arrays of shape (kappas,)
        Mean variances v, a, l of the predictor: at the observed rows, at rows along the axes, and
        at rows under the posterior of the others.
    """
    gap, target = along - observed, left_out - observed
    if gap @ gap <= np.finfo(float).eps * (observed @ observed):
        return 1.0  # both second moments are equal
    return float(np.clip(gap @ target / (gap @ gap), 0.0, 1.0))


LEAST_RATIO = 1e-8
# Values of kappa at which new rows are compared with left-out rows, around the prior's own.
COMPARED = np.array([0.1, 1.0, 10.0])


def deletions_for(observed: ObservedRows, scales: Scales) -> Deletions:
    """Return the deletions at the likely scales and at those compared."""
    both = np.concatenate([scales.kappa, COMPARED])
    return Deletions(observed, float(both.min()), float(both.max()), len(both))


def noise_at_leverage(deletions: Deletions, scales: Scales) -> float:
    r"""Return the ratio of the noise variance at rows of high leverage to the mean noise variance.

    .. math::

        \varphi = \exp \sum_\kappa w_\kappa \log \frac{\sum_i h_i u_i}{\sum_i h_i s_\kappa}, \qquad
        u_i = \frac{(r_i - z_i'm_\kappa)^2}{1 - h_i},

    with h the leverages at kappa.  If the noise variance grows with the leverage, the coefficients
    are less certain than a constant variance implies.
    """
    if not len(deletions.observed.basis.sigma):
        return 1.0
    square, _ = deletions.means(scales.kappa)
    ratio = np.divide(square, scales.noise, out=np.ones_like(square), where=scales.noise > 0)
    return float(np.exp(scales.weight @ np.log(np.maximum(ratio, LEAST_RATIO))))


def careful_intensity(deletions: Deletions, axes: Array, outside: Array) -> float:
    r"""Return Ledoit and Wolf's intensity, or a smaller one if left-out rows suggest it.

    Under the posterior of the others a row has the variance :math:`z_i'V_{-i} z_i = v_i / (1 -
    h_i)`, where :math:`v_i = z_i'V z_i` and h is its leverage: the average equals that of new rows.

    Parameters
    ----------
    deletions : Deletions
    axes, outside : arrays of shape (d, k) and (d,)
        Rows along the axes, and the lengths of their parts outside the coordinates.
    """
    plain, basis = plain_intensity(deletions, axes, outside), deletions.observed.basis
    if not len(basis.sigma):
        return plain
    # The total leverage is the sum of count times variance.
    observed = basis.total_leverage(COMPARED) / deletions.observed.counts.sum()
    left_out = deletions.means(COMPARED)[1] * observed
    along = basis.variance(axes, outside, COMPARED).mean(axis=0)
    return min(left_out_intensity(observed, along, left_out), plain)


def plain_intensity(deletions: Deletions, axes: Array, outside: Array) -> float:
    """Return Ledoit and Wolf's intensity, without a look at left-out rows."""
    observed = deletions.observed
    return shrinkage_intensity(observed.Z, observed.counts, observed.second_moments)
