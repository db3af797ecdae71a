"""Calibration from recorded draws: weights, range, slopes, ArviZ objects."""

import numpy as np
import pytest
from scipy import stats

from temperance import Calibration, calibrate, calibrate_from_draws, models
from temperance.messages import BoundWarning, FlatCurveWarning, ParetoWarning
from temperance.models.sampled.arviz_tree import arviz_tree, as_arviz, groups_of
from temperance.models.sampled.draws import Draws
from temperance.models.sampled.pareto import reliable_k, smooth, tail_length
from temperance.models.sampled.recorded import LEAST_EFFECTIVE, RecordedDraws
from temperance.models.sampled.reliability import relative_efficiency
from temperance.models.sampled.reweighted_curve import ReweightedCurve
from tests.fuzz.draws import run

RISKS = ("gibbs", "predictive")
MODEL = models.GaussianLinear(1.0, 0.3, 0.8)
quiet = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")


def linear_data(n=60, d=3, noise=1.0, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + noise * rng.standard_normal(n)


def log_likelihood(X, y, beta=1.0, size=2000, seed=1):
    """Log likelihood (4, size / 4, n) of exact draws."""
    theta = MODEL.posterior(X, y, beta * len(y)).sample(size, seed)
    return -MODEL.loss(theta, X, y).reshape(4, -1, len(y))


@pytest.fixture(scope="module")
def data():
    return linear_data()


@pytest.fixture(scope="module")
def drawn(data):
    return log_likelihood(*data)


class TestSmoothing:
    def test_agrees_with_arviz(self):
        array_stats = pytest.importorskip("arviz_stats.base").array_stats
        rng = np.random.default_rng(0)
        for draws in (200, 1000, 4000):
            log_weights = rng.standard_normal((30, draws)) * np.linspace(0.1, 4, 30)[:, None]
            ours = smooth(log_weights)
            theirs, k = array_stats.psislw(-log_weights)
            np.testing.assert_allclose(ours.k, k, atol=1e-12)
            np.testing.assert_allclose(ours.log_weights, theirs, atol=1e-10)

    def test_a_block_at_a_time_is_the_same(self, monkeypatch):
        log_weights = np.random.default_rng(1).standard_normal((40, 500))
        whole = smooth(log_weights)
        monkeypatch.setattr(
            "temperance.models.sampled.pareto.batches", lambda n, _: [slice(0, 7), slice(7, n)]
        )
        parts = smooth(log_weights)
        np.testing.assert_array_equal(whole.log_weights, parts.log_weights)
        np.testing.assert_array_equal(whole.k, parts.k)

    def test_equal_weights_have_no_tail(self):
        found = smooth(np.zeros((1, 100)))
        np.testing.assert_allclose(np.exp(found.log_weights), 0.01)
        assert found.k[0] == -np.inf

    def test_ties_have_no_k(self):
        log_weights = np.repeat(np.log([1.0, 2.0, 3.0]), [380, 15, 5])[None]
        found = smooth(log_weights)
        assert np.isnan(found.k[0])
        np.testing.assert_allclose(np.exp(found.log_weights[0, -1]), 3 / 425)

    def test_few_draws(self):
        """Too few to have a tail: as they are, and not to be trusted."""
        log_weights = np.random.default_rng(0).standard_normal((1, 24))
        found = smooth(log_weights)
        weights = np.exp(log_weights)
        np.testing.assert_allclose(np.exp(found.log_weights), weights / weights.sum())
        assert found.k[0] == np.inf

    def test_limits(self):
        assert reliable_k(10_000) == 0.7
        assert reliable_k(100) == pytest.approx(0.5)
        assert tail_length(225) == 45
        assert tail_length(4000, 0.25) == 379

    def test_efficiency_of_an_autoregression(self):
        rng, phi = np.random.default_rng(2), 0.8
        chains = rng.standard_normal((4, 5000))
        for t in range(1, 5000):
            chains[:, t] += phi * chains[:, t - 1]
        assert relative_efficiency(chains) == pytest.approx((1 - phi) / (1 + phi), rel=0.15)
        assert relative_efficiency(rng.standard_normal((4, 5000))) == pytest.approx(1, abs=0.1)
        assert relative_efficiency(np.ones((2, 50))) == 1.0
        apart = rng.standard_normal((2, 500)) + np.array([[0.0], [5.0]])
        assert relative_efficiency(apart) < 0.02


class TestWeights:
    def test_formula(self, drawn):
        """Unsmoothed, the estimate is the one written in the docstring."""
        recorded = RecordedDraws(-drawn, 0.8)
        beta, i = 1.1, 5
        losses = -drawn.reshape(-1, drawn.shape[2])
        log_weights = -(beta - 0.8) * losses.sum(axis=1) + beta * losses[:, i]
        smoothed = smooth(log_weights[None], recorded.efficiency)
        weights = np.exp(smoothed.log_weights[0])
        gibbs = recorded.leave_one_out(beta, "gibbs")
        assert gibbs.loss[i] == pytest.approx(weights @ losses[:, i], rel=1e-12)
        assert gibbs.k[i] == pytest.approx(smoothed.k[0])
        predictive = recorded.leave_one_out(beta, "predictive")
        assert predictive.loss[i] == pytest.approx(-np.log(weights @ np.exp(-losses[:, i])))

    def test_reweighted_moments(self, data):
        """The posterior at another beta, from draws at Bayes."""
        X, y = data
        theta = MODEL.posterior(X, y, len(y)).sample(20_000, 5)
        recorded = RecordedDraws(MODEL.loss(theta, X, y)[None])
        found, exact = recorded.at(0.6), MODEL.posterior(X, y, 0.6 * len(y))
        weights = found.weights.ravel()
        mean = weights @ theta
        error = np.sqrt(weights**2 @ (theta - mean) ** 2)
        assert np.all(np.abs(mean - exact.mean) < 4 * error)
        bayes = MODEL.posterior(X, y, len(y))
        assert np.any(np.abs(weights @ (theta - mean) ** 2 - bayes.std**2) > 0.2 * bayes.std**2)
        np.testing.assert_allclose(weights @ (theta - mean) ** 2, exact.std**2, rtol=0.1)

    def test_resampling_keeps_the_weights(self, drawn):
        found = RecordedDraws(-drawn).at(0.7)
        numbers = found.sample(found.weights.size, seed=0)[:, 0]
        counts = np.bincount(numbers, minlength=found.weights.size)
        assert np.abs(counts - found.weights.ravel() * found.weights.size).max() < 1
        np.testing.assert_array_equal(numbers, found.sample(found.weights.size, seed=0)[:, 0])
        np.testing.assert_allclose(
            found.log_prob(numbers[:, None]), np.log(found.weights.ravel()[numbers])
        )


@quiet
@pytest.mark.parametrize("risk", RISKS)
class TestAgainstTheClosedForm:
    def test_curve(self, data, drawn, risk):
        found = calibrate_from_draws(drawn, risk=risk)
        exact = calibrate(MODEL, *data, "leave-one-out", risk=risk)
        known = found.reliability
        assert 0.6 < found.supported[0] < 0.8
        assert found.supported[1] == 3.0
        error = np.abs(found.curve(known.beta) - exact.curve(known.beta))
        assert np.all(error < 4 * known.monte_carlo_error)

    def test_negative_control(self, data, drawn, risk):
        """The risk of rows that were not left out is another."""
        found = calibrate_from_draws(drawn, risk=risk)
        naive = calibrate(MODEL, *data, "naive", risk=risk)
        known = found.reliability
        error = np.abs(found.curve(known.beta) - naive.curve(known.beta))
        assert np.any(error > 4 * known.monte_carlo_error)

    def test_draws_at_another_beta(self, data, risk):
        drawn = log_likelihood(*data, beta=0.2)
        found = calibrate_from_draws(drawn, 0.2, risk=risk, bounds=(0.1, 3.0))
        exact = calibrate(MODEL, *data, "leave-one-out", risk=risk)
        known = found.reliability
        assert found.supported[0] < 0.15 < 0.3 < found.supported[1] <= 3.0
        error = np.abs(found.curve(known.beta) - exact.curve(known.beta))
        assert np.all(error < 4 * known.monte_carlo_error)
        wrong = calibrate_from_draws(drawn, 0.3, risk=risk)
        assert np.abs(wrong.curve(0.3) - exact.curve(0.3)) > 4 * known.monte_carlo_error.max()

    def test_monte_carlo_error_is_the_scatter_over_seeds(self, data, risk):
        values, errors = [], []
        for seed in range(40):
            recorded = RecordedDraws(-log_likelihood(*data, size=1000, seed=seed))
            at = recorded.leave_one_out(0.8, risk)
            values.append(at.loss.mean())
            errors.append(at.error)
        # The spread of a standard deviation from 40 values is 11 %.
        assert np.std(values) == pytest.approx(np.mean(errors), rel=0.45)

    def test_curve_knows_its_error(self, drawn, risk):
        found = calibrate_from_draws(drawn, risk=risk)
        known = found.reliability
        np.testing.assert_allclose(found.table.error(known.beta), known.monte_carlo_error)
        beyond = found.model.leave_one_out(0.3, risk).error
        np.testing.assert_allclose(found.table.error(np.array([0.3])), beyond)
        assert found.table.error(np.array([found.beta]))[0] == pytest.approx(
            found.monte_carlo_error, rel=0.05
        )

    def test_slope_is_that_of_the_curve(self, drawn, risk):
        curve = calibrate_from_draws(drawn, risk=risk).table
        betas, step = np.array([0.75, 0.9, 1.3, 2.2]), 1e-5
        _, slope = curve(betas, derivative=True)
        np.testing.assert_allclose(
            slope, (curve(betas + step) - curve(betas - step)) / (2 * step), rtol=1e-4, atol=1e-8
        )

    def test_slope_is_near_the_exact_one(self, data, drawn, risk):
        _, slope = calibrate_from_draws(drawn, risk=risk).curve(1.0, derivative=True)
        _, exact = calibrate(MODEL, *data, "leave-one-out", risk=risk).curve(1.0, derivative=True)
        assert slope == pytest.approx(exact, abs=0.02)

    def test_spline_keeps_to_the_estimates(self, drawn, risk):
        """Between the nodes it is off by less than the Monte Carlo error."""
        found = calibrate_from_draws(drawn, risk=risk)
        nodes = found.reliability.beta
        between = 0.5 * (nodes[1:] + nodes[:-1])[::4]
        direct = [found.model.leave_one_out(float(beta), risk) for beta in between]
        gap = np.abs(found.curve(between) - [each.loss.mean() for each in direct])
        assert np.all(gap < 0.2 * np.array([each.error for each in direct]))


@quiet
class TestResult:
    def test_looks_like_a_calibration(self, data, drawn):
        found = calibrate_from_draws(drawn, risk="predictive")
        assert isinstance(found, Calibration)
        assert found.alpha == pytest.approx(found.beta * len(data[1]))
        assert found.gain == pytest.approx(found.bayes_risk - found.risk)
        assert found.risk == pytest.approx(found.curve(found.beta))
        assert found.bayes_risk == pytest.approx(found.curve(1.0))
        lines = repr(found).splitlines()
        assert lines[0].startswith("Calibration of RecordedDraws by LeaveOneOut(")
        words = [line.split()[0] for line in lines[1:]]
        assert words == "gain beta range risk minimum method draws Pareto".split()
        assert "2000 recorded draws" in lines[6]
        assert lines[7].startswith("  draws     2000 at beta = 1, worth")
        assert lines[8].startswith("  Pareto k  at most")
        assert found.pareto_k.shape == (60,)

    def test_plot(self, drawn):
        pytest.importorskip("matplotlib").use("Agg")
        axes = calibrate_from_draws(drawn, risk="predictive").plot()
        assert axes.get_title(loc="left") == "RecordedDraws, LeaveOneOut"

    def test_two_dimensions(self, drawn):
        flat = calibrate_from_draws(drawn.reshape(-1, drawn.shape[2]), risk="gibbs")
        assert flat.model.shape == (1, 2000)
        assert flat.posterior.weights.shape == (1, 2000)

    def test_posterior(self, drawn):
        found = calibrate_from_draws(drawn, risk="predictive")
        assert found.posterior.beta == found.beta
        assert found.posterior.weights.sum() == pytest.approx(1)
        np.testing.assert_allclose(found.posterior_at(1.0).weights, 1 / 2000)
        with pytest.raises(ValueError, match="came as an ArviZ object"):
            found.posterior.to_arviz()
        with pytest.raises(ValueError, match="cannot predict"):
            found.posterior.predict(None)

    def test_as_a_model_its_parameters_are_numbers(self, drawn):
        recorded = RecordedDraws(-drawn)
        numbers = np.array([[0], [1500]])
        np.testing.assert_array_equal(
            recorded.loss(numbers, None, None), -drawn.reshape(2000, -1)[[0, 1500]]
        )
        assert recorded.posterior(None, None, 30.0).beta == 0.5


class TestSupport:
    def test_range_ends_where_weights_do(self, drawn):
        recorded = RecordedDraws(-drawn)
        lower, upper = ReweightedCurve(recorded, (0.0, 1e6), "gibbs").supported
        assert recorded.supports(lower)
        assert not recorded.supports(0.98 * lower)
        assert recorded.leave_one_out(upper, "gibbs").effective_size.min() >= LEAST_EFFECTIVE
        beyond = recorded.leave_one_out(1.05 * upper, "gibbs")
        assert recorded.unreliable(beyond).any() or not recorded.supports(1.05 * upper)

    def test_hill_estimate_ends_it_below(self):
        """The total of d Gaussian coefficients has an exponential tail: k is (1 - beta) m."""
        total = np.random.default_rng(0).gamma(1.5, 1.0, 4000)
        recorded = RecordedDraws(np.stack([total, np.zeros(4000)], axis=1)[None])
        largest = np.sort(recorded.total)[-tail_length(4000, recorded.efficiency) - 1 :]
        tail = (largest[1:] - largest[0]).mean()
        assert recorded.tail == pytest.approx(tail, rel=1e-12)
        edge = 1 - recorded.unit * 0.35 / tail
        assert recorded.supports(edge + 1e-6)
        assert not recorded.supports(edge - 1e-6)
        assert edge == pytest.approx(1 - 0.35, abs=0.1)

    def test_effective_size_ends_it_too(self):
        """Far above, weights have no tail and yet few draws count."""
        recorded = RecordedDraws(-log_likelihood(*linear_data(n=100, d=5), size=1000))
        upper = ReweightedCurve(recorded, (0.0, 30.0), "gibbs").supported[1]
        assert upper < 30
        assert recorded.at(upper).pareto_k < 0.3
        rows = recorded.leave_one_out(upper, "gibbs").effective_size
        assert min(recorded.at(upper).effective_size, rows.min()) >= LEAST_EFFECTIVE
        assert recorded.leave_one_out(1.1 * upper, "gibbs").effective_size.min() < LEAST_EFFECTIVE

    @quiet
    @pytest.mark.parametrize("factor", [3.0, 1e3, 1e9])
    @pytest.mark.parametrize("risk", RISKS)
    def test_it_is_a_property_of_the_draws(self, risk, factor):
        """Wider bounds leave it as it is, and the choice within it."""
        drawn = log_likelihood(*linear_data(n=20), size=400)
        found = calibrate_from_draws(drawn, bounds=(0.0, 100.0), risk=risk)
        assert 0 < found.supported[0] < 1 < found.supported[1] < 100
        wider = calibrate_from_draws(drawn, bounds=(0.0, 100.0 * factor), risk=risk)
        assert wider.supported == found.supported
        assert wider.beta == found.beta

    @quiet
    def test_bounds_only_clip_it(self):
        drawn = log_likelihood(*linear_data(n=20), size=400)
        whole = calibrate_from_draws(drawn, bounds=(0.0, 100.0), risk="gibbs")
        part = calibrate_from_draws(drawn, bounds=(0.95, 1.7), risk="gibbs")
        assert part.supported == (0.95, 1.7)
        betas = np.linspace(0.95, 1.7, 9)
        np.testing.assert_allclose(part.curve(betas), whole.curve(betas), rtol=1e-3)

    @quiet
    @pytest.mark.parametrize("factor", [1e-90, 1e-12, 1e-3, 7.0, 1e12, 1e90])
    def test_units(self, factor):
        """Losses times c and betas over c are the same problem."""
        drawn = log_likelihood(*linear_data(n=20), size=400)
        found = calibrate_from_draws(drawn, bounds=(0.0, 100.0), risk="gibbs")
        other = calibrate_from_draws(
            factor * drawn, 1 / factor, bounds=(0.0, 100.0 / factor), risk="gibbs"
        )
        np.testing.assert_allclose(
            np.array([*other.supported, other.beta]) * factor,
            [*found.supported, found.beta],
            rtol=1e-9,
        )
        assert other.risk == pytest.approx(found.risk * factor, rel=1e-9)
        assert other.monte_carlo_error == pytest.approx(found.monte_carlo_error * factor, rel=1e-6)
        assert other.model.unit * factor == pytest.approx(found.model.unit)

    @quiet
    def test_search_keeps_to_it(self, drawn):
        found = calibrate_from_draws(drawn, risk="predictive")
        known = found.reliability
        assert known.beta[0] == found.bounds[0] == found.supported[0]
        assert np.all(known.tempering_k[np.isfinite(known.tempering_k)] <= found.model.reliable_k)
        assert np.all(known.effective_size >= LEAST_EFFECTIVE)
        assert found.bounds[0] <= found.beta <= found.bounds[1]

    @pytest.mark.filterwarnings("ignore::temperance.messages.ParetoWarning")
    def test_minimum_where_it_ends(self):
        """A model far too sure of itself would want a smaller beta than the draws reach."""
        drawn = log_likelihood(*linear_data(noise=1.6, seed=5))
        with pytest.warns(BoundWarning, match=r"where the support of the draws.*ends"):
            found = calibrate_from_draws(drawn, risk="predictive")
        assert found.limited
        assert found.beta == found.supported[0]
        assert "at the lower end of what the draws support" in repr(found)

    @quiet
    def test_beyond_it_is_a_warning(self, drawn):
        found = calibrate_from_draws(drawn, risk="gibbs")
        with pytest.warns(ParetoWarning, match="lies beyond"):
            value, slope = found.curve(0.05, derivative=True)
        direct = found.model.leave_one_out(0.05, "gibbs").loss.mean()
        assert value == pytest.approx(direct)
        assert np.isfinite(slope)
        with pytest.warns(ParetoWarning, match="lies beyond"):
            found.posterior_at(0.05)
        with pytest.warns(ParetoWarning, match="lies beyond"):
            found.table.at(np.array([0.05]))

    @pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
    def test_influential_rows_are_a_warning(self):
        X, y = linear_data()
        X[0], y[0] = 8.0, 40.0
        with pytest.warns(ParetoWarning, match=r"in \d+ of 60 rows \(row 0: "):
            found = calibrate_from_draws(log_likelihood(X, y), risk="gibbs")
        assert np.argmax(found.pareto_k) == 0
        assert found.pareto_k[0] > found.model.reliable_k


class TestErrors:
    """Monte Carlo errors are honest up to where the support ends."""

    @quiet
    @pytest.mark.parametrize("risk", RISKS)
    @pytest.mark.slow
    def test_scores(self, risk):
        """Root mean square of z over sets of draws; without the tails' share it would be 3."""
        X, y = linear_data(n=25, d=2, seed=101)
        exact = calibrate(MODEL, X, y, "leave-one-out", risk=risk, bounds=(0, 100)).curve
        scores = []
        for seed in range(40):
            recorded = RecordedDraws(-log_likelihood(X, y, 0.5, 800, seed), 0.5)
            curve = ReweightedCurve(recorded, (0.0, 1e6), risk)
            lower, upper = curve.supported
            assert lower < 0.48
            assert upper > 3
            betas = np.array([lower, 0.5 * (lower + 0.5), 0.5, np.sqrt(0.5 * upper), upper])
            scores.append((curve.evaluate(betas)[0] - exact(betas)) / curve.error(betas))
        rms = np.sqrt(np.square(scores).mean(axis=0))
        # The spread of a root mean square of 40 is 11 % for normal scores, more for heavier tails.
        assert np.all((rms > 0.65) & (rms < 1.75)), rms

    def test_formula(self):
        """The long-run variance of the influence, and the share beyond the draws."""
        drawn = log_likelihood(*linear_data(n=12, d=1), size=1000)
        recorded = RecordedDraws(-drawn)
        losses, beta = -drawn.reshape(1000, 12).T, 0.8
        smoothed = smooth(0.2 * losses.sum(axis=0) + beta * losses, recorded.efficiency)
        weights, found = np.exp(smoothed.log_weights), recorded.leave_one_out(beta, "gibbs")
        influence = (weights * (losses - found.loss[:, None])).mean(axis=0)
        variance = influence @ influence / relative_efficiency(influence.reshape(4, 250))
        nearest = np.argsort(weights, axis=1)[:, -5:]
        largest = np.take_along_axis(losses, nearest, axis=1).max(axis=1)
        missing = smoothed.beyond * np.maximum(largest - found.loss, 0)
        assert missing.mean() > 0
        assert found.error == pytest.approx(np.hypot(variance**0.5, missing.mean()), rel=1e-9)

    def test_share_beyond_the_draws(self):
        """Of a Pareto law with shape k about S^(k - 1) lies beyond the largest of S draws."""
        rng, k, draws = np.random.default_rng(1), 0.5, 4000
        weights = (1 - rng.random((200, draws))) ** -k
        beyond = smooth(np.log(weights)).beyond
        assert np.median(beyond) == pytest.approx(0.5 * draws ** (k - 1), rel=0.4)
        assert smooth(np.zeros((1, 100))).beyond[0] == 0
        assert smooth(np.log(weights) * 4).beyond.min() == 1

    @quiet
    def test_infinite_where_nothing_is_known(self):
        X, y = linear_data()
        X[0], y[0] = 8.0, 40.0
        found = calibrate_from_draws(log_likelihood(X, y), risk="gibbs")
        assert found.monte_carlo_error == np.inf
        assert "they add inf to the error" in repr(found)

    @quiet
    def test_autocorrelation_is_that_of_the_losses(self):
        """Means of coefficients move slower than the total loss."""
        X, y = linear_data(n=30, d=2)
        exact = calibrate(MODEL, X, y, "leave-one-out", bounds=(0, 10), risk="gibbs").curve(3.0)
        posterior, scores = MODEL.posterior(X, y, len(y)), []
        for seed in range(40):
            theta = posterior.sample(2000, seed).reshape(4, 500, 2) - posterior.mean
            for t in range(1, 500):
                theta[:, t] = 0.8 * theta[:, t - 1] + 0.6 * theta[:, t]
            losses = MODEL.loss((theta + posterior.mean).reshape(2000, 2), X, y)
            at = RecordedDraws(losses.reshape(4, 500, 30)).leave_one_out(3.0, "gibbs")
            scores.append((at.loss.mean() - exact) / at.error)
        assert np.sqrt(np.mean(np.square(scores))) == pytest.approx(1, abs=0.35)


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda x: x[0, 0], r"shape \(chains, draws, n\) or \(draws, n\), got \(60,\)"),
            (lambda x: x[..., :1], "at least 2 rows"),
            (lambda x: x[:, :20], "draws worth 100 independent ones, got"),
            (
                lambda x: np.where(np.arange(x.size).reshape(x.shape) == x[0].size, np.nan, x),
                "log_likelihood must be finite, got nan in chain 1, draw 0, row 0",
            ),
            (lambda x: np.where(x == x.min(), -np.inf, x), "log_likelihood must be finite"),
            (lambda x: "draws", "log_likelihood must hold real numbers"),
        ],
    )
    def test_log_likelihood(self, drawn, change, message):
        with pytest.raises(ValueError, match=message):
            calibrate_from_draws(change(drawn))

    def test_other_arguments(self, drawn):
        for arguments, message in (
            ({"beta_of_draws": -1.0}, "beta_of_draws must be non-negative"),
            ({"risk": "loss"}, "risk must be one of"),
            ({"bounds": (2, 1)}, "bounds must satisfy"),
            ({"bounds": (0.0, 0.05)}, "bounds must overlap the range that the draws support"),
            ({"variable": "y"}, "variable is for ArviZ objects"),
        ):
            with pytest.raises(ValueError, match=message):
                calibrate_from_draws(drawn, **arguments)

    def test_other_plans(self, data, drawn):
        with pytest.raises(ValueError, match="plan must be that of LeaveOneOut"):
            calibrate(RecordedDraws(-drawn), *data, "naive")


