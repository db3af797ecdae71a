r"""Risk curve of a linear model: moments of the plan, losses of the noise, averaged."""

from __future__ import annotations

import numpy as np

from temperance.curves import RiskCurve
from temperance.models.linear.leave_one_out import LeaveOneOutMoments
from temperance.models.linear.moments import Moments, MomentSource
from temperance.models.linear.noise import Noise
from temperance.models.linear.pairs import PairMoments
from temperance.models.linear.prefixes import PrefixMoments
from temperance.types import AnyPlan, Array, LeaveOneOutPlan, PrefixPlan, Risk


def linear_risk_curve(rows: Array, plan: AnyPlan, noise: Noise, risk: Risk) -> RiskCurve:
    """Curve of whitened rows [Z r] in units of the noise; exact for every plan.

    Only SafeBayes at fixed alpha interpolates, to the tolerance stated in
    :mod:`temperance.models.linear.prefixes`.
    """
    source = moment_source(rows, plan)

    def evaluate(beta: Array) -> tuple[Array, Array]:
        value, slope, count = np.zeros(len(beta)), np.zeros(len(beta)), 0.0
        for moments in source.moments(beta, condensed=risk == "gibbs"):
            if risk == "gibbs":
                part, d_part = _gibbs_sums(beta, moments, noise)
            else:
                weight = moments.weight[:, :, None]
                part, d_part = (
                    (weight * loss).sum(axis=(0, 1)) for loss in noise.predictive(beta, moments)
                )
            value += part
            slope += d_part
            count += moments.tested.sum()
        return value / count, slope / count

    def row_losses(beta: float) -> tuple[Array, Array]:
        at = np.array([beta])
        total, weight = np.zeros(len(rows)), np.zeros(len(rows))
        for moments in source.moments(at, condensed=False):
            if risk == "gibbs":
                gibbs = noise.gibbs(at, moments)
                loss = (
                    gibbs.slope[:, None] * moments.error**2
                    + 0.5 * moments.variance
                    + gibbs.constant[:, None]
                )
            else:
                loss, _ = noise.predictive(at, moments)
            np.add.at(total, moments.rows, moments.weight * loss[:, :, 0])
            np.add.at(weight, moments.rows, moments.weight)
        return total / np.where(weight > 0, weight, 1.0), weight

    return RiskCurve(evaluate, row_losses, "closed form")


def moment_source(rows: Array, plan: AnyPlan) -> MomentSource:
    """Choose the cheapest exact way to the moments of a plan."""
    if isinstance(plan, LeaveOneOutPlan):
        return LeaveOneOutMoments(rows, plan)
    if isinstance(plan, PrefixPlan):
        return PrefixMoments(rows, plan)
    return PairMoments(rows, plan)


def _gibbs_sums(beta: Array, moments: Moments, noise: Noise) -> tuple[Array, Array]:
    weight = moments.weight[:, :, None]
    square = (weight * moments.error**2).sum(axis=1)
    d_square = 2 * (weight * moments.error * moments.d_error).sum(axis=1)
    gibbs = noise.gibbs(beta, moments)
    count = moments.tested[:, None]
    value = gibbs.slope * square + count * gibbs.constant
    slope = gibbs.d_slope * square + gibbs.slope * d_square + count * gibbs.d_constant
    spread, d_spread = (
        0.5 * (weight * part).sum(axis=1) for part in (moments.variance, moments.d_variance)
    )
    return (value + spread).sum(axis=0), (slope + d_spread).sum(axis=0)
