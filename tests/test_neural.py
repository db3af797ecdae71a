"""Neural networks: against linear models and closed forms, laws of training, bad input."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, log_expit, ndtr, roots_hermitenorm

from benchmarks.neural import calibration_error, other_labels, problem
from temperance import calibrate, losses, models
from temperance.checks import as_data
from temperance.messages import BoundWarning, ConvergenceWarning
from temperance.models.neural import HMC, Ensemble, LastLayerLaplace, MeanField, Training
from temperance.models.neural.last_layer import last_layer_places
from temperance.models.neural.smooth_curve import SmoothCurve
from temperance.models.neural.training import Run, train
from temperance.protocols import Model, Posterior
from temperance.rules import BetaWeights, stack
from temperance.strategies import Bootstrap, KFold, SampleSplitting, Stacking
from temperance.uncertainty.certificate import gaussian_kl, largest_risk

RNG = np.random.default_rng(0)
X = RNG.standard_normal((48, 2))
LABELS = (RNG.random(48) < expit(X @ [1.5, -1.0])).astype(float)
NUMBERS = X @ [1.0, -0.5] + RNG.standard_normal(48)
SHORT = Training(steps=100)
FOLDS = KFold(2)


def linear(params, X):
    return X @ params


def hidden(params, X):
    return jnp.tanh(X @ params["in"]) @ params["out"]


def first(key):
    a, b = jax.random.split(key)
    return {"in": jax.random.normal(a, (2, 3)), "out": jax.random.normal(b, (3, 2))}


@pytest.fixture(scope="module")
def logistic():
    """A network without hidden layer, calibrated, and the linear model that it is."""
    model = models.NeuralNetwork(
        linear, jnp.zeros(2), "logistic", posterior=MeanField(pairs=8), draws=2**17
    )
    bounds = (0.3, 3.0)
    other = models.GibbsLinear(losses.Logistic(), "mean-field")
    return [
        calibrate(each, X, LABELS, FOLDS, bounds=bounds, risk="gibbs") for each in (model, other)
    ]


def objective(mean, std, beta):
    """Return beta sum_i E l_i + KL by Gauss-Hermite quadrature."""
    nodes, weights = roots_hermitenorm(60)
    u = (X @ mean)[:, None] + np.sqrt(X**2 @ std**2)[:, None] * nodes
    expected = -log_expit((2 * LABELS - 1)[:, None] * u) @ weights / weights.sum()
    return beta * expected.sum() + 0.5 * (mean**2 + std**2 - 1 - 2 * np.log(std)).sum()


class TestWithoutHiddenLayer:
    def test_curve_is_that_of_the_linear_model(self, logistic):
        ours, theirs = (each.curve for each in logistic)
        betas = np.linspace(0.5, 3.0, 12)
        np.testing.assert_allclose(ours(betas), theirs(betas), atol=1e-3)
        rows = [each.table.at(np.ones(1)) for each in logistic]
        np.testing.assert_allclose(*rows, atol=1e-2)
        assert np.abs(ours(betas) - theirs(2 * betas)).max() > 2e-3  # negative control

    def test_posterior_is_optimal(self, logistic):
        ours, theirs = (each.posterior_at(2.0) for each in logistic)
        mean = np.asarray(ours.variables["mean"], dtype=float)
        std = np.exp(np.asarray(ours.variables["log_scale"], dtype=float))
        best = objective(theirs.mean, theirs.std, 2.0)
        assert -1e-4 < objective(mean, std, 2.0) - best < 1e-3
        assert objective(mean, 1.1 * std, 2.0) - best > 1e-3  # negative control
        assert isinstance(ours, Posterior)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=5e-3)
        theta = ours.sample(4, seed=1)
        np.testing.assert_allclose(ours.log_prob(theta), theirs.log_prob(theta), atol=0.2)
        assert ours.sample(4, seed=1).tolist() == theta.tolist()

    def test_print(self, logistic):
        text = repr(logistic[0])
        assert re.search(r"method    18 mean-field networks at 9 betas; smoothed in log beta", text)

    def test_certificate(self, logistic):
        ours, theirs = logistic
        found = ours.certificate()
        posterior = ours.posterior
        mean = np.asarray(posterior.variables["mean"], dtype=float)
        std = np.exp(np.asarray(posterior.variables["log_scale"], dtype=float))
        exact = ndtr((1 - 2 * LABELS) * (X @ mean) / np.sqrt(X**2 @ std**2)).mean()
        # The expectation, 1000 pairs of draws and a tenth of delta: within the Chernoff bound.
        assert exact < found.empirical_risk < largest_risk(exact, 2 * np.log(1 / 0.005) / 1000)
        linear_model = models.GibbsLinear(losses.Logistic(), "mean-field")
        kl = 0.5 * (mean**2 + std**2 - 1 - 2 * np.log(std)).sum()
        assert found.kl == pytest.approx(kl, rel=1e-6)
        assert found.kl == pytest.approx(
            gaussian_kl(theirs.posterior_at(ours.beta), linear_model.prior(2)), abs=0.05
        )
        budget = (found.kl + np.log(2 * np.sqrt(48) / 0.045)) / 48
        assert found.bound == pytest.approx(largest_risk(found.empirical_risk, budget), rel=1e-9)
        with pytest.raises(ValueError, match="loss must be 'zero-one' for a network"):
            ours.certificate("brier")


class TestGaussian:
    """Networks without hidden layer whose posteriors are known in closed form."""

    EXACT = models.GaussianLinear(noise_variance=1.0)

    HMC = HMC(warmup=60, moves=120, steps=8)

    def model(self, method, **options):
        return models.NeuralNetwork(
            linear,
            jnp.zeros(2),
            "gaussian",
            noise_scale=1.0,
            posterior=method,
            draws=256,
            **options,
        )

    @pytest.mark.parametrize(
        "method", [pytest.param(HMC, marks=pytest.mark.slow, id="HMC"), LastLayerLaplace()]
    )
    def test_curve(self, method):
        data = as_data(X, NUMBERS)
        _, plan = FOLDS.planned(data, np.random.default_rng(0))
        ours = self.model(method).risk_curve(data, plan, "predictive")
        theirs = self.EXACT.held_out(data, plan, "predictive", (0.0, 3.0))
        betas = np.array([0.3, 1.0, 2.5])
        error = np.abs(ours(betas) - theirs(betas))
        assert (error < 4 * ours.error(betas)).all()
        assert np.isfinite(ours.rhat(1.0)) == (method == self.HMC)

    @pytest.mark.parametrize("method", [HMC, LastLayerLaplace()], ids=lambda m: m.words)
    def test_posterior(self, method):
        told = []
        ours = self.model(method, progress=told.append)
        found, exact = (each.posterior(X, NUMBERS, 48.0) for each in (ours, self.EXACT))
        assert ("chains drawn: 0 of 4" in told) == (method == self.HMC) and told[-1] == ""
        draws = found.sample(2000, seed=0)
        np.testing.assert_allclose(draws.mean(axis=0), exact.mean, atol=0.4 * exact.std.min())
        np.testing.assert_allclose(draws.std(axis=0), exact.std, rtol=0.3)
        theta = draws[:3]
        difference = found.log_prob(theta) - exact.log_prob(theta)
        assert np.ptp(difference) < 1e-3
        for one, other in zip(found.predict(X), exact.predict(X), strict=True):
            np.testing.assert_allclose(one, other, atol=0.1)

    def test_noise_scale_is_a_parameter(self):
        model = models.NeuralNetwork(
            linear, jnp.zeros(2), "gaussian", posterior="laplace-last-layer"
        )
        posterior = model.posterior(X, 3 * NUMBERS, 4800.0)
        theta = posterior.sample(1, seed=0)[0]
        residuals = 3 * NUMBERS - X @ np.linalg.lstsq(X, 3 * NUMBERS)[0]
        assert theta.shape == (3,)
        assert np.exp(theta[2]) == pytest.approx(residuals.std(), rel=0.02)
        assert posterior.predict(X)[1].min() > 0.9 * residuals.std()


class TestTraining:
    MODEL = models.NeuralNetwork(linear, jnp.zeros(2), "logistic", posterior="laplace-last-layer")

    def test_weight_is_repetition(self):
        weights = np.arange(48) % 3
        ours = self.MODEL.posterior(X, LABELS, 40.0, weights)
        theirs = self.MODEL.posterior(
            np.repeat(X, weights, axis=0), np.repeat(LABELS, weights), 40.0
        )
        for name in ("mode", "scale"):
            np.testing.assert_allclose(ours.variables[name], theirs.variables[name], atol=1e-3)

    def test_batches_and_groups(self):
        data, weights = as_data(X, LABELS), np.ones((1, 48))
        whole = self.MODEL.fitted(task(self.MODEL, data, weights, [0.5, 2.0, 8.0]))
        apart = models.NeuralNetwork(
            linear,
            jnp.zeros(2),
            "logistic",
            posterior="laplace-last-layer",
            training=Training(batch_size=16),
            side_by_side=2,
        )
        parts = apart.fitted(task(apart, data, weights, [0.5, 2.0, 8.0]))
        assert parts.variables["mode"].shape == (3, 2)
        np.testing.assert_allclose(parts.variables["mode"], whole.variables["mode"], atol=0.1)
        modes = np.asarray(whole.variables["mode"])
        assert np.abs(modes[0] - modes[2]).max() > 0.2  # negative control: betas differ

    def test_rows_without_weight_have_no_part(self):
        """What a fold tests has no influence on its network, not even on its start."""
        weights = np.ones((2, 48))
        weights[0, :24] = 0
        weights[1, 24:] = 0
        model = models.NeuralNetwork(hidden, first, training=SHORT)
        other = np.where(np.arange(48) < 24, 1 - LABELS, LABELS)
        found = [
            np.asarray(model.fitted(task(model, as_data(X, y), weights, [3.0])).variables["mean"])
            for y in (LABELS, other)
        ]
        np.testing.assert_array_equal(found[0][0], found[1][0])
        assert np.abs(found[0][1] - found[1][1]).max() > 0.01

    @pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")
    def test_same_seed_same_curve(self):
        curves = [
            calibrate(
                models.NeuralNetwork(hidden, first, training=SHORT, seed=seed, draws=8),
                X,
                LABELS,
                SampleSplitting(),
                risk="predictive",
                bounds=(0.5, 2.0),
            ).table.curve.values
            for seed in (1, 1, 2)
        ]
        assert curves[0].tolist() == curves[1].tolist() != curves[2].tolist()

    @pytest.mark.filterwarnings("ignore::temperance.messages.ConvergenceWarning")
    def test_a_choice_below_the_grid_is_said(self):
        model = models.NeuralNetwork(hidden, first, training=SHORT, draws=8, lowest_beta=1.0)
        with pytest.warns(BoundWarning, match=r"lies below lowest_beta = 1, .* lower lowest_beta"):
            calibrate(model, X, LABELS, SampleSplitting(), bounds=(0, 0.5), risk="gibbs")

    def test_unfinished_training_is_said(self):
        told = []
        model = models.NeuralNetwork(hidden, first, training=SHORT, draws=8, progress=told.append)
        with pytest.warns(ConvergenceWarning, match="of 9 networks were still learning"):
            split = SampleSplitting()
            found = calibrate(model, X, LABELS, split, bounds=(0.5, 2.0), risk="gibbs")
        assert "were still learning" in repr(found)
        steps = ", step 100 of at most 100"  # at beta = 1 first, where all others start
        assert told == [f"networks trained: 0 of {count}{steps}" for count in (1, 9)] + [""]

    def test_interrupt_says_that_nothing_is_kept(self):
        def stop(line):
            if line:
                raise KeyboardInterrupt

        model = models.NeuralNetwork(hidden, first, training=SHORT, progress=stop)
        with pytest.raises(KeyboardInterrupt, match="none of them is kept, the same call begins"):
            model.posterior(X, LABELS, 48.0)

        def stop_always(line):
            raise KeyboardInterrupt

        model = models.NeuralNetwork(hidden, first, training=SHORT, progress=stop_always)
        with pytest.raises(KeyboardInterrupt, match="none of them is kept, the same call begins"):
            model.posterior(X, LABELS, 48.0)

    def test_an_error_of_the_progress_function_passes(self):
        told = []

        def fail(line):
            told.append(line)
            raise OSError(f"no space for {line!r}")

        model = models.NeuralNetwork(hidden, first, training=SHORT, progress=fail)
        with pytest.raises(OSError, match="no space for 'networks trained: 0 of 1"):
            model.posterior(X, LABELS, 48.0)
        assert len(told) == 1

    @pytest.mark.parametrize(("steps", "told"), [(50, [50]), (250, [100, 200, 250])])
    def test_no_more_steps_than_asked_for(self, steps, told):
        """As many as are said are run: an objective of slope 1 moves Adam by its rate each time."""
        lines = []

        class Line:
            def objective(self, network, prior, variables, key, X, y, weights, beta):
                return variables.sum()

        data, ones, rate = as_data(X, LABELS), np.ones((1, 48)), 2.0**-7
        run = Run(Training(steps=steps, learning_rate=rate), 0, 1, lines.append)
        start = jnp.zeros((1, 1))
        trained = train(
            self.MODEL.network, Line(), task(self.MODEL, data, ones, np.ones(1)), run, start
        )
        assert lines == [
            f"networks trained: 0 of 1, step {step} of at most {steps}" for step in told
        ]
        # The mean of the last iterates.
        last = np.arange(told[-2] if told[:-1] else 0, steps) + 1
        np.testing.assert_allclose(trained.variables, -rate * last.mean(), rtol=1e-4)

    def test_divergence_is_said(self):
        model = models.NeuralNetwork(
            lambda params, X: jnp.log(X @ params), jnp.zeros(2), "logistic", training=SHORT
        )
        with pytest.raises(ValueError, match=r"learning_rate must be smaller, or the loss finite"):
            model.posterior(X, LABELS, 48.0)


@pytest.fixture(scope="module")
def stacked():
    """The default, with a linear network, and the linear model with the same weights."""
    model = models.NeuralNetwork(
        linear,
        jnp.zeros(2),
        "gaussian",
        noise_scale=1.0,
        posterior="laplace-last-layer",
        draws=256,
        lowest_beta=0.1,
    )
    return calibrate(model, X, NUMBERS)


class TestStacking:
    EXACT = models.GaussianLinear(noise_variance=1.0)

    def test_default_begins_where_networks_are_trained(self, stacked):
        assert stacked.strategy == Stacking(KFold()) and stacked.kind == "predictive"
        np.testing.assert_allclose(stacked.weights.betas, [0.1, 10**-0.5, 1.0, 3.0])
        # Trained together: none for smaller ones, not even for 0.
        np.testing.assert_allclose(stacked.table.curve.betas, 10 ** (np.arange(-4, 4) / 3))

    def test_weights_are_those_of_the_linear_model(self, stacked):
        exact = calibrate(self.EXACT, X, NUMBERS, Stacking(KFold()), bounds=(0.1, 3.0))
        known = stack(replace(exact.table, votes=1.0), stacked.weights.betas)
        np.testing.assert_allclose(stacked.weights.weights, known.weights, atol=0.1)
        assert stacked.bayes_risk == pytest.approx(exact.bayes_risk, abs=0.01)
        assert stacked.risk == pytest.approx(exact.risk, abs=0.01)

    def test_the_posterior_is_the_mixture(self, stacked):
        over = BetaWeights(np.array([0.1, 3.0]), np.array([0.3, 0.7]))
        found = stacked.model.mixture(stacked.data, over, stacked.table)
        exact = self.EXACT.mixture(stacked.data, over, None)
        law, ours = exact.predictive(X), found.predict(X)
        np.testing.assert_allclose(ours[0], law.mean, atol=0.1)
        np.testing.assert_allclose(ours[1], law.std, rtol=0.1)
        draws = found.sample(4000, seed=0)
        margin = exact.marginals()
        np.testing.assert_allclose(draws.mean(axis=0), margin.mean, atol=0.3 * margin.std.min())
        np.testing.assert_allclose(draws.std(axis=0), margin.std, rtol=0.1)
        theta = draws[:3]
        np.testing.assert_allclose(found.log_prob(theta), exact.log_prob(theta), atol=0.02)
        outputs = found.outputs(X)
        assert outputs.shape == (512, 48) and found.losses(X, NUMBERS).shape == (512, 48)
        np.testing.assert_allclose(outputs.mean(axis=0), law.mean, atol=0.1)
        np.testing.assert_array_equal(found.params(theta[0]), theta[0].astype(np.float32))
        # Negative control: the part of larger weight alone is narrower.
        assert np.all(margin.std / found.parts[1].sample(4000, seed=0).std(axis=0) > 1.2)

    def test_calibration_gives_it(self, stacked):
        posterior, weights = stacked.posterior, stacked.weights.without_negligible()
        parts = getattr(posterior, "parts", [posterior])
        np.testing.assert_allclose([part.beta for part in parts], weights.betas, rtol=1e-6)
        mean, std = posterior.predict(X)
        assert mean.shape == std.shape == (48,)

    def test_draws_of_unknown_constants_have_no_density(self):
        model = models.NeuralNetwork(
            linear,
            jnp.zeros(2),
            "logistic",
            posterior=HMC(warmup=10, moves=20, kept=10, steps=4),
            training=SHORT,
        )
        over = BetaWeights(np.array([0.5, 2.0]), np.array([0.5, 0.5]))
        found = model.mixture(as_data(X, LABELS), over, None)
        assert found.predict(X).shape == (48,) and found.outputs(X).shape == (80, 48)
        with pytest.raises(ValueError, match="needs parts whose constants are known"):
            found.log_prob(np.zeros(2))

    def test_certificate(self, logistic):
        """Parts of a mixture share what draws may miss; divergences are averaged."""
        model, data = logistic[0].model, logistic[0].data
        over = BetaWeights(np.array([0.5, 2.0]), np.array([0.4, 0.6]))
        mixture = model.mixture(data, over, None)
        found = model.certified(mixture, data, "zero-one", 0.05)
        one, other = (model.certified(part, data, "zero-one", 0.025) for part in mixture.parts)
        assert found.risk == pytest.approx(0.4 * one.risk + 0.6 * other.risk)
        assert found.kl == pytest.approx(0.4 * one.kl + 0.6 * other.kl)
        assert found.spent == pytest.approx(one.spent + other.spent) == 0.005


def task(model, data, weights, betas):
    """Return the task of all pairs of rows of weights at some betas."""
    pair = np.tile(np.arange(len(weights)), len(betas))
    return model.task(data, weights, pair, np.repeat(betas, len(weights)))


def test_ensemble():
    model = models.NeuralNetwork(hidden, first, posterior=Ensemble(3), training=SHORT)
    posterior = model.posterior(X, LABELS, 48.0)
    members = np.unique(posterior.sample(50, seed=0), axis=0)
    assert members.shape == (3, 12)
    logits = [np.asarray(hidden(posterior.params(theta), X)) for theta in members]
    probability = np.mean([expit(each[:, 1] - each[:, 0]) for each in logits], axis=0)
    np.testing.assert_allclose(posterior.predict(X)[:, 1], probability, atol=1e-5)
    with pytest.raises(ValueError, match="log_prob needs a posterior with a density"):
        posterior.log_prob(members[0])
    assert isinstance(model, Model)


def test_rows_of_any_shape():
    """Images with integers beside them, several responses, a loss of one's own, resampled rows."""
    images = {"image": RNG.standard_normal((20, 2, 3)), "kind": np.arange(20) % 2}
    responses = {"a": RNG.standard_normal(20), "b": RNG.standard_normal(20)}

    def apply(params, rows):
        assert rows["kind"].dtype == jnp.int32
        return jnp.einsum("nij,ij->n", rows["image"], params["w"]) + params["b"][rows["kind"]]

    def loss(output, y):
        return jnp.abs(output - y["a"]) + 0.1 * jnp.abs(output - y["b"])

    model = models.NeuralNetwork(
        apply,
        {"w": jnp.zeros((2, 3)), "b": jnp.zeros(2)},
        loss,
        data=(images, responses),
        training=SHORT,
        draws=8,
    )
    data = as_data(model.X, model.y)
    curve = model.risk_curve(data, Bootstrap(n_draws=2).plan(data, np.random.default_rng(0)))
    assert curve(1.0) > 0 and len(curve.betas) == 9
    mean, spread = model.posterior(model.X, model.y, 20.0).predict(images)
    assert mean.shape == spread.shape == (20,)


