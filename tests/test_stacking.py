"""Stacks of forecasts over beta: what is said of them, their posteriors, and groups of rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse, special, stats
from sklearn.model_selection import GroupKFold, TimeSeriesSplit

from temperance import GibbsClassifier, GibbsRegressor, calibrate, models, strategies
from temperance.calibration import NEGLIGIBLE_GAIN
from temperance.data import Data
from temperance.messages import BoundWarning, WeightWarning
from temperance.posteriors.mixture import MixturePosterior
from temperance.rules import Gain, cross_fitted
from temperance.strategies import FromSplitter, KFold, LeaveOneOut, Stacking
from temperance.table import mean_and_error

LINEAR = models.GaussianLinear(noise_variance=0.4)
LOGISTIC = models.LaplaceLogistic()
RNG = np.random.default_rng(3)
N = 40
X = np.column_stack([np.ones(N), RNG.standard_normal((N, 4))])
Y = X @ [1.0, 2.0, 0.0, -1.0, 0.5] + 1.5 * RNG.standard_normal(N)
LABELS = (X @ [0.0, 2.0, 0.0, -1.0, 0.5] + RNG.logistic(size=N) > 0).astype(int)


def stacked(model=LINEAR, y=Y, strategy=None, **options):
    return calibrate(model, X, y, strategy or Stacking(), **options)


class TestResult:
    @pytest.mark.parametrize("source", [None, KFold(5)], ids=["one", "five"])
    def test_risk_and_errors_are_those_of_weights_refitted_without_each_tenth(self, source):
        found = stacked(strategy=Stacking(source))
        own = cross_fitted(found.table, found.weights.betas)
        (bayes,) = found.table.at(np.ones(1))
        assert found.risk == pytest.approx(own.mean())
        assert found.gain == pytest.approx((bayes - own).mean())
        assert found.standard_error == pytest.approx(stats.sem(own))
        assert found.gain_standard_error == pytest.approx(stats.sem(bayes - own))
        assert found.beta == found.weights.median

    def test_losses_of_other_rows_are_those_of_mean_densities(self):
        found = stacked()
        weights = found.weights
        losses = found.table.at(weights.betas)
        expected = -np.log(weights.weights @ np.exp(-losses))
        np.testing.assert_allclose(found.losses_in(found.table), expected)

    @pytest.mark.parametrize("bounds", [(0.0, 3.0), (0.2, 0.4), (2.0, 5.0), (0.0, 0.01)])
    def test_bounds_are_kept(self, bounds):
        found = stacked(bounds=bounds)
        assert bounds[0] <= found.weights.betas[0] <= found.beta <= bounds[1]
        assert found.weights.betas[-1] == bounds[1]
        assert not found.at_bound

    def test_betas_are_half_a_decade_apart_from_a_thousandth_on(self):
        betas = stacked().weights.betas
        assert betas[0] == 1e-3 and betas[-1] == 3.0 and 1.0 in betas
        assert np.diff(np.log10(betas)).max() < 0.501

    def test_the_range_is_about_the_best_single_beta(self):
        found = stacked()
        best = calibrate(LINEAR, X, Y, LeaveOneOut(), risk="predictive")
        low, high = found.beta_range
        assert low < best.beta < high

    @pytest.mark.filterwarnings("ignore::temperance.messages.FlatCurveWarning")
    @pytest.mark.parametrize("votes", ["few rows", "as many columns as rows", "an exact fit"])
    def test_bayes_is_left_where_rows_say_little(self, votes):
        rng = np.random.default_rng(0)
        n, d = {"few rows": (4, 3), "as many columns as rows": (12, 40)}.get(votes, (12, 2))
        inputs = rng.standard_normal((n, d))
        y = inputs[:, 0] + (0.0 if votes == "an exact fit" else rng.standard_normal(n))
        found = calibrate(models.NormalInverseGammaLinear(), inputs, y)
        near = np.abs(np.log(found.weights.betas)) < 0.1
        assert found.weights.weights[near].sum() > 0.9
        assert found.verdict == "keep"

    def test_refusals(self):
        with pytest.raises(ValueError, match="^Stacking is for forecasts: risk must be 'predict"):
            stacked(risk="gibbs")
        from temperance.losses import Huber

        with pytest.raises(ValueError, match="GibbsLinear with a loss that is no likelihood$"):
            stacked(models.GibbsLinear(Huber()))
        for source in (strategies.Bayes(), strategies.Naive(), strategies.Sandwich()):
            with pytest.raises(ValueError, match="^source must hold rows out, as LeaveOneOut"):
                Stacking(source)


class TestMixtures:
    def test_posterior_is_the_mixture_of_the_parts(self):
        found = stacked()
        held, posterior = found.weights.without_negligible(), found.posterior
        assert isinstance(posterior, MixturePosterior)
        parts = [found.posterior_at(float(beta)) for beta in held.betas]
        theta = parts[0].sample(5, seed=0)
        expected = special.logsumexp(
            [part.log_prob(theta) for part in parts], b=held.weights[:, None], axis=0
        )
        np.testing.assert_allclose(posterior.log_prob(theta), expected, rtol=1e-4)
        assert posterior.log_prob(theta[0]) == pytest.approx(posterior.log_prob(theta)[0])
        mean = sum(w * part.mean for w, part in zip(held.weights, parts, strict=True))
        np.testing.assert_allclose(posterior.mean, mean, atol=1e-3)
        law, value = posterior.predictive(X[:3]), np.array([0.1, -2.0, 3.0])
        densities = [np.exp(part.predictive(X[:3]).log_density(value)) for part in parts]
        np.testing.assert_allclose(
            np.exp(law.log_density(value)), held.weights @ densities, rtol=1e-3
        )
        draws = posterior.sample(40_000, seed=1)
        for uniform in posterior.marginals().cdf(draws).T:
            assert stats.kstest(uniform, "uniform").pvalue > 1e-3
        responses = posterior.sample_response(X[:2], 40_000, seed=1)
        for uniform in posterior.predictive(X[:2]).cdf(responses).T:
            assert stats.kstest(uniform, "uniform").pvalue > 1e-3

    def test_hierarchical_posterior_is_the_mixture_but_for_parts_of_little_weight(self):
        found = stacked(models.HierarchicalLinear())
        held, posterior = found.weights, found.posterior
        parts = [found.posterior_at(float(beta)) for beta in held.betas]
        theta = posterior.sample(5, seed=0)
        expected = special.logsumexp(
            [part.log_prob(theta) for part in parts], b=held.weights[:, None], axis=0
        )
        np.testing.assert_allclose(posterior.log_prob(theta), expected, atol=0.01)

    def test_probabilities_of_classes_are_averages(self):
        found = stacked(LOGISTIC, LABELS)
        held = found.weights.without_negligible()
        parts = [found.posterior_at(float(beta)).predict(X) for beta in held.betas]
        np.testing.assert_allclose(found.posterior.predict(X), held.weights @ parts)
        both = np.exp(found.posterior.log_predict(X))
        np.testing.assert_allclose(both, [1 - held.weights @ parts, held.weights @ parts])


class TestEstimators:
    def test_quantiles_and_levels(self):
        model = GibbsRegressor().fit(X[:, 1:], Y)
        new = X[:7, 1:]
        both = model.predict_quantile(new, [0.05, 0.95])
        assert both.shape == (2, 7) and model.predict_quantile(new, 0.05).shape == (7,)
        np.testing.assert_allclose(model.predict_interval(new, 0.9).T, both, rtol=1e-8)
        assert model.predict_interval(new, [0.5, 0.9, 0.99]).shape == (3, 7, 2)
        np.testing.assert_allclose(model.forecast(new).cdf(both[0]), 0.05, rtol=1e-7)

    @pytest.mark.parametrize("target", ["forecasts", "draws"])
    @pytest.mark.parametrize("classes", [False, True])
    def test_rows_of_a_group_stay_together(self, target, classes):
        groups = np.arange(N) // 4
        estimator = GibbsClassifier(posterior="laplace", target=target) if classes else None
        estimator = estimator or GibbsRegressor(target=target)
        weights = np.where(np.arange(N) % 7 == 0, 0.0, 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BoundWarning)
            estimator.fit(X[:, 1:], LABELS if classes else Y, weights, groups=groups)
        found = estimator.calibration_
        source = found.strategy
        if target == "forecasts":
            assert isinstance(source, Stacking)
            source = source.source
        plan = source.plan(found.data, np.random.default_rng(0)).pairs()
        assert len(plan.test) == 10
        for train, test in zip(plan.train, plan.test, strict=True):
            kept = groups[weights > 0]
            assert not set(kept[train > 0]) & set(kept[test > 0])
        assert np.all((plan.test > 0).sum(axis=0) == 1)

    @pytest.mark.parametrize("strategy", [None, "k-fold"])
    def test_groups_are_the_observations(self, strategy):
        # Each row three times, as a group: errors and weights of one row each.
        thrice, groups = np.tile(X[:, 1:], (3, 1)), np.tile(np.arange(N), 3)
        found = GibbsRegressor(strategy=strategy).fit(thrice, np.tile(Y, 3), groups=groups)
        calibration = found.calibration_
        losses = calibration.losses
        naive = mean_and_error(losses, np.ones(3 * N), np.ones(3 * N))[1]
        means = losses.reshape(3, N).mean(axis=0)
        error = calibration.standard_error
        np.testing.assert_allclose(error, means.std(ddof=1) / np.sqrt(N), rtol=1e-10)
        assert error > 1.6 * naive

    def test_parts_of_time_give_the_stack_its_pairs(self):
        strategy = Stacking(FromSplitter(TimeSeriesSplit(4)))
        found = GibbsRegressor(strategy=strategy).fit(X[:, 1:], Y).calibration_
        assert np.all((found.table.weights > 0) == (np.arange(N) >= N // 5))

    def test_groups_of_any_kind_give_the_same(self):
        numbers = np.arange(N) // 5
        words = np.array([f"ward {k}" for k in numbers], dtype=object)
        one, other = (
            GibbsRegressor().fit(X[:, 1:], Y, groups=groups).calibration_
            for groups in (numbers, words)
        )
        assert one.risk == other.risk
        apart = GibbsRegressor(strategy="k-fold").fit(X[:, 1:], Y, groups=numbers).calibration_
        assert apart.weights is None and apart.strategy.transfer == "beta"
        held = GibbsRegressor(transfer="alpha").fit(X[:, 1:], Y, groups=numbers).calibration_
        assert held.strategy.transfer == "alpha"

    @pytest.mark.parametrize(
        ("groups", "options", "message"),
        [
            (np.zeros(3), {}, "groups must have shape (40,), got shape (3,)"),
            (np.zeros(N), {}, "groups must hold at least 2 groups, got 1"),
            (
                np.where(np.arange(N) == 5, np.nan, 1.0),
                {},
                "groups must be known, got nan in row 5",
            ),
            (
                np.array(["a", 1] * 20, dtype=object),
                {},
                "groups must hold labels of one kind, text or numbers, got int, str",
            ),
            (
                np.arange(N),
                {"strategy": "bootstrap"},
                "groups are for the strategies 'stacking', 'k-fold', 'coverage', 'sandwich', "
                "'fisher-information' and 'fitted-coverage'; give others a splitter by "
                "strategies.FromSplitter(splitter, groups=...), got strategy 'bootstrap'",
            ),
            (
                np.arange(N),
                {"strategy": "stacking", "target": "draws"},
                "Stacking is for forecasts: risk must be 'predictive', got 'gibbs'",
            ),
        ],
        ids=["shape", "one", "missing", "kinds", "strategy", "draws"],
    )
    def test_bad_groups_get_one_line(self, groups, options, message):
        with pytest.raises(ValueError) as error:
            GibbsRegressor(**options).fit(X[:, 1:], Y, groups=groups)
        assert str(error.value) == message

    def test_weights_that_look_normalised_are_told(self):
        for estimator, y in ((GibbsRegressor(), Y), (GibbsClassifier(posterior="laplace"), LABELS)):
            with pytest.warns(WeightWarning) as caught:
                estimator.fit(X[:, 1:], y, sample_weight=np.full(N, 1 / N))
            (message,) = {str(each.message) for each in caught}
            assert message == (
                "sample_weight sums to 1 for 40 rows: a weight of k counts like k copies of a row, "
                "so the data count as 1 observations; multiply normalised weights by the number "
                "of rows"
            )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            GibbsRegressor(strategy="bayes").fit(X[:, 1:], Y, sample_weight=np.full(N, 0.2))

    def test_sparse_inputs_get_one_line(self):
        for estimator in (GibbsRegressor(), GibbsClassifier()):
            with pytest.raises(TypeError) as error:
                estimator.fit(sparse.csr_matrix(X), LABELS)
            assert str(error.value) == (
                "X must be dense, got a sparse csr_matrix: Sparse data are not supported, use "
                "X.toarray() if it fits into memory"
            )


def test_groups_are_drawn_as_a_whole():
    """As many votes as observations; standard errors over groups."""
    groups = np.repeat(np.arange(N // 2), 2)
    source = FromSplitter(GroupKFold(10), groups=groups)
    found = calibrate(LINEAR, X, Y, Stacking(source))
    means = found.losses.reshape(N // 2, 2).mean(axis=1)
    assert found.standard_error == pytest.approx(stats.sem(means))


class TestRange:
    def test_of_what_was_not_sought(self):
        bayes = calibrate(LINEAR, X, Y, "bayes")
        assert bayes.beta_range == (1.0, 1.0) and "range" not in repr(bayes)
        with pytest.warns(UserWarning, match="does not depend on beta"):
            flat = calibrate(models.GaussianLinear(), np.zeros((9, 1)), np.arange(9.0), KFold(3))
        assert flat.beta_range == (0.0, 3.0)

    def test_holds_the_choice_at_a_bound(self):
        found = calibrate(LINEAR, X, Y, "naive", risk="gibbs")
        assert found.beta == found.beta_range[1] == 3.0

    @pytest.mark.parametrize(
        ("gain", "error", "told"),
        [
            (0.3, 0.1, "better"),
            (0.1, 0.1, "unknown"),
            (-0.3, 0.01, "the same"),
            (0.001, 0.001, "the same"),
            (NEGLIGIBLE_GAIN, 0.004, "better"),
            (0.3, np.nan, "no standard error"),
        ],
    )
    def test_what_is_told_of_the_gain(self, gain, error, told):
        found = calibrate(LINEAR, X, Y, "k-fold")
        vars(found).update(_risk=(2.0 - gain, 0.1), _gain=Gain(gain, error), bayes_risk=2.0)
        assert found.versus_bayes == told


@pytest.mark.parametrize("intercept", [False, True])
def test_votes_for_bayes_grow_with_the_parameters(intercept):
    """2 + p / (1 - p / n)^2, p the trace of the hat matrix at beta = 1."""
    weights = np.random.default_rng(0).uniform(0.5, 2.0, N)
    size = weights.sum()
    if intercept:
        model, scale = models.HierarchicalLinear(1.0, scales=[0.5]), 0.25
        inputs = X[:, 1:] - np.average(X[:, 1:], axis=0, weights=weights)
    else:
        model, scale, inputs = models.GaussianLinear(2.0), 0.5, X
    d = inputs.shape[1]
    hat = np.linalg.inv(np.eye(d) + scale * (inputs.T * weights) @ inputs)
    used = d - np.trace(hat) + intercept
    data = Data(X, Y, weights)
    plan = KFold(4).planned(data, np.random.default_rng(0))
    table = model.held_out(*plan, "predictive", (0.0, 3.0))
    assert table.votes == pytest.approx(2 + used / (1 - used / size) ** 2)
