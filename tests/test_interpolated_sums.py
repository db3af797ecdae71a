"""Sums of linear models from few betas, and what they are where these do not reach."""

import warnings

import numpy as np
import pytest
from temperance.models.linear import fast
from temperance.models.linear.fast import choose, deletion_sums, moment_source
from temperance.models.linear.fast.interpolant import (
    MOST_POINTS,
    TOLERANCE,
    Interpolant,
    Variable,
    resolved,
)
from temperance.models.linear.noise import KnownVariance
from temperance.models.linear.rows import WhitenedRows
from temperance.search.log_scale import Ruler
from temperance.search.with_floor import minimise_above_floor

from temperance import calibrate, models
from temperance.messages import BoundWarning
from temperance.plans import LeaveOneOut

pytestmark = pytest.mark.usefixtures("shortcuts")

ENDS = [(0.0, np.inf), (0.0, 3.0), (1e-3, 10.0), (0.1, np.inf)]
EIGENVALUES = [(1.0, 1.1), (2.0, 50.0), (1e3, 1e7), (1e-9, 40.0)]


class TestVariable:
    @pytest.mark.parametrize("ends", ENDS)
    @pytest.mark.parametrize("low, high", EIGENVALUES)
    def test_it_takes_the_interval_to_one_and_poles_as_far_as_it_says(self, ends, low, high):
        variable = Variable.between(*ends, low, high)
        last = 1.0 if np.isinf(ends[1]) else variable.at(np.array(ends[1]))
        assert variable.at(np.array(ends[0])) == -1 and last == pytest.approx(1)
        x = np.linspace(-0.999, 0.999, 11)
        beta = variable.beta(x)
        assert np.all(np.diff(beta) > 0) and ends[0] < beta[0] and beta[-1] < ends[1]
        np.testing.assert_allclose(variable.at(beta), x, atol=1e-12)
        s = (variable.rho + 1 / variable.rho) / 2
        reached = np.abs(variable.at(-1 / np.geomspace(low, high, 8)))
        assert reached.min() == pytest.approx(s) and reached[[0, -1]] == pytest.approx(s)

    def test_slopes_are_finite_differences(self):
        variable, beta = Variable.between(0.01, 40.0, 2.0, 90.0), np.array([0.02, 0.5, 7.0, 39.0])
        step = 1e-6 * beta
        differences = (variable.at(beta + step) - variable.at(beta - step)) / (2 * step)
        np.testing.assert_allclose(variable.slope(beta), differences, rtol=1e-8)

    def test_half_lines_are_those_of_leave_one_out(self):
        """From 0 to infinity: rho by the fourth root of the condition number."""
        rho = Variable.between(0.0, np.inf, 2.0, 162.0).rho
        assert rho == pytest.approx((81**0.25 + 1) / (81**0.25 - 1))

    @pytest.mark.parametrize("low, high", EIGENVALUES)
    def test_upwards_few_points_are_enough_from_as_low_as_they_can(self, low, high):
        variable = Variable.upwards(low, high)
        assert variable.size <= MOST_POINTS + 1  # by rounding
        if variable.lowest > 0:
            assert Variable.between(0.9 * variable.lowest, np.inf, low, high).size > MOST_POINTS
        else:
            assert high < 10 * low
        assert variable.lowest < 0.2 / low

    def test_without_eigenvalues_nothing_is_determined(self):
        assert Variable.upwards(0.0, 1.0) is None and Variable.upwards(np.inf, 0.0) is None

    @pytest.mark.parametrize("lowest", [0.0, 0.3])
    def test_another_eigenvalue_takes_as_many_points_as_its_pole_is_near(self, lowest):
        variable = Variable.between(lowest, np.inf, 5.0, 9.0)
        for eigenvalue in (5.0, 7.0, 9.0):
            assert variable.size_with(eigenvalue) == variable.size
        x = variable.at(np.array([-1 / 2.0]))[0]
        rho = x + np.sqrt(x**2 - 1)
        assert variable.size_with(2.0) == np.ceil(-np.log(TOLERANCE) / np.log(rho)) + 2
        assert variable.size < variable.size_with(2.0) < variable.size_with(0.5)
        assert variable.size_with(0.0) == np.inf

    def test_short_intervals_and_like_eigenvalues_need_few(self):
        wide, near = Variable.between(0.0, np.inf, 1e3, 1e7), Variable.between(0.1, 10.0, 1e3, 1e7)
        assert near.size < 10 < wide.size
        assert Variable.between(0.0, np.inf, 1e3, 1e3).size < 6
        assert Variable.between(0.0, np.inf, 0.0, 1.0).size == np.inf


