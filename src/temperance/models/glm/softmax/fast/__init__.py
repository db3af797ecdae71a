r"""Shortcuts for the risk curves of several classes, behind one function."""

from __future__ import annotations

from temperance.curves import RiskCurve
from temperance.models.glm.fast.leave_one_out import many_rows
from temperance.models.glm.fast.pairs import pairs_risk_curve
from temperance.models.glm.softmax.fast.leave_one_out import left_out_risk_curve
from temperance.models.glm.softmax.system import ClassRows, SoftmaxLaplace
from temperance.types import AnyPlan, LeaveOneOutPlan, Risk


def choose(
    rows: ClassRows, plan: AnyPlan, risk: Risk, approximation: SoftmaxLaplace
) -> RiskCurve | None:
    """Return a curve that costs less than the plain one, if there is one."""
    if isinstance(plan, LeaveOneOutPlan) and many_rows(*rows.Z.shape):
        return left_out_risk_curve(rows, plan, risk)
    return pairs_risk_curve(rows, plan, risk, approximation)
