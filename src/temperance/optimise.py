r"""Bounded scalar minimisation: a vectorised scan, then refinement; stochastic approximation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from temperance.types import Array

MANY, FEW = 17, 7  # points of the first scan, evenly spaced and crowded, see scan_points
MOST_REFINEMENTS = 12
MOST_TURNS = 60
MOST_POINTS = 400  # beyond them it is noise that is refined, not structure
MEMORY = 0.02  # weight of the newest squared slope in their running mean

Evaluate = Callable[[Array], tuple[Array, Array]]


class Point(NamedTuple):
    """A point of a curve."""

    beta: float
    value: float
    slope: float


class Minimum(NamedTuple):
    """A point on a curve, and what it is: by default the smallest, inside the bounds."""

    beta: float
    at_bound: bool = False
    flat: bool = False
    searched: bool = True


def scan_points(lower: float, upper: float, count: int = MANY) -> Array:
    """Evenly spaced points joined with points that crowd towards the lower bound.

    Curves move on the scale of the data's information, 1 / (n lam): near zero all scales matter.
    """
    steps = np.union1d(np.linspace(0.0, 1.0, count), np.geomspace(1e-5, 1.0, count))
    points = lower + (upper - lower) * steps
    points[-1] = upper
    return points


def minimise(
    evaluate: Evaluate, bounds: tuple[float, float], tolerance: float = 1e-9, scan: int = MANY
) -> Minimum:
    """Find the global minimum of a smooth curve over ``bounds``.

    A scan, refined wherever a cubic through its values and slopes is no safe guide, brackets the
    local minima; those that can be global are located where the slope vanishes.  On a flat curve
    the answer is the point closest to 1: without evidence, Bayes.
    """
    lower, upper = bounds
    points, values, slopes = _scan(evaluate, lower, upper, scan)
    if np.ptp(values) <= _rounding(values):
        return Minimum(float(np.clip(1.0, lower, upper)), flat=True)
    betas: list[float] = []
    heights: list[float] = []
    cubic = _Cubics(points, values, slopes)
    inside = (slopes[:-1] < 0) & (slopes[1:] > 0) & (cubic.depth - cubic.doubt < values.min())
    for i in np.flatnonzero(inside):
        left, right = (Point(points[j], values[j], slopes[j]) for j in (i, i + 1))
        turn = _turning_point(evaluate, left, right, tolerance * min(1.0, upper - lower))
        betas.append(turn.beta)
        heights.append(turn.value)
    # The scan's own points last, so that a bound wins only if it is strictly lower.
    betas.append(float(points[np.argmin(values)]))
    heights.append(float(values.min()))
    beta = betas[int(np.argmin(heights))]
    return Minimum(beta, at_bound=beta in (lower, upper))


def _turning_point(evaluate: Evaluate, left: Point, right: Point, tolerance: float) -> Point:
    """Find where the slope vanishes between a falling and a rising point.

    Each step goes where the cubic through both ends turns, or to the middle when three steps have
    not halved the bracket.
    """
    width = right.beta - left.beta
    for turn in range(1, MOST_TURNS):
        beta = _turning_guess(left, right)
        if turn % 3 == 0:
            if right.beta - left.beta > width / 2:
                beta = 0.5 * (left.beta + right.beta)
            width = right.beta - left.beta
        value, slope = evaluate(np.array([beta]))
        found = Point(beta, float(value[0]), float(slope[0]))
        curvature = (right.slope - left.slope) / (right.beta - left.beta)
        if abs(found.slope) <= curvature * tolerance or not left.beta < beta < right.beta:
            break
        left, right = (left, found) if found.slope > 0 else (found, right)
    return found


def _turning_guess(left: Point, right: Point) -> float:
    """Return where the cubic turns; or the line of the slopes, if the values are all rounding."""
    points, values, slopes = (np.array(ends) for ends in zip(left, right, strict=True))
    if np.ptp(values) > 1e3 * _rounding(values):
        return float(_Cubics(points, values, slopes).turning[0])
    return float(points[0] - slopes[0] * np.ptp(points) / (slopes[1] - slopes[0]))


def _scan(evaluate: Evaluate, lower: float, upper: float, count: int) -> tuple[Array, Array, Array]:
    """Evaluate the curve until cubics between neighbours are a safe guide to its minimum."""
    points = scan_points(lower, upper, count)
    values, slopes = _finite(evaluate, points)
    for _ in range(MOST_REFINEMENTS):
        cubic = _Cubics(points, values, slopes)
        unsafe = cubic.doubt > max(1e-3 * float(np.ptp(values)), _rounding(values))
        # A large doubt hides structure that the depth knows nothing of.
        hidden = cubic.doubt > 0.05 * np.ptp(values)
        split = unsafe & (hidden | (cubic.depth - cubic.doubt < values.min()))
        if not split.any() or len(points) > MOST_POINTS:
            break
        middle = 0.5 * (points[:-1] + points[1:])[split]
        more, slope = _finite(evaluate, middle)
        order = np.argsort(np.concatenate([points, middle]))
        points, values, slopes = (
            np.concatenate(both)[order]
            for both in ((points, middle), (values, more), (slopes, slope))
        )
    return points, values, slopes


def _rounding(values: Array) -> float:
    """Differences that may be rounding."""
    return float(64 * np.finfo(float).eps * np.abs(values).max())


def _finite(evaluate: Evaluate, points: Array) -> tuple[Array, Array]:
    values, slopes = evaluate(points)
    bad = ~(np.isfinite(values) & np.isfinite(slopes))
    if bad.any():
        raise ValueError(f"the risk curve is not finite at beta = {float(points[bad][0])!r}")
    return values, slopes


class _Cubics:
    """Cubics between neighbouring points: how deep they go, and how far to trust that."""

    def __init__(self, points: Array, values: Array, slopes: Array) -> None:
        width = np.diff(points)
        first, last = slopes[:-1] * width, slopes[1:] * width
        rise = np.diff(values)
        # p(t) = v + first t + c t^2 + d t^3 on [0, 1]
        c, d = 3 * rise - 2 * first - last, first + last - 2 * rise
        root = np.sqrt(np.maximum(c**2 - 3 * first * d, 0.0))
        # The minimum of a cubic is the root of its derivative with positive curvature.
        with np.errstate(divide="ignore", invalid="ignore"):
            turning = np.where(c > 0, -first / (c + root), (root - c) / (3 * d))
        t = np.clip(np.nan_to_num(turning, nan=0.0), 0.0, 1.0)
        self.turning = points[:-1] + t * width
        base = values[:-1]
        inner = base + t * (first + t * (c + t * d))
        self.depth = np.minimum(inner, np.minimum(base, values[1:]))
        # Doubt the cubic term, and curvature that jumps where two cubics meet: h^2/8 times that.
        curvature = np.stack([2 * c, 2 * c + 6 * d]) / width**2
        jump = np.pad(np.abs(curvature[0, 1:] - curvature[1, :-1]), 1)
        self.doubt = np.abs(d) + width**2 / 8 * np.maximum(jump[:-1], jump[1:])


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
