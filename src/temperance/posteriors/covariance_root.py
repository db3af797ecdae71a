r"""Square roots A of covariances S = A A', without forming large matrices.

A is a matrix or a diagonal.  From n rows with d > n columns it is the root C of the prior's
covariance, changed in n directions; the matrix itself is not formed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.data import Array, batches, refuse_too_large


@dataclass(frozen=True, eq=False)
class CovarianceRoot:
    r"""A = C.

    Parameters
    ----------
    outer : C, array of shape (d, d), or (d,) if it is diagonal

    Examples
    --------
    >>> import numpy as np
    >>> CovarianceRoot(np.array([1.0, 2.0])).product()
    array([[1., 0.],
           [0., 4.]])
    """

    outer: Array

    def dense(self) -> Array:
        """Return A, shape (d, d); an error if it does not fit into memory."""
        self._refuse_too_large()
        return np.diag(self.outer) if self.outer.ndim == 1 else self.outer

    def product(self) -> Array:
        """Return S = A A', shape (d, d); an error if it does not fit into memory."""
        self._refuse_too_large()
        return np.diag(self.outer**2) if self.outer.ndim == 1 else self.outer @ self.outer.T

    def transform(self, standard: Array) -> Array:
        """Return A u for each row u of ``standard`` (m, d), shape (m, d)."""
        return standard * self.outer if self.outer.ndim == 1 else standard @ self.outer.T

    def squared_lengths(self, Z: Array) -> Array:
        """Return |A'z|^2 = z'S z for each row z of ``Z`` (m, d), shape (m,)."""
        rows = Z * self.outer if self.outer.ndim == 1 else Z @ self.outer
        return (rows**2).sum(axis=1)

    def squared_distances(self, deviations: Array) -> Array:
        """Return |A^-1 v|^2 = v'S^-1 v for each row v of ``deviations`` (m, d), shape (m,)."""
        return (self._solved(deviations) ** 2).sum(axis=1)

    def variances(self) -> Array:
        """Return the diagonal of S, shape (d,)."""
        return self.outer**2 if self.outer.ndim == 1 else (self.outer**2).sum(axis=1)

    @property
    def log_determinant(self) -> float:
        """Return the logarithm of |det A|."""
        if self.outer.ndim == 1:
            return float(np.log(self.outer).sum())
        return float(np.linalg.slogdet(self.outer)[1])

    def decided_by_data(self, prior: Array) -> float:
        r"""Return d - tr(S_0^-1 S), where ``prior`` is the root of S_0."""
        ratio: Array
        if self.outer.ndim == 1 and prior.ndim == 1:
            ratio = self.outer / prior
        elif prior.ndim == 1:
            ratio = self.dense() / prior[:, None]
        else:
            ratio = np.linalg.solve(prior, self.dense())
        return len(self.outer) - float((ratio**2).sum())

    def _solved(self, deviations: Array) -> Array:
        """Return C^-1 v for each row v."""
        if self.outer.ndim == 1:
            return deviations / self.outer
        return np.linalg.solve(self.outer, deviations.T).T

    def _refuse_too_large(self) -> None:
        d = len(self.outer)
        # Three times the matrix, for temporaries.
        refuse_too_large(f"the covariance of {d} coefficients", 3.0 * d * d)


@dataclass(frozen=True, eq=False)
class LowRankRoot(CovarianceRoot):
    r"""A = C M with M = I - D diag(1 - r) D'.

    If C is diagonal, only ``dense`` and ``product`` need more than O(n d) memory for n directions.

    Parameters
    ----------
    outer : C, array of shape (d, d), or (d,) if it is diagonal
    directions : D, array of shape (d, n) with orthonormal columns
    shrinkage : r, array of shape (n,): ratios of posterior to prior standard deviation along D

    Examples
    --------
    >>> import numpy as np
    >>> LowRankRoot(np.array([1.0, 2.0]), np.array([[0.0], [1.0]]), np.array([0.5])).product()
    array([[1., 0.],
           [0., 1.]])
    """

    directions: Array
    shrinkage: Array

    def dense(self) -> Array:
        """Return A, shape (d, d); an error if it does not fit into memory."""
        self._refuse_too_large()
        return super().transform(self._inner(self.shrinkage)).T

    def product(self) -> Array:
        """Return S = A A', shape (d, d); an error if it does not fit into memory."""
        self._refuse_too_large()
        half = super().transform(self._inner(self.shrinkage**2))
        return super().transform(half.T)

    def transform(self, standard: Array) -> Array:
        """Return A u for each row u of ``standard`` (m, d), shape (m, d)."""
        along = (standard @ self.directions) * (self.shrinkage - 1)
        return super().transform(standard + along @ self.directions.T)

    def squared_lengths(self, Z: Array) -> Array:
        """Return |A'z|^2 = z'S z for each row z of ``Z`` (m, d), shape (m,)."""
        rows = Z * self.outer if self.outer.ndim == 1 else Z @ self.outer
        return self._lengths(rows, self.shrinkage)

    def squared_distances(self, deviations: Array) -> Array:
        """Return |A^-1 v|^2 = v'S^-1 v for each row v of ``deviations`` (m, d), shape (m,)."""
        return self._lengths(self._solved(deviations), 1 / self.shrinkage)

    def variances(self) -> Array:
        """Return the diagonal of S, shape (d,)."""
        if self.outer.ndim > 1:
            return self._lengths(self.outer, self.shrinkage)
        inside = self.directions**2 @ self.shrinkage**2
        return self.outer**2 * (inside + squares_across(self.directions))

    @property
    def log_determinant(self) -> float:
        """Return the logarithm of |det A|."""
        return super().log_determinant + float(np.log(self.shrinkage).sum())

    def decided_by_data(self, prior: Array) -> float:
        r"""Return d - tr(S_0^-1 S), where C is the root of S_0."""
        return float((1 - self.shrinkage**2).sum())

    def _lengths(self, rows: Array, factors: Array) -> Array:
        """Return |(I - D diag(1 - factors) D') u|^2 for each row u."""
        along = rows @ self.directions
        across = rows - along @ self.directions.T
        return (across**2).sum(axis=1) + ((along * factors) ** 2).sum(axis=1)

    def _inner(self, factors: Array) -> Array:
        """Return I - D diag(1 - factors) D', shape (d, d)."""
        inner = (self.directions * (factors - 1)) @ self.directions.T
        inner[np.diag_indices(len(inner))] += 1
        return inner


def squares_across(directions: Array) -> Array:
    r"""Return |(I - D D')e_j|^2 for each axis e_j, shape (d,), of orthonormal columns D (d, n)."""
    lengths = 1 - (directions**2).sum(axis=1)
    # The |D'e_j|^2 add up to n, so the difference cancels for fewer than 2n axes.
    (cancelling,) = np.nonzero(lengths < 0.5)
    for part in batches(len(cancelling), len(directions)):
        axes = cancelling[part]
        across = directions[axes] @ directions.T
        across[np.arange(len(axes)), axes] -= 1
        lengths[axes] = (across**2).sum(axis=1)
    return lengths


def low_rank_root(outer: Array, basis: Array, inner: Array) -> LowRankRoot:
    """Return C (I - B B' + B R B'), up to a rotation, of a basis B (d, n) and a root R (n, n).

    The directions are the eigenvectors of R R': they mix all rows, while those of B may be sparse.
    """
    axes, shrinkage, _ = np.linalg.svd(inner)
    return LowRankRoot(outer, basis @ axes, shrinkage)