class TestSample:
    """Draws move to the choice by a function of the user's."""

    @quiet
    @pytest.mark.slow
    def test_moves_to_the_minimum(self):
        X, y = linear_data(noise=2.0)
        seen = []

        def sample(beta):
            seen.append(beta)
            return log_likelihood(X, y, beta)

        found = calibrate_from_draws(sample=sample, risk="predictive")
        exact = calibrate(MODEL, X, y, "leave-one-out", risk="predictive")
        assert not found.limited
        assert found.beta == pytest.approx(exact.beta, rel=0.2)
        assert found.model.beta_of_draws == seen[-1]
        assert seen[0] == 1.0 and len(seen) > 2
        again = calibrate_from_draws(log_likelihood(X, y), sample=sample, risk="predictive")
        assert again.beta == found.beta

    def test_refusals(self, drawn):
        with pytest.raises(ValueError, match="log_likelihood must be given, or sample"):
            calibrate_from_draws()
        with pytest.raises(ValueError, match="sample must be left out beside strategy"):
            calibrate_from_draws(drawn, sample=len, strategy="sandwich")

    def test_losses_are_refused(self, drawn):
        with pytest.raises(ValueError, match="they look like losses, give minus these"):
            calibrate_from_draws(-drawn)


class TestHostile:
    @pytest.mark.parametrize("part", range(4))
    @pytest.mark.slow
    def test_fuzz(self, part):
        failures = [run(seed) for seed in range(25 * part, 25 * part + 25)]
        assert [failure for failure in failures if failure] == []

    @quiet
    def test_one_draw_a_chain(self):
        drawn = log_likelihood(*linear_data(n=12), size=400).reshape(400, 1, 12)
        found = calibrate_from_draws(drawn, risk="gibbs")
        assert found.model.efficiency == 1
        assert found.supported[0] < 1 < found.supported[1]

    def test_identical_draws(self):
        with pytest.warns(FlatCurveWarning):
            found = calibrate_from_draws(np.full((4, 50, 3), -0.1), bounds=(0.0, 3.0), risk="gibbs")
        assert found.beta == 1
        assert found.monte_carlo_error == 0
        assert found.supported == (0.0, 3.0)

    @quiet
    def test_prior_draws(self):
        drawn = log_likelihood(*linear_data(n=5, d=1), 0.0, 2000)
        found = calibrate_from_draws(drawn, 0.0, risk="gibbs")
        assert found.supported[0] == 0
        assert found.supported[1] > 0

    @quiet
    @pytest.mark.parametrize("risk", RISKS)
    @pytest.mark.parametrize(("size", "beta"), [(1e-300, 1.0), (1e300, 1e-300), (1e-90, 1e90)])
    def test_sizes(self, size, beta, risk):
        drawn = size * log_likelihood(*linear_data(n=12), size=400)
        found = calibrate_from_draws(drawn, beta, risk=risk, bounds=(0.0, 3 * beta))
        assert np.isfinite([found.beta, found.risk, found.standard_error]).all()

    def test_losses_far_too_large(self):
        drawn = 1e300 * log_likelihood(*linear_data(n=12), size=400)
        with pytest.raises(ValueError, match="the draws support no beta but 1: "):
            calibrate_from_draws(drawn)

    def test_sums_that_overflow(self):
        drawn = np.full((4, 50, 3), -1e308)
        with pytest.raises(ValueError, match="must have finite sums over the rows"):
            calibrate_from_draws(drawn)

    def test_weights_of_rows(self, data, drawn):
        weights = np.ones(60)
        weights[3] = 2
        with pytest.raises(ValueError, match="weights must be 1 for each of the 60 rows"):
            calibrate(RecordedDraws(-drawn), *data, "leave-one-out", weights=weights)


