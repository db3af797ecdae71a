"""Expectations of the logistic loss, against mpmath and against their own identities."""

import functools
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_expit, log_ndtr

from temperance import quadrature
from temperance.quadrature import log_expected_sigmoid, softplus_expectations

pytestmark = pytest.mark.filterwarnings("error")

MEANS = (-50.0, -20.0, -5.0, -1.0, 0.0, 0.3, 4.0, 30.0, 50.0)
# Trapezoidal sums take over where the variance exceeds a quarter, with a wider step beyond one.
DEVIATIONS = (1e-6, 1e-3, 0.1, 0.5, 1.0, 1 + 1e-9, 3.0, 10.0, 100.0)
ACCURACY = 1e-12

# Each takes mpmath a while: all of them among slow tests.
SOME_MEANS = [
    mean if i % 3 == 0 else pytest.param(mean, marks=pytest.mark.slow)
    for i, mean in enumerate(MEANS)
]

means = st.floats(-50, 50)
deviations = st.floats(-1, 2).map(lambda exponent: 10.0**exponent)


def mpmath_softplus(x):
    """Return softplus and its first four derivatives, from the textbook formulas."""
    sigmoid = 1 / (1 + mpmath.exp(-x))
    slope = sigmoid * (1 - sigmoid)
    third = slope * (1 - 2 * sigmoid)
    fourth = slope * (1 - 6 * sigmoid + 6 * sigmoid**2)
    return mpmath.log1p(mpmath.exp(x)), sigmoid, slope, third, fourth


@functools.cache
@cache
def reference(mean, variance):
    """Return the five expectations by adaptive Gauss-Legendre between breakpoints, at 40 digits."""
    # 40 digits: 1 - sigmoid(50) loses 22 of them.
    with mpmath.workdps(40):
        mean, deviation = mpmath.mpf(mean), mpmath.sqrt(mpmath.mpf(variance))
        # Below zero sigmoid(x) N(x; m, v) is about e^x N(x; m, v), with its mass at m + v.
        peak = max(mean, min(mean + deviation**2, 0))
        # mpmath.quad stops at an absolute error, so the integrand is scaled to order one.
        scale = mpmath.npdf(peak, mean, deviation) / (1 + mpmath.exp(-peak))
        knots = {centre + k * deviation for centre in (mean, peak) for k in range(-15, 16, 3)}
        low, high = min(knots), max(knots)
        knots |= {mpmath.mpf(x) for x in (-120, -60, -30, -12, -4, 0, 4, 12, 30, 60, 120)}

        @functools.cache
        def integrand(x):
            density = mpmath.npdf(x, mean, deviation) / scale
            return [density * row for row in mpmath_softplus(x)]

        path = sorted(x for x in knots if low <= x <= high)
        return [
            scale * mpmath.quad(lambda x, j=j: integrand(x)[j], path, method="gauss-legendre")
            for j in range(5)
        ]


def error(value, exact):
    """Return |value - exact|, subtracted in multiple precision."""
    return float(abs(mpmath.mpf(float(value)) - exact))


def central_difference(function, x, step=1e-4):
    """Return the second-order central difference of the function at x."""
    return (function(x + step) - function(x - step)) / (2 * step)


@pytest.mark.parametrize("deviation", DEVIATIONS)
@pytest.mark.parametrize("mean", SOME_MEANS)
def test_softplus_expectations_match_mpmath(mean, deviation):
    """All five rows are accurate absolutely."""
    rows = softplus_expectations(mean, deviation**2, derivatives=4)
    exact = reference(mean, deviation**2)
    assert max(map(error, rows, exact)) < ACCURACY


@pytest.mark.parametrize("deviation", DEVIATIONS)
@pytest.mark.parametrize("mean", SOME_MEANS)
def test_log_expected_sigmoid_matches_mpmath(mean, deviation):
    """The logarithm and its derivatives are accurate absolutely, in the tail as well."""
    _, expected, slope, curvature, _ = reference(mean, deviation**2)
    exact = mpmath.log(expected), slope / expected, curvature / (2 * expected)
    values = log_expected_sigmoid(mean, deviation**2, derivatives=True)
    assert max(map(error, values, exact)) < ACCURACY
    assert log_expected_sigmoid(mean, deviation**2) == values[0]


@pytest.mark.parametrize("mean", [-800.0, -400.0])
def test_log_expected_sigmoid_far_in_the_tail(mean):
    test_log_expected_sigmoid_matches_mpmath(mean, 30.0)


