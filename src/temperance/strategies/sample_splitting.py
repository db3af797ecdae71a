r"""Sample splitting: train on one half, test on the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temperance.checks import one_of, whole
from temperance.data import Data
from temperance.plans import Folds, Pairs, Transfer
from temperance.strategies.selection import PlanStrategy


@dataclass(frozen=True)
class SampleSplitting(PlanStrategy):
    r"""Train on the first half of the rows, test on the second.

    The thesis' own variant is ``SampleSplitting(transfer="alpha")``.

    Parameters
    ----------
    transfer : {"beta", "alpha"}
        What is kept equal from the half to all rows.
    shuffle : bool
        Random halves instead of the first and the second.
    both_directions : bool
        Use each half once for training and once for testing.
    repeats : int
        Number of random splits; more than one needs ``shuffle``.
    """

    transfer: Transfer = "beta"
    shuffle: bool = False
    both_directions: bool = False
    repeats: int = 1

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        one_of("transfer", self.transfer, ("beta", "alpha"))
        one_of("shuffle", self.shuffle, (False, True))
        one_of("both_directions", self.both_directions, (False, True))
        whole("repeats", self.repeats, 1)
        if self.repeats > 1 and not self.shuffle:
            raise ValueError(
                f"repeats must be 1 unless shuffle is True, got {self.repeats!r}: "
                "the same split would be repeated"
            )

    def planned(self, data: Data, rng: np.random.Generator) -> tuple[Data, Pairs | Folds]:
        """Return one split as two folds, and test the second: models are fast on folds."""
        if self.both_directions or self.repeats > 1:
            return data, self.plan(data, rng)
        fold = (~self._first_halves(len(data), rng)[0]).view(np.int8)
        return data, Folds(data.weights, fold, 2, self.transfer, start=1)

    def plan(self, data: Data, rng: np.random.Generator) -> Pairs:
        """Return one pair per split and direction."""
        first = self._first_halves(len(data), rng)
        train = np.concatenate([first, ~first]) if self.both_directions else first
        return Pairs(train * data.weights, ~train * data.weights, data.size, self.transfer)

    def _first_halves(self, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Return which rows are in the first half of each split, (repeats, n)."""
        if n < 2:
            raise ValueError(f"X must have at least 2 rows to be split, got {n}")
        first = np.zeros((self.repeats, n), dtype=bool)
        for chosen in first:
            rows = rng.permutation(n)[: n // 2] if self.shuffle else slice(n // 2)
            chosen[rows] = True
        return first