class TestArviZ:
    @pytest.fixture
    def tree(self, data, drawn):
        pytest.importorskip("arviz_base")
        X, y = data
        theta = MODEL.posterior(X, y, len(y)).sample(2000, 1).reshape(4, 500, -1)
        return arviz_tree(Draws({"theta": theta}, -drawn, 3), {"y": y}, {"beta": 1.0, "n": 60})

    def test_groups(self, data, tree):
        assert set(groups_of(tree)) == {"posterior", "log_likelihood", "observed_data"}
        assert tree.attrs["beta"] == 1.0
        assert tree.attrs["divergences"] == 3
        assert tree["posterior"].attrs["beta"] == 1.0
        assert tree["posterior"]["theta"].shape == (4, 500, 3)
        np.testing.assert_array_equal(tree["observed_data"]["y"], data[1])

    def test_arviz_reads_it(self, data, drawn, tree):
        arviz_stats = pytest.importorskip("arviz_stats")
        summary = arviz_stats.summary(tree)
        assert list(summary.index) == ["theta[0]", "theta[1]", "theta[2]"]
        loo = arviz_stats.loo(tree)
        # Ours takes the draws' efficiency from the total loss; here it is all but 1.
        ours = RecordedDraws(-drawn).leave_one_out(1.0, "predictive")
        assert loo.elpd == pytest.approx(-ours.loss.sum(), abs=0.02)

    def test_tree_is_an_array_with_names(self, drawn, tree):
        whole, array = (calibrate_from_draws(given, risk="gibbs") for given in (tree, drawn))
        assert whole.beta == array.beta
        np.testing.assert_array_equal(whole.data.y, tree["observed_data"]["y"])
        assert np.isnan(array.data.y).all()

    @quiet
    def test_resampled(self, data, tree):
        X, y = data
        found = calibrate_from_draws(tree, risk="predictive")
        posterior = found.posterior_at(0.7).to_arviz(seed=2)
        assert posterior.attrs["beta"] == 0.7
        assert posterior["posterior"].attrs["beta"] == 0.7
        theta = posterior["posterior"]["theta"].values
        assert theta.shape == (4, 500, 3)
        exact = MODEL.posterior(X, y, 0.7 * len(y))
        error = exact.std / np.sqrt(posterior.attrs["effective_size"])
        assert np.all(np.abs(theta.mean(axis=(0, 1)) - exact.mean) < 4 * error)
        at = posterior["log_likelihood"]["y"].values[1, 7]
        np.testing.assert_allclose(at, -MODEL.loss(theta[1, 7][None], X, y)[0])
        assert "observed_data" in posterior

    def test_several_variables(self, tree):
        groups = groups_of(tree)
        log_likelihood = groups["log_likelihood"].assign(z=2 * groups["log_likelihood"]["y"])
        both = as_arviz(groups | {"log_likelihood": log_likelihood}, tree.attrs)
        with pytest.raises(ValueError, match="variable must name one of y, z"):
            calibrate_from_draws(both)
        with pytest.raises(ValueError, match="variable must be one of y, z, got 'x'"):
            calibrate_from_draws(both, variable="x")
        assert calibrate_from_draws(both, variable="y", risk="gibbs").beta == 3.0

    def test_no_log_likelihood(self, tree):
        del tree["log_likelihood"]
        with pytest.raises(ValueError, match="compute_log_likelihood"):
            calibrate_from_draws(tree)

    @quiet
    def test_inference_data(self, drawn):
        """ArviZ before 1.0 has a class of its own."""
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arviz = pytest.importorskip("arviz")
            trees = int(arviz.__version__.split(".")[0]) >= 1
        if trees:
            pytest.skip("this ArviZ has trees only")
        rng = np.random.default_rng(0)
        old = arviz.from_dict(
            posterior={"theta": rng.standard_normal((4, 500))}, log_likelihood={"y": drawn}
        )
        found = calibrate_from_draws(old, risk="predictive")
        assert found.beta == calibrate_from_draws(drawn, risk="predictive").beta
        assert found.posterior.to_arviz()["posterior"]["theta"].shape == (4, 500)


@quiet
def test_discrete_likelihood():
    """A binary response: losses with few values, draws with ties."""
    rng = np.random.default_rng(0)
    y = rng.random(40) < 0.7
    p = stats.beta(1 + y.sum(), 1 + (~y).sum()).rvs((4, 1000, 1), random_state=1)
    # Each row takes one of two losses; every leave-one-out posterior is a Beta law.
    found = calibrate_from_draws(np.where(y, np.log(p), np.log1p(-p)), risk="predictive")
    chance = np.where(y, y.sum(), 40 - y.sum()) / 41
    known = found.reliability
    i = int(np.argmin(np.abs(known.beta - 1)))
    assert abs(found.curve(1.0) + np.log(chance).mean()) < 4 * known.monte_carlo_error[i]
