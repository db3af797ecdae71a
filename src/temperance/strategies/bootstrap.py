r"""Bootstrap: train on resamples, test on all rows (or on those left out)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.checks import one_of, whole
from temperance.data import Data
from temperance.plans import Pairs
from temperance.strategies.selection import PlanStrategy


@dataclass(frozen=True)
class Bootstrap(PlanStrategy):
    r"""Train on resamples of the data, test on the data.

    The draws are the same at every beta, so the curve is smooth and needs no stochastic gradient.
    A resample is as large as the data, so that keeping alpha and keeping beta are the same.

    Parameters
    ----------
    n_draws : int
        Number of resamples.
    out_of_bag : bool
        Test only on the rows that a resample left out.
    """

    n_draws: int = 1000
    out_of_bag: bool = False

    def __post_init__(self) -> None:
        """Refuse fewer than one draw."""
        whole("n_draws", self.n_draws, 1)
        one_of("out_of_bag", self.out_of_bag, (False, True))

    def plan(self, data: Data, rng: np.random.Generator) -> Pairs:
        """Return multinomial counts of ``size`` observations, one pair per draw."""
        size = data.size
        units = round(size)
        if units < 2:
            raise ValueError(
                f"weights must count observations, at least 2 in all to be resampled, got {size!r}"
            )
        counts = rng.multinomial(units, data.weights / size, size=self.n_draws)
        train = counts.astype(float) * (size / units)
        if not self.out_of_bag:
            return Pairs(train, np.broadcast_to(data.weights, train.shape), size)
        test = (counts == 0) * data.weights
        kept = test.any(axis=1)
        if not kept.any():
            raise ValueError(
                f"n_draws must be larger for out-of-bag testing of {len(data)} rows: none of "
                f"{self.n_draws!r} resamples left a row out"
            )
        return Pairs(train[kept], test[kept], size)
