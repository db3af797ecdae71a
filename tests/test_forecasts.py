"""Laws of responses and coefficients against scipy.stats and against draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special, stats

from temperance import models
from temperance.posteriors import StudentT

POINTS = np.array([-30.0, -2.0, 0.0, 0.7, 4.0])


@pytest.mark.parametrize("dof", [0.7, 2.0, 3.5, 60.0, 1e7, np.inf])
def test_student_law_is_scipys(dof):
    location, scale = np.linspace(-1, 1, 5), np.linspace(0.5, 3, 5)
    law = StudentT(location, scale, dof)
    naive = stats.norm(location, scale) if np.isinf(dof) else stats.t(dof, location, scale)
    np.testing.assert_allclose(law.cdf(POINTS), naive.cdf(POINTS), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(law.log_density(POINTS), naive.logpdf(POINTS), rtol=1e-8)
    np.testing.assert_allclose(law.interval(0.9), np.transpose(naive.interval(0.9)), rtol=1e-9)
    np.testing.assert_allclose(law.std, naive.std() if dof > 2 else np.full(5, np.inf), rtol=1e-9)
    np.testing.assert_array_equal(law.mean, location)


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1, float("nan"), "0.95"])
def test_level_outside_the_unit_interval_is_refused(level):
    with pytest.raises(ValueError, match="level must"):
        StudentT(np.zeros(1), np.ones(1)).interval(level)


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
        wide = StudentT(column.mean(), 1.1 * column.std())
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
