r"""Triangular factors R of second moments, R'R = B'B: by Cholesky where safe, else by QR.

The Cholesky factor of a Gram matrix scaled to unit diagonal, of condition number kappa, is
(I + E) R with norm of E about kappa eps: it costs a fifth of a QR of the rows, and is as good where
kappa is small.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from temperance.models.linear.singular import by_length
from temperance.types import Array

WORST_CONDITION = 1e5  # of a Gram matrix that stands for its rows: relative errors of 1e-11


def triangle(rows: Array) -> Array:
    """Keep the second moments of rows in the fewest rows."""
    if rows.shape[-2] <= rows.shape[-1]:
        return rows
    order = by_length(rows)
    if order is not None:
        rows = np.take_along_axis(rows, order[..., None], axis=-2)
    return np.asarray(np.linalg.qr(rows, mode="r"))


def triangle_of_gram(gram: Array) -> Array | None:
    """Return the triangular factor of a Gram matrix; nothing when only the rows can tell it."""
    return triangles_of_grams(gram[None])[0]


def triangles_of_grams(grams: Array) -> list[Array | None]:
    """Return the triangular factors of stacked Gram matrices (m, k, k), where they can be told."""
    scale = np.sqrt(grams.diagonal(axis1=1, axis2=2))
    empty = scale == 0
    unit = 1.0 / (scale + empty)
    scaled = grams * unit[:, None, :] * unit[:, :, None]
    if empty.any():
        # A column of zeros is replaced by one of its own, and taken out again by its scale.
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
    reciprocal, _ = lapack.dpocon(root.T, norm)  # the upper triangle, as Fortran has it in memory
    return float(reciprocal)
