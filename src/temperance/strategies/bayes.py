r"""Bayes: always beta = 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from temperance.calibration import Calibration, has_likelihood
from temperance.data import Data
from temperance.protocols import Model
from temperance.rules import Choice
from temperance.strategies.naive import Naive
from temperance.table import HeldOut


@dataclass(frozen=True)
class Bayes(Naive):
    r"""Use the likelihood without tempering: beta = 1, alpha = n.

    The reported curve is the training risk, which Bayes does not minimise.
    """

    def rule(self, table: HeldOut, bounds: tuple[float, float]) -> Choice:
        """Return beta = 1."""
        return Choice(1.0, searched=False)

    def select(
        self, model: Model, data: Data, bounds: tuple[float, float], *args: Any, **options: Any
    ) -> Calibration:
        """Refuse bounds without 1, and losses that are no likelihood."""
        if not has_likelihood(model):
            raise ValueError(
                "strategy must be another than Bayes, which is for likelihoods, for "
                f"{type(model).__name__} with a loss that is none"
            )
        if not bounds[0] <= 1 <= bounds[1]:
            raise ValueError(f"bounds must contain beta = 1 for Bayes, got {bounds!r}")
        return super().select(model, data, bounds, *args, **options)
