"""Ensembles: networks trained from several starts, each with the same weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from temperance.checks import whole
from temperance.models.neural.network import Network
from temperance.models.neural.point import modes
from temperance.models.neural.training import Run, Task, Trained


@dataclass(frozen=True)
class Ensemble:
    """Modes of the posterior that training finds from several random starts.

    Parameters
    ----------
    members : int
        Number of networks.
    """

    members: int = 5
    words: ClassVar[str] = "ensemble"
    unsettled: ClassVar[str] = "were still learning"
    draws_per_step: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Refuse a single member."""
        whole("members", self.members, 2)

    def fit(self, network: Network, task: Task, run: Run, start: Any) -> Trained:
        """Return the members (F, members, d)."""
        return modes(network, task, run, start)

    def draws(self, variables: Any, key: Any, size: int) -> Any:
        """Return the members, however many draws are asked for."""
        return variables

    def replicates(self, size: int) -> int:
        """Return the number of members."""
        return size

    def log_prob(self, network: Network, task: Task, variables: Any, u: Any) -> Any:
        """Raise an error: points have no density."""
        raise ValueError("log_prob needs a posterior with a density, got an ensemble of points")
