r"""Weighted rows in the basis in which the posteriors of all scales are diagonal.

For rows Z of weights w and kappa = t / s the posterior covariance, in units of the noise, is

    V_kappa = (I / kappa + Z'WZ)^-1,

diagonal in the right singular vectors of W^1/2 Z, and kappa I across them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from temperance.models.linear.rows import CACHED
from temperance.models.linear.triangle import triangle_of_gram
from temperance.types import Array, batches

TALL = 4  # rows to a column from which Gram matrices pay


@dataclass(frozen=True, eq=False)
class Eigenbasis:
    """Singular vectors and values of weighted rows.

    Parameters
    ----------
    left, sigma, directions : arrays of shape (n, rank), (rank,), (k, rank)
        W^1/2 Z = left diag(sigma) directions'.
    weights : array of shape (n,)
    spans_rows : bool
        Whether any response lies in the span: differences would leave rounding there.
    """

    left: Array
    sigma: Array
    directions: Array
    weights: Array
    spans_rows: bool

    @classmethod
    def of(cls, rows: Array, weights: Array) -> Self:
        """Decompose rows (n, k); directions that rounding alone makes are left out."""
        n, k = rows.shape
        scaled = rows if np.all(weights == 1) else np.sqrt(weights)[:, None] * rows
        root = triangle_of_gram(scaled.T @ scaled) if n >= TALL * k else None
        if root is None:
            left, sigma, right = np.linalg.svd(scaled, full_matrices=False)
        else:
            _, sigma, right = np.linalg.svd(root)
        kept = sigma > np.finfo(float).eps * max(n, k) * sigma.max(initial=0.0)
        sigma, directions = sigma[kept], right[kept].T
        left = left[:, kept] if root is None else scaled @ (directions / sigma)
        return cls(left, sigma, directions, weights, n == len(sigma))

    def parts(self, width: int) -> Iterator[tuple[slice, Self]]:
        """Yield rows after rows, as many as stay in a cache with ``width`` columns."""
        for part in batches(len(self.left), max(width, len(self.sigma)), CACHED):
            yield part, replace(self, left=self.left[part], weights=self.weights[part])

    @property
    def lam(self) -> Array:
        """Eigenvalues of Z'WZ."""
        return self.sigma**2

    def project(self, response: Array) -> Array:
        """Return the projections of W^1/2 r on the left vectors, shape (rank,)."""
        return self.left.T @ (np.sqrt(self.weights) * response)

    def outside(self, response: Array, projection: Array) -> Array:
        """Return what of W^1/2 r lies outside, shape (n,)."""
        if self.spans_rows:
            return np.zeros_like(response)
        return np.sqrt(self.weights) * response - self.left @ projection

    def condensed(self, projection: Array, outside: Array) -> Array:
        """Return the fewest rows [Z r] whose second moments are the weighted ones of all."""
        rows = np.zeros((len(self.sigma) + 1, len(self.directions) + 1))
        rows[:-1, :-1] = self.sigma[:, None] * self.directions.T
        rows[:-1, -1], rows[-1, -1] = projection, np.linalg.norm(outside)
        return rows

    def shrinkage(self, kappa: Array) -> Array:
        """Return 1 / (1 + kappa lam), shape (rank, kappas)."""
        return 1 / (1 + np.multiply.outer(self.lam, kappa))

    def leverages(self, kappa: Array) -> tuple[Array, Array]:
        """Return h = w z'V z of all copies of a row, and 1 - h of one copy, both (n, kappas).

        A row of weight k is k rows, each with the k-th part of the leverage.
        """
        shrinkage, square = self.shrinkage(kappa), self.left**2
        across = (
            0.0
            if self.spans_rows
            else np.maximum(1 - square @ np.ones(square.shape[1]), 0.0)[:, None]
        )
        kept = square @ shrinkage
        kept += across  # 1 - h, without cancellation
        if np.any(self.weights > 1):
            single = (np.minimum(self.weights, 1.0) / self.weights)[:, None]
            kept = 1 - single + single * kept
        return square @ (1 - shrinkage), kept

    def variance(self, rows: Array, across: Array, kappa: Array) -> Array:
        """Return z'V z (m, kappas) of rows (m, k) that reach ``across`` beyond the coordinates."""
        inside, outside = self.resolve(rows, across)
        return inside**2 @ (kappa * self.shrinkage(kappa)) + np.multiply.outer(outside, kappa)

    def resolve(self, rows: Array, across: Array) -> tuple[Array, Array]:
        """Coordinates of rows in this basis (m, rank), and the squared length outside it (m,)."""
        inside = rows @ self.directions
        rest = rows - inside @ self.directions.T  # a difference of squares would cancel
        return inside, (rest**2).sum(axis=1) + across**2
