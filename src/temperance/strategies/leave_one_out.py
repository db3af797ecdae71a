r"""Leave-one-out cross-validation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance import plans
from temperance.checks import one_of
from temperance.data import Data
from temperance.plans import Duplicates, Transfer
from temperance.strategies.selection import PlanStrategy


@dataclass(frozen=True)
class LeaveOneOut(PlanStrategy):
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
    duplicates : {"auto", "together", "apart"}
        Whether identical rows are left out together; see :func:`temperance.plans.observations`.

    References
    ----------
    .. [1] K. R. Rad, A. Maleki, A scalable estimate of the out-of-sample prediction error via
       approximate leave-one-out cross-validation, JRSS B 82, 2020.
    """

    transfer: Transfer = "beta"
    duplicates: Duplicates = "auto"

    def __post_init__(self) -> None:
        """Refuse an unknown transfer."""
        one_of("transfer", self.transfer, ("beta", "alpha"))
        one_of("duplicates", self.duplicates, ("auto", "together", "apart"))

    def planned(self, data: Data, rng: np.random.Generator) -> tuple[Data, plans.AnyPlan]:
        """Return the distinct rows, one of which is left out at a time, or a piece of one."""
        rows, pieces = plans.observations(data, self.duplicates)
        if (len(rows) if pieces is None else pieces.sum()) < 2:
            raise ValueError(
                f"X and y must have at least 2 distinct rows to leave one out, got {len(rows)}"
            )
        return rows, plans.LeaveOneOut(rows.weights, self.transfer, pieces)
