"""Rules, against brute force and slow algorithms: the smallest mean loss, stacks, gains, ranges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from temperance import calibrate, models
from temperance.data import Data
from temperance.rules import (
    BetaWeights,
    Choice,
    Gain,
    best_weights,
    cross_fitted,
    gain_of,
    minimum,
    mixed_losses,
    nearest_to_bayes,
    not_told_apart,
    stack,
    verdict_of,
)
from temperance.strategies.selection import stacked_data
from temperance.table import HeldOut, half_decades, held_out_losses, mean_and_error

ONE = np.ones(1)
BETAS = half_decades((0.0, 3.0))


def closed(f, bounds=(0.0, 3.0), least=1e-3):
    """A table of one row, whose loss is a formula."""
    return HeldOut(half_decades(bounds, least), lambda b: f(b)[:, None], ONE, ONE, "gibbs")


def brute_force(f, bounds):
    """The place of the smallest of many values, refined by golden section."""
    lower, upper = bounds
    grid = np.unique(np.r_[lower, np.geomspace(max(lower, upper * 1e-9), upper, 20_001)])
    grid = np.unique(np.r_[grid, np.linspace(lower, upper, 20_001)])
    best = int(np.argmin(f(grid)))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = optimize.minimize_scalar(
        lambda b: float(f(np.array([b]))[0]),
        bounds=ends,
        method="bounded",
        options={"xatol": 1e-13},
    )
    return min([float(grid[best]), float(found.x)], key=lambda b: float(f(np.array([b]))[0]))


# name: (curve, bounds, where it is smallest)
KNOWN = {
    "inside": (lambda b: (b - 1.3) ** 2, (0, 3), 1.3),
    "at Bayes": (lambda b: (b - 1.0) ** 2, (0, 3), 1.0),
    "in logarithms": (lambda b: np.log(b / 0.037 + 1e-9) ** 2, (0, 3), 0.037),
    "at the lower bound": (lambda b: np.log1p(b), (0, 3), 0.0),
    "at the lower bound, level": (lambda b: b**2, (0, 3), 0.0),
    "at the upper bound": (lambda b: -b, (0, 3), 3.0),
    "at the upper bound, level": (lambda b: (b - 3) ** 2, (0, 3), 3.0),
    "at the upper bound, saturated": (lambda b: 1 / (1 + 1e4 * b), (0, 3), 3.0),
    "just inside the upper bound": (lambda b: (b - 2.99) ** 2, (0, 3), 2.99),
    # 1/(1 + s b) + s b / 4 is smallest at 1/s
    "steep, 1e-4 from zero": (lambda b: 1 / (1 + 1e4 * b) + 2.5e3 * b, (0, 3), 1e-4),
    "away from zero": (lambda b: (b - 4.321) ** 2, (2, 7), 4.321),
    "away from zero, lower": (lambda b: b, (2, 7), 2.0),
    "away from zero, upper": (lambda b: -b, (2, 7), 7.0),
    "far from zero": (lambda b: np.cosh(3 * (b - 100.7)), (100, 101), 100.7),
    "around Bayes only": (lambda b: (b - 1) ** 2, (0.999, 1.001), 1.0),
    "wide bounds": (lambda b: np.log((b + 1e-9) / 5e4) ** 2, (0, 1e8), 5e4),
    "large and level": (lambda b: 1e6 + (b - 1.3) ** 2, (0, 3), 1.3),
    "maximum inside": (lambda b: -((b - 1.2) ** 2), (0, 3), 3.0),
}


def well(b, centre, width, depth=1.0):
    """A valley in log beta."""
    return -depth * np.exp(-((np.log(np.maximum(b, 1e-30) / centre) / width) ** 2) / 2)


# Several minima; brute force says which is the lowest.
SEVERAL = {
    "the left one": (lambda b: well(b, 0.02, 0.7) + well(b, 1.0, 0.7, 0.9), (0, 3)),
    "the right one": (lambda b: well(b, 0.02, 0.7, 0.9) + well(b, 1.0, 0.7), (0, 3)),
    "nearly level": (lambda b: well(b, 0.02, 0.7) + well(b, 1.0, 0.7, 1 + 1e-6), (0, 3)),
    "the narrower one": (lambda b: well(b, 0.1, 1.5, 0.9) + well(b, 1.3, 0.4), (0, 3)),
    "the third": (
        lambda b: well(b, 0.003, 0.5, 0.5) + well(b, 0.1, 0.5, 0.9) + well(b, 1.5, 0.5),
        (0, 3),
    ),
    "inside, not at the bound": (lambda b: well(b, 0.05, 0.6) - 0.9 * b / 3, (0, 3)),
    "at the bound, not inside": (lambda b: well(b, 0.05, 0.6) - 1.1 * b / 3, (0, 3)),
    "at zero, not inside": (lambda b: well(b, 0.05, 0.6) - 1.1 / (1 + 3e3 * b), (0, 3)),
    "beyond the upper bound": (lambda b: well(b, 0.05, 0.6) + well(b, 4.0, 0.3, 3.0), (0, 3)),
}


class TestMinimum:
    @pytest.mark.parametrize("f, bounds, expected", KNOWN.values(), ids=KNOWN)
    def test_finds_the_known_minimum(self, f, bounds, expected):
        found = minimum(closed(f, bounds), bounds)
        assert found.beta == pytest.approx(expected, rel=2e-5, abs=1e-15)
        assert found.at_bound == (expected in bounds)
        assert found.searched and not found.flat

    @pytest.mark.parametrize("f, bounds", SEVERAL.values(), ids=SEVERAL)
    def test_finds_the_lowest_of_several(self, f, bounds):
        expected = brute_force(f, bounds)
        assert minimum(closed(f, bounds), bounds).beta == pytest.approx(expected, rel=3e-4)

    @pytest.mark.parametrize("scale", [1e-100, 1e-12, 1e12, 1e100])
    @pytest.mark.parametrize("offset", [0.0, -1.0, 3.0])
    def test_the_unit_of_risk_does_not_matter(self, scale, offset):
        f, bounds = SEVERAL["the third"]
        found = minimum(closed(lambda b: scale * (f(b) + offset)), bounds)
        assert found.beta == pytest.approx(minimum(closed(f), bounds).beta, rel=1e-6)

    @pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e3, 1e9])
    def test_the_unit_of_beta_does_not_matter(self, unit):
        f, bounds = SEVERAL["the third"]
        wide = (0, 3 * unit)
        table = closed(lambda b: f(b / unit), wide, 1e-3 * min(unit, 1.0))
        expected = minimum(closed(f), bounds).beta
        assert minimum(table, wide).beta / unit == pytest.approx(expected, rel=1e-6)

    @pytest.mark.parametrize(
        "bounds, closest", [((0, 3), 1.0), ((2, 7), 2.0), ((0, 0.5), 0.5)], ids=str
    )
    @pytest.mark.parametrize("level", [0.0, 1.0, -1e9, 1e-300])
    @pytest.mark.parametrize("rounding", [0.0, 2e-16, 2e-15])
    def test_a_flat_curve_leads_to_bayes(self, bounds, closest, level, rounding):
        noisy = closed(lambda b: level + level * rounding * np.sin(1e9 * b), bounds)
        assert minimum(noisy, bounds) == Choice(closest, flat=True)

    def test_a_small_slope_is_not_flat(self):
        assert minimum(closed(lambda b: 1 + 1e-10 * b), (0, 3)) == Choice(0.0, at_bound=True)

    def test_rounding_next_to_a_bound_is_at_it(self):
        """As of a curve whose polynomial turns a little before the bound."""
        found = minimum(closed(lambda b: -b + 1e-15 * np.sin(1e9 * b)), (0, 3))
        assert found == Choice(3.0, at_bound=True)

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_a_curve_that_is_not_finite_is_refused(self, bad):
        with pytest.raises(ValueError, match="^the risk curve is not finite at beta = 3$"):
            minimum(closed(lambda b: np.where(b > 2, bad, b)), (0, 3))

    def test_bounds_between_two_betas_of_the_table(self):
        found = minimum(closed(lambda b: (b - 0.4) ** 2), (0.35, 0.5))
        assert found.beta == pytest.approx(0.4, rel=1e-6)

    def test_few_betas_are_asked_for(self):
        asked = []
        f = closed(lambda b: asked.extend(b) or (np.log(b + 1e-9) + 2.0) ** 2)
        minimum(f, (0, 3))
        assert len(asked) <= len(f.betas) + 1 + 2 * 12

    @pytest.mark.parametrize("name", ["inside", "in logarithms", "at the upper bound"])
    def test_interpolated_tables(self, name):
        f, bounds, _ = KNOWN[name]
        betas = np.r_[0.0, half_decades(bounds, 1e-4)]
        kept = held_out_losses(betas, f(betas)[:, None])
        assert minimum(kept, bounds).beta == pytest.approx(brute_force(kept.risk, bounds), rel=1e-2)

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(
        st.lists(
            st.tuples(
                st.floats(-1, 1).filter(lambda x: abs(x) > 1e-3),
                st.floats(-1, 1).filter(lambda x: abs(x) > 1e-3),
                st.floats(-1, 4),
            ),
            min_size=1,
            max_size=5,
        ),
        st.floats(-0.3, 0.3).filter(lambda x: abs(x) > 1e-3),
        st.sampled_from([(0.0, 3.0), (0.5, 2.5), (0.0, 30.0)]),
    )
    def test_nothing_on_a_fine_grid_is_lower(self, parts, tilt, bounds):
        """What real curves look like: shrinkage factors 1 / (1 + rate beta) and their squares."""

        def f(b):
            shrunk = [(a, c, 1 / (1 + 10**rate * b)) for a, c, rate in parts]
            return tilt * b / bounds[1] + sum(a * g + c * g**2 for a, c, g in shrunk)

        grid = np.unique(np.r_[bounds[0], np.geomspace(1e-6, bounds[1], 20_001)])
        values = f(grid[grid >= bounds[0]])
        found = minimum(closed(f, bounds, 1e-6), bounds)
        assert found.at_bound == (found.beta in bounds)
        assert f(np.array([found.beta]))[0] <= values.min() + 1e-6 * np.ptp(values)


def random_losses(k, n, seed):
    """Losses whose best beta differs from row to row."""
    rng = np.random.default_rng(seed)
    log = np.linspace(-3, 1, k)[:, None]
    return rng.gamma(2.0, 1.0, n) * (log - rng.normal(-0.5, 1.5, n)) ** 2 + rng.normal(size=n)


def objective(weights, losses, votes, bayes_votes, bayes):
    mixture = np.maximum(weights @ np.exp(-losses), 1e-300)
    own = bayes_votes * np.log(max(weights[bayes], 1e-300)) if bayes_votes else 0.0
    return float(votes @ np.log(mixture)) + own


def conditions(weights, losses, votes, bayes_votes, bayes):
    """Slacks of the votes, which are never negative, and zero where a weight is positive."""
    total = votes.sum() + bayes_votes
    densities = np.exp(-losses)
    gradient = (densities / (weights @ densities)) @ votes
    gradient[bayes] += bayes_votes / weights[bayes] if bayes_votes else 0.0
    return 1 - gradient / total


PROBLEMS = [
    (k, n, c, seed)
    for k, n, c in [(2, 5, 1.0), (9, 40, 3.0), (9, 400, 20.0), (15, 60, 0.0), (9, 3, 5.0)]
    for seed in range(3)
]


class TestBestWeights:
    @pytest.mark.parametrize("k, n, c, seed", PROBLEMS)
    def test_no_other_weights_have_more_votes(self, k, n, c, seed):
        losses, bayes = random_losses(k, n, seed), k // 2
        votes = np.random.default_rng(seed).uniform(0.2, 3.0, n)
        weights = best_weights(losses, votes, c, bayes)
        assert weights.min() >= 0 and weights.sum() == pytest.approx(1.0, rel=1e-14)
        slack = conditions(weights, losses, votes, c, bayes)
        assert slack.min() > -1e-8 and weights @ np.abs(slack) < 1e-8
        own = objective(weights, losses, votes, c, bayes)
        found = optimize.minimize(
            lambda w: -objective(w, losses, votes, c, bayes),
            np.full(k, 1 / k),
            bounds=[(0, 1)] * k,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-14},
        )
        assert own >= -found.fun - 1e-8 * (1 + abs(own))

    def test_sweeps_of_em_come_to_the_same(self):
        losses, votes, c, bayes = random_losses(9, 80, 7), np.ones(80), 4.0, 6
        weights, densities = np.full(9, 1 / 9), np.exp(-losses)
        for _ in range(20_000):
            shares = weights[:, None] * densities / (weights @ densities)
            weights = shares @ votes
            weights[bayes] += c
            weights /= weights.sum()
        np.testing.assert_allclose(best_weights(losses, votes, c, bayes), weights, atol=1e-6)

    def test_a_beta_that_is_worse_everywhere_has_no_weight(self):
        losses = random_losses(5, 50, 1)
        losses[3] = losses[1] + 0.5
        weights = best_weights(losses, np.ones(50), 2.0, 2)
        assert weights[3] < 1e-8
        losses[2] = losses[1] + 30.0  # Bayes keeps its own votes
        assert best_weights(losses, np.ones(50), 2.0, 2)[2] == pytest.approx(2 / 52, rel=1e-6)

    def test_one_beta_that_is_best_everywhere_has_all_but_the_votes_of_bayes(self):
        losses = np.tile([[2.0], [9.0], [1e4]], (1, 30))
        np.testing.assert_allclose(
            best_weights(losses, np.ones(30), 3.0, 1), [30 / 33, 3 / 33, 0.0], atol=1e-3
        )

    @pytest.mark.parametrize("n", [1, 2, 5])
    def test_bayes_dominates_where_rows_are_few(self, n):
        weights = best_weights(random_losses(9, n, 0), np.ones(n), 10.0, 6)
        assert weights[6] > 10 / (10 + n)

    def test_votes_are_copies(self):
        losses, votes = random_losses(7, 30, 2), np.random.default_rng(0).integers(0, 4, 30)
        np.testing.assert_allclose(
            best_weights(losses, votes.astype(float), 2.0, 3),
            best_weights(np.repeat(losses, votes, axis=1), np.ones(votes.sum()), 2.0, 3),
            atol=1e-9,
        )

    def test_neither_order_nor_level_of_losses_matters(self):
        losses, votes = random_losses(7, 30, 2), np.random.default_rng(0).uniform(1, 2, 30)
        order = np.random.default_rng(1).permutation(30)
        level = 300 * np.random.default_rng(2).standard_normal(30)
        np.testing.assert_allclose(
            best_weights(losses, votes, 2.0, 3),
            best_weights((losses + level)[:, order], votes[order], 2.0, 3),
            atol=1e-8,
        )

    def test_one_beta_and_votes_for_bayes_alone(self):
        assert best_weights(random_losses(1, 9, 0), np.ones(9), 2.0, 0) == [1.0]
        only = best_weights(random_losses(4, 9, 0), np.ones(9), np.inf, 2)
        np.testing.assert_array_equal(only, [0, 0, 1, 0])

    def test_losses_far_apart(self):
        """Rows that some betas exclude."""
        losses = random_losses(9, 40, 3) * 1e6
        weights = best_weights(losses, np.ones(40), 3.0, 6)
        assert np.isfinite(weights).all() and weights.sum() == pytest.approx(1.0)
        slack = conditions(weights, losses - losses.min(axis=0), np.ones(40), 3.0, 6)
        assert slack.min() > -1e-8


def losses_table(losses, betas=BETAS, **options):
    """A table of given losses at the betas of a stack."""
    table = held_out_losses(betas, losses)
    return HeldOut(**{**vars_of(table), **options})


def vars_of(table):
    return {name: getattr(table, name) for name in HeldOut.__dataclass_fields__}


def stacked(n=60, seed=0, **options):
    return losses_table(random_losses(len(BETAS), n, seed), **options)


class TestStack:
    def test_is_of_the_losses_at_the_betas(self):
        table = stacked(votes=3.0)
        found = stack(table, BETAS)
        expected = best_weights(table.losses, np.ones(60), 3.0, nearest_to_bayes(BETAS))
        np.testing.assert_allclose(found.weights, expected)
        np.testing.assert_array_equal(found.betas, BETAS)
        assert BETAS[nearest_to_bayes(BETAS)] == 1.0

    def test_rows_have_as_many_votes_as_observations(self):
        """Weights in the mean that are no counts, as of rows tested more than once."""
        counts = np.random.default_rng(0).integers(1, 5, 60).astype(float)
        table = stacked(weights=10 * counts, counts=counts, votes=2.0)
        expected = best_weights(table.losses, counts, 2.0, nearest_to_bayes(BETAS))
        np.testing.assert_allclose(stack(table, BETAS).weights, expected, atol=1e-6)

    def test_rows_that_were_not_tested_have_none(self):
        weights = np.where(np.arange(60) < 20, 0.0, 1.0)
        table = stacked(weights=weights, votes=2.0)
        expected = best_weights(table.losses[:, 20:], np.ones(40), 2.0, nearest_to_bayes(BETAS))
        np.testing.assert_allclose(stack(table, BETAS).weights, expected, atol=1e-6)

    def test_losses_that_are_not_finite_are_refused(self):
        losses = random_losses(len(BETAS), 9, 0)
        losses[2, 4] = np.inf
        table = HeldOut(BETAS, lambda b: losses, np.ones(9), np.ones(9), "predictive")
        with pytest.raises(
            ValueError,
            match="^losses of held-out rows must be finite to be stacked, got inf at beta = 0.01$",
        ):
            stack(table, BETAS)

    def test_mixtures_of_densities(self):
        losses = random_losses(5, 30, 0) + 1e4
        weights = np.random.default_rng(0).dirichlet(np.ones(5))
        expected = -special.logsumexp(-losses, b=weights[:, None], axis=0)
        np.testing.assert_allclose(mixed_losses(losses, weights), expected, rtol=1e-14)
        np.testing.assert_allclose(
            BetaWeights(np.arange(1.0, 6.0), weights).mixed(losses), expected, rtol=1e-14
        )

    def test_quantiles_by_hand(self):
        two = BetaWeights(np.array([1.0, np.e**2]), np.array([0.5, 0.5]))
        assert two.median == pytest.approx(np.e)
        assert two.quantile(0.01) == 1.0
        assert BetaWeights(np.array([0.7]), ONE).median == pytest.approx(0.7)
        kept = BetaWeights(np.arange(1.0, 4.0), np.array([0.3, 0.0, 0.7])).without_negligible()
        np.testing.assert_array_equal(kept.betas, [1.0, 3.0])
        np.testing.assert_allclose(kept.weights, [0.3, 0.7])


class TestCrossFitted:
    def test_every_tenth_is_mixed_by_the_weights_of_the_others(self):
        table = stacked(57, votes=2.0)
        bayes = nearest_to_bayes(BETAS)
        place = np.argsort(np.argsort(table.losses[bayes]))
        expected = np.empty(57)
        for part in range(10):
            out = place % 10 == part
            weights = best_weights(table.losses[:, ~out], np.ones((~out).sum()), 2.0, bayes)
            expected[out] = mixed_losses(table.losses[:, out], weights)
        np.testing.assert_allclose(cross_fitted(table, BETAS), expected, rtol=1e-9)

    def test_groups_are_left_out_whole(self):
        groups = np.repeat([5, 1, 9, 7], 10)
        table = stacked(40, votes=2.0, groups=groups)
        bayes, expected = nearest_to_bayes(BETAS), np.empty(40)
        for group in (5, 1, 9, 7):
            out = groups == group
            weights = best_weights(table.losses[:, ~out], np.ones(30), 2.0, bayes)
            expected[out] = mixed_losses(table.losses[:, out], weights)
        np.testing.assert_allclose(cross_fitted(table, BETAS), expected, rtol=1e-9)

    def test_the_order_of_rows_plays_no_part(self):
        losses, order = random_losses(len(BETAS), 45, 0), np.random.default_rng(1).permutation(45)
        one, other = (
            cross_fitted(losses_table(each), BETAS) for each in (losses, losses[:, order])
        )
        np.testing.assert_allclose(one[order], other, rtol=1e-9)

    @pytest.mark.parametrize("n", [1, 2, 9])
    def test_fewer_rows_than_tenths(self, n):
        assert np.isfinite(cross_fitted(stacked(n), BETAS)).all()

    def test_seen_rows_are_forecast_better(self):
        differences = []
        for seed in range(20):
            table = stacked(40, seed)
            own = stack(table, BETAS).mixed(table.losses)
            differences.append((cross_fitted(table, BETAS) - own).mean())
        assert np.mean(differences) > 3 * np.std(differences) / np.sqrt(20) > 0

    def test_the_gain_is_that_on_fresh_rows(self):
        """What is said from n rows, on average, beside what new rows of the same source show."""
        model, bounds = models.GaussianLinear(1.0), (0.0, 3.0)
        said, fresh, seen = [], [], []
        for seed in range(80):
            rng = np.random.default_rng(seed)
            theta = rng.standard_normal(8) / 2
            X = rng.standard_normal((40 + 1000, 8))
            y = X @ theta + rng.standard_t(3, 1040)
            found = calibrate(model, X[:40], y[:40], bounds=bounds)
            rows, plan = stacked_data(
                Data(X[:40], y[:40], np.ones(40)), Data(X[40:], y[40:], np.ones(1000))
            )
            table = model.held_out(rows, plan, "predictive", bounds)
            gains = (table.at(ONE)[0] - found.losses_in(table))[40:]
            own = found.table.at(ONE)[0] - found.losses_in(found.table)
            said.append(found.gain), fresh.append(gains.mean()), seen.append(own.mean())
        said, fresh, seen = (np.array(each) for each in (said, fresh, seen))
        error = (said - fresh).std(ddof=1) / np.sqrt(80)
        assert fresh.mean() > 0.02
        assert abs((said - fresh).mean()) < 3 * error
        assert (seen - said).mean() > 0.1 * fresh.mean()  # what the rows that voted would show


class TestGain:
    def test_is_paired_over_rows_or_groups(self):
        losses = random_losses(len(BETAS), 40, 0)
        chosen, bayes = losses[2], losses[nearest_to_bayes(BETAS)]
        found = gain_of(losses_table(losses), chosen)
        gains = bayes - chosen
        assert found.mean == pytest.approx(gains.mean())
        assert found.error == pytest.approx(gains.std(ddof=1) / np.sqrt(40))
        grouped = gain_of(losses_table(losses, groups=np.arange(40) // 4), chosen)
        means = gains.reshape(10, 4).mean(axis=1)
        assert grouped.mean == pytest.approx(gains.mean())
        assert grouped.error == pytest.approx(means.std(ddof=1) / np.sqrt(10))

    @pytest.mark.parametrize("groups", [None, np.arange(400) // 2])
    def test_few_rows_may_make_up_most_of_it(self, groups):
        rng = np.random.default_rng(0)
        losses = np.zeros((len(BETAS), 400))
        losses[2] = -0.02 * (1 + rng.standard_normal(400))
        table = losses_table(losses, groups=groups)
        assert not gain_of(table, losses[2]).few_rows
        losses[2, :3] -= 4.0
        assert gain_of(table, losses[2]).few_rows
        assert not gain_of(table, -losses[2]).few_rows  # a loss is none

    @pytest.mark.parametrize(
        "mean, error, verdict",
        [
            (0.02, 0.01, "temper"),
            (0.02, 0.0151, "keep"),
            (-0.1, 0.01, "keep"),
            (np.nan, np.nan, "keep"),
        ],
    )
    def test_must_be_worth_it(self, mean, error, verdict):
        assert verdict_of(Gain(mean, error)) == verdict


def parabolas(n=200, seed=0, centre=0.2):
    """Rows whose losses are parabolas in log beta with their own valleys."""
    rng = np.random.default_rng(seed)
    places = np.log(centre) + rng.standard_normal(n)

    def at(betas):
        return (np.log(np.maximum(betas, 1e-9))[:, None] - places) ** 2

    return HeldOut(half_decades((0.0, 3.0)), at, np.ones(n), np.ones(n), "gibbs")


class TestNotToldApart:
    @pytest.mark.parametrize("errors", [1.0, 2.0])
    @pytest.mark.parametrize("centre", [0.004, 0.2, 1.5])
    @pytest.mark.parametrize("groups", [None, np.arange(200) // 5])
    def test_ends_are_those_of_a_scan(self, groups, centre, errors):
        table = parabolas(centre=centre)
        table = HeldOut(**vars_of(table) | {"groups": groups})
        beta = minimum(table, (0.0, 3.0)).beta
        low, high = not_told_apart(table, beta, (0.0, 3.0), errors)

        def away(other):
            rows = table.at(np.array([other, beta]))
            mean, error = mean_and_error(rows[0] - rows[1], table.share, table.counts, table.groups)
            return mean / error

        grid = np.geomspace(1e-4, 3.0, 3000)
        accepted = grid[[beta == each or not away(each) > errors for each in grid]]
        assert low == pytest.approx(accepted[0], rel=5e-3)
        assert high == pytest.approx(accepted[-1], rel=5e-3)
        assert low < beta < high
        if low > 0:
            assert away(low) == pytest.approx(errors, abs=0.02)

    def test_a_bound_that_is_as_good_is_the_end(self):
        table = parabolas()
        beta = minimum(table, (0.0, 3.0)).beta
        bounds = 0.95 * beta, 1.05 * beta
        assert not_told_apart(table, beta, bounds) == bounds
        for bound in bounds:
            assert bound in not_told_apart(table, bound, bounds)

    def test_one_row_tells_nothing_apart(self):
        assert not_told_apart(parabolas(1), 0.2, (0.0, 3.0)) == (0.0, 3.0)

    def test_rows_that_agree_tell_all_apart(self):
        def at(betas):
            return np.repeat((betas[:, None] - 0.5) ** 2, 30, axis=1)

        table = HeldOut(half_decades((0.0, 3.0)), at, np.ones(30), np.ones(30), "gibbs")
        low, high = not_told_apart(table, 0.5, (0.0, 3.0))
        assert low == pytest.approx(0.5, rel=0.01) and high == pytest.approx(0.5, rel=0.01)


class TestMeanAndError:
    def test_copies_and_weights(self):
        rng = np.random.default_rng(0)
        loss, copies = rng.standard_normal(12), rng.integers(1, 5, 12)
        one = mean_and_error(loss, copies.astype(float), copies.astype(float))
        every = np.repeat(loss, copies)
        n = len(every)
        assert one[0] == pytest.approx(every.mean())
        assert one[1] == pytest.approx(every.std(ddof=1) / np.sqrt(n))

    def test_groups_are_the_observations(self):
        rng = np.random.default_rng(1)
        loss, groups = rng.standard_normal(40), rng.permutation(np.repeat(np.arange(8), 5))
        shares = rng.uniform(0.5, 2.0, 40)
        mean, error = mean_and_error(loss, shares, np.ones(40), groups)
        weights = np.bincount(groups, shares)
        means = np.bincount(groups, shares * loss) / weights
        assert mean == pytest.approx(np.average(loss, weights=shares))
        expected = mean_and_error(means, weights, np.ones(8))
        assert (mean, error) == pytest.approx(expected)
        names = np.array([f"group {k}" for k in groups])
        assert mean_and_error(loss, shares, np.ones(40), names) == pytest.approx((mean, error))

    def test_squares_that_would_overflow(self):
        mean, error = mean_and_error(np.array([1e200, 3e200]), np.ones(2), np.ones(2))
        assert (mean, error) == pytest.approx((2e200, 1e200))


def test_a_gain_of_a_few_rows_has_no_error_and_keeps_bayes():
    losses = np.array([[1.0, 1.0], [0.5, 0.5]])
    gain = gain_of(held_out_losses(np.array([1.0, 3.0]), losses), losses[1])
    assert gain.mean == pytest.approx(0.5)
    assert np.isnan(gain.error)
    assert verdict_of(gain) == "keep"


def test_infinite_losses_are_named():
    losses = np.array([[1.0, 1.0], [0.5, np.inf]])
    with pytest.raises(ValueError, match=r"losses must be finite, got inf at beta = 3 in row 1"):
        held_out_losses(np.array([1.0, 3.0]), losses)
