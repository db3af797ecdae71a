r"""The second moment of a new row, from the rows that were seen."""

from __future__ import annotations

import numpy as np

from temperance.types import Array


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
    square = share @ Z**2
    X = Z / np.sqrt(np.where(square > 0, square, 1.0))
    scaled = np.sqrt(share)[:, None] * X
    # |X'X| = |XX'|, whichever is smaller; the sums over all pairs, less those with i = j.
    products = scaled @ scaled.T if len(X) < X.shape[1] else scaled.T @ scaled
    squares = float((products**2).sum() - ((share @ X**2) ** 2).sum())
    fourths = float(share @ (X**2).sum(axis=1) ** 2 - (share @ X**4).sum())
    if squares <= np.finfo(float).eps * X.shape[1] ** 2:
        return 0.0
    return float(np.clip((fourths - squares) / (weights.sum() * squares), 0.0, 1.0))
