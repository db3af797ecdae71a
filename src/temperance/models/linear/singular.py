r"""Singular value decompositions that are exact to rounding in every column and every row.

Rounding errors of the usual decomposition are as large as those of the longest column: beside a
column of 1e18 one of ones is not seen at all.  Where columns or rows differ that much in length,
Jacobi's method takes its place: its errors are relative to each of them.

References
----------
.. [1] Z. Drmač, K. Veselić, New fast and accurate Jacobi SVD algorithm, SIAM Journal on Matrix
   Analysis and Applications 29, 2008.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from temperance.types import Array

ALIKE = 1e2  # ratio of lengths up to which the usual decomposition serves: errors of 1e-14
TALL = 2  # rows to a column from which a triangle stands for them
ANY_SCALES, VECTORS, AS_IT_IS = 2, 0, 0  # options of LAPACK's dgejsv
EPSILON = float(np.finfo(float).eps)
FAR, SAFELY = 1e-10, 30.0  # shares of the largest in a column that may be lost; times rounding
NEGLIGIBLE = 1e-6  # singular value of which only a beta of 1e12 would learn
NOTHING = 1e-80  # singular value of which no beta within the limits would learn


def alike(rows: Array) -> bool:
    """Whether columns have much the same length, and rows as well, but for those of zeros."""
    return not any(_differ(np.linalg.norm(rows, axis=axis)) for axis in (-2, -1))


def by_length(rows: Array) -> NDArray[np.intp] | None:
    """Return an order in which triangles of rows (..., n, k) are exact in every row, if needed."""
    lengths = np.abs(rows).max(axis=-1)
    return np.argsort(-lengths, axis=-1, kind="stable") if _differ(lengths) else None


def _differ(lengths: Array) -> bool:
    longest = lengths.max(initial=0.0)
    return bool(longest > ALIKE * lengths.min(initial=longest, where=lengths > 0))


def singular_values(rows: Array) -> tuple[Array, Array, Array]:
    """Return A, sigma and U' with rows (n, k) = A diag(sigma) U', or of a stack of such rows.

    Of A and U there are as many vectors as the smaller of n and k.  A sigma that rounding alone
    makes is zero, and so is one whose square no beta would bring to matter.
    """
    if alike(rows):
        left, sigma, right = np.linalg.svd(rows, full_matrices=False)
        noise = EPSILON * max(rows.shape[-2:]) * sigma.max(axis=-1, keepdims=True, initial=0.0)
        return left, np.where(sigma > np.maximum(noise, NOTHING), sigma, 0.0), right
    if rows.ndim == 3:
        parts = zip(*(singular_values(each) for each in rows), strict=True)
        left, sigma, right = (np.stack(part) for part in parts)
        return left, sigma, right
    n, k = rows.shape
    if n > TALL * k:
        order = by_length(rows)
        places = slice(None) if order is None else order
        basis, triangle = np.linalg.qr(rows[places])
        left, sigma, right = _by_jacobi(triangle)
        found = np.empty((n, k))
        found[places] = basis @ left
        return found, sigma, right
    return _by_jacobi(rows)


def outside(left: Array, response: Array, projection: Array) -> Array:
    """Return what of a response (..., n) lies outside the orthonormal columns of A (..., n, k).

    The projection A'r is taken out, and once more what rounding of a huge response leaves of it.
    """
    rest = response[..., None] - left @ projection[..., None]
    return (rest - left @ (left.swapaxes(-1, -2) @ rest))[..., 0]


def short_rows_are_lost(rows: Array) -> bool:
    """Whether a direction that whitened rows (n, k) tell is taken for rounding of far longer rows.

    Triangles and decompositions above know rounding by column; the elements' own is less where a
    row is longer than others in every column that it has.
    """
    size = np.abs(rows)
    lowest = size.min(axis=0, initial=np.inf, where=size > 0)
    if np.all(lowest >= FAR * size.max(axis=0, initial=0.0)):
        return False
    left, sigma, right = _jacobi(rows)
    own = EPSILON * np.einsum("ij,ij->j", np.abs(left), size @ np.abs(right.T))
    noise = SAFELY * _column_noise(rows, right)
    told = sigma > np.maximum(SAFELY * max(rows.shape) * own, NEGLIGIBLE)
    return bool(np.any(told & (sigma < noise)))


def _by_jacobi(rows: Array) -> tuple[Array, Array, Array]:
    left, sigma, right = _jacobi(rows)
    least = np.maximum(_column_noise(rows, right), NOTHING)
    return left, np.where(sigma > least, sigma, 0.0), right


def _column_noise(rows: Array, right: Array) -> Array:
    """Return what rounding of columns can make of directions: it is as long as they are there."""
    lengths = np.linalg.norm(rows, axis=0)
    return EPSILON * max(rows.shape) * np.linalg.norm(right * lengths, axis=1)


def _jacobi(rows: Array) -> tuple[Array, Array, Array]:
    n, k = rows.shape
    padded = np.zeros((max(n, k), k), order="F")
    padded[:n] = rows
    sigma, left, right, work, _, info = lapack.dgejsv(
        padded, ANY_SCALES, VECTORS, VECTORS, AS_IT_IS, AS_IT_IS, AS_IT_IS, overwrite_a=1
    )
    if info:
        raise ValueError("X must have columns and rows that differ less in length")
    few = min(n, k)
    return left[:n, :few], sigma[:few] * (work[0] / work[1]), right[:, :few].T
