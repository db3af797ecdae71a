r"""The second moment of a new row, from the rows that were seen."""

from __future__ import annotations

import numpy as np

from temperance.models.linear.rows import CACHED
from temperance.types import Array, batches


def mean_squares(Z: Array, share: Array) -> Array:
    """Mean square of each column, the rows weighed by shares that sum to 1."""
    n, d = Z.shape
    squares = np.zeros(d)
    for part in batches(n, d, CACHED):
        squares += share[part] @ Z[part] ** 2
    return squares


def shrinkage_intensity(Z: Array, weights: Array) -> float:
    r"""How far the off-diagonal second moments should be shrunk to zero, from 0 to 1.

    .. math::

        \rho = \sum_{i \ne j} \mathrm{Var}(c_{ij}) / \sum_{i \ne j} c_{ij}^2, \qquad
        c_{ij} = \overline{x_i x_j},

    with the columns x scaled to mean square 1 and the variance of a mean estimated from the rows.

    References
    ----------
    .. [1] O. Ledoit, M. Wolf, A well-conditioned estimator for large-dimensional covariance
       matrices, Journal of Multivariate Analysis 88, 2004.
    .. [2] J. Schäfer, K. Strimmer, A shrinkage approach to large-scale covariance matrix
       estimation, Statistical Applications in Genetics and Molecular Biology 4, 2005.
    """
    share = weights / weights.sum()
    n, d = Z.shape
    square = mean_squares(Z, share)
    unit = np.sqrt(np.where(square > 0, square, 1.0))
    products, fourths, ones = np.zeros((d, d) if d <= n else (n, n)), 0.0, np.ones(d)
    # Sums over all pairs, less those with i = j; |X'X| = |XX'|, whichever is smaller.
    for part in batches(n, d, CACHED if d <= n else Z.size):
        X = np.sqrt(share[part])[:, None] * (Z[part] / unit)
        products += X.T @ X if d <= n else X @ X.T
        squared = X * X
        rest = (squared @ ones) ** 2 - np.einsum("ij,ij->i", squared, squared)
        fourths += float(rest @ (1 / share[part]))
    if d <= n:
        # A difference would leave the rounding of columns that are orthogonal.
        np.fill_diagonal(products, 0.0)
        squares = float((products**2).sum())
    else:
        squares = float((products**2).sum()) - np.count_nonzero(square)
    if squares <= np.finfo(float).eps * d**2:
        return 0.0
    return float(np.clip((fourths - squares) / (weights.sum() * squares), 0.0, 1.0))


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
