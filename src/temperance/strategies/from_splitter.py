r"""Any scikit-learn splitter as a strategy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import one_of, shown
from temperance.data import Data
from temperance.plans import Pairs, Transfer
from temperance.strategies.selection import PlanStrategy


@dataclass(frozen=True, eq=False)
class FromSplitter(PlanStrategy):
    """Train and test on the splits of a scikit-learn splitter.

    Parameters
    ----------
    splitter : object with ``split(X, y, groups)``
        Its own ``random_state`` is used.
    transfer : {"beta", "alpha"}
        What is kept equal from the training rows to all rows.
    groups : array of shape (n,), optional
        Passed to the splitter.
    """

    splitter: Any
    transfer: Transfer = "beta"
    groups: ArrayLike | None = None

    def __post_init__(self) -> None:
        """Refuse a splitter without a method ``split``."""
        if isinstance(self.splitter, type | str) or not callable(
            getattr(self.splitter, "split", None)
        ):
            raise ValueError(
                f"splitter must be an instance with a method split, got {shown(self.splitter)}"
            )
        one_of("transfer", self.transfer, ("beta", "alpha"))

    def plan(self, data: Data, rng: np.random.Generator) -> Pairs:
        """Return one pair per split."""
        n, groups = len(data), None if self.groups is None else np.asarray(self.groups)
        if groups is not None and groups.shape != (n,):
            raise ValueError(
                f"groups must have shape ({n},), one entry for each row of positive weight, got "
                f"shape {groups.shape}"
            )
        try:
            splits = list(self.splitter.split(data.X, data.y, groups))
        except ValueError as error:
            reason = " ".join(str(error).split())
            raise ValueError(
                f"splitter must split the {n} rows of positive weight, got its refusal: {reason}"
            ) from error
        if not splits:
            raise ValueError("splitter must give at least one split, got 0")
        train, test = np.zeros((2, len(splits), n))
        for name, weights, part in (("train", train, 0), ("test", test, 1)):
            for pair, split in enumerate(splits):
                rows = np.asarray(split[part])
                if not rows.size or rows.max() >= n or rows.min() < 0:
                    outside = rows[(rows < 0) | (rows >= n)]
                    got = f"row {outside[0]}" if rows.size else "none"
                    raise ValueError(
                        f"splitter must give {name} rows from 0 to {n - 1}, the rows of positive "
                        f"weight, got {got} in split {pair}"
                    )
                np.add.at(weights[pair], rows, data.weights[rows])
        return Pairs(train, test, data.size, self.transfer)
