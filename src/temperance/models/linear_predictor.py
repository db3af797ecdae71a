r"""Common parts of models with a linear predictor z'theta: rows from inputs, a Gaussian prior.

The prior N(mu_0, S_0) has a root C, S_0 = C C': in the coordinates u of theta = mu_0 + C u it is
standard normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import as_inputs, as_numbers, refuse_non_finite
from temperance.data import Array, Data
from temperance.posteriors.covariance_root import CovarianceRoot, low_rank_root


@dataclass(frozen=True, eq=False)
class GaussianPrior:
    r"""N(mean, C C') with the root C, a vector (d,) when diagonal or a matrix (d, d)."""

    mean: Array
    root: Array

    def whiten(self, X: Array) -> Array:
        r"""Return the rows X C; their coefficients u in theta = mu_0 + C u are standard normal."""
        if self.root.ndim == 1:
            return X if np.all(self.root == 1) else X * self.root
        return X @ self.root

    def rows(self, part: slice) -> Array:
        """Return some rows of C, shape (rows, d)."""
        if self.root.ndim > 1:
            return self.root[part]
        places = np.arange(len(self.root))[part]
        rows = np.zeros((len(places), len(self.root)))
        rows[np.arange(len(places)), places] = self.root[part]
        return rows

    def unwhiten(self, directions: Array) -> Array:
        r"""Return C u for columns u."""
        return (self.root * directions.T).T if self.root.ndim == 1 else self.root @ directions

    def posterior_root(self, root: Array, basis: Array | None = None) -> CovarianceRoot:
        r"""Return the root of the covariance of theta = mu_0 + C u, given a root of that of u.

        That root is (d, d), or a diagonal (d,).  With an orthonormal basis (d, k) it is (k, k), for
        the coordinates of u in the span; orthogonal to the span the posterior is the prior.
        """
        if basis is None:
            return CovarianceRoot(self.unwhiten(root))
        if len(basis) == basis.shape[1]:
            return CovarianceRoot(self.unwhiten(basis @ root))
        return low_rank_root(self.root, basis, root)


def gaussian_prior(mean: ArrayLike, cov: ArrayLike | None, dimension: int) -> GaussianPrior:
    """Return the prior of a mean (scalar, vector) and a covariance (scalar, variances, matrix)."""
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
    # Rounding errors are relative to the standard deviations, not to each covariance.
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


class Regression:
    """Base of models with a linear predictor: rows z from inputs, the prior of the coefficients."""

    prior_mean: ArrayLike
    prior_cov: ArrayLike | None

    def design(self, X: ArrayLike) -> Array:
        """Return the rows of inputs, after checking them."""
        return self.features(as_inputs(X))

    def features(self, inputs: Array) -> Array:
        """Return the rows of valid inputs; add a column of ones for an intercept."""
        if inputs.shape[1] == 0:
            raise ValueError("X must have at least one column, got 0 (None is for GaussianMean)")
        return inputs

    def prior(self, dimension: int) -> GaussianPrior:
        """Return the prior of ``dimension`` coefficients."""
        return gaussian_prior(self.prior_mean, self.prior_cov, dimension)

    def check(self, data: Data) -> None:
        """Refuse inputs that do not fit the design or the prior."""
        self.prior(self.features(data.X).shape[1])
