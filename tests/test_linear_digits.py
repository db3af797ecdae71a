"""Linear models keep their digits: against many of them, under changes of units, at the limits."""

import tracemalloc

import mpmath
import numpy as np
import pytest
from many_digits import many_digits
from temperance.models.linear.eigenbasis import changing_betas
from temperance.models.linear.fast import moment_source
from temperance.models.linear.noise import InverseGammaVariance, KnownVariance
from temperance.models.linear.plain import PlainMoments
from temperance.models.linear.rows import WhitenedRows
from temperance.models.linear.singular import singular_values
from temperance.search.log_scale import Scale

from temperance import calibrate, models, strategies
from temperance.data import Data
from temperance.plans import Folds, LeaveOneOut, Pairs, PrefixPlan

pytestmark = pytest.mark.usefixtures("shortcuts")

PLANS = ("leave-one-out", "folds", "prefixes", "bootstrap")
RISKS = ("gibbs", "predictive")
LINEAR = (models.GaussianLinear, models.NormalInverseGammaLinear)


def plan_of(kind, weights, transfer="beta"):
    n = len(weights)
    if kind == "leave-one-out":
        return LeaveOneOut(weights, transfer)
    if kind == "folds":
        return Folds(weights, np.arange(n) % 3, 3, transfer)
    if kind == "prefixes":
        return PrefixPlan(weights, np.arange(n)[None], 1, transfer)
    drawn = np.random.default_rng(5).multinomial(n, np.full(n, 1 / n), 2) * weights
    return Pairs(drawn, np.tile(weights, (2, 1)), float(weights.sum()), transfer)


