r"""Leave-one-out cross-validation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.strategies.selection import CurveStrategy
from temperance.types import Data, LeaveOneOutPlan, Transfer
from temperance.validation import one_of


@dataclass(frozen=True)
class LeaveOneOut(CurveStrategy):
    r"""Each row is tested once by the posterior of all the others.

    .. math:: \frac1n \sum_i E_{\theta \sim \pi^{(-i)}}[l(\theta, X_i)]

    In closed form for linear models.  Logistic models are fitted without each row up to 500 rows;
    beyond, all rows are fitted once and each is taken out by one Newton step, which errs by the
    order of :math:`1/n^2` where rows are many for each column.  ``KFold(n)`` fits without each of n
    distinct rows, however many.

    Parameters
    ----------
    transfer : {"beta", "alpha"}
        What is held from the remaining rows to the whole.

    References
    ----------
    .. [1] K. R. Rad, A. Maleki, A scalable estimate of the out-of-sample prediction error via
       approximate leave-one-out cross-validation, JRSS B 82, 2020.
    """

    transfer: Transfer = "beta"

    def __post_init__(self) -> None:
        """Refuse an unknown transfer."""
        one_of("transfer", self.transfer, ("beta", "alpha"))

    def plan(self, data: Data, rng: np.random.Generator) -> LeaveOneOutPlan:
        """One pair per row."""
        if len(data) < 2:
            raise ValueError(f"X must have at least 2 rows to leave one out, got {len(data)}")
        return LeaveOneOutPlan(data.weights, self.transfer)
