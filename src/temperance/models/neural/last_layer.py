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

from temperance.models.neural.network import Network, Prior
from temperance.models.neural.point import modes
from temperance.models.neural.training import Task, Trained, Training

ROWS_AT_ONCE = 512  # rows whose Hessians are computed together
LINEAR = 1e-3  # share of a change of the outputs that may be a rounding error
FEW_ROWS = 16  # on which linearity is tested


@dataclass(frozen=True)
class LastLayerLaplace:
    """A Gaussian for the last layer, at the mode of all parameters.

    Parameters
    ----------
    last_layer : str, optional
        Part of the path of the last layer's arrays in the pytree, such as "Dense_2".  By default
        the last arrays of the pytree, as many as the outputs are linear in.
    """

    last_layer: str | None = None
    members: ClassVar[int] = 1
    words: ClassVar[str] = "last-layer Laplace"
    unsettled: ClassVar[str] = "were still learning"
    draws_per_step: ClassVar[int] = 1

    def fit(
        self, network: Network, task: Task, training: Training, start: Any, seed: int, lanes: int
    ) -> Trained:
        """Return modes (F, d), places of the last layer, and axes and scales of its Gaussian."""
        index = last_layer_places(network, task.prior, task.X, start[0], self.last_layer)
        found = modes(network, task, training, start, seed, lanes)
        mode = found.variables[:, 0]
        # An accelerator's faster products of matrices are too coarse for curvatures.
        with jax.default_matmul_precision("highest"):
            axes, scale = _gaussians(network, task, mode, jnp.asarray(index))
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


def last_layer_places(
    network: Network, prior: Prior, X: Any, u: Any, named: str | None
) -> NDArray[np.intp]:
    """Return the places of the last layer's parameters in the vector."""
    sizes = [prod(shape) for shape in network.shapes]
    spans = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    if named is not None:
        tree = jax.tree.unflatten(network.tree, list(range(len(spans))))
        paths = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(tree)]
        chosen = [span for span, path in zip(spans, paths, strict=True) if named in path]
        if not chosen:
            raise ValueError(f"last_layer must be part of one of {', '.join(paths)}, got {named!r}")
        places = np.concatenate(chosen)
        if not _linear(network, prior, X, u, places):
            raise ValueError(
                f"last_layer must name a layer the outputs are linear in, got {named!r}"
            )
        return places
    places = np.empty(0, dtype=int)
    for span in reversed(spans):
        longer = np.concatenate([span, places])
        if not _linear(network, prior, X, u, longer):
            break
        places = longer
    if not len(places):
        raise ValueError(
            "last_layer must be named, posterior=LastLayerLaplace(last_layer=...): outputs are not "
            "linear in the last array of params"
        )
    return places


def _linear(network: Network, prior: Prior, X: Any, u: Any, places: NDArray[np.intp]) -> bool:
    """Return whether outputs are linear in some parameters: f(u + h) + f(u - h) = 2 f(u)."""
    few = jax.tree.map(lambda part: part[:FEW_ROWS], X)
    keys = jax.random.split(jax.random.key(0))
    middle = u + jax.random.normal(keys[0], u.shape)
    move = jnp.zeros_like(u).at[places].set(jax.random.normal(keys[1], places.shape))
    up, down, at = (
        network.apply(network.params(prior.theta(point)), few)
        for point in (middle + move, middle - move, middle)
    )
    size = float(jnp.abs(up - at).max())
    return float(jnp.abs(up + down - 2 * at).max()) <= LINEAR * (size + float(jnp.abs(at).max()))


@partial(jax.jit, static_argnames=("network",))
def _gaussians(network: Network, task: Task, mode: Any, places: Any) -> tuple[Any, Any]:
    """Return eigenvectors (F, v, v) and standard deviations (F, v) of the last layers."""
    rows = task.rows
    blocks = -(-rows // ROWS_AT_ONCE)
    # Blocks of equal size; what is added has weight 0.
    index = jnp.arange(blocks * ROWS_AT_ONCE) % rows
    counted = jnp.arange(blocks * ROWS_AT_ONCE) < rows

    def one(part: tuple[Any, Any, Any]) -> tuple[Any, Any]:
        u, pair, beta = part

        def block(total: Any, at: Any) -> tuple[Any, None]:
            here = index[at]
            X, y = jax.tree.map(lambda leaf: leaf[here], (task.X, task.y))
            weights = jnp.where(counted[at], task.weights[pair][here], 0.0)

            def loss(v: Any) -> Any:
                return network.losses(task.prior.theta(u.at[places].set(v)), X, y) @ weights

            return total + jax.hessian(loss)(u[places]), None

        nothing = jnp.zeros((len(places), len(places)))
        every = jnp.arange(len(index)).reshape(blocks, ROWS_AT_ONCE)
        hessian, _ = jax.lax.scan(block, nothing, every)
        curvature, axes = jnp.linalg.eigh(hessian)
        return axes, (1 + beta * jnp.maximum(curvature, 0.0)) ** -0.5

    return jax.lax.map(one, (mode, task.pair, task.betas))