def ordinary(n=8, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X.sum(axis=1) + rng.standard_normal(n), np.ones(n)


def with_outlier(row, size, weighted=False, n=8, d=3):
    X, y, weights = ordinary(n, d)
    y[row] = size
    return X, y, np.random.default_rng(1).uniform(0.3, 3.0, n) if weighted else weights


def with_huge_column(size, n=8, d=3):
    X, y, weights = ordinary(n, d)
    X[:, 1] = size * (1 + 1e-9 * X[:, 1])
    return X, y, weights


def with_huge_row(size):
    X, y, weights = ordinary()
    X[5] *= size
    return X, y, weights


def with_columns_on_scales(scales):
    X, y, weights = ordinary()
    return X * np.array(scales), y, weights


HARD = {
    "sentinel first": (with_outlier(0, 999999999.0), {}),
    "sentinel last": (with_outlier(7, 1e12), {}),
    "sentinel, weights": (with_outlier(3, 1e9, weighted=True), {}),
    "sentinel, more columns": (with_outlier(1, 1e9, n=5, d=9), {}),
    "sentinel, one row more": (with_outlier(1, 1e9, n=5, d=4), {}),
    "nanoseconds": (with_huge_column(1.6e18), {}),
    "nanoseconds, more columns": (with_huge_column(1.6e18, 5, 9), {}),
    "one huge row": (with_huge_row(1e12), {}),
    "columns apart": (with_columns_on_scales([1e-12, 1.0, 1e12]), {}),
    "large": (with_columns_on_scales([1e40, 1e40, 1e40]), {}),
    "scales that match": (
        with_columns_on_scales([1e-170, 1.0, 1e170]),
        {"prior_cov": [1e300, 1.0, 1e-300]},
    ),
}


@pytest.mark.parametrize("transfer", ["beta", "alpha"])
@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("case", HARD)
def test_hard_problems_against_many_digits(case, kind, transfer):
    (X, y, weights), options = HARD[case]
    data, plan = Data(X, y, weights), plan_of(kind, weights, transfer)
    digits = {"scales that match": 400, "large": 300}.get(case, 90)
    for model in (models.GaussianLinear, models.NormalInverseGammaLinear):
        for risk in RISKS:
            curve = model(**options).risk_curve(data, plan, risk)
            expected = many_digits(model(**options), data, plan, risk, 2.0, digits)
            assert curve(2.0) == pytest.approx(expected, rel=1e-9)
            losses, share = curve.rows(2.0)
            assert losses @ share / share.sum() == pytest.approx(expected, rel=1e-9)


def powers_of_years():
    X = np.vander([2018.0, 2000, 1961, 1979, 2012, 1965, 2020, 1955, 1973], 7, increasing=True)
    return X, np.random.default_rng(4).standard_normal(9) * 9, np.ones(9)


def dense_covariance(d):
    root = np.random.default_rng(0).standard_normal((d, d)) / np.sqrt(d)
    return np.eye(d) + root @ root.T


@pytest.mark.parametrize("kind", PLANS)
def test_columns_of_all_lengths_under_a_dense_prior(kind):
    """In a product with any root of the covariance the short columns would be rounding."""
    X, y, weights = powers_of_years()
    data, plan = Data(X, y, weights), plan_of(kind, weights)
    for kind in LINEAR:
        model = kind(prior_cov=dense_covariance(7))
        curve = model.risk_curve(data, plan, "predictive")
        expected = many_digits(model, data, plan, "predictive", 2.0)
        assert curve(2.0) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("shape", [(9, 3), (2, 3)])
def test_posteriors_under_a_dense_prior_are_those_of_the_textbook(shape):
    X, y, weights = ordinary(*shape)
    X, cov = X * np.array([1.0, 1e3, 1e-3]), dense_covariance(3)
    found = models.GaussianLinear(prior_cov=cov).posterior(X, y, 2.0)
    precision = np.linalg.inv(cov) + X.T @ X * 2.0 / len(y)
    expected = np.linalg.inv(precision)
    np.testing.assert_allclose(found.cov, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.mean, expected @ (X.T @ y) * 2.0 / len(y), rtol=1e-6)


@pytest.mark.parametrize("shape", [(2, 8), (6, 6), (7, 9)])
@pytest.mark.parametrize("size", [1e9, 1e12])
def test_slopes_where_rows_span_everything_are_those_of_pairs(shape, size):
    X, y, weights = ordinary(*shape)
    X[0] *= size
    data, plan = Data(X, y, weights), LeaveOneOut(weights)
    betas = np.array([1e-3, 1.0, 1e3])
    for model in LINEAR:
        for risk in RISKS:
            curve, paired = (model().risk_curve(data, each, risk) for each in (plan, plan.pairs()))
            (value, slope), (_, expected) = (
                each(betas, derivative=True) for each in (curve, paired)
            )
            error = np.abs(slope - expected) * betas
            assert np.all(error < 1e-10 * np.abs(value))


@pytest.mark.parametrize("transfer", ["beta", "alpha"])
def test_slopes_beside_a_sentinel_are_differences(transfer):
    (X, y, weights), _ = HARD["sentinel, weights"]
    data, plan = Data(X, y, weights), LeaveOneOut(weights, transfer)
    for model in (models.GaussianLinear(), models.NormalInverseGammaLinear()):
        for risk in RISKS:
            curve, paired = (model.risk_curve(data, each, risk) for each in (plan, plan.pairs()))
            betas = np.array([0.0, 1e-6, 0.03, 1.0, 1e3])
            np.testing.assert_allclose(curve(betas), paired(betas), rtol=1e-10)
            slopes = [each(betas, derivative=True)[1] * betas for each in (curve, paired)]
            np.testing.assert_allclose(*slopes, rtol=1e-8, atol=1e-10 * np.abs(paired(1.0)))


def test_a_sentinel_does_not_choose_beta():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 4))
    y = X.sum(axis=1) + rng.standard_normal(60)
    y[17] = 999999999.0
    found, refitted = (
        calibrate(models.NormalInverseGammaLinear(), X, y, strategy)
        for strategy in (strategies.LeaveOneOut(), Refitted())
    )
    assert found.beta == pytest.approx(refitted.beta, rel=1e-5)


class Refitted(strategies.LeaveOneOut):
    """Leave-one-out whose every training set is fitted by itself."""

    def plan(self, data, rng):
        return super().plan(data, rng).pairs()


def test_no_misfit_that_is_left_costs_a_decomposition(monkeypatch):
    """One row more than columns: without a row nothing is left but the prior's share."""
    X, y, weights = ordinary(31, 30)
    data, plan = Data(X, y, weights), LeaveOneOut(weights)
    betas = np.array([1e3, 1e8, 1e11])
    model = models.NormalInverseGammaLinear()
    expected = model.risk_curve(data, plan.pairs())(betas)
    curve = model.risk_curve(data, plan)
    curve(1.0)
    monkeypatch.setattr(np.linalg, "svd", None)
    monkeypatch.setattr(np.linalg, "eigh", None)
    np.testing.assert_allclose(curve(betas), expected, rtol=1e-7)


