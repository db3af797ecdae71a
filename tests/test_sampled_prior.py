"""Priors of models in JAX: density and draws belong together."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

from temperance import models
from temperance.models.sampled.loss_check import refuse_other_than_losses
from temperance.models.sampled.precision import double_precision
from temperance.models.sampled.prior import prior_from
from temperance.models.sampled.prior_check import has_edge, refuse_other_draws
from temperance.models.sampled.settings import SMC

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 3))
Y = X @ [1.0, -1.0, 0.5] + RNG.standard_normal(20)


def half_square(theta, x, y):
    return 0.5 * (y - x @ theta) ** 2


def log_normal(theta):
    return -0.5 * theta @ theta


def begin(loss=half_square, X=X, Y=Y, **options):
    """Draw the first rung of a small ladder, where all is checked."""
    model = models.GibbsModel(loss, sampler=SMC(islands=8), **options)
    return model.posterior(X, Y, 0.0)


def scaled(scale):
    return lambda key: scale * jax.random.normal(key, (3,))


class TestDrawsAndDensity:
    def test_draws_of_another_density_are_refused(self):
        with pytest.raises(ValueError, match=r"draw_prior must draw from exp\(log_prior\)"):
            begin(log_prior=log_normal, draw_prior=scaled(0.3))

    def test_the_same_draw_each_time_is_refused(self):
        with pytest.raises(ValueError, match=r"another parameter for every key, got \[0.0, 0.0"):
            begin(log_prior=log_normal, draw_prior=lambda key: jnp.zeros(3))

    @pytest.mark.slow
    def test_an_improper_density_is_refused(self):
        with pytest.raises(ValueError, match="log_prior must be the log density of a proper prior"):
            begin(log_prior=lambda theta: 0.0 * theta.sum(), init=np.zeros(3))

    def test_chains_of_an_improper_density(self):
        walk = np.cumsum(RNG.standard_normal((1, 8, 50, 2)), axis=2)
        with pytest.raises(ValueError, match="log_prior must be the log density of a proper prior"):
            refuse_other_draws(walk, 0.0 * walk, False)
        refuse_other_draws(walk, -1.0 + 0.1 * walk - 0.1 * walk.mean(), False)

    @pytest.mark.slow
    def test_right_draws_pass(self):
        tree = begin(log_prior=log_normal, draw_prior=scaled(1.0))
        assert tree["posterior"]["theta"].values.std() == pytest.approx(1.0, abs=0.1)

    @pytest.mark.parametrize(
        "law", [stats.norm(), stats.t(2), stats.cauchy(), stats.laplace(), stats.logistic()]
    )
    def test_identity(self, law):
        """Right draws pass over many seeds, heavy tails too; a scale of 1.5 does not."""
        step = 1e-6
        for seed in range(20):
            draws = law.rvs((2, 8, 200, 4), random_state=seed)

            def products(at):
                return at * (law.logpdf(at + step) - law.logpdf(at - step)) / (2 * step)

            refuse_other_draws(draws, products(draws), True)
            with pytest.raises(ValueError, match="draw_prior"):
                refuse_other_draws(1.5 * draws, products(1.5 * draws), True)


class TestEdges:
    """A density that ends at an edge is not checked there, and is elsewhere."""

    def log_prior(self, theta):
        box = (theta[0] > 0) & (theta[0] < 1) & (theta[1] > 0)
        return jnp.where(box, -0.5 * (theta[1] ** 2 + theta[2] ** 2), -jnp.inf)

    def draws(self, scale):
        uniform, half = RNG.random(3000), np.abs(RNG.standard_normal(3000))
        return np.stack([uniform, half, scale * RNG.standard_normal(3000)], axis=1)

    def test_are_found(self):
        draws = self.draws(1.0)
        log_density = jax.vmap(self.log_prior)
        assert has_edge(draws, log_density).tolist() == [True, True, False]
        assert not has_edge(draws, jax.vmap(log_normal)).any()

    @pytest.mark.parametrize("scale", [1.0, 1.5])
    def test_coordinates_without_one_are_checked(self, scale):
        draws = self.draws(scale).reshape(1, 10, 300, 3)
        products = draws * [0.0, -1.0, -1.0] * draws  # of a uniform, half normal and normal law
        checked = np.array([False, False, True])
        with pytest.raises(ValueError, match="of coordinate 0"):  # an edge, if it were checked
            refuse_other_draws(draws, products, True)
        if scale == 1.0:
            refuse_other_draws(draws, products, True, checked)
            refuse_other_draws(draws, products, True, np.zeros(3, dtype=bool))
        else:
            with pytest.raises(ValueError, match=r"per coordinate, got -2\.\d+ .* of coordinate 2"):
                refuse_other_draws(draws, products, True, checked)

    def test_a_model_with_edges_is_sampled(self):
        def draw(key):
            one, two, three = jax.random.split(key, 3)
            half = jnp.abs(jax.random.normal(two))
            return jnp.stack([jax.random.uniform(one), half, jax.random.normal(three)])

        tree = begin(log_prior=self.log_prior, draw_prior=draw)
        theta = tree["posterior"]["theta"].values.reshape(-1, 3)
        assert theta[:, 0].max() < 1 and theta[:, :2].min() > 0


class TestNumPyro:
    """Distributions and models of NumPyro give density and draws, in all of R^d."""

    def tree(self):
        return {
            "slopes": dist.Normal(0.0, 1.0).expand([3]),
            "scale": dist.HalfCauchy(1.0),
            "share": dist.Dirichlet(jnp.ones(3)),
            "rate": dist.Uniform(2.0, 5.0),
        }

    def model(self):
        scale = numpyro.sample("scale", dist.HalfNormal(2.0))
        below = numpyro.sample("below", dist.Uniform(0.0, scale))
        numpyro.deterministic("ratio", below / scale)

    @pytest.mark.parametrize("kind", [pytest.param("tree", marks=pytest.mark.slow), "model"])
    def test_stein(self, kind):
        prior = prior_from(*(self.tree() if kind == "tree" else self.model, None, None, None))
        with double_precision():
            keys = jax.random.split(jax.random.key(1), 2000)
            z = jax.jit(jax.vmap(prior.draw))(keys)
            slope = jax.jit(jax.vmap(jax.grad(prior.log_density)))(z)
            theta = jax.tree.map(np.asarray, jax.jit(jax.vmap(prior.constrain))(z))
            z, slope = jax.tree.map(np.asarray, (z, slope))
        for name, draws in z.items():
            product = (draws * slope[name]).reshape(1, 10, 200, -1)
            refuse_other_draws(draws.reshape(product.shape), product, True)
        if kind == "model":
            assert ((theta["ratio"] > 0) & (theta["ratio"] < 1)).all()
            np.testing.assert_allclose(theta["ratio"], theta["below"] / theta["scale"])
        else:
            assert theta["share"].shape == (2000, 3)
            assert 2 <= theta["rate"].min() < 2.1 and 4.9 < theta["rate"].max() <= 5

    @pytest.mark.parametrize(
        ("prior", "message"),
        [
            (dist.ImproperUniform(dist.constraints.real, (), (3,)), "must be proper"),
            (dist.Poisson(3.0), "prior must be continuous, .* got Poisson"),
            ({"a": dist.Normal(), "b": 3.0}, "prior must be a NumPyro distribution, a pytree"),
            (3.0, "prior must be a NumPyro distribution, a pytree"),
            (None, "prior must be .* got neither"),
            (lambda theta: 0.0, "without observations or arguments, got TypeError"),
            (lambda: 0.0, "got a function without sites; a density is log_prior"),
            (
                lambda: numpyro.sample("y", dist.Normal(), obs=1.0),
                "prior must be a model without observations, got 'y' observed",
            ),
            (lambda: numpyro.sample("k", dist.Bernoulli(0.5)), "continuous, .* for 'k'"),
            (
                lambda: numpyro.sample("a", dist.ImproperUniform(dist.constraints.real, (), ())),
                "prior must be proper",
            ),
        ],
    )
    def test_refusals(self, prior, message):
        with pytest.raises(ValueError, match=message):
            models.GibbsModel(half_square, prior)

    def test_bounded_parameters(self):
        """Draws have the bounds of the prior; names are those of its sites."""

        def loss(theta, x, y):
            return 0.5 * (y - theta["slope"] * x[0]) ** 2 / theta["scale"]

        tree = begin(loss, prior={"slope": dist.Normal(), "scale": dist.Uniform(1.0, 2.0)})
        scale = tree["posterior"]["scale"].values
        assert 1 <= scale.min() < 1.05 and 1.95 < scale.max() <= 2


def rows_of(loss):
    """Return the function (draws, X, y) -> losses (draws, rows)."""
    rows = jax.vmap(jax.vmap(loss, in_axes=(None, 0, 0)), in_axes=(0, None, None))

    def losses(draws, X, y):
        with double_precision():
            return np.asarray(jax.jit(rows)(draws, X, y))

    return losses


class TestLosses:
    DRAWS = RNG.standard_normal((100, 3))

    @pytest.mark.parametrize(
        "loss",
        [
            lambda theta, x, y: -half_square(theta, x, y),
            lambda theta, x, y: y * (x @ theta) - jnp.exp(x @ theta),
            lambda theta, x, y: -jnp.log1p((y - x @ theta) ** 2),
        ],
        ids=["squared", "poisson", "student"],
    )
    def test_a_log_likelihood_is_refused(self, loss):
        with pytest.raises(ValueError, match=r"loss must be bounded below.*minus the log"):
            refuse_other_than_losses(rows_of(loss), self.DRAWS, X, np.abs(Y).round())

    @pytest.mark.parametrize(
        "loss",
        [
            half_square,
            lambda theta, x, y: -y * (x @ theta),
            lambda theta, x, y: -jnp.exp(-half_square(theta, x, y)),
            lambda theta, x, y: (
                0.5 * (y - x[:2] @ theta[:2]) ** 2 * jnp.exp(-2 * theta[2]) + theta[2]
            ),
        ],
        ids=["squared", "linear", "bounded", "learned scale"],
    )
    def test_others_pass(self, loss):
        refuse_other_than_losses(rows_of(loss), self.DRAWS, X, Y)

    def test_the_same_for_all_rows(self):
        def total(theta, x, y):
            return 0.5 * jnp.sum((Y - X @ theta) ** 2)

        with pytest.raises(ValueError, match="loss must depend on its observation, got the same"):
            begin(total, prior=dist.Normal().expand([3]))
        refuse_other_than_losses(rows_of(total), self.DRAWS, X[:1], Y[:1])