@pytest.mark.parametrize(("deviation", "accurate"), [(0.5, True), (100.0, False)])
def test_gauss_hermite_fails_for_large_deviations(deviation, accurate):
    """Plain Gauss-Hermite is good enough for small deviations only, so the references bite."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    values = expit(0.3 + deviation * nodes) @ weights / np.sqrt(2 * np.pi)
    exact = reference(0.3, deviation**2)[1]
    assert error(values, exact) < ACCURACY if accurate else error(values, exact) > 1e-4


@pytest.mark.parametrize("count", range(5))
def test_fewer_derivatives_are_the_leading_rows(count):
    """The rows do not depend on how many are asked for, and broadcast."""
    mean, variance = np.array(MEANS)[:, None], np.array(DEVIATIONS) ** 2
    rows = softplus_expectations(mean, variance, derivatives=count)
    assert rows.shape == (count + 1, len(MEANS), len(DEVIATIONS))
    every = softplus_expectations(mean, variance, derivatives=4)
    np.testing.assert_allclose(rows, every[: count + 1], rtol=0, atol=1e-14)


@pytest.mark.parametrize("first", range(5))
def test_lower_derivatives_can_be_left_out(first):
    """The rows do not depend on the lowest, whichever side of zero the mean is on."""
    mean, variance = np.array(MEANS)[:, None], np.array(DEVIATIONS) ** 2
    every = softplus_expectations(mean, variance, derivatives=4)
    rows = softplus_expectations(mean, variance, derivatives=4, first=first)
    np.testing.assert_allclose(rows, every[first:], rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("most", "count", "error"),
    [
        (*rule, error)
        for accuracy, error in ((quadrature._EXACT, 1.5e-13), (quadrature._ROUGH, 1e-6))
        for rule in accuracy.narrow
    ],
)
def test_nodes_suffice_up_to_the_largest_variance_of_their_rule(most, count, error):
    """Against twice as many nodes, at the edge, where their error is largest."""
    mean, variance = np.linspace(-12, 0, 500), np.full(500, most)
    more, enough, fewer = (
        quadrature._narrow(mean, variance, nodes, range(5))
        for nodes in (2 * count, count, count - 1)
    )
    assert np.abs(enough - more).max() < error
    assert np.abs(fewer - more).max() > error  # no node is idle


def test_rough_expectations_are_right_to_six_digits():
    """At all variances, and not much better, or they would cost too much."""
    mean, variance = np.linspace(-60, 60, 601)[:, None], np.geomspace(1e-12, 1e6, 400)
    rough = softplus_expectations(mean, variance, derivatives=4, rough=True)
    errors = np.abs(rough - softplus_expectations(mean, variance, derivatives=4))
    assert 1e-8 < errors.max() < 1e-6
    assert 1e-12 < errors[..., variance > 0.25].max()


@pytest.mark.parametrize("variance", [0.3, 1.1, 30.0, 1e3, 1e5, 1e8])
def test_rough_expectations_of_wide_densities_are_relatively_right(variance):
    """Newton's method under a wide prior lives on derivatives that are all tiny."""
    mean = np.linspace(-4, 4, 200) * np.sqrt(variance)
    exact = softplus_expectations(mean, variance, derivatives=4)
    errors = np.abs(softplus_expectations(mean, variance, derivatives=4, rough=True) - exact)
    assert np.all(errors.max(axis=1) < 1e-4 * np.abs(exact).max(axis=1))


@pytest.mark.parametrize("variance", [0.2501, 0.6, 1.0001, 4.0, 100.0])
def test_the_nodes_active_nodes_suffice(variance, monkeypatch):
    """One element alone takes few of the nodes, and misses nothing of the others."""
    step = next(step for most, step in quadrature._EXACT.wide if variance <= most)
    means, everything = np.linspace(-60, 0, 121)[:, None], slice(None)
    reaches = [quadrature._active_nodes(mean, np.array([variance]), step) for mean in means]
    few = [quadrature._wide(mean, np.array([variance]), range(5), step) for mean in means]
    monkeypatch.setattr(quadrature, "_active_nodes", lambda *_: everything)
    every = [quadrature._wide(mean, np.array([variance]), range(5), step) for mean in means]
    np.testing.assert_allclose(few, every, rtol=0, atol=1e-14)
    nodes = len(quadrature._remainder(step, quadrature._DEPTH)[0])
    counts = [len(range(*reach.indices(nodes))) for reach in reaches]
    assert max(counts) < (nodes if variance > 4 else 0.7 * nodes)


