r"""Bayes: beta = 1, whatever the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.calibration import Calibration
from temperance.optimise import Minimum
from temperance.strategies.naive import Naive
from temperance.types import Data, Model, Risk, RiskCurve


@dataclass(frozen=True)
class Bayes(Naive):
    r"""Trust the likelihood as it is: beta = 1, alpha = n.

    The reported curve is the training risk, which Bayes does not minimise.
    """

    def locate(self, curve: RiskCurve, bounds: tuple[float, float]) -> Minimum:
        """Return beta = 1."""
        return Minimum(1.0, at_bound=False, flat=False)

    def select(
        self,
        model: Model,
        data: Data,
        bounds: tuple[float, float],
        rng: np.random.Generator,
        risk: Risk = "gibbs",
        optimiser: str = "deterministic",
    ) -> Calibration:
        """Choose beta = 1; there is nothing to optimise, by whichever optimiser."""
        lower, upper = bounds
        if not lower <= 1 <= upper:
            raise ValueError(f"bounds must contain beta = 1 for Bayes, got {bounds!r}")
        return super().select(model, data, bounds, rng, risk)
