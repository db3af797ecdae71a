r"""Bounded scalar minimisation: a vectorised scan, then refinement; stochastic approximation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from temperance.ruler import Cubics, Point, Ruler
from temperance.types import Array

MOST_REFINEMENTS = 12
MOST_TURNS = 60
AT_BOUND = 1e-8  # part of the width that a minimum may be away from a bound and count as there
MOST_POINTS = 400  # beyond them it is noise that is refined, not structure
ROUNDING = 64 * float(np.finfo(float).eps)  # relative differences of values that may be rounding
MEMORY = 0.02  # weight of the newest squared slope in their running mean

Evaluate = Callable[[Array], tuple[Array, Array]]
Curve = tuple[Array, Array, Array]  # points, values and slopes


class Minimum(NamedTuple):
    """A point on a curve, and what it is: by default the smallest, inside the bounds.

    Where a rule keeps away from the smallest, ``least`` is where that lies.  ``value`` is that of
    the curve at ``beta``, where it was found on the way.
    """

    beta: float
    at_bound: bool = False
    flat: bool = False
    searched: bool = True
    least: float | None = None
    value: float | None = None


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
    known: Curve | None = None,
) -> Minimum:
    """Find the global minimum of a smooth curve over ``bounds``, where some may be known of it.

    A scan, refined wherever a cubic through its values and slopes is no safe guide, brackets the
    local minima; those that can be global are located where the slope vanishes.  On a flat curve
    the answer is the point closest to 1: without evidence, Bayes.
    """
    lower, upper = bounds
    ruler = Ruler(lower, upper)
    curve, cubic = scan(evaluate, ruler, search, known)
    if is_flat(curve):
        return Minimum(float(np.clip(1.0, lower, upper)), flat=True)
    turns = [
        turning_point(evaluate, ruler, left, right, tolerance * min(1.0, upper - lower))
        for left, right in brackets(curve, cubic)
    ]
    # The scan's own points last, so that a bound wins only if it is strictly lower.
    beta, value, _ = min([*turns, lowest(curve)], key=lambda point: point.value)
    # What is known beforehand may be rough.
    return minimum_at(beta, bounds, value if known is None else None)


def minimum_at(beta: float, bounds: tuple[float, float], value: float | None = None) -> Minimum:
    """Return the minimum there, at a bound if it is no farther than rounding may lead from it."""
    for bound in bounds:
        if abs(beta - bound) <= AT_BOUND * (bounds[1] - bounds[0]):
            return Minimum(bound, at_bound=True, value=value if beta == bound else None)
    return Minimum(beta, value=value)


def scan(
    evaluate: Evaluate, ruler: Ruler, search: Search, known: Curve | None = None
) -> tuple[Curve, Cubics]:
    """Evaluate the curve until cubics between neighbours are a safe guide to its minimum."""
    if known is None:
        points = ruler.scan(search.points)
        known = points, *evaluate_finite(evaluate, points)
    return _refined(evaluate, ruler, search, known)


def is_flat(curve: Curve) -> bool:
    """Tell whether all differences may be rounding."""
    return span_of(curve[1]) <= rounding_of(curve[1])


def lowest(curve: Curve) -> Point:
    """Return the lowest of the points."""
    return _point(curve, int(curve[1].argmin()))


def brackets(curve: Curve, cubic: Cubics) -> list[tuple[Point, Point]]:
    """Return the pairs of neighbours, falling and rising, that may have the minimum between."""
    _, values, slopes = curve
    inside = (slopes[:-1] < 0) & (slopes[1:] > 0) & (cubic.depth - cubic.doubt < values.min())
    return [(_point(curve, i), _point(curve, i + 1)) for i in inside.nonzero()[0].tolist()]


def evaluate_at(evaluate: Evaluate, beta: float) -> Point:
    """Return one point of a curve."""
    value, slope = evaluate(np.array([beta]))
    return Point(beta, float(value[0]), float(slope[0]))


def turning_point(
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
        found = evaluate_at(evaluate, beta)
        if abs(found.slope) <= curvature * tolerance or not left.beta < beta < right.beta:
            break
        left, right = (left, found) if found.slope > 0 else (found, right)
    return found


def _point(curve: Curve, place: int) -> Point:
    return Point(*(float(part[place]) for part in curve))


def _refined(
    evaluate: Evaluate, ruler: Ruler, search: Search, curve: Curve
) -> tuple[Curve, Cubics]:
    """Split gaps where the cubic is no safe guide and that may hold the minimum."""
    points, values, slopes = curve
    cubic = ruler.cubics(points, values, slopes, search.doubt)
    for _ in range(MOST_REFINEMENTS):
        span = span_of(values)
        unsafe = cubic.doubt > max(1e-3 * span, rounding_of(values))
        # A large doubt hides structure that the depth knows nothing of.
        hidden = cubic.doubt > 0.05 * span
        split = unsafe & (hidden | (cubic.depth - cubic.doubt < values.min()))
        if not split.any() or len(points) > MOST_POINTS:
            break
        middle = ruler.middle(points[:-1][split], points[1:][split])
        more, slope = evaluate_finite(evaluate, middle)
        order = np.argsort(np.concatenate([points, middle]))
        points, values, slopes = (
            np.concatenate(both)[order]
            for both in ((points, middle), (values, more), (slopes, slope))
        )
        cubic = ruler.cubics(points, values, slopes, search.doubt)
    return (points, values, slopes), cubic


def span_of(values: Array) -> float:
    """Return the largest difference."""
    return float(values.max() - values.min())


def rounding_of(values: Array) -> float:
    """Return how large differences may be that are rounding."""
    return ROUNDING * float(max(values.max(), -values.min()))


def evaluate_finite(evaluate: Evaluate, points: Array) -> tuple[Array, Array]:
    """Return values and slopes, and refuse a curve that has none."""
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
