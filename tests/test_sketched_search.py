"""A sketch spares points of the curve, and does not change its minimum."""

from __future__ import annotations

import numpy as np
import pytest
from temperance.search.log_scale import Point, Ruler
from temperance.search.minimise import THOROUGH, THRIFTY, Minimum, evaluate_at
from temperance.search.with_sketch import (
    MOST_POINTS,
    Valley,
    _corrected,
    _newton_minimum,
    _or_bound,
)
from temperance.search.with_sketch import minimise_by_sketch as by_sketch
from test_optimise import KNOWN, SEVERAL, curve, least, well

GRAIN = 1e-3


def minimise_by_sketch(evaluate, sketch, bounds, **options):
    lower, upper = bounds
    return by_sketch(evaluate, sketch, Ruler(lower, upper, 1e-4 * (upper - lower)), **options)


ABOVE = 0.2  # part of its own height by which a sketch may be wrong


def sketched(f, bounds, share=1e-5, above=ABOVE, turn=0.0):
    """Wrong by a share of all and of the height above the minimum, in waves of log beta."""
    values = f(np.linspace(*bounds, 1001))
    lowest, whole = values.min(), np.ptp(values) + np.abs(values).max()

    def wrong(beta):
        wave = np.sin(2 * np.log(beta - bounds[0] + GRAIN * (bounds[1] - bounds[0])) + turn)
        return f(beta) + (share * whole + above * (f(beta) - lowest)) * wave

    return curve(wrong)


def asking(f):
    """Return a curve and the list of betas that it will be asked for."""
    asked = []
    return lambda beta: asked.extend(beta) or curve(f)(beta), asked


CURVES = SEVERAL | {name: (f, bounds) for name, (f, bounds, _) in KNOWN.items()}
# What is too narrow for a thrifty search is found by chance.
CASES = [(name, THOROUGH) for name in CURVES]
CASES += [(name, THRIFTY) for name in CURVES if "narrow" not in name]


@pytest.mark.parametrize("turn", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("share", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("name, search", CASES)
def test_the_minimum_is_the_curves(name, search, share, turn):
    f, bounds = CURVES[name]
    sketch = sketched(f, bounds, share, turn=turn)
    found = minimise_by_sketch(curve(f), sketch, bounds, search=search)
    reference = least(curve(f), bounds, search=search)
    assert found.beta == pytest.approx(reference.beta, rel=0, abs=1e-7)
    # The value is known where the search came by it.
    assert found[1:-1] == reference[1:-1]


def falling(beta):
    return 1 / (1e-3 + beta) / 1e3


def turning(beta):
    return falling(beta) + 0.1 * beta


@pytest.mark.parametrize("f, most", [(falling, 1), (turning, 4)], ids=["at a bound", "inside"])
def test_a_good_sketch_leaves_few_points_to_ask(f, most):
    evaluate, asked = asking(f)
    minimise_by_sketch(evaluate, sketched(f, (0, 3), share=1e-6, above=0.02), (0, 3))
    alone, all_asked = asking(f)
    least(alone, (0, 3), search=THRIFTY)
    assert len(asked) <= most < 10 <= len(all_asked)


def test_a_sketch_that_is_wrong_by_a_constant_leaves_no_steps_to_refine():
    """Points that were asked and points that were not are neighbours, at one level."""
    evaluate, asked = asking(lambda beta: np.log((beta + 0.05) / 1.05) ** 2)
    sketch = curve(lambda beta: 0.2 + np.log((beta + 0.05) / 1.05) ** 2)
    found = minimise_by_sketch(evaluate, sketch, (0.2, 2.0))
    assert found.beta == pytest.approx(1.0, abs=1e-9)
    assert len(asked) < 12


def test_only_what_may_be_as_low_is_asked():
    """Two wells whose heights the sketch cannot tell apart, and slopes that it can."""
    f, bounds = SEVERAL["nearly level"]
    evaluate, asked = asking(f)
    minimise_by_sketch(evaluate, sketched(f, bounds), bounds)
    assert all(f(np.array(asked)) < -0.2)
    assert any(np.array(asked) < 1) and any(np.array(asked) > 2)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda b: -turning(b),
        lambda b: (b - 2) ** 2,
        lambda b: 0 * b,
        lambda b: 1e3 + np.cos(5 * b),
    ],
    ids=["upside down", "elsewhere", "flat", "far off"],
)
def test_a_sketch_of_something_else_is_found_out(wrong):
    reference = least(curve(turning), (0, 3), search=THOROUGH)
    found = minimise_by_sketch(curve(turning), curve(wrong), (0, 3))
    assert found.beta == pytest.approx(reference.beta, abs=1e-7)