def test_blocks_do_not_matter(monkeypatch):
    """Small blocks leave every element in its place."""
    mean, variance = np.linspace(-9, 9, 60).reshape(3, 20), np.geomspace(1e-3, 1e3, 20)
    rows, logs = (softplus_expectations(mean, variance, 4), log_expected_sigmoid(mean, variance))
    monkeypatch.setattr(quadrature, "_BLOCK", 7)
    np.testing.assert_allclose(softplus_expectations(mean, variance, 4), rows, rtol=0, atol=1e-14)
    np.testing.assert_allclose(log_expected_sigmoid(mean, variance), logs, rtol=0, atol=1e-13)


def test_scalars_and_empty_arrays():
    """Scalars give zero-dimensional results, empty arrays empty ones."""
    assert softplus_expectations(0.0, 2.0, 2).shape == (3,)
    assert log_expected_sigmoid(0, 2).shape == ()
    assert softplus_expectations(np.empty((0, 2)), 1.0, 2).shape == (3, 0, 2)
    assert [x.shape for x in log_expected_sigmoid(np.empty(0), 1.0, True)] == [(0,)] * 3


def test_zero_variance_gives_the_plain_functions():
    """A degenerate Gaussian evaluates at its mean."""
    x = np.linspace(-40, 40, 81)
    s = expit(x)
    slope = s * expit(-x)
    plain = np.logaddexp(0, x), s, slope, slope * (1 - 2 * s), slope * (1 - 6 * s + 6 * s**2)
    np.testing.assert_allclose(softplus_expectations(x, 0.0, 4), plain, rtol=1e-14, atol=1e-15)
    value, derivative, _ = log_expected_sigmoid(x, 0.0, derivatives=True)
    np.testing.assert_allclose(value, log_expit(x), rtol=1e-14)
    np.testing.assert_allclose(derivative, expit(-x), rtol=0, atol=1e-15)


@pytest.mark.parametrize("mean", SOME_MEANS)
def test_rules_agree_where_they_meet(mean):
    """The narrow and the wide rule agree at unit variance, to more than the accuracy."""
    variance = np.array([1.0, np.nextafter(1.0, 2.0)])
    rows = softplus_expectations(mean, variance, 4)
    assert not np.array_equal(rows[:, 0], rows[:, 1])
    np.testing.assert_allclose(rows[:, 0], rows[:, 1], rtol=0, atol=2e-13)
    logs = np.array(log_expected_sigmoid(mean, variance, derivatives=True))
    np.testing.assert_allclose(logs[:, 0], logs[:, 1], rtol=0, atol=2e-13)


@pytest.mark.parametrize("variance", [0.3, 1.5, 20.0, 1e4])
@pytest.mark.parametrize("seam", [0.0, -0.5])
def test_logarithm_is_continuous_where_its_formulas_meet(variance, seam):
    """The direct, the tilted and the mirrored formula agree at mean 0 and at mean -v/2."""
    mean = seam * variance + np.array([-1, 1]) * 2 * np.spacing(max(abs(seam) * variance, 1))
    logs = np.array(log_expected_sigmoid(mean, variance, derivatives=True))
    np.testing.assert_allclose(logs[:, 0], logs[:, 1], rtol=2e-14, atol=1e-13)


@settings(max_examples=60, deadline=None)
@given(means, deviations)
def test_rows_are_each_others_derivatives(mean, deviation):
    """d/dm E[g] = E[g'] and d/dv E[g] = E[g''] / 2."""
    variance = deviation**2
    rows = softplus_expectations(mean, variance, 4)
    by_mean = central_difference(lambda m: softplus_expectations(m, variance, 4), mean)
    by_variance = central_difference(lambda v: softplus_expectations(mean, v, 4), variance)
    np.testing.assert_allclose(by_mean[:4], rows[1:], rtol=0, atol=5e-9)
    np.testing.assert_allclose(by_variance[:3], rows[2:] / 2, rtol=0, atol=5e-9)


@settings(max_examples=60, deadline=None)
@given(means, deviations)
def test_derivatives_of_the_logarithm(mean, deviation):
    """The returned derivatives agree with finite differences of the value."""
    variance = deviation**2
    _, slope, rate = log_expected_sigmoid(mean, variance, derivatives=True)
    by_mean = central_difference(lambda m: log_expected_sigmoid(m, variance), mean)
    by_variance = central_difference(lambda v: log_expected_sigmoid(mean, v), variance)
    assert abs(by_mean - slope) < 5e-9
    assert abs(by_variance - rate) < 5e-9


