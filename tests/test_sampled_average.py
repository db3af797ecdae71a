"""Averages over beta of models from draws, held to the closed form of the same model."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from temperance.strategies.default import default_strategy

from temperance import calibrate, calibrate_from_draws, models
from temperance.checks import as_data
from temperance.messages import DrawsWarning, ParetoWarning
from temperance.models.sampled import mixture
from temperance.models.sampled.draws import Draws
from temperance.models.sampled.model import SampledModel
from temperance.models.sampled.parameters_used import parameters_used
from temperance.models.sampled.stan_model import StanModel, parameters_of
from temperance.plans import Pairs
from temperance.strategies import Average, KFold, LeaveOneOut

NOISE = 0.4
EXACT = models.GaussianLinear(noise_variance=NOISE)
RNG = np.random.default_rng(3)
N = 40
X = np.column_stack([np.ones(N), RNG.standard_normal((N, 4))])
Y = X @ [1.0, 2.0, 0.0, -1.0, 0.5] + 1.5 * RNG.standard_normal(N)
DATA = as_data(X, Y)


@dataclass(frozen=True, eq=False)
class Drawn(SampledModel):
    """The closed form as a sampled model: independent draws of its posteriors."""

    chains: int = 4
    draws: int = 400
    warmup: int = 50
    overlap: float = 0.5
    seed: int = 0
    progress: bool = False

    def sampler(self, data):
        return _Sampler(self, data)


@dataclass(frozen=True)
class _Sampler:
    model: Drawn
    data: object

    def draw(self, exponents, seed, start=None):
        X, y, shape = self.data.X, self.data.y, (self.model.chains, self.model.draws)
        precision = np.eye(X.shape[1]) + (X.T * exponents) @ X / NOISE
        mean = np.linalg.solve(precision, X.T @ (exponents * y) / NOISE)
        root = np.linalg.inv(np.linalg.cholesky(precision))
        noise = np.random.default_rng(seed).standard_normal((*shape, len(mean)))
        theta = mean + noise @ root
        return Draws(
            {"theta": theta}, EXACT.loss(theta.reshape(-1, len(mean)), X, y).reshape(*shape, -1)
        )


def averaged(model, strategy=None, **options):
    return calibrate(model, X, Y, strategy, risk="predictive", **options)


@pytest.fixture(scope="module")
def exact():
    return averaged(EXACT)


@pytest.fixture(scope="module")
def drawn():
    return averaged(Drawn())


def moments(posterior):
    theta = posterior["posterior"]["theta"].values.reshape(-1, X.shape[1])
    return theta.mean(axis=0), theta.std(axis=0)


class TestParametersUsed:
    @pytest.mark.parametrize("beta", [0.01, 0.2, 1.0, 3.0])
    def test_are_those_of_the_closed_form(self, beta):
        whole = Pairs(np.ones((1, N)), np.ones((1, N)), float(N))
        curve = Drawn(draws=2500).risk_curve(DATA, whole)
        found = curve.parameters_used(DATA, np.array([beta]))[0]
        expected = EXACT.parameters_used(DATA, np.array([beta]))[0]
        # The standard deviation of the mean of u z'z over independent draws is about d / sqrt(N).
        assert abs(found - expected) < 4 * 5 / np.sqrt(10_000)

    def test_many_parameters_are_not_undercounted(self):
        rng = np.random.default_rng(0)
        theta = rng.standard_normal((40, 1000, 100))
        u = 0.5 * (theta**2).sum(axis=2)
        even = np.full(1000, 1e-3)
        counts = [parameters_used(u[i], theta[i], even, 0.9) for i in range(40)]
        assert abs(np.mean(counts) - 90) < 4 * np.std(counts) / np.sqrt(40) + 1.5
        assert np.mean(counts) * (1 - 100 / 1000) < 86  # without the correction

    def test_what_has_no_effect_adds_nothing(self):
        rng = np.random.default_rng(1)
        theta = rng.standard_normal((20_000, 3))
        u, even = 0.5 * (theta**2).sum(axis=1), np.full(20_000, 5e-5)
        wide = np.column_stack(
            [theta, theta @ [1e9, 0.0, 1.0], np.ones(20_000), rng.random(20_000)]
        )
        assert parameters_used(u, theta, even, 0.5) == pytest.approx(1.5, abs=0.1)
        assert parameters_used(u, wide, even, 0.5) == pytest.approx(1.5, abs=0.1)

    def test_too_few_draws(self):
        theta = np.random.default_rng(0).standard_normal((60, 20))
        with pytest.raises(ValueError, match="worth at least 100 .* 20 parameters, got 60 at beta"):
            parameters_used(theta.sum(axis=1), theta, np.full(60, 1 / 60), 1.0)

    def test_of_a_stan_program(self):
        program = """
        data { int n; vector[n] y; vector[n] weights; }
        transformed data { real mean_y = mean(y); }
        parameters { real mu;  // a level
          vector<lower=0, upper=n>[3] s; array[2] real b; simplex[n] p; }
        transformed parameters { real twice; twice = 2 * mu; }
        model { y ~ normal(mu, s[1]); }
        generated quantities { vector[n] log_lik; }
        """
        assert parameters_of(StanModel(program, {"y": [1.0]}).code) == ["mu", "s", "b", "p"]


class TestAverage:
    def test_is_the_default(self):
        usual = Average(LeaveOneOut())
        assert default_strategy(Drawn(), "predictive") == usual
        assert default_strategy(Drawn(), "gibbs") == KFold()

    def test_weights_are_those_of_the_closed_form(self, exact, drawn):
        assert drawn.strategy == exact.strategy
        # Their standard deviation over seeds is .01 at most; the ends of the betas may differ.
        shares = np.linspace(0.1, 0.9, 9)
        ours, theirs = ([each.average.quantile(q) for q in shares] for each in (drawn, exact))
        np.testing.assert_allclose(ours, theirs, rtol=0.15)
        assert drawn.beta == pytest.approx(exact.beta, rel=0.1)
        assert drawn.beta_range == pytest.approx(exact.beta_range, rel=0.2)
        # Negative control: with twice the noise variance the weights move.
        other = averaged(replace(EXACT, noise_variance=2 * EXACT.noise_variance)).average
        assert other.quantile(0.5) / exact.beta > 1.5

    def test_risk_and_errors(self, exact, drawn):
        assert drawn.risk == pytest.approx(exact.risk, abs=0.01)
        assert drawn.standard_error == pytest.approx(exact.standard_error, rel=0.02)
        assert drawn.gain == pytest.approx(exact.gain, abs=0.02)
        assert "95 % of the weights" in repr(drawn) and "Pareto k" in repr(drawn)

    @pytest.mark.parametrize("source", [LeaveOneOut(), KFold(3)], ids=["one", "three"])
    def test_the_posterior_is_the_mixture(self, source, exact, drawn, monkeypatch):
        found, known = drawn, exact
        if source == LeaveOneOut():  # the draws of the curve are enough
            monkeypatch.setattr(_Sampler, "draw", None)
        else:
            found, known = (averaged(model, Average(source)) for model in (Drawn(), EXACT))
        tree, law = found.posterior, known.posterior.marginals()
        mean, std = moments(tree)
        error = law.std / np.sqrt(1600)
        assert np.all(np.abs(mean - law.mean) < 5 * error)
        np.testing.assert_allclose(std, law.std, rtol=0.06)
        # Negative control: one beta alone is narrower than the mixture.
        narrow = EXACT.posterior(X, Y, known.alpha).marginals().std
        assert np.mean(std / narrow) > 1.03
        assert tree.attrs["beta"] == found.beta
        np.testing.assert_allclose(tree.attrs["weights"], found.average.weights)
        theta = tree["posterior"]["theta"].values
        losses = EXACT.loss(theta.reshape(-1, X.shape[1]), X, Y).reshape(4, 400, N)
        np.testing.assert_allclose(tree["log_likelihood"]["y"].values, -losses, rtol=1e-9)

    def test_few_draws_are_a_warning(self, drawn, monkeypatch):
        monkeypatch.setattr(mixture, "LEAST_EFFECTIVE", 10**6)
        with pytest.warns(DrawsWarning, match="average over beta are worth [0-9]+ independent"):
            mixture.mixture_of_draws(drawn.curve.draws, np.ones(1), np.ones(1), (1, 10), N)


@pytest.fixture(scope="module")
def tree():
    return Drawn(draws=1000).posterior(X, Y, 0.3 * N)


class TestFromDraws:
    def test_weights_are_those_of_the_closed_form(self):
        # Draws at .8 support the betas of data with this little noise.
        rng = np.random.default_rng(5)
        y = X @ [1.0, 2.0, 0.0, -1.0, 0.5] + 0.65 * rng.standard_normal(N)
        known = calibrate(EXACT, X, y, risk="predictive", bounds=(0.6, 2.0))
        tree = Drawn(draws=1000).posterior(X, y, 0.8 * N)
        found = calibrate_from_draws(
            tree, 0.8, strategy="average", risk="predictive", bounds=(0.6, 2.0)
        )
        for share in np.linspace(0.1, 0.9, 9):
            ours, theirs = (each.average.quantile(share) for each in (found, known))
            assert ours == pytest.approx(theirs, rel=0.03)
        assert found.posterior.weights.sum() == pytest.approx(1.0)
        assert found.posterior.beta == found.beta == pytest.approx(known.beta, rel=0.02)
        chosen = tree["posterior"]["theta"].values
        mean = np.tensordot(found.posterior.weights, chosen, 2)
        np.testing.assert_allclose(mean, known.posterior.mean, atol=0.02)
        assert "average over beta" in repr(found)
        assert "  (predictive; constants as in log_likelihood)" in repr(found)

    def test_where_the_support_ends_is_a_warning(self, tree):
        with pytest.warns(ParetoWarning, match="weights of the average do not end; draw again at"):
            calibrate_from_draws(tree, 0.3, strategy="average", risk="predictive")

    def test_draws_far_from_bayes_are_refused(self):
        tree = Drawn(draws=500).posterior(X, Y, 0.02 * N)
        with pytest.raises(ValueError, match="support beta = 1 .* got draws for .* bounds"):
            calibrate_from_draws(tree, 0.02, strategy="average", risk="predictive")

    def test_parameters_are_needed(self, tree):
        with pytest.raises(ValueError, match="ArviZ object whose group posterior has the param"):
            calibrate_from_draws(
                tree["log_likelihood"]["y"].values, 0.3, strategy="average", risk="predictive"
            )
        with pytest.raises(ValueError, match="parameters must be among theta, got 'sigma'"):
            calibrate_from_draws(
                tree, 0.3, strategy="average", risk="predictive", parameters=["sigma"]
            )
