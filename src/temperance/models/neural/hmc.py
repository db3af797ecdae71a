r"""Hamiltonian Monte Carlo: draws of the Gibbs posterior itself, by chains on all rows.

Each chain starts from the mode that training finds from its own start.  Steps have the size at
which the share ``acceptance`` of moves is accepted (dual averaging, Hoffman and Gelman 2014), and
vary by a fifth from move to move.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from temperance.checks import open_unit, whole
from temperance.models.neural.method import energy
from temperance.models.neural.network import Network
from temperance.models.neural.point import modes
from temperance.models.neural.training import Run, Task, Trained, groups

FIRST_STEP = 0.02
JITTER = 0.2
LOW_ACCEPTANCE = 0.4  # below it a chain has not settled


@dataclass(frozen=True)
class HMC:
    """Hamiltonian Monte Carlo on all rows.

    Parameters
    ----------
    chains : int
        Chains of each pair and beta.
    warmup, moves : int
        Moves in which the step size is found, and moves from which draws are kept.
    kept : int
        Draws that are kept of each chain, evenly spaced.
    steps : int
        Leapfrog steps of a move.
    acceptance : float
        Share of moves to be accepted.
    """

    chains: int = 4
    warmup: int = 200
    moves: int = 400
    kept: int = 40
    steps: int = 30
    acceptance: float = 0.8
    words: ClassVar[str] = "HMC"
    unsettled: ClassVar[str] = "accepted few moves"
    draws_per_step: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Refuse settings that draw nothing."""
        for name, least in (("chains", 2), ("warmup", 1), ("moves", 1), ("kept", 1), ("steps", 1)):
            whole(name, getattr(self, name), least)
        open_unit("acceptance", self.acceptance)
        if self.kept > self.moves:
            raise ValueError(f"kept must be at most moves = {self.moves}, got {self.kept!r}")

    @property
    def members(self) -> int:
        """One start for each chain."""
        return self.chains

    def fit(self, network: Network, task: Task, run: Run, start: Any) -> Trained:
        """Return draws (F, chains kept, d), those of a chain together."""
        found = modes(network, task, run, start)
        u = found.variables.reshape(-1, network.size)
        each = task.repeated(self.chains)
        chain = np.tile(np.arange(self.chains), len(task.betas))
        key = jax.random.key(run.seed + 2)
        # Chains see all rows at once, training a mini-batch.
        lanes = max(1, run.lanes * min(run.training.batch_size, task.rows) // task.rows)
        # An accelerator's faster products of matrices are too coarse for differences of energies.
        with jax.default_matmul_precision("highest"):
            parts, done = [], 0
            for index, kept in groups(len(u), lanes):
                run.tell(f"chains drawn: {done} of {len(u)}")
                drawn = _chains(network, self, each.of(index), u[index], chain[index], key)
                parts.append([part[:kept].block_until_ready() for part in drawn])
                done += kept
        draws, accepted = (jnp.concatenate(both) for both in zip(*parts, strict=True))
        shape = (len(task.betas), -1)
        settled = (accepted > LOW_ACCEPTANCE).reshape(shape)
        return Trained(draws.reshape(*shape, network.size), settled)

    def draws(self, variables: Any, key: Any, size: int) -> Any:
        """Return the draws of all chains, however many are asked for."""
        return variables

    def replicates(self, size: int) -> int:
        """Return the number of chains."""
        return self.chains

    def log_prob(self, network: Network, task: Task, variables: Any, u: Any) -> Any:
        """Return the log density at u, up to a constant."""
        weights, beta = task.weights[task.pair[0]], task.betas[0]
        return -energy(network, task.prior, u, task.X, task.y, weights, beta)


@partial(jax.jit, static_argnames=("network", "settings"))
def _chains(
    network: Network, settings: HMC, task: Task, u: Any, chain: Any, key: Any
) -> tuple[Any, Any]:
    """Return draws (lanes, kept, d) and shares of accepted moves (lanes,)."""

    def one(u: Any, pair: Any, beta: Any, chain: Any) -> tuple[Any, Any]:
        def potential(u: Any) -> Any:
            weights = task.weights[pair]
            return energy(network, task.prior, u, task.X, task.y, weights, beta)

        slope = jax.value_and_grad(potential)

        def move(u: Any, value: Any, force: Any, size: Any, key: Any) -> Any:
            momentum_key, jitter_key, accept_key = jax.random.split(key, 3)
            momentum = jax.random.normal(momentum_key, u.shape)
            step = size * jax.random.uniform(jitter_key, (), minval=1 - JITTER, maxval=1 + JITTER)

            def leapfrog(_: Any, state: Any) -> Any:
                at, p, _, force = state
                p = p - 0.5 * step * force
                at = at + step * p
                value, force = slope(at)
                return at, p - 0.5 * step * force, value, force

            state = (u, momentum, value, force)
            at, p, new, pull = jax.lax.fori_loop(0, settings.steps, leapfrog, state)
            gain = value + 0.5 * momentum @ momentum - new - 0.5 * p @ p
            chance = jnp.where(jnp.isfinite(gain), jnp.exp(jnp.minimum(gain, 0.0)), 0.0)
            taken = jax.random.uniform(accept_key) < chance
            return *(
                jnp.where(taken, then, now) for then, now in ((at, u), (new, value), (pull, force))
            ), chance

        def adapt(state: Any, key: Any) -> tuple[Any, None]:
            u, value, force, (size, mean_error, average, t) = state
            u, value, force, chance = move(u, value, force, jnp.exp(size), key)
            # Dual averaging with the constants of Hoffman and Gelman.
            t = t + 1
            share = 1 / (t + 10)
            mean_error = (1 - share) * mean_error + share * (settings.acceptance - chance)
            size = np.log(10 * FIRST_STEP) - jnp.sqrt(t) / 0.05 * mean_error
            weight = t**-0.75
            average = weight * size + (1 - weight) * average
            return (u, value, force, (size, mean_error, average, t)), None

        warm, draw = jax.random.split(jax.random.fold_in(key, chain))
        first = (jnp.log(FIRST_STEP), jnp.zeros(()), jnp.log(FIRST_STEP), jnp.zeros(()))
        state = (u, *slope(u), first)
        keys = jax.random.split(warm, settings.warmup)
        (u, value, force, (_, _, average, _)), _ = jax.lax.scan(adapt, state, keys)

        def several(state: Any, keys: Any) -> tuple[Any, Any]:
            def once(state: Any, key: Any) -> tuple[Any, Any]:
                u, value, force = state
                u, value, force, chance = move(u, value, force, jnp.exp(average), key)
                return (u, value, force), chance

            state, chances = jax.lax.scan(once, state, keys)
            return state, (state[0], chances.mean())

        apart = settings.moves // settings.kept
        keys = jax.random.split(draw, (settings.kept, apart))
        _, (draws, chances) = jax.lax.scan(several, (u, value, force), keys)
        return draws, chances.mean()

    return jax.vmap(one)(u, task.pair, task.betas, chain)