class TestInterpolant:
    @pytest.mark.parametrize("ends", ENDS)
    def test_rational_functions_and_slopes(self, ends):
        lam = np.array([3.0, 11.0, 70.0])[:, None]

        def functions(beta):
            s = 1 / (1 + beta * lam)
            return np.array([1 + (s**2).sum(axis=0), 2 + (s * (1 - s)).sum(axis=0)])

        variable = Variable.between(*ends, 3.0, 70.0)
        found = Interpolant.through(variable, functions(variable.nodes))
        beta = np.geomspace(max(ends[0], 1e-6), min(ends[1], 1e6), 40)
        np.testing.assert_allclose(found.at(beta), functions(beta), rtol=1e-11)
        step = 1e-5 * beta
        ahead, behind = np.minimum(beta + step, ends[1]), np.maximum(beta - step, ends[0])
        differences = (functions(ahead) - functions(behind)) / (ahead - behind)
        value, slope = found.with_slope(beta)
        np.testing.assert_array_equal(value, found.at(beta))
        np.testing.assert_allclose(slope, differences, rtol=1e-3, atol=1e-8)


class TestResolved:
    variable = Variable.between(0.0, np.inf, 10.0, 12.0)

    def resolves(self, function):
        return resolved(self.variable, function(self.variable.nodes)[None])

    def test_poles_beyond_what_was_said_are_noticed(self):
        assert self.resolves(lambda beta: 1 / (1 + 11.0 * beta) + 1)
        assert not self.resolves(lambda beta: 1 / (1 + 500.0 * beta) + 1)

    def test_the_last_two_coefficients_are_looked_at(self):
        count = int(self.variable.size)
        for degree in (count - 1, count - 2):
            wave = np.polynomial.chebyshev.Chebyshev.basis(degree)
            assert not self.resolves(lambda beta: 1 + 1e-3 * wave(self.variable.at(beta)))  # noqa: B023

    def test_rounding_of_large_values_is_not_taken_for_small_ones(self):
        """A parabola that nearly touches the axis: a polynomial, so that nothing is left out."""
        node = self.variable.at(self.variable.nodes)[2]
        square = lambda beta: 1e18 * (self.variable.at(beta) - node) ** 2  # noqa: E731
        assert self.resolves(lambda beta: 1e18 + square(beta))
        assert not self.resolves(lambda beta: 1.0 + square(beta))

    def test_functions_that_nearly_vanish_are_refused(self):
        assert not self.resolves(lambda beta: 1 / (1 + 11.0 * beta))
        assert not self.resolves(lambda beta: 1 / (1 + 11.0 * beta) + 1e-7)


