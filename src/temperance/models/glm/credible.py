r"""Credible levels of a point under Gaussian approximations of many weightings of the same rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from temperance.data import Array, batches
from temperance.models.credible import gaussian_levels
from temperance.models.glm.newton import Fit, newton, solve
from temperance.models.glm.rows import Rows

Point = Callable[[float], tuple[Array, float]]  # coordinates, and squared length outside the span


def credible_levels(
    rows: Rows, approximation: Fit, weights: Array, point: Point, dimension: int
) -> Callable[[float], Array]:
    """Return the function from beta to levels; see :class:`temperance.protocols.HasCredibleLevels`.

    Newton's method starts from the solution of all rows, of which the rows hold the weights.
    """

    def at(beta: float) -> Array:
        whole = solve(approximation.system(rows), beta).x
        target, outside = point(beta)
        distances = np.empty(len(weights))
        for part in batches(len(weights), rows.Z.size):
            system = approximation.system(rows.weighted(weights[part]))
            start = np.repeat(whole, len(weights[part]), axis=0)
            found = newton(system, start, beta) or newton(system, start, beta, damped=True)
            found = found or solve(system, beta)
            means, roots = system.gaussian(found.x, beta)
            deviations = target - means
            along = (
                deviations / roots
                if roots.ndim == 2
                else np.linalg.solve(roots, deviations[..., None])[..., 0]
            )
            distances[part] = (along**2).sum(axis=1)
        return gaussian_levels(distances + outside, dimension)

    return at
