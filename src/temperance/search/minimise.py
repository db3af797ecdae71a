r"""Bounded scalar minimisation: a vectorised scan, then refinement; stochastic approximation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from temperance.search.log_scale import TINY, Cubics, Point, Ruler
from temperance.types import Array

MOST_REFINEMENTS = 12
MOST_TURNS = 60
AT_BOUND = 1e-8  # relative distance at which a minimum counts as being at a bound
STILL = 1e-4  # part of a curve's span that is no movement
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

    points: int  # of the first scan, see Ruler.scan
    step: float
    doubt: float
    most: int = 400  # points, beyond which it is noise that is refined, not structure


THOROUGH, THRIFTY = Search(17, 0.7, 1.0), Search(4, 3.0, 0.25, 120)


def minimise(
    evaluate: Evaluate,
    ruler: Ruler,
    tolerance: float = 1e-9,
    search: Search = THOROUGH,
    known: Curve | None = None,
) -> Minimum:
    """Find the global minimum of a smooth curve between the bounds of a ruler.

    A scan, refined wherever a cubic through its values and slopes is no safe guide, brackets the
    local minima; those that can be global are located where the slope vanishes, to a relative
    ``tolerance``.  The ruler says where the curve moves, so that neither the bounds nor the unit of
    beta matter.  Some points of the curve may be known.  On a flat curve the answer is the point
    closest to 1: without evidence, Bayes.
    """
    curve, cubic = scan(evaluate, ruler, search, known)
    if is_flat(curve):
        return Minimum(float(np.clip(1.0, ruler.lower, ruler.upper)), flat=True)
    turns = [
        turning_point(evaluate, ruler, left, right, tolerance)
        for left, right in brackets(curve, cubic)
    ]
    # The scan's own points last, so that a bound wins only if it is strictly lower.
    beta, value, _ = min([*turns, lowest(curve)], key=lambda point: point.value)
    # What is known beforehand may be rough.
    return minimum_at(beta, ruler, value if known is None else None)


def ruler_for(evaluate: Evaluate, bounds: tuple[float, float]) -> Ruler:
    """Find the smallest beta at which a curve moves, decade after decade, and measure by it."""
    lower, upper = bounds
    (first, last), (slope, _) = evaluate_finite(evaluate, np.array([lower, upper], dtype=float))
    highest, least, moved = max(first, last), min(first, last), upper - lower
    while moved > TINY * max(1.0, lower):
        steps = moved * 10.0 ** -np.arange(1.0, 9.0)
        values, slopes = evaluate_finite(evaluate, lower + steps)
        highest, least = max(highest, values.max()), min(least, values.min())
        little = max(STILL * (highest - least), rounding_of(values))
        moves = (np.abs(values - first) > little) | (np.abs(slope) * steps > little)
        moves |= np.sign(slopes) * np.sign(slope) < 0
        if not moves[-1]:
            return Ruler(lower, upper, float(steps[np.flatnonzero([True, *moves])[-1]]))
        moved = float(steps[-1])
    return Ruler(lower, upper, moved)


def minimum_at(beta: float, ruler: Ruler, value: float | None = None) -> Minimum:
    """Return the minimum there, at a bound if it is no farther than rounding may lead from it."""
    for bound in (ruler.lower, ruler.upper):
        near = min(bound + ruler.grain, ruler.upper - ruler.lower)
        if abs(beta - bound) <= AT_BOUND * near:
            return Minimum(bound, at_bound=True, value=value if beta == bound else None)
    return Minimum(beta, value=value)


def scan(
    evaluate: Evaluate, ruler: Ruler, search: Search, known: Curve | None = None
) -> tuple[Curve, Cubics]:
    """Evaluate the curve until cubics between neighbours are a safe guide to its minimum."""
    if known is None:
        points = ruler.scan(search.points, search.step)
        known = points, *evaluate_finite(evaluate, points)
    return _refined(evaluate, ruler, search, known)


def is_flat(curve: Curve) -> bool:
    """Tell whether all differences may be rounding."""
    return span_of(curve[1]) <= rounding_of(curve[1])


def lowest(curve: Curve) -> Point:
    """Return the lowest of the points."""
    return _point(curve, int(curve[1].argmin()))


def brackets(curve: Curve, cubic: Cubics) -> list[tuple[Point, Point]]:
    """Return the pairs of neighbours, falling and rising, that may have the minimum between.

    Those that may be lower by no more than rounding of their own values have it beside the lowest
    point only.
    """
    _, values, slopes = curve
    lower = cubic.depth - cubic.doubt < values.min() - rounding_between(values)
    least = int(values.argmin())
    lower[max(least - 1, 0) : least + 1] = True
    inside = (slopes[:-1] < 0) & (slopes[1:] > 0) & lower
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
    halved the bracket.  It ends when the line through the last two slopes leads no farther than
    the relative ``tolerance``.
    """
    width, last = right.beta - left.beta, left
    for turn in range(1, MOST_TURNS):
        level = 1e3 * ROUNDING * max(abs(left.value), abs(right.value))
        if abs(right.value - left.value) > level:
            beta = ruler.turning(left, right)
        else:
            curvature = (right.slope - left.slope) / (right.beta - left.beta)
            beta = left.beta - left.slope / curvature
        if turn % 3 == 0:
            if right.beta - left.beta > width / 2:
                beta = float(ruler.middle(left.beta, right.beta))
            width = right.beta - left.beta
        found = evaluate_at(evaluate, beta)
        if not left.beta < beta < right.beta:
            break
        rise = (found.slope - last.slope) / (found.beta - last.beta)
        if abs(found.slope) <= rise * tolerance * ruler.unit(beta):
            break
        left, right, last = (left, found, found) if found.slope > 0 else (found, right, found)
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
        # Safety is judged by heights near the minimum: a curve may fall there from far above.
        least = values.min()
        low = cubic.depth - cubic.doubt < least
        nearby = np.maximum(values[:-1], values[1:])[low].max(initial=least) - least
        unsafe = cubic.doubt > np.maximum(1e-3 * nearby, rounding_between(values))
        # A large doubt hides structure that the depth knows nothing of.
        hidden = cubic.doubt > 0.05 * span_of(values)
        split = unsafe & (hidden | low)
        if not split.any() or len(points) > search.most:
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


