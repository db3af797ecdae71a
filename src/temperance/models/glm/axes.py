r"""Axes along which rows tell coefficients apart.

In whitened coordinates the prior is the same along all orthonormal axes.  Matrices I + Z' diag(c) Z
bear columns of any size, since neither Cholesky's method nor a Newton step depends on units; but of
columns that nearly depend on each other, large ones, rounding leaves only their sum.  Turned to
the principal axes of these columns the same rows have columns that are orthogonal, each of its own
size.  Columns that do not take part are left alone, with all their digits.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from temperance.models.linear_predictor import row_space
from temperance.types import Array

TOLD_APART = 1e-6  # share of a column's square that the others do not explain
ROUNDING = 1e-14  # part of the terms of a sum
TAKES_PART = 100.0  # variance inflation of a column beside those that depend on each other


def spanning_axes(Z: Array, weights: Array) -> tuple[Array, Array | None]:
    """Return coordinates of rows along axes of their span, told apart, and the axes if others.

    They satisfy ``Z = coordinates @ axes.T``; the axes are orthonormal, at most as many as rows.
    """
    coordinates, basis = row_space(Z)
    axes = principal_axes(coordinates, weights)
    if axes is None:
        return coordinates, basis
    return turned(coordinates, axes), axes if basis is None else basis @ axes


def turned(Z: Array, axes: Array) -> Array:
    """Return rows along axes; where all is rounding, it is zero."""
    along = Z @ axes
    size, terms = np.linalg.norm(along, axis=0), np.linalg.norm(np.abs(Z) @ np.abs(axes), axis=0)
    along[:, size <= ROUNDING * terms] = 0.0
    return along


def principal_axes(Z: Array, weights: Array) -> Array | None:
    """Return orthonormal axes (k, k) that tell the columns of weighted rows apart, if they do not.

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
    if not failure and np.diagonal(triangle).min(initial=1.0) ** 2 > TOLD_APART:
        return None
    values, vectors = np.linalg.eigh(cosines)
    inflation = (vectors**2 / np.maximum(values, np.finfo(float).eps)).sum(axis=1)
    part = np.flatnonzero(inflation > TAKES_PART)
    taking = np.sqrt(weights)[:, None] * Z[:, part]
    axes = np.eye(len(size))
    axes[np.ix_(part, part)] = np.linalg.svd(np.linalg.qr(taking, mode="r"))[2].T
    return axes
