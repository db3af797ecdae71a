"""Linear models of every prior and noise: laws of their held-out losses and posteriors."""

from __future__ import annotations

import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from many_digits import many_digits
from scenarios import covariance, naive_losses, table_of
from scipy import special, stats

from temperance import calibrate, expected_risk, models
from temperance.data import Data
from temperance.linear import engine
from temperance.messages import TemperanceWarning
from temperance.plans import Folds, LeaveOneOut, Pairs
from temperance.strategies import KFold, SafeBayes, Stacking
from temperance.strategies import LeaveOneOut as LeaveOneOutRule

SCORES = ("predictive", "gibbs")
BETAS = np.array([0.01, 0.3, 1.0, 2.5, 40.0])
MEAN, VARIANCES = np.array([1.0, -1.0, 0.5]), np.array([0.5, 2.0, 4.0])
SCALES = (0.03, 0.3, 1.0, 30.0)

# The columns that a preset takes: three, a constant and three, one, or none.
PLAIN = {
    "scalar": models.GaussianLinear(0.7, 0.3, 2.0),
    "diagonal": models.GaussianLinear(2.0, MEAN, VARIANCES),
    "full": models.GaussianLinear(0.7, MEAN, covariance(3)),
    "unknown, diagonal": models.NormalInverseGammaLinear(1.5, 0.8, MEAN, VARIANCES),
    "unknown, full": models.NormalInverseGammaLinear(2.0, 3.0, MEAN, covariance(3)),
    "scales": models.HierarchicalLinear(None, 1.5, 0.8, SCALES, False),
    "scales, known": models.HierarchicalLinear(0.5, scales=SCALES, intercept=False),
}
LEVEL = {
    "level": models.HierarchicalLinear(None, 1.5, 0.8, SCALES),
    "level, known": models.HierarchicalLinear(0.5, scales=SCALES),
}
OTHER = {"mean": models.GaussianMean(1.5, 0.2, 0.7), "powers": models.Polynomial(4, 0.5)}
PRESETS = PLAIN | LEVEL | OTHER
GIVEN = {name for name in PRESETS if name not in LEVEL and not name.startswith("scales")}


def data_of(name, n=13, d=3, seed=0, weighted=True):
    rng = np.random.default_rng([seed, n])
    X = rng.standard_normal((n, d)) + 0.5
    y = 1 + X @ rng.standard_normal(d) + rng.standard_normal(n)
    weights = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    if name in LEVEL:
        X = np.column_stack([np.ones(n), X])
    columns = {"mean": 0, "powers": 1}.get(name, X.shape[1])
    return Data(X[:, :columns], y, weights)


def some_pairs(weights, transfer="beta"):
    drawn = np.random.default_rng(5).multinomial(len(weights), weights / weights.sum(), 3)
    test = np.tile(weights, (3, 1)) * [[1.0], [2.0], [0.5]]
    test[1, :3] = 0.0
    return Pairs(drawn + 0.1 * (np.arange(len(weights)) < 3), test, float(weights.sum()), transfer)


PLANS = {
    "folds": lambda w: Folds(w, np.arange(len(w)) % 4, 4),
    "folds, alpha": lambda w: Folds(w, np.arange(len(w)) % 4, 4, "alpha"),
    "split": lambda w: Folds(w, np.arange(len(w)) % 2, 2, "alpha", 1),
    "leave-one-out": lambda w: LeaveOneOut(w),
    "leave-one-out, alpha": lambda w: LeaveOneOut(w, "alpha"),
    "leave-one-out, alpha, once": lambda w: LeaveOneOut(np.ones(len(w)), "alpha"),
    "pieces": lambda w: LeaveOneOut(w, pieces=np.arange(len(w)) % 3 + 1),
    "pieces, alpha": lambda w: LeaveOneOut(w, "alpha", np.arange(len(w)) % 3 + 1),
    "some": lambda w: LeaveOneOut(w, places=np.array([4, 1, 7])),
    "some, alpha": lambda w: LeaveOneOut(w, "alpha", places=np.array([4, 1, 7])),
    "pairs": some_pairs,
    "pairs, alpha": lambda w: some_pairs(w, "alpha"),
}


