"""What a kind of posterior must do: fit networks, draw from them, give its density."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from temperance.models.neural.network import Network, Prior
from temperance.models.neural.training import Run, Task, Trained


class Method(Protocol):
    """A kind of posterior: a frozen dataclass of settings, hashable because programs depend on it.

    Vectors are coordinates u in which the prior is N(0, I).
    """

    words: ClassVar[str]
    unsettled: ClassVar[str]

    @property
    def members(self) -> int:
        """Number of networks that are trained of each pair and beta; each has its own start."""
        ...

    @property
    def draws_per_step(self) -> int:
        """Number of draws of the parameters in a step of training."""
        ...

    def fit(self, network: Network, task: Task, run: Run, start: Any) -> Trained:
        """Return what describes the posteriors, with a leading axis F, from starts (members, d)."""
        ...

    def draws(self, variables: Any, key: Any, size: int) -> Any:
        """Return draws (size, d) of one posterior, or all that it consists of."""
        ...

    def replicates(self, size: int) -> int:
        """Return the number of independent groups of equal size into which draws fall."""
        ...

    def log_prob(self, network: Network, task: Task, variables: Any, u: Any) -> Any:
        """Return the log density of one posterior at u, of shape (d,)."""
        ...


def log_normal(u: Any) -> Any:
    """Return the log density of N(0, I), up to a constant."""
    return -0.5 * (u**2).sum()


def energy(network: Network, prior: Prior, u: Any, X: Any, y: Any, weights: Any, beta: Any) -> Any:
    """Return minus the log density of the Gibbs posterior, up to a constant.

    It is beta sum_i w_i l_i(theta) + |u|^2 / 2.
    """
    return beta * (network.losses(prior.theta(u), X, y) @ weights) - log_normal(u)
