r"""Adaptive tempered sequential Monte Carlo: independent islands of particles, none wasted.

At each rung a few particles of an island are drawn by their weights exp(-(beta' - beta) u), and
each is moved several times by Hamiltonian Monte Carlo, preconditioned by the weighted covariance of
all particles.  The states after every move are the island's next particles: a rung costs one move
for each.  Islands never exchange particles, so that their scatter gives a valid error for any
genealogy within them.

References
----------
.. [1] H.-D. Dau and N. Chopin, Waste-free sequential Monte Carlo, JRSS B 84, 2022.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from temperance.models.sampled import hmc
from temperance.models.sampled.target import Target, weighted

ACCEPTANCE = 0.8
QUARTER_TURN = jnp.pi / 2  # of a standard normal: a trajectory of this length forgets its start
MOST_STEPS = 32


def smc_rung(target: Target, moves: int) -> Callable[..., Any]:
    """Return the function that moves one pair's particles (islands, size, d) to the next beta."""

    def rung(
        key: Any,
        positions: Any,
        energy: Any,
        step: Any,
        old: Any,
        beta: Any,
        weights: Any,
        tests: Any,
        X: Any,
        y: Any,
    ) -> Any:
        islands, size, d = positions.shape
        chains = size // moves
        log_weight = ascent(energy, old, beta)
        per_island = jax.nn.softmax(log_weight, axis=1)
        scales = scales_of_others(positions, log_weight)
        key_jitter, key_islands = jax.random.split(key)
        jitter = jax.random.uniform(key_jitter, (islands, moves, chains), minval=0.7, maxval=1.3)
        length = jnp.clip(jnp.round(QUARTER_TURN / step), 1, MOST_STEPS).astype(int)

        def density(flat: Any) -> Any:
            return target.log_density_of_prior(flat) - beta * target.energy(flat, weights, X, y)

        def island(key: Any, particles: Any, weight: Any, steps: Any, half: Any) -> Any:
            def move(state: Any, given: Any) -> Any:
                own = jax.random.split(given[0], chains)
                state, chance, divergent = jax.vmap(
                    lambda k, s, e: hmc.move(k, s, density, e, scales[half], length)
                )(own, state, given[1])
                return state, (state.position, chance, divergent)

            key_start, key_moves = jax.random.split(key)
            start = particles[systematic(key_start, weight, chains)]
            state = jax.vmap(lambda flat: hmc.state_at(flat, density))(start)
            given = (jax.random.split(key_moves, moves), steps)
            _, (drawn, accepted, divergent) = jax.lax.scan(move, state, given)
            return jnp.swapaxes(drawn, 0, 1).reshape(size, d), accepted, divergent

        keys, halves = jax.random.split(key_islands, islands), jnp.arange(islands) % 2
        positions, accepted, divergent = jax.vmap(island)(
            keys, positions, per_island, step * jitter, halves
        )
        step = jnp.clip(step * jnp.exp(accepted.mean() - ACCEPTANCE), 1e-3, 2.0)
        return (*scalars(target, positions, weights, tests, X, y), step, divergent.sum())

    return rung


def systematic(key: Any, weights: Any, count: int) -> Any:
    """Return indices drawn by weights (n,) that sum to 1: one uniform draw on a comb of points."""
    comb = (jnp.arange(count) + jax.random.uniform(key)) / count
    return jnp.clip(jnp.searchsorted(jnp.cumsum(weights), comb), 0, len(weights) - 1)


def ascent(energy: Any, old: Any, beta: Any) -> Any:
    """Return the log weights from draws at one beta to the next."""
    finite = jnp.isfinite(energy)
    return jnp.where(finite, -(beta - old) * jnp.where(finite, energy, 0.0), -1e300)


def scales_of_others(positions: Any, log_weight: Any) -> Any:
    """Return scales for the even and for the odd groups, each from the other half's draws.

    A scale estimated from the same draws that it moves would cause a bias of order d / draws.
    """
    odd, even = slice(1, None, 2), slice(0, None, 2)
    return jnp.stack([scale_of(positions[half], log_weight[half]) for half in (odd, even)])


def scale_of(positions: Any, log_weight: Any) -> Any:
    """Return the weighted covariance of all draws, or their variances for many parameters."""
    d = positions.shape[-1]
    flat, weight = positions.reshape(-1, d), jax.nn.softmax(log_weight.ravel())
    centred = flat - weight @ flat
    variance = weight @ centred**2 + 1e-12
    effective = 1 / jnp.sum(weight**2)
    if d > 100:
        return variance
    # With few effective draws a covariance is mostly noise: shrink it to the variances.
    shrinkage = d / (d + effective)
    covariance = (centred.T * weight) @ centred
    return (1 - shrinkage) * covariance + jnp.diag(shrinkage * variance + 1e-9 * variance)


def scalars(target: Target, positions: Any, weights: Any, tests: Any, X: Any, y: Any) -> Any:
    """Return the draws with their weighted sums of training and of tested losses."""

    def sums(flat: Any) -> Any:
        losses = target.row_losses(flat, X, y)
        return weighted(weights, losses), weighted(tests, losses)

    return (positions, *jax.vmap(jax.vmap(sums))(positions))
