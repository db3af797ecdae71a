"""How many networks fit into memory side by side."""

from __future__ import annotations

from math import prod
from typing import Any

import jax
import jax.numpy as jnp

from temperance.models.neural.network import Network

ON_CPU = 2**31  # bytes
SHARE = 0.5  # of the memory of an accelerator
COPIES = 12  # of the parameters: variables, gradients, moments, averages and draws


def lanes_for(network: Network, X: Any, y: Any, batch_size: int, draws: int) -> int:
    """Return how many networks are trained at the same time, at least 1.

    Parameters
    ----------
    draws : number of draws of the parameters in a step
    """
    rows = min(batch_size, len(jax.tree.leaves(X)[0]))
    X, y = jax.tree.map(lambda part: part[:rows], (X, y))
    program = jax.make_jaxpr(network.losses)(jnp.zeros(network.size), X, y)
    each = COPIES * network.size + 2 * draws * _numbers_in(program.jaxpr)
    return max(1, _bytes() // (4 * each))


def _numbers_in(program: Any) -> int:
    """Return how many numbers a program computes on the way."""
    total = 0
    for step in program.eqns:
        total += sum(prod(getattr(out.aval, "shape", ())) for out in step.outvars)
        for inner in jax.tree.leaves(list(step.params.values()), is_leaf=_is_program):
            if _is_program(inner):
                total += _numbers_in(getattr(inner, "jaxpr", inner))
    return total


def _is_program(part: Any) -> bool:
    return hasattr(part, "eqns")


def _bytes() -> int:
    device = jax.devices()[0]
    known = None if device.platform == "cpu" else device.memory_stats()
    return int(SHARE * known["bytes_limit"]) if known and "bytes_limit" in known else ON_CPU