class TestSmoothCurve:
    BETAS = np.append(0.0, 10 ** (np.arange(-6, 7) / 3))

    @staticmethod
    def truth(beta):
        return 0.3 / (1 + 20 * beta) + 0.05 * np.log1p(beta)

    def test_slope_is_a_difference_quotient(self):
        curve = SmoothCurve(self.BETAS, self.truth(self.BETAS) + 0.01 * RNG.standard_normal(14))
        at = np.array([1e-3, 0.009, 0.0101, 0.3, 7.0, 99.0])
        step = 1e-5 * at
        quotient = (curve(at + step)[0] - curve(at - step)[0]) / (2 * step)
        np.testing.assert_allclose(curve(at)[1], quotient, rtol=1e-4, atol=1e-9)
        assert curve(np.zeros(1))[0] == pytest.approx(curve.values[0])

    def test_without_noise_it_is_the_curve(self):
        curve = SmoothCurve(self.BETAS, self.truth(self.BETAS))
        at = np.geomspace(0.01, 100, 50)
        np.testing.assert_allclose(curve(at)[0], self.truth(at), atol=2e-3)

    def test_a_long_plateau_does_not_hide_the_rest(self):
        """Half of the points lie at the minimum, so that the median is close to it."""

        def truth(beta):
            return 7.5 + 4.3 / (1 + (8 * beta) ** 2)

        betas = np.append(0.0, 10 ** (np.arange(-6, 10) / 3))
        curve, at = SmoothCurve(betas, truth(betas)), np.geomspace(0.01, 1000, 60)
        assert (np.abs(curve(at)[0] - truth(at)) < 2 * curve.error(at)).all()
        np.testing.assert_allclose(curve(betas)[0], truth(betas), atol=0.3)

    @pytest.mark.parametrize(
        ("low", "high", "least", "most"), [(-2, 2, 0.75, 1.1), (-1, 4 / 3, 0.55, 0.75)]
    )
    @pytest.mark.parametrize("rise", [0.0, 0.7])
    def test_error_covers(self, low, high, least, most, rise):
        """Intervals of 95 % hold the truth in 90 % of curves, whatever its form and the noise.

        Errors of few points are up to twice too large; the curve is closer than the points.
        """
        betas = np.append(0.0, 10 ** np.arange(low, high + 1e-9, 1 / 3))
        at = np.geomspace(1.1 * betas[1], betas[-1] / 1.1, 9)
        rng = np.random.default_rng(1)
        slope = np.linspace(1 - rise, 1 + rise, len(betas))
        every = []
        for truth, left in (  # how much of the points' errors is left
            (self.truth, 0.97),
            (lambda b: 2.3 / (1 + (3 * b) ** 0.7), 0.9),  # falls to the end
            # A step, which is too abrupt for few points.
            (lambda b: 1 + 1.3 / (1 + b**2) + 0.02 * np.log1p(b) ** 2, 0.99 if low == -2 else 2.0),
            (lambda b: 0 * b, 0.7),
        ):
            exact, noise = truth(betas), slope * 0.01 * (np.ptp(truth(betas)) or 1.0)
            scores, points, smoothed = [], [], []
            for _ in range(40):
                curve = SmoothCurve(betas, exact + noise * rng.standard_normal(len(betas)))
                scores.append((curve(at)[0] - truth(at)) / curve.error(at))
                points.append((curve.values - exact)[1:])
                smoothed.append((curve(betas)[0] - exact)[1:])
            assert np.mean(np.abs(scores) < 1.96) > 0.9
            assert np.std(smoothed) < left * np.std(points)
            every.append(np.abs(scores))
        assert least < np.sqrt(np.mean(np.square(every))) < most
        assert np.mean(np.array(every) < 1.96 / 3) < 0.9  # negative control: a third of them


