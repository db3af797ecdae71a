r"""GMRES for many systems at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from temperance.types import Array


def solve_batch(
    operator: Callable[[Array], Array], right: Array, tolerance: float = 1e-13, most: int = 60
) -> Array:
    """Solve ``operator(x) = right`` for stacked vectors (m, n) by Arnoldi's iteration.

    Meant for operators close to the identity, where few steps suffice.
    """
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
        target = np.zeros((len(right), step + 2))
        target[:, 0] = norm
        # Least squares over the subspace; the pseudo-inverse copes with systems already solved.
        solution = np.einsum("mij,mj->mi", np.linalg.pinv(small), target)
        residual = np.linalg.norm(np.einsum("mij,mj->mi", small, solution) - target, axis=1)
        if np.all(residual <= tolerance * scale):
            break
        basis.append(image / np.where(length > 0, length, 1.0)[:, None])
    return np.einsum("mi,imn->mn", solution, np.stack(basis[: solution.shape[1]]))
