r"""How betas are measured, and cubics between points of a curve by that measure."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from temperance.types import Array

GRAIN = 1e-5  # smallest share of the bounds' width that the scan resolves


class Point(NamedTuple):
    """A point of a curve."""

    beta: float
    value: float
    slope: float


class Ruler(NamedTuple):
    """Measure betas by t = log(1 + (beta - lower) / grain): near the bound all scales matter.

    Curves move on the scale of the data's information, 1 / (n lam), which nobody knows beforehand.
    """

    lower: float
    upper: float

    @property
    def grain(self) -> float:
        """Differences of beta below this are all alike."""
        return GRAIN * (self.upper - self.lower)

    def scan(self, count: int) -> Array:
        """Betas evenly spaced, joined with betas that crowd towards the lower bound."""
        points = self.lower + (self.upper - self.lower) * _steps(count)
        points[-1] = self.upper
        return points

    def middle(self, left: Array, right: Array) -> Array:
        """Betas half way between others, by the ruler."""
        return self.lower + np.sqrt(self.rate(left) * self.rate(right)) - self.grain

    def cubics(self, points: Array, values: Array, slopes: Array, doubt: float = 1.0) -> Cubics:
        """Cubics in t between neighbours."""
        rate = self.rate(points)
        return Cubics(np.log(rate), values, slopes * rate, doubt)

    def turning(self, left: Point, right: Point) -> float:
        """Return the beta where the cubic between a falling and a rising point turns."""
        begin, end = (point.beta - self.lower + self.grain for point in (left, right))
        width = math.log(end / begin)
        first, last = left.slope * begin * width, right.slope * end * width
        t = _turning(first, last, right.value - left.value)
        return self.lower + begin * math.exp(t * width) - self.grain

    def rate(self, beta: Array) -> Array:
        """Return dbeta/dt."""
        return beta - self.lower + self.grain


@cache
def _steps(count: int) -> Array:
    """Return the points of a scan of [0, 1]."""
    steps = np.union1d(np.linspace(0.0, 1.0, count), np.geomspace(GRAIN, 1.0, count))
    steps.flags.writeable = False
    return steps


class Cubics:
    """Cubics between neighbouring points: how deep they go, and how far to trust that."""

    def __init__(self, points: Array, values: Array, slopes: Array, doubt: float) -> None:
        width = points[1:] - points[:-1]
        first, last = slopes[:-1] * width, slopes[1:] * width
        base, end = values[:-1], values[1:]
        rise = end - base
        # p(t) = v + first t + c t^2 + d t^3 on [0, 1]
        d = first + last - 2 * rise
        c = rise - first - d
        root = np.sqrt(np.maximum(c**2 - 3 * first * d, 0.0))
        # The minimum of a cubic is the root of its derivative with positive curvature.
        with np.errstate(divide="ignore", invalid="ignore"):
            turning = np.where(c > 0, -first / (c + root), (root - c) / (3 * d))
        t = np.fmin(np.fmax(turning, 0.0), 1.0)  # 0 where there is none
        self.turning = points[:-1] + t * width
        inner = base + t * (first + t * (c + t * d))
        self.depth = np.minimum(inner, np.minimum(base, end))
        # Doubt the cubic term, and curvature that jumps where two cubics meet: h^2/8 times that.
        square = width * width
        half = c / square  # of the curvature where a cubic begins; it rises by 3 d / h^2
        jump = np.zeros(len(points))
        jump[1:-1] = np.abs(half[1:] - (half + 3 * d / square)[:-1])
        self.doubt = doubt * (np.abs(d) + square / 4 * np.maximum(jump[:-1], jump[1:]))


def _turning(first: float, last: float, rise: float) -> float:
    """Where a cubic on [0, 1] that begins with a fall and ends with a rise has its minimum.

    The same as in `Cubics`, for one: numpy's calls would take longer than the sums.
    """
    c, d = 3 * rise - 2 * first - last, first + last - 2 * rise
    root = math.sqrt(max(c**2 - 3 * first * d, 0.0))
    if c > 0:
        return min(-first / (c + root), 1.0)
    return min((root - c) / (3 * d), 1.0) if d > 0 else 0.0
