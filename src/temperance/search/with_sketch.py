r"""Minimisation with a sketch: a cheap approximation of the curve.

The sketch is searched first, and the curve is evaluated where the sketch is smallest.  There the
differences of their values, and of their slopes in log beta, estimate the error of the sketch:
heights above the minimum are assumed to have errors of at most

    ERROR_FACTOR (|difference of values| + |difference of slopes|),

or of rounding.  This estimate is less reliable for other local minima: the curve is evaluated there
as well, unless they are much higher, and at a bound next to the minimum.  If no other point can be
as low, Newton's method finds the curve's own minimum.  Otherwise the curve itself is searched.
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

ERROR_FACTOR = 4.0
LARGE_GAP = 0.05  # share of the sketch's span: local minima that are higher are ignored
NEAR = 0.1  # distance in log beta over which a sketch's error may hide a bound
LOOSE = 1e-3  # relative accuracy to which the sketch's minimum is found
STEP = 0.03  # share of the distance to a bracket's end over which curvature is estimated
MOST_STEPS = 8
MOST_POINTS = 60  # with more, the scan has followed the sketch's noise


class Valley(NamedTuple):
    """A local minimum of a sketch, between two betas."""

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
    """Return the global minimum of a smooth curve, as `minimise` does, with fewer evaluations."""
    curve, cubic = scan(sketch, ruler, search._replace(most_points=MOST_POINTS))
    if len(curve[0]) > MOST_POINTS:
        return minimise(evaluate, ruler, tolerance, search)
    curve, valley = _with_valleys(sketch, ruler, curve, cubic)
    first = evaluate_at(evaluate, valley.bottom.beta)
    uncertain = _uncertain(curve, valley.bottom, first, ruler)
    if not uncertain.any():
        beta = (
            _at_bound(first, ruler)
            if first.beta in (ruler.lower, ruler.upper)
            else _newton_minimum(
                evaluate, sketch, valley, first, tolerance * ruler.unit(first.beta)
            )
        )
        if beta is not None:
            return minimum_at(beta, ruler)
    known = _corrected(evaluate, curve, uncertain, first) if uncertain.any() else None
    return _or_bound(minimise(evaluate, ruler, tolerance, search, known), evaluate, ruler)


def _with_valleys(
    sketch: Evaluate, ruler: Ruler, curve: Curve, cubic: Cubics
) -> tuple[Curve, Valley]:
    """Return the sketch with its local minima added, and its lowest local minimum."""
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


def _uncertain(curve: Curve, bottom: Point, first: Point, ruler: Ruler) -> NDArray[np.bool_]:
    """Return which other points may be as low as the curve's point at the sketch's minimum."""
    points, values, _ = curve
    heights = values - bottom.value
    slope_error = abs(first.slope - bottom.slope) * (bottom.beta + ruler.offset)
    error = ERROR_FACTOR * (abs(first.value - bottom.value) + slope_error) + ROUNDING * np.abs(
        values
    )
    around = np.pad(heights, 1, constant_values=np.inf)
    valleys = (heights <= around[:-2]) & (heights <= around[2:])
    low = (heights <= error) | (valleys & (heights <= LARGE_GAP * np.ptp(values)))
    at = int(np.searchsorted(points, bottom.beta))
    low[0] |= at == 1
    low[-1] |= at == len(points) - 2
    low[at] = False
    return low


def _corrected(
    evaluate: Evaluate, sketched: Curve, uncertain: NDArray[np.bool_], first: Point
) -> Curve:
    """Return the curve at uncertain points, and elsewhere the sketch with interpolated errors.

    Points that are certainly higher stay higher: an error is at most half the height.
    """
    points, sketch, slopes = sketched
    values, slopes, known = sketch.copy(), slopes.copy(), points == first.beta
    values[known], slopes[known] = first[1:]
    values[uncertain], slopes[uncertain] = evaluate_finite(evaluate, points[uncertain])
    known |= uncertain
    errors = np.interp(points, points[known], (sketch - values)[known])
    values[~known] -= np.minimum(errors, (sketch - sketch.min()) / 2)[~known]
    return points, values, slopes


def _or_bound(found: Minimum, evaluate: Evaluate, ruler: Ruler) -> Minimum:
    """Return the minimum, or a bound close to it where the curve is lower."""
    for bound in (ruler.lower, ruler.upper):
        if 0 < abs(ruler.t(bound) - ruler.t(found.beta)) < NEAR:
            there, here = (evaluate_at(evaluate, beta).value for beta in (bound, found.beta))
            if there < here:
                return Minimum(bound, at_bound=True, value=there)
    return found


def _at_bound(point: Point, ruler: Ruler) -> float | None:
    """Return the bound if the curve decreases towards it, otherwise None."""
    falls = point.slope <= 0 if point.beta == ruler.upper else point.slope >= 0
    return point.beta if falls else None


def _newton_minimum(
    evaluate: Evaluate, sketch: Evaluate, valley: Valley, here: Point, accuracy: float
) -> float | None:
    """Return the curve's local minimum by Newton's method; None if it leaves the interval."""
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
    """Return the sketch's curvature, over a step that is long compared with its noise."""
    left, bottom, right = valley
    step = STEP * max(right - bottom.beta, left - bottom.beta, key=abs)
    return (evaluate_at(sketch, bottom.beta + step).slope - bottom.slope) / step
