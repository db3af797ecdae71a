r"""The logarithmic scale on which betas are searched, and cubic interpolation on it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from temperance.data import Array

TINY, HUGE = 1e-200, 1e150  # smallest and largest values of offset and ceiling
TAIL = 1e3  # beyond this multiple of the largest beta of a scale a curve is only a tail
SMALL = 1e-3  # share of the offset that is small compared with all relevant betas


class Point(NamedTuple):
    """A point of a curve."""

    beta: float
    value: float
    slope: float


class Scale(NamedTuple):
    r"""The range of betas over which a curve changes.

    With lam the information of the data in units of the prior's, posteriors are functions of
    1 / (1 + beta lam): they change between 1 / (largest lam) and 1 / (smallest lam).
    """

    smallest: float
    largest: float = HUGE


class Ruler(NamedTuple):
    """The search scale t = log(beta + offset), where the offset is the smallest relevant beta.

    Below the offset t is linear in beta, above it logarithmic.  A function of 1 / (1 + beta lam)
    with lam up to 1 / offset has no features narrower than about 1 in t.
    """

    lower: float
    upper: float
    offset: float
    ceiling: float = HUGE  # beyond it a curve has no features

    @classmethod
    def of_scale(cls, bounds: tuple[float, float], scale: Scale) -> Ruler:
        """Return the search scale of a curve that changes over this range."""
        offset = min(max(scale.smallest, TINY), HUGE)
        return cls(*bounds, offset, min(TAIL * max(scale.largest, offset), HUGE))

    def scan(self, points: int, step: float) -> Array:
        """Return betas at most ``step`` apart in t, and at most 1 / points of the bounds apart.

        Beyond the ceiling only the second condition holds.
        """
        lower, upper = self.lower, self.upper
        even = (upper - lower) / points
        turn = min(
            max(even / step - self.offset, lower), upper
        )  # from here on even steps are the shorter ones
        top = min(turn, max(self.ceiling, lower))
        width = float(self.t(top))
        near = self.beta(np.linspace(0.0, width, math.ceil(width / step) + 1))
        far = np.linspace(turn, upper, math.ceil((upper - turn) / even) + 1)
        betas = np.concatenate([near[:-1] if top == turn else near, far])
        betas[0], betas[-1] = lower, upper
        return betas

    def unit(self, beta: float) -> float:
        """Return the unit of differences near ``beta``: beta itself, or the width of bounds."""
        return min(beta + SMALL * self.offset, self.upper - self.lower)

    def middle(self, left: Array | float, right: Array | float) -> Any:
        """Return the betas half way between others, in t."""
        begin = left + self.offset
        return left + begin * np.expm1(0.5 * np.log1p((right - left) / begin))

    def t(self, beta: ArrayLike) -> Any:
        """Return t of betas, with 0 at the lower bound."""
        return np.log1p((np.asarray(beta) - self.lower) / (self.lower + self.offset))

    def beta(self, t: ArrayLike) -> Any:
        """Return the betas at t."""
        return self.lower + (self.lower + self.offset) * np.expm1(t)

    def cubics(
        self, points: Array, values: Array, slopes: Array, error_factor: float = 1.0
    ) -> Cubics:
        """Return cubics in t between neighbouring points."""
        return Cubics(self.t(points), values, slopes * self.rate(points), error_factor)

    def turning(self, left: Point, right: Point) -> float:
        """Return the beta at the minimum of the cubic between a falling and a rising point."""
        begin, end = (point.beta + self.offset for point in (left, right))
        width = math.log1p((right.beta - left.beta) / begin)
        first, last = left.slope * begin * width, right.slope * end * width
        t = _turning(first, last, right.value - left.value)
        return left.beta + begin * math.expm1(t * width)

    def rate(self, beta: Array) -> Array:
        """Return dbeta/dt."""
        return beta + self.offset


class Cubics:
    """Cubics between neighbouring points: their minima, lowest values and error bounds."""

    def __init__(self, points: Array, values: Array, slopes: Array, error_factor: float) -> None:
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
        t = np.fmin(np.fmax(turning, 0.0), 1.0)  # 0 if there is no minimum
        self.turning = points[:-1] + t * width
        inner = base + t * (first + t * (c + t * d))
        self.depth = np.minimum(inner, np.minimum(base, end))
        # Error bound: the cubic term, plus h^2/8 times the jump of curvature between cubics.
        square = np.maximum(width * width, TINY)  # neighbours may be equal up to rounding
        half = c / square  # half the curvature at the left end; it grows by 3 d / h^2
        jump = np.zeros(len(points))
        jump[1:-1] = np.abs(half[1:] - (half + 3 * d / square)[:-1])
        self.error = error_factor * (np.abs(d) + square / 4 * np.maximum(jump[:-1], jump[1:]))


def _turning(first: float, last: float, rise: float) -> float:
    """Return the minimum of a cubic on [0, 1] that falls at its start and rises at its end.

    Same formula as in `Cubics`, in plain floats: faster than numpy for a single cubic.
    """
    c, d = 3 * rise - 2 * first - last, first + last - 2 * rise
    root = math.sqrt(max(c**2 - 3 * first * d, 0.0))
    if c > 0:
        return min(-first / (c + root), 1.0)
    return min((root - c) / (3 * d), 1.0) if d > 0 else 0.0
