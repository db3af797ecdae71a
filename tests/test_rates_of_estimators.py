"""Rates and intervals of coefficients: kinks of any number, observations, units, defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy import special, stats

from temperance import GibbsClassifier, GibbsRegressor, calibrate, losses, models
from temperance.data import Data
from temperance.losses import Loss
from temperance.messages import BoundWarning, PriorWarning
from temperance.models.glm.information import kernel_curvature
from temperance.strategies import Coverage, Sandwich
from temperance.strategies.coverage import minimiser_of
from temperance.uncertainty.information import Units

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 2))
Y = 1 + 2 * X[:, 0] + RNG.standard_normal(120)


@dataclass(frozen=True)
class Insensitive(Loss):
    """Loss max(0, |u - y| - width) + curved (u - y)^2 / 2."""

    width: float = 1.0
    curved: float = 0.0
    name: ClassVar[str] = "insensitive loss"
    smooth: ClassVar[bool] = False

    def value(self, u, y):
        return np.maximum(0.0, np.abs(u - y) - self.width) + self.curved * (u - y) ** 2 / 2

    def derivatives(self, u, y):
        first = np.sign(u - y) * (np.abs(u - y) > self.width) + self.curved * (u - y)
        return first, np.full_like(first, self.curved), np.zeros_like(first)

    def bends(self, y):
        centres = np.stack([y - self.width, y + self.width])
        return centres, np.zeros_like(centres)


@pytest.mark.parametrize(("width", "curved"), [(0.5, 0.0), (1.0, 0.0), (1.0, 0.7)])
def test_every_kink_and_the_curvature_between_them_count(width, curved):
    n = 20_000
    y = np.random.default_rng(1).standard_normal(n)
    data = Data(np.ones((n, 1)), y, np.ones(n))
    found = kernel_curvature(Insensitive(width, curved), np.zeros(n), data).mean()
    assert found == pytest.approx(2 * stats.norm.pdf(width) + curved, rel=0.05)


def test_outer_quantiles_of_few_rows_leave_the_sandwich():
    with pytest.raises(ValueError, match=r"at least 8 rows on either side of each kink"):
        calibrate(models.GibbsLinear(losses.Pinball(0.99)), _design(X), Y, Sandwich())
    model, rows = models.GibbsLinear(losses.Pinball(0.99)), Data(_design(X), Y, np.ones(len(Y)))
    found = minimiser_of(model, Units(rows))
    assert np.mean(Y > _design(X) @ found) < 0.02


@pytest.mark.slow
def test_intervals_of_outer_quantiles_cover():
    covered = []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((60, 1))
        y = x[:, 0] + rng.standard_normal(60)
        fitted = GibbsRegressor(loss="quantile", quantile=0.97).fit(x, y)
        assert isinstance(fitted.calibration_.strategy, Coverage)
        low, high = fitted.coefficients().interval(0.95)[1]
        covered.append(low < 1 < high)
    assert np.mean(covered) > 0.8


def _design(X):
    return np.column_stack([np.ones(len(X)), X])


def test_ranges_leave_out_observations_not_distinct_rows():
    n = 2000
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2, n).astype(float)
    y = rng.poisson(np.exp(0.5 * x)) * rng.integers(1, 3, n)
    model = models.GibbsLinear(losses.Poisson(), "laplace")
    few = calibrate(model, _design(x[:, None]), y, Sandwich()).beta_range
    jittered = x[:, None] + 1e-7 * rng.standard_normal((n, 1))
    many = calibrate(model, _design(jittered), y, Sandwich()).beta_range
    assert np.log(few) == pytest.approx(np.log(many), abs=0.03)


@pytest.mark.parametrize("correction", ["HC0", "HC3"])
def test_rates_by_direction_have_the_correction(correction):
    rows, y = _design(X[:30]), Y[:30]
    found = calibrate(models.GaussianLinear(), rows, y, Sandwich(correction=correction))
    assert 1 / np.mean(1 / found.rate.by_direction) == pytest.approx(found.beta)


def test_bounds_allow_for_good_fits():
    x = np.random.default_rng(3).uniform(0, 100, (300, 1))
    y = 10 * x[:, 0] + np.random.default_rng(4).standard_normal(300)
    found = GibbsRegressor(loss="quantile").fit(x, y).calibration_  # no BoundWarning
    assert found.bounds[0] < found.beta < found.bounds[1]


def test_a_rule_at_the_bound_does_not_promise_more():
    with pytest.warns(BoundWarning, match="finds no beta inside the bounds"):
        calibrate(models.GaussianLinear(), X, Y, Coverage(n_draws=50), bounds=(0.0, 0.001))


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_strong_priors_warn_those_who_gave_them(loss):
    """Nearly equal columns: coefficients of thousands, where even a wide prior shrinks."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 1)) + 0.003 * rng.standard_normal((30, 2))
    y = rng.random(30) < special.expit(3 * X[:, 0])
    model = GibbsClassifier(loss, target="coefficients", strategy="sandwich").fit(X, y)
    assert "but the prior is not weak" in str(model.calibration_)
    with pytest.warns(PriorWarning, match="prior_scale in the estimators"):
        model.set_params(prior_scale=1.0).fit(X, y)
    model.set_params(prior_scale=1e4).fit(X, y)
    assert "weak" not in str(model.calibration_)