def uneven(n=300, scales=(1.0, 4.0, 20.0), seed=0, noise=1.0):
    """Rows of columns that are far from alike."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, len(scales))) * scales
    y = X @ (rng.standard_normal(len(scales)) / scales) + noise * rng.standard_normal(n)
    return WhitenedRows(X, y, np.full(len(scales), 0.5))


def naive_sums(rows, weights, beta, exponent=1.0):
    """Sums of squares and of variances, each row left out by solving for the others."""
    Z, r = rows.inputs * rows.scale, rows.response
    square = spread = 0.0
    for i in range(len(Z)):
        w = weights.copy()
        w[i] = 0.0
        covariance = np.linalg.inv(np.eye(Z.shape[1]) + exponent * beta * (w[:, None] * Z).T @ Z)
        mean = covariance @ (exponent * beta * Z.T @ (w * r))
        square += weights[i] * (r[i] - Z[i] @ mean) ** 2
        spread += weights[i] * Z[i] @ covariance @ Z[i]
    return square, spread


@pytest.mark.parametrize("weighted", [False, True])
class TestDeletionSums:
    betas = np.array([0.0, 1e-6, 1e-4, 1e-3, 0.03, 1.0, 30.0])

    def source(self, weighted):
        rows = uneven()
        weights = np.random.default_rng(1).uniform(0.5, 2.0, len(rows)) if weighted else None
        return moment_source(rows, LeaveOneOut(np.ones(len(rows)) if weights is None else weights))

    def test_they_are_those_of_rows_left_out_below_the_reach_and_beyond(self, weighted):
        source = self.source(weighted)
        assert (
            1e-6 < source.lowest_interpolated < 1e-2
            and source.deletion_sums.interpolated is not None
        )
        (found,) = source.sums(self.betas, pairwise=False)
        for at, beta in enumerate(self.betas):
            square, spread = naive_sums(source.rows, source.plan.weights, beta)
            assert found.square[0, at] == pytest.approx(square, rel=1e-10)
            assert found.spread[0, at] == pytest.approx(spread, rel=1e-10)

    @pytest.mark.parametrize("which", ["sums", "direct", "undeleted"])
    def test_slopes_are_finite_differences(self, which, weighted):
        deletion_sums = self.source(weighted).deletion_sums
        ask = getattr(deletion_sums, which)
        beta = self.betas[1:]
        step = 1e-4 * beta
        ((low,), (middle,), (high,)) = map(ask, (beta - step, beta, beta + step))
        for name in ("square", "spread"):
            difference = (getattr(high, name) - getattr(low, name)) / (2 * step)
            rounding = 1e-14 * getattr(middle, name) / step
            error = np.abs(getattr(middle, f"d_{name}") - difference)
            assert np.all(error <= 1e-6 * np.abs(difference) + rounding)

    def test_the_floor_is_below_and_touches_beyond_the_reach(self, weighted):
        source = self.source(weighted)
        ((found,), (floor,)) = source.sums(self.betas, False), source.floor(self.betas)
        beyond = self.betas >= source.deletion_sums.lowest_interpolated
        assert 0 < beyond.sum() < len(beyond)
        for name in ("square", "spread"):
            ours, below = getattr(found, name)[0], getattr(floor, name)[0]
            np.testing.assert_array_equal(ours[beyond], below[beyond])
            assert np.all(below[~beyond] <= ours[~beyond] * (1 + 1e-12))
            assert np.all(
                below[~beyond] > ours[~beyond] * (1 - 2 * source.deletion_sums.leverages.largest)
            )


def calibrated(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundWarning)
        return calibrate(model, X, y, "leave-one-out")


def counted_looks(monkeypatch):
    """Count the betas at which every row is looked at for its slope as well."""
    looks, direct = [], deletion_sums.DeletionSums.direct

    def counted(self, beta):
        looks.extend(beta)
        return direct(self, beta)

    monkeypatch.setattr(deletion_sums.DeletionSums, "direct", counted)
    return looks


def test_a_minimum_beyond_the_reach_is_found_without_a_look_below(monkeypatch):
    rows = uneven(2000, noise=40.0)
    looks = counted_looks(monkeypatch)
    curve = choose(rows, LeaveOneOut(np.ones(2000)), KnownVariance(), "gibbs")
    assert curve.floor is not None
    model = models.GaussianLinear(prior_cov=rows.scale**2)
    found = calibrated(model, rows.inputs, rows.response)
    assert not looks and 1e-3 < found.beta < 2.9


@pytest.mark.parametrize("noise", [0.1, 1.0, 10.0, 100.0])
def test_many_rows_are_summed_from_far_below_the_minimum_on(noise, monkeypatch):
    rows, plan = uneven(1000, (1.0, 1.5), noise=noise), LeaveOneOut(np.ones(1000))
    model = models.GaussianLinear(prior_cov=0.25)
    assert moment_source(rows, plan).lowest_interpolated == 0
    few = calibrated(model, rows.inputs, rows.response)
    monkeypatch.setattr(deletion_sums, "LARGE_PROBLEM", 0)
    lowest_interpolated = moment_source(rows, plan).lowest_interpolated
    assert lowest_interpolated < few.beta and (lowest_interpolated > 0) == (
        noise < 100
    )  # the noisier, the lower
    looks = counted_looks(monkeypatch)
    many = calibrated(model, rows.inputs, rows.response)
    assert not looks and many.beta == pytest.approx(few.beta, rel=1e-7)
    assert many.risk == pytest.approx(few.risk, rel=1e-11)


def test_a_minimum_below_the_reach_is_found_on_the_curve(monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 2)) * [1.0, 0.02]
    y = 600.0 * rng.standard_normal(400)
    looks = counted_looks(monkeypatch)
    model = models.GaussianLinear(prior_cov=100.0)
    found = calibrated(model, X, y)
    source = moment_source(WhitenedRows(X, y, np.full(2, 10.0)), LeaveOneOut(np.ones(400)))
    assert found.beta < source.lowest_interpolated <= 0.3 and len(looks) > 5
    betas = np.geomspace(1e-9, 3.0, 4000)
    assert found.risk <= found.curve(betas).min() + 1e-12


@pytest.mark.parametrize("few", [0, deletion_sums.LARGE_PROBLEM])
@pytest.mark.parametrize("seed", range(20))
def test_the_search_above_the_floor_finds_what_a_thorough_one_finds(seed, few, monkeypatch):
    """Signals and noise of all sizes: minima on either side of the reach, and at the bounds."""
    monkeypatch.setattr(deletion_sums, "LARGE_PROBLEM", few)
    rng = np.random.default_rng(seed)
    scales = 10 ** rng.uniform(-2.0, 2.0, 4)
    X = rng.standard_normal((200, 4)) * scales
    signal = rng.standard_normal(4) / scales * 10 ** rng.uniform(-3.0, 1.0)
    y = X @ signal + rng.standard_normal(200) * 10 ** rng.uniform(-1.0, 2.0)
    found = calibrated(models.GaussianLinear(), X, y)
    betas = np.concatenate([[0.0], np.geomspace(1e-8, 3.0, 3000)])
    values = found.curve(betas)
    assert found.risk <= values.min() + 1e-9 * np.ptp(values)


@pytest.mark.parametrize("scales", [(1.0, 1.1), (1.0, 30.0)])
def test_responses_that_are_all_zero_have_a_spread(scales):
    rows = uneven(50, scales)
    silent = WhitenedRows(rows.inputs, np.zeros(50), rows.scale)
    source = moment_source(silent, LeaveOneOut(np.ones(50)))
    betas = np.array([0.0, 0.01, 1.0, 3.0])
    (found,) = source.sums(betas, pairwise=False)
    expected = [naive_sums(silent, np.ones(50), beta)[1] for beta in betas]
    np.testing.assert_array_equal(found.square, 0.0)
    np.testing.assert_allclose(found.spread[0], expected, rtol=1e-10)


class TestFlooredSearch:
    """A curve with its minimum at 2, or at 0.1, and floors that leave it below beta = 1."""

    def search(self, curve, floor, bounds=(0.0, 3.0)):
        asked = []

        def evaluate(beta):
            asked.extend(beta)
            return curve(beta)

        return minimise_above_floor(evaluate, floor, Ruler(*bounds, 1e-4)), asked

    def jumping(self, curve, drop):
        def floor(beta):
            value, slope = curve(beta)
            return value - drop * (beta < 1.0), slope

        return floor

    def bowl(self, centre):
        return lambda beta: ((beta - centre) ** 2, 2 * (beta - centre))

    def test_where_the_floor_touches_at_its_minimum_nothing_else_is_asked(self):
        found, asked = self.search(self.bowl(2.0), self.jumping(self.bowl(2.0), 0.5))
        assert found.beta == pytest.approx(2.0, abs=1e-8) and len(asked) == 1

    def test_where_the_floor_is_lower_elsewhere_the_curve_is_searched(self):
        found, asked = self.search(self.bowl(2.0), self.jumping(self.bowl(2.0), 5.0))
        assert found.beta == pytest.approx(2.0, abs=1e-8) and len(asked) > 10
        found, asked = self.search(self.bowl(0.1), self.jumping(self.bowl(0.1), 0.01))
        assert found.beta == pytest.approx(0.1, abs=1e-8) and len(asked) > 10

    def test_a_bound_is_found_on_the_floor(self):
        found, asked = self.search(self.bowl(5.0), self.jumping(self.bowl(5.0), 1.0))
        assert found.beta == 3.0 and found.at_bound and len(asked) == 1

    def test_a_flat_floor_says_nothing_of_the_curve(self):
        curve = self.bowl(2.0)
        found, _ = self.search(curve, lambda beta: (np.zeros_like(beta), np.zeros_like(beta)))
        assert not found.flat and found.beta == pytest.approx(2.0, abs=1e-8)
        touching = lambda beta: (np.ones_like(beta), np.zeros_like(beta))  # noqa: E731
        found, asked = self.search(lambda beta: (1 + (beta != 1.0), 0.0 * beta), touching)
        assert len(asked) > 10


@pytest.mark.parametrize("place", range(1, 10))
def test_a_row_alone_that_is_not_looked_at_first_makes_no_noise(place, monkeypatch):
    """Its kappa is zero where its leverage is one: nothing is divided by that."""
    monkeypatch.setattr(deletion_sums, "SAMPLED_ROWS", 100)
    monkeypatch.setattr(deletion_sums, "SMALL_LEVERAGE", 0.4)
    monkeypatch.setattr(deletion_sums, "LARGE_PROBLEM", 0)
    rng = np.random.default_rng(place)
    X = rng.standard_normal((1000, 3))
    X[:, 1] = 0.0
    X[place, 1] = 1e4
    y = X[:, 0] + rng.standard_normal(1000)
    found = calibrated(models.GaussianLinear(prior_cov=1e8), X, y)
    rows = WhitenedRows(X, y, np.full(3, 1e4))
    square, spread = naive_sums(rows, np.ones(1000), 1.0)
    assert found.bayes_risk == pytest.approx((square + spread) / 2000, rel=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_series_that_points_do_not_resolve_are_not_used(seed):
    """Wide priors and responses that are nearly fitted: the sums fall by many orders."""
    rng = np.random.default_rng(seed)
    n, k = 25, int(rng.integers(1, 5))
    Z = rng.standard_normal((n, k))
    y = Z @ rng.standard_normal(k) + 10 ** rng.uniform(-3.0, 0.0) * rng.standard_normal(n)
    scale = 10 ** rng.uniform(0.0, 4.0)
    source = moment_source(WhitenedRows(Z, y, np.full(k, scale)), LeaveOneOut(np.ones(n)))
    for beta in (1e-3, 0.3, 3.0):
        expected = sum(naive_sums(source.rows, np.ones(n), beta))
        (found,) = source.sums(np.array([beta, 1.0]), pairwise=False)
        assert (found.square + found.spread)[0, 0] == pytest.approx(expected, rel=1e-9)


def test_rows_of_which_none_is_worth_interpolating_are_dear(monkeypatch):
    monkeypatch.setattr(fast, "LARGE_PROBLEM", 0)
    for scales, dear in (((1.0, 2.0), False), ((1.0, 1e-2), True)):
        rows = uneven(60, scales)
        curve = choose(rows, LeaveOneOut(np.ones(60)), KnownVariance(), "gibbs")
        assert curve.costly == dear