class TestLastLayer:
    FEATURES = np.tanh(RNG.standard_normal((60, 4)))

    def test_linear_model_of_features(self):
        ones = np.column_stack([np.ones(48), self.FEATURES[:48]])
        of_array = models.LastLayer(self.FEATURES, losses.Logistic(), prior_cov=2.0)
        of_rows = models.LastLayer(lambda X: np.tanh(X), losses.Logistic(), prior_cov=2.0)
        plain = models.GibbsLinear(losses.Logistic(), prior_cov=2.0)
        found = [
            calibrate(model, inputs, LABELS, "k-fold", risk="predictive")
            for model, inputs in (
                (of_array, np.arange(48)),
                (of_rows, np.arctanh(self.FEATURES[:48])),
                (plain, ones),
            )
        ]
        assert isinstance(of_array, Model)
        for each in found[:2]:
            assert each.curve(1.0) == pytest.approx(found[2].curve(1.0), abs=0.02)
            np.testing.assert_allclose(
                each.posterior_at(1.0).mean, found[2].posterior_at(1.0).mean, rtol=1e-6
            )
        new = found[0].posterior.predict(np.arange(48, 60))
        assert new.shape == (12,)
        assert found[0].certificate().bound < 1

    def test_softmax(self):
        y = self.FEATURES[:48].argmax(axis=1)
        model = models.LastLayer(self.FEATURES, n_classes=4)
        posterior = model.posterior(np.arange(48), y, 48.0)
        plain = models.SoftmaxLogistic(n_classes=4).posterior(
            np.column_stack([np.ones(48), self.FEATURES[:48]]), y, 48.0
        )
        np.testing.assert_allclose(posterior.coefficients, plain.coefficients, atol=1e-8)
        assert posterior.predict(np.arange(48, 60)).shape == (12, 4)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: models.LastLayer([1.0, 2.0]), r"features must be a function or an array"),
            (lambda: models.LastLayer(np.eye(3), "gauss"), r"loss must be .* or 'softmax', got"),
            (
                lambda: models.LastLayer(np.eye(3)).design([0, 3]),
                r"X must hold numbers of the 3 rows of features, 0 ... 2, got 3.0",
            ),
            (
                lambda: models.LastLayer(lambda X: X[:1]).design([0, 3]),
                r"features must return an array of shape \(2, d\), got shape \(1, 1\)",
            ),
        ],
    )
    def test_bad_input(self, call, message):
        with pytest.raises(ValueError, match=message) as error:
            call()
        assert "\n" not in str(error.value)


