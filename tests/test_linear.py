"""Linear models: limits, costs counted in decompositions, tolerances stated and kept."""

import numpy as np
import pytest
from scenarios import gaussian_data

from temperance import calibrate, expected_risk, models, strategies
from temperance.models.linear import prefixes
from temperance.types import Data, PrefixPlan


@pytest.fixture
def decompositions(monkeypatch):
    """Count calls of the decompositions that cost more than O(d^2)."""
    calls = []
    for name in ("svd", "qr", "eigh", "cholesky", "inv", "solve"):
        original = getattr(np.linalg, name)

        def counted(*args, _original=original, _name=name, **kwargs):
            calls.append(_name)
            return _original(*args, **kwargs)

        monkeypatch.setattr(np.linalg, name, counted)
    return calls


@pytest.mark.parametrize(
    "strategy",
    [strategies.Naive(), strategies.KFold(5), strategies.LeaveOneOut(), strategies.Bootstrap(9)],
    ids=repr,
)
@pytest.mark.parametrize(
    "model",
    [models.GaussianLinear(), models.NormalInverseGammaLinear()],
    ids=lambda model: type(model).__name__,
)
def test_further_betas_cost_no_decomposition(model, strategy, decompositions):
    data = gaussian_data(60, 5)
    curve = model.risk_curve(data, strategy.plan(data, np.random.default_rng(0)))
    curve(1.0)
    assert decompositions  # the first one did
    decompositions.clear()
    curve(np.linspace(0, 3, 500), derivative=True)
    assert decompositions == []


def test_safe_bayes_works_in_blocks(decompositions):
    data = gaussian_data(1000, 4)
    plan = PrefixPlan(data.weights, np.arange(1000)[None])
    curve = models.GaussianLinear().risk_curve(data, plan)
    curve(1.0)
    blocks = -(-1000 // prefixes.SMALLEST_BLOCK)
    assert len(decompositions) < blocks + 10  # one QR per block, the rest is stacked
    decompositions.clear()
    curve(0.5)
    assert sorted(decompositions) == ["cholesky", "solve"]


@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize(
    "model",
    [models.GaussianLinear(0.5), models.NormalInverseGammaLinear()],
    ids=lambda model: type(model).__name__,
)
def test_safe_bayes_at_fixed_alpha_keeps_its_tolerance(model, risk):
    data = gaussian_data(150, 6, seed=3)
    plan = PrefixPlan(data.weights, np.arange(150)[None], start=1, transfer="alpha")
    betas = np.concatenate([[0.0], np.geomspace(1e-6, 50.0, 12)])
    interpolated = model.risk_curve(data, plan, risk)(betas)
    exact = model.risk_curve(data, plan.pairs(), risk)(betas)
    np.testing.assert_allclose(interpolated, exact, rtol=1e-9)


@pytest.mark.parametrize("alpha", [1e6, 1e12])
def test_infinite_alpha_is_least_squares(alpha):
    data = gaussian_data(30, 4)
    X, y = data.X, data.y
    least, residual, _, _ = np.linalg.lstsq(X, y)
    close = 1e3 / alpha
    known = models.GaussianLinear(2.0, 0.3).posterior(X, y, alpha)
    np.testing.assert_allclose(known.mean, least, atol=close)
    assert np.abs(known.cov).max() < close
    unknown = models.NormalInverseGammaLinear().posterior(X, y, alpha)
    np.testing.assert_allclose(unknown.mean, least, atol=close)
    assert unknown.a / unknown.b == pytest.approx(30 / residual[0], rel=1e2 * close)


def test_infinite_alpha_with_more_columns_than_rows_interpolates():
    data = gaussian_data(6, 15)
    posterior = models.GaussianLinear().posterior(data.X, data.y, 1e12)
    shortest = np.linalg.pinv(data.X) @ data.y
    np.testing.assert_allclose(posterior.mean, shortest, atol=1e-9)
    # Across the rows the prior is untouched.
    across = np.eye(15) - np.linalg.pinv(data.X) @ data.X
    np.testing.assert_allclose(across @ posterior.cov @ across, across, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 1e12])