def rounding_between(values: Array) -> Array:
    """Return the same for neighbours, of their own values: others may be far higher."""
    size = np.abs(values)
    return ROUNDING * np.maximum(size[:-1], size[1:])


def evaluate_finite(evaluate: Evaluate, points: Array) -> tuple[Array, Array]:
    """Return values and slopes, and refuse a curve that has none."""
    values, slopes = evaluate(points)
    bad = ~(np.isfinite(values) & np.isfinite(slopes))
    if bad.any():
        raise ValueError(f"the risk curve is not finite at beta = {float(points[bad][0])!r}")
    return values, slopes


def stochastic_minimise(
    slope: Callable[[float], float],
    ruler: Ruler,
    least_steps: int = 600,
    most_steps: int = 6000,
    tolerance: float = 0.01,
) -> tuple[float, bool]:
    r"""Minimise by noisy slopes: projected descent with an adaptive rate and averaged iterates.

    Betas are measured by the ruler's t, between 0 and T.  Step k is ``T / 8 / sqrt(k)`` times the
    slope in t in units of its recent root mean square.  The answer is the average of the last third
    of the iterates; it has converged when it differs from the average of the middle third by less
    than ``tolerance`` of T.

    Returns
    -------
    The minimum, and whether the iteration converged.
    """
    width = float(ruler.t(ruler.upper))
    t = float(ruler.t(np.clip(1.0, ruler.lower, ruler.upper)))
    square, seen = 0.0, 0.0
    path = [t]
    for step in range(1, most_steps + 1):
        beta = float(ruler.beta(t))
        noisy = slope(beta) * (beta + ruler.grain)
        square, seen = square + MEMORY * (noisy**2 - square), seen + MEMORY * (1 - seen)
        if square > 0:
            move = width / 8 / np.sqrt(step) * noisy / np.sqrt(square / seen)
            t = float(np.clip(t - move, 0.0, width))
        path.append(t)
        if step >= least_steps and step % 100 == 0:
            middle, last = _thirds(path)
            if abs(last - middle) < tolerance * width:
                return _within(ruler, last), True
    return _within(ruler, _thirds(path)[1]), False


def _within(ruler: Ruler, t: float) -> float:
    return float(np.clip(ruler.beta(t), ruler.lower, ruler.upper))


def _thirds(path: list[float]) -> tuple[float, float]:
    """Averages of the middle and the last third."""
    third = max(1, len(path) // 3)
    return float(np.mean(path[-2 * third : -third])), float(np.mean(path[-third:]))
