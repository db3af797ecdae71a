r"""Mean-field posteriors: an independent Gaussian for every parameter.

    minimise over m, s:   beta E_{theta ~ N(m, s^2)} sum_i w_i l_i(theta) + KL(N(m, s^2) || pi_0)

by gradients through theta = m + s z at pairs z, -z of standard normal draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from temperance.checks import whole
from temperance.models.neural.network import Network, Prior
from temperance.models.neural.training import Run, Task, Trained, train_from_bayes

FIRST_LOG_SCALE = -3.0  # log of the first standard deviations, in those of the prior


@dataclass(frozen=True)
class MeanField:
    """An independent Gaussian for every parameter, fitted by stochastic gradients.

    Parameters
    ----------
    pairs : int
        Pairs of opposite draws in each step; all rows of a mini-batch share them.
    """

    pairs: int = 1
    words: ClassVar[str] = "mean-field"
    unsettled: ClassVar[str] = "were still learning"
    members: ClassVar[int] = 1  # networks that are trained of each pair and beta

    def __post_init__(self) -> None:
        """Refuse no draws."""
        whole("pairs", self.pairs, 1)

    def fit(self, network: Network, task: Task, run: Run, start: Any) -> Trained:
        """Return means and log standard deviations (F, d), from one start (1, d)."""
        first = {"mean": start, "log_scale": jnp.full_like(start, FIRST_LOG_SCALE)}
        return train_from_bayes(network, self, task, run, first)

    @property
    def draws_per_step(self) -> int:
        """Draws of the parameters in a step."""
        return 2 * self.pairs

    def objective(
        self,
        network: Network,
        prior: Prior,
        variables: Any,
        key: Any,
        X: Any,
        y: Any,
        weights: Any,
        beta: Any,
    ) -> Any:
        """Return an unbiased estimate of the objective."""
        draws = self.draws(variables, key, 2 * self.pairs)
        losses = jax.vmap(lambda u: network.losses(prior.theta(u), X, y) @ weights)(draws)
        return beta * losses.mean() + divergence(variables)

    def draws(self, variables: Any, key: Any, size: int) -> Any:
        """Return draws (size, d) of one network, each followed by its opposite."""
        mean, scale = variables["mean"], jnp.exp(variables["log_scale"])
        noise = jax.random.normal(key, ((size + 1) // 2, len(mean)))
        both = jnp.stack([noise, -noise], axis=1).reshape(-1, len(mean))
        return mean + scale * both[:size]

    def replicates(self, size: int) -> int:
        """Return the number of independent groups of draws: pairs."""
        return max(1, size // 2)

    def log_prob(self, network: Network, task: Task, variables: Any, u: Any) -> Any:
        """Return the log density of one network at u."""
        deviation = (u - variables["mean"]) * jnp.exp(-variables["log_scale"])
        constant = variables["log_scale"].sum() + 0.5 * len(variables["mean"]) * np.log(2 * np.pi)
        return -0.5 * (deviation**2).sum(axis=-1) - constant


def divergence(variables: Any) -> Any:
    """Return KL(N(m, s^2) || N(0, I))."""
    mean, log_scale = variables["mean"], variables["log_scale"]
    return 0.5 * (mean**2 + jnp.exp(2 * log_scale) - 1).sum() - log_scale.sum()
