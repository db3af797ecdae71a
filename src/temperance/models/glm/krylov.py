r"""GMRES for many systems at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from temperance.data import Array


def solve_batch(
    operator: Callable[[Array], Array],
    right: Array,
    tolerance: float = 1e-13,
    most: int = 60,
    contraction: float = 1.0,
) -> Array:
    """Solve ``operator(x) = right`` for stacked vectors (m, n) by Arnoldi's iteration.

    Meant for operators close to the identity, where few steps suffice.  Adding the residual, which
    is known, to the solution multiplies the error by the identity less the operator; the
    contraction is a bound of that.
    """
    if contraction <= tolerance:
        return right
    norm = np.linalg.norm(right, axis=1)
    scale = np.where(norm > 0, norm, 1.0)
    basis = [right / scale[:, None]]
    projected = np.zeros((len(right), most + 1, most))
    for step in range(most):
        image = operator(basis[step])
        for _ in range(2):  # orthogonalise twice, for rounding
            for i, direction in enumerate(basis):
                overlap = np.einsum("mn,mn->m", direction, image)
                projected[:, i, step] += overlap
                image = image - overlap[:, None] * direction
        length = np.linalg.norm(image, axis=1)
        projected[:, step + 1, step] = length
        small = projected[:, : step + 2, : step + 1]
        if not np.all(np.isfinite(small)):
            raise np.linalg.LinAlgError("the operator is not finite")
        target = np.zeros((len(right), step + 2))
        target[:, 0] = norm
        # Least squares over the subspace; the pseudo-inverse copes with systems already solved.
        solution = np.einsum("mij,mj->mi", np.linalg.pinv(small), target)
        residual = target - np.einsum("mij,mj->mi", small, solution)
        basis.append(image / np.where(length > 0, length, 1.0)[:, None])
        if np.all(contraction * np.linalg.norm(residual, axis=1) <= tolerance * scale):
            break
    residual[:, :-1] += solution
    return np.einsum("mi,imn->mn", residual, np.stack(basis))
