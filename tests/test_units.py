"""Logistic models whose columns come in any units: the worst problems met, and laws they obey."""

import collections
import tracemalloc
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from temperance import calibrate, models, strategies
from temperance.data import Data
from temperance.losses.logistic import Logistic
from temperance.models.glm import (
    fast,
    full_covariance,
    jaakkola,
    laplace,
    mean_and_curvature,
    mean_field,
)
from temperance.models.glm import rows as glm_rows
from temperance.models.glm.fast import leave_one_out
from temperance.models.glm.model import Problem
from temperance.models.glm.rows import Rows
from temperance.plans import LeaveOneOut
from temperance.quadrature import softplus_expectations

MODELS = {
    "jaakkola": models.JaakkolaLogistic,
    "full": models.FullCovarianceLogistic,
    "laplace": models.LaplaceLogistic,
    "mean-field": models.MeanFieldLogistic,
}
SYSTEMS = (
    jaakkola.JaakkolaSystem,
    full_covariance.FullCovarianceSystem,
    mean_and_curvature.MeanAndCurvatureSystem,
    laplace.LaplaceSystem,
    mean_field.MeanFieldSystem,
)


def labelled(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (rng.random(n) < special.expit(X[:, 0] - X[:, 1] / 2)).astype(float)


def with_columns(X, *columns):
    """Replace the last columns."""
    return np.column_stack([X[:, : X.shape[1] - len(columns)], *columns])


def worst_problems():
    X, y = labelled(120, 5)
    large, rng = 1e8 * X[:, 4], np.random.default_rng(1)
    times = 1.7e9 + 1e7 * rng.random(120)
    scales = X * 10.0 ** np.linspace(-8, 12, 5)
    dependent = 1e8 * np.column_stack([X, X @ rng.standard_normal((5, 4))])
    clean = (X[:, 0] > 0).astype(float)
    heavy = np.where(np.arange(120)[:, None] == 7, 1e9 * X, X)
    return {
        "timestamp": (with_columns(X, times), y),
        "constant of 1e8": (with_columns(X, np.full(120, 1e8)), y),
        "equal columns of 1e8": (with_columns(X, large, large), y),
        "equal constants of 1e8": (with_columns(X, np.full((120, 2), 1e8)), y),
        "ten rows, equal constants of 1e8": (
            with_columns(X[:10], np.full((10, 2), 1e8)),
            np.arange(10) % 2.0,
        ),
        "scales from 1e-8 to 1e12": (scales, y),
        "scales, separable": (scales, clean),
        "separable, 1e8": (1e8 * X, clean),
        "all columns of 1e12": (1e12 * X, y),
        "dependent columns of 1e8": (dependent, y),
        "dependent, scales apart": (dependent * 10.0 ** np.linspace(-12, 0, 9), y),
        "one row of 1e9": (heavy, y),
        "more columns than rows, 1e6": (1e6 * rng.standard_normal((20, 30)), np.arange(20) % 2.0),
    }


WORST = worst_problems()


@pytest.fixture
def newton_steps(monkeypatch):
    """Count the Newton steps of all systems."""
    counts = collections.Counter()

    def count(kind):
        newton = kind.newton
        monkeypatch.setattr(
            kind, "newton", lambda self, x, beta: counts.update([kind]) or newton(self, x, beta)
        )

    for kind in SYSTEMS:
        count(kind)
    return counts


@pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
@pytest.mark.parametrize("problem", WORST)
@pytest.mark.parametrize("name", MODELS)
def test_any_units_are_calibrated_in_a_sane_number_of_steps(name, problem, newton_steps):
    X, y = WORST[problem]
    found = calibrate(MODELS[name](), X, y, strategies.KFold(3), risk="gibbs", seed=0)
    assert np.isfinite(found.risk)
    assert newton_steps.total() < 400  # about twenty with standardised inputs


def curve_of(name, problem, risk="gibbs"):
    X, y = WORST[problem]
    data = Data(X, y, np.ones(len(y)))
    return MODELS[name]().risk_curve(*folds_of(data), risk)


def folds_of(data):
    return strategies.KFold(4).planned(data, np.random.default_rng(0))


@pytest.mark.parametrize("problem", sorted(set(WORST) - {"more columns than rows, 1e6"}))
@pytest.mark.parametrize("name", ["full", "laplace", "mean-field"])
def test_slopes_are_those_of_the_curve_in_any_units(name, problem):
    curve = curve_of(name, problem)
    for beta in (1e-3, 1.0):
        step = 1e-3 * beta
        value, slope = curve(beta, derivative=True)
        rise = (curve(beta + step) - curve(beta - step)) / (2 * step)
        rounding = 1e-12 * abs(value) / step
        assert slope == pytest.approx(rise, rel=2e-5, abs=rounding)


@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize("name", MODELS)
def test_a_vast_prior_is_a_flat_one(name, risk):
    """However vast: where data outweigh it, 1e8 and 1e40 deviations give the same curve."""
    X, y = labelled(60, 3)
    data, plan = folds_of(Data(X, y, np.ones(60)))
    betas = np.array([0.01, 0.3, 1.0, 3.0])
    one, other = (MODELS[name](prior_cov=cov).risk_curve(data, plan, risk) for cov in (1e16, 1e80))
    np.testing.assert_allclose(one(betas), other(betas), rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_units_of_columns_are_those_of_the_prior(name):
    """Rows X diag(c) with prior deviations s / c are rows X with deviations s."""
    X, y = labelled(40, 4)
    X, c = with_columns(X, np.full(40, 1e8)), np.array([1e-7, 3e11, 7.0, 1e5])
    deviations = np.array([1.0, 100.0, 1e-3, 2.0])
    data, scaled = (Data(each, y, np.ones(40)) for each in (X, X * c))
    _, plan = folds_of(data)
    betas = np.array([0.0, 1e-6, 0.01, 1.0, 100.0])
    one = MODELS[name](prior_cov=deviations**2).risk_curve(data, plan)
    other = MODELS[name](prior_cov=(deviations / c) ** 2).risk_curve(scaled, plan)
    np.testing.assert_allclose(one(betas), other(betas), rtol=1e-9)


@pytest.mark.parametrize("name", ["jaakkola", "full", "laplace"])
def test_equal_columns_are_one_longer_column(name):
    """Along (1, 1) / sqrt 2; across it nothing is learnt."""
    X, y = labelled(50, 3)
    x = 1e8 * X[:, 2:]
    twice, once = np.hstack([X[:, :2], x, x]), np.hstack([X[:, :2], np.sqrt(2) * x])
    betas = np.array([1e-6, 0.01, 1.0])
    _, plan = folds_of(Data(once, y, np.ones(50)))
    one, other = (
        MODELS[name]().risk_curve(Data(each, y, np.ones(50)), plan) for each in (once, twice)
    )
    np.testing.assert_allclose(one(betas), other(betas), rtol=1e-7)
    posterior = MODELS[name]().posterior(twice, y, 50.0)
    assert posterior.mean[2] == pytest.approx(posterior.mean[3], rel=1e-6)
    across = np.array([0.0, 0.0, 1.0, -1.0]) / np.sqrt(2)
    assert across @ posterior.cov @ across == pytest.approx(1.0, rel=1e-6)


def mode_by_many_digits(x, y, c, start):
    """Solve u + c sum_i (sigmoid(x_i u) - y_i) x_i = 0 with fifty digits."""
    with mp.workdps(50):
        rows = [
            (mp.mpf(Fraction(a).numerator) / Fraction(a).denominator, int(b))
            for a, b in zip(x, y, strict=True)
        ]

        def gradient(u):
            return u + c * sum((1 / (1 + mp.exp(-a * u)) - b) * a for a, b in rows)

        return float(mp.findroot(gradient, start, solver="secant", tol=1e-60))


@pytest.mark.parametrize("size", [1.0, 1e4, 1e8, 1e12])
def test_the_mode_of_separable_rows_has_all_its_digits(size):
    """Labels far on the right side pull by 1e-20, which 1 less a probability would not show."""
    x, y = size * np.array([-2.0, -1.0, 1.5, 3.0]), np.array([0.0, 0.0, 1.0, 1.0])
    u = models.LaplaceLogistic().posterior(x, y, 4.0).mean[0]
    assert u * size == pytest.approx(mode_by_many_digits(x, y, 1, (u, 1.01 * u)) * size, rel=1e-9)


def test_mean_field_of_equal_columns_is_symmetric_and_stationary():
    X, y = labelled(30, 3)
    X = np.column_stack([X[:, :2], 1e8 * X[:, 2], 1e8 * X[:, 2]])
    posterior = models.MeanFieldLogistic().posterior(X, y, 30.0)
    assert posterior.mean[2] == pytest.approx(posterior.mean[3], rel=1e-7)
    assert posterior.std[2] == pytest.approx(posterior.std[3], rel=1e-7)
    mean, variance = posterior.linear_predictor(X)
    _, first, second = softplus_expectations(mean, variance, 2)
    size = np.abs(X).max(axis=0)
    np.testing.assert_allclose((posterior.mean + (first - y) @ X) / size, 0.0, atol=1e-7)
    np.testing.assert_allclose(1 / posterior.std**2, 1 + second @ X**2, rtol=1e-6)


def expectation_by_fourier(mean, variance, order):
    """E softplus^(j)(f), j >= 2; pi k / sinh pi k is the logistic law's characteristic function."""
    with mp.workdps(40):
        s, m = mp.sqrt(variance), mp.mpf(mean)

        def integrand(t):
            k = t / s
            wave = mp.re((1j * k) ** (order - 2) * mp.expj(k * m))
            return wave * mp.exp(-t * t / 2) * (mp.pi * k / mp.sinh(mp.pi * k) if k else 1)

        return mp.quad(integrand, mp.linspace(0, 14, 8)) / (mp.pi * s)


@pytest.mark.parametrize("variance", [1.1e3, 1e6, 1e14, 1e24])
@pytest.mark.parametrize("u", [0.0, -0.5, -4.0])
def test_expectations_under_vast_variances_are_relatively_accurate(variance, u):
    """The fourth derivative is of the order v^-3/2, and Newton's method needs its digits."""
    found = softplus_expectations(u * np.sqrt(variance), variance, 4)[2:]
    for order, value in zip((2, 3, 4), found, strict=True):
        expected = expectation_by_fourier(u * np.sqrt(variance), variance, order)
        assert value == pytest.approx(float(expected), rel=1e-11, abs=1e-300)


def test_dependent_columns_are_turned_and_others_left_alone():
    X, _ = labelled(40, 5)
    X[:, 1] = X[:, 0] + 1e-9 * X[:, 3]
    X[:, 4] *= 1e20
    turn = glm_rows.principal_axes(X, np.ones(40))
    np.testing.assert_allclose(turn @ turn.T, np.eye(5), atol=1e-14)
    np.testing.assert_array_equal(turn[2:], np.eye(5)[2:])
    cosine = np.corrcoef((X @ turn)[:, :2].T)[0, 1]
    assert abs(cosine) < 0.99
    coordinates, basis = glm_rows.spanning_axes(X, np.ones(40))
    np.testing.assert_allclose(coordinates @ basis.T, X, rtol=1e-12, atol=1e-12)
    ordinary = X[:, 2:]
    assert glm_rows.principal_axes(ordinary, np.ones(40)) is None
    assert glm_rows.spanning_axes(ordinary, np.ones(40)) == (ordinary, None)


def test_mean_field_in_the_space_of_rows_takes_the_same_steps(monkeypatch):
    """As with the Jacobian of all columns."""
    monkeypatch.setattr(glm_rows, "principal_axes", lambda Z, weights: None)
    rng = np.random.default_rng(0)
    Z, y = rng.standard_normal((6, 9)), np.arange(6) % 2.0
    few = Rows(Z, 0.1 * Z[:, 0], y, rng.uniform(0.5, 2.0, (3, 6)))
    # Rows of weight zero change nothing, but make rows more than columns.
    silent = Rows(
        np.vstack([Z, rng.standard_normal((6, 9))]),
        np.append(few.offset, np.zeros(6)),
        np.append(y, y),
        np.hstack([few.weights, np.zeros((3, 6))]),
    )
    x = np.concatenate([rng.standard_normal((3, 9)), -rng.random((3, 9))], axis=1)
    systems = [mean_field.MeanFieldSystem(rows, Logistic()) for rows in (few, silent)]
    for beta in (0.0, 0.3, 40.0):
        (step, tangent), (other_step, other_tangent) = (each.newton(x, beta) for each in systems)
        np.testing.assert_allclose(step, other_step, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(tangent(), other_tangent(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("strategy", [strategies.KFold(4), strategies.LeaveOneOut()], ids=str)
def test_mean_field_of_many_columns_takes_memory_for_the_rows(strategy):
    """A Jacobian of its means and deviations would have k times as many elements as a row."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((10, 3000)), np.arange(10) % 2.0
    data, plan = strategy.planned(Data(X, y, np.ones(10)), rng)
    tracemalloc.start()
    value = models.MeanFieldLogistic(prior_cov=1e-3).risk_curve(data, plan)(np.array([0.1, 1.0]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.all(np.isfinite(value)) and peak < 40 * X.nbytes


def test_a_diagonal_gaussian_has_deviations_and_no_matrix():
    X, y = labelled(20, 3)
    rows = Rows(X, np.zeros(20), y, np.ones((1, 20)))
    model = models.MeanFieldLogistic()
    problem = Problem(rows, model.approximation(Logistic()), None, model.prior(3))
    mean, deviation = model.gaussian(problem)(1.0)
    assert mean.shape == deviation.shape == (3,)
    posterior = models.MeanFieldLogistic().posterior(X, y, 20.0)
    np.testing.assert_allclose(posterior.std, deviation, rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_rows_too_large_to_be_squared_are_refused_in_one_line(name):
    X, y = labelled(10, 2)
    X[3, 1] = -1e160
    for call in (
        lambda: MODELS[name]().posterior(X, y, 10.0),
        lambda: calibrate(MODELS[name](), X, y),
    ):
        with pytest.raises(
            ValueError, match=r"^X .* at most 1e\+50 .*got -1e\+160 in row 3, column 1$"
        ):
            call()


@pytest.mark.parametrize("name", MODELS)
def test_a_prior_mean_of_absurd_log_odds_is_refused_in_one_line(name):
    """From so far off the fits stopped short, and the nearest found was called an answer."""
    X, y = labelled(10, 2)
    X[3, 1] = -2e4
    for call in (
        lambda: MODELS[name](prior_mean=[0.0, 0.1]).posterior(X, y, 10.0),
        lambda: calibrate(MODELS[name](prior_mean=[0.0, 0.1]), X, y),
    ):
        with pytest.raises(
            ValueError, match=r"^prior_mean must predict .* at most 1000 .*got -2e\+03 in row 3;"
        ):
            call()


@pytest.mark.parametrize("name", MODELS)
def test_a_row_that_alone_tells_a_coefficient_is_left_out_without_dividing_by_zero(
    name, monkeypatch
):
    """Its leverage is one but for what the prior adds, far below rounding."""
    monkeypatch.setattr(fast, "MANY_LEFT_OUT", 50)
    monkeypatch.setattr(leave_one_out, "MOST_REFITS", 0)
    X, y = labelled(80, 3)
    X[:, 2] = np.where(np.arange(80) == 5, 1e9, 0.0)
    data = Data(X, y, np.ones(80))
    curve = MODELS[name]().risk_curve(data, LeaveOneOut(data.weights))
    losses, _ = curve.rows(1.0)
    assert np.all(np.isfinite(losses)) and np.all(losses >= 0)
