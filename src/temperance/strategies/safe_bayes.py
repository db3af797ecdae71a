r"""SafeBayes: predict every row from the rows before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from temperance.checks import one_of, whole
from temperance.data import Data, Risk
from temperance.linear.models import GivenPrior
from temperance.plans import Pairs, Transfer
from temperance.protocols import Model
from temperance.strategies.selection import PlanStrategy

EVERY, STEPS = 200, 300  # rows that are predicted one by one, and steps of the others


@dataclass(frozen=True)
class SafeBayes(PlanStrategy):
    r"""Minimise the cumulative loss of one-step-ahead prediction.

    .. math:: \sum_{t} E_{\theta \sim \pi^{(1..t)}}[l(\theta, X_{t+1})]

    Grünwald's rule keeps beta, the default; the thesis' variant is ``SafeBayes(transfer="alpha")``.
    That is R-log-SafeBayes; ``loss="square"`` is R-square, and with ``in_model`` the loss is that
    of the posterior mean of the parameters, :math:`l(E_\pi \theta, X_{t+1})`: I-log and I-square.

    Parameters
    ----------
    transfer : {"beta", "alpha"}
        What is kept equal from a prefix to all rows.
    start : int
        Number of first rows that are not tested.
    permutations : int
        Average over this many random orders; 0 keeps the order of the data.
    stride : int, optional
        Predict this many rows at a time: the first k s rows train and the next s are tested.  By
        default every row up to the 200th is predicted from all rows before it, and later ones a few
        at a time, in 300 steps of equal growth.
    loss : {"log", "square"}
        The model's own loss, or squared error, for linear models.
    in_model : bool
        Predict with the posterior mean of the parameters instead of draws, for linear models.

    References
    ----------
    .. [1] P. Grünwald, The safe Bayesian, ALT 2012.
    .. [2] P. Grünwald, T. van Ommen, Inconsistency of Bayesian inference for misspecified linear
       models, and a proposal for repairing it, Bayesian Analysis 12, 2017.
    """

    transfer: Transfer = "beta"
    start: int = 1
    permutations: int = 0
    stride: int | None = None
    loss: Literal["log", "square"] = "log"
    in_model: bool = False

    def __post_init__(self) -> None:
        """Refuse invalid options."""
        one_of("transfer", self.transfer, ("beta", "alpha"))
        whole("start", self.start, 1)
        whole("permutations", self.permutations, 0)
        if self.stride is not None:
            whole("stride", self.stride, 1)
        one_of("loss", self.loss, ("log", "square"))
        one_of("in_model", self.in_model, (False, True))

    def score(self, model: Model, risk: Risk) -> Any:
        """Return the score of the loss; refuse models and risks that do not have it."""
        if self._plain:
            return risk
        name = f"SafeBayes(loss={self.loss!r}, in_model={self.in_model!r})"
        if not isinstance(model, GivenPrior):
            raise ValueError(
                f"{name} needs a linear model of a given prior, got {type(model).__name__}"
            )
        if risk != "gibbs":
            raise ValueError(f"{name} has a loss of its own: risk must be 'gibbs', got {risk!r}")
        if model.noise.variance is None and model.noise.a <= 1:
            raise ValueError(
                "a must be above 1 for the posterior mean of the noise variance, got "
                f"{model.noise.a!r}"
            )
        if self.loss == "log":
            return "log of the mean"
        return "square of the mean" if self.in_model else "square"

    @property
    def _plain(self) -> bool:
        return self.loss == "log" and not self.in_model

    def plan(self, data: Data, rng: np.random.Generator) -> Pairs:
        """Return a plan in which every prefix predicts the next row, or the next few."""
        n = len(data)
        if n <= self.start:
            raise ValueError(
                f"start must be less than the number of rows, got {self.start!r} for {n} rows"
            )
        if self.permutations:
            orders = np.stack([rng.permutation(n) for _ in range(self.permutations)])
        else:
            orders = np.arange(n)[None]
        first = -(-self.start // (self.stride or 1)) * (self.stride or 1)
        if first >= n:
            raise ValueError(
                f"stride must be less than the number of rows, got {self.stride!r} for {n} rows"
            )
        ends = prefix_lengths(first, n) if self.stride is None else np.arange(first, n, self.stride)
        place = np.arange(n)
        earlier = place < ends[:, None]
        following = ~earlier & (place < np.append(ends[1:], n)[:, None])
        train, test = np.zeros((2, len(orders), len(ends), n))
        for trained, tested, order in zip(train, test, orders, strict=True):
            trained[:, order] = earlier * data.weights[order]
            tested[:, order] = following * data.weights[order]
        return Pairs(train.reshape(-1, n), test.reshape(-1, n), data.size, self.transfer)


def prefix_lengths(first: int, n: int) -> NDArray[np.intp]:
    """Return the lengths of prefixes: all up to 200, then at most 300 of about equal growth.

    Examples
    --------
    >>> prefix_lengths(2, 6)
    array([2, 3, 4, 5])
    """
    short = np.arange(first, min(max(first, EVERY), n))
    if n <= EVERY:
        return short
    long = np.geomspace(max(first, EVERY), n, STEPS, endpoint=False)
    return np.unique(np.concatenate([short, long.astype(int)]))
