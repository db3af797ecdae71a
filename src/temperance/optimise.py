r"""Bounded scalar minimisation: a vectorised scan, then refinement; stochastic approximation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from temperance.ruler import Cubics, Point, Ruler
from temperance.types import Array

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
) -> tuple[Curve, Cubics]:
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
) -> tuple[Curve, Cubics]:
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
