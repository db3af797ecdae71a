r"""Any scikit-learn splitter as a strategy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temperance.selection import CurveStrategy
from temperance.types import Data, Plan, Transfer
from temperance.validation import one_of


@dataclass(frozen=True)
class FromSplitter(CurveStrategy):
    """Train and test as a scikit-learn splitter says.

    Parameters
    ----------
    splitter : object with ``split(X, y, groups)``
        It carries its own ``random_state``.
    transfer : {"beta", "alpha"}
        What is held from the training rows to the whole.
    groups : array of shape (n,), optional
        Passed to the splitter.
    """

    splitter: Any
    transfer: Transfer = "beta"
    groups: ArrayLike | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot split."""
        if isinstance(self.splitter, type) or not callable(getattr(self.splitter, "split", None)):
            raise ValueError(
                f"splitter must be an instance with a method split, got {self.splitter!r}"
            )
        one_of("transfer", self.transfer, ("beta", "alpha"))

    def plan(self, data: Data, rng: np.random.Generator) -> Plan:
        """One pair per split."""
        splits = list(self.splitter.split(data.X, data.y, self.groups))
        train, test = np.zeros((2, len(splits), len(data)))
        for pair, (training, testing) in enumerate(splits):
            train[pair, training] = data.weights[training]
            test[pair, testing] = data.weights[testing]
        for name, weights in (("train", train), ("test", test)):
            if not len(splits) or not weights.any(axis=1).all():
                raise ValueError(f"splitter must give every split {name} rows, got none in one")
        return Plan(train, test, data.size, self.transfer)
