r"""SafeBayes: predict every row from the rows before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.selection import CurveStrategy
from temperance.types import Data, PrefixPlan, Transfer
from temperance.validation import one_of, whole


@dataclass(frozen=True)
class SafeBayes(CurveStrategy):
    r"""Minimise the cumulative loss of one-step-ahead prediction.

    .. math:: \sum_{t} E_{\theta \sim \pi^{(1..t)}}[l(\theta, X_{t+1})]

    Grünwald's rule holds beta, the default; the thesis' variant is ``SafeBayes(transfer="alpha")``.

    Parameters
    ----------
    transfer : {"beta", "alpha"}
        What is held from a prefix to the whole.
    start : int
        Number of rows that only train.
    permutations : int
        Average over this many random orders; 0 keeps the order of the data.

    References
    ----------
    .. [1] P. Grünwald, The safe Bayesian, ALT 2012.
    """

    transfer: Transfer = "beta"
    start: int = 1
    permutations: int = 0

    def __post_init__(self) -> None:
        """Refuse options without meaning."""
        one_of("transfer", self.transfer, ("beta", "alpha"))
        whole("start", self.start, 1)
        whole("permutations", self.permutations, 0)

    def plan(self, data: Data, rng: np.random.Generator) -> PrefixPlan:
        """Every prefix predicts the next row."""
        n = len(data)
        if n <= self.start:
            raise ValueError(
                f"start must be less than the number of rows, got {self.start!r} for {n} rows"
            )
        if self.permutations:
            orders = np.stack([rng.permutation(n) for _ in range(self.permutations)])
        else:
            orders = np.arange(n)[None]
        return PrefixPlan(data.weights, orders, self.start, self.transfer)
