"""The posterior of a network: draws, density and forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from temperance.data import Array
from temperance.models.neural.hmc import HMC
from temperance.models.neural.method import Method
from temperance.models.neural.network import Network, on_device
from temperance.models.neural.training import Task
from temperance.models.sampled.mixture import systematic
from temperance.posteriors.mixture import MixturePosterior

ROWS_AT_ONCE = 2**12  # rows that go through all draws of a network together


@dataclass(frozen=True, eq=False)
class NeuralPosterior:
    """Distribution of the parameters of a network, as vectors.

    Parameters
    ----------
    network : Network
    method : the kind of posterior
    task : rows, prior and beta that it was fitted with
    variables : what describes it, in coordinates in which the prior is N(0, I)
    settled : whether training ended by itself
    size, seed : number of draws of a forecast, and their seed
    """

    network: Network
    method: Method
    task: Task
    variables: Any
    settled: bool
    size: int
    seed: int

    @property
    def beta(self) -> float:
        """Exponent on each observation's likelihood."""
        return float(self.task.betas[0])

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> Array:
        """Return ``size`` draws of the parameters, shape (size, d); see :meth:`params`."""
        rng = np.random.default_rng(seed)
        key = jax.random.key(int(rng.integers(2**31)))
        u = self.method.draws(self.variables, key, size)
        if len(u) != size:
            u = u[rng.integers(len(u), size=size)]
        return np.asarray(self.task.prior.theta(u), dtype=float)

    def params(self, theta: ArrayLike) -> Any:
        """Return a draw (d,) as the pytree that ``apply`` takes."""
        return self.network.params(jnp.asarray(theta, dtype=jnp.float32))

    def log_prob(self, theta: ArrayLike) -> Any:
        """Return the log density at ``theta``, of shape (d,) or (..., d).

        That of draws of HMC is known up to a constant.
        """
        vectors = jnp.asarray(theta, dtype=jnp.float32)
        u = self.task.prior.u(vectors).reshape(-1, vectors.shape[-1])
        of_one = partial(self.method.log_prob, self.network, self.task, self.variables)
        found = jnp.stack([of_one(each) for each in u]) - jnp.log(self.task.prior.scale).sum()
        return np.asarray(found, dtype=float).reshape(vectors.shape[:-1])[()]

    def predict(self, X: Any) -> Any:
        """Return probabilities of classes; mean and standard deviation of other responses.

        Of a loss that is a function, mean and standard deviation of the outputs over draws.
        """
        return self.network.loss.summary(self._under_draws("forecast", X))

    def outputs(self, X: Any) -> Any:
        """Return the outputs of the network under each draw, (draws, n, ...)."""
        return self._under_draws("outputs", X)

    def losses(self, X: Any, y: Any) -> Array:
        """Return the loss of each draw (rows) at each observation (columns)."""
        return self._under_draws("losses", X, y)

    def _under_draws(self, name: str, *rows: Any) -> Any:
        """Return what a method of the network says of rows under each draw, as doubles."""
        given = on_device(rows)
        key = jax.random.key(self.seed)
        theta = self.task.prior.theta(self.method.draws(self.variables, key, self.size))
        count = len(jax.tree.leaves(given)[0])
        parts = [
            jax.tree.map(
                lambda leaf: np.asarray(leaf, dtype=float),
                _mapped(
                    self.network,
                    name,
                    theta,
                    jax.tree.map(lambda leaf, at=at: leaf[at : at + ROWS_AT_ONCE], given),
                ),
            )
            for at in range(0, max(count, 1), ROWS_AT_ONCE)
        ]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *parts)

    def mixed(self, weights: Array, others: Sequence[NeuralPosterior]) -> NeuralMixture:
        """Return the mixture with other posteriors of the same network."""
        return NeuralMixture(weights, (self, *others))


@dataclass(frozen=True, eq=False)
class NeuralMixture(MixturePosterior):
    """A mixture of posteriors of one network.

    Parameters
    ----------
    weights : array of shape (parts,), positive with sum 1
    parts : the posteriors
    """

    parts: Sequence[NeuralPosterior]

    @property
    def weighted(self) -> list[tuple[float, NeuralPosterior]]:
        """The parts with their weights."""
        return list(zip(self.weights.tolist(), self.parts, strict=True))

    def params(self, theta: ArrayLike) -> Any:
        """Return a draw (d,) as the pytree that ``apply`` takes."""
        return self.parts[0].params(theta)

    def log_prob(self, theta: ArrayLike) -> Any:
        """Return the log density at ``theta``, of shape (d,) or (..., d)."""
        if isinstance(self.parts[0].method, HMC):
            raise ValueError(
                "log_prob of a mixture needs parts whose constants are known, got draws of HMC"
            )
        return super().log_prob(theta)

    def outputs(self, X: Any) -> Any:
        """Return the outputs of the network under each draw, (draws, n, ...)."""
        return self._resampled([part.outputs(X) for part in self.parts])

    def losses(self, X: Any, y: Any) -> Array:
        """Return the loss of each draw (rows) at each observation (columns)."""
        return self._resampled([part.losses(X, y) for part in self.parts])

    def _resampled(self, values: list[Any]) -> Any:
        """Return values under draws of each part as those under draws of the mixture."""
        size = len(values[0])
        shares = np.repeat(self.weights / size, size)
        rng = np.random.default_rng(self.parts[0].seed)
        return np.concatenate(values)[systematic(shares, len(shares), rng)]


@partial(jax.jit, static_argnames=("network", "name"))
def _mapped(network: Network, name: str, theta: Any, rows: tuple[Any, ...]) -> Any:
    return jax.lax.map(lambda each: getattr(network, name)(each, *rows), theta)
