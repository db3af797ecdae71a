r"""K-fold cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from temperance.checks import one_of, whole
from temperance.data import Data
from temperance.duplicates import distinct_rows, number_rows, takes_few_values
from temperance.plans import FoldPlan, Plan, Transfer
from temperance.strategies.selection import CurveStrategy

PIECES_PER_ROW = 100  # enough to give the folds nearly equal shares


@dataclass(frozen=True)
class KFold(CurveStrategy):
    r"""Test each of ``n_folds`` random parts once by the posterior of the others.

    Folds are drawn over the sorted distinct rows, so the result does not depend on the order of the
    rows, and a row of weight k counts exactly like k copies of it.

    Parameters
    ----------
    n_folds : int
    transfer : {"beta", "alpha"}
        What is kept equal from the training folds to all rows.
    duplicates : {"auto", "together", "apart"}
        Whether identical rows share a fold.  Copies of one observation should: otherwise a row is
        tested by a posterior that has seen it.  Different observations that happen to be equal
        should not: leaving them all out removes a part of the distribution.  By default they share
        a fold unless inputs and response take few values.
    """

    n_folds: int = 10
    transfer: Transfer = "beta"
    duplicates: Literal["auto", "together", "apart"] = "auto"

    def __post_init__(self) -> None:
        """Refuse fewer than two folds."""
        whole("n_folds", self.n_folds, 2)
        one_of("transfer", self.transfer, ("beta", "alpha"))
        one_of("duplicates", self.duplicates, ("auto", "together", "apart"))

    def planned(self, data: Data, rng: np.random.Generator) -> tuple[Data, Plan | FoldPlan]:
        """Return the data with identical rows joined, which is faster, and the plan."""
        number = number_rows(data)
        if int(number.max()) + 1 == len(data) and np.all(self._pieces(data) == 1):
            fold = self._folds(len(data), rng)[number]
            return data, FoldPlan(data.weights, fold, self.n_folds, self.transfer)
        rows, _ = distinct_rows(data)
        if np.any(self._pieces(rows) > 1):
            return rows, self._over(rows, rng)
        fold = self._folds(len(rows), rng)
        return rows, FoldPlan(rows.weights, fold, self.n_folds, self.transfer)

    def plan(self, data: Data, rng: np.random.Generator) -> Plan:
        """Return one pair per fold."""
        rows, number = distinct_rows(data)
        plan = self._over(rows, rng)
        share = data.weights / rows.weights[number]
        train, test = (part[:, number] * share for part in (plan.train, plan.test))
        return Plan(train, test, plan.size, plan.transfer)

    def most_folds(self, data: Data) -> int:
        """Return the largest possible number of folds."""
        rows, _ = distinct_rows(data)
        return int(self._pieces(rows).sum())

    def _over(self, rows: Data, rng: np.random.Generator) -> Plan:
        pieces = self._pieces(rows)
        fold, row = self._folds(int(pieces.sum()), rng), np.repeat(np.arange(len(rows)), pieces)
        tested = np.zeros((self.n_folds, len(rows)), dtype=int)
        np.add.at(tested, (fold, row), 1)
        piece = rows.weights / pieces
        return Plan((pieces - tested) * piece, tested * piece, rows.size, self.transfer)

    def _folds(self, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Return a fold for each of ``count`` pieces."""
        if count < 2:
            raise ValueError(
                f"X and y must have at least 2 distinct rows for KFold, got {count}; use Bayes()"
            )
        if count < self.n_folds:
            raise ValueError(
                f"n_folds must be at most the number of distinct rows, got {self.n_folds!r} for "
                f"{count}; use KFold({count}) or LeaveOneOut()"
            )
        return rng.permutation(count) % self.n_folds

    def _pieces(self, rows: Data) -> NDArray[np.int_]:
        """Return into how many pieces, of about one observation each, each row can be divided."""
        apart = self.duplicates == "apart" or (self.duplicates == "auto" and takes_few_values(rows))
        if not apart:
            return np.ones(len(rows), dtype=int)
        return np.clip(np.ceil(rows.weights), 1, PIECES_PER_ROW).astype(int)
