r"""Shortcuts to the numbers of the plain path, for plans that it would take long over.

:func:`choose` is the only way in.  Every shortcut is held to the plain path by a test.

* :mod:`leave_one_out`: a row's deletion is a rank-one change of one decomposition of all rows.
* :mod:`prefixes`: blocks of rows are predicted from those before them by one Cholesky factor.
* :mod:`pairs`: rows of equal weights enter by their Gram matrix; :mod:`fold_moments` for folds.
* :mod:`interpolant`: sums over very many rows are known at all betas from a few of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from temperance.curves import RiskCurve
from temperance.models.linear.eigenbasis import moving_betas
from temperance.models.linear.fast.fold_moments import FoldMoments
from temperance.models.linear.fast.interpolant import FAR
from temperance.models.linear.fast.leave_one_out import LeaveOneOutMoments
from temperance.models.linear.fast.pairs import PairMoments
from temperance.models.linear.fast.prefixes import PrefixMoments
from temperance.models.linear.fast.sums import HasFloor, SummedSource, mean_gibbs
from temperance.models.linear.limits import refuse_betas
from temperance.models.linear.noise import Noise
from temperance.models.linear.plain import MeanLosses
from temperance.models.linear.rows import LARGE_PROBLEM, MANY_TRAINED, Rows
from temperance.types import AnyPlan, Array, FoldPlan, LeaveOneOutPlan, PrefixPlan, Risk


def choose(rows: Rows, plan: AnyPlan, noise: Noise, risk: Risk) -> RiskCurve | None:
    """Return the curve of a plan by a shortcut; nothing where the plain path is as good."""
    source = moment_source(rows, plan)
    return None if source is None else summed_curve(source, noise, risk, rows, plan)


def moment_source(rows: Rows, plan: AnyPlan) -> SummedSource | None:
    """Choose the cheapest exact way to the moments of a plan, unless that is the plain one."""
    if isinstance(plan, LeaveOneOutPlan):
        return LeaveOneOutMoments(rows, plan)
    if isinstance(plan, PrefixPlan):
        return PrefixMoments(rows, plan)
    if isinstance(plan, FoldPlan) and rows.inputs.size > LARGE_PROBLEM:
        return FoldMoments(rows, plan)
    pairs = plan.n_folds - plan.start if isinstance(plan, FoldPlan) else len(plan.train)
    if pairs * rows.inputs.size > MANY_TRAINED:
        return PairMoments(rows, plan)
    return None


def summed_curve(
    source: SummedSource, noise: Noise, risk: Risk, rows: Rows, plan: AnyPlan
) -> RiskCurve:
    """Return the curve of a source; Gibbs risks come from sums over rows.

    With a known noise variance sums of leave-one-out and SafeBayes come from few betas where these
    resolve them, to 1e-11 of the risk (:mod:`temperance.models.linear.fast.interpolant`).
    """
    losses = SummedLosses(source, noise, risk, len(rows))
    each_row = noise.pairwise and isinstance(plan, LeaveOneOutPlan | PrefixPlan)
    costly = rows.inputs.size > LARGE_PROBLEM and (
        risk == "predictive" or each_row or source.reach > FAR
    )
    floor = None
    bounded = risk == "gibbs" and not noise.pairwise and 0 < source.reach <= FAR
    if bounded and isinstance(source, HasFloor):
        floor = partial(_floor, source, noise)
    scale = partial(moving_betas, source, noise)
    return RiskCurve(
        losses.evaluate, losses.rows, "closed form", costly=costly, floor=floor, scale=scale
    )


@dataclass(frozen=True, eq=False)
class SummedLosses(MeanLosses):
    """Losses of n rows, whose Gibbs risk needs no more than sums over tested rows."""

    source: SummedSource

    def evaluate(self, beta: Array) -> tuple[Array, Array]:
        """Return the risk at betas (g,) and its derivative."""
        if self.risk != "gibbs":
            return super().evaluate(beta)
        refuse_betas(beta)
        return mean_gibbs(beta, self.source.sums(beta, self.noise.pairwise), self.noise)


def _floor(source: HasFloor, noise: Noise, beta: Array) -> tuple[Array, Array]:
    """Return a cheap lower bound of the risk, and its derivative."""
    refuse_betas(beta)
    return mean_gibbs(beta, source.floor(beta), noise)
