"""Errors of sampled curves are honest: held to long runs of NumPyro's NUTS at single betas."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS

from temperance import models, strategies
from temperance.data import Data
from temperance.models.sampled.batched import BatchedLadders
from temperance.models.sampled.curve import PairedDraws
from temperance.models.sampled.ladder import SampledLadders
from temperance.models.sampled.reliability import relative_efficiency
from temperance.models.sampled.settings import SMC

BETAS = np.array([0.1, 1.0, 3.0])
SEEDS = 12
RNG = np.random.default_rng(5)
X = np.column_stack([np.ones(60), RNG.standard_normal((60, 4))])
Y = X[:, 1] + 1.5 * RNG.standard_t(2, 60)
LABELS = (Y > 0).astype(float)
COUNTS = RNG.poisson(RNG.gamma(2.0, 0.5 * np.exp(0.5 * X[:, 1]))).astype(float)
GROUPS = (np.arange(60) % 8)[:, None].astype(float)
OF_GROUPS = RNG.standard_normal(8)[np.arange(60) % 8] + RNG.standard_normal(60)
PLAIN = {"theta": dist.Normal().expand([5])}
NESTED = {"mean": dist.Normal(0, 2), "tau": dist.HalfNormal(), "z": dist.Normal().expand([8])}


def pinball(theta, x, y):
    residual = y - x @ theta["theta"]
    return jnp.maximum(0.8 * residual, -0.2 * residual)


def huber(theta, x, y):
    residual = jnp.abs(y - x @ theta["theta"])
    return jnp.where(residual < 1, 0.5 * residual**2, residual - 0.5)


def hinge(theta, x, y):
    return jnp.maximum(0.0, 1 - (2 * y - 1) * (x @ theta["theta"]))


def poisson(theta, x, y):
    return jnp.exp(x @ theta["theta"]) - y * (x @ theta["theta"])


def nested(theta, x, y):
    group = theta["z"][x[0].astype(int)]
    return 0.5 * (y - theta["mean"] - theta["tau"] * group) ** 2


def hierarchical(X, y):
    mean, tau, z = (numpyro.sample(name, law) for name, law in NESTED.items())
    group = z[X[:, 0].astype(int)]
    numpyro.sample("y", dist.Normal(mean + tau * group, 1.0), obs=y)


PROBLEMS = {
    "quantile": (pinball, PLAIN, X, Y),
    "huber": (huber, PLAIN, X, Y),
    "hinge": (hinge, PLAIN, X, LABELS),
    "poisson": (poisson, PLAIN, X, COUNTS),
    "hierarchical": (nested, NESTED, GROUPS, OF_GROUPS),
}


def by_nuts(loss, prior, data, plan):
    """Return the Gibbs risk at each beta and its standard error."""
    inputs, y = jnp.asarray(data.X), jnp.asarray(data.y)

    def model(weights):
        theta = {name: numpyro.sample(name, law.to_event()) for name, law in prior.items()}
        losses = jax.vmap(lambda x, y: loss(theta, x, y))(inputs, y)
        numpyro.deterministic("tested", losses @ plan.test[0])
        numpyro.factor("trained", -losses @ weights)

    fit = MCMC(
        NUTS(model, target_accept_prob=0.9), num_warmup=400, num_samples=1200, num_chains=8,
        chain_method="vectorized", progress_bar=False, jit_model_args=True,
    )  # fmt: skip
    found = []
    for seed, beta in enumerate(BETAS):
        fit.run(jax.random.key(seed), jnp.asarray(beta * plan.likelihood_weights[0]))
        tested = np.asarray(fit.get_samples(group_by_chain=True)["tested"], dtype=float)
        tested = tested / plan.test.sum()
        effective = tested.size * relative_efficiency(tested)
        found.append((tested.mean(), np.sqrt(tested.var() / effective)))
    return np.array(found).T


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_errors_are_honest(name):
    loss, prior, inputs, y = PROBLEMS[name]
    data = Data(inputs, y, np.ones(60))
    plan = strategies.SampleSplitting().plan(data, np.random.default_rng(0)).pairs()
    truth, error_of_truth = by_nuts(loss, prior, data, plan)
    programs = models.GibbsModel(loss, prior, sampler=SMC(islands=12))._programs(1)
    away, errors = [], []
    for seed in range(SEEDS):
        ladders = BatchedLadders(programs, data.X, data.y, plan, seed, overlap=0.5)
        curve = PairedDraws(ladders, plan, "gibbs")
        errors.append(curve.error(BETAS))
        away.append(curve.evaluate(BETAS)[0] - truth)
    check(name, away, errors, truth, error_of_truth)


def check(name, away, errors, truth, error_of_truth):
    """Differences from the truth are as large as the errors say."""
    typical = np.sqrt(np.mean(np.square(errors), axis=0))
    assert (error_of_truth < 0.5 * typical).all(), error_of_truth / typical
    z = np.array(away) / errors
    rms = np.sqrt(np.mean(z**2))
    assert 0.7 < rms < 1.4, (name, rms)
    assert np.abs(z).max() < 4.5, (name, z)
    # Negative control: the truth at another beta is told apart.
    assert np.abs((away + truth - np.roll(truth, 1)) / errors).min() > 4


@pytest.mark.slow
def test_errors_of_a_numpyro_model_are_honest():
    data = Data(GROUPS, OF_GROUPS, np.ones(60))
    plan = strategies.SampleSplitting().plan(data, np.random.default_rng(0)).pairs()
    truth, error_of_truth = by_nuts(nested, NESTED, data, plan)
    sampler = models.NumPyroModel(hierarchical, draws=100, warmup=200).sampler(data)
    away, errors = [], []
    for seed in range(SEEDS // 2):
        curve = PairedDraws(SampledLadders(sampler, plan, seed), plan, "gibbs")
        errors.append(curve.error(BETAS))
        constant = 0.5 * np.log(2 * np.pi)
        away.append(curve.evaluate(BETAS)[0] - constant - truth)
    check("NumPyroModel", away, errors, truth, error_of_truth)