ZEROS = jnp.zeros(2)
BAD = {
    "apply": (lambda: models.NeuralNetwork(3, ZEROS), r"apply must be a function"),
    "loss": (lambda: models.NeuralNetwork(linear, ZEROS, "hinge"), r"loss must be one of"),
    "posterior": (
        lambda: models.NeuralNetwork(linear, ZEROS, posterior="mean field"),
        r"posterior must be one of 'mean-field', 'laplace-last-layer', 'hmc', 'ensemble'",
    ),
    "scale": (
        lambda: models.NeuralNetwork(linear, ZEROS, prior_scale=-1.0),
        r"prior_scale must be positive, got -1.0",
    ),
    "tree of scales": (
        lambda: models.NeuralNetwork(linear, ZEROS, prior_scale={"w": 1.0}),
        r"prior_scale must be a number or a pytree like params",
    ),
    "shape of scales": (
        lambda: models.NeuralNetwork(linear, ZEROS, prior_scale=np.ones(3)),
        r"prior_scale must hold numbers in the shapes of params",
    ),
    "no params": (lambda: models.NeuralNetwork(linear, ()), r"params must hold finite numbers"),
    "noise": (
        lambda: models.NeuralNetwork(linear, ZEROS, noise_scale=1.0),
        r"noise_scale must be None unless loss is 'gaussian', got 'softmax'",
    ),
    "training": (lambda: models.NeuralNetwork(linear, ZEROS, training=5), r"training must be"),
    "one start": (
        lambda: models.NeuralNetwork(linear, ZEROS, posterior="ensemble"),
        r"params must be a function of a JAX key for posterior='ensemble'",
    ),
    "columns": (
        lambda: models.NeuralNetwork(linear, jnp.zeros(3), "logistic").posterior(X, LABELS, 1.0),
        r"apply must take params and X of shape \(2, 2\), got",
    ),
    "rows": (
        lambda: checked(lambda p, X: (X @ p).sum(), "gaussian"),
        r"apply must return outputs of n rows, an array, got shape \(\)",
    ),
    "logits": (
        lambda: checked(linear, "softmax"),
        r"apply must return logits \(n, classes\) for loss='softmax', got shape \(2,\)",
    ),
    "labels": (
        lambda: checked(linear, "logistic", 2 * LABELS),
        r"y must hold labels 0 ... 1, got 2.0",
    ),
    "losses": (
        lambda: checked(linear, lambda output, y: jnp.stack([output, y])),
        r"loss must return one number of the outputs and y of a row, got shape",
    ),
    "steps": (lambda: Training(steps=0), r"steps must be at least 1, got 0"),
    "kept": (lambda: HMC(moves=10, kept=20), r"kept must be at most moves = 10, got 20"),
}


