r"""A user's loss and log prior in JAX, as functions of a flat parameter in double precision."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from temperance.types import Array, Data
from temperance.validation import shown

Tree = Any
BLOCK = 2**22  # losses computed at a time


def double_precision() -> AbstractContextManager[Any]:
    """Return a context of double precision; the user's own setting is not changed."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return import_module("jax.experimental").enable_x64()


@dataclass(frozen=True, eq=False)
class Target:
    """Loss and log prior over flat parameters.

    Parameters
    ----------
    loss : function (theta, x, y) -> scalar
    log_prior : function theta -> scalar
    template : pytree
        An example parameter: structure, shapes, and start of the chains.
    """

    loss: Callable[[Tree, Any, Any], Any]
    log_prior: Callable[[Tree], Any]
    template: Tree

    @property
    def start(self) -> Any:
        """The template as a vector."""
        return ravel_pytree(_as_double(self.template))[0]

    @property
    def unravel(self) -> Callable[[Any], Tree]:
        """Function from a vector to a parameter."""
        return ravel_pytree(_as_double(self.template))[1]

    def log_density_of_prior(self, flat: Any) -> Any:
        """Return the log prior of a vector."""
        return self.log_prior(self.unravel(flat))

    def row_losses(self, flat: Any, X: Any, y: Any) -> Any:
        """Return the loss of every row, (n,)."""
        theta = self.unravel(flat)
        return jax.vmap(lambda x_i, y_i: self.loss(theta, x_i, y_i))(X, y)

    def energy(self, flat: Any, weights: Any, X: Any, y: Any) -> Any:
        """Return the weighted sum of the losses; rows of weight zero contribute nothing."""
        return weighted(weights, self.row_losses(flat, X, y))

    def check(self, data: Data) -> None:
        """Refuse functions that JAX cannot trace, or that are not finite at the start."""
        with double_precision():
            x, y = jnp.asarray(data.X[0]), jnp.asarray(data.y[0])
            theta = self.unravel(self.start)
            _traced("log_prior", "a number", self.log_prior, theta)
            _traced("loss", "one number per observation", self.loss, theta, x, y)
            value = float(self.log_prior(theta))
            if not np.isfinite(value):
                raise ValueError(
                    f"log_prior must be finite at the start, got {value!r} at theta = "
                    f"{_show(theta)}"
                )
            losses = jax.jit(self.row_losses)(self.start, jnp.asarray(data.X), jnp.asarray(data.y))
            self.refuse_invalid(np.asarray(losses), self.start, data, infinite=True)

    def refuse_invalid(self, losses: Array, flat: Array, data: Data, infinite: bool) -> None:
        """Refuse a loss that is nan, or infinite if ``infinite``, and name its observation."""
        invalid = ~np.isfinite(losses) if infinite else np.isnan(losses)
        if invalid.any():
            i = int(np.argmax(invalid))
            raise ValueError(
                f"loss must be {'finite' if infinite else 'a number'}, got {float(losses[i])!r} "
                f"for observation {i} (x = {shown(data.X[i])}, y = {shown(data.y[i])}) at theta = "
                f"{_show(self.unravel(jnp.asarray(flat)))}"
            )


def weighted(weights: Any, losses: Any) -> Any:
    """Return the sum of weighted losses; those of weight zero are left out even if infinite."""
    return jnp.sum(jnp.where(weights > 0, weights * jnp.where(weights > 0, losses, 0.0), 0.0))


def _as_double(tree: Tree) -> Tree:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=float), tree)


def _traced(name: str, wanted: str, function: Callable[..., Any], *arguments: Any) -> None:
    try:
        shape = jax.eval_shape(function, *arguments)
    except Exception as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else "no message"
        raise ValueError(
            f"{name} must be a function that JAX can trace, got {type(error).__name__}: {first} "
            f"(arguments {', '.join(_show(argument) for argument in arguments)})"
        ) from error
    if getattr(shape, "shape", None) != ():
        got = f"shape {shape.shape}" if hasattr(shape, "shape") else type(shape).__name__
        raise ValueError(f"{name} must return {wanted}, got {got}")


def _show(tree: Tree) -> str:
    return shown(jax.tree.map(lambda leaf: np.asarray(leaf).round(4).tolist(), tree))
