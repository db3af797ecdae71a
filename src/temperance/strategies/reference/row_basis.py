r"""Weighted rows in the basis in which the posterior covariances of all scales are diagonal.

For rows Z of weights w and kappa = t / s the posterior covariance, in units of the noise, is

    V_kappa = (I / kappa + Z'WZ)^-1,

which is diagonal in the right singular vectors of W^1/2 Z, and kappa I orthogonal to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from temperance.data import Array, batches
from temperance.models.linear.grams import triangle_of_gram
from temperance.models.linear.rows import CACHED, MANY_ELEMENTS
from temperance.models.linear.singular import singular_values

TALL = 4  # rows per column from which Gram matrices are faster


@dataclass(frozen=True, eq=False)
class RowBasis:
    """Singular vectors and values of weighted rows.

    Parameters
    ----------
    inputs : array of shape (n, k)
    rotation : array of shape (k, rank), or None
        Matrix that maps inputs to left singular vectors divided by the roots of the weights:
        W^1/2 Z = left diag(sigma) directions', left = W^1/2 inputs rotation.  None if the inputs
        are the left vectors.
    sigma, directions : arrays of shape (rank,), (k, rank)
    weights : array of shape (n,)
    """

    inputs: Array
    rotation: Array | None
    sigma: Array
    directions: Array
    weights: Array

    @classmethod
    def of(cls, rows: Array, weights: Array, gram: Array | None = None) -> Self:
        """Decompose rows (n, k); directions with singular values at rounding level are dropped.

        ``gram`` are the weighted second moments, if they are known.
        """
        n, k = rows.shape
        if n < TALL * k or rows.size <= MANY_ELEMENTS:
            root = None
        else:
            moments = (rows.T * weights) @ rows if gram is None else gram
            root = triangle_of_gram(moments)
        if root is None:
            left, sigma, right = singular_values(np.sqrt(weights)[:, None] * rows)
        else:
            _, sigma, right = singular_values(root)
        kept = sigma > 0
        sigma, directions = sigma[kept], right[kept].T
        if root is None:
            return cls(left[:, kept], None, sigma, directions, weights)
        return cls(rows, directions / sigma, sigma, directions, weights)

    def parts(self, width: int) -> Iterator[tuple[slice, Array]]:
        """Yield left vectors (rank, rows) in batches that fit into a cache with ``width`` more.

        Rows are contiguous in memory, so that operations run over many of them at a time.
        """
        for part in batches(len(self.inputs), len(self.sigma) + width, CACHED):
            if self.rotation is None:
                yield part, self.inputs[part].T
                continue
            left = self.rotation.T @ self.inputs[part].T
            if self.weighted:
                left *= np.sqrt(self.weights[part])
            yield part, left

    @cached_property
    def weighted(self) -> bool:
        """Whether some weights differ from 1."""
        return bool(np.any(self.weights != 1))

    @property
    def spans_rows(self) -> bool:
        """Whether the rows have full rank n, so that no response has a residual."""
        return len(self.inputs) == len(self.sigma)

    @property
    def lam(self) -> Array:
        """Eigenvalues of Z'WZ."""
        return self.sigma**2

    def project(self, response: Array) -> Array:
        """Return the projections of W^1/2 r on the left vectors, shape (rank,)."""
        if self.rotation is None:
            return self.inputs.T @ (np.sqrt(self.weights) * response)
        return ((self.weights * response) @ self.inputs) @ self.rotation

    def residual_of(self, response: Array, projection: Array) -> Array:
        """Return the part of W^1/2 r outside the span, shape (n,)."""
        if self.spans_rows:
            return np.zeros_like(response)
        if self.rotation is None:
            return np.sqrt(self.weights) * response - self.inputs @ projection
        return np.sqrt(self.weights) * (response - self.inputs @ (self.rotation @ projection))

    def condensed(self, projection: Array, remainder: float) -> Array:
        """Return the fewest rows [Z r] with the weighted second moments of all rows."""
        rows = np.zeros((len(self.sigma) + 1, len(self.directions) + 1))
        rows[:-1, :-1] = self.sigma[:, None] * self.directions.T
        rows[:-1, -1], rows[-1, -1] = projection, np.sqrt(remainder)
        return rows

    def shrinkage(self, kappa: Array) -> Array:
        """Return 1 / (1 + kappa lam), shape (kappas, rank)."""
        return 1 / (1 + np.multiply.outer(kappa, self.lam))

    def total_leverage(self, kappa: Array) -> Array:
        """Return the total leverage of all rows, sum_j kappa lam_j / (1 + kappa lam_j)."""
        return kappa * (self.shrinkage(kappa) @ self.lam)

    def variance(self, rows: Array, across: Array, kappa: Array) -> Array:
        """Return z'V z (m, kappas) of rows (m, k) with length ``across`` outside."""
        inside, outside = self.resolve(rows, across)
        return inside**2 @ (kappa[:, None] * self.shrinkage(kappa)).T + np.multiply.outer(
            outside, kappa
        )

    def resolve(self, rows: Array, across: Array) -> tuple[Array, Array]:
        """Return coordinates of rows in this basis (m, rank), and squared lengths outside (m,)."""
        inside = rows @ self.directions
        rest = rows - inside @ self.directions.T  # a difference of squares would cancel
        return inside, (rest**2).sum(axis=1) + across**2


def mean_squares(Z: Array, share: Array) -> Array:
    """Return the mean square of each column, weighted by shares that sum to 1."""
    n, d = Z.shape
    squares = np.zeros(d)
    for part in batches(n, d, CACHED):
        squares += share[part] @ Z[part] ** 2
    return squares


def second_moments(Z: Array, share: Array) -> Array:
    """Return the mean products of the columns (d, d), weighted by shares that sum to 1."""
    n, d = Z.shape
    products = np.zeros((d, d))
    for part in batches(n, d, CACHED):
        scaled = np.sqrt(share[part])[:, None] * Z[part]
        products += scaled.T @ scaled
    return products