def test_a_bound_is_one_only_where_the_curve_falls_towards_it():
    """Where the sketch is good, but does not tell the bound from a point next to it."""
    f = lambda b: 0.5 * (b - 2.9999) ** 2  # noqa: E731
    evaluate, asked = asking(f)
    found = minimise_by_sketch(evaluate, curve(lambda b: f(b) - 1.5e-4 * (b - 2.9999)), (0, 3))
    assert asked[0] == 3.0
    assert found.beta == pytest.approx(2.9999, abs=1e-7) and not found.at_bound


def test_a_bound_beside_the_minimum_is_taken_where_the_curve_is_lower_there():
    """As where a sketch is too high at a bound, and the search came close to it from inside."""
    ruler = Ruler(0.0, 3.0, 3e-4)
    inside = Minimum(2.9999999)
    found = _or_bound(inside, curve(falling), ruler)
    assert found.at_bound and found.beta == 3.0
    assert _or_bound(inside, curve(lambda b: -falling(b)), ruler) is inside


def test_noise_of_a_sketch_is_given_up_soon():
    noisy = lambda b: turning(b) + 1e-3 * np.sin(1e6 * b)  # noqa: E731
    sketch, asked = asking(noisy)
    found = minimise_by_sketch(curve(turning), sketch, (0, 3))
    assert found.beta == pytest.approx(least(curve(turning), (0, 3)).beta, abs=1e-7)
    assert len(asked) <= 2 * MOST_POINTS


def test_a_sketch_that_is_exact_at_its_bottom_alone_does_not_hide_another_valley():
    """As sketches of posteriors are at beta = 0, where there is nothing to fit."""
    f = lambda b: np.log1p(300 * b) / 50 + well(b, 1.0, 0.3, 0.13)  # noqa: E731
    wrong = lambda b: f(b) + 0.02 * -np.expm1(-b / 0.01)  # noqa: E731
    reference = least(curve(f), (0, 3), search=THOROUGH)
    assert f(reference.beta) < f(0.0) < wrong(reference.beta)
    found = minimise_by_sketch(curve(f), curve(wrong), (0, 3))
    assert found.beta == pytest.approx(reference.beta, abs=1e-7) and not found.at_bound


def test_newtons_method_does_not_leave_the_valley():
    f = curve(lambda b: (b - 2) ** 2)
    here = evaluate_at(f, 1.0)
    assert _newton_minimum(f, f, Valley(0.5, here, 1.5), here, 1e-9) is None
    assert _newton_minimum(f, f, Valley(0.5, here, 2.5), here, 1e-9) == pytest.approx(2.0)


@pytest.mark.parametrize("sketch", [turning, lambda b: 1 + 0 * b, lambda b: 1 - 1e-15 * b])
def test_a_flat_curve_is_flat_whatever_the_sketch_says(sketch):
    found = minimise_by_sketch(lambda b: (1 + 0 * b, 0 * b), curve(sketch), (0, 3))
    assert found.flat and found.beta == 1.0


def test_what_differs_by_rounding_is_flat_where_the_sketch_is_the_curve():
    level = curve(lambda b: 1 - 1e-15 * b)
    assert minimise_by_sketch(level, level, (0, 3)).flat


def test_noise_of_a_sketch_is_not_carried_to_the_curve():
    noise = np.random.default_rng(0)
    f = curve(turning)
    evaluate, asked = asking(turning)

    def noisy(beta):
        value, slope = f(beta)
        return value + 0.1 * noise.standard_normal(len(beta)), slope

    found = minimise_by_sketch(evaluate, noisy, (0, 3))
    assert found.beta == pytest.approx(least(f, (0, 3)).beta, abs=1e-7)
    assert len(asked) < 40


def test_a_bound_next_to_the_bottom_is_asked():
    """A sketch from rough fits may be worst where it was asked first."""
    evaluate, asked = asking(falling)
    sketch = curve(falling)

    def wrong_at_the_bound(beta):
        value, slope = sketch(beta)
        return value + 5e-5 + 5e-3 * (beta == 3.0), slope  # in doubt nearby, and sure of the bound

    found = minimise_by_sketch(evaluate, wrong_at_the_bound, (0, 3))
    assert 3.0 in asked and found.at_bound and found.beta == 3.0


def test_errors_of_a_sketch_where_it_is_high_say_nothing_of_where_it_is_low():
    points, values = np.array([0.0, 1e-9, 1.0]), np.array([1e9, 10.0, 1.0])
    unsure, slopes = np.array([True, False, False]), np.zeros(3)
    _, corrected, _ = _corrected(
        lambda beta: (0.5e9 + beta, beta), (points, values, slopes), unsure, Point(1.0, 1.0, 0.0)
    )
    np.testing.assert_array_equal(corrected, [0.5e9, 5.5, 1.0])
