"""Multistate reweighting, ladders and their errors, on draws whose law is known exactly."""

from dataclasses import replace

import numpy as np
import pytest

from temperance import models, strategies
from temperance.curves import table_of
from temperance.data import Data
from temperance.messages import (
    DivergenceWarning,
    DrawsWarning,
    MixingWarning,
    OverlapWarning,
    ParetoWarning,
)
from temperance.models.sampled.curve import risk_curve_from
from temperance.models.sampled.draws import Draws
from temperance.models.sampled.ladder import Ladder, SampledLadders, next_beta
from temperance.models.sampled.leave_one_out import rows_to_refit
from temperance.models.sampled.multistate import solve
from temperance.models.sampled.reliability import (
    Reliability,
    error_of_sum,
    long_run_variance,
    rhat_limit,
    warn_of,
    warn_of_pareto,
    worst_rhat,
)
from temperance.plans import LeaveOneOut, Pairs

RISKS = ("gibbs", "predictive")
SHAPE, RATE = 4.0, 0.05  # u ~ Gamma(SHAPE, RATE + beta): exp(-beta u) times a Gamma prior
LADDER = np.array([0.0, 0.05, 0.15, 0.4, 1.0, 2.0])


def gamma_draws(seed, size=200):
    rng = np.random.default_rng(seed)
    return rng.gamma(SHAPE, 1 / (RATE + LADDER)[:, None], (len(LADDER), size))


class ConjugateSampler:
    """Draws of the Gaussian linear model's posteriors: independent, or chains of memory rho."""

    def __init__(self, data, noise_variance=2.0, chains=4, size=100, memory=0.0):
        self.data, self.noise_variance = data, noise_variance
        self.chains, self.size, self.memory = chains, size, memory
        self.calls = []

    def draw(self, exponents, seed, start=None):
        self.calls.append((np.array(exponents), start))
        X, y = self.data.X, self.data.y
        precision = np.eye(X.shape[1]) + (X.T * exponents) @ X / self.noise_variance
        mean = np.linalg.solve(precision, X.T @ (exponents * y) / self.noise_variance)
        rng = np.random.default_rng(seed)
        z = rng.standard_normal((self.chains, self.size, len(mean)))
        for t in range(1, self.size):
            z[:, t] = self.memory * z[:, t - 1] + np.sqrt(1 - self.memory**2) * z[:, t]
        theta = mean + z @ np.linalg.inv(np.linalg.cholesky(precision))
        losses = (y - theta @ X.T) ** 2 / (2 * self.noise_variance)
        losses += 0.5 * np.log(2 * np.pi * self.noise_variance)
        return Draws({"theta": theta}, losses, 0, end=len(self.calls))


