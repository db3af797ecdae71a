"""Averages over beta: their weights, posteriors, ranges, and what goes into and out of them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scenarios import binary_data, gaussian_data
from scipy import integrate, optimize, sparse, special, stats
from sklearn.model_selection import GroupKFold, TimeSeriesSplit
from temperance.strategies.default import (
    average_for,
    default_strategy,
    with_feasible_folds,
    with_transfer,
)
from temperance.uncertainty.standard_errors import KnownErrors, mean_and_error

from temperance import GibbsClassifier, GibbsRegressor, calibrate, models, strategies
from temperance.calibration import NEGLIGIBLE_GAIN, BetaWeights
from temperance.data import Data
from temperance.messages import BoundWarning, WeightWarning
from temperance.posteriors import StudentMixture, StudentT
from temperance.posteriors.mixture import MixturePosterior
from temperance.strategies import Average, FromSplitter, KFold, LeaveOneOut, average

LINEAR = models.GaussianLinear(noise_variance=0.4)
LOGISTIC = models.LaplaceLogistic()
RNG = np.random.default_rng(3)
N = 40
X = np.column_stack([np.ones(N), RNG.standard_normal((N, 4))])
Y = X @ [1.0, 2.0, 0.0, -1.0, 0.5] + 1.5 * RNG.standard_normal(N)
LABELS = (X @ [0.0, 2.0, 0.0, -1.0, 0.5] + RNG.logistic(size=N) > 0).astype(int)


def averaged(model=LINEAR, y=Y, strategy=None, **options):
    strategy = strategy or average_for(model)
    return calibrate(model, X, y, strategy, risk="predictive", **options)


def naive_weights(calibration, betas, replicates=50_000, groups=None):
    """The weights by the Bayesian bootstrap in its normal limit, drawn row by row."""
    model, data, curve = calibration.model, calibration.data, calibration.curve
    losses = np.array([curve.rows(float(beta))[0] for beta in [*betas, 1.0]])
    used = model.parameters_used(data, np.array([*betas, 1.0]))
    free = np.maximum(1 - (used / data.size) ** 2, 1e-6)
    trust = np.minimum(free[:-1], free[-1])
    differences = losses[:-1] - losses[-1]
    # S' = S + sqrt(2) sum_i g_i (difference_i - mean), with independent standard normals g_i.
    groups = np.arange(len(data.X)) if groups is None else groups  # of rows that go together
    noise = np.random.default_rng(1).standard_normal((replicates, groups.max() + 1))[:, groups]
    centred = differences - differences.mean(axis=1, keepdims=True)
    sums = differences.sum(axis=1) + np.sqrt(2) * noise @ centred.T
    spread = calibration.strategy.spread
    place = np.log(betas) / np.sqrt(trust) / spread
    below, above = stats.cauchy.logpdf(place), stats.norm(scale=0.5**0.5).logpdf(place)
    prior = np.where(place < 0, below - stats.cauchy.logpdf(0), above + np.log(np.pi) / 2)
    # Each stands for its part of the axis t, with log beta = spread sinh(t).
    t = np.arcsinh(np.log(betas) / spread)
    edges = np.concatenate([t[:1], (t[1:] + t[:-1]) / 2, t[-1:]])
    prior += np.log(np.diff(edges) * spread * np.cosh(t))
    each = special.softmax(-trust * sums + prior, axis=1)
    return each.mean(axis=0), each.std(axis=0)


def inner(weights):
    """Without the first and the last, beyond which betas of negligible weight were cut off."""
    return weights[1:-1] / weights[1:-1].sum()


class TestWeights:
    @pytest.mark.parametrize(
        ("model", "y"),
        [
            (LINEAR, Y),
            (models.NormalInverseGammaLinear(), Y),
            (models.HierarchicalLinear(), Y),
            (LOGISTIC, LABELS),
        ],
        ids=["known", "unknown", "hierarchical", "logistic"],
    )
    def test_are_those_of_a_bootstrap_of_the_rows(self, model, y):
        found = averaged(model, y)
        betas, weights = found.average.betas, found.average.weights
        expected, spread = naive_weights(found, betas)
        error = 4 * spread / np.sqrt(500)  # of the library's own replicates
        assert weights.sum() == pytest.approx(1.0)
        assert np.all(np.abs(inner(weights) - inner(expected)) < error[1:-1] + 1e-3)
        if model is LINEAR:  # negative control: another draw of rows has other weights
            plain = naive_weights(found, betas, replicates=1)[0]
            assert np.abs(inner(weights) - inner(plain)).max() > 0.03

    def test_groups_are_drawn_as_a_whole(self):
        groups = np.repeat(np.arange(N // 2), 5)  # copies of the first 20 rows
        source = FromSplitter(GroupKFold(10), groups=groups)
        copies = X[groups][:, :2], Y[groups]
        found = calibrate(LINEAR, *copies, Average(source, spread=2.0), risk="predictive")
        betas, weights = found.average.betas, found.average.weights
        expected, spread = naive_weights(found, betas, groups=groups)
        error = 4 * spread / np.sqrt(500)
        assert np.all(np.abs(inner(weights) - inner(expected)) < error[1:-1] + 1e-3)
        rows = naive_weights(found, betas)[0]
        assert np.any(np.abs(inner(weights) - inner(rows)) > error[1:-1] + 1e-3)

    @pytest.mark.parametrize("bounds", [(0.2, 0.4), (0.05, 0.5)])
    def test_within_bounds_the_ends_count_for_half(self, bounds):
        found = averaged(bounds=bounds)
        betas, weights = found.average.betas, found.average.weights
        assert (betas[0], betas[-1]) == bounds  # nothing was cut off
        expected, spread = naive_weights(found, betas)
        error = 4 * spread / np.sqrt(500)
        assert np.all(np.abs(weights - expected / expected.sum()) < error + 1e-3)

    def test_widths_are_those_of_the_trapezoidal_rule(self):
        axis = average._Axis(0.1)
        places = np.array([-3.0, -1.0, -0.8, 0.0, 1.5])
        widths = axis.widths(axis.betas(places))
        for values in (np.ones(5), places, places**2):
            assert widths @ values == pytest.approx(integrate.trapezoid(values, places))
        assert axis.widths(np.array([1.0])) == [0.5]  # a weight alone is all of them

    def test_betas_are_closer_where_weights_are_large(self):
        held = averaged().average
        steps = np.diff(np.arcsinh(np.log(held.betas) / 0.1))
        assert steps.max() > 2 * steps.min()
        largest = int(np.argmax(held.weights))
        assert steps[largest - 1 : largest + 1].max() < np.median(steps)

    @pytest.mark.parametrize("spread", [0.1, 2.0])
    def test_few_betas_do_as_well_as_many(self, spread, monkeypatch):
        found = averaged(strategy=Average(spread=spread))
        monkeypatch.setattr(average, "POINTS", 400)
        many = averaged(strategy=Average(spread=spread))
        assert found.risk == pytest.approx(many.risk, abs=1e-3)
        assert np.log(found.beta / many.beta) == pytest.approx(0.0, abs=0.05)
        weights = many.average.finer
        shares = [weights.weights[weights.betas <= end].sum() for end in found.beta_range]
        np.testing.assert_allclose(shares, [0.025, 0.975], atol=0.01)

    def test_the_choice_is_their_median(self):
        found = averaged()
        held = found.average
        assert found.beta == held.median == held.quantile(0.5)
        draws = np.random.default_rng(0).choice(held.betas, 100_000, p=held.weights)
        step = np.log(held.betas[1] / held.betas[0])
        assert abs(np.log(np.median(draws) / found.beta)) < step
        assert found.beta_range == (held.quantile(0.025), held.quantile(0.975))
        low, high = found.beta_range
        assert held.betas[0] <= low < found.beta < high <= held.betas[-1]

    def test_quantiles_by_hand(self):
        two = BetaWeights(np.array([1.0, np.e**2]), np.array([0.5, 0.5]))
        assert two.median == pytest.approx(np.e)
        assert two.quantile(0.01) == 1.0
        assert BetaWeights(np.array([0.7]), np.ones(1)).median == pytest.approx(0.7)

    @pytest.mark.parametrize("source", [LeaveOneOut(), KFold(5)], ids=["one", "five"])
    def test_the_order_of_rows_plays_no_part(self, source):
        order = np.random.default_rng(0).permutation(N)
        one = averaged(strategy=Average(source))
        other = calibrate(LINEAR, X[order], Y[order], Average(source), risk="predictive")
        np.testing.assert_allclose(other.average.betas, one.average.betas, rtol=1e-9)
        np.testing.assert_allclose(other.average.weights, one.average.weights, rtol=1e-6)

    @pytest.mark.parametrize(("model", "y"), [(LINEAR, Y), (LOGISTIC, LABELS)])
    def test_a_weight_is_as_many_copies(self, model, y):
        counts = np.random.default_rng(4).integers(1, 4, N)
        rule = Average(KFold(5))
        one = calibrate(model, X, y, rule, risk="predictive", weights=counts.astype(float))
        copies = np.repeat(X, counts, axis=0), np.repeat(y, counts)
        other = calibrate(model, *copies, rule, risk="predictive")
        np.testing.assert_allclose(other.average.weights, one.average.weights, rtol=1e-4)
        assert other.beta == pytest.approx(one.beta, rel=1e-6)
        for name in ("risk", "standard_error", "gain", "gain_standard_error"):
            assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-5)

    def test_bayes_is_left_where_rows_say_nothing(self):
        """As many parameters as rows: f -> 0."""
        rng = np.random.default_rng(0)
        wide, y = rng.standard_normal((12, 40)), 30 * rng.standard_normal(12)
        model = models.GaussianLinear(noise_variance=1e-6)
        found = calibrate(model, wide, y, "average", risk="predictive")
        assert found.beta == pytest.approx(1.0, rel=0.02)
        held = found.average
        assert held.weights[np.abs(np.log(held.betas)) < 0.15].sum() > 0.95
        # Negative control: with as many rows as it takes, another beta is found.
        wide = rng.standard_normal((400, 4))
        many = calibrate(model, wide, wide[:, 0] + rng.standard_normal(400), risk="predictive")
        assert many.beta < 0.1

    def test_a_narrower_prior_stays_closer_to_bayes(self):
        model = models.GaussianLinear(noise_variance=1.2)  # too small
        distances = [
            abs(np.log(averaged(model, strategy=Average(spread=spread)).beta))
            for spread in (0.05, 0.5, 5)
        ]
        assert distances[0] < distances[1] < distances[2]


class TestResult:
    def test_risk_and_errors_are_those_of_mean_densities(self):
        found = averaged()
        held = found.average
        losses = np.array([found.curve.rows(float(beta))[0] for beta in held.betas])
        own = -np.log(held.weights @ np.exp(-losses))
        bayes = found.curve.rows(1.0)[0]
        assert found.risk == pytest.approx(own.mean())
        assert found.gain == pytest.approx((bayes - own).mean())
        used = LINEAR.parameters_used(found.data, np.array([max(found.beta, 1.0)]))[0]
        inflation = (1 - used / N) ** -1.5
        assert found.standard_error == pytest.approx(inflation * stats.sem(own))
        assert found.gain_standard_error == pytest.approx(inflation * stats.sem(bayes - own))
        np.testing.assert_allclose(found.losses(found.curve), own)

    @pytest.mark.parametrize("bounds", [(0.0, 3.0), (0.2, 0.4), (2.0, 5.0), (0.0, 0.01)])
    def test_bounds_are_kept(self, bounds):
        found = averaged(bounds=bounds)
        assert bounds[0] <= found.average.betas[0] <= found.beta <= bounds[1] * (1 + 1e-12)
        assert found.average.betas[-1] <= bounds[1] * (1 + 1e-12)
        assert not found.at_bound

    def test_says_that_it_is_an_average(self):
        lines = repr(averaged()).splitlines()
        assert lines[2].endswith("(95 % of the weights)")
        assert "  minimum   not sought: the posterior is an average over beta" in lines

    def test_refusals(self):
        for options, message in (
            ({"risk": "gibbs"}, "Average is for forecasts: risk must be 'predictive'"),
            (
                {"risk": "predictive", "bounds": (0, 1e-5)},
                "bounds must reach beyond 0.0001 to average",
            ),
        ):
            with pytest.raises(ValueError, match=message):
                calibrate(LINEAR, X, Y, Average(), **options)
        for source in (strategies.ReferenceRisk(), strategies.Bayes(), strategies.Naive()):
            with pytest.raises(ValueError, match="source must hold rows out, as LeaveOneOut"):
                Average(source)
        with pytest.raises(ValueError, match="spread must be positive, got 0"):
            Average(spread=0)

        class Uncounted:
            posterior, loss, risk_curve = LINEAR.posterior, LINEAR.loss, LINEAR.risk_curve

        assert default_strategy(Uncounted(), "predictive") == KFold()
        with pytest.raises(ValueError, match=r"needs a model that has parameters_used\(data, beta"):
            calibrate(Uncounted(), X, Y, Average(), risk="predictive")

    def test_named_strategies_hold_what_they_are_told(self):
        assert average_for(LINEAR) == Average(LeaveOneOut())
        assert average_for(LOGISTIC) == Average(KFold(), 1.0)  # at beta = 1 it is not Bayes
        assert with_transfer(average_for(LOGISTIC), "alpha") == Average(
            KFold(transfer="alpha"), 1.0
        )
        few = Data(X[:4], Y[:4], np.ones(4))
        assert with_feasible_folds(average_for(LOGISTIC), few) == Average(KFold(4), 1.0)


class TestMixtures:
    def test_posterior_is_the_mixture_of_the_parts(self):
        found = averaged()
        held, posterior = found.average, found.posterior
        assert isinstance(posterior, MixturePosterior)
        parts = [found.posterior_at(float(beta)) for beta in held.betas]
        theta = parts[0].sample(5, seed=0)
        expected = special.logsumexp(
            [part.log_prob(theta) for part in parts], b=held.weights[:, None], axis=0
        )
        np.testing.assert_allclose(posterior.log_prob(theta), expected)
        assert posterior.log_prob(theta[0]) == pytest.approx(expected[0])
        mean = sum(w * part.mean for w, part in zip(held.weights, parts, strict=True))
        np.testing.assert_allclose(posterior.mean, mean)
        law, value = posterior.predictive(X[:3]), np.array([0.1, -2.0, 3.0])
        densities = [np.exp(part.predictive(X[:3]).log_density(value)) for part in parts]
        np.testing.assert_allclose(np.exp(law.log_density(value)), held.weights @ densities)
        draws = posterior.sample(40_000, seed=1)
        for uniform in posterior.marginals().cdf(draws).T:
            assert stats.kstest(uniform, "uniform").pvalue > 1e-3
        responses = posterior.sample_response(X[:2], 40_000, seed=1)
        for uniform in posterior.predictive(X[:2]).cdf(responses).T:
            assert stats.kstest(uniform, "uniform").pvalue > 1e-3

    def test_hierarchical_posterior_is_the_mixture_but_for_parts_of_little_weight(self):
        found = averaged(models.HierarchicalLinear())
        held, posterior = found.average, found.posterior
        parts = [found.posterior_at(float(beta)) for beta in held.betas]
        theta = posterior.sample(5, seed=0)
        expected = special.logsumexp(
            [part.log_prob(theta) for part in parts], b=held.weights[:, None], axis=0
        )
        np.testing.assert_allclose(posterior.log_prob(theta), expected, atol=0.01)

    def test_probabilities_of_classes_are_averages(self):
        found = averaged(LOGISTIC, LABELS)
        held = found.average
        parts = [found.posterior_at(float(beta)).predict(X) for beta in held.betas]
        np.testing.assert_allclose(found.posterior.predict(X), held.weights @ parts)
        both = np.exp(found.posterior.log_predict(X))
        np.testing.assert_allclose(both, [1 - held.weights @ parts, held.weights @ parts])

    def test_quantiles_solve_the_distribution_function(self):
        rng = np.random.default_rng(0)
        weights = rng.dirichlet(np.ones(4))
        location, scale = 3 * rng.standard_normal((4, 6)), rng.uniform(0.01, 2.0, (4, 6))
        law = StudentMixture(weights, location, scale, np.array([1.5, 4.0, 30.0, np.inf]))
        levels = np.array([1e-6, 0.025, 0.3, 0.5, 0.975, 1 - 1e-6])
        found = law.quantile(levels)
        assert found.shape == (6, 6) and law.quantile(0.3).shape == (6,)
        np.testing.assert_allclose(law.quantile(0.3), found[2], rtol=1e-8)
        for j in range(6):
            part = StudentMixture(weights, location[:, j : j + 1], scale[:, j : j + 1], law.dof)
            for i, q in enumerate(levels):
                root = optimize.brentq(
                    lambda y, part=part, q=q: part.cdf(y)[0] - q, -1e5, 1e5, xtol=1e-10
                )
                assert found[i, j] == pytest.approx(root, rel=1e-6, abs=1e-7)
        kinds = rng.choice(4, 100_000, p=weights)
        standard = np.where(kinds == 3, rng.standard_normal(100_000), 0.0)
        for k, dof in enumerate(law.dof[:3]):
            standard = np.where(kinds == k, rng.standard_t(dof, 100_000), standard)
        draws = location[kinds, 0] + scale[kinds, 0] * standard
        for i, q in enumerate(levels[1:-1], start=1):
            error = np.sqrt(q * (1 - q) / 100_000)
            assert abs(np.mean(draws <= found[i, 0]) - q) < 4 * error
        assert np.isinf(law.std).all()  # of 1.5 degrees of freedom
        law = replace(law, dof=np.array([5.0, 4.5, 30.0, np.inf]))
        second = weights @ (np.array([part.std for part in law._laws]) ** 2 + location**2)
        np.testing.assert_allclose(law.std**2, second - law.mean**2)

    def test_quantiles_far_out_take_few_steps(self, monkeypatch):
        calls, cdf = [], StudentT.cdf
        monkeypatch.setattr(StudentT, "cdf", lambda *args: calls.append(1) or cdf(*args))
        scale = np.array([[1.0, 3.0], [2.0, 1.0]])
        law = StudentMixture(np.full(2, 0.5), 0 * scale, scale, np.full(2, 0.2))
        found = law.quantile([0.025, 0.5, 0.975])
        assert found[2].min() > 1e4 and len(calls) <= 2 * 15
        np.testing.assert_allclose(law.cdf(found[2]), 0.975, rtol=1e-12)

    @pytest.mark.parametrize("parts", [1, 3])
    def test_shapes_of_intervals(self, parts):
        law = StudentT(np.zeros(5), np.ones(5), 4.0)
        if parts > 1:
            law = StudentMixture(
                np.full(3, 1 / 3), np.zeros((3, 5)), np.ones((3, 5)), np.full(3, 4.0)
            )
        assert law.interval().shape == (5, 2)
        assert law.interval([0.5, 0.9]).shape == (2, 5, 2)
        assert law.quantile(0.1).shape == (5,) and law.quantile([0.1, 0.5, 0.9]).shape == (3, 5)
        np.testing.assert_allclose(law.interval(0.8)[:, 1], stats.t(4).ppf(0.9), rtol=1e-8)
        np.testing.assert_allclose(law.interval([0.5, 0.8])[1], law.interval(0.8), rtol=1e-8)
        for bad in (0.0, 1.0, [0.5, 1.5], np.nan):
            with pytest.raises(ValueError, match="q must lie between 0 and 1"):
                law.quantile(bad)


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
            assert isinstance(source, Average)
            assert source.spread == strategies.default_strategy(found.model, "predictive").spread
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
        losses, share = calibration.errors._rows
        naive = mean_and_error(losses, share, np.ones(3 * N))[1]
        grouped = calibration.standard_error / calibration.errors.inflation
        means = losses.reshape(3, N).mean(axis=0)
        np.testing.assert_allclose(grouped, means.std(ddof=1) / np.sqrt(N), rtol=1e-10)
        assert grouped > 1.6 * naive

    def test_parts_of_time_give_the_average_its_pairs(self):
        strategy = Average(FromSplitter(TimeSeriesSplit(4)))
        found = GibbsRegressor(strategy=strategy).fit(X[:, 1:], Y).calibration_
        _, share = found.curve.rows(1.0)
        assert np.all((share > 0) == (np.arange(N) >= N // 5))

    def test_groups_of_any_kind_give_the_same(self):
        numbers = np.arange(N) // 5
        words = np.array([f"ward {k}" for k in numbers], dtype=object)
        one, other = (
            GibbsRegressor().fit(X[:, 1:], Y, groups=groups).calibration_
            for groups in (numbers, words)
        )
        assert one.risk == other.risk
        apart = GibbsRegressor(strategy="k-fold").fit(X[:, 1:], Y, groups=numbers).calibration_
        assert apart.average is None and apart.strategy.transfer == "beta"
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
                "groups are for the strategies 'average', 'k-fold', 'coverage', 'sandwich', "
                "'fisher-information' and 'fitted-coverage'; give others a splitter by "
                "strategies.FromSplitter(splitter, groups=...), got strategy 'bootstrap'",
            ),
            (
                np.arange(N),
                {"strategy": "average", "target": "draws"},
                "Average is for forecasts: risk must be 'predictive' and optimiser "
                "'deterministic', got 'gibbs' and 'deterministic'",
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


class TestRange:
    @pytest.mark.parametrize(("risk", "n", "d"), [("gibbs", 40, 20), ("predictive", 300, 40)])
    def test_ends_are_where_the_difference_is_two_standard_errors(self, risk, n, d):
        rng = np.random.default_rng(1)
        inputs = rng.standard_normal((n, d))
        y = inputs[:, 0] + 3 * rng.standard_normal(n)
        found = calibrate(models.GaussianLinear(1.0), inputs, y, "k-fold", risk=risk)
        low, high = found.beta_range
        assert low < found.beta < high

        def errors_away(beta):
            difference = found.curve.rows(beta)[0] - found.curve.rows(found.beta)[0]
            mean, error = mean_and_error(difference, np.ones(n), np.ones(n))
            return mean / (error * found.errors.inflation)

        ends = [end for end in (low, high) if end not in found.bounds]
        assert ends
        for end in ends:
            assert errors_away(end) == pytest.approx(2.0, abs=0.01)
        for inside in np.geomspace(max(low, 1e-6), high, 9)[1:-1]:
            assert errors_away(inside) < 2

    def test_of_what_was_not_sought(self):
        bayes = calibrate(LINEAR, X, Y, "bayes")
        assert bayes.beta_range == (1.0, 1.0) and "range" not in repr(bayes)
        with pytest.warns(UserWarning, match="does not depend on beta"):
            flat = calibrate(models.GaussianLinear(), np.zeros((9, 1)), np.arange(9.0), KFold(3))
        assert flat.beta_range == (0.0, 3.0)

    def test_holds_the_choice_at_a_bound(self):
        found = calibrate(LINEAR, X, Y, "naive")
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
        other = replace(found, risk=found.bayes_risk - gain, errors=KnownErrors(error, error))
        assert other.versus_bayes == told


def test_parameters_used_are_those_of_the_posterior():
    """d - tr(S_0^-1 S), for the average over scales the mean over their weights."""
    data = gaussian_data()
    for model in (models.GaussianLinear(2.0), models.NormalInverseGammaLinear()):
        unit = getattr(model, "noise_variance", 1.0)
        for beta in (0.1, 1.0):
            precision = np.eye(3) + beta * (data.X.T * data.weights) @ data.X / unit
            expected = 3 - np.trace(np.linalg.inv(precision))
            found = model.parameters_used(data, np.array([beta]))
            assert found == pytest.approx([expected])
    labels = binary_data()
    posterior = LOGISTIC.posterior(labels.X, labels.y, labels.size, labels.weights)
    found = LOGISTIC.parameters_used(labels, np.ones(1))
    assert found == pytest.approx([3 - np.trace(posterior.cov)])
    design = np.column_stack([np.ones(14), data.X])
    one = models.HierarchicalLinear(1.0, scales=[0.5])
    centred = data.X - np.average(data.X, axis=0, weights=data.weights)
    products = (centred.T * data.weights) @ centred
    expected = 1 + 3 - np.trace(np.linalg.inv(np.eye(3) + 0.25 * products))
    found = one.parameters_used(Data(design, data.y, data.weights), np.ones(1))
    assert found == pytest.approx([expected])
