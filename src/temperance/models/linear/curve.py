r"""Risk curve of a linear model: moments of the plan, losses of the noise, averaged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from temperance.curves import RiskCurve
from temperance.models.linear.fold_moments import FoldMoments
from temperance.models.linear.interpolant import FAR
from temperance.models.linear.leave_one_out import LeaveOneOutMoments
from temperance.models.linear.limits import refuse_betas
from temperance.models.linear.moments import HasFloor, Moments, MomentSource, Sums
from temperance.models.linear.noise import Noise, gibbs_rows
from temperance.models.linear.pairs import PairMoments
from temperance.models.linear.prefixes import PrefixMoments
from temperance.models.linear.rows import DEAR, Rows
from temperance.search.log_scale import Scale
from temperance.types import AnyPlan, Array, FoldPlan, LeaveOneOutPlan, PrefixPlan, Risk


def linear_risk_curve(
    rows: Rows, plan: AnyPlan, noise: Noise, risk: Risk, source: MomentSource | None = None
) -> RiskCurve:
    """Curve of whitened rows [Z r] in units of the noise; exact for every plan, or nearly so.

    Sums of leave-one-out and SafeBayes come from few betas where these resolve them, to 1e-11 of
    the risk (:mod:`temperance.models.linear.interpolant`).  A source of the plan's moments that is
    shared with others may be given.
    """
    source = source or moment_source(rows, plan)
    losses = LinearLosses(source, noise, risk, len(rows))
    dear = rows.inputs.size > DEAR and (
        risk == "predictive"
        or (noise.pairwise and isinstance(plan, LeaveOneOutPlan | PrefixPlan))
        or source.reach > FAR
    )
    sums_only = risk == "gibbs" and not noise.pairwise
    floor = None
    if sums_only and isinstance(source, HasFloor) and 0 < source.reach <= FAR:
        floor = partial(floor_of, source, noise)
    return RiskCurve(
        losses.evaluate,
        losses.rows,
        "closed form",
        costly=dear,
        floor=floor,
        scale=partial(moving_betas, source, noise),
    )


def moving_betas(source: MomentSource, noise: Noise) -> Scale:
    """Return the betas between which a curve moves, a few decades more or less; see ``extent``."""
    betas = [1 / eigenvalue for eigenvalue in source.eigenvalues if eigenvalue > 0]
    betas += noise.moving(source)
    return Scale(min(betas), max(betas)) if betas else Scale(1.0)


def moment_source(rows: Rows, plan: AnyPlan) -> MomentSource:
    """Choose the cheapest exact way to the moments of a plan."""
    if isinstance(plan, LeaveOneOutPlan):
        return LeaveOneOutMoments(rows, plan)
    if isinstance(plan, PrefixPlan):
        return PrefixMoments(rows, plan)
    if isinstance(plan, FoldPlan) and rows.inputs.size > DEAR:
        return FoldMoments(rows, plan)
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
        refuse_betas(beta)
        if self.risk == "gibbs":
            return mean_gibbs(beta, self.source.sums(beta, self.noise.pairwise), self.noise)
        value, slope, tested = np.zeros(len(beta)), np.zeros(len(beta)), 0.0
        for moments in self.source.moments(beta):
            weight = moments.weight[:, :, None]
            loss, d_loss = self.noise.predictive(beta, moments)
            value += (weight * loss).sum(axis=(0, 1))
            slope += (weight * d_loss).sum(axis=(0, 1))
            tested += float(moments.tested.sum())
        return value / tested, slope / tested

    def rows(self, beta: float) -> tuple[Array, Array]:
        """Return the loss of each row and its weight."""
        at = np.array([beta])
        refuse_betas(at)
        parts = []
        for moments in self.source.moments(at):
            loss = self._row_losses(at, moments)[:, :, 0]
            parts.append((moments.rows.ravel(), loss.ravel(), moments.weight.ravel()))
        index, losses, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        total, weight = (
            np.bincount(index, part, self.n).astype(float) for part in (weights * losses, weights)
        )
        return total / np.where(weight > 0, weight, 1.0), weight

    def _row_losses(self, beta: Array, moments: Moments) -> Array:
        if self.risk == "predictive":
            return self.noise.predictive(beta, moments)[0]
        return gibbs_rows(self.noise.gibbs(beta, moments), moments)[0]


def floor_of(source: HasFloor, noise: Noise, beta: Array) -> tuple[Array, Array]:
    """Return a risk that is nowhere higher, and its derivative, for less."""
    refuse_betas(beta)
    return mean_gibbs(beta, source.floor(beta), noise)


def mean_gibbs(beta: Array, parts: Iterable[Sums], noise: Noise) -> tuple[Array, Array]:
    """Average the Gibbs loss over all pairs; the value and its derivative, (g,) each."""
    value, slope, total = np.zeros(len(beta)), np.zeros(len(beta)), 0.0
    for sums in parts:
        found, d_found = noise.summed(beta, sums)
        value += found
        slope += d_found
        total += float(sums.tested.sum())
    return value / total, slope / total
