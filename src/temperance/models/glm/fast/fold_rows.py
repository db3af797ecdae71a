r"""Rows in the order of their folds, held twice, so that those outside a fold are neighbours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array
from temperance.duplicates import sorting_order
from temperance.models.glm.fast.shared_rows import shared_rows
from temperance.models.glm.rows import Rows
from temperance.plans import FoldPlan


@dataclass(frozen=True, eq=False)
class FoldRows:
    """Rows of one weighting: fold after fold, and all of them once more."""

    order: NDArray[np.intp]  # (n,): which row of the data is where
    twice: Rows
    folds: list[slice]
    exponents: Array  # (folds,): factors on beta in the training sets

    @cached_property
    def once(self) -> Rows:
        """All rows, each weighted as in the mean over the folds' training sets."""
        counts = [fold.stop - fold.start for fold in self.folds]
        shares = (self.exponents.sum() - self.exponents) / len(self.folds)
        which = slice(len(self.order))
        weights = self.weights * np.repeat(shares, counts)
        return shared_rows(self.twice, which, weights[None])

    @property
    def weights(self) -> Array:
        """Weights of the rows as tested, (n,)."""
        return self.twice.weights[0, : len(self.order)]

    def outside(self, fold: int) -> Rows:
        """Return the training set of a fold: from its end, round, to its begin."""
        tested = self.folds[fold]
        which = slice(tested.stop, tested.start + len(self.order))
        weights, exponent = self.twice.weights[:, which], float(self.exponents[fold])
        return shared_rows(self.twice, which, weights if exponent == 1 else exponent * weights)


def fold_rows(rows: Rows, plan: FoldPlan) -> FoldRows:
    """Sort whitened rows by fold."""
    order = sorting_order(plan.fold, plan.n_folds)
    ends = np.cumsum(plan.counts).tolist()
    folds = [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    Z, offset, y, weights = (
        _twice(part, order) for part in (rows.Z, rows.offset, rows.y, plan.weights)
    )
    twice = replace(rows, Z=Z, offset=offset, y=y, weights=weights[None])
    return FoldRows(order, twice, folds, plan.exponents)


def _twice(values: Array, order: NDArray[np.intp]) -> Array:
    """Return values in this order, and again."""
    found = np.empty((2, *values.shape))
    np.take(values, order, axis=0, out=found[0], mode="clip")
    found[1] = found[0]
    return found.reshape(-1, *values.shape[1:])
