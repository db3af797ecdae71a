r"""Bounded scalar minimisation: a vectorised scan, then refinement; stochastic approximation."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from temperance.types import Array

GRAIN = 1e-5  # smallest share of the bounds' width that the scan resolves
MOST_REFINEMENTS = 12
MOST_TURNS = 60
MOST_POINTS = 400  # beyond them it is noise that is refined, not structure
# Shares that a sketch may be wrong by: of the values and their span, and of the height above the
# minimum.
SKETCHED, SKETCHED_ABOVE = 1e-5, 0.2
ROUNDING = 64 * float(np.finfo(float).eps)  # relative differences of values that may be rounding
MEMORY = 0.02  # weight of the newest squared slope in their running mean

Evaluate = Callable[[Array], tuple[Array, Array]]
Curve = tuple[Array, Array, Array]  # points, values and slopes


class Point(NamedTuple):
    """A point of a curve."""

    beta: float
    value: float
    slope: float


class Minimum(NamedTuple):
    """A point on a curve, and what it is: by default the smallest, inside the bounds.

    Where a rule keeps away from the smallest, ``least`` is where that lies.
    """

    beta: float
    at_bound: bool = False
    flat: bool = False
    searched: bool = True
    least: float | None = None


class Search(NamedTuple):
    """How hard to look for a minimum.

    Cubics are doubted by more than their errors on smooth curves, because of what may hide between
    two points: in full where points cost little, in part where each takes a fit.  Posteriors move
    on the scale of log beta, and their risks hide nothing narrower.
    """

    points: int  # of the first scan, evenly spaced and as many crowded, see Ruler.scan
    doubt: float


THOROUGH, THRIFTY = Search(17, 1.0), Search(4, 0.25)


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

    def cubics(self, points: Array, values: Array, slopes: Array, doubt: float = 1.0) -> _Cubics:
        """Cubics in t between neighbours."""
        return _Cubics(np.log(self.rate(points)), values, slopes * self.rate(points), doubt)

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


def minimise(
    evaluate: Evaluate,
    bounds: tuple[float, float],
    tolerance: float = 1e-9,
    search: Search = THOROUGH,
    sketch: Evaluate | None = None,
) -> Minimum:
    """Find the global minimum of a smooth curve over ``bounds``.

    A scan, refined wherever a cubic through its values and slopes is no safe guide, brackets the
    local minima; those that can be global are located where the slope vanishes.  On a flat curve
    the answer is the point closest to 1: without evidence, Bayes.  Where a sketch, as good as the
    curve to `sketch_error`, shows that the minimum is elsewhere, the curve itself is not asked.
    """
    lower, upper = bounds
    ruler = Ruler(lower, upper)
    curve, cubic = _scan(evaluate, ruler, search, sketch)
    points, values, slopes = curve
    if np.ptp(values) <= _rounding(values):
        return Minimum(float(np.clip(1.0, lower, upper)), flat=True)
    betas: list[float] = []
    heights: list[float] = []
    inside = (slopes[:-1] < 0) & (slopes[1:] > 0) & (cubic.depth - cubic.doubt < values.min())
    for i in np.flatnonzero(inside):
        left, right = (Point(*(float(part[j]) for part in curve)) for j in (i, i + 1))
        turn = _turning_point(evaluate, ruler, left, right, tolerance * min(1.0, upper - lower))
        betas.append(turn.beta)
        heights.append(turn.value)
    # The scan's own points last, so that a bound wins only if it is strictly lower.
    betas.append(float(points[np.argmin(values)]))
    heights.append(float(values.min()))
    beta = betas[int(np.argmin(heights))]
    return Minimum(beta, at_bound=beta in (lower, upper))


def _turning_point(
    evaluate: Evaluate, ruler: Ruler, left: Point, right: Point, tolerance: float
) -> Point:
    """Find where the slope vanishes between a falling and a rising point.

    Each step goes where the cubic through both ends turns, or, when the values are level up to
    rounding, where the line through the slopes does; or to the middle when three steps have not
    halved the bracket.
    """
    width = right.beta - left.beta
    for turn in range(1, MOST_TURNS):
        curvature = (right.slope - left.slope) / (right.beta - left.beta)
        level = 1e3 * ROUNDING * max(abs(left.value), abs(right.value))
        if abs(right.value - left.value) > level:
            beta = ruler.turning(left, right)
        else:
            beta = left.beta - left.slope / curvature
        if turn % 3 == 0:
            if right.beta - left.beta > width / 2:
                beta = 0.5 * (left.beta + right.beta)
            width = right.beta - left.beta
        value, slope = evaluate(np.array([beta]))
        found = Point(beta, float(value[0]), float(slope[0]))
        if abs(found.slope) <= curvature * tolerance or not left.beta < beta < right.beta:
            break
        left, right = (left, found) if found.slope > 0 else (found, right)
    return found


def _scan(
    evaluate: Evaluate, ruler: Ruler, search: Search, sketch: Evaluate | None
) -> tuple[Curve, _Cubics]:
    """Evaluate the curve until cubics between neighbours are a safe guide to its minimum."""
    points = ruler.scan(search.points)
    if sketch is None:
        return _refined(evaluate, ruler, search, (points, *_finite(evaluate, points)))
    # Betas that crowd towards the lower bound are rarely where the minimum is.
    edge = ruler.lower + (ruler.upper - ruler.lower) / (search.points - 1)

    def mostly(points: Array) -> tuple[Array, Array]:
        values, slopes = np.empty((2, len(points)))
        for each, where in ((evaluate, points >= edge), (sketch, points < edge)):
            if where.any():
                values[where], slopes[where] = each(points[where])
        return values, slopes

    sketched = (points, *_finite(mostly, points))
    (points, values, slopes), cubic = _refined(mostly, ruler, search, sketched)
    error = sketch_error(values)
    margin = 2 * error
    # Between two points that surely fall, or rise, there is no minimum to be found.
    surely = np.sign(slopes) * (np.abs(slopes * ruler.rate(points)) > error)
    between = cubic.depth - cubic.doubt < values.min() + np.maximum(margin[:-1], margin[1:])
    between &= surely[:-1] * surely[1:] <= 0
    near = np.append(between, False) | np.append(False, between) | (values < values.min() + margin)
    near &= points < edge
    if near.any():
        values[near], slopes[near] = _finite(evaluate, points[near])
    return _refined(evaluate, ruler, search, (points, values, slopes))


def sketch_error(values: Array) -> Array:
    """Return how far each of a sketch's values may be from the curve's."""
    lowest = values.min()
    whole = float(np.ptp(values) + np.abs(values).max())
    error: Array = SKETCHED * whole + SKETCHED_ABOVE * (values - lowest)
    return error


def _refined(
    evaluate: Evaluate, ruler: Ruler, search: Search, curve: Curve
) -> tuple[Curve, _Cubics]:
    """Split gaps where the cubic is no safe guide and that may hold the minimum."""
    points, values, slopes = curve
    cubic = ruler.cubics(points, values, slopes, search.doubt)
    for _ in range(MOST_REFINEMENTS):
        span = float(np.ptp(values))
        unsafe = cubic.doubt > max(1e-3 * span, _rounding(values))
        # A large doubt hides structure that the depth knows nothing of.
        hidden = cubic.doubt > 0.05 * span
        split = unsafe & (hidden | (cubic.depth - cubic.doubt < values.min()))
        if not split.any() or len(points) > MOST_POINTS:
            break
        middle = ruler.middle(points[:-1][split], points[1:][split])
        more, slope = _finite(evaluate, middle)
        order = np.argsort(np.concatenate([points, middle]))
        points, values, slopes = (
            np.concatenate(both)[order]
            for both in ((points, middle), (values, more), (slopes, slope))
        )
        cubic = ruler.cubics(points, values, slopes, search.doubt)
    return (points, values, slopes), cubic


def _rounding(values: Array) -> float:
    """Differences that may be rounding."""
    return ROUNDING * float(np.abs(values).max())


def _finite(evaluate: Evaluate, points: Array) -> tuple[Array, Array]:
    values, slopes = evaluate(points)
    bad = ~(np.isfinite(values) & np.isfinite(slopes))
    if bad.any():
        raise ValueError(f"the risk curve is not finite at beta = {float(points[bad][0])!r}")
    return values, slopes


class _Cubics:
    """Cubics between neighbouring points: how deep they go, and how far to trust that."""

    def __init__(self, points: Array, values: Array, slopes: Array, doubt: float) -> None:
        width = np.diff(points)
        first, last = slopes[:-1] * width, slopes[1:] * width
        rise = np.diff(values)
        # p(t) = v + first t + c t^2 + d t^3 on [0, 1]
        c, d = 3 * rise - 2 * first - last, first + last - 2 * rise
        root = np.sqrt(np.maximum(c**2 - 3 * first * d, 0.0))
        # The minimum of a cubic is the root of its derivative with positive curvature.
        with np.errstate(divide="ignore", invalid="ignore"):
            turning = np.where(c > 0, -first / (c + root), (root - c) / (3 * d))
        t = np.fmin(np.fmax(turning, 0.0), 1.0)  # 0 where there is none
        self.turning = points[:-1] + t * width
        base = values[:-1]
        inner = base + t * (first + t * (c + t * d))
        self.depth = np.minimum(inner, np.minimum(base, values[1:]))
        # Doubt the cubic term, and curvature that jumps where two cubics meet: h^2/8 times that.
        square = width**2
        begin, end = 2 * c / square, (2 * c + 6 * d) / square
        jump = np.zeros(len(points))
        jump[1:-1] = np.abs(begin[1:] - end[:-1])
        self.doubt = doubt * (np.abs(d) + square / 8 * np.maximum(jump[:-1], jump[1:]))


def _turning(first: float, last: float, rise: float) -> float:
    """Where a cubic on [0, 1] that begins with a fall and ends with a rise has its minimum.

    The same as in `_Cubics`, for one: numpy's calls would take longer than the sums.
    """
    c, d = 3 * rise - 2 * first - last, first + last - 2 * rise
    root = math.sqrt(max(c**2 - 3 * first * d, 0.0))
    if c > 0:
        return min(-first / (c + root), 1.0)
    return min((root - c) / (3 * d), 1.0) if d > 0 else 0.0


def stochastic_minimise(
    slope: Callable[[float], float],
    bounds: tuple[float, float],
    least_steps: int = 600,
    most_steps: int = 6000,
    tolerance: float = 0.01,
) -> tuple[float, bool]:
    r"""Minimise by noisy slopes: projected descent with an adaptive rate and averaged iterates.

    Step t is ``(upper - lower) / 8 / sqrt(t)`` times the slope in units of its recent root mean
    square.  The answer is the average of the last third of the iterates; it has converged when it
    differs from the average of the middle third by less than ``tolerance`` of the bounds' width.

    Returns
    -------
    The minimum, and whether the iteration converged.
    """
    lower, upper = bounds
    width = upper - lower
    beta = float(np.clip(1.0, lower, upper))
    square, seen = 0.0, 0.0
    path = [beta]
    for step in range(1, most_steps + 1):
        noisy = slope(beta)
        square, seen = square + MEMORY * (noisy**2 - square), seen + MEMORY * (1 - seen)
        if square > 0:
            move = width / 8 / np.sqrt(step) * noisy / np.sqrt(square / seen)
            beta = float(np.clip(beta - move, lower, upper))
        path.append(beta)
        if step >= least_steps and step % 100 == 0:
            middle, last = _thirds(path)
            if abs(last - middle) < tolerance * width:
                return last, True
    return _thirds(path)[1], False


def _thirds(path: list[float]) -> tuple[float, float]:
    """Averages of the middle and the last third."""
    third = max(1, len(path) // 3)
    return float(np.mean(path[-2 * third : -third])), float(np.mean(path[-third:]))
