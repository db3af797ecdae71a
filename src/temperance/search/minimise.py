r"""Bounded scalar minimisation: a vectorised scan, then refinement; stochastic approximation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from temperance.data import Array
from temperance.search.log_scale import TINY, Cubics, Point, Ruler

MOST_REFINEMENTS = 12
MOST_TURNS = 60
AT_BOUND = 1e-8  # relative distance at which a minimum counts as being at a bound
NO_CHANGE = 1e-4  # share of a curve's span below which a difference is no change
ROUNDING = 64 * float(np.finfo(float).eps)  # relative differences that may be rounding errors
SMOOTHING = 0.02  # weight of the newest squared slope in their running mean

Evaluate = Callable[[Array], tuple[Array, Array]]
Curve = tuple[Array, Array, Array]  # points, values and slopes


class Minimum(NamedTuple):
    """A point on a curve; by default its minimum inside the bounds.

    If the strategy chose another point than the minimum, ``least`` is the beta of the minimum.
    ``value`` is the curve's value at ``beta``, if it was computed in the search.
    """

    beta: float
    at_bound: bool = False
    flat: bool = False
    searched: bool = True
    least: float | None = None
    value: float | None = None


class Search(NamedTuple):
    """Effort of the search for a minimum.

    The error bounds of cubics are larger than their errors on smooth curves, because a curve may
    have structure between two points.  ``error_factor`` multiplies them: 1 where points are cheap,
    less where each point takes a fit.  Posteriors change on the scale of log beta, so their risks
    have no narrower structure.
    """

    points: int  # of the first scan, see Ruler.scan
    step: float
    error_factor: float
    most_points: int = 400  # with more, refinement follows noise and not structure


THOROUGH, THRIFTY = Search(17, 0.7, 1.0), Search(4, 3.0, 0.25, 120)


def minimise(
    evaluate: Evaluate,
    ruler: Ruler,
    tolerance: float = 1e-9,
    search: Search = THOROUGH,
    known: Curve | None = None,
) -> Minimum:
    """Return the global minimum of a smooth curve between the bounds of a ruler.

    A scan brackets the local minima.  It is refined where a cubic through its values and slopes is
    not accurate enough.  Local minima that may be global are located where the slope is zero, to a
    relative ``tolerance``.  The ruler contains the scale of the curve, so that neither the bounds
    nor the unit of beta matter.  ``known`` are points of the curve that need no evaluation.  If the
    curve is flat, the result is the point closest to 1, which is Bayes.
    """
    curve, cubic = scan(evaluate, ruler, search, known)
    if is_flat(curve):
        return Minimum(float(np.clip(1.0, ruler.lower, ruler.upper)), flat=True)
    turns = [
        turning_point(evaluate, ruler, left, right, tolerance)
        for left, right in brackets(curve, cubic)
    ]
    # The scan's own points come last, so that a bound is chosen only if it is strictly lower.
    beta, value, _ = min([*turns, lowest(curve)], key=lambda point: point.value)
    # Known points may be inaccurate, so their values are not reported.
    return minimum_at(beta, ruler, value if known is None else None)


def ruler_for(evaluate: Evaluate, bounds: tuple[float, float]) -> Ruler:
    """Return the search scale of a curve: its offset is the smallest decade with a change."""
    lower, upper = bounds
    (first, last), (slope, _) = evaluate_finite(evaluate, np.array([lower, upper], dtype=float))
    highest, least, width = max(first, last), min(first, last), upper - lower
    while width > TINY * max(1.0, lower):
        steps = width * 10.0 ** -np.arange(1.0, 9.0)
        values, slopes = evaluate_finite(evaluate, lower + steps)
        highest, least = max(highest, values.max()), min(least, values.min())
        threshold = max(NO_CHANGE * (highest - least), rounding_of(values))
        changes = (np.abs(values - first) > threshold) | (np.abs(slope) * steps > threshold)
        changes |= np.sign(slopes) * np.sign(slope) < 0
        if not changes[-1]:
            return Ruler(lower, upper, float(steps[np.flatnonzero([True, *changes])[-1]]))
        width = float(steps[-1])
    return Ruler(lower, upper, width)


def minimum_at(beta: float, ruler: Ruler, value: float | None = None) -> Minimum:
    """Return the minimum, moved to a bound if it is within rounding error of it."""
    for bound in (ruler.lower, ruler.upper):
        near = min(bound + ruler.offset, ruler.upper - ruler.lower)
        if abs(beta - bound) <= AT_BOUND * near:
            return Minimum(bound, at_bound=True, value=value if beta == bound else None)
    return Minimum(beta, value=value)


def scan(
    evaluate: Evaluate, ruler: Ruler, search: Search, known: Curve | None = None
) -> tuple[Curve, Cubics]:
    """Evaluate the curve until cubics between neighbours are accurate near its minimum."""
    if known is None:
        points = ruler.scan(search.points, search.step)
        known = points, *evaluate_finite(evaluate, points)
    return _refined(evaluate, ruler, search, known)


def is_flat(curve: Curve) -> bool:
    """Return whether all differences may be rounding errors."""
    return span_of(curve[1]) <= rounding_of(curve[1])


def lowest(curve: Curve) -> Point:
    """Return the lowest of the points."""
    return _point(curve, int(curve[1].argmin()))


def brackets(curve: Curve, cubic: Cubics) -> list[tuple[Point, Point]]:
    """Return pairs of a falling and a rising neighbour that may have the minimum between them.

    Pairs that are lower by at most the rounding error of their own values count only next to the
    lowest point.
    """
    _, values, slopes = curve
    lower = cubic.depth - cubic.error < values.min() - rounding_between(values)
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
    """Return the point of zero slope between a falling and a rising point.

    Each step goes to the minimum of the cubic through both ends; if their values are equal up to
    rounding, to the zero of the line through their slopes; or to the middle if three steps have not
    halved the bracket.  It ends when the secant through the last two slopes predicts a step below
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
    """Split intervals where the cubic is inaccurate and that may contain the minimum."""
    points, values, slopes = curve
    cubic = ruler.cubics(points, values, slopes, search.error_factor)
    for _ in range(MOST_REFINEMENTS):
        # Accuracy is relative to heights near the minimum: a curve may be far higher elsewhere.
        least = values.min()
        low = cubic.depth - cubic.error < least
        nearby = np.maximum(values[:-1], values[1:])[low].max(initial=least) - least
        unsafe = cubic.error > np.maximum(1e-3 * nearby, rounding_between(values))
        # A large error bound may hide structure that the cubic does not show.
        hidden = cubic.error > 0.05 * span_of(values)
        split = unsafe & (hidden | low)
        if not split.any() or len(points) > search.most_points:
            break
        middle = ruler.middle(points[:-1][split], points[1:][split])
        more, slope = evaluate_finite(evaluate, middle)
        order = np.argsort(np.concatenate([points, middle]))
        points, values, slopes = (
            np.concatenate(both)[order]
            for both in ((points, middle), (values, more), (slopes, slope))
        )
        cubic = ruler.cubics(points, values, slopes, search.error_factor)
    return (points, values, slopes), cubic


