"""Laws that hold for every model."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenarios import (
    LINEAR,
    LOGISTIC,
    MODELS,
    RISKS,
    SOFTMAX,
    data_for,
    naive_losses,
    table_of,
)

from temperance import calibrate, expected_risk, strategies
from temperance.data import Data
from temperance.messages import BoundWarning

EXACT = {"linear", "unknown variance", "mean", "polynomial"}
counts = st.lists(st.integers(0, 3), min_size=14, max_size=14).filter(lambda w: sum(w) > 3)


def parameters(posterior):
    if not hasattr(posterior, "root"):  # a mixture
        law = posterior.marginals()
        return np.concatenate([law.weights, law.location.ravel(), law.scale.ravel(), law.dof])
    extra = [posterior.a, posterior.b] if hasattr(posterior, "a") else []
    return np.concatenate([posterior.mean, posterior.root.product().ravel(), extra])


def repeated(data, weights):
    return np.repeat(data.X, weights, axis=0), np.repeat(data.y, weights)


@pytest.mark.parametrize("name", MODELS)
@given(weights=counts, alpha=st.floats(0.1, 60.0))
@settings(max_examples=12, deadline=None)
def test_weight_k_is_a_row_repeated_k_times(name, weights, alpha):
    model, data = MODELS[name], data_for(name)
    X, y = repeated(data, weights)
    weighted = parameters(model.posterior(data.X, data.y, alpha, weights))
    np.testing.assert_allclose(
        weighted, parameters(model.posterior(X, y, alpha)), rtol=1e-7, atol=1e-9
    )
    fresh = data_for(name, seed=3)
    for risk in RISKS:
        risks = [
            expected_risk(model, train, test, alpha, risk=risk, derivative=True)
            for train, test in (
                ((data.X, data.y, weights), (fresh.X, fresh.y, weights)),
                ((X, y), repeated(fresh, weights)),
            )
        ]
        np.testing.assert_allclose(risks[0], risks[1], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize(
    "strategy",
    [strategies.Bayes(), strategies.Naive(), strategies.KFold(duplicates="together")],
    ids=lambda strategy: type(strategy).__name__,
)
@pytest.mark.parametrize("name", MODELS)
def test_calibration_with_weights_is_calibration_with_repeated_rows(name, strategy):
    model, data = MODELS[name], data_for(name)
    weights = np.random.default_rng(5).integers(1, 4, len(data.y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundWarning)
        weighted = calibrate(model, data.X, data.y, strategy, weights=weights, risk="gibbs")
        plain = calibrate(model, *repeated(data, weights), strategy, risk="gibbs")
    for field in ("beta", "alpha", "risk", "standard_error", "gain", "gain_standard_error"):
        assert getattr(weighted, field) == pytest.approx(getattr(plain, field), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_weight_zero_play_no_part(name):
    model, data = MODELS[name], data_for(name)
    weights = data.weights * (np.arange(len(data.y)) % 3 > 0)
    kept = weights > 0
    with_zeros = model.posterior(data.X, data.y, 9.0, weights)
    without = model.posterior(data.X[kept], data.y[kept], 9.0, weights[kept])
    np.testing.assert_allclose(parameters(with_zeros), parameters(without), rtol=1e-12)


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"backprop", "hierarchical"}))
def test_alpha_zero_is_the_prior(name):
    """All but Bayes by Backprop, whose stochastic gradients wander around the prior."""
    model, data = MODELS[name], data_for(name)
    posterior = model.posterior(data.X, data.y, 0.0)
    classes = 3 if name in SOFTMAX else 1
    prior = model.prior(len(posterior.mean) // classes)
    cov = np.diag(prior.root**2) if prior.root.ndim == 1 else prior.root @ prior.root.T
    np.testing.assert_allclose(posterior.mean, np.tile(prior.mean, classes), atol=1e-12)
    np.testing.assert_allclose(posterior.root.product(), np.kron(np.eye(classes), cov), atol=1e-12)


@pytest.mark.parametrize("name", LINEAR)
def test_alpha_n_is_textbook_bayes(name):
    """Sums over observations, no mean and no alpha in sight."""
    model, data = LINEAR[name], data_for(name)
    Z = model.design(data.X)
    prior = model.prior(Z.shape[1])
    cov = np.diag(prior.root**2) if prior.root.ndim == 1 else prior.root @ prior.root.T
    s2 = getattr(model, "noise_variance", 1.0)
    P0 = np.linalg.inv(cov)
    S = np.linalg.inv(P0 + Z.T @ Z / s2)
    m = S @ (P0 @ prior.mean + Z.T @ data.y / s2)
    posterior = model.posterior(data.X, data.y, len(data.y))
    np.testing.assert_allclose(posterior.mean, m, rtol=1e-10)
    np.testing.assert_allclose(posterior.root.product(), S, rtol=1e-9, atol=1e-13)
    if name == "unknown variance":
        residual, shift = data.y - Z @ m, m - prior.mean
        assert posterior.a == model.a + len(data.y) / 2
        assert posterior.b == pytest.approx(
            model.b + (residual @ residual + shift @ P0 @ shift) / 2
        )


@pytest.mark.parametrize("name", MODELS)
def test_row_order_does_not_matter(name):
    model, data = MODELS[name], data_for(name)
    order = np.random.default_rng(0).permutation(len(data.y))
    for strategy in (strategies.Naive(), strategies.LeaveOneOut("alpha"), strategies.KFold(5)):
        curves = [
            table_of(model, *strategy.planned(part, np.random.default_rng(1)))
            for part in (data, Data(data.X[order], data.y[order], data.weights[order]))
        ]
        betas = np.array([0.1, 1.0, 2.5])
        np.testing.assert_allclose(curves[0](betas), curves[1](betas), rtol=1e-9)


def test_row_order_matters_to_safe_bayes():
    """The negative control of the law above."""
    model, data = MODELS["linear"], data_for("linear")
    backwards = Data(data.X[::-1], data.y[::-1], data.weights[::-1])
    rng = np.random.default_rng(0)
    one, other = (
        table_of(model, part, strategies.SafeBayes().plan(part, rng))(1.0)
        for part in (data, backwards)
    )
    assert abs(one - other) > 1e-3


@pytest.mark.parametrize("transfer", ["beta", "alpha"])
@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("name", MODELS)
def test_leave_one_out_is_n_fold(name, risk, transfer):
    model, data = MODELS[name], data_for(name)
    rng = np.random.default_rng(0)
    betas = np.array([0.0, 0.3, 2.0])
    one_out, n_fold = (
        table_of(model, *strategy.planned(data, rng), risk)(betas)
        for strategy in (
            strategies.LeaveOneOut(transfer),
            strategies.KFold(len(data.y), transfer),
        )
    )
    np.testing.assert_allclose(one_out, n_fold, rtol=1e-10)


@pytest.mark.parametrize("name", sorted(EXACT))
def test_slope_is_minus_the_covariance_for_exact_posteriors(name):
    model, data, fresh = MODELS[name], data_for(name), data_for(name, seed=4)
    train, test = (data.X, data.y), (fresh.X, fresh.y)
    _, exact = expected_risk(model, train, test, 9.0, risk="gibbs", derivative=True)
    estimates = [
        expected_risk(
            model,
            train,
            test,
            9.0,
            risk="gibbs",
            derivative=True,
            gradient="covariance",
            n_draws=4000,
            seed=s,
        )[1]
        for s in range(12)
    ]
    error = np.std(estimates, ddof=1) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - exact) < 4 * error
    assert error < 0.1 * abs(exact)


@pytest.mark.parametrize("name", MODELS)
def test_risk_is_the_mean_over_posterior_draws(name):
    model, data, fresh = MODELS[name], data_for(name), data_for(name, seed=4)
    posterior = model.posterior(data.X, data.y, 9.0, data.weights)
    losses = model.loss(posterior.sample(40_000, seed=1), fresh.X, fresh.y)
    train, test = (data.X, data.y, data.weights), (fresh.X, fresh.y)
    draws = losses.mean(axis=1)
    error = draws.std() / np.sqrt(len(draws))
    gibbs = expected_risk(model, train, test, 9.0, risk="gibbs")
    assert abs(draws.mean() - gibbs) < 4 * error
    # -log of the mean likelihood of each row, with the error of each mean by the delta method.
    likelihood = np.exp(-losses)
    means = likelihood.mean(axis=0)
    errors = likelihood.std(axis=0) / means / np.sqrt(len(losses))
    predictive = expected_risk(model, train, test, 9.0)
    assert abs(-np.log(means).mean() - predictive) < 4 * errors.mean()
    assert abs(draws.mean() - predictive) > 8 * error  # the two risks are told apart


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"hierarchical"}))
def test_log_prob_and_draws_belong_together(name):
    """E[log q] over draws is minus the entropy, known from the covariance for Gaussians."""
    model, data = MODELS[name], data_for(name)
    posterior = model.posterior(data.X, data.y, 9.0, data.weights)
    draws = posterior.sample(20_000, seed=0)
    values = posterior.log_prob(draws)
    assert posterior.log_prob(draws[0]) == pytest.approx(values[0])
    if name == "unknown variance":
        from scipy import stats

        theta, s2 = draws[0, :-1], draws[0, -1]
        expected = stats.multivariate_normal.logpdf(
            theta, posterior.mean, s2 * posterior.scale
        ) + stats.invgamma.logpdf(s2, posterior.a, scale=posterior.b)
        assert values[0] == pytest.approx(expected)
        np.testing.assert_allclose(
            np.cov(draws[:, :-1].T), posterior.cov, atol=0.1 * posterior.cov.max()
        )
    else:
        d = len(posterior.mean)
        entropy = 0.5 * (d * np.log(2 * np.pi * np.e) + np.linalg.slogdet(posterior.cov)[1])
        assert abs(values.mean() + entropy) < 4 * values.std() / np.sqrt(len(values))
        error = np.sqrt(np.diag(posterior.cov) / len(draws))
        assert np.all(np.abs(draws.mean(axis=0) - posterior.mean) < 4 * error)


@pytest.mark.parametrize("name", LINEAR)
def test_predict_gives_mean_and_deviation_of_new_responses(name):
    model, data = LINEAR[name], data_for(name)
    posterior = model.posterior(data.X, data.y, 9.0)
    draws = posterior.sample(60_000, seed=0)
    rng = np.random.default_rng(1)
    Z = model.design(data.X[:4])
    if name == "unknown variance":
        responses = draws[:, :-1] @ Z.T + np.sqrt(draws[:, -1:]) * rng.standard_normal((60_000, 4))
    else:
        noise = np.sqrt(model.noise_variance) * rng.standard_normal((60_000, 4))
        responses = draws @ Z.T + noise
    mean, deviation = posterior.predict(data.X[:4])
    np.testing.assert_allclose(responses.mean(axis=0), mean, atol=4 * deviation.max() / 244)
    np.testing.assert_allclose(responses.std(axis=0), deviation, rtol=0.04)


@pytest.mark.parametrize("name", LOGISTIC)
def test_predict_gives_the_expected_probability(name):
    model, data = LOGISTIC[name], data_for(name)
    posterior = model.posterior(data.X, data.y, 9.0)
    draws = 1 / (1 + np.exp(-posterior.sample(60_000, seed=0) @ data.X.T))
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - posterior.predict(data.X)) < 4.5 * error)


@pytest.mark.parametrize("name", MODELS)
@given(alpha=st.lists(st.floats(0.0, 1e4), min_size=1, max_size=4))
@settings(max_examples=8, deadline=None)
def test_expected_risk_is_vectorised(name, alpha):
    model, data, fresh = MODELS[name], data_for(name), data_for(name, seed=4)
    train, test = (data.X, data.y), (fresh.X, fresh.y)
    value, slope = expected_risk(model, train, test, alpha, derivative=True)
    for a, v, s in zip(alpha, value, slope, strict=True):
        one, one_slope = expected_risk(model, train, test, a, derivative=True)
        assert isinstance(one, float)
        assert v == pytest.approx(one, rel=1e-8)
        assert s == pytest.approx(one_slope, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", LOGISTIC)
@pytest.mark.parametrize("alpha", [5e-324, 1e-311, 1e-300, 1e-17, 1e-14, 1e-10])
def test_slopes_begin_at_that_of_the_prior(name, alpha):
    """However small alpha is: what the data say of the variances is not lost beside one."""
    model, data, fresh = MODELS[name], data_for(name), data_for(name, seed=4)
    train, test = (data.X, data.y), (fresh.X, fresh.y)
    first, alone = (
        expected_risk(model, train, test, at, derivative=True)[1] for at in (0.0, alpha)
    )
    _, followed = expected_risk(model, train, test, [1.0, alpha], derivative=True)
    assert [alone, followed[1]] == pytest.approx([first, first], rel=1e-8)


def test_naive_losses_notice_a_wrong_weight():
    """The negative control of the naive computations: they are not blind to the weights."""
    data = data_for("linear")
    one = naive_losses(MODELS["linear"], data, data.weights, 1.0, "gibbs")
    other = naive_losses(MODELS["linear"], data, np.ones_like(data.weights), 1.0, "gibbs")
    assert np.abs(one - other).max() > 1e-3
