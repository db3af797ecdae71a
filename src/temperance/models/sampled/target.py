r"""A user's loss and prior in JAX, as functions of a flat parameter in double precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from temperance.checks import shown
from temperance.data import Array
from temperance.models.sampled.precision import double_precision
from temperance.models.sampled.prior import Prior

Tree = Any
BLOCK = 2**22  # losses computed at a time


@dataclass(frozen=True, eq=False)
class Target:
    """Loss and prior over flat parameters, in unconstrained coordinates.

    Parameters
    ----------
    loss : function (theta, x, y) -> scalar
    prior : Prior
    """

    loss: Callable[[Tree, Any, Any], Any]
    prior: Prior

    @property
    def start(self) -> Any:
        """A point of the prior as a vector."""
        return ravel_pytree(_as_double(self.prior.start))[0]

    def theta(self, flat: Any) -> Tree:
        """Return the parameter of a vector."""
        return self.prior.constrain(self._unconstrained(flat))

    def log_density_of_prior(self, flat: Any) -> Any:
        """Return the log prior of a vector."""
        return self.prior.log_density(self._unconstrained(flat))

    def _unconstrained(self, flat: Any) -> Tree:
        return ravel_pytree(_as_double(self.prior.start))[1](flat)

    def row_losses(self, flat: Any, X: Any, y: Any) -> Any:
        """Return the loss of every row, (n,)."""
        theta = self.theta(flat)
        return jax.vmap(lambda x_i, y_i: self.loss(theta, x_i, y_i))(X, y)

    def energy(self, flat: Any, weights: Any, X: Any, y: Any) -> Any:
        """Return the weighted sum of the losses; rows of weight zero contribute nothing."""
        return weighted(weights, self.row_losses(flat, X, y))

    def check(self, X: Tree, y: Tree) -> None:
        """Refuse functions that JAX cannot trace, or that are not finite at the start."""
        with double_precision():
            first = jax.tree.map(lambda rows: jnp.asarray(rows[0]), (X, y))
            theta = self.theta(self.start)
            _traced("log_prior", "a number", self.log_density_of_prior, self.start)
            _traced("loss", "one number per observation", self.loss, theta, *first)
            value = float(jax.jit(self.log_density_of_prior)(self.start))
            if not np.isfinite(value):
                raise ValueError(
                    f"log_prior must be finite at the start, got {value!r} at theta = "
                    f"{_show(theta)}"
                )
            losses = jax.jit(self.row_losses)(self.start, *jax.tree.map(jnp.asarray, (X, y)))
            self.refuse_invalid(np.asarray(losses), self.start, X, y, infinite=True)

    def refuse_invalid(self, losses: Array, flat: Array, X: Tree, y: Tree, infinite: bool) -> None:
        """Refuse a loss that is nan, or infinite if ``infinite``, and name its observation."""
        invalid = ~np.isfinite(losses) if infinite else np.isnan(losses)
        if invalid.any():
            i = int(np.argmax(invalid))
            x_i, y_i = jax.tree.map(lambda rows: rows[i], (X, y))
            raise ValueError(
                f"loss must be {'finite' if infinite else 'a number'}, got {float(losses[i])!r} "
                f"for observation {i} (x = {shown(x_i)}, y = {shown(y_i)}) at theta = "
                f"{_show(self.theta(jnp.asarray(flat)))}"
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
