"""One Hamiltonian move: what it leaves invariant, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from temperance.models.sampled import hmc

COVARIANCE = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
PRECISION = np.linalg.inv(COVARIANCE)
SCALES = {"matrix": COVARIANCE, "diagonal": np.diag(COVARIANCE)}
STEPS = {2: 1.2, 1: 0.9}  # coarse: without acceptance, variances come out wrong
CHAINS = 20_000
solve = hmc.solve_triangular


def log_density(theta):
    return -0.5 * theta @ PRECISION @ theta


def away(scale):
    """Return how far the covariance of draws moved once is away, in standard errors."""
    start = np.random.default_rng(0).multivariate_normal(np.zeros(3), COVARIANCE, CHAINS)

    def once(key, theta):
        state = hmc.state_at(theta, log_density)
        state, chance, _ = hmc.move(
            key, state, log_density, STEPS[scale.ndim], jnp.asarray(scale), 3
        )
        return state.position, chance

    keys = jax.random.split(jax.random.key(0), CHAINS)
    # Another function at each call, so that a changed move is compiled anew.
    end, chances = jax.jit(jax.vmap(once))(keys, start.astype(np.float32))
    end = np.asarray(end, dtype=float)
    variances = np.diag(COVARIANCE)
    error = np.sqrt((np.outer(variances, variances) + COVARIANCE**2) / CHAINS)
    assert np.abs(end - start).mean() > 0.3
    return (np.abs(end.T @ end / CHAINS - COVARIANCE) / error).max(), np.asarray(chances).mean()


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_a_normal_is_left_invariant(scale):
    found, chance = away(scale)
    assert found < 4
    assert 0.5 < chance < 0.95  # coarse enough for acceptance to matter


def test_not_without_acceptance(monkeypatch):
    monkeypatch.setattr(jax.random, "bernoulli", lambda key, chance: chance > -1)
    assert away(SCALES["matrix"])[0] > 5


def test_not_with_momentum_of_another_covariance(monkeypatch):
    """With p = L^-1 z instead of L^-T z, where S = L L^T, its covariance is not S^-1."""
    monkeypatch.setattr(
        hmc, "solve_triangular", lambda root, z, lower, trans: solve(root, z, lower=lower)
    )
    assert away(SCALES["matrix"])[0] > 5


def test_nan_is_refused_and_counts_as_divergent():
    def half(theta):
        return jnp.where(theta[0] > 0, -0.5 * theta @ theta, jnp.nan)

    def once(key):
        state = hmc.state_at(jnp.array([0.1, 0.0]), half)
        return hmc.move(key, state, half, 0.5, jnp.ones(2), 1)

    found = jax.jit(lambda key: jax.vmap(once)(jax.random.split(key, 200)))(jax.random.key(0))
    after, chance, refused = jax.tree.map(np.asarray, found)
    assert 20 < refused.sum() < 180
    assert (after.position[:, 0] > 0).all() and np.isfinite(after.log_density).all()
    assert (chance[refused] == 0).all() and (chance[~refused] > 0.5).all()
    assert (after.position[refused] == np.float32([0.1, 0.0])).all()
