r"""Single networks: minimisers of beta sum_i w_i l_i(theta) + |u|^2 / 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from temperance.models.neural.method import energy
from temperance.models.neural.network import Network, Prior
from temperance.models.neural.training import Run, Task, Trained, train_from_bayes


@dataclass(frozen=True)
class Point:
    """The mode of the posterior, where training finds it."""

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
        """Return an unbiased estimate of minus the log density."""
        return energy(network, prior, variables, X, y, weights, beta)


def modes(network: Network, task: Task, run: Run, start: Any) -> Trained:
    """Return modes (F, members, d) from starts (members, d), and whether they settled."""
    found = train_from_bayes(network, Point(), task, run, start)
    shape = (len(task.betas), len(start))
    return Trained(found.variables.reshape(*shape, network.size), found.settled.reshape(shape))
