"""Laws of responses and coefficients against scipy.stats and against draws."""

from __future__ import annotations

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy import integrate, optimize, special, stats
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from temperance import GibbsClassifier, GibbsRegressor, models, scoring
from temperance.forecasts import Forecast, forecast, log_gamma_half_step

POINTS = np.array([-30.0, -2.0, 0.0, 0.7, 4.0])


@pytest.mark.parametrize("dof", [0.7, 2.0, 3.5, 60.0, 1e7, np.inf])
def test_student_law_is_scipys(dof):
    location, scale = np.linspace(-1, 1, 5), np.linspace(0.5, 3, 5)
    law = Forecast.single(location, scale, dof)
    naive = stats.norm(location, scale) if np.isinf(dof) else stats.t(dof, location, scale)
    np.testing.assert_allclose(law.cdf(POINTS), naive.cdf(POINTS), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(law.log_density(POINTS), naive.logpdf(POINTS), rtol=1e-8)
    np.testing.assert_allclose(law.interval(0.9), np.transpose(naive.interval(0.9)), rtol=1e-9)
    np.testing.assert_allclose(law.std, naive.std() if dof > 2 else np.full(5, np.inf), rtol=1e-9)
    np.testing.assert_array_equal(law.mean, location)


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1, float("nan"), "0.95"])
def test_level_outside_the_unit_interval_is_refused(level):
    with pytest.raises(ValueError, match="level must"):
        Forecast.single(np.zeros(1), np.ones(1)).interval(level)


def mixture(dof=(1.5, 4.0, 30.0, np.inf), seed=0):
    rng = np.random.default_rng(seed)
    location, scale = 3 * rng.standard_normal((4, 6)), rng.uniform(0.05, 2.0, (4, 6))
    return Forecast(location, scale, np.array(dof), rng.dirichlet(np.ones(4)))


def test_quantiles_of_a_mixture_solve_its_distribution_function():
    law, levels = mixture(), np.array([1e-6, 0.025, 0.3, 0.5, 0.975, 1 - 1e-6])
    found = law.quantile(levels)
    assert found.shape == (6, 6)
    assert law.quantile(0.3).shape == (6,)
    np.testing.assert_allclose(law.quantile(0.3), found[2], rtol=1e-8)
    for j in range(6):
        part = Forecast(law.location[:, [j]], law.scale[:, [j]], law.dof, law.weights)
        for i, q in enumerate(levels):
            root = optimize.brentq(
                lambda y, part=part, q=q: part.cdf(y)[0] - q, -1e5, 1e5, xtol=1e-10
            )
            assert found[i, j] == pytest.approx(root, rel=1e-6, abs=1e-7)


def test_quantiles_far_out_take_few_steps(monkeypatch):
    calls, cdf = [], Forecast.cdf
    monkeypatch.setattr(Forecast, "cdf", lambda *args: calls.append(1) or cdf(*args))
    scale = np.array([[1.0, 3.0], [2.0, 1.0]])
    law = Forecast(0 * scale, scale, np.full(2, 0.2), np.full(2, 0.5))
    found = law.quantile([0.025, 0.5, 0.975])
    assert found[2].min() > 1e4
    assert len(calls) <= 15
    np.testing.assert_allclose(law.cdf(found[2]), 0.975, rtol=1e-12)


def test_draws_of_a_mixture_follow_it():
    law = mixture()
    draws = law.sample(50_000, seed=1)
    assert draws.shape == (50_000, 6)
    for uniform in law.cdf(draws).T:
        assert stats.kstest(uniform, "uniform").pvalue > 1e-3
    assert np.isinf(law.std).all()  # of 1.5 degrees of freedom
    law = mixture((5.0, 4.5, 30.0, np.inf))
    draws = law.sample(200_000, seed=2)
    np.testing.assert_allclose(law.std, draws.std(axis=0), rtol=0.02)
    assert np.all(np.abs(law.mean - draws.mean(axis=0)) < 4 * law.std / np.sqrt(200_000))
    # A part of scale 0 is a point, whatever its tails.
    point = Forecast(np.ones((1, 1)), np.zeros((1, 1)), np.array([1.0]), np.ones(1))
    assert point.std == 0


@pytest.mark.parametrize("law", [mixture(), mixture((3.0, 4.0, 30.0, np.inf), seed=5)])
def test_crps_is_its_integral(law):
    y = np.array([-3.0, 0.0, 0.4, 2.0, 10.0, -200.0])
    for j, found in enumerate(law.crps(y)):
        part = Forecast(law.location[:, [j]], law.scale[:, [j]], law.dof, law.weights)
        edges = np.concatenate([np.arcsinh(part.location.ravel()), [np.arcsinh(y[j])]])
        naive = sum(
            integrate.quad(
                lambda t, part=part, j=j: (
                    (part.cdf(np.sinh(t))[0] - (np.sinh(t) >= y[j])) ** 2 * np.cosh(t)
                ),
                *ends,
                limit=400,
            )[0]
            for ends in pairwise([-40.0, *np.sort(edges), 40.0])
        )
        assert found == pytest.approx(naive, rel=2e-3)


