r"""Solutions along beta: each starts from those that were found on either side."""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from temperance.models.glm.newton import (
    TOLERANCE,
    Solution,
    System,
    at_prior,
    climb,
    first_step,
    newton,
)
from temperance.types import Array

FAR_APART = 1e8  # ratio of betas between which a cubic says nothing
MOST_REMEMBERED = 2**24  # elements of solutions and tangents


class Path:
    """Solutions of a system along beta, which are remembered.

    One of several paths remembers its share of what may be.
    """

    def __init__(self, system: System, among: int = 1, tolerance: float = TOLERANCE) -> None:
        self.system = system
        self.tolerance = tolerance
        self._known = [at_prior(system)]
        self._most = max(3, MOST_REMEMBERED // max(1, 2 * self._known[0].x.size * among))

    def at(self, beta: float) -> Solution:
        """Return the solution at ``beta``."""
        place = bisect_left(self._known, beta, key=_beta)
        around = self._known[max(0, place - 1) : place + 1]
        if around[-1].beta == beta:
            return around[-1]
        found = newton(self.system, self._start(around, beta), beta, self.tolerance)
        if found is None and len(self._known) > 1:
            found = newton(self.system, self.system.guess(beta), beta, self.tolerance)
        if found is not None:
            return self._remember(found)
        on_the_way = climb(self.system, self._known[place - 1], beta)[1:]
        return [self._remember(each) for each in on_the_way][-1]

    def _start(self, around: list[Solution], beta: float) -> Array:
        """Predict the solution from those on either side."""
        first = first_step(self.system)
        if len(around) < 2 or around[1].beta + first > FAR_APART * (around[0].beta + first):
            return self.system.guess(beta)
        return cubic_between(around[0], around[1], beta, first)

    def _remember(self, solution: Solution) -> Solution:
        insort(self._known, solution, key=_beta)
        if len(self._known) > self._most:
            del self._known[1]  # the prior stays; a search ends at larger betas than it begins
        return solution


def _beta(solution: Solution) -> float:
    return solution.beta


def cubic_between(before: Solution, after: Solution, beta: float, first: float) -> Array:
    """Cubic in log(beta + first) through two solutions and their tangents."""
    low, high = before.beta + first, after.beta + first
    width = np.log1p((after.beta - before.beta) / low)
    t = np.log1p((beta - before.beta) / low) / width
    # dx/dt = dx/dbeta (beta + first) width
    rise = after.x - before.x
    start, stop = low * width * before.tangent - rise, rise - high * width * after.tangent
    return before.x + t * rise + t * (1 - t) * ((1 - t) * start + t * stop)