@pytest.mark.parametrize("transfer", ["beta", "alpha"])
@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("size", [1e-80, 1e-12, 1e12, 1e20])
def test_prior_and_beta_trade_their_units(size, kind, transfer):
    """s2 = s2' / c and S_0 = S_0' c: beta' = beta / c, and the variances are c times as large."""
    X, y, _ = ordinary(40, 3)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 40)
    data, plan = Data(X, y, weights), plan_of(kind, weights, transfer)
    betas = np.array([1e-3, 0.1, 1.0, 30.0])
    for risk in RISKS:
        plain = models.GaussianLinear().risk_curve(data, plan, risk)
        scaled = Data(X, y * np.sqrt(size), weights)
        other = models.GaussianLinear(prior_cov=size).risk_curve(scaled, plan, risk)
        expected, found = (
            np.array(curve(at, derivative=True))
            for curve, at in ((plain, betas), (other, betas / size))
        )
        if risk == "gibbs":
            np.testing.assert_allclose(found[0], size * expected[0], rtol=1e-10)
            np.testing.assert_allclose(
                found[1] / size**2, expected[1], rtol=1e-9, atol=1e-10 * np.abs(expected[1]).max()
            )
        unknown = [
            models.NormalInverseGammaLinear(2.0, b).risk_curve(
                Data(X, response, weights), plan, risk
            )
            for b, response in ((2.0, y), (2.0 * size, y * np.sqrt(size)))
        ]
        gap = 0.5 * np.log(size)
        np.testing.assert_allclose(unknown[1](betas), unknown[0](betas) + gap, rtol=1e-10)


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("model", [models.GaussianLinear(), models.NormalInverseGammaLinear()])
def test_any_beta_has_a_risk(model, kind):
    X, y, weights = ordinary(12, 3)
    for transfer in ("beta", "alpha"):
        for risk in RISKS:
            curve = model.risk_curve(Data(X, y, weights), plan_of(kind, weights, transfer), risk)
            values = np.array(curve(np.array([0.0, 5e-324, 1e60, 1e150]), derivative=True))
            assert np.isfinite(values).all()
            np.testing.assert_allclose(values[0, 1], values[0, 0], rtol=1e-10)
            if isinstance(model, models.GaussianLinear):
                np.testing.assert_allclose(values[0, 3], values[0, 2], rtol=1e-10)
            for ask in (curve, curve.rows):
                with pytest.raises(ValueError, match="beta must be at most 1e\\+150"):
                    ask(1e200)


X, Y, _ = ordinary()


@pytest.mark.parametrize("kind", LINEAR)
@pytest.mark.parametrize(
    "arguments, options, message",
    [
        ((1e-170 * X, Y), {}, "X must have a largest entry between 1e-60 and 1e\\+60"),
        ((1e160 * X, Y), {}, "X must have a largest entry between"),
        ((X, Y), {"prior_cov": 1e200}, "X must have a largest entry between"),
        ((X, Y), {"prior_cov": 1e-200 * np.eye(3)}, "X must have a largest entry between"),
        ((X[:2], Y[:2]), {"prior_cov": 1e200}, "X must have a largest entry between"),
        ((X, 1e150 * Y), {}, "y must be at most 1e\\+60 in units of the noise"),
        ((1e32 * X, Y), {"prior_mean": 0.1}, "prior_mean must predict y to within"),
        (
            (X, Y, np.full(8, 5e-324)),
            {},
            "weights must (have a largest between 1e-20 and|count observations)",
        ),
        (
            (X, Y, np.r_[np.ones(7), 5e-324]),
            {},
            "weights must be at least 1e-100, or 0 .* got 5e-324",
        ),
    ],
)
def test_numbers_beyond_the_limits_are_named(kind, arguments, options, message):
    model = kind(**options)
    for strategy in (
        strategies.KFold(2),
        strategies.LeaveOneOut(),
        strategies.SafeBayes(),
        strategies.Bootstrap(3),
        strategies.ReferenceRisk(),
    ):
        with pytest.raises(ValueError, match=message) as refusal:
            calibrate(model, arguments[0], arguments[1], strategy, weights=_weights(arguments))
        assert "\n" not in str(refusal.value)
    with pytest.raises(ValueError, match=message):
        model.posterior(arguments[0], arguments[1], 1.0, _weights(arguments))


def test_a_singular_value_whose_square_is_zero_is_zero():
    rows = np.random.default_rng(0).standard_normal((8, 4)) * [1.0, 1e-60, 1e-120, 1e-165]
    sigma = singular_values(rows)[1]
    np.testing.assert_array_equal(sigma > 0, sigma**2 > 0)


