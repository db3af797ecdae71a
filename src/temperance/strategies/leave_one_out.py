r"""Leave-one-out cross-validation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.selection import CurveStrategy
from temperance.types import Data, LeaveOneOutPlan, Transfer
from temperance.validation import one_of


@dataclass(frozen=True)
class LeaveOneOut(CurveStrategy):
    """Each row is tested once by the posterior of all the others; for linear models in closed form.

    Parameters
    ----------
    transfer : {"beta", "alpha"}
        What is held from the remaining rows to the whole.
    """

    transfer: Transfer = "beta"

    def __post_init__(self) -> None:
        """Refuse an unknown transfer."""
        one_of("transfer", self.transfer, ("beta", "alpha"))

    def plan(self, data: Data, rng: np.random.Generator) -> LeaveOneOutPlan:
        """One pair per row."""
        if len(data) < 2:
            raise ValueError(f"X must have at least 2 rows to leave one out, got {len(data)}")
        return LeaveOneOutPlan(data.weights, self.transfer)
