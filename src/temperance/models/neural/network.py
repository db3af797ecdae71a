r"""A network as a function of one vector, and the Gaussian prior of that vector.

Everything is computed in coordinates u in which the prior N(mu_0, s_0^2) is N(0, I):
theta = mu_0 + s_0 u.  One learning rate then suits all parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from temperance.checks import shown
from temperance.data import Array
from temperance.models.neural.losses import OutputLoss


@dataclass(frozen=True)
class Network:
    """Function and loss of a network whose parameters are a vector; equal to others of the same.

    Parameters
    ----------
    apply : function (params, X) -> outputs, of n rows each
    loss : OutputLoss
    tree : structure of the parameters
    shapes : shape of each of its arrays
    """

    apply: Callable[[Any, Any], Any]
    loss: OutputLoss
    tree: Any
    shapes: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """Number of parameters, with those of the loss."""
        return sum(prod(shape) for shape in self.shapes) + self.loss.parameters

    def params(self, theta: Any) -> Any:
        """Return the pytree of a vector."""
        ends = np.cumsum([prod(shape) for shape in self.shapes]).tolist()
        parts = [
            theta[end - prod(shape) : end].reshape(shape)
            for shape, end in zip(self.shapes, ends, strict=True)
        ]
        return jax.tree.unflatten(self.tree, parts)

    def own(self, theta: Any) -> Any:
        """Return the parameters of the loss."""
        return theta[self.size - self.loss.parameters :]

    def outputs(self, theta: Any, X: Any) -> Any:
        """Return the outputs of each row."""
        return self.apply(self.params(theta), X)

    def losses(self, theta: Any, X: Any, y: Any) -> Any:
        """Return the loss of each row."""
        return self.loss.value(self.outputs(theta, X), y, self.own(theta))

    def forecast(self, theta: Any, X: Any) -> Any:
        """Return what a draw says of new responses."""
        return self.loss.forecast(self.outputs(theta, X), self.own(theta))


class Prior(NamedTuple):
    """N(mean, scale^2) on every parameter, arrays of shape (d,)."""

    mean: Any
    scale: Any

    def theta(self, u: Any) -> Any:
        """Return parameters from coordinates in which the prior is N(0, I)."""
        return self.mean + self.scale * u

    def u(self, theta: Any) -> Any:
        """Return those coordinates."""
        return (theta - self.mean) / self.scale


def vector_of(name: str, params: Any, like: Any = None) -> Array:
    """Return a pytree as one vector; a number stands for a tree ``like`` another, full of it.

    The leaves must have shapes that broadcast to those of ``like``.
    """
    if like is not None and np.ndim(params) == 0 and not isinstance(params, dict | tuple | list):
        params = jax.tree.map(lambda _: params, like)
    leaves, tree = _flat(params)
    shapes = [np.shape(leaf) for leaf in leaves]
    if like is not None:
        others, wanted = _flat(like)
        if tree != wanted:
            raise ValueError(f"{name} must be a number or a pytree like params, got {shown(tree)}")
        shapes = [np.shape(leaf) for leaf in others]
    try:
        parts = [
            np.broadcast_to(np.asarray(leaf, dtype=float), shape).ravel()
            for leaf, shape in zip(leaves, shapes, strict=True)
        ]
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers in the shapes of params, got others") from None
    flat = np.concatenate(parts) if parts else np.empty(0)
    if not len(flat) or not np.isfinite(flat).all():
        got = "none" if not len(flat) else float(flat[~np.isfinite(flat)][0])
        raise ValueError(f"{name} must hold finite numbers, got {got!r}")
    return flat


def _flat(tree: Any) -> tuple[list[Any], Any]:
    return jax.tree.flatten(tree)


def on_device(tree: Any) -> Any:
    """Return arrays for the device: floats in single precision, integers as they are."""

    def put(part: Any) -> Any:
        array = np.asarray(part)
        kind = {"f": np.float32, "i": np.int32, "u": np.int32}.get(array.dtype.kind)
        return jnp.asarray(array if kind is None else array.astype(kind))

    return jax.tree.map(put, tree)
