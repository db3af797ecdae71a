r"""Risk curve of a linear model: moments of the plan, losses of the noise, averaged."""

from __future__ import annotations

from dataclasses import dataclass

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
    losses = LinearLosses(moment_source(rows, plan), noise, risk, len(rows))
    return RiskCurve(losses.evaluate, losses.rows, "closed form")


def moment_source(rows: Array, plan: AnyPlan) -> MomentSource:
    """Choose the cheapest exact way to the moments of a plan."""
    if isinstance(plan, LeaveOneOutPlan):
        return LeaveOneOutMoments(rows, plan)
    if isinstance(plan, PrefixPlan):
        return PrefixMoments(rows, plan)
    return PairMoments(rows, plan)


@dataclass(frozen=True, eq=False)
class LinearLosses:
    """Losses of n rows, averaged over the pairs and rows that a plan tests."""

    source: MomentSource
    noise: Noise
    risk: Risk
    n: int

    def evaluate(self, beta: Array) -> tuple[Array, Array]:
        """Return the risk at betas (g,) and its derivative."""
        value, slope, tested = np.zeros(len(beta)), np.zeros(len(beta)), 0.0
        for moments in self.source.moments(beta, condensed=self.risk == "gibbs"):
            if self.risk == "gibbs":
                part, d_part = _gibbs_sums(beta, moments, self.noise)
            else:
                weight = moments.weight[:, :, None]
                part, d_part = (
                    (weight * loss).sum(axis=(0, 1))
                    for loss in self.noise.predictive(beta, moments)
                )
            value += part
            slope += d_part
            tested += float(moments.tested.sum())
        return value / tested, slope / tested

    def rows(self, beta: float) -> tuple[Array, Array]:
        """Return the loss of each row and its weight."""
        at = np.array([beta])
        total, weight = np.zeros(self.n), np.zeros(self.n)
        for moments in self.source.moments(at, condensed=False):
            loss = self._row_losses(at, moments)
            np.add.at(total, moments.rows, moments.weight * loss[:, :, 0])
            np.add.at(weight, moments.rows, moments.weight)
        return total / np.where(weight > 0, weight, 1.0), weight

    def _row_losses(self, beta: Array, moments: Moments) -> Array:
        if self.risk == "predictive":
            return self.noise.predictive(beta, moments)[0]
        gibbs = self.noise.gibbs(beta, moments)
        return (
            gibbs.slope[:, None] * moments.error**2
            + 0.5 * moments.variance
            + gibbs.constant[:, None]
        )


def _gibbs_sums(beta: Array, moments: Moments, noise: Noise) -> tuple[Array, Array]:
    weight = moments.weight[:, :, None]
    square = (weight * moments.error**2).sum(axis=1)
    d_square = 2 * (weight * moments.error * moments.d_error).sum(axis=1)
    gibbs = noise.gibbs(beta, moments)
    tested = moments.tested[:, None]
    value = gibbs.slope * square + tested * gibbs.constant
    slope = gibbs.d_slope * square + gibbs.slope * d_square + tested * gibbs.d_constant
    spread, d_spread = (
        0.5 * (weight * part).sum(axis=1) for part in (moments.variance, moments.d_variance)
    )
    return (value + spread).sum(axis=0), (slope + d_spread).sum(axis=0)
