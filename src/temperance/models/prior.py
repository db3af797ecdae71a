r"""The Gaussian prior N(mu_0, S_0) and the coordinates in which it is standard normal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from temperance.models.linear.singular import by_length
from temperance.posteriors.covariance_root import CovarianceRoot, low_rank_root
from temperance.types import Array
from temperance.validation import as_numbers, refuse_non_finite


@dataclass(frozen=True, eq=False)
class GaussianPrior:
    r"""N(mean, C C') with the root C, a vector (d,) when diagonal or a matrix (d, d)."""

    mean: Array
    root: Array

    def whiten(self, X: Array) -> Array:
        r"""Rows X C, whose coefficients u in theta = mu_0 + C u are standard normal."""
        if self.root.ndim == 1:
            return X if np.all(self.root == 1) else X * self.root
        return X @ self.root

    def graded(self, Z: Array) -> GaussianPrior:
        """Return the same prior with a root for which Z C has long and short columns as Z has.

        In the order of the columns of Z, the longest first, it is a lower triangle: the longest has
        a part in one column of Z C alone, beside which the others would be rounding.
        """
        if self.root.ndim == 1:
            return self
        lengths = np.abs(Z).max(axis=0, initial=0.0) * np.linalg.norm(self.root, axis=1)
        order = by_length(lengths[:, None])
        if order is None:
            return self
        root = np.empty(self.root.shape)
        root[order] = np.asarray(np.linalg.qr(self.root[order].T, mode="r")).T
        return GaussianPrior(self.mean, root)

    def rows(self, part: slice) -> Array:
        """Return some rows of C, shape (rows, d)."""
        if self.root.ndim > 1:
            return self.root[part]
        places = np.arange(len(self.root))[part]
        rows = np.zeros((len(places), len(self.root)))
        rows[np.arange(len(places)), places] = self.root[part]
        return rows

    def unwhiten(self, directions: Array) -> Array:
        r"""Map columns u to C u."""
        return (self.root * directions.T).T if self.root.ndim == 1 else self.root @ directions

    def posterior_root(self, root: Array, basis: Array | None = None) -> CovarianceRoot:
        r"""Root of the covariance of theta = mu_0 + C u from that of u, (d, d) or a diagonal (d,).

        With an orthonormal basis (d, k) it is that of the coordinates of u in its span, (k, k);
        across the span a posterior is the prior.
        """
        if basis is None:
            return CovarianceRoot(self.unwhiten(root))
        if len(basis) == basis.shape[1]:
            return CovarianceRoot(self.unwhiten(basis @ root))
        return low_rank_root(self.root, basis, root)


def gaussian_prior(mean: ArrayLike, cov: ArrayLike | None, dimension: int) -> GaussianPrior:
    """Build the prior from a mean (scalar, vector) and a covariance (scalar, variances, matrix)."""
    location, spread = as_numbers("prior_mean", mean), as_numbers("prior_cov", cov)
    if location.shape not in ((), (dimension,)):
        raise ValueError(
            f"prior_mean must be a scalar or have shape ({dimension},), got shape {location.shape}"
        )
    refuse_non_finite("prior_mean", location)
    if spread.shape not in ((), (dimension,), (dimension, dimension)):
        raise ValueError(
            f"prior_cov must be a scalar or have shape ({dimension},) or "
            f"({dimension}, {dimension}), got shape {spread.shape}"
        )
    refuse_non_finite("prior_cov", spread)
    return GaussianPrior(np.full(dimension, location), _root(spread, dimension))


def _root(spread: Array, dimension: int) -> Array:
    if spread.ndim < 2:
        if spread.min(initial=np.inf) <= 0:
            raise ValueError(f"prior_cov must be positive, got {float(spread.min())!r}")
        return np.full(dimension, np.sqrt(spread))
    gap, scale = np.abs(spread - spread.T), np.sqrt(np.abs(np.diag(spread)))
    # Rounding is relative to the standard deviations: a covariance near zero is all rounding.
    if np.any(gap > 1e-10 * np.outer(scale, scale)):
        worst = float(gap.max())
        raise ValueError(f"prior_cov must be symmetric, it differs from its transpose by {worst!r}")
    try:
        return np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        smallest = float(np.linalg.eigvalsh(spread)[0])
        raise ValueError(
            f"prior_cov must be positive definite, its smallest eigenvalue is {smallest!r}"
        ) from None


def row_space(rows: Array) -> tuple[Array, Array | None]:
    r"""Coordinates of the rows in their own span when they are fewer than their dimension.

    Returns ``(coordinates, basis)`` with ``rows = coordinates @ basis.T``; the basis is ``None``
    when the rows are kept as they are.  What the data say about u lies in that span; across it a
    posterior with a standard normal prior is the prior.
    """
    if rows.shape[1] <= rows.shape[0]:
        return rows, None
    basis, triangle = np.linalg.qr(rows.T)
    return triangle.T, basis
