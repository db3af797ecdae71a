r"""Rows in whitened coordinates, and the axes along which they determine coefficients.

In whitened coordinates the prior is N(0, I), the same along all orthonormal axes.  Matrices
I + Z' diag(c) Z stand columns of any size, since neither Cholesky's method nor a Newton step
depends on units; but of large columns that nearly depend on each other rounding leaves only their
sum.  Turned to the principal axes of these columns the same rows have columns that are orthogonal,
each of its own size.  Columns that do not take part are left as they are, with all their digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from temperance.data import Array
from temperance.linear.engine import row_space
from temperance.losses.base import ExpectedLoss, Resembling

INDEPENDENT = 1e-6  # share of a column's square that the others do not explain
HUGE = 1e200  # information of a row, at most
ROUNDING = 1e-14  # part of the terms of a sum
TAKES_PART = 100.0  # variance inflation of a column beside those that depend on each other


@dataclass(frozen=True, eq=False)
class Rows:
    """What the approximations are fitted to: u = offset + Z theta, responses y, weights (m, n)."""

    Z: Array
    offset: Array
    y: Array
    weights: Array

    def weighted(self, weights: Array) -> Self:
        """Return the same rows under other weights (m, n)."""
        return replace(self, weights=weights)

    def subset(self, which: NDArray[np.bool_], weights: Array) -> Self:
        """Return some of the rows, with weights (m, rows)."""
        return replace(
            self, Z=self.Z[which], offset=self.offset[which], y=self.y[which], weights=weights
        )

    @cached_property
    def squares(self) -> Array:
        """Z^2 elementwise."""
        return self.Z**2

    @cached_property
    def kernel(self) -> Array:
        """Inner products of the rows, (n, n)."""
        return self.Z @ self.Z.T

    @cached_property
    def lengths(self) -> Array:
        """Squared lengths of the rows, (n,)."""
        return np.einsum("nk,nk->n", self.Z, self.Z)

    @cached_property
    def largest(self) -> Array:
        """Largest absolute value of each column, (k,)."""
        return np.maximum(self.Z.max(axis=0, initial=0.0), -self.Z.min(axis=0, initial=0.0))

    def information(self, loss: Resembling) -> float:
        """Largest information of any weighting: that of the typical quadratics, or of the prior.

        A loss that grows faster than a quadratic is more curved under the prior than at its mode.
        """
        if loss not in self._information:
            curvature = loss.typical(self.y, self.offset).curvature
            if isinstance(loss, ExpectedLoss):
                with np.errstate(over="ignore"):
                    prior = loss.forces(self.offset, self.lengths, self.y).curvature
                curvature = np.maximum(curvature, np.nan_to_num(prior, nan=0.0))
            with np.errstate(over="ignore"):
                each = np.minimum(curvature * self.lengths, HUGE)
            self._information[loss] = float((self.weights @ each).max())
        return self._information[loss]

    @cached_property
    def _information(self) -> dict[Resembling, float]:
        return {}

    def coefficient_scale(self, theta: Array) -> Array:
        """Return steps in theta that are small beside the prior and in what they do to u."""
        return (1.0 + np.abs(theta) * self.largest) / (1.0 + self.largest)

    @cached_property
    def axes(self) -> Array | None:
        """Orthonormal axes (k, k) for means where columns nearly depend on each other."""
        if len(self.Z) < self.Z.shape[1]:
            return None
        return principal_axes(self.Z, self.weights.max(axis=0))

    @cached_property
    def turned(self) -> Rows:
        """The same rows along these axes."""
        return self if self.axes is None else replace(self, Z=turned(self.Z, self.axes))

    def along(self, means: Array) -> Array:
        """Return means (m, k) along these axes."""
        return means if self.axes is None else means @ self.axes

    def back(self, along: Array) -> Array:
        """Return means from those along these axes."""
        return along if self.axes is None else along @ self.axes.T


def coordinates(Z: Array, weights: Array, diagonal: bool) -> tuple[Array, Array | None]:
    """Return rows along axes of their span, and the axes if these are others.

    A diagonal covariance is one in the coordinates as they are, and keeps these.
    """
    return (Z, None) if diagonal else spanning_axes(Z, weights)


def spanning_axes(Z: Array, weights: Array) -> tuple[Array, Array | None]:
    """Return coordinates of rows along axes of their span, and the axes if these are others.

    They satisfy ``Z = coordinates @ axes.T``; the axes are orthonormal, at most as many as rows.
    """
    coordinates, basis = row_space(Z)
    axes = principal_axes(coordinates, weights)
    if axes is None:
        return coordinates, basis
    return turned(coordinates, axes), axes if basis is None else basis @ axes


def turned(Z: Array, axes: Array) -> Array:
    """Return rows along axes; columns that are nothing but rounding become zero."""
    along = Z @ axes
    size, terms = np.linalg.norm(along, axis=0), np.linalg.norm(np.abs(Z) @ np.abs(axes), axis=0)
    along[:, size <= ROUNDING * terms] = 0.0
    return along


def principal_axes(Z: Array, weights: Array) -> Array | None:
    """Return orthonormal axes (k, k) along which weighted rows have columns that are independent.

    There are none to return where the columns are so already.

    Parameters
    ----------
    Z : array of shape (n, k)
    weights : array of shape (n,)
    """
    gram = (Z.T * weights) @ Z
    size = np.sqrt(np.diagonal(gram))
    size = np.where(size > 0, size, 1.0)
    cosines = gram / size[:, None] / size
    index = np.arange(len(size))
    cosines[index, index] = 1.0
    triangle, failure = lapack.dpotrf(cosines, clean=False)
    if not failure and np.diagonal(triangle).min(initial=1.0) ** 2 > INDEPENDENT:
        return None
    values, vectors = np.linalg.eigh(cosines)
    inflation = (vectors**2 / np.maximum(values, np.finfo(float).eps)).sum(axis=1)
    part = np.flatnonzero(inflation > TAKES_PART)
    taking = np.sqrt(weights)[:, None] * Z[:, part]
    axes = np.eye(len(size))
    axes[np.ix_(part, part)] = np.linalg.svd(np.linalg.qr(taking, mode="r"))[2].T
    return axes
