r"""Bounded scalar minimisation: a vectorised scan, then refinement; stochastic approximation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import optimize

from temperance.types import Array

MOST_REFINEMENTS = 12

Evaluate = Callable[[Array], tuple[Array, Array]]


class Minimum(NamedTuple):
    """Where a curve is smallest within bounds."""

    beta: float
    at_bound: bool
    flat: bool


def scan_points(lower: float, upper: float, count: int = 17) -> Array:
    """Evenly spaced points joined with points that crowd towards the lower bound.

    Curves move on the scale of the data's information, 1 / (n lam): near zero all scales matter.
    """
    steps = np.union1d(np.linspace(0.0, 1.0, count), np.geomspace(1e-5, 1.0, count))
    points = lower + (upper - lower) * steps
    points[-1] = upper
    return points


def minimise(evaluate: Evaluate, bounds: tuple[float, float], tolerance: float = 1e-9) -> Minimum:
    """Find the global minimum of a smooth curve over ``bounds``.

    A scan, refined wherever a cubic through its values and slopes is no safe guide, brackets the
    local minima; those that can be global are located by root finding on the slope.  On a flat
    curve the answer is the point closest to 1: without evidence, Bayes.
    """
    lower, upper = bounds
    points, values, slopes = _scan(evaluate, lower, upper)
    if np.ptp(values) <= 64 * np.finfo(float).eps * np.abs(values).max():
        return Minimum(float(np.clip(1.0, lower, upper)), at_bound=False, flat=True)
    # Points of the scan first, so that a bound wins only if it is strictly lower.
    found = [int(np.argmin(values))]
    betas, heights = list(points[found]), list(values[found])
    cubic = _Cubics(points, values, slopes)
    inside = (slopes[:-1] < 0) & (slopes[1:] > 0) & (cubic.depth - cubic.doubt < values.min())
    for i in np.flatnonzero(inside):
        root = optimize.brentq(
            lambda beta: float(evaluate(np.array([beta]))[1][0]),
            points[i],
            points[i + 1],
            xtol=tolerance,
        )
        betas.append(root)
        heights.append(evaluate(np.array([root]))[0][0])
    beta = float(betas[int(np.argmin(heights))])
    return Minimum(beta, at_bound=beta in (lower, upper), flat=False)


def _scan(evaluate: Evaluate, lower: float, upper: float) -> tuple[Array, Array, Array]:
    """Evaluate the curve until cubics between neighbours are a safe guide to its minimum."""
    points = scan_points(lower, upper)
    values, slopes = _finite(evaluate, points)
    for _ in range(MOST_REFINEMENTS):
        cubic = _Cubics(points, values, slopes)
        unsafe = cubic.doubt > 1e-3 * np.ptp(values)
        split = unsafe & (cubic.depth - cubic.doubt < values.min())
        if not split.any():
            break
        middle = 0.5 * (points[:-1] + points[1:])[split]
        more, slope = _finite(evaluate, middle)
        order = np.argsort(np.concatenate([points, middle]))
        points, values, slopes = (
            np.concatenate(both)[order]
            for both in ((points, middle), (values, more), (slopes, slope))
        )
    return points, values, slopes


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
        # p(t) = v + first t + c t^2 + d t^3 on [0, 1]; the cubic term is the one to doubt.
        c, d = 3 * rise - 2 * first - last, first + last - 2 * rise
        root = np.sqrt(np.maximum(c**2 - 3 * first * d, 0.0))
        # The minimum of a cubic is the root of its derivative with positive curvature.
        with np.errstate(divide="ignore", invalid="ignore"):
            turning = np.where(c > 0, -first / (c + root), (root - c) / (3 * d))
        t = np.clip(np.nan_to_num(turning, nan=0.0), 0.0, 1.0)
        base = values[:-1]
        inner = base + t * (first + t * (c + t * d))
        self.depth = np.minimum(inner, np.minimum(base, values[1:]))
        self.doubt = np.abs(d)


def stochastic_minimise(
    slope: Callable[[float], float],
    bounds: tuple[float, float],
    most_steps: int = 2000,
    window: int = 100,
    tolerance: float = 0.005,
) -> tuple[float, bool]:
    r"""Minimise by noisy slopes: projected descent with an adaptive rate and averaged iterates.

    The rate is that of AdaGrad, ``(upper - lower) / 4 / sqrt(sum of squared slopes)``.  The answer
    is the average over the second half of the iterates; it has converged when the averages of the
    last two windows differ by less than ``tolerance`` of the bounds' width and the average of the
    last is as precise.

    Returns
    -------
    The minimum, and whether the iteration converged.
    """
    lower, upper = bounds
    width = upper - lower
    beta, squares = float(np.clip(1.0, lower, upper)), 0.0
    path = [beta]
    for step in range(1, most_steps + 1):
        noisy = slope(beta)
        squares += noisy**2
        if squares > 0:
            beta = float(np.clip(beta - width / 4 * noisy / np.sqrt(squares), lower, upper))
        path.append(beta)
        if step % window == 0 and step >= 2 * window:
            last, before = np.array(path[-window:]), np.array(path[-2 * window : -window])
            means = last.reshape(10, -1).mean(axis=1)
            error = means.std(ddof=1) / np.sqrt(len(means))
            if abs(last.mean() - before.mean()) + error < tolerance * width:
                return float(np.mean(path[len(path) // 2 :])), True
    return float(np.mean(path[len(path) // 2 :])), False
