r"""Shortcuts for the risk curves of :mod:`temperance.models.glm.plain`, behind one function.

==================  ============================  =================================  ============
plan                where                         instead of a fit for each pair     error
==================  ============================  =================================  ============
any                 :mod:`.pairs`                starts from fits at other betas    none
leave-one-out,      :mod:`.leave_one_out`         one fit and a Newton step for      order 1/n^2
many rows                                         each row
==================  ============================  =================================  ============
"""

from __future__ import annotations

from temperance.curves import RiskCurve
from temperance.data import Risk
from temperance.models.glm.fast.leave_one_out import left_out_risk_curve
from temperance.models.glm.fast.pairs import pairs_risk_curve
from temperance.models.glm.gaussians import few_rows
from temperance.models.glm.newton import Approximation
from temperance.models.glm.rows import Rows
from temperance.plans import AnyPlan, LeaveOneOut

MANY_LEFT_OUT = 500  # rows up to which leave-one-out refits every one
COLUMNS = 25.0  # from which matrices over the columns cost more than passes over the rows
NEWTON_STEPS = 10  # fits that cost as much as a fit, a Newton step for each row and some refits


def choose(rows: Rows, plan: AnyPlan, risk: Risk, approximation: Approximation) -> RiskCurve | None:
    """Return a curve that costs less than the plain one, if there is one."""
    n, k = rows.Z.shape
    if isinstance(plan, LeaveOneOut) and many_rows(n, k):
        return left_out_risk_curve(rows, plan, risk, approximation)
    return pairs_risk_curve(rows, plan, risk, approximation)


def many_rows(n: int, columns: int) -> bool:
    """Tell whether single rows matter little enough to be left out by a Newton step."""
    return n > MANY_LEFT_OUT and not few_rows(n, columns)


def cost_of_fits(count: float, rows: int, columns: int) -> float:
    """Return the cost of calibrating on ``count`` fits: rows that pass, as if columns were few."""
    return count * rows * (1 + (columns / COLUMNS) ** 2)


def fits_to_leave_one_out(rows: int, columns: int) -> int:
    """Return how many fits leave-one-out is worth."""
    return NEWTON_STEPS if many_rows(rows, columns) else rows
