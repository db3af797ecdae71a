r"""SafeBayes as in the thesis' published code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.data import Data
from temperance.plans import Pairs
from temperance.strategies.selection import PlanStrategy

STORED_AS = "temperance.study.strategies"  # module path that studies store


@dataclass(frozen=True)
class SafeBayesAsCoded(PlanStrategy):
    r"""SafeBayes as in the thesis' code: rows before t train, row t + 1 is tested.

    Counting rows from 0, t goes from 1 to n - 2, and alpha is kept.  Of the errors in the code's
    algorithms only this one is reproduced; its stochastic gradients and fixed numbers of steps are
    not.
    """

    def plan(self, data: Data, rng: np.random.Generator) -> Pairs:
        """Return a plan in which every prefix predicts the row after the next."""
        n = len(data)
        if n < 3:
            raise ValueError(f"X must have at least 3 rows to skip one, got {n}")
        train, test = np.tri(n, k=-1)[1:-1], np.eye(n)[2:]
        return Pairs(train * data.weights, test * data.weights, data.size, "alpha")
