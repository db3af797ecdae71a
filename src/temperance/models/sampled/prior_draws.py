r"""Draws from the prior, the first rung of every ladder: the user's own, or by NUTS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from temperance.models.sampled.target import Target

TUNING = 500
SETTLING = 50


def given_prior_draws(draw_one: Callable[[Any], Any], groups: int, size: int) -> Callable[..., Any]:
    """Return the function from a key to independent draws (groups, size, d)."""

    def draw(key: Any) -> Any:
        keys = jax.random.split(key, (groups, size))
        flat = jax.vmap(jax.vmap(lambda each: ravel_pytree(draw_one(each))[0]))(keys)
        return flat.astype(float)

    return draw


def nuts_prior_draws(target: Target, groups: int, size: int) -> Callable[..., Any]:
    """Return the function from a key to chains of the prior, (groups, size, d)."""
    try:
        import blackjax  # takes long to import
    except ImportError:
        raise ImportError(
            "log_prior without draw_prior needs BlackJAX: pip install 'temperance[jax]'"
        ) from None

    adaptation = blackjax.window_adaptation(blackjax.nuts, target.log_density_of_prior)

    def draw(key: Any) -> Any:
        key_tune, key_run = jax.random.split(key)
        (tuned, parameters), _ = adaptation.run(key_tune, target.start, TUNING)
        kernel = blackjax.nuts(target.log_density_of_prior, **parameters)

        def chain(key: Any) -> Any:
            def move(state: Any, key: Any) -> Any:
                state, _ = kernel.step(key, state)
                return state, state.position

            _, positions = jax.lax.scan(move, tuned, jax.random.split(key, SETTLING + size))
            return positions[SETTLING:]

        return jnp.asarray(jax.vmap(chain)(jax.random.split(key_run, groups)))

    return draw
