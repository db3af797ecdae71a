"""Rates from the losses of draws alone, held against those of the model that drew them."""

import numpy as np
import pytest

from temperance import Calibration, calibrate, calibrate_from_draws, models
from temperance.calibration import preferences_of
from temperance.checks import as_data
from temperance.curves import GivesCurve
from temperance.messages import ParetoWarning
from temperance.models.sampled.arviz_tree import arviz_tree
from temperance.models.sampled.draws import Draws
from temperance.models.sampled.information import InformationFromDraws, LossesOfDraws
from temperance.protocols import Preferences
from temperance.strategies import Coverage, Sandwich

MODEL = models.GaussianLinear(1.5, prior_cov=100.0)
quiet = pytest.mark.filterwarnings("ignore::temperance.messages.ParetoWarning")


def scattered(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.standard_normal((n, 2))])
    return X, X @ [1.0, 2.0, 0.0] + np.abs(X[:, 1]) * rng.standard_normal(n)


def log_likelihood(X, y, beta=1.0, size=4000, model=MODEL):
    theta = model.posterior(X, y, beta * len(y)).sample(size, 1)
    return -model.loss(theta, X, y).reshape(4, -1, len(y))


class FromDraws(InformationFromDraws, GivesCurve):
    """A model that is known by exact draws of its posterior."""

    preferences = Preferences(only_curves=True)

    def posterior(self, X, y, alpha, weights=None):
        n = np.sum(weights)
        theta = MODEL.posterior(X, y, alpha, weights).sample(4000, 2)
        losses = MODEL.loss(theta, X, y).reshape(4, 1000, -1)
        draws = Draws({"theta": theta.reshape(4, 1000, -1)}, losses)
        return arviz_tree(draws, {"y": np.asarray(y)}, {"beta": alpha / n, "alpha": alpha, "n": n})

    def risk_curve(self, data, plan, risk="gibbs"):
        raise AssertionError("rates need no curve")


class TestRecordedDraws:
    @quiet
    @pytest.mark.parametrize("beta_of_draws", [0.3, 1.0, 4.0])
    def test_sandwich_is_that_of_the_model(self, beta_of_draws):
        X, y = scattered()
        drawn = log_likelihood(X, y, beta_of_draws)
        for kind in ("trace", "determinant"):
            exact = calibrate(MODEL, X, y, Sandwich(kind))
            found = calibrate_from_draws(drawn, beta_of_draws, strategy=Sandwich(kind))
            assert found.beta == pytest.approx(exact.beta, rel=0.03)
            np.testing.assert_allclose(found.rate.by_direction, exact.rate.by_direction, rtol=0.1)

    def test_plain_formula(self):
        """p / (beta sum_i Var l_i), to the first order in 1/n."""
        X, y = scattered()
        drawn = log_likelihood(X, y)
        rough = 3 / drawn.reshape(-1, 300).var(axis=0).sum()
        found = calibrate_from_draws(drawn, strategy="sandwich").beta
        assert found == pytest.approx(rough, rel=0.05)

    @quiet
    def test_coverage_is_that_of_the_model(self):
        X, y = scattered()
        strategy = Coverage(n_draws=4000)
        exact = calibrate(MODEL, X, y, strategy).beta
        found = calibrate_from_draws(log_likelihood(X, y), strategy=strategy)
        assert found.beta == pytest.approx(exact, rel=0.06)
        low, high = found.beta_range
        assert low < found.beta < high and found.table is None

    @quiet
    def test_groups(self):
        X, y = scattered()
        groups = np.arange(300) // 5
        X = np.repeat(X[::5], 5, axis=0)
        for strategy in (Sandwich(groups=groups), Coverage(n_draws=2000, groups=groups)):
            exact = calibrate(MODEL, X, y, strategy).beta
            found = calibrate_from_draws(log_likelihood(X, y), strategy=strategy).beta
            assert found == pytest.approx(exact, rel=0.08)

    def test_dimension_is_estimated_or_given(self):
        X, y = scattered()
        drawn = log_likelihood(X, y)
        losses = -drawn.reshape(-1, 300).T
        near = LossesOfDraws(losses, np.ones(300), 1.0)
        assert near.parameters(losses - losses.mean(axis=1, keepdims=True)) == 3
        assert len(near.information().minimiser) == 3
        estimated, given, fewer = (
            calibrate_from_draws(drawn, strategy="sandwich", dimension=p).beta for p in (None, 3, 2)
        )
        assert estimated == given != pytest.approx(fewer, rel=1e-3)

    def test_more_rows_than_draws(self):
        X, y = scattered(800)
        drawn = log_likelihood(X, y, size=400)
        found = calibrate_from_draws(drawn, strategy="sandwich")
        assert found.beta == pytest.approx(calibrate(MODEL, X, y, "sandwich").beta, rel=0.1)

    def test_the_posterior_is_reweighted(self):
        X, y = scattered()
        found = calibrate_from_draws(log_likelihood(X, y), strategy="sandwich")
        assert isinstance(found, Calibration) and found.posterior.beta == found.beta
        assert found.posterior.weights.sum() == pytest.approx(1.0)

    def test_a_beta_that_draws_do_not_support(self):
        X, y = scattered()
        drawn = log_likelihood(X, y, 30.0)
        with pytest.warns(ParetoWarning, match="draws at beta = 30 do not support .* draw again"):
            calibrate_from_draws(drawn, 30.0, strategy="sandwich")

    def test_refusals(self):
        X, y = scattered()
        drawn = log_likelihood(X, y)
        for options, message in (
            ({"strategy": "k-fold"}, "strategy must be 'sandwich', 'coverage', .* got 'k-fold'"),
            ({"strategy": "fisher-information"}, "strategy must be 'sandwich'"),
            ({"strategy": "sandwich", "dimension": 0}, "dimension must be at least 1, got 0"),
            (
                {"strategy": "sandwich", "dimension": 60},
                "at least 9455 draws for 60 parameters, got 4000",
            ),
            ({"strategy": "sandwich", "beta_of_draws": 0.0}, "beta_of_draws must be positive"),
        ):
            with pytest.raises(ValueError, match=message) as error:
                calibrate_from_draws(drawn, **options)
            assert "\n" not in str(error.value)


