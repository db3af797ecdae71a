r"""K-fold cross-validation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from temperance.checks import one_of, whole
from temperance.data import Array, Data
from temperance.plans import Duplicates, Folds, Pairs, Transfer, number_rows, observations
from temperance.strategies.selection import PlanStrategy


@dataclass(frozen=True)
class KFold(PlanStrategy):
    r"""Test each of ``n_folds`` random parts once by the posterior of the others.

    Folds are drawn over the sorted distinct rows, so the result does not depend on the order of the
    rows, and a row of weight k counts exactly like k copies of it.

    Parameters
    ----------
    n_folds : int
    transfer : {"beta", "alpha"}
        What is kept equal from the training folds to all rows.
    duplicates : {"auto", "together", "apart"}
        Whether identical rows share a fold; see :func:`temperance.plans.observations`.
    """

    n_folds: int = 10
    transfer: Transfer = "beta"
    duplicates: Duplicates = "auto"

    def __post_init__(self) -> None:
        """Refuse fewer than two folds."""
        whole("n_folds", self.n_folds, 2)
        one_of("transfer", self.transfer, ("beta", "alpha"))
        one_of("duplicates", self.duplicates, ("auto", "together", "apart"))

    def planned(self, data: Data, rng: np.random.Generator) -> tuple[Data, Pairs | Folds]:
        """Return the distinct rows and their folds, or the folds of their pieces."""
        rows, pieces = observations(data, self.duplicates)
        number = number_rows(rows)
        if pieces is None:
            fold = self._folds(len(number), rng)[number]
            return rows, Folds(rows.weights, fold, self.n_folds, self.transfer)
        ordered = np.argsort(number)
        fold, row = self._folds(int(pieces.sum()), rng), np.repeat(ordered, pieces[ordered])
        tested = np.zeros((self.n_folds, len(rows)), dtype=int)
        np.add.at(tested, (fold, row), 1)
        piece: Array = rows.weights / pieces
        train, test = (pieces - tested) * piece, tested * piece
        return rows, Pairs(train, test, rows.size, self.transfer)

    def feasible(self, data: Data) -> Self:
        """Return the strategy with no more folds than there are observations."""
        rows, pieces = observations(data, self.duplicates)
        most = len(rows) if pieces is None else int(pieces.sum())
        if most < 2:
            raise ValueError(f"X and y must have at least 2 distinct rows, got {most}")
        return replace(self, n_folds=min(self.n_folds, most))

    def _folds(self, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Return a fold for each of ``count`` observations."""
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
