"""Linear regression averaged over the scale of its prior."""

import numpy as np
import pytest
from fuzz import plain_averaged
from scenarios import naive_hierarchical_losses
from scipy import special, stats
from temperance.models.hierarchical.model import PRIOR_LEVEL

from temperance import calibrate, models, strategies
from temperance.data import Data
from temperance.plans import Folds, LeaveOneOut, Pairs, PrefixPlan

SCALES = (0.03, 0.3, 1.0, 30.0)
RISKS = ("gibbs", "predictive")
NOISES = {"unknown": None, "known": 0.7}


def problem(n=12, d=3, intercept=True, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.5
    y = 3 + X @ rng.standard_normal(d) + rng.standard_normal(n)
    weights = rng.uniform(0.5, 2.0, n)
    return Data(np.column_stack([np.ones(n), X]) if intercept else X, y, weights)


def model_of(noise="unknown", intercept=True):
    return models.HierarchicalLinear(
        NOISES[noise], a=1.5, b=0.8, scales=SCALES, intercept=intercept
    )


@pytest.mark.parametrize("risk", RISKS)
def test_a_row_that_decides_a_direction_alone_is_left_out(risk):
    """What the others leave of it is next to nothing: the difference has no digits."""
    data = problem(n=25)
    data.X[7, 2] = 999_999_999.0
    model = models.HierarchicalLinear(a=1.0, b=0.2)
    plan = LeaveOneOut(data.weights)
    ours, pairs = (model.risk_curve(data, each, risk) for each in (plan, plan.pairs()))
    for beta in (0.05, 0.2, 1.0):
        assert ours(beta, derivative=True) == pytest.approx(pairs(beta, derivative=True), rel=1e-8)


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("shape", [(3, 10), (12, 3)])
def test_a_row_that_is_nearly_the_whole_weight_is_left_out(shape, risk):
    """Its deviations from the mean are rounding, unless the mean is taken twice."""
    data = problem(*shape)
    data.weights[1] = 1e8
    model, plan = model_of(), LeaveOneOut(data.weights)
    ours, pairs = (model.risk_curve(data, each, risk) for each in (plan, plan.pairs()))
    for beta in (1e-6, 0.05):
        assert ours.rows(beta)[0] == pytest.approx(pairs.rows(beta)[0], rel=1e-9)


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("kind", ["leave-one-out", "folds"])
def test_short_columns_keep_their_digits_beside_long_ones(kind, risk):
    data = problem(n=6, d=2)
    u, t = data.X[:, 1], 1.7e9 + 1e7 * data.X[:, 2]
    data = Data(np.column_stack([np.ones(6), u, u, t]), data.y, data.weights)
    model = models.HierarchicalLinear(1.0, scales=[1e7])
    plan = plan_of(kind, data)
    inputs = plain_averaged.inputs_of(model, data, plan.pairs())
    expected, _ = plain_averaged.plain_risk(model, inputs, 1.0, risk)
    assert model.risk_curve(data, plan, risk)(1.0) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("risk", RISKS)
def test_slopes_where_rows_span_everything_are_those_of_pairs(risk):
    data = problem(n=4, d=6, intercept=False)
    data.X[0] *= 1e12
    model = models.HierarchicalLinear(a=1.0, b=0.2, intercept=False)
    plan = LeaveOneOut(data.weights)
    ours, pairs = (model.risk_curve(data, each, risk) for each in (plan, plan.pairs()))
    for beta in (0.05, 1.0, 10.0):
        (value, slope), (_, expected) = (each(beta, derivative=True) for each in (ours, pairs))
        assert abs(slope - expected) * beta < 1e-9 * abs(value)


def test_log_evidences_beside_which_their_range_is_rounding():
    data = problem(n=11, intercept=False)
    far = Data(data.X, data.y + 2e9, data.weights)
    model = models.HierarchicalLinear(1.0, intercept=False)
    assert np.isfinite(model.risk_curve(far, LeaveOneOut(data.weights))(1.0))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("kind", ["leave-one-out", "folds"])
@pytest.mark.parametrize("unit", [1.0, 1e9])
def test_below_its_scale_a_curve_is_level(unit, kind, noise):
    """Huge responses tell of the noise, or of the scales, at tiny betas."""
    data = problem()
    data = Data(data.X, unit * data.y, data.weights)
    curve = model_of(noise).risk_curve(data, plan_of(kind, data), "predictive")
    values = curve(np.append(0.0, 1e-3 * curve.scale().smallest * 10.0 ** np.arange(30)))
    assert abs(values[1] - values[0]) < 0.01 * np.ptp(values)


@pytest.mark.parametrize(
    "inputs, responses, message",
    [
        (1e143, 1.0, "^X must have a largest entry between"),
        (1e-143, 1.0, "^X must have a largest entry between"),
        (1.0, 1e143, "^y must be at most 1e\\+60 in units of the noise"),
    ],
)
def test_numbers_beyond_the_limits_are_named(inputs, responses, message):
    data = problem(intercept=False)
    model = models.HierarchicalLinear(1.0, intercept=False)
    for strategy in ("leave-one-out", "k-fold"):
        with pytest.raises(ValueError, match=message):
            calibrate(model, inputs * data.X, responses * data.y, strategy)


def test_one_scale_is_the_conjugate_model_at_any_beta():
    data = problem(d=1)
    data = Data(data.X[:, :1], data.y, data.weights)
    ours = models.HierarchicalLinear(a=1.5, b=0.8, scales=[1.0, 1.0])
    theirs = models.NormalInverseGammaLinear(a=1.5, b=0.8, prior_cov=PRIOR_LEVEL)
    plan = plan_of("folds", data)
    for beta in (1.0, 1e4, 1e8):
        one, other = (each.risk_curve(data, plan, "predictive")(beta) for each in (ours, theirs))
        assert one == pytest.approx(other, rel=1e-12)


def plan_of(kind, data, transfer="beta"):
    n, weights = len(data), data.weights
    if kind == "leave-one-out":
        return LeaveOneOut(weights, transfer)
    if kind == "folds":
        return Folds(weights, np.arange(n) % 3, 3, transfer)
    if kind == "prefixes":
        return PrefixPlan(weights, np.random.default_rng(1).permutation(n)[None], 2, transfer)
    drawn = np.random.default_rng(5).multinomial(n, np.full(n, 1 / n), 3) * weights
    return Pairs(drawn, np.tile(weights, (3, 1)), float(weights.sum()), transfer)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("transfer", ["beta", "alpha"])
@pytest.mark.parametrize("kind", ["leave-one-out", "folds", "prefixes", "bootstrap"])
@pytest.mark.parametrize("shape", [(12, 3), (6, 9)])
def test_every_plan_against_plain_fits(shape, kind, transfer, risk, noise, intercept):
    data = problem(*shape, intercept)
    model, plan = model_of(noise, intercept), plan_of(kind, data, transfer)
    curve = model.risk_curve(data, plan, risk)
    pairs = plan.pairs()
    for beta in (0.01, 0.7, 5.0):
        total = weight = 0.0
        for train, test in zip(pairs.likelihood_weights, pairs.test, strict=True):
            rows = np.flatnonzero(test)
            total += test[rows] @ naive_hierarchical_losses(
                model, data, train, beta, risk, rows, PRIOR_LEVEL
            )
            weight += test.sum()
        assert curve(beta) == pytest.approx(total / weight, rel=1e-9)
    loss, share = curve.rows(0.7)
    assert share @ loss / share.sum() == pytest.approx(curve(0.7), rel=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("kind", ["leave-one-out", "folds"])
def test_slopes(kind, risk, noise, intercept):
    data = problem(intercept=intercept)
    curve = model_of(noise, intercept).risk_curve(data, plan_of(kind, data), risk)
    for beta in (0.0, 1e-3, 0.3, 2.0, 20.0):
        step = 1e-5 * (beta + 1e-4)
        ends = [
            curve(b) for b in ((beta, beta + step) if beta == 0 else (beta - step, beta + step))
        ]
        slope = (ends[1] - ends[0]) / (step if beta == 0 else 2 * step)
        rel = 2e-2 if beta == 0 else 1e-5
        assert curve(beta, derivative=True)[1] == pytest.approx(slope, rel=rel, abs=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("shape", [(12, 3), (6, 9)])
class TestPosterior:
    def test_forecasts_are_those_of_the_curve(self, shape, noise, intercept):
        data = problem(*shape, intercept)
        new = problem(5, shape[1], intercept, seed=3)
        model = model_of(noise, intercept)
        both = Data(
            *(
                np.concatenate(pair)
                for pair in zip(
                    (data.X, data.y, data.weights), (new.X, new.y, new.weights), strict=True
                )
            )
        )
        n, m = len(data), len(new)
        plan = Pairs(
            np.append(data.weights, np.zeros(m))[None],
            np.append(np.zeros(n), np.ones(m))[None],
            data.size,
        )
        law = model.posterior(data.X, data.y, 0.4 * data.size, data.weights).predictive(new.X)
        loss = model.risk_curve(both, plan, "predictive").rows(0.4)[0][n:]
        constant = 0.5 * np.log(2 * np.pi * (model.noise_variance or 1.0))
        expected = -loss - (constant if model.noise_variance else 0.0)
        np.testing.assert_allclose(law.log_density(new.y), expected, rtol=1e-8)

    def test_draws_agree_with_laws(self, shape, noise, intercept):
        data = problem(*shape, intercept)
        model = model_of(noise, intercept)
        posterior = model.posterior(data.X, data.y, 2 * data.size, data.weights)
        draws = posterior.sample(40_000, seed=1)
        d = data.X.shape[1]
        law = posterior.marginals()
        for q in (0.1, 0.5, 0.9):
            shares = (draws[:, :d] <= law.quantile(q)).mean(axis=0)
            np.testing.assert_allclose(shares, q, atol=0.012)
        direction = np.random.default_rng(0).standard_normal((2, d))
        places = posterior.combination(direction).cdf(draws[:500, :d] @ direction.T)
        assert stats.kstest(places[:, 0], "uniform").pvalue > 1e-4
        responses = posterior.sample_response(data.X[:2], 5000, seed=2)
        assert (
            stats.kstest(posterior.predictive(data.X[:2]).cdf(responses)[:, 1], "uniform").pvalue
            > 1e-4
        )
        np.testing.assert_allclose(law.mean, posterior.mean, rtol=1e-9)

    def test_density_is_likelihood_times_prior(self, shape, noise, intercept):
        """Differences of the log density between draws, against the definition."""
        data = problem(*shape, intercept)
        model, beta = model_of(noise, intercept), 0.6
        alpha = beta * data.size
        posterior = model.posterior(data.X, data.y, alpha, data.weights)
        draws = posterior.sample(6, seed=0)
        s2 = draws[:, -1] if noise == "unknown" else np.full(6, model.noise_variance)
        theta = draws[:, : data.X.shape[1]]
        first = int(intercept)
        slopes = theta[:, first:]
        centre = data.weights @ data.X[:, first:] / data.size
        prior = np.zeros((len(SCALES), 6))
        for k, scale in enumerate(SCALES):
            prior[k] = stats.norm.logpdf(slopes, 0, scale * np.sqrt(s2)[:, None]).sum(axis=1)
        log_prior = special.logsumexp(prior, axis=0) - np.log(len(SCALES))
        if intercept:
            level = theta[:, 0] + slopes @ centre
            log_prior += stats.norm.logpdf(level, 0, np.sqrt(PRIOR_LEVEL * s2))
        if noise == "unknown":
            log_prior += stats.invgamma.logpdf(s2, model.a, scale=model.b)
        fit = -beta * model.loss(draws, data.X, data.y) @ data.weights
        expected = log_prior + fit
        found = posterior.log_prob(draws)
        np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-8, atol=1e-8)

    def test_nothing_learnt(self, shape, noise, intercept):
        data = problem(*shape, intercept)
        posterior = model_of(noise, intercept).posterior(data.X, data.y, 0.0, data.weights)
        np.testing.assert_allclose(posterior.mean, 0, atol=1e-12)
        np.testing.assert_allclose(posterior.scale_weights[1], 0.25)


def test_an_outlier_is_left_out_exactly():
    data = problem(30, 3)
    data.y[4] = 1e9
    model, plan = model_of(), LeaveOneOut(data.weights)
    folds = Folds(data.weights, np.arange(30), 30)
    for risk in RISKS:
        one, each = (model.risk_curve(data, p, risk) for p in (plan, folds))
        for beta in (1e-6, 0.1, 3.0):
            np.testing.assert_allclose(one.rows(beta)[0], each.rows(beta)[0], rtol=1e-7)


def test_equal_columns_and_constant_columns():
    data = problem(20, 2)
    same = Data(np.column_stack([data.X, data.X[:, 1], np.ones(20)]), data.y, data.weights)
    model = model_of()
    for kind in ("leave-one-out", "folds"):
        values = model.risk_curve(same, plan_of(kind, same), "predictive")(
            np.geomspace(0.01, 10, 5)
        )
        assert np.all(np.isfinite(values))
    law = model.posterior(same.X, same.y, 20.0, same.weights).marginals()
    assert law.mean[1] == pytest.approx(law.mean[3])
    assert law.mean[4] == pytest.approx(0, abs=1e-12)


def test_weights_are_copies():
    data = problem(8, 2)
    counts = np.array([1, 2, 3, 1, 1, 2, 1, 1])
    fold = np.arange(8) % 3
    once = Folds(counts.astype(float), fold, 3)
    many = Folds(np.ones(counts.sum()), np.repeat(fold, counts), 3)
    copies = Data(np.repeat(data.X, counts, axis=0), np.repeat(data.y, counts), np.ones(12))
    for risk in RISKS:
        values = [
            model_of().risk_curve(d, p, risk)(np.array([0.1, 1.0, 2.0]))
            for d, p in ((Data(data.X, data.y, counts.astype(float)), once), (copies, many))
        ]
        np.testing.assert_allclose(*values, rtol=1e-10)


@pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
@pytest.mark.parametrize("name", sorted(strategies.NAMES))
def test_strategies(name):
    data = problem(20, 2)
    found = calibrate(models.HierarchicalLinear(), data.X, data.y, name, risk="predictive", seed=0)
    assert 0 <= found.beta <= 3


def test_refusals():
    with pytest.raises(ValueError, match="X must begin with a column of ones"):
        models.HierarchicalLinear().posterior(np.zeros((3, 2)), np.zeros(3), 1.0)
    with pytest.raises(ValueError, match="scales must be positive numbers"):
        models.HierarchicalLinear(scales=[0.0])
