r"""K-fold cross-validation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.grouping import number_distinct
from temperance.selection import CurveStrategy
from temperance.types import Data, Plan, Transfer
from temperance.validation import one_of, whole


@dataclass(frozen=True)
class KFold(CurveStrategy):
    r"""Each of ``n_folds`` random parts is tested once by the posterior of the others.

    Folds are drawn over the sorted rows, so the result does not depend on their order.

    Parameters
    ----------
    n_folds : int
    transfer : {"beta", "alpha"}
        What is held from the training folds to the whole.
    group_duplicates : bool
        Keep identical rows in one fold.  Then a row is never tested by its own copy, and a row of
        weight k counts exactly like k copies.  Leave it off when inputs and response take few
        values: equal rows are then different observations, and to leave them all out misleads.
    """

    n_folds: int = 10
    transfer: Transfer = "beta"
    group_duplicates: bool = False

    def __post_init__(self) -> None:
        """Refuse fewer than two folds."""
        whole("n_folds", self.n_folds, 2)
        one_of("transfer", self.transfer, ("beta", "alpha"))
        one_of("group_duplicates", self.group_duplicates, (False, True))

    def plan(self, data: Data, rng: np.random.Generator) -> Plan:
        """One pair per fold."""
        unit = number_distinct([data.y, *data.X.T])
        if not self.group_duplicates:
            unit = np.argsort(np.lexsort([data.weights, unit]))
        count = int(unit.max()) + 1
        if count < self.n_folds:
            kind = "distinct rows" if self.group_duplicates else "rows"
            raise ValueError(
                f"n_folds must be at most the number of {kind}, got {self.n_folds!r} for {count}; "
                f"use KFold({count}) or LeaveOneOut()"
            )
        fold = (rng.permutation(count) % self.n_folds)[unit]
        tested = fold == np.arange(self.n_folds)[:, None]
        return Plan(~tested * data.weights, tested * data.weights, data.size, self.transfer)
