r"""How betas are measured, and cubics between points of a curve by that measure."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from temperance.types import Array

TINY, HUGE = 1e-200, 1e150  # betas beyond which nothing is measured
TAIL = 1e3  # times the largest beta of a scale from which a curve is nothing but a tail
LITTLE = 1e-3  # part of the grain that is small against all that matters


class Point(NamedTuple):
    """A point of a curve."""

    beta: float
    value: float
    slope: float


class Scale(NamedTuple):
    r"""The betas between which a curve moves.

    With lam the information of the data in units of the prior's, posteriors are functions of
    1 / (1 + beta lam): they move between 1 / (largest lam) and 1 / (smallest lam).
    """

    smallest: float
    largest: float = HUGE


class Ruler(NamedTuple):
    """Measure betas by t = log(beta + grain), the grain being the smallest beta that matters.

    Below the grain t is linear in beta, above it logarithmic: a function of 1 / (1 + beta lam) with
    lam up to 1 / grain has no features narrower than about 1 in t.
    """

    lower: float
    upper: float
    grain: float
    ceiling: float = HUGE  # beyond it a curve has no features

    @classmethod
    def of_scale(cls, bounds: tuple[float, float], scale: Scale) -> Ruler:
        """Measure betas on the scale of a curve."""
        grain = min(max(scale.smallest, TINY), HUGE)
        return cls(*bounds, grain, min(TAIL * max(scale.largest, grain), HUGE))

    def scan(self, points: int, step: float) -> Array:
        """Betas no farther apart than ``step`` in t, nor than a share 1 / points of the bounds.

        Beyond the ceiling only the latter holds.
        """
        lower, upper = self.lower, self.upper
        even = (upper - lower) / points
        turn = min(max(even / step - self.grain, lower), upper)  # where even steps become shorter
        top = min(turn, max(self.ceiling, lower))
        width = float(self.t(top))
        near = self.beta(np.linspace(0.0, width, math.ceil(width / step) + 1))
        far = np.linspace(turn, upper, math.ceil((upper - turn) / even) + 1)
        betas = np.concatenate([near[:-1] if top == turn else near, far])
        betas[0], betas[-1] = lower, upper
        return betas

    def unit(self, beta: float) -> float:
        """Return what differences of betas are measured by: beta, or what is left of the bounds."""
        return min(beta + LITTLE * self.grain, self.upper - self.lower)

    def middle(self, left: Array | float, right: Array | float) -> Any:
        """Betas half way between others, in t."""
        begin = left + self.grain
        return left + begin * np.expm1(0.5 * np.log1p((right - left) / begin))

    def t(self, beta: ArrayLike) -> Any:
        """Measure betas from the lower bound on."""
        return np.log1p((np.asarray(beta) - self.lower) / (self.lower + self.grain))

    def beta(self, t: ArrayLike) -> Any:
        """Return the betas that measure t."""
        return self.lower + (self.lower + self.grain) * np.expm1(t)

    def cubics(self, points: Array, values: Array, slopes: Array, doubt: float = 1.0) -> Cubics:
        """Cubics in t between neighbours."""
        return Cubics(self.t(points), values, slopes * self.rate(points), doubt)

    def turning(self, left: Point, right: Point) -> float:
        """Return the beta where the cubic between a falling and a rising point turns."""
        begin, end = (point.beta + self.grain for point in (left, right))
        width = math.log1p((right.beta - left.beta) / begin)
        first, last = left.slope * begin * width, right.slope * end * width
        t = _turning(first, last, right.value - left.value)
        return left.beta + begin * math.expm1(t * width)

    def rate(self, beta: Array) -> Array:
        """Return dbeta/dt."""
        return beta + self.grain


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
        square = np.maximum(width * width, TINY)  # neighbours may be one but for rounding
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