class TestSampledModels:
    def test_rates_are_those_of_the_closed_form(self):
        X, y = scattered()
        weights = np.random.default_rng(0).integers(1, 4, 300).astype(float)
        for strategy in (Sandwich(), Coverage(n_draws=2000)):
            exact = calibrate(MODEL, X, y, strategy, weights=weights)
            found = calibrate(FromDraws(), X, y, strategy, weights=weights)
            assert found.beta == pytest.approx(exact.beta, rel=0.06)
            assert found.beta_range is None and preferences_of(found.model).only_curves
            assert "range" not in repr(found)

    def test_moved_draws_have_the_covariance_of_the_sandwich(self):
        X, y = scattered()
        for groups in (None, np.arange(300) // 3):
            exact = calibrate(MODEL, X, y, "sandwich").sandwich(groups)
            found = calibrate(FromDraws(), X, y, "sandwich")
            before, after = (
                np.asarray(tree["posterior"]["theta"]).reshape(-1, 3)
                for tree in (found.posterior, found.sandwich(groups))
            )
            np.testing.assert_allclose(after.mean(axis=0), exact.mean, atol=0.02)
            scale = np.outer(exact.std, exact.std)
            np.testing.assert_allclose(np.cov(after.T) / scale, exact.cov / scale, atol=0.05)
            # Negative control: the posterior's own covariance is another.
            assert np.abs(np.cov(before.T) / scale - exact.cov / scale).max() > 0.2
        assert found.sandwich()["log_likelihood"] is not None

    def test_of_a_mixture_too(self):
        """Its spread says nothing of the number of parameters, so it is drawn anew."""
        X, y = scattered()
        data, model = as_data(X, y), FromDraws()
        exact = calibrate(MODEL, X, y, "sandwich").sandwich()
        mixture = model.posterior(X, y, 3.0, data.weights)  # far too wide for a quadratic
        mixture.attrs["betas"] = [0.01, 1.0]
        theta = np.asarray(model.moved_draws(mixture, data, None)["posterior"]["theta"])
        theta = theta.reshape(-1, 3)
        np.testing.assert_allclose(theta.mean(axis=0), exact.mean, atol=0.02)
        scale = np.outer(exact.std, exact.std)
        np.testing.assert_allclose(np.cov(theta.T) / scale, exact.cov / scale, atol=0.05)
