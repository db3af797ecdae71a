r"""Faster computations of the plain path's numbers, for large plans.

:func:`choose` is the only entry point.  Tests compare every shortcut with the plain path.

* :mod:`leave_one_out`: deleting a row is a rank-one change of one decomposition of all rows.
* :mod:`prefixes`: blocks of rows are predicted from those before them by one Cholesky factor.
* :mod:`pairs`: rows of equal weights enter by their Gram matrix; :mod:`fold_moments` for folds.
* :mod:`interpolant`: sums over very many rows are interpolated between a few betas.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from temperance.curves import RiskCurve
from temperance.data import Array, Risk
from temperance.models.linear.eigenbasis import changing_betas
from temperance.models.linear.fast.fold_moments import FoldPlanMoments
from temperance.models.linear.fast.interpolant import LARGEST_START
from temperance.models.linear.fast.leave_one_out import LeaveOneOutMoments
from temperance.models.linear.fast.pairs import PairMoments
from temperance.models.linear.fast.prefixes import PrefixMoments
from temperance.models.linear.fast.sums import HasFloor, SummedSource, mean_gibbs
from temperance.models.linear.limits import refuse_betas
from temperance.models.linear.noise import NoiseModel
from temperance.models.linear.plain import MeanLosses
from temperance.models.linear.rows import LARGE_PROBLEM, MANY_TRAINED, WhitenedRows
from temperance.plans import AnyPlan, FoldPlan, LeaveOneOutPlan, PrefixPlan


def choose(rows: WhitenedRows, plan: AnyPlan, noise: NoiseModel, risk: Risk) -> RiskCurve | None:
    """Return the curve of a plan by a shortcut; None if the plain path is as fast."""
    source = moment_source(rows, plan)
    return None if source is None else summed_curve(source, noise, risk, rows, plan)


def moment_source(rows: WhitenedRows, plan: AnyPlan) -> SummedSource | None:
    """Return the fastest exact source of the moments of a plan; None if that is the plain path."""
    if isinstance(plan, LeaveOneOutPlan):
        return LeaveOneOutMoments(rows, plan)
    if isinstance(plan, PrefixPlan):
        return PrefixMoments(rows, plan)
    if isinstance(plan, FoldPlan) and rows.inputs.size > LARGE_PROBLEM:
        return FoldPlanMoments(rows, plan)
    pairs = plan.n_folds - plan.start if isinstance(plan, FoldPlan) else len(plan.train)
    if pairs * rows.inputs.size > MANY_TRAINED:
        return PairMoments(rows, plan)
    return None


def summed_curve(
    source: SummedSource, noise: NoiseModel, risk: Risk, rows: WhitenedRows, plan: AnyPlan
) -> RiskCurve:
    """Return the curve of a source; Gibbs risks are computed from sums over rows.

    With a known noise variance the sums of leave-one-out and SafeBayes are interpolated between few
    betas, to 1e-11 of the risk (:mod:`temperance.models.linear.fast.interpolant`).
    """
    losses = SummedLosses(source, noise, risk, len(rows))
    each_row = noise.pairwise and isinstance(plan, LeaveOneOutPlan | PrefixPlan)
    costly = rows.inputs.size > LARGE_PROBLEM and (
        risk == "predictive" or each_row or source.lowest_interpolated > LARGEST_START
    )
    floor = None
    bounded = (
        risk == "gibbs" and not noise.pairwise and 0 < source.lowest_interpolated <= LARGEST_START
    )
    if bounded and isinstance(source, HasFloor):
        floor = partial(_floor, source, noise)
    scale = partial(changing_betas, source, noise)
    return RiskCurve(
        losses.evaluate, losses.rows, "closed form", costly=costly, floor=floor, scale=scale
    )


@dataclass(frozen=True, eq=False)
class SummedLosses(MeanLosses):
    """Losses of n rows; their Gibbs risk is computed from sums over tested rows."""

    source: SummedSource

    def evaluate(self, beta: Array) -> tuple[Array, Array]:
        """Return the risk at betas (g,) and its derivative."""
        if self.risk != "gibbs":
            return super().evaluate(beta)
        refuse_betas(beta)
        return mean_gibbs(beta, self.source.sums(beta, self.noise.pairwise), self.noise)


def _floor(source: HasFloor, noise: NoiseModel, beta: Array) -> tuple[Array, Array]:
    """Return a cheap lower bound of the risk and its derivative."""
    refuse_betas(beta)
    return mean_gibbs(beta, source.floor(beta), noise)