def _weights(arguments):
    return arguments[2] if len(arguments) > 2 else None


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: models.NormalInverseGammaLinear(b=1e-200), "b must lie between 1e-90 and 1e"),
        (lambda: models.GaussianLinear().posterior(X, Y, 1e200), "alpha must be at most 1e"),
        (
            lambda: models.NormalInverseGammaLinear(b=1e-40, prior_mean=1.0).posterior(
                X, 1e-20 * Y, 1.0
            ),
            "prior_mean must predict y to within",
        ),
        (
            lambda: models.Polynomial(8).design([1e60, 1.0]),
            "X must have finite powers up to 7, got numbers up to 1e",
        ),
    ],
)
def test_single_numbers_beyond_the_limits_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_prior_mean_that_is_nearly_right_keeps_its_digits():
    """y - Z mu_0 in more digits: 1e3 + 1e-9 less 1e3 has seven of them as a double."""
    X, _, weights = ordinary(10, 3)
    mean = np.array([1e6, -2e6, 3e6]) / 7
    y = X @ mean
    data, plan = Data(X, y, weights), LeaveOneOut(weights)
    model = models.GaussianLinear(1e-20, mean, 1e-20)
    assert model.risk_curve(data, plan)(1.0) == pytest.approx(
        many_digits(model, data, plan, "gibbs", 1.0), rel=1e-3
    )


def test_columns_of_any_scale_keep_their_reference():
    """Powers of two in X that the prior takes back change nothing."""
    X, y, weights = ordinary(30, 3)
    powers = np.array([-510, 0, 510])
    scaled, cov = np.ldexp(X, powers), np.ldexp(1.0, -2 * powers)
    for kind in LINEAR:
        for risk in RISKS:
            plain = kind().reference_curve(Data(X, y, weights), weights, risk)
            other = kind(prior_cov=cov).reference_curve(Data(scaled, y, weights), weights, risk)
            np.testing.assert_allclose(other([0.1, 1.0]), plain([0.1, 1.0]), rtol=1e-12)