def span_of(values: Array) -> float:
    """Return the difference between the largest and the smallest value."""
    return float(values.max() - values.min())


def rounding_of(values: Array) -> float:
    """Return the size of differences that may be rounding errors."""
    return ROUNDING * float(max(values.max(), -values.min()))


def rounding_between(values: Array) -> Array:
    """Return the same for neighbours, of their own values: others may be far higher."""
    size = np.abs(values)
    return ROUNDING * np.maximum(size[:-1], size[1:])


def evaluate_finite(evaluate: Evaluate, points: Array) -> tuple[Array, Array]:
    """Return values and slopes; refuse a curve that is not finite."""
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
    r"""Return a minimum from noisy slopes: projected descent, adaptive rate, averaged iterates.

    On the ruler's scale t is between 0 and T.  Step k is ``T / 8 / sqrt(k)`` times the slope in t,
    divided by its recent root mean square.  The result is the average of the last third of the
    iterates.  It has converged if it differs from the average of the middle third by less than
    ``tolerance`` of T.

    Returns
    -------
    The minimum, and whether the iteration converged.
    """
    width = float(ruler.t(ruler.upper))
    t = float(ruler.t(np.clip(1.0, ruler.lower, ruler.upper)))
    square, bias_correction = 0.0, 0.0
    path = [t]
    for step in range(1, most_steps + 1):
        beta = float(ruler.beta(t))
        noisy = slope(beta) * (beta + ruler.offset)
        square, bias_correction = (
            square + SMOOTHING * (noisy**2 - square),
            bias_correction + SMOOTHING * (1 - bias_correction),
        )
        if square > 0:
            move = width / 8 / np.sqrt(step) * noisy / np.sqrt(square / bias_correction)
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
    """Return the averages of the middle and the last third."""
    third = max(1, len(path) // 3)
    return float(np.mean(path[-2 * third : -third])), float(np.mean(path[-third:]))