@pytest.mark.parametrize(
    "model",
    [models.GaussianLinear(), models.NormalInverseGammaLinear()],
    ids=lambda model: type(model).__name__,
)
def test_collinear_columns_share_a_coefficient(model, alpha):
    data = gaussian_data(20, 2)
    doubled = np.column_stack([data.X, data.X])
    half = type(model)(prior_cov=0.5).posterior(doubled, data.y, alpha)
    whole = type(model)(prior_cov=1.0).posterior(data.X, data.y, alpha)
    np.testing.assert_allclose(half.mean[:2] + half.mean[2:], whole.mean, atol=1e-8)
    np.testing.assert_allclose(half.mean[:2], half.mean[2:], atol=1e-8)
    for risk in ("gibbs", "predictive"):
        risks = [
            expected_risk(other, (Z, data.y), (Z, data.y), alpha, risk=risk, derivative=True)
            for other, Z in ((type(model)(prior_cov=0.5), doubled), (model, data.X))
        ]
        np.testing.assert_allclose(risks[0], risks[1], rtol=1e-7, atol=1e-10)


def test_a_perfect_fit_keeps_the_scale_positive():
    X = np.random.default_rng(0).standard_normal((12, 3))
    y = X @ [1e6, -1e6, 1e6]
    model = models.NormalInverseGammaLinear(b=1e-8)
    for alpha in (1e-6, 1.0, 1e12):
        assert model.posterior(X, y, alpha).b >= 1e-8
    data = Data(X, y, np.ones(12))
    for strategy in (strategies.LeaveOneOut(), strategies.SafeBayes(), strategies.KFold(3)):
        curve = model.risk_curve(data, strategy.plan(data, np.random.default_rng(0)))
        assert np.all(np.isfinite(curve(np.array([1e-9, 1e-3, 1.0, 1e9]))))


def test_leave_one_out_with_more_columns_than_rows_at_large_beta():
    """Leverages reach one; differences of near-equal numbers would show here."""
    data = gaussian_data(10, 30)
    plan = strategies.LeaveOneOut().plan(data, np.random.default_rng(0))
    closed = models.GaussianLinear().risk_curve(data, plan)
    paired = models.GaussianLinear().risk_curve(data, plan.pairs())
    betas = np.array([1.0, 1e4, 1e8])
    np.testing.assert_allclose(closed(betas), paired(betas), rtol=1e-7)


def test_presets_are_linear_regressions():
    data = gaussian_data(20, 1)
    x = data.X[:, 0]
    powers = np.vander(x, 5, increasing=True)
    linear = models.GaussianLinear(0.3, 0.0, 0.5 ** np.arange(5))
    for alpha in (0.0, 7.0):
        np.testing.assert_allclose(
            models.Polynomial(5, 0.3).posterior(x, data.y, alpha).mean,
            linear.posterior(powers, data.y, alpha).mean,
        )
    mean = models.GaussianMean(0.3, 1.0, 2.0).posterior(None, data.y, 7.0)
    assert mean.mean == pytest.approx((1.0 / 2.0 + 7 * data.y.mean() / 0.3) / (0.5 + 7 / 0.3))
    assert mean.cov[0, 0] == pytest.approx(1 / (0.5 + 7 / 0.3))


def test_stochastic_optimiser_agrees_with_the_curve():
    data = gaussian_data(60, 40, seed=1)
    model, strategy = models.GaussianLinear(0.3), strategies.KFold(5)
    curve = calibrate(model, data.X, data.y, strategy)
    descent = calibrate(model, data.X, data.y, strategy, optimiser="stochastic")
    assert not curve.at_bound
    assert abs(descent.beta - curve.beta) < 0.05
    assert descent.risk == pytest.approx(curve.risk, rel=0.05)
    assert descent.curve.method == "1000 posterior draws per pair"