def test_crps_of_a_normal_law_is_closed():
    y = np.linspace(-4, 4, 9)
    law = Forecast.single(np.full(9, 0.5), np.full(9, 2.0))
    z = (y - 0.5) / 2
    closed = 2 * (z * (2 * special.ndtr(z) - 1) + 2 * stats.norm.pdf(z) - np.pi**-0.5)
    np.testing.assert_allclose(law.crps(y), closed, rtol=1e-8)
    assert np.isinf(Forecast.single(np.zeros(1), np.ones(1), 0.4).crps([0.0])).all()


@pytest.mark.parametrize(("apart", "y", "exact"), [(100.0, 50.0, 24.7180), (1e6, 3.0, 249_999.757)])
def test_crps_of_parts_that_are_far_apart(apart, y, exact):
    law = Forecast(np.array([[0.0], [apart]]), np.ones((2, 1)), np.full(2, np.inf), np.full(2, 0.5))
    # E|X - y| - E|X - X'| / 2 of normal parts is closed.
    spread = np.sqrt(2 / np.pi)
    distance = 0.5 * (abs(y) + abs(apart - y)) if y == 50 else None
    if distance is not None:
        exact = distance - 0.5 * (0.5 * apart + 0.5 * spread * np.sqrt(2))
    assert law.crps([y])[0] == pytest.approx(exact, rel=1e-3)


def test_a_transformed_law_is_that_of_the_logarithm():
    law = Forecast.single(np.array([0.3, -1.0]), np.array([0.5, 1.0]))
    found, naive = (
        law.transformed(np.exp, np.log),
        stats.lognorm([0.5, 1.0], scale=np.exp([0.3, -1.0])),
    )
    y = np.array([0.7, 2.0])
    np.testing.assert_allclose(found.cdf(y), naive.cdf(y), rtol=1e-10)
    np.testing.assert_allclose(found.log_density(y), naive.logpdf(y), rtol=1e-6)
    np.testing.assert_allclose(found.interval(0.9), np.transpose(naive.interval(0.9)), rtol=1e-10)
    x = np.linspace(1e-6, 60, 400_001)[:, None]
    squares = (naive.cdf(x) - (x >= y)) ** 2
    np.testing.assert_allclose(found.crps(y), np.trapezoid(squares, x, axis=0), rtol=2e-3)
    for uniform in found.cdf(found.sample(20_000, seed=0)).T:
        assert stats.kstest(uniform, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("a", [0.1, 0.75, 3.0, 19.99, 20.01, 1e3, 1e6, 1e9])
def test_half_steps_of_the_gamma_function(a):
    with mpmath.workdps(40):
        exact = mpmath.loggamma(mpmath.mpf(a) + 0.5) - mpmath.loggamma(mpmath.mpf(a))
        slope = mpmath.digamma(mpmath.mpf(a) + 0.5) - mpmath.digamma(mpmath.mpf(a))
    assert log_gamma_half_step(a) == pytest.approx(float(exact), rel=1e-12)
    assert log_gamma_half_step(a + 1e-100j).imag == pytest.approx(1e-100 * float(slope), rel=1e-6)


DIABETES = load_diabetes(return_X_y=True)


def test_forecasts_inside_meta_estimators():
    X, y = DIABETES
    plain = (
        GibbsRegressor()
        .fit(StandardScaler().fit_transform(X), y)
        .forecast(StandardScaler().fit(X).transform(X[:5]))
    )
    pipeline = make_pipeline(StandardScaler(), "passthrough", GibbsRegressor())
    grid = GridSearchCV(pipeline, {"gibbsregressor__standardize": [True]}, cv=3)
    for model in (pipeline, grid):
        found = forecast(model.fit(X, y), X[:5])
        np.testing.assert_allclose(found.interval(), plain.interval(), rtol=1e-9)
    logged = TransformedTargetRegressor(GibbsRegressor(), func=np.log, inverse_func=np.exp)
    law = forecast(logged.fit(X, y), X[:5])
    inner = logged.regressor_.forecast(X[:5])
    np.testing.assert_allclose(law.interval(), np.exp(inner.interval()))
    np.testing.assert_allclose(
        law.log_density(y[:5]), inner.log_density(np.log(y[:5])) - np.log(y[:5]), rtol=1e-6
    )
    with pytest.raises(ValueError, match="model must have a method forecast, got StandardScaler"):
        forecast(StandardScaler(), X)
    falling = TransformedTargetRegressor(
        GibbsRegressor(), func=np.negative, inverse_func=np.negative
    )
    with pytest.raises(ValueError, match="by an increasing function"):
        forecast(falling.fit(X, y), X)


def test_scores_are_means_over_rows():
    X, y = DIABETES
    model = GibbsRegressor().fit(X, y)
    law = model.forecast(X)
    assert scoring.log_score(model, X, y) == pytest.approx(law.log_density(y).mean())
    assert scoring.crps_score(model, X, y) == pytest.approx(-law.crps(y).mean())
    low, high = law.interval(0.8).T
    naive = [
        u - l + 10 * max(l - each, 0) + 10 * max(each - u, 0)
        for l, u, each in zip(low, high, y, strict=True)  # noqa: E741
    ]
    assert scoring.interval_score(0.8)(model, X, y) == pytest.approx(-np.mean(naive))
    labels = np.where(y > 140, "high", "low")
    classes = GibbsClassifier(strategy="bayes").fit(X, labels)
    probability = classes.predict_proba(X)[np.arange(len(y)), (labels == "low").astype(int)]
    assert scoring.log_score(classes, X, labels) == pytest.approx(np.log(probability).mean())
    with pytest.raises(ValueError, match=r"y must hold the classes of the fit.*got 'middle'"):
        scoring.log_score(classes, X, np.full(len(y), "middle"))
    found = cross_val_score(
        make_pipeline(StandardScaler(), GibbsRegressor()), X, y, scoring=scoring.crps_score, cv=3
    )
    assert np.all(found < 0)


MODELS = {
    "known variance": models.GaussianLinear(noise_variance=0.5, prior_cov=2.0),
    "unknown variance": models.NormalInverseGammaLinear(a=3.0, b=2.0),
}


@pytest.fixture(params=MODELS, scope="module")
def posterior(request):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 3))
    return MODELS[request.param].posterior(X, X[:, 0] + rng.standard_normal(12), alpha=5.0)


