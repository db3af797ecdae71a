"""The estimators: scikit-learn's own checks, and agreement with the core to the last digit."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, special, stats
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import temperance
from temperance import GibbsClassifier, GibbsRegressor, calibrate, models, strategies
from temperance import data as memory
from temperance.estimators.classifier import POSTERIORS
from temperance.estimators.coordinates import count_terms
from temperance.estimators.prior_scale import guessed_noise_variance, weak_noise_model
from temperance.losses import Poisson
from temperance.messages import TemperanceWarning

pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")

RISKS = {"forecasts": "predictive", "draws": "gibbs"}  # of targets whose beta has least risk
NO_STACK = ("stacking", "draws")
NUMBERS = ("beta", "alpha", "risk", "standard_error", "gain", "gain_standard_error")


class OfRealNumbers(Poisson):
    """The Poisson loss of what scikit-learn's checks take for counts: positive numbers."""

    def check(self, y):
        """Take them."""


CHECKED = [
    GibbsRegressor(),
    GibbsRegressor(noise_variance=0.5, transfer="alpha"),
    GibbsRegressor(degree=2, target="draws", standardize=False),
    GibbsRegressor(fit_intercept=False, prior_scale=0.5),
    GibbsClassifier(posterior="laplace", target="draws", prior_scale=1.0),
    GibbsClassifier(posterior="jaakkola", strategy="bayes", prior_scale=1.0, degree=2),
    GibbsRegressor(loss="quantile", target="draws", bounds=(0.0, 3.0)),
    GibbsRegressor(loss=OfRealNumbers(), strategy="bayes", prior_scale=1.0),
]


@pytest.mark.filterwarnings("ignore")  # the checks warn of their own making
@parametrize_with_checks(CHECKED)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        GibbsClassifier(),
        GibbsClassifier(loss="hinge", target="draws"),
        GibbsClassifier(loss="probit", posterior="laplace", strategy="bayes", prior_scale=1.0),
    ]
)
def test_scikit_learn_without_options(estimator, check):
    check(estimator)