class TestCoefficients:
    def test_of_classes_have_the_full_covariance(self):
        rng = np.random.default_rng(5)
        rows = rng.standard_normal((300, 1)) + 0.33 * rng.standard_normal((300, 2))
        y = rng.random(300) < 1 / (1 + np.exp(-rows @ [0.5, -0.5]))
        fitted = GibbsClassifier(target="coefficients").fit(rows, y)
        assert isinstance(fitted.calibration_.model, models.FullCovarianceLogistic)
        assert GibbsClassifier().kind_of_model() is models.MeanFieldLogistic
        narrow = GibbsClassifier("logistic", "mean-field", target="coefficients").fit(rows, y)
        assert np.all(fitted.coefficients().std[1:] > 1.5 * narrow.coefficients().std[1:])

    @pytest.mark.parametrize("loss", ["squared", "student-t", "huber"])
    def test_of_the_sandwich_are_in_units_of_the_data(self, loss):
        units = np.array([10.0, 0.01])
        plain = GibbsRegressor(loss=loss, target="coefficients").fit(X, Y)
        other = GibbsRegressor(loss=loss, target="coefficients").fit(X * units, 7 + 3 * Y)
        one, two = (each.coefficients(sandwich="HC3") for each in (plain, other))
        scale = 3 / np.r_[1.0, units]
        np.testing.assert_allclose(two.std, one.std * scale, rtol=1e-4)
        np.testing.assert_allclose(two.mean, one.mean * scale + [7, 0, 0], rtol=1e-4)
        near = plain.coefficients()
        assert np.all(np.abs(one.mean - near.mean) < near.std)
        with pytest.raises(ValueError, match="beta must be None with a sandwich"):
            plain.coefficients(beta=1.0, sandwich="HC0")

    def test_of_the_sandwich_agree_with_least_squares(self):
        found = GibbsRegressor(target="coefficients").fit(X, Y).coefficients(sandwich="HC3")
        Z = _design(X)
        inverse = np.linalg.inv(Z.T @ Z)
        theta = inverse @ Z.T @ Y
        left = 1 - np.einsum("ij,jk,ik->i", Z, inverse, Z)
        meat = (Z.T * ((Y - Z @ theta) / left) ** 2) @ Z
        np.testing.assert_allclose(found.mean, theta, rtol=1e-8)
        np.testing.assert_allclose(found.std, np.sqrt(np.diag(inverse @ meat @ inverse)), rtol=1e-8)


class TestBands:
    """The band of the fitted value with the covariance of the sandwich."""

    @pytest.mark.parametrize("loss", ["squared", "quantile"])
    @pytest.mark.parametrize("correction", ["HC0", "HC3"])
    def test_at_0_and_between_0_and_1_are_those_of_coefficients(self, loss, correction):
        """At 0 the intercept's; the difference of two rows is a slope times their distance."""
        model = GibbsRegressor(loss=loss, target="coefficients").fit(X * [10.0, 0.01], 7 + 3 * Y)
        known = model.coefficients(sandwich=correction)
        found = model.fitted_value(np.zeros((1, 2)), sandwich=correction)
        np.testing.assert_allclose([found.mean[0], found.std[0]], [known.mean[0], known.std[0]])
        far = np.array([[1e9, 0.0], [0.0, 1e9]])  # there the intercept is nothing
        found = model.fitted_value(far, sandwich=correction)
        np.testing.assert_allclose(found.mean / 1e9, known.mean[1:], rtol=1e-5)
        np.testing.assert_allclose(found.std / 1e9, known.std[1:], rtol=1e-5)

    def test_has_the_covariance_of_least_squares(self):
        model = GibbsRegressor(target="coefficients").fit(X, Y)
        Z, inverse = _design(X), np.linalg.inv(_design(X).T @ _design(X))
        e = Y - Z @ inverse @ Z.T @ Y
        cov = inverse @ (Z.T * e**2) @ Z @ inverse
        found = model.fitted_value(X[:5], sandwich="HC0")
        np.testing.assert_allclose(found.std**2, np.einsum("ij,jk,ik->i", Z, cov, Z)[:5], rtol=1e-8)
        assert np.abs(found.std / model.fitted_value(X[:5]).std - 1).max() > 0.02

    def test_is_the_interval_where_there_are_no_forecasts(self):
        model = GibbsRegressor("quantile").fit(X, Y)
        band = model.predict_interval(X[:4], [0.5, 0.9], sandwich="HC0")
        law = model.fitted_value(X[:4], sandwich="HC0")
        np.testing.assert_array_equal(band, law.interval([0.5, 0.9]))
        ends = stats.norm(law.mean, law.std).interval(0.9)
        np.testing.assert_allclose(band[1], np.transpose(ends), rtol=1e-10)
        with pytest.raises(ValueError, match="beta must be None with a sandwich"):
            model.fitted_value(X, beta=1.0, sandwich="HC0")
        with pytest.raises(ValueError, match="sandwich must be one of 'HC0', 'HC3', got 'HC9'"):
            model.fitted_value(X, sandwich="HC9")
        with pytest.raises(
            ValueError, match=r"sandwich must be None for new responses.*fitted_val"
        ):
            GibbsRegressor(target="coefficients").fit(X, Y).predict_interval(X, sandwich="HC0")