@settings(max_examples=60, deadline=None)
@given(means, deviations)
def test_symmetries_and_jensen(mean, deviation):
    """softplus(x) - softplus(-x) = x, sigmoid(x) + sigmoid(-x) = 1; log E[s] >= E[log s]."""
    variance = deviation**2
    right, left = softplus_expectations([mean, -mean], variance, 4).T
    signs = np.array([1, -1, 1, -1, 1])
    np.testing.assert_allclose(right - signs * left, [mean, 1, 0, 0, 0], rtol=0, atol=2e-14)
    value, opposite = log_expected_sigmoid([mean, -mean], variance)
    assert np.exp(value) == pytest.approx(right[1], abs=2e-14)
    assert np.exp(value) + np.exp(opposite) == pytest.approx(1, abs=2e-14)
    assert value + left[0] > -1e-13
    if abs(mean) < 4:
        assert value + left[0] > 1e-6  # strict: the variance is at least 0.01


def test_tail_has_the_lognormal_limit():
    """Far below zero sigmoid(x) is e^x, so log E is m + v/2, and above zero log E is -e^(v/2-m)."""
    mean, variance = np.array([[-1e4], [-500.0], [-60.0]]), np.array([0.0, 1e-6, 0.5, 1.0, 4.0])
    value, slope, rate = log_expected_sigmoid(mean, variance, derivatives=True)
    np.testing.assert_allclose(value, mean + variance / 2, rtol=1e-15)
    np.testing.assert_allclose(slope, 1, rtol=1e-14)
    np.testing.assert_allclose(rate, 0.5, rtol=1e-14)
    np.testing.assert_allclose(log_expected_sigmoid(60.0, 0.5), -np.exp(-59.75), rtol=1e-12)


def test_wide_gaussians_have_the_probit_limit():
    """For v -> infinity E[s] tends to Phi(m / sqrt(v + pi^2/3)), also far in the tail."""
    deviation = np.array([1e4, 1e6, 1e8])
    for score in (-30.0, -3.0, 0.0, 2.0):
        expected = log_ndtr(score * deviation / np.sqrt(deviation**2 + np.pi**2 / 3))
        value = log_expected_sigmoid(score * deviation, deviation**2)
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-12)


def test_positive_functions_have_nonnegative_expectations():
    """The remainder takes no more than the ramp gives, however far in the tail."""
    mean, deviation = np.arange(-80.0, 81.0)[:, None], np.array([1.01, 1.5, 2.0, 3.0, 5.0])
    rows = softplus_expectations(mean, deviation**2, 2)
    assert (rows >= 0).all() and (rows[1] <= 1).all()


def test_extreme_inputs_stay_finite_and_in_range():
    """No overflow, no invalid operation, and probabilities remain probabilities."""
    size = np.array([0, 1e-300, 1e-8, 1, 50, 745, 1e4, 1e8, 1e100])
    mean = np.concatenate([-size, size])[:, None]
    deviation = np.array([0, 1e-200, 1e-6, 1, 1 + 1e-15, 1.01, 50, 1e3, 1e8, 1e100])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        rows = softplus_expectations(mean, deviation**2, 4)
        value, slope, rate = log_expected_sigmoid(mean, deviation**2, derivatives=True)
    assert all(np.isfinite(x).all() for x in (rows, value, slope, rate))
    assert (rows[:3] >= 0).all() and (rows[0] >= mean).all() and (rows[1] <= 1).all()
    assert (value <= 0).all() and (slope >= 0).all() and (slope <= 1).all()
    assert (np.abs(rate) <= 0.5).all()


@pytest.mark.parametrize("derivatives", [-1, 5])
def test_derivatives_out_of_range_are_rejected(derivatives):
    """Only the rows 0 to 4 exist."""
    with pytest.raises(ValueError, match="from 0 to 4"):
        softplus_expectations(0.0, 1.0, derivatives)


def test_the_lowest_derivative_out_of_range_is_rejected():
    """It is one of those up to the highest."""
    with pytest.raises(ValueError, match="first must be an integer from 0 to 2"):
        softplus_expectations(0.0, 1.0, 2, first=3)


@pytest.mark.parametrize("deviation", [1e8, 1e12, 1e17])
def test_rates_under_vast_variances_are_those_of_a_step(deviation):
    """log Phi(m / s): its rate in v is of the order of 1 / v, beside terms of order 1 / s."""
    score = np.array([-37.0, -18.5, -5.0, -1.0, 2.0])
    _, slope, rate = log_expected_sigmoid(score * deviation, deviation**2, derivatives=True)
    hazard = np.exp(-0.5 * score**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(score))
    np.testing.assert_allclose(slope * deviation, hazard, rtol=1e-12)
    np.testing.assert_allclose(rate * deviation**2, -0.5 * score * hazard, rtol=1e-12)


@pytest.mark.parametrize("function", [softplus_expectations, log_expected_sigmoid])
def test_negative_variance_is_rejected(function):
    """A negative variance is an error, wherever it stands."""
    with pytest.raises(ValueError, match="negative"):
        function(0.0, [1.0, -1e-9])