@pytest.mark.slow
def test_no_check_is_skipped_for_want_of_a_setting():
    """One check needs a variable of the environment, set before scipy is imported."""
    script = """
from sklearn.utils.estimator_checks import check_estimator
from temperance import GibbsClassifier, GibbsRegressor

for estimator in (
    GibbsRegressor(strategy="bayes"),
    GibbsClassifier(posterior="laplace", strategy="bayes"),
):
    for result in check_estimator(estimator, on_skip=None):
        assert result["status"] == "passed", result
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    return X[:120], y[:120]


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:90, :6], y[:90]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X[::2], np.array(["setosa", "versicolor", "virginica"])[y[::2]]


WEIGHTS = np.random.default_rng(0).integers(0, 4, 120).astype(float)


def scaled(values, weights):
    """Columns of weighted mean 0 and variance 1, from the definition."""
    mean = np.average(values, axis=0, weights=weights)
    return (values - mean) / np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights))


class TestAgreementWithTheCore:
    """One line of each estimator is written out with the core alone."""

    @pytest.mark.parametrize(
        ("strategy", "target"),
        [pair for pair in itertools.product(strategies.NAMES, RISKS) if pair != NO_STACK],
    )
    def test_regression(self, diabetes, strategy, target):
        X, y = (part.to_numpy() for part in diabetes)
        ours = GibbsRegressor(strategy=strategy, target=target, prior_scale=1.0, random_state=3)
        ours.fit(X, y, sample_weight=WEIGHTS)
        kept = WEIGHTS > 0
        X, y, weights = X[kept], y[kept], WEIGHTS[kept]
        mean = np.average(y, weights=weights)
        deviation = np.sqrt(np.average((y - mean) ** 2, weights=weights))
        rows = np.column_stack([np.ones(len(y)), scaled(X, weights)])
        core = calibrate(
            weak_noise_model(rows, scaled(y, weights), weights, 1.0),
            rows,
            scaled(y, weights),
            strategy,
            risk=RISKS[target],
            weights=weights,
            seed=3,
        )
        assert ours.inverse_temperature_ == pytest.approx(core.beta, rel=1e-9)
        assert ours.calibration_.risk == pytest.approx(core.risk, rel=1e-12)
        forecast, deviations = ours.predict(X, return_std=True)
        theirs = core.posterior.predict(rows)
        np.testing.assert_allclose(forecast, mean + deviation * theirs[0], rtol=1e-10)
        np.testing.assert_allclose(deviations, deviation * theirs[1], rtol=1e-10)

    def test_the_numbers_are_the_cores_to_the_last_digit(self, diabetes):
        X, y = diabetes
        for target, risk in RISKS.items():
            ours = GibbsRegressor(noise_variance=3000.0, target=target, prior_scale=1.0).fit(X, y)
            core = calibrate(
                models.GaussianLinear(noise_variance=3000.0 / ours._response.unit[0] ** 2),
                ours.coordinates_.rows(X.to_numpy()),
                ours._response(y.to_numpy()[:, None])[:, 0],
                risk=risk,
            )
            for name in NUMBERS:
                assert getattr(ours.calibration_, name) == getattr(core, name)

    @pytest.mark.parametrize("noise_variance", ["unknown", 3000.0])
    def test_forecasts_are_averaged_over_scales_of_the_prior(self, diabetes, noise_variance):
        X, y = diabetes
        ours = GibbsRegressor(noise_variance=noise_variance).fit(X, y)
        rows = ours.coordinates_.rows(X.to_numpy())
        response = ours._response(y.to_numpy()[:, None])[:, 0]
        guess = guessed_noise_variance(rows, response, np.ones(len(y)))
        known = None if noise_variance == "unknown" else 3000.0 / ours._response.unit[0] ** 2
        model = models.HierarchicalLinear(known, a=0.1, b=0.1 * guess)
        core = calibrate(model, rows, response, risk="predictive")
        for name in NUMBERS:
            ours_is = getattr(ours.calibration_, name)
            assert ours_is == pytest.approx(getattr(core, name), rel=1e-8, abs=1e-12)
        law = core.posterior.predictive(rows)
        np.testing.assert_allclose(ours._response(ours.predict(X)[:, None])[:, 0], law.mean)

    @pytest.mark.parametrize("noise_variance", ["unknown", 3000.0])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_draws_take_the_scale_of_largest_evidence(
        self, diabetes, noise_variance, fit_intercept
    ):
        X, y = diabetes
        options = {"noise_variance": noise_variance, "fit_intercept": fit_intercept}
        ours = GibbsRegressor(target="draws", **options).fit(X, y, sample_weight=WEIGHTS)
        model = ours.calibration_.model
        assert isinstance(model, models.GaussianLinear | models.NormalInverseGammaLinear)
        unit = getattr(model, "noise_variance", 1.0)
        averaged = GibbsRegressor(**options, strategy="bayes").fit(X, y, sample_weight=WEIGHTS)
        scales, weights = averaged.calibration_.posterior.scale_weights
        best = scales[np.argmax(weights)] ** 2
        level = [1e4] if fit_intercept else []
        assert model.prior_cov / unit == pytest.approx([*level, *np.full(10, best)])

    @pytest.mark.parametrize("posterior", POSTERIORS)
    def test_two_classes(self, cancer, posterior):
        X, y = cancer
        ours = GibbsClassifier(posterior=posterior, prior_scale=1.0, bounds=(0, 3)).fit(X, y)
        rows = ours.coordinates_.rows(X)
        core = calibrate(POSTERIORS[posterior](), rows, y, risk="predictive")
        assert ours.inverse_temperature_ == core.beta
        assert ours.calibration_.risk == core.risk
        np.testing.assert_allclose(
            ours.predict_proba(X)[:, 1], core.posterior.predict(rows), rtol=1e-12
        )

    def test_many_classes_have_one_joint_posterior(self, iris):
        X, y = iris
        names, codes = np.unique(y, return_inverse=True)
        ours = GibbsClassifier(prior_scale=2.0, target="draws").fit(X, y)
        rows = ours.coordinates_.rows(X)
        core = calibrate(models.SoftmaxLogistic(4.0), rows, codes, risk="gibbs", seed=0)
        assert ours.inverse_temperature_ == core.beta
        assert ours.calibration_.risk == core.risk
        np.testing.assert_array_equal(ours.predict_proba(X), core.posterior.predict(rows))
        np.testing.assert_array_equal(ours.predict(X), names[ours.predict_proba(X).argmax(axis=1)])
        assert [name for name, _ in ours.parts()] == list(names)

    def test_coefficients_of_many_classes_give_their_probabilities(self, iris):
        X, y = iris
        ours = GibbsClassifier(strategy="bayes", prior_scale=1.0).fit(X, y)
        assert ours.coef_.shape == (3, 4)
        assert ours.intercept_.shape == (3,)
        np.testing.assert_allclose(ours.coef_.sum(axis=0), 0, atol=1e-12)
        mode = special.softmax(ours.intercept_ + X @ ours.coef_.T, axis=1)
        theta = ours.calibration_.posterior.coefficients
        expected = special.softmax(ours.coordinates_.rows(X) @ theta.T, axis=1)
        np.testing.assert_allclose(mode, expected, rtol=1e-9)
        # Draws of the coefficients, less their mean over the classes, have the law of each class.
        draws = ours.calibration_.posterior.sample(40_000, seed=0).reshape(-1, 3, 5)
        draws = draws - draws.mean(axis=1, keepdims=True)
        law, unit = ours.coefficients(1), ours.coordinates_.terms.unit
        np.testing.assert_allclose(law.std[1:], (draws[:, 1, 1:] / unit).std(axis=0), rtol=0.02)

    def test_intervals_of_many_classes_are_quantiles_of_draws(self, iris):
        X, y = iris
        ours = GibbsClassifier(strategy="bayes", prior_scale=1.0).fit(X, y)
        ends = ours.predict_interval(X[60:65], 0.8)
        assert ends.shape == (5, 3, 2)
        theta = ours.calibration_.posterior.sample(40_000, seed=0).reshape(-1, 3, 5)
        p = special.softmax(ours.coordinates_.rows(X[60:65]) @ theta.swapaxes(1, 2), axis=2)
        expected = np.moveaxis(np.quantile(p, [0.1, 0.9], axis=0), 0, 2)
        np.testing.assert_allclose(special.logit(ends), special.logit(expected), 0.02, 0.06)

    def test_classes_take_the_prior_that_forecasts_best(self, cancer):
        X, y = cancer
        ours = GibbsClassifier(posterior="laplace", strategy="bayes").fit(X, y)
        model, data = ours.calibration_.model, ours.calibration_.data
        level, *scales = np.sqrt(model.prior_cov)
        assert level == 10
        assert np.ptp(scales) == 0
        folds, plan = strategies.KFold().planned(data, np.random.default_rng(0))

        def risk(scale):
            variances = np.array([100.0, *np.full(len(scales), scale**2)])
            curve = models.LaplaceLogistic(prior_cov=variances).risk_curve(
                folds, plan, "predictive"
            )
            return curve(np.array([2.0, 16.0])).min()

        best = min(map(risk, np.geomspace(0.03, 10, 30)))
        assert risk(scales[0]) < best + 5e-3

    def test_bayes_with_a_wide_prior_is_least_squares(self, diabetes):
        X, y = diabetes
        ours = GibbsRegressor(strategy="bayes", prior_scale=1e4).fit(X, y)
        least_squares = np.linalg.lstsq(np.column_stack([np.ones(len(y)), X]), y, rcond=None)[0]
        np.testing.assert_allclose(ours.intercept_, least_squares[0], rtol=1e-4)
        np.testing.assert_allclose(ours.coef_, least_squares[1:], rtol=1e-4)


class TestUnits:
    @pytest.mark.parametrize("noise_variance", ["unknown", 2000.0])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("degree", [1, 2])
    def test_a_change_of_units_changes_nothing_else(
        self, diabetes, noise_variance, fit_intercept, degree
    ):
        X, y = (part.to_numpy() for part in diabetes)
        X = X[:, :3]
        options = {"degree": degree, "fit_intercept": fit_intercept, "random_state": 0}
        shift = 100.0 if fit_intercept else 0.0
        one = GibbsRegressor(noise_variance=noise_variance, **options).fit(X, y)
        other_variance = noise_variance if noise_variance == "unknown" else 9 * noise_variance
        other = GibbsRegressor(noise_variance=other_variance, **options).fit(
            1e3 * X + shift, 3 * y + shift
        )
        assert other.inverse_temperature_ == pytest.approx(one.inverse_temperature_, rel=1e-5)
        ours, theirs = one.predict_interval(X), other.predict_interval(1e3 * X + shift)
        np.testing.assert_allclose(theirs, 3 * ours + shift, rtol=1e-5)

    @pytest.mark.parametrize("degree", [1, 3])
    @pytest.mark.parametrize("standardize", [True, False])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_coefficients_give_the_predictions(self, diabetes, degree, standardize, fit_intercept):
        X, y = diabetes[0].to_numpy()[:, :2], diabetes[1].to_numpy()
        model = GibbsRegressor(
            degree=degree, standardize=standardize, fit_intercept=fit_intercept
        ).fit(X, y)
        inputs = X
        if degree > 1 and standardize:
            centre = X.mean(axis=0) if fit_intercept else 0.0
            inputs = (X - centre) / np.sqrt(np.mean((X - centre) ** 2, axis=0))
        terms = PolynomialFeatures(degree, include_bias=False).fit_transform(inputs)
        np.testing.assert_allclose(
            model.predict(X), model.intercept_ + terms @ model.coef_, rtol=1e-7
        )
        if not fit_intercept:
            assert model.intercept_ == 0
        assert model.terms_[:2] == ["x0", "x1"]
        assert len(model.terms_) == len(model.coef_)

    def test_coefficient_intervals_are_those_of_draws(self, diabetes):
        X, y = diabetes[0].to_numpy()[:, :3], diabetes[1].to_numpy()
        model = GibbsRegressor(strategy="bayes").fit(X, y)
        draws = model.calibration_.posterior.sample(20_000, seed=1)[:, :-1]
        at = np.vstack([np.zeros(3), np.eye(3)])
        rows = model.coordinates_.rows(at)
        values = model._response.centre[0] + model._response.unit[0] * draws @ rows.T
        values[:, 1:] -= values[:, :1]  # slopes, from the values at 0 and 1
        for uniform in model.coefficients().cdf(values).T:
            assert stats.kstest(uniform, "uniform").pvalue > 1e-3

    def test_logistic_coefficients_give_the_mean_of_the_predictor(self, cancer):
        X, y = cancer
        model = GibbsClassifier(strategy="k-fold").fit(X, y)
        predictor, _ = model.calibration_.posterior.linear_predictor(model.coordinates_.rows(X))
        np.testing.assert_allclose(
            (X @ model.coef_.T + model.intercept_)[:, 0], predictor, rtol=1e-8
        )
        # The probability is an expectation, nearer to one half than the plug-in.
        plug_in, ours = special.expit(predictor), model.predict_proba(X)[:, 1]
        assert np.all(np.abs(ours - 0.5) < np.abs(plug_in - 0.5))


class TestNoise:
    def test_the_guess_is_the_residual_variance_of_least_squares(self, diabetes):
        X, y = (scaled(part.to_numpy(), np.ones(120)) for part in diabetes)
        X = np.column_stack([X, X[:, 0]])  # a column more, but no direction
        fitted = X @ np.linalg.lstsq(X, y, rcond=None)[0]
        naive = np.sum((y - fitted) ** 2) / 110
        assert guessed_noise_variance(X, y, np.ones(120)) == pytest.approx(naive, rel=1e-10)
        copies = np.random.default_rng(1).integers(0, 3, 120)
        repeated = guessed_noise_variance(
            np.repeat(X, copies, axis=0), np.repeat(y, copies), np.ones(copies.sum())
        )
        assert guessed_noise_variance(X, y, copies + 0.0) == pytest.approx(repeated, rel=1e-10)

    def test_the_prior_is_the_asked_one_at_the_guess(self, diabetes):
        X, y = (scaled(part.to_numpy(), np.ones(120)) for part in diabetes)
        model, guess = (
            f(X, y, np.ones(120), *more)
            for f, *more in ((weak_noise_model, 0.3), (guessed_noise_variance,))
        )
        assert guess * model.prior_cov == pytest.approx(0.3)
        assert (model.a, model.b) == (0.1, 0.1 * guess)

    def test_the_guess_without_freedom_is_half_of_the_mean_square(self):
        X, y = np.random.default_rng(0).standard_normal((14, 10)), np.arange(14.0)
        assert guessed_noise_variance(X, y, np.ones(14)) == np.mean(y**2) / 2
        assert guessed_noise_variance(X[:, :9], y, np.ones(14)) != np.mean(y**2) / 2
        assert guessed_noise_variance(X, np.zeros(14), np.ones(14)) == 0.5

    @pytest.mark.parametrize("n", [30, 100, 400])
    @pytest.mark.parametrize("noise", [1e-5, 0.05, 0.5, 5.0])
    def test_forecasts_are_as_wide_as_the_noise(self, n, noise):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n + 4000, 3))
        y = 7 + X @ [1.0, 2.0, 3.0] + noise * rng.standard_normal(n + 4000)
        model = GibbsRegressor(strategy="bayes").fit(X[:n], y[:n])
        _, deviation = model.predict(X[n:], return_std=True)
        assert np.median(deviation) == pytest.approx(noise, rel=0.35 if n == 30 else 0.15)
        low, high = model.predict_interval(X[n:], level=0.5).T
        covered = np.mean((low < y[n:]) & (y[n:] < high))
        assert abs(covered - 0.5) < (0.15 if n == 30 else 0.08)

    @pytest.mark.parametrize("noise_variance", ["unknown", 0.25])
    def test_a_constant_of_ones_own_is_an_intercept(self, noise_variance):
        rng = np.random.default_rng(0)
        x = rng.standard_normal(100)
        y = 1000 + x + 0.5 * rng.standard_normal(100)
        own = GibbsRegressor(noise_variance=noise_variance, strategy="bayes", fit_intercept=False)
        own.fit(np.column_stack([np.ones(100), x]), y)
        ours = GibbsRegressor(noise_variance=noise_variance, strategy="bayes").fit(x[:, None], y)
        inputs = np.column_stack([np.ones(100), x])
        assert own.score(inputs, y) == pytest.approx(ours.score(x[:, None], y), abs=0.02)
        width = np.median(own.predict(inputs, return_std=True)[1])
        assert width == pytest.approx(0.5, rel=0.2)


class TestForecasts:
    def test_intervals_are_those_of_the_law(self, diabetes):
        X, y = diabetes
        one = {"prior_scale": 1.0, "strategy": "k-fold"}
        known = GibbsRegressor(noise_variance=3000.0, **one).fit(X, y)
        mean, deviation = known.predict(X, return_std=True)
        low, high = known.predict_interval(X, level=0.9).T
        np.testing.assert_allclose(low, stats.norm.ppf(0.05, mean, deviation), rtol=1e-10)
        unknown = GibbsRegressor(**one).fit(X, y)
        dof = 2 * unknown.calibration_.posterior.a
        mean, deviation = unknown.predict(X, return_std=True)
        low, high = unknown.predict_interval(X, level=0.9).T
        scale = deviation * np.sqrt((dof - 2) / dof)
        np.testing.assert_allclose(high, stats.t.ppf(0.95, dof, mean, scale), rtol=1e-10)

    def test_draws_are_reproducible_and_follow_the_forecast(self, diabetes):
        X, y = diabetes
        model = GibbsRegressor(random_state=0).fit(X, y)
        draws = model.sample_y(X[:3], 20_000, random_state=5)
        assert draws.shape == (3, 20_000)
        np.testing.assert_array_equal(draws, model.sample_y(X[:3], 20_000, random_state=5))
        assert not np.array_equal(draws, model.sample_y(X[:3], 20_000, random_state=6))
        for uniform in model.forecast(X[:3]).cdf(draws.T).T:
            assert stats.kstest(uniform, "uniform").pvalue > 1e-3
        at = [0.1, 0.9]
        away = np.quantile(draws, at, axis=1) - model.predict_quantile(X[:3], at)
        assert np.all(np.abs(away) < 0.05 * draws.std(axis=1))

    def test_drawn_classes_follow_the_probabilities(self, iris):
        X, y = iris
        model = GibbsClassifier(posterior="laplace", strategy="bayes").fit(X, y)
        draws = model.sample_y(X[40:45], 20_000, random_state=1)
        assert draws.shape == (5, 20_000)
        share = np.stack([(draws == label).mean(axis=1) for label in model.classes_], axis=1)
        expected = model.predict_proba(X[40:45])
        error = np.sqrt(expected * (1 - expected) / 20_000)
        assert np.all(np.abs(share - expected) < 4 * error + 1e-9)

    def test_another_beta_can_be_asked_for(self, diabetes, cancer):
        X, y = diabetes
        bayes = GibbsRegressor(strategy="bayes").fit(X, y)
        ours = GibbsRegressor(random_state=0).fit(X, y)
        np.testing.assert_array_equal(ours.forecast(X, beta=1.0).scale, bayes.forecast(X).scale)
        np.testing.assert_array_equal(ours.coefficients(beta=1.0).mean, bayes.coefficients().mean)
        X, y = cancer
        bayes = GibbsClassifier(strategy="bayes").fit(X, y)
        ours = GibbsClassifier(random_state=0).fit(X, y)
        np.testing.assert_array_equal(ours.coefficients(beta=1.0).scale, bayes.coefficients().scale)
        np.testing.assert_array_equal(ours.predict_proba(X, beta=1.0), bayes.predict_proba(X))


class TestCitizenship:
    def test_weights_are_copies_for_every_class(self, iris):
        X, y = (part[::3] for part in iris)
        weights = np.random.default_rng(2).integers(0, 3, len(y))
        one = GibbsClassifier(posterior="laplace").fit(X, y, sample_weight=weights)
        X_copies, y_copies = np.repeat(X, weights, axis=0), np.repeat(y, weights)
        other = GibbsClassifier(posterior="laplace").fit(X_copies, y_copies)
        np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-5)

    def test_pipelines_grids_and_scores(self, diabetes, cancer):
        X, y = diabetes
        pipeline = make_pipeline(StandardScaler(), GibbsRegressor(random_state=0))
        pipeline.set_output(transform="pandas")
        grid = GridSearchCV(
            pipeline,
            {
                "gibbsregressor__prior_scale": [0.1, 1.0],
                "gibbsregressor__strategy": ["bayes", "k-fold"],
                "gibbsregressor__degree": [1, 2],
            },
            cv=3,
        ).fit(X, y)
        assert list(grid.best_estimator_[-1].feature_names_in_) == list(X.columns)
        assert grid.best_score_ > 0.3
        scores = cross_val_score(
            GibbsClassifier(posterior="laplace", random_state=0),
            *cancer,
            cv=3,
            scoring="neg_log_loss",
        )
        assert scores.min() > -0.5

    def test_frames_have_names_and_order_matters(self, diabetes):
        X, y = diabetes
        model = GibbsRegressor(random_state=0).fit(X, y)
        assert list(model.feature_names_in_) == model.terms_ == list(X.columns)
        np.testing.assert_array_equal(
            model.predict(X),
            GibbsRegressor(random_state=0).fit(X.to_numpy(), y).predict(X.to_numpy()),
        )
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(X[X.columns[::-1]])

    def test_labels_of_any_kind(self, cancer):
        X, y = cancer
        numbers = GibbsClassifier(posterior="laplace", random_state=0).fit(X, y)
        words = GibbsClassifier(posterior="laplace", random_state=0).fit(X, np.array(["a", "b"])[y])
        series = GibbsClassifier(posterior="laplace", random_state=0).fit(X, pd.Series(y == 1))
        np.testing.assert_array_equal(words.predict(X), np.array(["a", "b"])[numbers.predict(X)])
        np.testing.assert_array_equal(series.predict(X), numbers.predict(X) == 1)

    def test_the_page_of_an_estimator_shows_its_arguments(self, diabetes):
        page = GibbsRegressor(strategy="bayes").fit(*diabetes)._repr_html_()
        assert "GibbsRegressor" in page
        # Arguments that would be refused are no reason to fail here.
        assert "fit" in dir(GibbsRegressor(target="mse", prior_scale="wide"))
        assert "bayes" in page

    def test_random_states(self, diabetes):
        X, y = diabetes
        states = (1, 1, np.random.RandomState(4), np.random.RandomState(4), None, None, 0)
        risk = [
            GibbsRegressor(strategy="k-fold", random_state=state).fit(X, y).calibration_.risk
            for state in states
        ]
        assert risk[0] == risk[1] != risk[2] == risk[3]
        assert risk[4] == risk[5] == risk[6] != risk[0]  # none given: one data set, one answer

    def test_no_state_is_one_answer(self, diabetes, cancer):
        for estimator, (X, y) in ((GibbsRegressor(), diabetes), (GibbsClassifier(), cancer)):
            one, other = (clone(estimator).fit(X, y) for _ in range(2))
            assert one.calibration_.risk == other.calibration_.risk
            np.testing.assert_array_equal(one.predict(X), other.predict(X))

    def test_the_estimators_are_found_in_the_package(self):
        assert {"GibbsClassifier", "GibbsRegressor", "__version__"} <= set(dir(temperance))
        with pytest.raises(AttributeError, match="no attribute 'GibbsClusterer'"):
            temperance.GibbsClusterer  # noqa: B018

    @pytest.mark.slow
    def test_a_transfer_is_held_by_name_only(self, diabetes):
        X, y = diabetes
        by_name = GibbsRegressor(strategy="k-fold", transfer="alpha", random_state=0).fit(X, y)
        assert by_name.calibration_.strategy == strategies.KFold(transfer="alpha")
        own = strategies.SampleSplitting(shuffle=True)
        assert GibbsRegressor(strategy=own, transfer="alpha").fit(X, y).calibration_.strategy is own
        boot = GibbsRegressor(strategy="bootstrap", transfer="alpha", random_state=0).fit(X, y)
        assert boot.calibration_.strategy == strategies.Bootstrap()

    def test_few_rows_have_few_folds(self, diabetes):
        X, y = diabetes
        model = GibbsRegressor(strategy="k-fold").fit(X[:6], y[:6])
        assert model.calibration_.strategy.n_folds == 6
        classes = GibbsClassifier().fit(X[:6], y[:6] > y[:6].mean())
        assert classes.calibration_.strategy == strategies.Stacking(strategies.KFold(6))

    def test_a_choice_at_the_bound_warns(self, diabetes):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            options = {"noise_variance": 1e5, "strategy": "k-fold"}
            with pytest.raises(TemperanceWarning, match="at the upper bound beta = 3; widen"):
                GibbsRegressor(**options).fit(*diabetes)
            assert GibbsRegressor(**options, target="draws").fit(*diabetes).calibration_.at_bound


REFUSED = {
    "noise_variance text": (
        GibbsRegressor(noise_variance="known"),
        "noise_variance must be one of 'unknown', got 'known'",
    ),
    "noise_variance zero": (
        GibbsRegressor(noise_variance=0.0),
        "noise_variance must be positive, got 0.0",
    ),
    "degree": (GibbsRegressor(degree=0), "degree must be at least 1, got 0"),
    "degree of too many terms": (
        GibbsRegressor(degree=50),
        "degree must be small enough to fit, got 50: 3.25e+07 powers and products of 6 columns in "
        "each of 90 rows would take 9.35e+10 bytes of memory, 1e+10 are available",
    ),
    "random_state": (
        GibbsClassifier(random_state="first"),
        "random_state must be a non-negative integer, a RandomState or None, got 'first'",
    ),
    "negative random_state": (
        GibbsRegressor(random_state=-1),
        "random_state must be a non-negative integer, a RandomState or None, got -1",
    ),
    "prior_scale": (GibbsClassifier(prior_scale=-1), "prior_scale must be positive, got -1"),
    "prior_scale beyond squares": (
        GibbsRegressor(prior_scale=1e200),
        "prior_scale must lie between 1e-100 and 1e100, got 1e+200",
    ),
    "standardize": (
        GibbsRegressor(standardize="yes"),
        "standardize must be one of False, True, got 'yes'",
    ),
    "fit_intercept": (
        GibbsClassifier(fit_intercept=None),
        "fit_intercept must be one of False, True, got None",
    ),
    "keep_data": (
        GibbsRegressor(keep_data="yes"),
        "keep_data must be one of False, True, got 'yes'",
    ),
    "posterior": (
        GibbsClassifier(posterior="exact"),
        "posterior must be one of 'mean-field', 'jaakkola', 'laplace', 'full', got 'exact'",
    ),
    "transfer": (
        GibbsRegressor(transfer="gamma"),
        "transfer must be one of 'beta', 'alpha', got 'gamma'",
    ),
    "prior_scale of text": (
        GibbsRegressor(prior_scale="wide"),
        "prior_scale must be a positive number or 'auto', got 'wide'",
    ),
    "target": (
        GibbsRegressor(target="mse"),
        "target must be one of 'forecasts', 'coefficients', 'draws', got 'mse'",
    ),
    "stacking for draws": (
        GibbsRegressor(target="draws", strategy="stacking"),
        "Stacking is for forecasts: risk must be 'predictive', got 'gibbs'",
    ),
    "reference risk for scales that are averaged": (
        GibbsRegressor(strategy="reference-risk"),
        "model must have a reference for ReferenceRisk, as models of the squared loss have if the "
        "scale of their prior is given (prior_scale in the estimators), got HierarchicalLinear; "
        "use KFold()",
    ),
    "bounds": (
        GibbsRegressor(bounds=(2, 1)),
        "bounds must satisfy 0 <= lower < upper <= 1e+100, got (2.0, 1.0)",
    ),
    "strategy": (
        GibbsRegressor(strategy="kfold"),
        "strategy must be one of bayes, naive, sample-splitting, bootstrap, safe-bayes, k-fold, "
        "leave-one-out, stacking, reference-risk, coverage, sandwich, fisher-information, "
        "prior-information, fitted-coverage, got 'kfold' (did you mean 'k-fold'?)",
    ),
}


@pytest.mark.parametrize(("estimator", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_arguments_are_named(estimator, message, cancer, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1e10)
    X, y = cancer
    with pytest.raises(ValueError) as error:
        estimator.fit(X, y)
    assert str(error.value) == message


LINE = np.linspace(0.0, 1.0, 8)
SQUARE = np.column_stack([LINE, LINE**2])
PAIR = (
    "X must have two dimensions, got shape (8,). Reshape your data: X[:, None] is one column, "
    "X[None] one row"
)
BAD_DATA = {
    "nan": (
        (np.where(SQUARE == 1, np.nan, SQUARE), LINE),
        "X must be finite, got nan in row 7, column 0; impute NaN or leave such rows out",
    ),
    "infinity": (
        (np.where(SQUARE == 1, np.inf, SQUARE), LINE),
        "X must be finite, got inf in row 7, column 0; impute NaN or leave such rows out",
    ),
    "a vector": ((LINE, LINE), PAIR),
    "complex": (
        (1j * SQUARE, LINE),
        "X and y must hold real numbers, got complex ones. Complex data not supported",
    ),
    "text": ((np.full((8, 2), "0.0a"), LINE), "X must hold real numbers, got '0.0a'"),
    "text in y": ((SQUARE, ["low", "high"] * 4), "y must hold real numbers, got 'low'"),
    "text in y of objects": (
        (SQUARE, np.array(["low", 1.0] * 4, dtype=object)),
        "y must hold real numbers, got 'low'",
    ),
    "ragged": (
        ([[1.0, 2.0], [3.0]], [1.0, 2.0]),
        "X must hold real numbers, got rows of different lengths",
    ),
    "too large": (
        (1e200 * SQUARE, LINE),
        "X must be 0 or between 1e-50 and 1e+50 in size, got at most 1e+200 in column 0; change "
        "the unit",
    ),
    "too small": (
        (SQUARE * [1.0, 1e-200], LINE),
        "X must be 0 or between 1e-50 and 1e+50 in size, got at most 1e-200 in column 1; change "
        "the unit",
    ),
    "the largest numbers": (
        ([[1.7e308, 1.0], [-1.7e308, 2.0], [1.7e308, 3.0]], [1.0, 2.0, 3.0]),
        "X must be 0 or between 1e-50 and 1e+50 in size, got at most 1.7e+308 in column 0; change "
        "the unit",
    ),
    "y too large": (
        (SQUARE, 1e160 * LINE),
        "y must be 0 or between 1e-50 and 1e+50 in size, got at most 1e+160; change the unit",
    ),
    "y too small": (
        (SQUARE, 1e-160 * LINE),
        "y must be 0 or between 1e-50 and 1e+50 in size, got at most 1e-160; change the unit",
    ),
    "None in y": (
        (SQUARE, np.array([None, 1.0] * 4, dtype=object)),
        "y must be finite, got nan in row 0",
    ),
    "nan in y of objects": (
        (SQUARE, np.array([1.0, np.nan] * 4, dtype=object)),
        "y must be finite, got nan in row 1",
    ),
    "sparse": (
        (sparse.csr_array(SQUARE), LINE),
        "X must be dense, got a sparse csr_array: Sparse data are not supported, use X.toarray() "
        "if it fits into memory",
    ),
    "huge weights": (
        (SQUARE, LINE, np.full(8, 1e308)),
        "sample_weight must be 0 or between 1e-50 and 1e+50 in size, got at most 1e+308; change "
        "the unit",
    ),
    "text as weights": (
        (SQUARE, LINE, ["heavy"] * 8),
        "sample_weight must hold real numbers, got 'heavy'",
    ),
}


@pytest.mark.parametrize(("data", "message"), BAD_DATA.values(), ids=BAD_DATA)
def test_bad_data_get_one_line(data, message):
    for estimator in (GibbsRegressor(), GibbsRegressor(target="draws")):
        with pytest.raises((ValueError, TypeError)) as error:
            estimator.fit(*data)
        assert str(error.value) == message


@pytest.mark.parametrize(
    ("estimator", "X", "message"),
    [
        (
            GibbsRegressor(noise_variance=1e-30, standardize=False, prior_scale=1.0),
            1e20 * SQUARE,
            "X must say at most 1e60 times as much as the prior in one row, got 1e70; standardize, "
            "or take a smaller prior_scale or larger noise_variance",
        ),
        (
            GibbsRegressor(degree=3, standardize=False),
            1e20 * SQUARE,
            "terms of degree 3 must be 0 or between 1e-50 and 1e+50 in size, got at most 1e+60 in "
            "column 5; change the unit",
        ),
    ],
    ids=["certainty", "powers"],
)
def test_scales_that_overflow_get_one_line(estimator, X, message):
    with pytest.raises(ValueError) as error:
        estimator.fit(X, LINE)
    assert str(error.value) == message


def test_predictions_too_far_off_get_one_line():
    model = GibbsRegressor(degree=2, strategy="bayes").fit(SQUARE, LINE)
    with pytest.raises(ValueError, match=r"X must lie within 1e\+50 of the rows of the fit"):
        model.predict(1e200 * SQUARE)


@pytest.mark.parametrize(
    "X",
    [
        1e40 * SQUARE,
        1e-40 * SQUARE,
        SQUARE + 1e12,
        SQUARE * [1e40, 1e-40],
        np.zeros((8, 2)),
        np.repeat(SQUARE[:, :1], 3, axis=1),
        np.repeat(SQUARE[:, :1], 30, axis=1),
        np.eye(8),
    ],
    ids=[
        "large",
        "small",
        "far off",
        "units apart",
        "zeros",
        "equal columns",
        "many equal columns",
        "one-hot",
    ],
)
@pytest.mark.parametrize("y", [LINE, 1e40 * LINE, 1e-40 * LINE, np.ones(8)], ids=str)
@pytest.mark.parametrize("target", ["forecasts", "draws"])
def test_strange_data_get_an_answer(X, y, target):
    if np.ptp(X) == 0 and np.ptp(y) == 0:
        return  # one distinct row
    model = GibbsRegressor(target=target).fit(X, y)
    assert np.all(np.isfinite(model.predict_interval(X)))
    assert np.all(np.isfinite(model.coefficients().scale))


@pytest.mark.parametrize("degree", [10**9, 10**400], ids=["large", "enormous"])
def test_any_number_of_terms_is_counted_at_once(degree):
    assert count_terms(20_000, degree) == 10**80
    with pytest.raises(ValueError, match=r"^degree must be small enough to fit, got 1000000000"):
        GibbsRegressor(degree=degree).fit(np.ones((8, 2000)), LINE)


def test_labels_of_several_kinds_are_refused():
    message = "y must hold labels of one kind, text or numbers, got int, str"
    with pytest.raises(ValueError, match=message):
        GibbsClassifier().fit(SQUARE, np.array(["low", 1] * 4, dtype=object))


def test_bad_data_are_named(cancer):
    X, y = cancer
    with pytest.raises(ValueError, match=r"eights must"):
        GibbsRegressor().fit(X, y, sample_weight=np.zeros(90))
    with pytest.raises(ValueError, match=r"y must hold at least two classes, got 1 class: 1"):
        GibbsClassifier().fit(X, np.ones(90, dtype=int))
    with pytest.raises(ValueError, match=r"at least two classes, got 1 class: 0"):
        GibbsClassifier().fit(X, y, sample_weight=y == 0)
    with pytest.raises(
        ValueError, match=r"at least 2 distinct rows for leave-one-out's veto, got 1"
    ):
        GibbsRegressor(target="draws").fit(np.ones((5, 2)), np.ones(5))
    for strategy in ("k-fold", "leave-one-out", None):
        with pytest.raises(ValueError, match=r"at least 2 distinct rows.*got 1"):
            GibbsRegressor(strategy=strategy).fit(np.ones((5, 2)), np.ones(5))
    classifier = GibbsClassifier(posterior="laplace", strategy="bayes").fit(X, y)
    with pytest.raises(ValueError, match=r"y must hold the classes of the fit, \[0, 1\], got 7"):
        classifier.gains(X, np.full(90, 7))
    with pytest.raises(ValueError, match=r"k must be less than 1, got 3"):
        classifier.coefficients(3)
    model = GibbsRegressor(strategy="bayes").fit(X, y)
    with pytest.raises(ValueError, match=r"level must lie between 0 and 1, got 95"):
        model.predict_interval(X, level=95)
    with pytest.raises(ValueError, match=r"n_samples must be at least 1, got 0"):
        model.sample_y(X, 0)
    with pytest.raises(ValueError, match=r"y must hold real numbers, got 'low'"):
        model.gains(X, ["low"] * 90)
    with pytest.raises(ValueError, match=r"X must be finite, got nan in row 0, column 0"):
        model.predict(np.full((1, X.shape[1]), np.nan))


@pytest.mark.parametrize("posterior", ["laplace", "mean-field"])
def test_bounds_are_wide_where_the_posterior_may_be_far_from_bayes(posterior):
    X, y = load_iris(return_X_y=True)
    some = y < 2
    two = GibbsClassifier(posterior=posterior, strategy="k-fold", prior_scale=1.0).fit(
        X[some][::4], y[some][::4]
    )
    assert two.calibration_.bounds == ((0.0, 100.0) if posterior == "laplace" else (0.0, 3.0))
    three = GibbsClassifier(strategy="bayes", prior_scale=1.0).fit(X[::6], y[::6])
    assert three.calibration_.bounds == (0.0, 100.0)