class TestRefusals:
    @pytest.mark.parametrize("scale", ["auto", 1.0])
    @pytest.mark.parametrize(
        ("strategy", "message"),
        [
            ("prior-information", "needs a model .* got GibbsLinear; use Sandwich"),
            ("reference-risk", r"as models of the squared loss have .* got GibbsLinear; use KFold"),
            ("stacking", "another than Stacking, which is for forecasts, .* that is no likelihood"),
        ],
    )
    def test_strategies_that_a_quantile_does_not_have(self, strategy, message, scale):
        with pytest.raises(ValueError, match=message) as refused:
            GibbsRegressor("quantile", strategy=strategy, prior_scale=scale).fit(X, Y)
        assert "give prior_scale" not in str(refused.value)

    @pytest.mark.parametrize(
        ("strategy", "message"),
        [
            ("sandwich", "risk must be 'gibbs' for GibbsLinear with a loss that is no likelihood"),
            ("coverage", "risk must be 'gibbs' for GibbsLinear with a loss that is no likelihood"),
            ("stacking", "strategy must be another than Stacking"),
            (None, "risk must be 'gibbs' for the pinball loss"),
        ],
    )
    def test_the_predictive_risk_of_a_quantile(self, strategy, message):
        model = models.GibbsLinear(losses.Pinball(0.5), prior_cov=100.0)
        with pytest.raises(ValueError, match=message):
            calibrate(model, _design(X), Y, strategy, risk="predictive")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"quantile": 0.9}, "quantile is for loss='quantile', got 0.9 for loss='squared'"),
            (
                {"loss": "huber", "noise_variance": 4.0},
                "noise_variance is for loss='squared', got 4.0 for loss='huber'",
            ),
        ],
    )
    def test_arguments_that_the_loss_does_not_use(self, options, message):
        with pytest.raises(ValueError, match=message):
            GibbsRegressor(**options).fit(X, Y)

    @pytest.mark.parametrize("loss", ["student-t", "huber"])
    @pytest.mark.parametrize("rows", [2, 60])
    def test_scales_of_exact_fits(self, loss, rows):
        with pytest.raises(ValueError, match=r"y must leave residuals .* fitted exactly"):
            GibbsRegressor(loss=loss).fit(X[:rows], 1 + 2 * X[:rows, 0])

    def test_gains_without_a_likelihood(self):
        fitted = GibbsRegressor(loss="huber").fit(X, Y)
        with pytest.raises(ValueError, match="gains over Bayes are for likelihoods"):
            fitted.gains(X, Y)

    def test_draws_of_classes_without_probabilities(self):
        fitted = GibbsClassifier(loss="hinge").fit(X, Y > 1)
        assert not hasattr(fitted, "sample_y")

    @pytest.mark.parametrize("kind", [GibbsRegressor, GibbsClassifier])
    def test_showing_an_estimator_checks_nothing(self, kind):
        assert "foo" in kind(loss="foo")._repr_html_()


def test_an_offset_may_be_a_number_of_numpy():
    assert models.GibbsLinear(losses.Poisson(), offset=np.int64(1)).offset_column == 1


def test_the_level_of_counts_is_the_logarithm_of_their_mean():
    y = np.r_[np.zeros(95), np.full(5, 40.0)]
    fitted = GibbsRegressor(loss="poisson", strategy="bayes").fit(X[:100], y)
    assert fitted.calibration_.model.prior_mean[0] == pytest.approx(np.log(y.mean()))
