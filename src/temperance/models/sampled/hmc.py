r"""One move of Hamiltonian Monte Carlo, preconditioned by a covariance.

With the density exp(-U), the covariance S of the draws and momenta p ~ N(0, S^-1), the leapfrog

    p <- p - h/2 grad U(theta),    theta <- theta + h S p,    p <- p - h/2 grad U(theta)

is repeated, and its end accepted with probability min(1, exp(H - H')), H = U(theta) + p' S p / 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

DIVERGENT = 1000.0  # rise of H


class State(NamedTuple):
    """A point (d,), its log density and the gradient there."""

    position: Any
    log_density: Any
    slope: Any


def state_at(position: Any, log_density: Callable[[Any], Any]) -> State:
    """Return the state of a point."""
    return State(position, *jax.value_and_grad(log_density)(position))


def move(
    key: Any, state: State, log_density: Callable[[Any], Any], step: Any, scale: Any, length: Any
) -> tuple[State, Any, Any]:
    """Return the next state, the probability with which it was accepted, and whether it diverged.

    Parameters
    ----------
    step : size h of a leapfrog step
    scale : array of shape (d, d) or (d,)
        Covariance S, or its diagonal.
    length : number of leapfrog steps
    """
    key_momentum, key_accept = jax.random.split(key)
    noise = jax.random.normal(key_momentum, state.position.shape, state.position.dtype)
    if scale.ndim == 1:
        momentum = noise / jnp.sqrt(scale)
    else:
        root = jnp.linalg.cholesky(scale)
        momentum = solve_triangular(root, noise, lower=True, trans=1)

    def velocity(p: Any) -> Any:
        return scale * p if scale.ndim == 1 else scale @ p

    def leapfrog(_: Any, at: tuple[State, Any]) -> tuple[State, Any]:
        state, p = at
        p = p + 0.5 * step * state.slope
        state = state_at(state.position + step * velocity(p), log_density)
        return state, p + 0.5 * step * state.slope

    def total(state: State, p: Any) -> Any:
        return -state.log_density + 0.5 * velocity(p) @ p

    end, momentum_there = jax.lax.fori_loop(0, length, leapfrog, (state, momentum))
    fall = total(state, momentum) - total(end, momentum_there)
    fall = jnp.where(jnp.isnan(fall), -jnp.inf, fall)
    chance = jnp.minimum(jnp.exp(fall), 1.0)
    accepted = jax.random.bernoulli(key_accept, chance)
    kept = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), end, state)
    return kept, chance, -fall > DIVERGENT
