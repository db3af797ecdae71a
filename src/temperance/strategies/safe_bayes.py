r"""SafeBayes: predict every row from the rows before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.strategies.selection import CurveStrategy
from temperance.types import Data, Plan, PrefixPlan, Transfer
from temperance.validation import one_of, whole

GROWTH = 0.02  # of a prefix that is worth another fit


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
    stride : int, optional
        Predict this many rows at a time: the first k s rows train and the next s are tested.  By
        default linear models predict every row from all before it, and models that are fitted
        anew are so whenever the rows have grown by a fiftieth: at every row up to the hundredth,
        then ever more seldom, in time linear in the rows.  1 fits at every row, in quadratic time.

    References
    ----------
    .. [1] P. Grünwald, The safe Bayesian, ALT 2012.
    """

    transfer: Transfer = "beta"
    start: int = 1
    permutations: int = 0
    stride: int | None = None

    def __post_init__(self) -> None:
        """Refuse options without meaning."""
        one_of("transfer", self.transfer, ("beta", "alpha"))
        whole("start", self.start, 1)
        whole("permutations", self.permutations, 0)
        if self.stride is not None:
            whole("stride", self.stride, 1)

    def plan(self, data: Data, rng: np.random.Generator) -> PrefixPlan | Plan:
        """Every prefix predicts the next row, or the next few."""
        n = len(data)
        if n <= self.start:
            raise ValueError(
                f"start must be less than the number of rows, got {self.start!r} for {n} rows"
            )
        if self.permutations:
            orders = np.stack([rng.permutation(n) for _ in range(self.permutations)])
        else:
            orders = np.arange(n)[None]
        stride, growth = (1, GROWTH) if self.stride is None else (self.stride, 0.0)
        first = -(-self.start // stride) * stride
        if first >= n:
            raise ValueError(
                f"stride must be less than the number of rows, got {stride!r} for {n} rows"
            )
        prefixes = PrefixPlan(data.weights, orders, first, self.transfer, growth, stride)
        return prefixes if stride == 1 else prefixes.pairs()  # which no model makes finer
