r"""The no-U-turn sampler at every rung, started and tuned by draws of the previous rung."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

try:
    import blackjax
    from blackjax.adaptation.step_size import dual_averaging_adaptation
except ImportError:
    raise ImportError("NUTS needs BlackJAX: pip install 'temperance[jax]'") from None

from temperance.models.sampled.smc import ACCEPTANCE, ascent, scalars, scale_of
from temperance.models.sampled.target import Target

MOST_DOUBLINGS = 8


def nuts_rung(target: Target, tune: int) -> Callable[..., Any]:
    """Return the function that draws one pair's chains (chains, size, d) at the next beta."""

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
        chains, size, _ = positions.shape
        log_weight = ascent(energy, old, beta)
        scale = scale_of(positions, log_weight)
        key_start, key_tune, key_draw = jax.random.split(key, 3)
        # Each chain starts at one of its draws of the previous rung, reweighted to the new beta.
        chosen = jax.vmap(jax.random.categorical)(jax.random.split(key_start, chains), log_weight)
        start = jax.vmap(lambda own, i: own[i])(positions, chosen)

        def density(flat: Any) -> Any:
            return target.log_density_of_prior(flat) - beta * target.energy(flat, weights, X, y)

        def move(state: Any, key: Any, step: Any) -> Any:
            keys = jax.random.split(key, chains)
            kernel = blackjax.nuts.build_kernel()
            return jax.vmap(lambda k, s: kernel(k, s, density, step, scale, MOST_DOUBLINGS))(
                keys, state
            )

        begin, update, final = dual_averaging_adaptation(ACCEPTANCE)

        def tuning(carry: Any, key: Any) -> Any:
            state, averaging = carry
            state, info = move(state, key, jnp.exp(averaging.log_step_size))
            return (state, update(averaging, info.acceptance_rate.mean())), None

        def drawing(state: Any, key: Any) -> Any:
            state, info = move(state, key, tuned)
            return state, (state.position, info.is_divergent.sum())

        state = jax.vmap(lambda flat: blackjax.nuts.init(flat, density))(start)
        (state, averaging), _ = jax.lax.scan(
            tuning, (state, begin(step)), jax.random.split(key_tune, tune)
        )
        tuned = final(averaging)
        _, (drawn, divergent) = jax.lax.scan(drawing, state, jax.random.split(key_draw, size))
        drawn = jnp.swapaxes(drawn, 0, 1)
        return (*scalars(target, drawn, weights, tests, X, y), tuned, divergent.sum())

    return rung
