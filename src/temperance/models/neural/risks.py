r"""Losses of tested rows under draws from fitted networks.

Gibbs:  E l_i(theta);    predictive:  -log E exp(-l_i(theta)),    E the mean over draws.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from temperance.models.neural.method import Method
from temperance.models.neural.network import Network
from temperance.models.neural.training import Task

ROWS_AT_ONCE = 2**15  # rows times draws that go through a network together


class Tested(NamedTuple):
    """Losses of the tested rows (F, rows), and the sum of each draw over these rows (F, draws)."""

    losses: Any
    influence: Any


@partial(jax.jit, static_argnames=("network", "method", "size", "predictive"))
def tested_losses(
    network: Network,
    method: Method,
    size: int,
    predictive: bool,
    task: Task,
    variables: Any,
    index: Any,
    test: Any,
    key: Any,
) -> Tested:
    """Return the losses of F posteriors at the rows ``index`` (P, rows) with weights ``test``."""

    def one(part: tuple[Any, Any]) -> Tested:
        variable, pair = part
        X, y = jax.tree.map(lambda rows: rows[index[pair]], (task.X, task.y))
        # The same key for all: common random numbers make the curve smooth.
        draws = method.draws(variable, key, size)
        at_once = max(1, min(len(draws), ROWS_AT_ONCE // index.shape[1]))
        losses = jax.lax.map(
            lambda u: network.losses(task.prior.theta(u), X, y), draws, batch_size=at_once
        )
        if not predictive:
            return Tested(losses.mean(axis=0), losses @ test[pair])
        found = jnp.log(len(draws)) - jax.nn.logsumexp(-losses, axis=0)
        # The derivative of -log E[p] in the weight of a draw is -p / E[p].
        return Tested(found, -jnp.exp(found - losses) @ test[pair])

    return jax.lax.map(one, (variables, task.pair))
