r"""Minimisation with a sketch: a curve that costs less and is a little wrong.

The sketch is searched, and the curve is asked where the sketch is smallest.  There the differences
of their values, and of their slopes in log beta, show how good the sketch is nearby: heights above
the minimum are taken to be wrong by at most

    TRUST (|difference of values| + |difference of slopes|),

or by as little as cannot hide them.  Of other valleys, farther off, this says less: the curve is
asked there as well, unless they are higher by much, and at a bound that is next.  If nothing else
can be as low, Newton's method finds the curve's own minimum; where something can, the curve itself
is asked.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.search.log_scale import Cubics, Point, Ruler
from temperance.search.minimise import (
    ROUNDING,
    THRIFTY,
    Curve,
    Evaluate,
    Minimum,
    Search,
    brackets,
    evaluate_at,
    evaluate_finite,
    lowest,
    minimise,
    minimum_at,
    scan,
    turning_point,
)

TRUST = 4.0
MUCH = 0.05  # of the sketch's span
NEAR = 0.1  # distance in log beta over which a sketch's noise may hide a bound
LOOSE = 1e-3  # relative accuracy to which the sketch's minimum is found
STEP = 0.03  # part of the way to a bracket's end over which its curvature is taken
MOST_STEPS = 8
MOST_POINTS = 60  # beyond them it is the sketch's noise that was refined


class Valley(NamedTuple):
    """Where a sketch is smallest, between two betas."""

    left: float
    bottom: Point
    right: float


def minimise_by_sketch(
    evaluate: Evaluate,
    sketch: Evaluate,
    ruler: Ruler,
    tolerance: float = 1e-9,
    search: Search = THRIFTY,
) -> Minimum:
    """Find the global minimum of a smooth curve, as `minimise` does, with fewer of its points."""
    curve, cubic = scan(sketch, ruler, search._replace(most=MOST_POINTS))
    if len(curve[0]) > MOST_POINTS:
        return minimise(evaluate, ruler, tolerance, search)
    curve, valley = _with_valleys(sketch, ruler, curve, cubic)
    first = evaluate_at(evaluate, valley.bottom.beta)
    unsure = _unsure(curve, valley.bottom, first, ruler)
    if not unsure.any():
        beta = (
            _at_bound(first, ruler)
            if first.beta in (ruler.lower, ruler.upper)
            else _settled(evaluate, sketch, valley, first, tolerance * ruler.unit(first.beta))
        )
        if beta is not None:
            return minimum_at(beta, ruler)
    known = _corrected(evaluate, curve, unsure, first) if unsure.any() else None
    return _or_bound(minimise(evaluate, ruler, tolerance, search, known), evaluate, ruler)


def _with_valleys(
    sketch: Evaluate, ruler: Ruler, curve: Curve, cubic: Cubics
) -> tuple[Curve, Valley]:
    """Search the sketch's valleys, and return what is known of it and the lowest."""
    bottom = lowest(curve)
    valleys = [Valley(bottom.beta, bottom, bottom.beta)]
    for left, right in brackets(curve, cubic):
        turn = turning_point(sketch, ruler, left, right, LOOSE)
        valleys.append(Valley(left.beta, turn, right.beta))
    bottoms = np.array([valley.bottom for valley in valleys]).T
    points, values, slopes = np.concatenate([np.stack(curve), bottoms], axis=1)
    points, places = np.unique(points, return_index=True)
    valley = min(valleys, key=lambda valley: valley.bottom.value)
    return (points, values[places], slopes[places]), valley


def _unsure(curve: Curve, bottom: Point, first: Point, ruler: Ruler) -> NDArray[np.bool_]:
    """Tell which other points may be as low, when the curve has this first point at the bottom."""
    points, values, _ = curve
    heights = values - bottom.value
    turned = abs(first.slope - bottom.slope) * (bottom.beta + ruler.grain)
    error = TRUST * (abs(first.value - bottom.value) + turned) + ROUNDING * np.abs(values)
    around = np.pad(heights, 1, constant_values=np.inf)
    valleys = (heights <= around[:-2]) & (heights <= around[2:])
    low = (heights <= error) | (valleys & (heights <= MUCH * np.ptp(values)))
    at = int(np.searchsorted(points, bottom.beta))
    low[0] |= at == 1
    low[-1] |= at == len(points) - 2
    low[at] = False
    return low


def _corrected(
    evaluate: Evaluate, sketched: Curve, unsure: NDArray[np.bool_], first: Point
) -> Curve:
    """Ask the curve where the sketch is unsure; elsewhere it errs as it does next to there.

    What is surely higher stays so: an error is at most half a height.
    """
    points, sketch, slopes = sketched
    values, slopes, known = sketch.copy(), slopes.copy(), points == first.beta
    values[known], slopes[known] = first[1:]
    values[unsure], slopes[unsure] = evaluate_finite(evaluate, points[unsure])
    known |= unsure
    errors = np.interp(points, points[known], (sketch - values)[known])
    values[~known] -= np.minimum(errors, (sketch - sketch.min()) / 2)[~known]
    return points, values, slopes


def _or_bound(found: Minimum, evaluate: Evaluate, ruler: Ruler) -> Minimum:
    """Return a bound beside the minimum where the curve is lower and the sketch was too high."""
    for bound in (ruler.lower, ruler.upper):
        if 0 < abs(ruler.t(bound) - ruler.t(found.beta)) < NEAR:
            there, here = (evaluate_at(evaluate, beta).value for beta in (bound, found.beta))
            if there < here:
                return Minimum(bound, at_bound=True, value=there)
    return found


def _at_bound(point: Point, ruler: Ruler) -> float | None:
    """Return the bound if the curve falls towards it."""
    falls = point.slope <= 0 if point.beta == ruler.upper else point.slope >= 0
    return point.beta if falls else None


def _settled(
    evaluate: Evaluate, sketch: Evaluate, valley: Valley, here: Point, accuracy: float
) -> float | None:
    """Find the curve's minimum in the valley by Newton's method; nothing if that leads out."""
    if valley.left == valley.right:
        return None
    curvature = _curvature(sketch, valley)
    for _ in range(MOST_STEPS):
        if not curvature > 0:
            return None
        if abs(here.slope) <= curvature * accuracy:
            return here.beta
        beta = here.beta - here.slope / curvature
        if not valley.left < beta < valley.right or beta == here.beta:
            return None
        there = evaluate_at(evaluate, beta)
        here, curvature = there, (there.slope - here.slope) / (there.beta - here.beta)
    return None


def _curvature(sketch: Evaluate, valley: Valley) -> float:
    """Return how fast the sketch's slope rises, over a step on which its noise is small."""
    left, bottom, right = valley
    step = STEP * max(right - bottom.beta, left - bottom.beta, key=abs)
    return (evaluate_at(sketch, bottom.beta + step).slope - bottom.slope) / step