NEW = np.array([[1.0, -0.5, 2.0], [0.0, 3.0, 1.0]])


def test_draws_of_responses_follow_the_forecast(posterior):
    draws = posterior.sample_response(NEW, 40_000, seed=1)
    assert draws.shape == (40_000, 2)
    forecast = posterior.predictive(NEW)
    for column, uniform in zip(draws.T, forecast.cdf(draws).T, strict=True):
        assert stats.kstest(uniform, "uniform").pvalue > 1e-3
        # Negative control: a law that is a tenth too wide is found out.
        wide = Forecast.single(np.array([column.mean()]), np.array([1.1 * column.std()]))
        assert stats.kstest(wide.cdf(column), "uniform").pvalue < 1e-6
    # Responses of one draw share its coefficients.
    joint = posterior.combination(NEW[:1] + NEW[1:])
    alone = posterior.combination(NEW)
    shared = (joint.std**2 - (alone.std**2).sum()) / 2
    covariance = np.prod(draws - draws.mean(axis=0), axis=1)
    error = covariance.std() / np.sqrt(len(draws))
    assert abs(covariance.mean() - shared[0]) < 4 * error


def test_predict_is_the_mean_and_deviation_of_the_forecast(posterior):
    mean, deviation = posterior.predict(NEW)
    draws = posterior.sample_response(NEW, 100_000, seed=2)
    np.testing.assert_allclose(mean, NEW @ posterior.mean, rtol=1e-12)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4 * deviation / np.sqrt(1e5))
    np.testing.assert_allclose(draws.std(axis=0), deviation, rtol=0.03)


def test_combinations_of_coefficients_follow_their_law(posterior):
    directions = np.vstack([np.eye(3), [1.0, -2.0, 0.5]])
    draws = posterior.sample(40_000, seed=3)[:, :3] @ directions.T
    for uniform in posterior.combination(directions).cdf(draws).T:
        assert stats.kstest(uniform, "uniform").pvalue > 1e-3


def test_log_probabilities_of_both_classes():
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((20, 2)), rng.integers(0, 2, 20)
    posterior = models.LaplaceLogistic().posterior(X, y, alpha=20.0)
    inputs = np.array([[1.0, -1.0], [0.3, 2.0], [400.0, 500.0]])
    other, one = posterior.log_predict(inputs)
    np.testing.assert_allclose(np.exp(one), posterior.predict(inputs), rtol=1e-12)
    np.testing.assert_allclose(np.exp(other) + np.exp(one), 1, rtol=1e-12)
    mean, variance = posterior.linear_predictor(inputs)
    for k in range(2):
        naive, _ = integrate.quad(
            lambda z, k=k: special.expit(-(mean[k] + np.sqrt(variance[k]) * z)) * stats.norm.pdf(z),
            -12,
            12,
        )
        assert np.exp(other[k]) == pytest.approx(naive, rel=1e-9)
