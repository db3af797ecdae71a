"""The table of held-out losses: means, slopes, what lies between its betas, and the betas."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from temperance import calibrate, models, strategies
from temperance.table import (
    HeldOut,
    Interpolated,
    half_decades,
    held_out_losses,
    pooled,
    scanned,
)

BETAS = half_decades((0.0, 3.0))
RATES = np.random.default_rng(0).uniform(0.1, 30.0, 12)


def losses(betas):
    return 1 / (1 + betas[:, None] * RATES) + 0.1 * betas[:, None] + np.arange(12.0)


def table(**options):
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 12)
    given = {"weights": weights, "counts": weights, "score": "gibbs", "analytic": True}
    return HeldOut(BETAS, losses, **given | options)


class TestMeans:
    def test_are_weighted(self):
        held = table()
        betas = np.array([0.0, 0.03, 2.0])
        expected = np.average(losses(betas), axis=1, weights=held.weights)
        np.testing.assert_allclose(held.risk(betas), expected)
        np.testing.assert_allclose(held(betas), expected)
        assert held.share.sum() == pytest.approx(1.0)
        np.testing.assert_array_equal(held.losses, losses(BETAS))

    def test_take_numbers_and_arrays_of_any_shape(self):
        held = table()
        betas = np.array([[0.0, 0.3, 1.0], [2.0, 3.0, 10.0]])
        values, slopes = held(betas, derivative=True)
        assert values.shape == slopes.shape == (2, 3)
        for at, value, slope in zip(betas.flat, values.flat, slopes.flat, strict=True):
            assert np.ndim(held(at)) == 0
            assert (value, slope) == pytest.approx(held(float(at), derivative=True), rel=1e-13)
        assert held([]).shape == held([], derivative=True)[1].shape == (0,)
        with pytest.raises(ValueError, match="^beta must be finite and non-negative, got -1.0$"):
            held(-1.0)

    def test_pooled_losses_are_means_of_groups(self):
        groups = np.array(list("abcabcabcabc"))
        share = np.random.default_rng(2).uniform(0.0, 1.0, 12)
        share[[0, 3, 6, 9]] = 0.0  # "a" was not tested
        means, sums = pooled(losses(BETAS), share, groups)
        for k, name in enumerate("bc"):
            some = groups == name
            assert sums[k] == pytest.approx(share[some].sum())
            expected = np.average(losses(BETAS)[:, some], axis=1, weights=share[some])
            np.testing.assert_allclose(means[:, k], expected)


class TestSlopes:
    @pytest.mark.parametrize("analytic", [True, False], ids=["complex steps", "differences"])
    def test_are_derivatives(self, analytic):
        held = table(analytic=analytic)
        betas = np.array([0.0, 1e-4, 0.3, 2.0, 40.0])
        exact = -RATES / (1 + betas[:, None] * RATES) ** 2 + 0.1
        expected = np.average(exact, axis=1, weights=held.weights)
        rel = 1e-13 if analytic else 1e-5
        np.testing.assert_allclose(held.slope(betas), expected, rtol=rel, atol=1e-9)

    def test_steps_along_the_imaginary_axis_have_no_rounding(self):
        held = HeldOut(BETAS, lambda b: (b**2 + 1e12)[:, None], *[np.ones(1)] * 2, "gibbs")
        exact = HeldOut(**vars_of(held) | {"analytic": True}).slope(np.array([0.3]))
        assert exact == pytest.approx(0.6, rel=1e-15)
        assert held.slope(np.array([0.3])) != pytest.approx(0.6, rel=1e-2)


def vars_of(held):
    return {name: getattr(held, name) for name in HeldOut.__dataclass_fields__}


class TestInterpolation:
    def test_is_exact_at_the_betas_and_constant_beyond(self):
        betas = np.r_[0.0, BETAS]
        between = Interpolated(betas, losses(betas))
        np.testing.assert_allclose(between(betas), losses(betas), rtol=1e-13)
        np.testing.assert_allclose(between(np.array([7.0])), losses(betas[-1:]), rtol=1e-13)
        without = Interpolated(BETAS, losses(BETAS))
        np.testing.assert_allclose(without(np.array([0.0])), losses(BETAS[:1]), rtol=1e-13)

    def test_is_straight_from_zero_to_the_first_beta(self):
        betas = np.r_[0.0, BETAS]
        found = Interpolated(betas, losses(betas))(np.array([0.25, 0.5, 0.75]) * BETAS[0])
        ends = losses(betas[:2])
        expected = [(1 - part) * ends[0] + part * ends[1] for part in (0.25, 0.5, 0.75)]
        np.testing.assert_allclose(found, expected, rtol=1e-13)

    def test_is_close_in_between(self):
        middle = np.sqrt(BETAS[1:] * BETAS[:-1])
        found = Interpolated(BETAS, losses(BETAS))(middle)
        np.testing.assert_allclose(found, losses(middle), atol=0.02)

    def test_the_order_of_what_is_asked_does_not_matter(self):
        between = Interpolated(BETAS, losses(BETAS))
        betas = np.array([2.0, 0.01, 0.3, 0.01])
        one_by_one = [between(np.array([beta]))[0] for beta in betas]
        np.testing.assert_allclose(between(betas), one_by_one)

    @pytest.mark.parametrize("betas", [[0.7], [0.0, 0.7], [0.1, 0.7], [0.0, 0.1, 0.7]])
    def test_of_few_betas(self, betas):
        betas = np.array(betas)
        between = Interpolated(betas, losses(betas))
        np.testing.assert_allclose(between(betas), losses(betas), rtol=1e-13)
        assert between(np.array([0.0, 0.3, 9.0])).shape == (3, 12)
        assert np.isfinite(between(np.array([0.0, 0.3, 9.0]))).all()

    def test_slopes_are_differences(self):
        held = held_out_losses(BETAS, losses(BETAS))
        step = np.array([0.3 - 1e-6, 0.3 + 1e-6])
        rise = np.diff(held.risk(step))[0] / 2e-6
        assert held(0.3, derivative=True)[1] == pytest.approx(rise, rel=1e-5)


class TestKept:
    def test_has_the_means_at_the_betas_and_no_rows(self):
        held = table(votes=5.0, method="by hand", groups=np.arange(12))
        kept = held.kept()
        np.testing.assert_allclose(kept.risk(BETAS), held.risk(BETAS), rtol=1e-13)
        middle = np.sqrt(BETAS[1:] * BETAS[:-1])
        np.testing.assert_allclose(kept.risk(middle), held.risk(middle), atol=0.01)
        assert (kept.votes, kept.method, kept.score) == (5.0, "by hand", "gibbs")
        assert kept.losses.shape == (len(BETAS), 1) and kept.groups is None

    def test_can_be_sent_to_other_processes(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((2000, 2))
        y = X[:, 0] + rng.standard_normal(2000)
        held = calibrate(models.GaussianLinear(), X, y, strategies.Bayes()).table
        sent = pickle.dumps(held.kept())
        assert len(sent) < 2000 < len(pickle.dumps(held))
        np.testing.assert_array_equal(pickle.loads(sent).risk(BETAS), held.kept().risk(BETAS))


class TestBetas:
    @pytest.mark.parametrize(
        "bounds", [(0.0, 3.0), (0.0, 1e-5), (0.02, 0.5), (0.3, 0.31), (2.0, 1e4), (0.0, 1e100)]
    )
    def test_are_half_a_decade_apart_and_hold_the_bounds(self, bounds):
        found = half_decades(bounds)
        assert found[-1] == bounds[1]
        assert found[0] == max(bounds[0], min(1e-3, bounds[1] / 10))
        assert np.all(np.diff(found) > 0)
        assert np.all(np.diff(np.log10(found)) < 0.5 + 1e-9)
        assert (1.0 in found) == (found[0] <= 1 <= bounds[1])

    def test_three_decades_are_scanned(self):
        np.testing.assert_array_equal(scanned((0.0, 3.0)), BETAS)
        low = scanned((0.0, 1e-6))
        assert low[0] == pytest.approx(1e-9) and low[-1] == 1e-6
        assert scanned((0.0, 3.0), 1e-7)[0] == 1e-7

    def test_may_begin_lower(self):
        assert half_decades((0.0, 3.0), 1e-7)[0] == 1e-7
        assert half_decades((0.5, 3.0), 1e-7)[0] == 0.5
