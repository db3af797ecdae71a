r"""Laplace's approximation of the last layer, with all others at the mode.

With v the parameters of the last layer, in coordinates in which the prior is N(0, I),

    v ~ N(v_mode, (I + beta H)^-1),     H the Hessian of sum_i w_i l_i in v.

Outputs must be linear in v, so that H is that of a generalised linear model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from temperance.data import Array
from temperance.models.neural.network import Network, Prior
from temperance.models.neural.point import modes
from temperance.models.neural.training import Run, Task, Trained

ROWS_AT_ONCE = 512  # rows whose Hessians are computed together
LINEAR = 1e-3  # share of a change of the outputs that may be a rounding error
FEW_ROWS = 16  # on which linearity is tested


@dataclass(frozen=True)
class LastLayerLaplace:
    """A Gaussian for the last layer, at the mode of all parameters.

    The last layer are the arrays that the outputs are linear in.
    """

    members: ClassVar[int] = 1
    words: ClassVar[str] = "last-layer Laplace"
    unsettled: ClassVar[str] = "were still learning"
    draws_per_step: ClassVar[int] = 1

    def fit(self, network: Network, task: Task, run: Run, start: Any) -> Trained:
        """Return modes (F, d), places of the last layer, and axes and scales of its Gaussian."""
        index = last_layer_places(network, task.prior, task.X, start[0])
        found = modes(network, task, run, start)
        mode = found.variables[:, 0]
        # An accelerator's faster products of matrices are too coarse for curvatures.
        with jax.default_matmul_precision("highest"):
            hessians = _hessians(network, task, mode, jnp.asarray(index))
        axes, scale = gaussians(np.asarray(hessians, dtype=float), np.asarray(task.betas))
        places = jnp.broadcast_to(jnp.asarray(index), (len(mode), len(index)))
        variables = {"mode": mode, "places": places, "axes": axes, "scale": scale}
        return Trained(variables, found.settled)

    def draws(self, variables: Any, key: Any, size: int) -> Any:
        """Return draws (size, d) of one posterior, each followed by its opposite."""
        places = variables["places"]
        noise = jax.random.normal(key, ((size + 1) // 2, len(places))) * variables["scale"]
        moves = noise @ variables["axes"].T
        both = jnp.stack([moves, -moves], axis=1).reshape(-1, len(places))[:size]
        return (
            jnp.broadcast_to(variables["mode"], (size, len(variables["mode"])))
            .at[:, places]
            .add(both)
        )

    def replicates(self, size: int) -> int:
        """Return the number of independent groups of draws: pairs."""
        return max(1, size // 2)

    def log_prob(self, network: Network, task: Task, variables: Any, u: Any) -> Any:
        """Return the log density of the last layer alone."""
        places, scale = variables["places"], variables["scale"]
        deviation = (u - variables["mode"])[places] @ variables["axes"] / scale
        constant = jnp.log(scale).sum() + 0.5 * len(places) * np.log(2 * np.pi)
        # The prior's scale of the other parameters is taken out again.
        others = jnp.log(task.prior.scale).sum() - jnp.log(task.prior.scale[places]).sum()
        return -0.5 * (deviation**2).sum() - constant + others


def last_layer_places(network: Network, prior: Prior, X: Any, u: Any) -> NDArray[np.intp]:
    """Return the places in the vector of arrays that the outputs are linear in, taken together.

    Each array of the pytree is tried, from the last to the first.
    """
    few = jax.tree.map(lambda part: part[:FEW_ROWS], X)
    ends = np.cumsum([prod(shape) for shape in network.shapes])
    chosen = np.zeros(network.size, dtype=np.float32)
    for shape, end in zip(reversed(network.shapes), reversed(ends), strict=True):
        tried = chosen.copy()
        tried[end - prod(shape) : end] = 1.0
        bend, size = _bend(network, prior, few, u, tried)
        if float(bend) <= LINEAR * float(size):
            chosen = tried
    if not chosen.any():
        raise ValueError(
            "apply must return outputs that are linear in the last layer for "
            "posterior='laplace-last-layer', got none that are linear in any array of params"
        )
    return np.flatnonzero(chosen)


@partial(jax.jit, static_argnames=("network",))
def _bend(network: Network, prior: Prior, X: Any, u: Any, chosen: Any) -> tuple[Any, Any]:
    """Return the largest f(u + h) + f(u - h) - 2 f(u) of some parameters, and the size of f."""
    keys = jax.random.split(jax.random.key(0))
    middle = u + jax.random.normal(keys[0], u.shape)
    move = chosen * jax.random.normal(keys[1], u.shape)
    up, down, at = (
        network.outputs(prior.theta(point), X) for point in (middle + move, middle - move, middle)
    )
    return jnp.abs(up + down - 2 * at).max(), jnp.abs(at).max() + jnp.abs(up).max()


def gaussians(hessians: Array, betas: Array) -> tuple[Any, Any]:
    """Return eigenvectors (F, v, v) and standard deviations (F, v) of (I + beta H)^-1.

    In double precision on the host: Hessians of redundant outputs are singular, for which
    accelerators may return nan.
    """
    curvature, axes = np.linalg.eigh(hessians)
    scale = (1 + betas[:, None] * np.maximum(curvature, 0.0)) ** -0.5
    return jnp.asarray(axes, dtype=jnp.float32), jnp.asarray(scale, dtype=jnp.float32)


@partial(jax.jit, static_argnames=("network",))
def _hessians(network: Network, task: Task, mode: Any, places: Any) -> Any:
    """Return the Hessians of the weighted losses in the last layers, (F, v, v)."""
    rows = task.rows
    blocks = -(-rows // ROWS_AT_ONCE)
    # Blocks of equal size; what is added has weight 0.
    index = jnp.arange(blocks * ROWS_AT_ONCE) % rows
    counted = jnp.arange(blocks * ROWS_AT_ONCE) < rows

    def one(part: tuple[Any, Any]) -> Any:
        u, pair = part

        def block(total: Any, at: Any) -> tuple[Any, None]:
            here = index[at]
            X, y = jax.tree.map(lambda leaf: leaf[here], (task.X, task.y))
            weights = jnp.where(counted[at], task.weights[pair][here], 0.0)

            def loss(v: Any) -> Any:
                return network.losses(task.prior.theta(u.at[places].set(v)), X, y) @ weights

            return total + jax.hessian(loss)(u[places]), None

        nothing = jnp.zeros((len(places), len(places)))
        every = jnp.arange(len(index)).reshape(blocks, ROWS_AT_ONCE)
        return jax.lax.scan(block, nothing, every)[0]

    return jax.lax.map(one, (mode, task.pair))