def checked(apply, loss, y=LABELS):
    models.NeuralNetwork(apply, ZEROS, loss).check(as_data(X, y))


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


class TestFindingTheLastLayer:
    def places(self, model, inputs=X):
        rows = jnp.asarray(inputs, dtype=jnp.float32)
        return last_layer_places(model.network, model.prior, rows, jnp.zeros(model.network.size))

    def test_whatever_its_name(self):
        model = models.NeuralNetwork(hidden, first)
        assert self.places(model).tolist() == list(range(6, 12))
        params = {"z": np.ones((2, 3)), "a": np.ones((3, 2))}
        model = models.NeuralNetwork(lambda p, X: jnp.tanh(X @ p["z"]) @ p["a"], params)
        assert self.places(model).tolist() == list(range(6))

    def test_none(self):
        model = models.NeuralNetwork(lambda p, X: jnp.exp(X @ p), np.ones((2, 2)))
        with pytest.raises(ValueError, match="got none that are linear in any array of params"):
            self.places(model)

    @pytest.mark.parametrize("package", ["flax", "equinox"])
    def test_examples_of_the_page(self, package):
        pytest.importorskip(package)
        page = (Path(__file__).parents[1] / "docs" / "neural-networks.md").read_text()
        code = next(
            block for block in re.findall(r"```py\n(.*?)```", page, re.DOTALL) if package in block
        )
        images = RNG.random((6, 64))
        namespace = {"models": models, "jax": jax, "X": images}
        exec(code, namespace)
        model = namespace[f"{package}_model"]
        model.check(as_data(images, np.arange(6)))
        assert len(self.places(model, images)) == 32 * 10 + 10


