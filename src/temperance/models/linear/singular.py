r"""Singular value decompositions that are accurate in every column and every row.

The standard algorithm has rounding errors relative to the longest column: beside a column of 1e18
a column of ones is lost.  Where the lengths of columns or rows differ that much, the Jacobi method
is used: its errors are relative to each column and row.

References
----------
.. [1] Z. Drmač, K. Veselić, New fast and accurate Jacobi SVD algorithm, SIAM Journal on Matrix
   Analysis and Applications 29, 2008.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from temperance.data import Array

SIMILAR = 1e2  # ratio of lengths up to which the standard algorithm is used: errors of 1e-14
TALL = 2  # rows per column from which a QR decomposition comes first
ANY_SCALES, VECTORS, DEFAULT = 2, 0, 0  # options of LAPACK's dgejsv
EPSILON = float(np.finfo(float).eps)
SMALL_SHARE = 1e-10  # of the largest entry of a column: smaller entries may be lost to rounding
ROUNDING_FACTOR = 30.0  # safety factor on estimated rounding errors
NEGLIGIBLE = 1e-6  # a singular value this small matters only from beta = 1e12 on
NO_EFFECT = 1e-80  # a singular value this small has no effect at any beta within the limits


def similar_lengths(rows: Array) -> bool:
    """Return whether nonzero columns have similar lengths, and nonzero rows as well."""
    return not any(_dissimilar(np.linalg.norm(rows, axis=axis)) for axis in (-2, -1))


def by_length(rows: Array) -> NDArray[np.intp] | None:
    """Return an order of rows (..., n, k) in which QR is accurate in every row; None for any."""
    lengths = np.abs(rows).max(axis=-1)
    return np.argsort(-lengths, axis=-1, kind="stable") if _dissimilar(lengths) else None


def _dissimilar(lengths: Array) -> bool:
    longest = lengths.max(initial=0.0)
    return bool(longest > SIMILAR * lengths.min(initial=longest, where=lengths > 0))


def singular_values(rows: Array) -> tuple[Array, Array, Array]:
    """Return A, sigma and U' with rows (n, k) = A diag(sigma) U', or of a stack of such rows.

    A and U have as many vectors as the smaller of n and k.  Singular values that are no larger than
    rounding errors, or too small to have an effect at any beta, are set to zero.
    """
    if similar_lengths(rows):
        left, sigma, right = np.linalg.svd(rows, full_matrices=False)
        noise = EPSILON * max(rows.shape[-2:]) * sigma.max(axis=-1, keepdims=True, initial=0.0)
        return left, np.where(sigma > np.maximum(noise, NO_EFFECT), sigma, 0.0), right
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
    """Return the part of a response (..., n) outside the orthonormal columns of A (..., n, k).

    The projection A'r is subtracted twice: the second time removes the rounding error of the first.
    """
    rest = response[..., None] - left @ projection[..., None]
    return (rest - left @ (left.swapaxes(-1, -2) @ rest))[..., 0]


def short_rows_are_lost(rows: Array) -> bool:
    """Return whether the cutoff for rounding hides a direction that whitened rows (n, k) determine.

    The cutoff of the decompositions above is relative to the columns.  The true rounding error is
    smaller where a row is longer than the others in all of its columns.
    """
    size = np.abs(rows)
    lowest = size.min(axis=0, initial=np.inf, where=size > 0)
    if np.all(lowest >= SMALL_SHARE * size.max(axis=0, initial=0.0)):
        return False
    left, sigma, right = _jacobi(rows)
    own = EPSILON * np.einsum("ij,ij->j", np.abs(left), size @ np.abs(right.T))
    noise = ROUNDING_FACTOR * _column_noise(rows, right)
    determined = sigma > np.maximum(ROUNDING_FACTOR * max(rows.shape) * own, NEGLIGIBLE)
    return bool(np.any(determined & (sigma < noise)))


def _by_jacobi(rows: Array) -> tuple[Array, Array, Array]:
    left, sigma, right = _jacobi(rows)
    least = np.maximum(_column_noise(rows, right), NO_EFFECT)
    return left, np.where(sigma > least, sigma, 0.0), right


def _column_noise(rows: Array, right: Array) -> Array:
    """Return bounds on the rounding errors of the singular values, from the column lengths."""
    lengths = np.linalg.norm(rows, axis=0)
    return EPSILON * max(rows.shape) * np.linalg.norm(right * lengths, axis=1)


def _jacobi(rows: Array) -> tuple[Array, Array, Array]:
    n, k = rows.shape
    padded = np.zeros((max(n, k), k), order="F")
    padded[:n] = rows
    sigma, left, right, work, _, info = lapack.dgejsv(
        padded, ANY_SCALES, VECTORS, VECTORS, DEFAULT, DEFAULT, DEFAULT, overwrite_a=1
    )
    if info:
        raise ValueError("X must have columns and rows that differ less in length")
    few = min(n, k)
    return left[:n, :few], sigma[:few] * (work[0] / work[1]), right[:, :few].T
