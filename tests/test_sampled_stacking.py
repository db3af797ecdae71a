"""Stacks over beta of models from draws, held to the closed form of the same model."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from temperance import calibrate, calibrate_from_draws, models
from temperance.checks import as_data
from temperance.messages import DrawsWarning, ParetoWarning
from temperance.models.sampled import mixture
from temperance.models.sampled.draws import Draws
from temperance.models.sampled.model import SampledModel
from temperance.rules import BetaWeights, Choice, stack
from temperance.strategies import KFold, LeaveOneOut, Stacking, default_strategy

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


@pytest.fixture(scope="module")
def exact():
    """The closed form, with as many votes for Bayes as sampled models have."""
    return with_one_vote(calibrate(EXACT, X, Y))


def with_one_vote(found):
    table = replace(found.table, votes=1.0)
    weights = stack(table, found.weights.betas)
    return replace(found, table=table, choice=Choice(weights.median, weights=weights))


@pytest.fixture(scope="module")
def drawn():
    return calibrate(Drawn(), X, Y)


def moments(posterior):
    theta = posterior["posterior"]["theta"].values.reshape(-1, X.shape[1])
    return theta.mean(axis=0), theta.std(axis=0)


class TestStack:
    def test_is_the_default(self):
        assert default_strategy(Drawn(), "predictive") == Stacking()
        assert default_strategy(Drawn(), "gibbs") == KFold()

    def test_weights_are_those_of_the_closed_form(self, exact, drawn):
        assert drawn.strategy == exact.strategy and drawn.table.votes == 1
        np.testing.assert_array_equal(drawn.weights.betas, exact.weights.betas)
        known = exact.weights.weights
        np.testing.assert_allclose(drawn.weights.weights, known, atol=0.03)
        assert drawn.beta == pytest.approx(exact.beta, rel=0.1)
        assert drawn.beta_range == pytest.approx(exact.beta_range, rel=0.2)
        # Negative control: with a quarter of the noise variance the weights move.
        other = calibrate(replace(EXACT, noise_variance=NOISE / 4), X, Y).weights
        assert np.abs(other.weights - known).max() > 0.1

    def test_risk_and_errors(self, exact, drawn):
        assert drawn.risk == pytest.approx(exact.risk, abs=0.01)
        assert drawn.bayes_risk == pytest.approx(exact.bayes_risk, abs=0.02)
        assert drawn.standard_error == pytest.approx(exact.standard_error, rel=0.03)
        assert drawn.gain == pytest.approx(exact.gain, abs=0.02)
        assert drawn.gain_standard_error == pytest.approx(exact.gain_standard_error, rel=0.1)
        assert "the posterior is a mixture over beta" in repr(drawn)
        assert "not told apart by the data" in repr(drawn) and "Pareto k" in repr(drawn)

    @pytest.mark.parametrize("source", [None, LeaveOneOut(), KFold(3)], ids=repr)
    def test_the_posterior_is_the_mixture(self, source, drawn, monkeypatch):
        found = drawn
        if source is not None:
            found = calibrate(Drawn(), X, Y, Stacking(source))
        if source != KFold(3):  # the draws of the table are enough
            monkeypatch.setattr(_Sampler, "draw", None)
        tree, law = found.posterior, EXACT.mixture(DATA, found.weights, None).marginals()
        mean, std = moments(tree)
        error = law.std / np.sqrt(1600)
        assert np.all(np.abs(mean - law.mean) < 5 * error)
        np.testing.assert_allclose(std, law.std, rtol=0.06)
        # Negative control: one beta alone is narrower than the mixture.
        narrow = EXACT.posterior(X, Y, found.alpha).marginals().std
        assert np.mean(std / narrow) > 1.03
        assert tree.attrs["beta"] == found.beta
        kept = found.weights.without_negligible()
        np.testing.assert_allclose(tree.attrs["betas"], kept.betas)
        np.testing.assert_allclose(tree.attrs["weights"], kept.weights)
        theta = tree["posterior"]["theta"].values
        losses = EXACT.loss(theta.reshape(-1, X.shape[1]), X, Y).reshape(4, 400, N)
        np.testing.assert_allclose(tree["log_likelihood"]["y"].values, -losses, rtol=1e-9)

    def test_copies_are_joined_and_the_posterior_has_them_all(self):
        """The table's rows are sorted and distinct, the posterior's are those of the data."""
        copies = np.array([3, 0, 0, 1, 2, *range(3, N)])
        found = calibrate(Drawn(), X[copies], Y[copies])
        assert len(found.table.weights) == N
        tree = found.posterior
        theta = tree["posterior"]["theta"].values.reshape(-1, X.shape[1])
        losses = EXACT.loss(theta, X[copies], Y[copies]).reshape(4, 400, N + 2)
        np.testing.assert_allclose(tree["log_likelihood"]["y"].values, -losses, rtol=1e-9)
        weighted = calibrate(Drawn(), X, Y, weights=np.bincount(copies).astype(float))
        # Rows in another order, which are refitted with other random numbers.
        np.testing.assert_allclose(found.weights.weights, weighted.weights.weights, atol=1e-3)
        assert found.risk == pytest.approx(weighted.risk, rel=1e-3)

    def test_few_draws_are_a_warning(self, drawn, monkeypatch):
        monkeypatch.setattr(mixture, "LEAST_EFFECTIVE", 10**6)
        one = BetaWeights(np.ones(1), np.ones(1))
        with pytest.warns(DrawsWarning, match="mixture over beta are worth [0-9]+ independent"):
            mixture.mixture_of_draws(drawn.table.curve.draws, one, (1, 10), np.arange(N))

    def test_plot(self, drawn):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        axes = drawn.plot()
        labels = axes.get_legend_handles_labels()[1]
        assert "± 2 Monte Carlo errors" in labels and axes.get_xscale() == "log"
        assert any(label.startswith("mixture, median") for label in labels)
        shares = [float(text.get_text().rstrip("%")) for text in axes.texts]
        expected = 100 * drawn.weights.weights[drawn.weights.weights > 0.01]
        np.testing.assert_allclose(shares, expected, atol=0.51)
        matplotlib.pyplot.close("all")


@pytest.fixture(scope="module")
def tree():
    return Drawn(draws=1000).posterior(X, Y, 0.3 * N)


class TestFromDraws:
    def test_weights_are_those_of_the_closed_form(self):
        # Draws at .8 support the betas of data with this little noise.
        rng = np.random.default_rng(5)
        y = X @ [1.0, 2.0, 0.0, -1.0, 0.5] + 0.65 * rng.standard_normal(N)
        tree = Drawn(draws=1000).posterior(X, y, 0.8 * N)
        found = calibrate_from_draws(tree, 0.8, strategy="stacking", bounds=(0.6, 2.0))
        known = with_one_vote(calibrate(EXACT, X, y, bounds=(0.6, 2.0)))
        np.testing.assert_allclose(found.weights.betas, [0.6, 1.0, 2.0])
        np.testing.assert_allclose(found.weights.weights, known.weights.weights, atol=0.02)
        assert found.risk == pytest.approx(known.risk, abs=0.005)
        assert found.posterior.weights.sum() == pytest.approx(1.0)
        assert found.posterior.beta == found.beta == pytest.approx(known.beta, rel=0.02)
        law = EXACT.mixture(as_data(X, y), found.weights, None)
        mean = np.tensordot(found.posterior.weights, tree["posterior"]["theta"].values, 2)
        np.testing.assert_allclose(mean, law.mean, atol=0.02)
        assert "mixture over beta" in repr(found)
        assert "  (predictive; constants as in log_likelihood)" in repr(found)

    def test_an_array_is_enough(self, tree):
        array = tree["log_likelihood"]["y"].values
        with pytest.warns(ParetoWarning):
            one, other = (calibrate_from_draws(d, 0.3, strategy="stacking") for d in (tree, array))
        np.testing.assert_array_equal(one.weights.weights, other.weights.weights)

    def test_where_the_support_ends_is_a_warning(self, tree):
        with pytest.warns(ParetoWarning, match="mixture has the weight .* at beta = 0.2[0-9]*, wh"):
            calibrate_from_draws(tree, 0.3, strategy=Stacking())

    def test_draws_far_from_bayes_are_refused(self):
        tree = Drawn(draws=500).posterior(X, Y, 0.02 * N)
        with pytest.raises(ValueError, match="support beta = 1 .* got draws for .* bounds"):
            calibrate_from_draws(tree, 0.02, strategy="stacking")

    def test_only_forecasts_are_stacked(self, tree):
        with pytest.raises(
            ValueError, match="Stacking is for forecasts: risk must be 'predictive'"
        ):
            calibrate_from_draws(tree, 0.3, strategy="stacking", risk="gibbs")
