r"""Follow a solution along beta: Euler predictor, Newton corrector, steps that adapt.

The objectives are convex in (mean, root of the covariance), so their minimiser is a smooth
function of beta that starts at the prior; a Newton iteration that fails only means that the step
along beta was too long.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from temperance.diagnostics import ConvergenceWarning, warn
from temperance.models.logistic.system import System
from temperance.types import Array

TOLERANCE = 1e-10
MOST_NEWTON_STEPS = 12
MOST_STEPS = 400


class Anchor(NamedTuple):
    """A solution and its tangent."""

    beta: float
    x: Array
    tangent: Array


def prior_anchor(system: System) -> Anchor:
    """Return the solution at beta = 0."""
    x = system.start()
    return Anchor(0.0, x, system.newton(x, 0.0)[1])


def follow(system: System, anchor: Anchor, beta: float) -> Anchor:
    """Carry a solution to another beta; or as far as possible, with a warning."""
    first = system.first_step()
    reach = 8.0
    for _ in range(MOST_STEPS):
        if anchor.beta == beta:
            return anchor
        target = _next_beta(anchor.beta, beta, reach, first)
        found = _correct(system, anchor, target)
        if found is None:
            reach = max(np.sqrt(reach), 1.0 + 1e-6)
        else:
            anchor, reach = found, min(reach**2, 1e6)
    warn(
        f"the approximate posterior was not found at beta = {beta:.3g}, the one at "
        f"{anchor.beta:.3g} is used; standardise the inputs or use a tighter prior",
        ConvergenceWarning,
    )
    return anchor


def _next_beta(current: float, goal: float, reach: float, first: float) -> float:
    """Go at most a factor ``reach`` towards the goal, counted from ``first`` near zero."""
    if goal > current:
        return min(goal, (current + first) * reach - first)
    return max(goal, (current + first) / reach - first)


def _correct(system: System, anchor: Anchor, beta: float) -> Anchor | None:
    x = anchor.x + (beta - anchor.beta) * anchor.tangent
    if not system.admissible(x):
        x = anchor.x
    before = np.inf
    # Steps below this that shrink no more are rounding, which information magnifies.
    information = beta / system.first_step()
    rounding = min(1e-6 + 0.1 * np.finfo(float).eps * information, 1e-4)
    for _ in range(MOST_NEWTON_STEPS):
        try:
            step, tangent = system.newton(x, beta)
        except np.linalg.LinAlgError:
            return None
        size = float(np.max(np.abs(step) / system.scale(x), initial=0.0))
        if not np.isfinite(size) or (size > 2 * before and size > rounding):
            return None
        x = x + step
        if not system.admissible(x):
            return None
        if size < TOLERANCE or (size < rounding and size > before / 4):
            return Anchor(beta, x, tangent)
        before = size
    return None
