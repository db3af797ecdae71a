r"""Shortcuts for the risk curves of :mod:`temperance.models.glm.plain`, behind one function.

==================  ============================  =================================  ============
plan                where                         instead of a fit for each pair     error
==================  ============================  =================================  ============
any                 :mod:`.pairs`, :mod:`.path`   starts from fits at other betas    none
folds, many rows    :mod:`.folds`                 starts from one fit of all rows,   none
                                                  which the search sketches with
leave-one-out,      :mod:`.leave_one_out`         one fit and a Newton step for      order 1/n^2
many rows                                         each row
long prefixes       :mod:`.prefixes`              views of the rows, no weights of   none
                                                  pairs
==================  ============================  =================================  ============
"""

from __future__ import annotations

from temperance.curves import RiskCurve
from temperance.models.glm.fast.folds import fold_risk_curve, many_in_folds
from temperance.models.glm.fast.leave_one_out import left_out_risk_curve, many_rows
from temperance.models.glm.fast.pairs import pairs_risk_curve
from temperance.models.glm.fast.prefixes import long_prefixes, prefix_risk_curve
from temperance.models.glm.newton import Approximation
from temperance.models.glm.rows import Rows
from temperance.types import AnyPlan, FoldPlan, LeaveOneOutPlan, PrefixPlan, Risk


def choose(rows: Rows, plan: AnyPlan, risk: Risk, approximation: Approximation) -> RiskCurve | None:
    """Return a curve that costs less than the plain one, if there is one."""
    n, k = rows.Z.shape
    if isinstance(plan, LeaveOneOutPlan) and many_rows(n, k):
        return left_out_risk_curve(rows, plan, risk, approximation)
    if isinstance(plan, PrefixPlan) and long_prefixes(plan):
        return prefix_risk_curve(rows, plan, risk, approximation)
    if isinstance(plan, FoldPlan) and many_in_folds(plan, k):
        return fold_risk_curve(rows, plan, risk, approximation)
    return pairs_risk_curve(rows, plan, risk, approximation)
