r"""The plain path: every plan, noise model and risk, as the equations are written.

Rows [Z r] are in units in which the prior is N(0, I) and the noise has unit variance.  Each pair of
a plan trains on rows of weights w, whose eigenbasis gives the posterior of the coefficients at
every beta, mean U x and covariance U diag(s) U'
(:mod:`temperance.models.linear.eigenbasis`).  It predicts a tested row with

    error  e = r - z'U x,    variance  v = z'U diag(s) U'z,

and the risk is the mean of the noise's loss of (e, v) (:mod:`temperance.models.linear.noise`) over
all tested rows, weighted by their test weights.  Faster computations of the same numbers are in
:mod:`temperance.models.linear.fast`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from temperance.curves import RiskCurve
from temperance.data import Array, Risk, batches
from temperance.models.linear.eigenbasis import (
    Eigenbasis,
    Misfits,
    changing_betas,
    joined,
    positive_range,
)
from temperance.models.linear.limits import refuse_betas
from temperance.models.linear.moments import MomentSource, PredictionMoments
from temperance.models.linear.noise import NoiseModel
from temperance.models.linear.rows import WhitenedRows
from temperance.plans import AnyPlan, Plan, PrefixPlan


def plain_curve(rows: WhitenedRows, plan: AnyPlan, noise: NoiseModel, risk: Risk) -> RiskCurve:
    """Return the curve that a plan estimates."""
    if isinstance(plan, PrefixPlan):
        plan = replace(plan, growth=0.0)  # every prefix has a posterior of its own
    source = PlainMoments(rows, plan.pairs())
    losses = MeanLosses(source, noise, risk, len(rows))
    scale = partial(changing_betas, source, noise)
    return RiskCurve(losses.evaluate, losses.rows, "closed form", scale=scale)


@dataclass(frozen=True, eq=False)
class PlainMoments:
    """Error and variance of each tested row's prediction: one decomposition for each pair."""

    rows: WhitenedRows
    plan: Plan

    def moments(self, beta: Array) -> Iterator[PredictionMoments]:
        """Yield the moments of batches of pairs at betas (g,)."""
        tested, weight = self.plan.tested_rows()
        exposure, total = self.plan.likelihood_weights.sum(axis=1), self.plan.test.sum(axis=1)
        elements = (weight.shape[1] + self.rows.width) * max(self.rows.width, len(beta))
        for part in batches(len(tested), elements):
            basis, test = self.bases.take(part), self.rows.whole[tested[part]]
            state = basis.at(beta)
            along = test[..., :-1] @ basis.vectors  # z'U
            yield PredictionMoments(
                error=test[..., -1:] - along @ state.mean,
                variance=along**2 @ state.shrinkage,
                misfit=state.misfit,
                d_error=-along @ state.d_mean,
                d_variance=along**2 @ state.d_shrinkage,
                d_misfit=state.d_misfit,
                exposure=exposure[part],
                weight=weight[part],
                tested=total[part],
                rows=tested[part],
            )

    @cached_property
    def bases(self) -> Eigenbasis:
        """Decomposition of the training rows of each pair."""
        roots, whole = np.sqrt(self.plan.likelihood_weights), self.rows.whole
        parts = batches(len(roots), whole.size)
        return joined([Eigenbasis.of(roots[part, :, None] * whole) for part in parts])

    @property
    def eigenvalues(self) -> tuple[float, float]:
        """Smallest positive and largest eigenvalue of all training sets."""
        return positive_range(self.bases.sigma**2)

    @property
    def misfits(self) -> Misfits:
        """Quantities that determine at which betas the misfits of the training sets change."""
        return Misfits.of(self.bases, self.plan.likelihood_weights.sum(axis=1))


@dataclass(frozen=True, eq=False)
class MeanLosses:
    """Losses of n rows, averaged over the pairs and tested rows of a plan."""

    source: MomentSource
    noise: NoiseModel
    risk: Risk
    n: int

    def evaluate(self, beta: Array) -> tuple[Array, Array]:
        """Return the risk at betas (g,) and its derivative."""
        refuse_betas(beta)
        value, slope, tested = np.zeros(len(beta)), np.zeros(len(beta)), 0.0
        for moments in self.source.moments(beta):
            weight = moments.weight[:, :, None]
            loss, d_loss = self.noise.loss(beta, moments, self.risk)
            value += (weight * loss).sum(axis=(0, 1))
            slope += (weight * d_loss).sum(axis=(0, 1))
            tested += float(moments.tested.sum())
        return value / tested, slope / tested

    def rows(self, beta: float) -> tuple[Array, Array]:
        """Return the loss of each row, averaged over the pairs that test it, and its weight."""
        at = np.array([beta])
        refuse_betas(at)
        total, weight = np.zeros(self.n), np.zeros(self.n)
        for moments in self.source.moments(at):
            loss, _ = self.noise.loss(at, moments, self.risk)
            np.add.at(total, moments.rows, moments.weight * loss[:, :, 0])
            np.add.at(weight, moments.rows, moments.weight)
        return total / np.where(weight > 0, weight, 1.0), weight
