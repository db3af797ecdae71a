"""The minimum is the global one, wherever it hides."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from temperance.search.log_scale import Cubics, Point, Ruler, Scale
from temperance.search.minimise import (
    THOROUGH,
    THRIFTY,
    Minimum,
    minimise,
    minimum_at,
    ruler_for,
    stochastic_minimise,
)

from temperance.plans import Pairs
from temperance.strategies import selection

TINY = 1e-200
RULER = Ruler(0.0, 3.0, 0.1)


def curve(f):
    """Value and slope of an analytic function, the slope by a complex step."""
    return lambda beta: (f(beta), np.imag(f(beta + TINY * 1j)) / TINY)


def least(evaluate, bounds, **options):
    """Return the minimum of a curve whose scale nobody knows."""
    return minimise(evaluate, ruler_for(evaluate, bounds), **options)


def brute_force(f, bounds, points=200_001):
    """Grid, then a local search around its best point."""
    grid = np.linspace(*bounds, points)
    best = int(np.argmin(f(grid)))
    around = grid[max(best - 1, 0)], grid[min(best + 1, points - 1)]
    polished = minimize_scalar(f, bounds=around, method="bounded", options={"xatol": 1e-10}).x
    return min((grid[best], polished), key=f)


def well(x, centre, width, depth=1.0):
    return -depth * np.exp(-(((x - centre) / width) ** 2) / 2)


def nearer_one(beta):
    return well(beta, 1.0, 0.5, 0.8)


# name: (curve, bounds, where it is smallest)
KNOWN = {
    "inside": (lambda b: (b - 1.3) ** 2, (0, 3), 1.3),
    "inside, quartic": (lambda b: (b - 1.3) ** 4 + (b - 1.3) ** 2, (0, 3), 1.3),
    "on a point of the scan": (lambda b: (b - 1.5) ** 2, (0, 3), 1.5),
    "at the lower bound": (lambda b: np.log1p(b), (0, 3), 0.0),
    "at the lower bound, level": (lambda b: b**2, (0, 3), 0.0),
    "at the upper bound": (lambda b: -b, (0, 3), 3.0),
    "at the upper bound, level": (lambda b: (b - 3) ** 2, (0, 3), 3.0),
    "at the upper bound, saturated": (lambda b: 1 / (1 + 1e4 * b), (0, 3), 3.0),
    "just inside the lower bound": (lambda b: (b - 1e-4) ** 2, (0, 3), 1e-4),
    "just inside the upper bound": (lambda b: (b - 3 + 1e-4) ** 2, (0, 3), 3 - 1e-4),
    # 1/(1 + s b) + s b / 4 is smallest at 1/s
    "steep, 1e-4 from zero": (lambda b: 1 / (1 + 1e4 * b) + 2.5e3 * b, (0, 3), 1e-4),
    "steep, 1e-6 from zero": (lambda b: 1 / (1 + 1e6 * b) + 2.5e5 * b, (0, 3), 1e-6),
    "away from zero": (lambda b: (b - 4.321) ** 2, (2, 7), 4.321),
    "away from zero, lower": (lambda b: b, (2, 7), 2.0),
    "away from zero, upper": (lambda b: -b, (2, 7), 7.0),
    "far from zero": (lambda b: np.cosh(3 * (b - 100.7)), (100, 101), 100.7),
    "far from zero, near the bound": (lambda b: (b - 100 - 1e-5) ** 2, (100, 101), 100 + 1e-5),
    "around Bayes only": (lambda b: (b - 1) ** 2, (0.999, 1.001), 1.0),
    "large and level": (lambda b: 1e6 + (b - 1.3) ** 2, (0, 3), 1.3),
    "maximum inside": (lambda b: -((b - 1.2) ** 2), (0, 3), 3.0),
}
# Several minima; brute force says which is the lowest.
SEVERAL = {
    "cosine": (lambda b: np.cos(5 * b) - 0.1 * b, (0, 3)),
    "cosine away from zero": (lambda b: np.cos(5 * b) - 0.1 * b, (2, 7)),
    "ten waves": (lambda b: np.cos(20 * b) + 0.3 * np.cos(3.3 * b + 1), (0, 3)),
    "the narrow one": (lambda b: nearer_one(b) + well(b, 2.26, 0.03), (0, 3)),
    "the narrow one in the middle of a cell": (
        lambda b: nearer_one(b) + well(b, 2.53125, 0.03),
        (0, 3),
    ),
    "the wide one": (lambda b: well(b, 1.0, 0.5) + well(b, 2.26, 0.03, 0.9), (0, 3)),
    "next to the upper bound": (lambda b: nearer_one(b) + well(b, 2.97, 0.05), (0, 3)),
    "next to the lower bound": (lambda b: nearer_one(b) + well(b, 0.01, 0.005), (0, 3)),
    "beyond the upper bound": (lambda b: nearer_one(b) + well(b, 3.01, 0.1), (0, 3)),
    "nearly level": (lambda b: well(b, 0.8, 0.2) + well(b, 2.3, 0.2, 1 + 1e-6), (0, 3)),
    "two rates": (lambda b: 1 / (1 + 300 * b) + b - 2.1 / (1 + (b - 2.5) ** 2 * 9), (0, 3)),
}


@pytest.mark.parametrize("f, bounds, expected", KNOWN.values(), ids=KNOWN)
def test_finds_the_known_minimum(f, bounds, expected):
    minimum = least(curve(f), bounds)
    assert minimum.beta == pytest.approx(expected, rel=0, abs=min(1e-6, 1e-3 * expected + 1e-15))
    assert minimum.at_bound == (expected in bounds)
    assert not minimum.flat


@pytest.mark.parametrize("f, bounds", SEVERAL.values(), ids=SEVERAL)
def test_finds_the_lowest_of_several(f, bounds):
    assert least(curve(f), bounds).beta == pytest.approx(brute_force(f, bounds), abs=1e-6)


def test_a_scan_alone_would_miss_the_narrow_one():
    f, bounds = SEVERAL["the narrow one in the middle of a cell"]
    points = ruler_for(curve(f), bounds).scan(THOROUGH.points, THOROUGH.step)
    scanned = points[np.argmin(f(points))]
    assert abs(scanned - brute_force(f, bounds)) > 1


@pytest.mark.parametrize("scale", [1e-100, 1e-12, 1e12, 1e100])
@pytest.mark.parametrize("offset", [0.0, -1.0, 3.0])
def test_the_unit_of_risk_does_not_matter(scale, offset):
    minimum = least(curve(lambda b: scale * (np.cos(5 * b) - 0.1 * b + offset)), (0, 3))
    reference = least(curve(lambda b: np.cos(5 * b) - 0.1 * b), (0, 3))
    assert minimum.beta == pytest.approx(reference.beta, abs=1e-8)


@pytest.mark.parametrize("upper", [1e-9, 1e-3, 1e3, 1e9])
def test_the_unit_of_beta_does_not_matter(upper):
    minimum = least(curve(lambda b: np.cos(15 * b / upper) - 0.3 * b / upper), (0, upper))
    reference = least(curve(lambda b: np.cos(15 * b) - 0.3 * b), (0, 1))
    assert minimum.beta / upper == pytest.approx(reference.beta, abs=1e-8)


@pytest.mark.parametrize(
    "bounds, closest", [((0, 3), 1.0), ((2, 7), 2.0), ((0, 0.5), 0.5)], ids=str
)
@pytest.mark.parametrize("level", [0.0, 1.0, -1e9, 1e-300])
@pytest.mark.parametrize("rounding", [0.0, 2e-16, 2e-15])
def test_a_flat_curve_leads_to_bayes(bounds, closest, level, rounding):
    evaluated = 0

    def evaluate(beta):
        nonlocal evaluated
        evaluated += len(beta)
        noise = level * rounding * np.sin(1e9 * beta)
        return level + noise, noise

    assert least(evaluate, bounds) == Minimum(closest, at_bound=False, flat=True)
    assert evaluated < 100


def test_a_small_slope_is_not_flat():
    assert least(curve(lambda b: 1 + 1e-12 * b), (0, 3)) == Minimum(
        0.0, at_bound=True, flat=False, value=1.0
    )


@pytest.mark.parametrize("deeper, other", [(0.8, 2.3), (2.3, 0.8)])
def test_rounding_of_a_far_higher_point_hides_no_valley(deeper, other):
    def f(b):
        wells = well(b, deeper, 0.2, 1 + 1e-5) + well(b, other, 0.2)
        return 2 + wells + 1e12 / (1 + (b / 1e-4) ** 10)

    ruler = Ruler(0.0, 3.0, 1e-5)
    assert minimise(curve(f), ruler).beta == pytest.approx(deeper, abs=0.01)


@pytest.mark.parametrize("gap", [0.8, 1.2, 1.6])
def test_far_higher_points_do_not_end_the_refinement(gap):
    def f(b):  # two valleys below a curve that falls from 1e19
        t = np.log(b + 1e-20)
        valleys = well(t, -1.0, 0.25) + well(t, gap - 1.0, 0.25, 0.8)
        return 5 + valleys + 0.1 / (b + 1e-20) + 0.1 * b

    found = minimise(curve(f), Ruler(0.0, 1e4, 1e-20), search=THRIFTY)
    assert found.beta == pytest.approx(brute_force(f, (0.01, 10.0)), rel=1e-6)


def test_noise_is_not_refined_without_end():
    evaluated = 0

    def evaluate(beta):
        nonlocal evaluated
        evaluated += len(beta)
        return 1 + 1e-11 * np.sin(1e9 * beta), 1e-11 * np.cos(1e9 * beta)

    least(evaluate, (0, 3))
    assert evaluated < 5000


def test_real_curves_cost_few_evaluations():
    calls = []
    f = curve(lambda b: 1 / (1 + 30 * b) + 0.5 / (1 + 2 * b) + 0.1 * b)
    least(lambda beta: calls.append(beta) or f(beta), (0, 3))
    assert sum(map(len, calls)) < 60


@pytest.mark.parametrize("lower", [0.0, 0.4])
def test_one_cubic_turns_where_many_do(lower):
    rng, ruler = np.random.default_rng(0), Ruler(lower, 3.0, 1e-4)
    for _ in range(200):
        betas = np.sort(rng.uniform(lower, 3.0, 2))
        values, slopes = rng.standard_normal(2), rng.exponential(size=2) * [-1.0, 1.0]
        mark = ruler.cubics(betas, values, slopes).turning[0]
        left, right = (Point(*ends) for ends in zip(betas, values, slopes, strict=True))
        expected = ruler.beta(mark)
        assert ruler.turning(left, right) == pytest.approx(expected, rel=1e-9)


def test_cubics_are_drawn_once_for_each_evaluation(monkeypatch):
    evaluated, drawn = [], []
    cubics = Ruler.cubics
    monkeypatch.setattr(Ruler, "cubics", lambda *given: drawn.append(given) or cubics(*given))
    f = curve(lambda b: 1 / (1 + 30 * b) + 0.5 / (1 + 2 * b) + 0.1 * b)
    least(lambda beta: evaluated.append(beta) or f(beta), (0, 3))
    assert 1 <= len(drawn) < len(evaluated)  # and none where one cubic's turning is all


def test_a_plateau_is_as_good_anywhere():
    minimum = least(lambda b: (np.maximum(1 - b, 0) ** 3, -3 * np.maximum(1 - b, 0) ** 2), (0, 3))
    assert 1 <= minimum.beta <= 3
    shelf = least(  # a shelf at 0.2 on the way down to 2.5
        lambda b: (
            np.maximum(1 - b, 0) ** 3 - np.maximum(b - 2, 0) ** 3 * (10 / 3 - b),
            -3 * np.maximum(1 - b, 0) ** 2 - np.maximum(b - 2, 0) ** 2 * (12 - 4 * b),
        ),
        (0, 3),
    )
    assert shelf.beta == 3.0 and shelf.at_bound


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("part", [0, 1], ids=["value", "slope"])
def test_a_curve_that_is_not_finite_is_refused(bad, part):
    def evaluate(beta):
        both = np.stack([beta, np.ones_like(beta)])
        both[part, beta >= 1.5] = bad
        return tuple(both)

    with pytest.raises(
        ValueError, match=f"^{re.escape('the risk curve is not finite at beta = 3.0')}$"
    ):
        least(evaluate, (0, 3))


def test_a_slope_that_changes_its_sign_when_asked_again_does_no_harm():
    asked = 0

    def evaluate(beta):
        nonlocal asked
        asked += 1
        f = 1 + 1e-3 * (beta - 1.5 - 1e-13) ** 2
        return f, 2e-3 * (beta - 1.5 - 1e-13) + (1e-12 if asked > 1 else 0.0)

    assert least(evaluate, (0, 3)).beta == pytest.approx(1.5, abs=1e-6)


numbers = st.floats(-1, 1).filter(lambda x: abs(x) > 1e-3)


def terms(*parts):
    return st.lists(st.tuples(*parts), min_size=1, max_size=5)


def rational(parts, tilt):
    """What real curves look like: shrinkage factors 1 / (1 + rate beta) and their squares."""
    return lambda b: (
        tilt * b + sum(a / (1 + 10**rate * b) + c / (1 + 10**rate * b) ** 2 for a, c, rate in parts)
    )


def waves(parts, tilt):
    return lambda b: tilt * b + sum(a * np.cos(turns * b + phase) for a, turns, phase in parts)


def wells(parts, tilt):
    return lambda b: tilt * b + sum(well(b, centre, width, a) for a, centre, width in parts)


def polynomial(parts, tilt):
    return lambda b: tilt * b + sum(a * (b - c) ** 2 + d * (b - c) ** 4 for a, c, d in parts)


FAMILIES = {
    "rational": (rational, terms(numbers, numbers, st.floats(-1, 5))),
    "waves": (waves, terms(numbers, st.floats(0.1, 20), st.floats(0, 6))),
    "wells": (wells, terms(numbers, st.floats(0, 3), st.floats(0.03, 1))),
    "polynomial": (polynomial, terms(numbers, st.floats(0, 3), numbers)),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_on_a_fine_grid_is_lower(family):
    make, parts = FAMILIES[family]

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(parts, numbers, st.sampled_from([(0.0, 3.0), (0.5, 2.5)]))
    def check(parts, tilt, bounds):
        f = make(parts, 0.3 * tilt)
        values = f(np.linspace(*bounds, 200_001))
        minimum = least(curve(f), bounds)
        assert minimum.at_bound == (minimum.beta in bounds)
        assert f(minimum.beta) <= values.min() + 1e-10 * np.ptp(values)
        if not minimum.at_bound:
            _, slopes = curve(f)(minimum.beta + np.array([-1e-6, 1e-6]))
            steepest = np.abs(np.gradient(values, (bounds[1] - bounds[0]) / 2e5)).max()
            assert slopes[0] <= 1e-9 * steepest and slopes[1] >= -1e-9 * steepest

    check()


def noisy(centre, curvature, noise, seed=0):
    rng = np.random.default_rng(seed)
    return lambda beta: curvature * (beta - centre) + noise * rng.standard_normal()


@pytest.mark.parametrize("noise", [0.0, 0.3, 3.0])
@pytest.mark.parametrize(
    "bounds, centre, expected",
    [
        ((0, 3), 0.4, 0.4),
        ((0, 3), 1.0, 1.0),
        ((0, 3), 2.5, 2.5),
        ((0, 3), -1.0, 0.0),
        ((0, 3), 5.0, 3.0),
        ((2, 7), 4.0, 4.0),
        ((2, 7), 0.0, 2.0),
    ],
    ids=str,
)
def test_noisy_slopes_lead_to_the_minimum(bounds, centre, expected, noise):
    beta, converged = stochastic_minimise(noisy(centre, 2.0, noise), Ruler(*bounds, 0.1))
    assert converged
    assert beta == pytest.approx(expected, abs=0.05 * (bounds[1] - bounds[0]))


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_noisy_slopes_does_not_matter(unit):
    here, there = (
        stochastic_minimise(noisy(2.0, 2.0 * scale, 0.5 * scale), RULER)[0] for scale in (1, unit)
    )
    assert here == pytest.approx(there, abs=1e-6)


def test_too_few_steps_are_reported():
    beta, converged = stochastic_minimise(noisy(2.5, 2.0, 0.3), RULER, most_steps=20)
    assert not converged
    assert 0 <= beta <= 3


def test_the_same_noise_gives_the_same_answer():
    first, again, other = (
        stochastic_minimise(noisy(2.0, 2.0, 1.0, seed), RULER) for seed in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.parametrize("centre", [0.3, 2.7, -1.0, 9.0])
def test_the_minimum_knows_its_value(centre):
    f = curve(lambda b: (b - centre) ** 2 + 5)
    found = least(f, (0, 3))
    assert found.value == pytest.approx(f(found.beta)[0], rel=1e-12)
    # A curve of which some was known beforehand, perhaps roughly, is asked again.
    points = np.linspace(0, 3, 9)
    rough = points, f(points)[0] + 1e-3, f(points)[1]
    assert least(f, (0, 3), known=rough).value is None


def test_the_value_next_to_a_bound_is_not_that_at_the_bound():
    assert minimum_at(2.0, Ruler(2, 7, 1.0), 5.0) == Minimum(2.0, at_bound=True, value=5.0)
    assert minimum_at(2 + 1e-9, Ruler(2, 7, 1.0), 5.0) == Minimum(2.0, at_bound=True)
    assert minimum_at(3.0, Ruler(2, 7, 1.0), 5.0) == Minimum(3.0, value=5.0)


@pytest.mark.parametrize("beta, found", [(2 + 1e-9, 2.0), (7 - 1e-9, 7.0), (2 + 1e-6, None)])
def test_a_minimum_next_to_a_bound_is_at_it(beta, found):
    expected = Minimum(beta) if found is None else Minimum(found, at_bound=True)
    assert minimum_at(beta, Ruler(2, 7, 1.0)) == expected


def test_neighbours_that_are_one_but_for_rounding_are_no_cubic():
    """As betas within bounds of 1 and 1 + 1e-9, on the scale of a curve that moves at 1e6."""
    points = np.array([0.0, 1e-9, 1e-9, 2e-9])
    cubics = Cubics(points, np.array([3.0, 2.0, 2.0, 1.0]), np.full(4, -1e9), 1.0)
    assert np.all(np.isfinite(cubics.error)) and np.all(np.isfinite(cubics.depth))


class TestDescentNearABound:
    """Averages of iterates come close to a bound, never onto it."""

    BOUNDS = (0.0, 4.0)

    def descend(self, monkeypatch, slope):
        rng = np.random.default_rng(0)
        monkeypatch.setattr(selection, "prior_scale", lambda *about: Scale(1.0))
        monkeypatch.setattr(
            selection,
            "covariance_slope",
            lambda model, rows, pairs, beta, *more: slope(beta) + rng.normal(),
        )
        plan = Pairs(np.ones((1, 3)), np.ones((1, 3)), 3.0)
        return selection._descend(None, None, plan, self.BOUNDS, rng)

    @pytest.mark.parametrize("bound", [0, 1])
    def test_the_bound_is_the_choice_if_the_risk_falls_towards_it(self, bound, monkeypatch):
        sign = 1.0 if bound == 0 else -1.0
        found = self.descend(monkeypatch, lambda beta: sign)
        assert found.at_bound and found.beta == self.BOUNDS[bound]

    def test_a_minimum_just_inside_stays_there(self, monkeypatch):
        ruler = Ruler.of_scale(self.BOUNDS, Scale(1.0))
        inside = float(ruler.beta(0.99 * ruler.t(4.0)))
        found = self.descend(monkeypatch, lambda beta: 100.0 * (beta - inside))
        assert not found.at_bound
        assert found.beta == pytest.approx(inside, abs=0.02)