def test_neither_blackjax_nor_arviz(tmp_path):
    script = """
import sys
for name in ("blackjax", "arviz", "arviz_base", "arviz_stats", "xarray", "numpyro"):
    sys.modules[name] = None
import numpy as np
from temperance import models
models.NeuralNetwork(lambda params, X: X @ params, np.zeros((2, 3)))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()


class TestBenchmark:
    def test_calibration_error(self):
        probabilities = np.array([[0.9, 0.1], [0.9, 0.1], [0.3, 0.7], [0.0, 1.0]])
        # Confidence .9 with half of them right, .7 wrong and 1 right.
        found = calibration_error(probabilities, np.array([0, 1, 0, 1]))
        assert found == pytest.approx((2 * abs(0.9 - 0.5) + 0.7 + 0.0) / 4)

    def test_problem(self):
        data = problem("digits", 0.2, 0)
        assert 0.1 < np.mean(data.y_test != data.clean_test) < 0.3
        assert (other_labels(np.arange(10), 10, np.random.default_rng(0)) != np.arange(10)).all()
        np.testing.assert_allclose(np.sort(data.elsewhere), np.sort(data.X_test))


@pytest.mark.slow
def test_one_hidden_layer_against_nuts():
    """Long HMC agrees with NumPyro's NUTS on the risk of held-out rows, within errors."""
    import numpyro
    import numpyro.distributions as dist

    def network(X, y):
        inner = numpyro.sample("in", dist.Normal().expand([2, 3]).to_event(2))
        outer = numpyro.sample("out", dist.Normal().expand([3, 2]).to_event(2))
        logits = hidden({"in": inner, "out": outer}, X)
        numpyro.sample("y", dist.Categorical(logits=logits), obs=y)

    train, test = slice(0, 32), slice(32, 48)
    kernel = numpyro.infer.NUTS(network)
    sampler = numpyro.infer.MCMC(
        kernel, num_warmup=1000, num_samples=4000, num_chains=2, progress_bar=False,
        chain_method="vectorized",
    )  # fmt: skip
    sampler.run(jax.random.key(0), X[train], LABELS[train].astype(int))
    draws = sampler.get_samples()
    logits = jax.vmap(lambda inner, outer: hidden({"in": inner, "out": outer}, X[test]))(
        draws["in"], draws["out"]
    )
    log = np.asarray(jax.nn.log_softmax(logits))[:, np.arange(16), LABELS[test].astype(int)]
    gibbs, predictive = -log.mean(), -np.log(np.exp(log).mean(axis=0)).mean()
    model = models.NeuralNetwork(
        hidden, first, posterior=HMC(chains=8, warmup=500, moves=4000, kept=400, steps=20)
    )
    posterior = model.posterior(X[train], LABELS[train], 32.0)
    ours = posterior.losses(X[test], LABELS[test])
    chains = ours.reshape(8, 400, 16).mean(axis=(1, 2))
    error = chains.std(ddof=1) / np.sqrt(8)
    assert abs(ours.mean() - gibbs) < 4 * error + 0.005
    assert abs(-np.log(np.exp(-ours).mean(axis=0)).mean() - predictive) < 4 * error + 0.005
    assert abs(ours.mean() - gibbs - 0.1) > 4 * error  # negative control
