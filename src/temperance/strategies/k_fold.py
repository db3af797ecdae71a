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

    Identical rows share a fold: a row cannot be tested by its own copy, a row of weight k counts
    like k copies, and the result does not depend on the order of the rows.

    Parameters
    ----------
    n_folds : int
    transfer : {"beta", "alpha"}
        What is held from the training folds to the whole.
    separate_duplicates : bool
        Let copies of a row fall into different folds, as is right when inputs take few values.
    """

    n_folds: int = 10
    transfer: Transfer = "beta"
    separate_duplicates: bool = False

    def __post_init__(self) -> None:
        """Refuse fewer than two folds."""
        whole("n_folds", self.n_folds, 2)
        one_of("transfer", self.transfer, ("beta", "alpha"))
        one_of("separate_duplicates", self.separate_duplicates, (False, True))

    def plan(self, data: Data, rng: np.random.Generator) -> Plan:
        """One pair per fold."""
        if self.separate_duplicates:
            labels = np.arange(len(data))
        else:
            labels = number_distinct([data.y, *data.X.T])
        count = int(labels.max()) + 1
        if count < self.n_folds:
            raise ValueError(
                f"n_folds must be at most the number of distinct rows, got {self.n_folds!r} for "
                f"{count} distinct rows of {len(data)}"
            )
        fold = (rng.permutation(count) % self.n_folds)[labels]
        tested = fold == np.arange(self.n_folds)[:, None]
        return Plan(~tested * data.weights, tested * data.weights, data.size, self.transfer)