def test_the_reference_of_more_columns_than_rows_needs_no_square_of_them():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((10, 3000)), rng.standard_normal(10)
    tracemalloc.start()
    curve = models.GaussianLinear().reference_curve(Data(X, y, np.ones(10)), np.ones(10))
    curve(1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * 8 * 3000**2


@pytest.mark.parametrize("shape", [(9, 4), (40, 4), (4, 4)])
def test_singular_values_are_exact_in_every_column_and_row(shape):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal(shape) * np.array([1e-15, 1.0, 1e18, 1e5])
    rows[2] *= 1e9
    left, sigma, right = singular_values(rows)
    with mpmath.workdps(120):
        exact = mpmath.svd_r(mpmath.matrix(rows.tolist()), compute_uv=False)
        expected = np.array([float(each) for each in exact])
    np.testing.assert_allclose(sigma, expected, rtol=1e-13)
    np.testing.assert_allclose(
        (left * sigma) @ right, rows, rtol=1e-9, atol=1e-9 * np.abs(rows).min()
    )
    doubled = rng.standard_normal((9, 2))[:, [0, 1, 1]] * np.array([1e-6, 1.0, 1.0])
    assert np.count_nonzero(singular_values(doubled)[1]) == 2


@pytest.mark.parametrize("seed", range(3))
def test_singular_values_of_columns_that_differ_by_thousands(seed):
    rows = np.random.default_rng(seed).standard_normal((9, 4)) * np.array([1.0, 50.0, 2.0, 8e3])
    with mpmath.workdps(60):
        exact = mpmath.svd_r(mpmath.matrix(rows.tolist()), compute_uv=False)
        expected = np.array([float(each) for each in exact])
    np.testing.assert_allclose(singular_values(rows)[1], expected, rtol=2e-15)


@pytest.mark.parametrize("shape", [(8, 3), (6, 6), (5, 9)])
@pytest.mark.parametrize("columns", [slice(None), slice(2)])
def test_rows_that_others_drown_are_refused(shape, columns):
    X, y, _ = ordinary(*shape)
    X[2, columns] *= 1e16
    for model in LINEAR:
        for strategy in (strategies.LeaveOneOut(), strategies.KFold(3), strategies.ReferenceRisk()):
            with pytest.raises(ValueError, match="^X must have rows that are not lost in the rou"):
                calibrate(model(), X, y, strategy)


def test_one_short_entry_of_a_long_column_is_not_refused():
    X, y, weights = ordinary()
    X[:, 1] *= np.where(np.arange(8) == 3, 1.0, 1e16)
    data, plan = Data(X, y, weights), plan_of("folds", weights)
    for model in LINEAR:
        expected = many_digits(model(), data, plan, "predictive", 2.0)
        found = model().risk_curve(data, plan, "predictive")(2.0)
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("transfer", ["beta", "alpha"])
def test_misfits_beside_a_row_that_is_huge_in_inputs_and_response(transfer):
    """What is left of the other responses would be rounding of this one, times beta."""
    X, y, weights = ordinary(7, 6, seed=2)
    X[5], y[5] = 1e12 * X[5], 1e12 * y[5]
    data, plan = Data(X, y, weights), LeaveOneOut(weights, transfer)
    model = models.NormalInverseGammaLinear()
    for risk in RISKS:
        expected = many_digits(model, data, plan, risk, 1e4)
        for each in (plan, plan.pairs()):
            found = model.risk_curve(data, each, risk)(1e4)
            assert found == pytest.approx(expected, rel=1e-11)


def source_of(X, y, weights, kind, transfer, prior=1.0):
    rows = WhitenedRows(X, y, np.full(X.shape[1], np.sqrt(prior)))
    plan = plan_of(kind, weights, transfer)
    return moment_source(rows, plan) or PlainMoments(rows, plan.pairs())


NOISES = (KnownVariance(), InverseGammaVariance(2.0, 3.0))


@pytest.mark.parametrize("transfer", ["beta", "alpha"])
@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("case", ["plain", "sentinel", "one-hot"])
class TestMovingBetas:
    def data(self, case):
        X, y, _ = ordinary(40, 3)
        if case == "sentinel":
            y[4] = 1e6
        if case == "one-hot":
            X[:, 1] = np.arange(40) == 6
        return X, y, np.random.default_rng(2).uniform(0.5, 2.0, 40)

    def test_a_curve_moves_nowhere_else(self, case, kind, transfer):
        X, y, weights = self.data(case)
        for model, noise in zip(LINEAR, NOISES, strict=True):
            options = {} if noise is NOISES[0] else {"a": noise.a, "b": noise.b}
            low, high = changing_betas(source_of(X, y, weights, kind, transfer), noise)
            plan = plan_of(kind, weights, transfer)
            for risk in RISKS:
                curve = model(**options).risk_curve(Data(X, y, weights), plan, risk)
                scan = curve(np.geomspace(low / 1e3, high * 1e3, 200))
                below, above = curve(0.0) - scan[0], curve(1e3 * high) - scan[-1]
                assert max(abs(below), abs(above)) < 0.02 * np.ptp(scan)

    def test_it_is_not_far_too_wide(self, case, kind, transfer):
        X, y, weights = self.data(case)
        low, high = changing_betas(source_of(X, y, weights, kind, transfer), KnownVariance())
        lam = np.linalg.eigvalsh((X.T * weights) @ X)
        assert 1e-3 / lam[-1] < low < 1 / lam[-1] * 2
        assert high < (1e8 if case == "one-hot" else 1e5) / lam[0]

    def test_it_goes_with_the_units(self, case, kind, transfer):
        X, y, weights = self.data(case)
        plain = changing_betas(source_of(X, y, weights, kind, transfer), NOISES[0])
        other = changing_betas(source_of(X, y, weights, kind, transfer, 2.0**40), NOISES[0])
        np.testing.assert_allclose(np.array(other) * 2.0**40, plain, rtol=1e-10)


def test_zero_inputs_do_not_move():
    source = source_of(np.zeros((5, 2)), np.ones(5), np.ones(5), "folds", "beta")
    assert changing_betas(source, KnownVariance()) == Scale(1.0)  # any will do
    low, high = changing_betas(source, InverseGammaVariance(2.0, 3.0))
    assert 0 < low < high


@pytest.mark.parametrize("strategy", ["naive", "reference-risk"])
def test_noise_below_the_rounding_of_the_responses_is_refused(strategy):
    y = 1.7e9 + np.arange(4.0)
    with pytest.raises(ValueError, match="^noise_variance must not be lost in the rounding of y"):
        calibrate(models.GaussianMean(3e-10), None, y, strategy)