def planned(name, plan, **options):
    """Return the rows, with the weights of the plan, and the plan."""
    data = data_of(name, **options)
    chosen = PLANS[plan](data.weights)
    weights = getattr(chosen, "weights", data.weights)
    return replace(data, weights=weights), chosen


def plain_losses(model, data, plan, score, betas=BETAS):
    """Mean losses of rows (g, n) over the pairs that test them, and their test weights."""
    pairs, found = plan.pairs(), np.zeros((len(betas), len(data)))
    for train, test in zip(pairs.likelihood_weights, pairs.test, strict=True):
        for row, beta in zip(found, betas, strict=True):
            row += test * naive_losses(model, data, train, beta, score)
    weights = pairs.test.sum(axis=0)
    return found / np.where(weights > 0, weights, 1.0), weights


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("shape", [(13, 3), (40, 3), (9, 9), (9, 11)], ids=str)
@pytest.mark.parametrize("name", PRESETS)
def test_losses_are_those_of_plain_fits(name, shape, plan, score):
    if shape[1] > 3 and name in OTHER:
        return
    model = PRESETS[name]
    if shape[1] > 3 and name in GIVEN:
        model = type(model)(prior_mean=0.2, prior_cov=covariance(shape[1]))
    data, chosen = planned(name, plan, n=shape[0], d=shape[1])
    table = table_of(model, data, chosen, score)
    expected, weights = plain_losses(model, data, chosen, score)
    places = slice(None) if table.rows is None else table.rows
    tested = weights[places] > 0
    np.testing.assert_allclose(table.weights, weights[places])
    np.testing.assert_allclose(
        table.at(BETAS)[:, tested], expected[:, places][:, tested], rtol=1e-8, atol=1e-9
    )
    np.testing.assert_allclose(table(BETAS), expected @ weights / weights.sum(), rtol=1e-9)
    np.testing.assert_allclose(table.counts, data.weights[places])
    assert table.score == score and table.method == "closed form"


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("plan", ["folds", "leave-one-out", "pieces, alpha", "pairs"])
@pytest.mark.parametrize("name", PRESETS)
def test_slopes_are_differences(name, plan, score):
    table = table_of(PRESETS[name], *planned(name, plan), score)
    step = 1e-6 * BETAS
    rise = (table(BETAS + step) - table(BETAS - step)) / (2 * step)
    _, slope = table(BETAS, derivative=True)
    np.testing.assert_allclose(slope * BETAS, rise * BETAS, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("name", PRESETS)
def test_beta_zero_is_the_prior(name, score):
    data, plan = planned(name, "leave-one-out")
    if name not in LEVEL:
        expected, _ = plain_losses(PRESETS[name], data, plan, score, [0.0])
        np.testing.assert_allclose(
            table_of(PRESETS[name], data, plan, score).at(np.zeros(1)), expected
        )
        return
    table = table_of(
        PRESETS[name], data, plan, score
    )  # a flat prior has no risk: it is that near 0
    assert table(0.0) == table(1e-9) > table(1e-3)
    with pytest.raises(ValueError, match="^alpha must be positive"):
        PRESETS[name].posterior(data.X, data.y, 0.0)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("transfer", ["beta", "alpha"])
@pytest.mark.parametrize("name", PRESETS)
def test_leave_one_out_is_as_many_folds(name, transfer, score):
    data = data_of(name)
    n = len(data)
    one, each = (
        table_of(PRESETS[name], data, plan, score).at(BETAS)
        for plan in (
            LeaveOneOut(data.weights, transfer),
            Folds(data.weights, np.arange(n), n, transfer),
        )
    )
    np.testing.assert_allclose(one, each, rtol=1e-9)


def chosen(model, X, y, rule, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TemperanceWarning)
        return calibrate(model, X, y, rule, **options)


def summary(found):
    names = ("beta", "risk", "bayes_risk", "gain", "standard_error", "gain_standard_error")
    return [getattr(found, name) for name in names]


RULES = {
    "stacking": Stacking(),
    "five folds": KFold(3),
    "leave-one-out": LeaveOneOutRule(),
    "leave-one-out, alpha, apart": LeaveOneOutRule("alpha", "apart"),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", PRESETS)
def test_weights_are_copies(name, rule):
    data, copies = data_of(name), np.random.default_rng(0).integers(1, 5, 13)
    weighted = chosen(PRESETS[name], data.X, data.y, RULES[rule], weights=copies)
    repeated = chosen(
        PRESETS[name], np.repeat(data.X, copies, axis=0), np.repeat(data.y, copies), RULES[rule]
    )
    assert summary(weighted) == pytest.approx(summary(repeated), rel=1e-6, abs=1e-9)
    if rule == "stacking":
        np.testing.assert_allclose(weighted.weights.weights, repeated.weights.weights, atol=1e-8)
    np.testing.assert_allclose(weighted.posterior.mean, repeated.posterior.mean, rtol=1e-6)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", PRESETS)
def test_the_order_of_rows_plays_no_part(name, rule):
    data, order = data_of(name), np.random.default_rng(1).permutation(13)
    one = chosen(PRESETS[name], data.X, data.y, RULES[rule], weights=data.weights)
    moved = (part[order] for part in (data.X, data.y))
    other = chosen(PRESETS[name], *moved, RULES[rule], weights=data.weights[order])
    assert summary(one) == pytest.approx(summary(other), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("plan", ["folds", "leave-one-out", "pairs, alpha"])
@pytest.mark.parametrize("c", [1e-5, 1e-2, 1e3, 1e6])
def test_units_of_inputs_and_responses(plan, c, score):
    """Inputs are taken back by the prior; responses by prior and noise, up to their logarithm."""
    data, chosen = planned("full", plan)
    units = np.array([c, 1.0, 1 / c])
    inputs = Data(data.X * units, data.y, data.weights)
    turned = covariance(3) / units / units[:, None]
    responses = Data(data.X, c * data.y, data.weights)
    for one, of_inputs, of_responses in (
        (
            PRESETS["full"],
            models.GaussianLinear(0.7, MEAN / units, turned),
            models.GaussianLinear(0.7 * c**2, c * MEAN, c**2 * covariance(3)),
        ),
        (
            PRESETS["unknown, full"],
            models.NormalInverseGammaLinear(2.0, 3.0, MEAN / units, turned),
            models.NormalInverseGammaLinear(2.0, 3.0 * c**2, c * MEAN, covariance(3)),
        ),
    ):
        expected = table_of(one, data, chosen, score).at(BETAS)
        found = table_of(of_inputs, inputs, chosen, score).at(BETAS)
        np.testing.assert_allclose(found, expected, rtol=1e-7)
        found = table_of(of_responses, responses, chosen, score).at(BETAS)
        np.testing.assert_allclose(found, expected + np.log(c), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("name", LEVEL)
def test_a_level_has_no_origin(name, score):
    data, plan = planned(name, "leave-one-out")
    moved = Data(data.X + np.array([0.0, 5.0, -30.0, 1e3]), data.y + 1e4, data.weights)
    one, other = (table_of(PRESETS[name], each, plan, score).at(BETAS) for each in (data, moved))
    np.testing.assert_allclose(one, other, rtol=1e-8)


@pytest.mark.parametrize("score", SCORES)
def test_one_scale_is_the_conjugate_model(score):
    data = data_of("full")
    ours = models.HierarchicalLinear(None, 1.5, 0.8, [2.0, 2.0], False)
    known = models.HierarchicalLinear(0.5, scales=[2.0], intercept=False)
    for one, other in (
        (ours, models.NormalInverseGammaLinear(1.5, 0.8, prior_cov=4.0)),
        (known, models.GaussianLinear(0.5, prior_cov=2.0)),
    ):
        for plan in PLANS.values():
            chosen = plan(data.weights)
            both = [table_of(each, data, chosen, score)(BETAS) for each in (one, other)]
            np.testing.assert_allclose(*both, rtol=1e-10)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("plan", ["folds", "leave-one-out", "pairs"])
@pytest.mark.parametrize("name", ["full", "unknown, full", "scales", "level"])
def test_small_batches_give_the_same(name, plan, score, monkeypatch):
    data, chosen = planned(name, plan)
    expected = table_of(PRESETS[name], data, chosen, score).at(BETAS)
    monkeypatch.setattr(engine, "BUDGET", 1)
    np.testing.assert_allclose(
        table_of(PRESETS[name], data, chosen, score).at(BETAS), expected, rtol=1e-11
    )


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("name", ["scales", "scales, known", "level", "level, known"])
def test_scales_of_negligible_evidence_are_left_out_of_many_rows(name, score, monkeypatch):
    """Evidence of a thousandth of the largest moves losses by about as much."""
    data, plan = planned(name, "leave-one-out", n=60)
    every = table_of(PRESETS[name], data, plan, score).at(BETAS[1:4])
    monkeypatch.setattr(engine, "FEW", 0)
    few = table_of(PRESETS[name], data, plan, score).at(BETAS[1:4])
    assert np.abs(few - every).max() < 0.02
    assert np.abs(few.mean(axis=1) - every.mean(axis=1)).max() < 2e-3


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6),
    st.integers(2, 12),
    st.integers(1, 6),
    st.floats(-2, 2),
    st.floats(-3, 3),
    st.sampled_from(["beta", "alpha"]),
    st.sampled_from(SCORES),
)
def test_any_design_and_weights(seed, n, d, spread, log_beta, transfer, score):
    """Leave-one-out beside fits without each row."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** (spread * rng.random(d))
    X = np.round(X, 1)  # with equal and zero entries
    data = Data(X, rng.standard_normal(n) * 3, 10.0 ** rng.uniform(-2, 2, n))
    plan = LeaveOneOut(data.weights, transfer)
    beta = np.array([10.0**log_beta])
    for model in (
        models.GaussianLinear(0.5, 0.1, 3.0),
        models.NormalInverseGammaLinear(1.5, 0.8, 0.1, 3.0),
        models.HierarchicalLinear(scales=(0.1, 10.0), intercept=False),
    ):
        (found,) = table_of(model, data, plan, score).at(beta)
        expected = many_digits(model, data, plan, score, beta[0], 40)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


def ordinary(n=8, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X.sum(axis=1) + rng.standard_normal(n), np.ones(n)


def hard_problems():
    X, y, ones = ordinary()
    almost = X @ [1.0, -2.0, 0.5] + 1e-7 * y
    long = X * [1.0, 1e8, 1.0]
    constant = np.column_stack([X[:, :2], 1e8 + 1e3 * X[:, 2]])
    heavy = np.where(np.arange(8) == 2, 1e6, 1.0)
    alone = np.column_stack([X[:, :2], np.arange(8) == 5])
    outlier = np.where(np.arange(8) == 4, 1e9, y)
    far = X.copy()
    far[3] *= 1e6
    return {
        "an almost exact fit": (X, almost, ones),
        "a column of 1e8": (long, y, ones),
        "a column about 1e8": (constant, y, ones),
        "a row of weight 1e6": (X, y, heavy),
        "a row that alone determines a direction": (alone, y, ones),
        "a response of 1e9": (X, outlier, np.random.default_rng(1).uniform(0.3, 3.0, 8)),
        "a row of 1e6": (far, y, ones),
        "more columns than rows": (*ordinary(4, 6)[:2], np.ones(4)),
        "equal columns": (X[:, [0, 0, 1]], y, ones),
        "large responses": (X, 1e6 + y, ones),
    }


HARD = hard_problems()
MODELS = {
    "known": models.GaussianLinear(),
    "unknown": models.NormalInverseGammaLinear(),
    "scales": models.HierarchicalLinear(a=2.0, b=2.0, scales=(0.3, 3.0), intercept=False),
    "level": models.HierarchicalLinear(a=2.0, b=2.0, scales=(0.3, 3.0)),
    "level, known": models.HierarchicalLinear(1.0, scales=(0.3, 3.0)),
}


@pytest.mark.parametrize("plan", ["leave-one-out", "leave-one-out, alpha", "folds", "pairs"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", HARD)
def test_hard_problems_against_many_digits(case, model, plan):
    X, y, weights = HARD[case]
    if model.startswith("level"):
        X = np.column_stack([np.ones(len(X)), X])
    data, chosen = Data(X, y, weights), PLANS[plan](weights)
    for score in SCORES:
        for beta in (0.02, 2.0):
            expected = many_digits(MODELS[model], data, chosen, score, beta)
            table = table_of(MODELS[model], data, chosen, score)
            (found,) = table.at(np.array([beta]))
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
            assert table(beta) == pytest.approx(expected @ table.share, rel=1e-7, abs=1e-8)


class TestDraws:
    @pytest.mark.parametrize("name", PRESETS)
    def test_risks_are_those_of_draws(self, name):
        model, data, new = PRESETS[name], data_of(name, 30), data_of(name, 7, seed=3)
        posterior = model.posterior(data.X, data.y, 0.7 * data.size, data.weights)
        draws = model.loss(posterior.sample(60_000, seed=1), new.X, new.y)
        train, test = (data.X, data.y, data.weights), (new.X, new.y)
        alpha = 0.7 * data.size
        means = draws.mean(axis=1)
        gibbs = expected_risk(model, train, test, alpha, risk="gibbs")
        assert abs(means.mean() - gibbs) < 4 * means.std() / np.sqrt(60_000)
        density = np.exp(-draws)
        error = density.std(axis=0) / density.mean(axis=0) / np.sqrt(60_000)
        predictive = expected_risk(model, train, test, alpha)
        assert abs(-np.log(density.mean(axis=0)).mean() - predictive) < 4 * error.mean()

    @pytest.mark.parametrize("name", PRESETS)
    def test_forecasts_are_those_of_the_table(self, name):
        model, data, new = PRESETS[name], data_of(name), data_of(name, 5, seed=3)
        both = Data(*(np.concatenate(pair) for pair in zip(parts(data), parts(new), strict=True)))
        train = np.append(data.weights, np.zeros(5))
        plan = Pairs(train[None], (np.arange(18) >= 13)[None] + 0.0, data.size)
        posterior = model.posterior(data.X, data.y, 0.4 * data.size, data.weights)
        law = posterior.predictive(new.X if name != "mean" else np.empty((5, 0)))
        (losses,) = table_of(model, both, plan, "predictive").at(np.array([0.4]))
        np.testing.assert_allclose(law.log_density(new.y), -losses[13:], rtol=1e-8)

    @pytest.mark.parametrize("name", PRESETS)
    @pytest.mark.parametrize("d", [3, 20])
    def test_draws_follow_the_marginals(self, name, d):
        if d > 3 and (name in OTHER or name in GIVEN and np.ndim(PRESETS[name].prior_cov)):
            return
        data = data_of(name, d=d)
        posterior = PRESETS[name].posterior(data.X, data.y, 2 * data.size, data.weights)
        law, draws = posterior.marginals(), posterior.sample(40_000, seed=1)
        d = len(posterior.mean)
        np.testing.assert_allclose(law.mean, posterior.mean, rtol=1e-9, atol=1e-12)
        for q in (0.1, 0.5, 0.9):
            shares = (draws[:, :d] <= law.quantile(q)).mean(axis=0)
            np.testing.assert_allclose(shares, q, atol=0.012)
        direction = np.random.default_rng(0).standard_normal((2, d))
        places = posterior.combination(direction).cdf(draws[:500, :d] @ direction.T)
        assert stats.kstest(places[:, 0], "uniform").pvalue > 1e-4
        inputs = data.X[:2] if name != "mean" else np.empty((2, 0))
        responses = posterior.sample_response(inputs, 5000, seed=2)
        uniform = posterior.predictive(inputs).cdf(responses)[:, 1]
        assert stats.kstest(uniform, "uniform").pvalue > 1e-4

    @pytest.mark.parametrize("name", PRESETS)
    @pytest.mark.parametrize("n", [13, 5])
    def test_the_density_is_likelihood_times_prior(self, name, n):
        """Differences of the log density between draws, against the definition."""
        model, data, beta = PRESETS[name], data_of(name, n), 0.6
        posterior = model.posterior(data.X, data.y, beta * data.size, data.weights)
        draws, d = posterior.sample(6, seed=0), len(posterior.mean)
        known = getattr(model, "noise_variance", None)
        s2 = draws[:, -1] if known is None else np.full(6, known)
        log_prior = log_prior_of(model, name, draws[:, :d], s2)
        if known is None:
            log_prior += stats.invgamma.logpdf(s2, model.a, scale=model.b)
        if name == "level":  # it takes beta of an observation from the noise: at 1 it is flat
            log_prior += (beta - 1) / 2 * np.log(s2)
        inputs = data.X if name != "mean" else np.empty((n, 0))
        expected = log_prior - beta * model.loss(draws, inputs, data.y) @ data.weights
        found = posterior.log_prob(draws)
        np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-7, atol=1e-7)
        assert posterior.log_prob(draws[0]) == pytest.approx(found[0])

    @pytest.mark.parametrize("name", sorted(GIVEN))
    def test_covariances_are_those_of_the_textbook(self, name):
        model, data = PRESETS[name], data_of(name)
        Z, prior = model.features(data.X), model.prior(model.features(data.X).shape[1])
        cov = np.diag(prior.root**2) if prior.root.ndim == 1 else prior.root @ prior.root.T
        s2 = getattr(model, "noise_variance", 1.0)
        S = np.linalg.inv(np.linalg.inv(cov) + 0.6 / s2 * (Z.T * data.weights) @ Z)
        posterior = model.posterior(data.X, data.y, 0.6 * data.size, data.weights)
        expected = np.linalg.solve(cov, prior.mean) + 0.6 / s2 * Z.T @ (data.weights * data.y)
        np.testing.assert_allclose(posterior.mean, S @ expected, rtol=1e-9)
        if hasattr(posterior, "a"):
            assert posterior.a == pytest.approx(model.a + 0.3 * data.size)
            np.testing.assert_allclose(posterior.scale, S, rtol=1e-9, atol=1e-12)
            S = S * posterior.b / (posterior.a - 1)
        np.testing.assert_allclose(posterior.cov, S, rtol=1e-9, atol=1e-12)


def parts(data):
    return data.X, data.y, data.weights


def log_prior_of(model, name, theta, s2):
    if name in GIVEN:
        prior = model.prior(theta.shape[1])
        cov = np.diag(prior.root**2) if prior.root.ndim == 1 else prior.root @ prior.root.T
        units = s2 if name.startswith("unknown") else np.ones(len(s2))
        pairs = zip(theta, units, strict=True)
        laws = stats.multivariate_normal
        return np.array([laws.logpdf(each, prior.mean, unit * cov) for each, unit in pairs])
    slopes = theta[:, int(model.intercept) :]  # a level has a flat prior
    logs = [
        stats.norm.logpdf(slopes, 0, scale * np.sqrt(s2)[:, None]).sum(axis=1) for scale in SCALES
    ]
    return special.logsumexp(logs, axis=0) - np.log(len(SCALES))


@pytest.mark.parametrize("prior_cov", [np.diag([1.0, 2.0, 3.0]), covariance(3)])
@pytest.mark.parametrize("a, alpha", [(0.5, 0.0), (1.0, 0.0), (0.5, 1.0)])
def test_a_variance_without_a_mean_is_infinite(a, alpha, prior_cov):
    """With the signs of the scale matrix, and 0 where that is 0: nan nowhere."""
    X, y, _ = ordinary()
    posterior = models.NormalInverseGammaLinear(a, prior_cov=prior_cov).posterior(X, y, alpha)
    assert posterior.a <= 1
    cov = posterior.cov
    assert not np.isnan(cov).any() and np.all(np.diagonal(cov) == np.inf)
    np.testing.assert_array_equal(np.sign(cov), np.sign(posterior.scale))
    np.testing.assert_array_equal(cov == 0, posterior.scale == 0)
    assert np.all(posterior.predict(X)[1] == np.inf)
    just_above = models.NormalInverseGammaLinear(1.01, prior_cov=prior_cov).posterior(X, y, 0.0)
    assert np.isfinite(just_above.cov).all()


class TestLimits:
    @pytest.mark.parametrize("alpha", [1e6, 1e12])
    def test_infinite_alpha_is_least_squares(self, alpha):
        data = data_of("full", 30)
        X, y = data.X, data.y
        least, residual, _, _ = np.linalg.lstsq(X, y)
        close = 1e3 / alpha
        known = models.GaussianLinear(2.0, 0.3).posterior(X, y, alpha)
        np.testing.assert_allclose(known.mean, least, atol=close)
        assert np.abs(known.cov).max() < close
        unknown = models.NormalInverseGammaLinear().posterior(X, y, alpha)
        np.testing.assert_allclose(unknown.mean, least, atol=close)
        assert unknown.a / unknown.b == pytest.approx(30 / residual[0], rel=1e2 * close)

    def test_infinite_alpha_with_more_columns_than_rows_interpolates(self):
        data = data_of("full", 6, 15)
        posterior = models.GaussianLinear().posterior(data.X, data.y, 1e12)
        shortest = np.linalg.pinv(data.X) @ data.y
        np.testing.assert_allclose(posterior.mean, shortest, atol=1e-9)
        # Across the rows the prior is untouched.
        across = np.eye(15) - np.linalg.pinv(data.X) @ data.X
        np.testing.assert_allclose(across @ posterior.cov @ across, across, atol=1e-9)

    @pytest.mark.parametrize("alpha", [0.0, 1.0, 1e12])
    @pytest.mark.parametrize("kind", [models.GaussianLinear, models.NormalInverseGammaLinear])
    def test_collinear_columns_share_a_coefficient(self, kind, alpha):
        data = data_of("full", 20, 2)
        doubled = np.column_stack([data.X, data.X])
        half = kind(prior_cov=0.5).posterior(doubled, data.y, alpha)
        whole = kind(prior_cov=1.0).posterior(data.X, data.y, alpha)
        np.testing.assert_allclose(half.mean[:2] + half.mean[2:], whole.mean, atol=1e-8)
        np.testing.assert_allclose(half.mean[:2], half.mean[2:], atol=1e-8)
        for risk in SCORES:
            risks = [
                expected_risk(kind(prior_cov=size), (Z, data.y), (Z, data.y), alpha, risk=risk)
                for size, Z in ((0.5, doubled), (1.0, data.X))
            ]
            assert risks[0] == pytest.approx(risks[1], rel=1e-8)

    def test_constant_columns_beside_a_level(self):
        data = data_of("level", 20)
        X = np.column_stack([data.X, data.X[:, 1], np.ones(20)])
        law = LEVEL["level"].posterior(X, data.y, 20.0, data.weights).marginals()
        assert law.mean[1] == pytest.approx(law.mean[4])
        assert law.mean[5] == pytest.approx(0, abs=1e-12)
        plan = LeaveOneOut(data.weights)
        table = table_of(LEVEL["level"], Data(X, data.y, data.weights), plan)
        assert np.isfinite(table(BETAS)).all()

    def test_a_perfect_fit_keeps_the_scale_positive(self):
        X, _, ones = ordinary(12)
        y, model = X @ [1e6, -1e6, 1e6], models.NormalInverseGammaLinear(b=1e-8)
        for alpha in (1e-6, 1.0, 1e12):
            assert model.posterior(X, y, alpha).b >= 1e-8
        for rule in (LeaveOneOutRule(), SafeBayes(), KFold(3)):
            table = table_of(model, *rule.planned(Data(X, y, ones), np.random.default_rng(0)))
            assert np.isfinite(table(np.array([1e-9, 1e-3, 1.0, 1e9]))).all()

    @pytest.mark.parametrize("name", PRESETS)
    def test_any_beta_has_a_risk(self, name):
        for plan in ("folds", "leave-one-out", "pairs"):
            for score in SCORES:
                table = table_of(PRESETS[name], *planned(name, plan), score)
                assert np.isfinite(table(np.array([0.0, 5e-324, 1e-30, 1e30, 1e100]))).all()

    def test_presets_are_linear_regressions(self):
        data = data_of("powers", 20)
        powers = np.vander(data.X[:, 0], 5, increasing=True)
        linear = models.GaussianLinear(0.3, 0.0, 0.5 ** np.arange(5))
        for alpha in (0.0, 7.0):
            np.testing.assert_allclose(
                models.Polynomial(5, 0.3).posterior(data.X, data.y, alpha).mean,
                linear.posterior(powers, data.y, alpha).mean,
            )
        mean = models.GaussianMean(0.3, 1.0, 2.0).posterior(None, data.y, 7.0)
        expected = (1.0 / 2.0 + 7 * data.y.mean() / 0.3) / (0.5 + 7 / 0.3)
        assert mean.mean == pytest.approx(expected)
        assert mean.cov[0, 0] == pytest.approx(1 / (0.5 + 7 / 0.3))

    def test_a_sentinel_does_not_choose_beta(self):
        rng = np.random.default_rng(3)
        X = rng.standard_normal((60, 4))
        y = X.sum(axis=1) + rng.standard_normal(60)
        y[17] = 999999999.0
        model = models.NormalInverseGammaLinear()
        one, each = (
            chosen(model, X, y, rule, risk="gibbs") for rule in (LeaveOneOutRule(), KFold(60))
        )
        assert one.beta == pytest.approx(each.beta, rel=1e-4)

    def test_refusals(self):
        with pytest.raises(ValueError, match="^X must begin with a column of ones"):
            models.HierarchicalLinear().posterior(np.zeros((3, 2)), np.zeros(3), 1.0)
        for scales in ([0.0], [], [[1.0]], [1e60]):
            with pytest.raises(ValueError, match="^scales must be positive numbers"):
                models.HierarchicalLinear(scales=scales)
        with pytest.raises(ValueError, match="^X must have finite powers up to 7, got numbers up"):
            models.Polynomial(8).design([1e60, 1.0])


class TestCost:
    @pytest.fixture
    def decompositions(self, monkeypatch):
        """Count calls of the decompositions that cost more than O(d^2)."""
        calls = []
        for name in ("svd", "qr", "eigh", "cholesky", "inv", "solve"):
            original = getattr(np.linalg, name)

            def counted(*args, _original=original, _name=name, **kwargs):
                calls.append(_name)
                return _original(*args, **kwargs)

            monkeypatch.setattr(np.linalg, name, counted)
        return calls

    @pytest.mark.parametrize("plan", ["folds", "leave-one-out", "pairs"])
    @pytest.mark.parametrize("name", ["scalar", "unknown, full", "level"])
    def test_further_betas_cost_no_decomposition(self, name, plan, decompositions):
        table = table_of(PRESETS[name], *planned(name, plan, n=60))
        table(1.0)
        assert 1 <= len(decompositions) <= 8  # the first one did
        decompositions.clear()
        table(np.linspace(0.1, 3, 50), derivative=True)
        assert decompositions == []

    @pytest.mark.parametrize("rule", [LeaveOneOutRule(), KFold(4)], ids=str)
    @pytest.mark.parametrize("name", ["scalar", "level"])
    def test_many_columns_need_no_square_of_them(self, name, rule):
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((10, 3000)), rng.standard_normal(10)
        X[:, 0] = 1.0
        tracemalloc.start()
        found = chosen(PRESETS[name], X, y, rule)
        found.posterior.predictive(X)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 0.1 * 8 * 3000**2

    def test_leave_one_out_of_many_rows_is_one_pass(self, decompositions):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((20_000, 5))
        y = X[:, 0] + rng.standard_normal(20_000)
        tracemalloc.start()
        chosen(models.NormalInverseGammaLinear(), X, y, LeaveOneOutRule())
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(decompositions) <= 2 and peak < 40 * X.nbytes
