r"""Leave-one-out cross-validation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.checks import one_of
from temperance.data import Data
from temperance.plans import LeaveOneOutPlan, Transfer
from temperance.strategies.selection import CurveStrategy


@dataclass(frozen=True)
class LeaveOneOut(CurveStrategy):
    r"""Test each row once by the posterior of all the others.

    .. math:: \frac1n \sum_i E_{\theta \sim \pi^{(-i)}}[l(\theta, X_i)]

    Linear models have a closed form.  Logistic models of up to 500 rows are fitted without each
    row.  With more rows they are fitted once, and each row is removed by one Newton step, whose
    error is of order :math:`1/n^2` if there are many rows per column.  ``KFold(n)`` always fits
    without each of n distinct rows.

    Parameters
    ----------
    transfer : {"beta", "alpha"}
        What is kept equal from the remaining rows to all rows.

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
        """Return one pair per row."""
        if len(data) < 2:
            raise ValueError(f"X must have at least 2 rows to leave one out, got {len(data)}")
        return LeaveOneOutPlan(data.weights, self.transfer)
