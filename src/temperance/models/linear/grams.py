r"""Triangular factors and eigenbases from Gram matrices, where these are accurate.

The Cholesky factor of a Gram matrix B'B, scaled to unit diagonal, of condition number kappa, is
(I + E) R with R'R = B'B and norm of E about kappa eps.  It costs a fifth of a QR decomposition of
the rows and is as accurate where kappa is small.  The eigenvectors of B'B are the right singular
vectors of B at a fraction of the cost, but small singular values are lost in rounding errors.  Both
are used where the condition number is below ``WORST_CONDITION``; otherwise the rows themselves are
decomposed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from temperance.data import Array
from temperance.models.linear.eigenbasis import Eigenbasis
from temperance.models.linear.singular import by_length

WORST_CONDITION = 1e5  # of a Gram matrix used instead of its rows: relative errors of 1e-11


def triangle(rows: Array) -> Array:
    """Return at most k rows with the same second moments."""
    if rows.shape[-2] <= rows.shape[-1]:
        return rows
    order = by_length(rows)
    if order is not None:
        rows = np.take_along_axis(rows, order[..., None], axis=-2)
    return np.asarray(np.linalg.qr(rows, mode="r"))


def triangle_of_gram(gram: Array) -> Array | None:
    """Return the triangular factor of a Gram matrix; None if it is ill-conditioned."""
    return triangles_of_grams(gram[None])[0]


def triangles_of_grams(grams: Array) -> list[Array | None]:
    """Return the triangular factors of Gram matrices (m, k, k); None for ill-conditioned ones."""
    scale = np.sqrt(grams.diagonal(axis1=1, axis2=2))
    empty = scale == 0
    unit = 1.0 / (scale + empty)
    scaled = grams * unit[:, None, :] * unit[:, :, None]
    if empty.any():
        # A zero column gets a unit diagonal; multiplying by its scale 0 removes it again.
        np.einsum("mii->mi", scaled)[...] += empty
    try:
        roots = np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError:
        if len(grams) == 1:
            return [None]
        return [triangle_of_gram(gram) for gram in grams]
    norms = np.abs(scaled).sum(axis=1).max(axis=1)
    return [
        root.T * each if _reciprocal_condition(root, norm) * WORST_CONDITION >= 1 else None
        for root, norm, each in zip(roots, norms, scale, strict=True)
    ]


def _reciprocal_condition(root: Array, norm: float) -> float:
    """Estimate 1 / (|K| |K^-1|) for K = root root' with the largest column sum ``norm``."""
    reciprocal, _ = lapack.dpocon(root.T, norm)  # root.T is the upper triangle in Fortran order
    return float(reciprocal)


def eigenbasis_of_grams(
    grams: Array, counts: NDArray[np.intp]
) -> tuple[Eigenbasis, NDArray[np.bool_]]:
    """Decompose stacked second moments (m, k + 1, k + 1) of ``counts`` rows (m,) each.

    Returns the decompositions, and which of them are as accurate as those of the rows.
    """
    k = grams.shape[-1] - 1
    ascending, vectors = np.linalg.eigh(grams[:, :k, :k])
    cross = (grams[:, k:, :k] @ vectors)[:, 0, ::-1]
    eigenvalues, vectors = np.maximum(ascending[:, ::-1], 0.0), vectors[:, :, ::-1]
    least = eigenvalues[:, -1]
    if (counts < k).any():  # n < k rows span at most n directions
        spanned = np.arange(k) < counts[:, None]
        least = np.where(spanned, eigenvalues, np.inf).min(axis=1)
        eigenvalues *= spanned
    sigma = np.sqrt(eigenvalues)
    projection = np.divide(cross, sigma, out=np.zeros(cross.shape), where=sigma > 0)
    square = grams[:, k, k]
    # With at most k independent rows there is no residual.
    remainder = np.where(counts > k, square - (projection**2).sum(axis=1), 0.0)
    safe = (least * WORST_CONDITION > eigenvalues[:, 0]) & (
        (remainder * WORST_CONDITION >= square) | (counts <= k)
    )
    if (counts < k).any():
        # Null directions are accurate unless the column lengths differ too much.
        squares = grams.diagonal(axis1=1, axis2=2)[:, :k]
        shortest = np.where(squares > 0, squares, np.inf).min(axis=1)
        safe &= (squares.max(axis=1) <= WORST_CONDITION**2 * shortest) | (counts >= k)
    return Eigenbasis(sigma, vectors, projection, np.maximum(remainder, 0.0)), safe


def factor_of(basis: Eigenbasis) -> Array:
    """Return F with F'F = sum_i w_i [z r]'[z r], stacked (m, k + 1, k + 1)."""
    m, k = basis.sigma.shape
    factor = np.zeros((m, k + 1, k + 1))
    factor[:, :k, :k] = basis.sigma[:, :, None] * basis.vectors.swapaxes(1, 2)
    factor[:, :k, k] = basis.projection
    factor[:, k, k] = np.sqrt(basis.remainder)
    return factor


def guarded_eigenbasis(
    grams: Array, counts: NDArray[np.intp], factor: Callable[[int], Array]
) -> Eigenbasis:
    """Return the decompositions of Gram matrices (m, k + 1, k + 1), from rows where unsafe."""
    basis, safe = eigenbasis_of_grams(grams, counts)
    unsafe = np.flatnonzero(~safe)
    if len(unsafe):
        again = Eigenbasis.of(padded([factor(int(pair)) for pair in unsafe]))
        for part, better in zip(basis, again, strict=True):
            part[unsafe] = better
    return basis


def padded(factors: list[Array]) -> Array:
    """Stack square roots of different heights, with rows of zeros at the end."""
    if len(factors) == 1:
        return factors[0][None]
    stacked = np.zeros((len(factors), max(map(len, factors)), factors[0].shape[1]))
    for place, factor in zip(stacked, factors, strict=True):
        place[: len(factor)] = factor
    return stacked
