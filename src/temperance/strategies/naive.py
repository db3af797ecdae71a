r"""Naive: train and test on all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from temperance.data import Data
from temperance.plans import Pairs
from temperance.strategies.selection import PlanStrategy


@dataclass(frozen=True)
class Naive(PlanStrategy):
    r"""Minimise the training risk E_{pi_alpha}[r_n].

    Its slope is -Var[r_n], so for exact posteriors the minimum is always at the upper bound.  It
    serves as a negative example.
    """

    holds_rows_out: ClassVar[bool] = False

    def plan(self, data: Data, rng: np.random.Generator) -> Pairs:
        """Return one pair that trains and tests on all rows."""
        everything = data.weights[None]
        return Pairs(everything, everything, data.size)