def linear_data(n=12, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return Data(X, X @ rng.standard_normal(d) + 2 * rng.standard_normal(n), np.ones(n))


def curves(strategy, risk="gibbs", seed=0, data=None, most_refits=10, **options):
    """The closed form, and the curve from draws."""
    data = linear_data() if data is None else data
    plan = strategy.planned(data, np.random.default_rng(0))[1]
    exact = models.GaussianLinear(noise_variance=2.0).held_out(data, plan, risk, (0.0, 3.0))
    sampler = ConjugateSampler(data, **options)
    drawn = risk_curve_from(
        lambda pairs: SampledLadders(sampler, pairs, seed), plan, risk, most_refits
    )
    return exact, drawn


class TestMultiState:
    def test_self_consistent_equations_hold(self):
        u = gamma_draws(0)
        state = solve(LADDER, u)
        # f_k = -log sum_n exp(-b_k u_n) / sum_l N_l exp(f_l - b_l u_n), term by term
        pooled = state.energy
        naive = [
            -np.log(
                sum(
                    np.exp(-b * x)
                    / sum(200 * np.exp(f - c * x) for f, c in zip(state.free, LADDER, strict=True))
                    for x in pooled
                )
            )
            for b in LADDER
        ]
        np.testing.assert_allclose(naive, state.free, atol=1e-10)

    def test_means_are_those_of_the_family(self):
        betas = np.linspace(0, 2, 50)
        u = gamma_draws(1)
        state = solve(LADDER, u)
        weights = state.weights(betas)
        shift = u.ravel()[0] - state.energy[0]
        for beta, weight in zip(betas, weights, strict=True):
            mean = weight @ state.energy
            influence = state.influence(weight, state.energy - mean).reshape(6, 200)
            error = np.sqrt((200 * influence.var(axis=1, ddof=1)).sum())
            assert abs(mean + shift - SHAPE / (RATE + beta)) < 4 * error

    def test_one_rung_is_plain_importance_sampling(self):
        u = gamma_draws(2)[3:4]
        state = solve(LADDER[3:4], u)
        np.testing.assert_allclose(state.weights(LADDER[3:4])[0], 1 / 200)

    def test_influence_is_the_response_to_one_draw(self):
        """Move a little weight from a draw to another of its rung: the mean follows."""
        state = solve(LADDER, gamma_draws(3, size=30))
        tilted = np.exp(-np.multiply.outer(state.energy, LADDER))
        r, at = np.sin(state.energy), np.exp(-0.7 * state.energy)

        def mean_with(share):
            free = state.free
            for _ in range(3000):  # the self-consistent equations, iterated as they stand
                mixture = tilted @ (30 * np.exp(free))
                free = -np.log((share / mixture) @ tilted)
            weight = share * at / mixture
            return weight @ r / weight.sum()

        weight = state.weights(np.array([0.7]))[0]
        influence = state.influence(weight, r - weight @ r)
        for to, off in ((3, 17), (80, 61), (150, 170)):
            moved = 1e-4 * (np.eye(len(r))[to] - np.eye(len(r))[off])
            response = (mean_with(1 + moved) - mean_with(1 - moved)) / 2e-4
            assert response == pytest.approx(influence[to] - influence[off], rel=1e-4)

    def test_errors_are_honest(self):
        betas = np.array([0.0, 0.02, 0.3, 0.7, 1.5, 2.0])
        z = []
        for seed in range(100):
            u = gamma_draws(seed, size=100)
            state = solve(LADDER, u)
            shift = u.ravel()[0] - state.energy[0]
            for beta, weight in zip(betas, state.weights(betas), strict=True):
                mean = weight @ state.energy
                influence = state.influence(weight, state.energy - mean).reshape(6, 1, 100)
                error = error_of_sum(influence, replicates=False)
                z.append((mean + shift - SHAPE / (RATE + beta)) / error)
        variance = np.reshape(z, (100, len(betas))).var(axis=0)
        assert (0.7 < variance).all() and (variance < 1.4).all(), variance

    @pytest.mark.parametrize("beta", [2.01, 5.0])
    def test_nothing_is_extrapolated(self, beta):
        with pytest.raises(ValueError, match=r"beta must lie within the draws' \[0, 2\]"):
            solve(LADDER, gamma_draws(0)).weights(np.array([1.0, beta]))

    def test_below_the_lowest_rung_neither(self):
        with pytest.raises(ValueError, match="beta must lie within"):
            solve(LADDER[2:], gamma_draws(0)[2:]).weights(np.array([0.0]))

    def test_infinite_losses_weigh_nothing_but_at_zero(self):
        u = gamma_draws(0)
        u[0, :5] = np.inf
        weights = solve(LADDER, u).weights(np.array([0.0, 0.5]))
        assert (weights[0, :5] > 0).all() and (weights[1, :5] == 0).all()

    def test_betas_must_rise(self):
        with pytest.raises(ValueError, match="betas must rise"):
            solve(LADDER[::-1], gamma_draws(0))

    def test_overlap_is_a_probability(self):
        overlap = solve(LADDER, gamma_draws(0)).overlap
        np.testing.assert_allclose(overlap.sum(axis=1), 1.0, atol=1e-8)
        far = solve(np.array([0.0, 50.0]), gamma_draws(0)[[0, 5]] / [[1.0], [25.0]]).overlap
        assert far[0, 1] < 0.05 < overlap[0, 1]


class TestErrors:
    @pytest.mark.parametrize("memory", [0.0, 0.8])
    def test_long_run_variance_of_an_autoregression(self, memory):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((50, 4, 1000))
        for t in range(1, 1000):
            x[..., t] = memory * x[..., t - 1] + np.sqrt(1 - memory**2) * x[..., t]
        expected = 4000 * (1 + memory) / (1 - memory)
        assert long_run_variance(x).mean() == pytest.approx(expected, rel=0.1)

    def test_groups_that_are_replicates(self):
        """Draws that copy each other within a group count once, over all rungs."""
        rng = np.random.default_rng(0)
        values = np.broadcast_to(rng.standard_normal((1, 4000, 1)), (3, 4000, 5))
        assert error_of_sum(values, True) == pytest.approx(15 * np.sqrt(4000), rel=0.05)
        assert error_of_sum(rng.permuted(values, axis=1), True) < 12 * np.sqrt(4000)


class TestLadder:
    def test_next_beta_keeps_its_share_of_draws(self):
        u = gamma_draws(0)[2:3]
        beta = next_beta(u, 0.15, 50.0, 0.5)
        weight = np.exp(-(beta - 0.15) * u)
        assert weight.sum() ** 2 / (weight**2).sum() == pytest.approx(100, rel=0.01)

    def test_next_beta_stops_at_the_top(self):
        assert next_beta(gamma_draws(0)[2:3], 0.15, 0.16, 0.5) == 0.16

    @pytest.mark.parametrize("upper", [1e6, 1e15, 1e60, 1e200])
    def test_next_beta_does_not_depend_on_the_top(self, upper):
        draws = gamma_draws(0)[:1]
        near = next_beta(draws, 0.0, 9.0, 0.5)
        assert next_beta(draws, 0.0, upper, 0.5) == pytest.approx(near, rel=3e-3)

    def test_the_worst_pair_counts(self):
        one, other = gamma_draws(0)[2], gamma_draws(0)[0]
        both = next_beta(np.stack([one, other]), 0.0, 9.0, 0.5)
        assert both == min(next_beta(u[None], 0.0, 9.0, 0.5) for u in (one, other))

    def test_rungs_start_where_the_last_ended(self):
        data = linear_data()
        sampler = ConjugateSampler(data)
        plan = strategies.Naive().plan(data, np.random.default_rng(0)).pairs()
        ladders = SampledLadders(sampler, plan)
        (ladder,) = ladders.extend(1.0)
        assert ladder.betas[0] == 0 and ladder.betas[-1] == 1.0
        assert [start for _, start in sampler.calls] == [None, *range(1, len(sampler.calls))]
        rungs = len(sampler.calls)
        (longer,) = ladders.extend(2.0)
        assert ladders.upper == 2.0 and len(sampler.calls) > rungs
        np.testing.assert_array_equal(longer.betas[:rungs], ladder.betas)

    def test_progress_is_told(self):
        told = []
        plan = Pairs(np.ones((1, 12)), np.ones((1, 12)), 12.0)
        SampledLadders(
            ConjugateSampler(linear_data()), plan, report=lambda *news: told.append(news)
        ).extend(1.0)
        assert [rungs for *_, rungs in told] == list(range(1, len(told) + 1))
        assert told[-1][:2] == (1.0, 1.0)


class TestCurve:
    @pytest.mark.parametrize("strategy", [strategies.Naive(), strategies.LeaveOneOut()])
    def test_lowest_beta_is_that_of_the_losses_under_the_prior(self, strategy):
        """Asked for before or after the curve, in units of the losses."""
        _, drawn = curves(strategy, "gibbs")
        lowest = drawn.draws.lowest
        u = drawn.draws.ladders[0].trained[0].ravel()
        low, high = np.percentile(u, [5, 95])
        assert lowest == pytest.approx(3.29 / (high - low))
        drawn(2.0)
        assert drawn.draws.lowest == lowest and drawn.lowest == 1e-3

    @pytest.mark.parametrize("risk", RISKS)
    @pytest.mark.parametrize(
        "strategy",
        [
            strategies.Naive(),
            pytest.param(strategies.SampleSplitting("alpha"), marks=pytest.mark.slow),
            strategies.KFold(5),
            pytest.param(strategies.LeaveOneOut(), marks=pytest.mark.slow),
            strategies.LeaveOneOut("alpha"),
            pytest.param(strategies.Bootstrap(3), marks=pytest.mark.slow),
            pytest.param(strategies.SafeBayes(start=3), marks=pytest.mark.slow),
            strategies.SafeBayes("alpha", stride=4),
        ],
        ids=repr,
    )
    def test_agrees_with_the_closed_form(self, strategy, risk):
        exact, drawn = curves(strategy, risk)
        betas = np.linspace(0, 3, 50)
        value, slope = drawn(betas, derivative=True)
        assert np.all(np.abs(value - exact(betas)) < 4 * drawn.error(betas))
        assert np.all(drawn.error(betas) < 0.1 * np.abs(exact(betas)))
        # Near the prior, u has heavy tails and its covariances are rough.
        settled = betas > 0.3
        _, exact_slope = exact(betas[settled], derivative=True)
        np.testing.assert_allclose(slope[settled], exact_slope, rtol=0.2, atol=0.05)

    @pytest.mark.parametrize("risk", RISKS)
    @pytest.mark.parametrize("strategy", [strategies.KFold(4), strategies.Bootstrap(3)])
    def test_slope_and_rows_belong_to_the_value(self, strategy, risk):
        _, drawn = curves(strategy, risk)
        drawn(3.0)  # a ladder that grows changes what lies below, within the error
        betas = np.array([0.02, 0.3, 1.1, 2.9])
        value, slope = drawn(betas, derivative=True)
        differences = (drawn(betas + 1e-5) - drawn(betas - 1e-5)) / 2e-5
        np.testing.assert_allclose(slope, differences, rtol=1e-5, atol=1e-7)
        loss, weight = drawn.rows(1.1)
        assert loss @ weight / weight.sum() == pytest.approx(value[2], rel=1e-10)

    @pytest.mark.parametrize("risk", RISKS)
    def test_slope_and_rows_of_leave_one_out(self, risk):
        """Smoothed weights do not move quite as the raw ones would: over a wide step they do."""
        _, drawn = curves(strategies.LeaveOneOut("alpha"), risk, size=1000)
        drawn(3.0)
        betas = np.array([0.1, 0.3, 1.1, 2.0])
        value, slope = drawn(betas, derivative=True)
        differences = (drawn(1.2 * betas) - drawn(0.8 * betas)) / (0.4 * betas)
        np.testing.assert_allclose(slope, differences, rtol=0.1, atol=0.03)
        loss, weight = drawn.rows(1.1)
        assert loss @ weight / weight.sum() == pytest.approx(value[2], rel=1e-10)

    def test_leave_one_out_with_weights(self):
        data = linear_data()
        data = Data(data.X, data.y, np.random.default_rng(1).uniform(0.5, 2.0, 12))
        for transfer in ("beta", "alpha"):
            exact, drawn = curves(strategies.LeaveOneOut(transfer), data=data, size=300)
            betas = np.linspace(0, 2, 20)
            assert np.all(np.abs(drawn(betas) - exact(betas)) < 4 * drawn.error(betas))
            assert drawn.pareto_k(2.0).shape == (12,)

    @pytest.mark.parametrize("risk, transfer", [("gibbs", "beta"), ("predictive", "alpha")])
    def test_pieces_of_some_rows_are_left_out(self, risk, transfer):
        """A row of weight three is three observations, of which one is left out at a time."""
        data = linear_data()
        data = Data(data.X, data.y, np.tile([1.0, 2.0, 3.0], 4))
        some = np.array([1, 2, 5, 6])
        plan = LeaveOneOut(data.weights, transfer, data.weights.astype(int), some)
        sampler, betas = ConjugateSampler(data, size=300), np.linspace(0.05, 2, 8)
        drawn = risk_curve_from(lambda pairs: SampledLadders(sampler, pairs), plan, risk)
        closed = models.GaussianLinear(noise_variance=2.0)
        exact = closed.held_out(data, plan.pairs(), risk, (0.0, 3.0))
        assert np.all(np.abs(drawn(betas) - exact(betas)) < 4 * drawn.error(betas))
        table = table_of(drawn, data, plan, risk, (0.0, 3.0))
        np.testing.assert_array_equal(np.flatnonzero(table.weights), some)
        np.testing.assert_allclose(table.at(betas) @ table.share, drawn(betas))
        # Negative control: the rows as a whole.
        whole = closed.held_out(data, replace(plan, pieces=None).pairs(), risk, (0.0, 3.0))
        assert np.any(np.abs(drawn(betas) - whole(betas)) > 4 * drawn.error(betas))

    @pytest.mark.parametrize("risk, transfer", [("gibbs", "beta"), ("predictive", "alpha")])
    @pytest.mark.slow
    def test_rows_that_matter_much_are_refitted(self, risk, transfer):
        """As many parameters as rows: weights alone give a risk that is far too small."""
        betas, data = np.array([0.1, 0.5, 1.0, 3.0]), linear_data(24, 24)
        plan = strategies.LeaveOneOut(transfer)
        exact, drawn = curves(plan, risk, data=data, size=150, most_refits=24)
        _, slope = drawn(betas, derivative=True)
        gap, error = drawn(betas) - exact(betas), drawn.error(betas)
        assert np.all(np.abs(gap) < 4 * error)
        np.testing.assert_allclose(
            slope[1:], exact(betas, derivative=True)[1][1:], rtol=0.3, atol=0.1
        )
        drawn.warn(1.0, standard_error=lambda: 1.0)
        refitted = drawn.reliability(1.0).refits
        assert refitted > 12 and np.isnan(drawn.pareto_k(1.0)).sum() == refitted
        assert f"{refitted} rows refitted" in drawn.method
        loss, weight = drawn.rows(1.0)
        assert loss @ weight / weight.sum() == pytest.approx(drawn(1.0), rel=1e-10)

        _, weighted = curves(plan, risk, data=data, size=150, most_refits=0)
        gap = weighted(betas) - exact(betas)
        assert np.any(gap < -6 * error)
        # Their own error knows that much is missing, up to where most rows matter.
        assert np.all(np.abs(gap) < 5 * weighted.error(betas))
        with pytest.warns(
            ParetoWarning, match=r"of 24 rows .* the 0 that would be refitted.*KFold"
        ):
            weighted.warn(0.1, standard_error=lambda: 1.0)

    @pytest.mark.parametrize("memory", [0.0, 0.7])
    @pytest.mark.parametrize("risk", RISKS)
    def test_errors_are_honest(self, risk, memory):
        """Over 100 seeds z has variance 1; with half the error it would have 4."""
        betas = np.array([0.0, 0.1, 0.5, 1.0, 2.0])
        z = []
        for seed in range(100):
            exact, drawn = curves(strategies.Naive(), risk, seed=1000 * seed, memory=memory)
            z.append((drawn(betas) - exact(betas)) / drawn.error(betas))
        variance = np.var(z, axis=0)
        assert (0.7 < variance).all() and (variance < 1.4).all(), variance
        assert np.abs(np.mean(z, axis=0)).max() < 0.4  # 4 errors of a mean of 100

    def test_errors_without_memory_would_be_dishonest(self):
        """Negative control: the same draws, their order destroyed, give an error far too small."""
        _, drawn = curves(strategies.Naive(), memory=0.7)
        before = drawn.error(np.array([1.0]))[0]
        state, ladder = drawn.draws.states[0], drawn.draws.ladders[0]
        weight = state.weights(np.array([1.0]))[0]
        tested = ladder.tested.ravel()
        influence = state.influence(weight, tested - weight @ tested).reshape(ladder.tested.shape)
        shuffled = np.random.default_rng(0).permuted(influence, axis=2)
        assert error_of_sum(shuffled, False) / 12 < 0.75 * before

    def test_extension_keeps_what_was_known(self):
        exact, drawn = curves(strategies.KFold(4))
        drawn(np.array([0.5]))
        first = drawn.draws.source.upper
        assert first == 0.5
        assert abs(drawn(2.0) - exact(2.0)) < 4 * drawn.error(np.array([2.0]))[0]
        assert drawn.draws.source.upper == 2.0

    def test_memory_does_not_change_the_numbers(self, monkeypatch):
        from temperance.models.sampled import curve, leave_one_out

        for strategy in (strategies.KFold(4), strategies.LeaveOneOut()):
            _, whole = curves(strategy, "predictive")
            expected = whole(np.array([0.3, 1.0])), whole.rows(1.0)[0], whole.error([0.5])
            with monkeypatch.context() as patch:
                for module in (curve, leave_one_out):
                    patch.setattr(module, "BLOCK", 5000)
                    patch.setattr(module, "KEPT", 0)
                _, blocks = curves(strategy, "predictive")
                got = blocks(np.array([0.3, 1.0])), blocks.rows(1.0)[0], blocks.error([0.5])
            for one, other in zip(expected, got, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-3)

    def test_effective_sample_size(self):
        """Independent draws at one beta alone count one each; a ladder adds to them."""
        _, drawn = curves(strategies.Naive())
        effective = drawn.effective(np.array([0.0, 1.0]))
        assert (effective > 300).all() and (
            effective < 400 * len(drawn.draws.ladders[0].betas)
        ).all()
        _, sticky = curves(strategies.Naive(), memory=0.9)
        assert (sticky.effective(np.array([0.0, 1.0])) < 0.5 * effective).all()

    def test_method_says_how(self):
        _, drawn = curves(strategies.LeaveOneOut())
        assert drawn.method == "draws, none yet"
        drawn(np.array([2.0]))
        assert "rungs of 400 draws, effective sample size" in drawn.method
        assert "R-hat 1.0" in drawn.method and "Pareto k" in drawn.method


class TestWarnings:
    good = Reliability(8, 400, 900.0, 1.01, 0.2, 0)

    def test_good_draws_are_not_warned_of(self):
        warn_of(self.good, 3200)
        warn_of_pareto(np.array([0.1, 0.6]), 10)

    @pytest.mark.parametrize(
        "change, category, advice",
        [
            ({"rhat": 1.2}, MixingWarning, "raise the sampler.s moves or draws"),
            ({"overlap": 0.001}, OverlapWarning, "raise overlap or draws"),
            ({"divergent": 500}, DivergenceWarning, "reparametrise"),
        ],
    )
    def test_bad_draws_are(self, change, category, advice):
        with pytest.warns(category, match=advice):
            warn_of(Reliability(**(vars(self.good) | change)), 3200)

    def test_too_few_draws_are(self):
        _, drawn = curves(strategies.Naive())
        drawn(1.0)
        with pytest.warns(DrawsWarning, match="use more draws"):
            drawn.warn(1.0, standard_error=lambda: 1e-3)

    def test_heavy_tails_are(self):
        with pytest.warns(ParetoWarning, match=r"in 2 of 3 rows \(row 1: 0.90\), more than the 1"):
            warn_of_pareto(np.array([0.8, 0.9, 0.2]), 1)


@pytest.mark.parametrize(
    "k, most, expected",
    [
        ([0.1, 0.4], 10, []),
        ([0.1, 0.6, 0.9], 10, [1, 2]),
        ([0.6, 0.8, 0.1, 0.9], 2, [1, 3]),  # the worst; what is left can be trusted
        ([0.8, 0.8, 0.9], 2, []),  # one would be left that cannot
        ([0.1, np.nan, np.inf, -np.inf], 10, [1, 2]),
    ],
)
def test_rows_to_refit(k, most, expected):
    assert rows_to_refit(np.array(k), most).tolist() == expected


@pytest.mark.slow
def test_the_largest_of_many_r_hats_is_judged_by_their_number():
    # Twenty pairs of seventeen rungs, eight islands of 32 independent draws each.
    rng = np.random.default_rng(0)
    limits, worst = [], []
    for _ in range(20):
        drawn = rng.standard_normal((20, 17, 8, 32))
        few = [Ladder(np.arange(17.0), each, each, np.take, True, 0, list) for each in drawn]
        limits.append(rhat_limit(few))
        worst.append(worst_rhat(few))
    assert np.mean(np.array(worst) > limits) < 0.2
    assert np.mean(np.array(worst) > 1.05) > 0.2  # what a fixed limit would say
    assert rhat_limit(few[:1]) < limits[0]
