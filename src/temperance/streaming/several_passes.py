r"""Choices that need single rows again: leave-one-out, the reference risk, predictive risks.

The first pass gives second moments, and with them the posteriors of all training sets at every
beta.  The second adds up the losses of all rows at some betas
(:mod:`temperance.streaming.row_losses`), from which the curve follows at all others
(:mod:`temperance.streaming.panels`): the search needs no further pass.  A third one is made only if
rows were set aside, a fourth if losses at beta = 1 hide the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.calibration import BetaWeights, Calibration
from temperance.checks import shown
from temperance.curves import RiskCurve
from temperance.data import Array, Data, Risk
from temperance.models import GaussianLinear, NormalInverseGammaLinear
from temperance.models.linear import limits
from temperance.models.linear.eigenbasis import (
    Eigenbasis,
    Misfits,
    changing_betas,
    positive_range,
)
from temperance.models.linear.noise import InverseGammaVariance, KnownVariance, NoiseModel
from temperance.models.linear.plain import PlainMoments
from temperance.plans import Pairs, Transfer
from temperance.search.log_scale import Ruler, Scale
from temperance.strategies import Average, LeaveOneOut, ReferenceRisk
from temperance.strategies.k_fold import PIECES_PER_ROW
from temperance.strategies.reference.strategy import closest_tolerated
from temperance.strategies.selection import conclude, minimum_of, warn_of_minimum
from temperance.streaming.accumulate import FoldMoments, refuse_no_rows
from temperance.streaming.averages import MixedLosses, averaged, refuse_other_risk, source_of
from temperance.streaming.loss_sums import LossSums, SummedCurve
from temperance.streaming.one_pass import Linear, folds_of, plan_of, refuse_empty_folds
from temperance.streaming.panels import Panels
from temperance.streaming.partitions import FoldStatistic, Partitions
from temperance.streaming.reference import ReferenceStatistics
from temperance.streaming.row_losses import (
    GatherLosses,
    HeldOut,
    LeftOut,
    Other,
    Whitening,
    WithoutAside,
)
from temperance.uncertainty.standard_errors import error_inflation

SEVERAL = "LeaveOneOut, ReferenceRisk or Average, which need several"
METHOD = "closed form, by two passes over the rows"


def in_passes(strategy: Any, risk: Risk) -> bool:
    """Return whether a strategy needs the rows again."""
    if isinstance(strategy, LeaveOneOut | ReferenceRisk | Average):
        return True
    return risk == "predictive" and folds_of(strategy) is not None


def calibrate_in_passes(
    model: Linear,
    partitions: Partitions,
    strategy: Any,
    bounds: tuple[float, float],
    risk: Risk,
    seed: int,
) -> Calibration:
    """Choose beta, or weights of betas, in a few passes over the partitions."""
    if isinstance(strategy, ReferenceRisk):
        strategy = _supported_reference(strategy, risk)
    refuse_other_risk(strategy, risk)
    source = source_of(strategy)
    if not isinstance(source, LeaveOneOut | ReferenceRisk) and folds_of(source) is None:
        raise ValueError(
            f"source must be LeaveOneOut or KFold for Average on partitions, got {shown(source)}"
        )
    moments = partitions.total(FoldStatistic(folds_of(source) or 1, seed))
    refuse_no_rows(moments)
    refuse_empty_folds(moments, source)
    problem = Problem.of(model, moments, partitions, bounds, risk)
    if isinstance(strategy, ReferenceRisk):
        calibration = _by_reference(problem, strategy)
    elif isinstance(source, LeaveOneOut):
        exponent = 1 / (1 - 1 / problem.count) if source.transfer == "alpha" else 1.0
        calibration = problem.concluded(strategy, problem.leave_one_out(exponent))
    else:
        calibration = problem.concluded(strategy, problem.held_out(source, seed))
    warn_of_minimum(calibration)
    return calibration


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, a few rows with the second moments of all, and the partitions themselves."""

    model: Linear
    data: Data
    fold: NDArray[np.intp]
    count: int
    whitening: Whitening
    noise: NoiseModel
    partitions: Partitions
    bounds: tuple[float, float]
    risk: Risk

    @classmethod
    def of(
        cls,
        model: Linear,
        moments: FoldMoments,
        partitions: Partitions,
        bounds: tuple[float, float],
        risk: Risk,
    ) -> Problem:
        """Return the problem; refuse rows that the model cannot be calibrated on."""
        data, fold = moments.as_data()
        model.check(data)
        count = int(moments.count.sum())
        if count <= moments.columns:
            raise ValueError(
                f"X must have more rows than columns for several passes, got {count} rows of "
                f"{moments.columns} columns; use calibrate"
            )
        if not limits.squares_are_safe(data.X):
            raise ValueError(
                "X must have entries whose squares neither overflow nor vanish for several passes, "
                f"got up to {float(np.abs(data.X).max()):.3g}"
            )
        _, _, prior = model._rows(data)
        variance = model.noise_variance if isinstance(model, GaussianLinear) else 1.0
        deviation = float(np.sqrt(variance))
        return cls(
            model,
            data,
            fold,
            count,
            Whitening(prior, deviation),
            noise_of(model),
            partitions,
            bounds,
            risk,
        )

    @property
    def _columns(self) -> int:
        return self.data.X.shape[1]

    @property
    def _top(self) -> float:
        """Largest beta of the curve; Bayes is always among them."""
        return max(self.bounds[1], 1.0)

    def held_out(self, strategy: Any, seed: int) -> NodeLosses:
        """Return the losses of rows held out in folds."""
        plan = plan_of(strategy, self.data, self.fold).pairs()
        rows, _, _ = self.model._rows(self.data)
        source = PlainMoments(rows, plan)
        scale = changing_betas(source, self.noise)
        panels = Panels(Ruler.of_scale((0.0, self._top), scale))
        tested_by = np.full(int(self.fold.max()) + 1, -1)
        for pair, weights in enumerate(plan.test):
            tested_by[self.fold[weights > 0]] = pair
        losses = HeldOut(
            self.whitening,
            self.noise,
            self.risk,
            panels.nodes,
            source.bases,
            plan.likelihood_weights.sum(axis=1),
            tested_by,
            seed,
        )
        return NodeLosses(losses, panels, scale)

    def leave_one_out(self, exponent: float = 1.0, pieces: int = 1) -> NodeLosses:
        """Return the losses of rows that are left out one at a time."""
        basis, size = self.basis, self.data.size
        scale = changing_betas(_AllRows(basis, size, exponent), self.noise)
        panels = Panels(Ruler.of_scale((0.0, self._top), scale))
        losses = LeftOut(
            self.whitening,
            self.noise,
            self.risk,
            panels.nodes,
            basis,
            size,
            exponent,
            pieces,
        )
        return NodeLosses(losses, panels, scale)

    def summed(self, at: NodeLosses, other: Other | None = None) -> tuple[SummedCurve, Array]:
        """Return the curve of losses, and other sums over rows, by one pass or two."""
        sums, others = self._gathered(at.losses, other or Other())
        return SummedCurve(sums, at.panels, at.scale), others

    def _gathered(
        self, losses: HeldOut | LeftOut, other: Other, average: BetaWeights | None = None
    ) -> tuple[LossSums, Array]:
        """Return the sums of losses, or of those under an average, and others over all rows."""
        of = losses if average is None else MixedLosses(losses, average)
        statistic = GatherLosses(of, other, self._columns, _closest_to_bayes(of.beta))
        found = self.partitions.total(statistic)
        deleted = self._deleted(losses, found.aside) if len(found.aside) else None
        if deleted is not None and isinstance(of, MixedLosses):
            deleted = of.mixed(deleted)

        def all_rows(sums: LossSums) -> LossSums:
            if deleted is None:
                return sums
            return sums.merge(LossSums.of(deleted, found.aside.weights, sums.base))

        sums = all_rows(found.sums)
        if (better := sums.better_base) is not None:  # rare: Bayes is worse by powers of ten
            sums = all_rows(self.partitions.total(replace(statistic, base=better)).sums)
        return sums, found.others

    @cached_property
    def basis(self) -> Eigenbasis:
        """The eigenbasis of all rows."""
        rows, _, _ = self.model._rows(self.data)
        return Eigenbasis.of((np.sqrt(self.data.weights)[:, None] * rows.whole)[None])

    def _deleted(self, losses: HeldOut | LeftOut, aside: Data) -> Array:
        """Return the losses of rows set aside, each deleted from the moments of all others."""
        assert isinstance(losses, LeftOut)  # rows held out are never set aside
        rest = self.partitions.total(WithoutAside(losses, self._columns))
        parts = [aside] if not rest.count.any() else [rest.as_data()[0], aside]
        data = Data(
            *(
                np.concatenate([getattr(each, name) for each in parts])
                for name in ("X", "y", "weights")
            )
        )
        count, first = len(aside), len(data) - len(aside)
        test, removed = np.zeros((2, count, len(data)))
        own = (np.arange(count), first + np.arange(count))
        test[own], removed[own] = aside.weights, losses.deleted(aside.weights)
        transfer: Transfer = "beta" if losses.exponent == 1 else "alpha"
        plan = Pairs(data.weights - removed, test, self.data.size, transfer)
        rows, _, _ = self.model._rows(data)
        each = [
            self.noise.loss(losses.beta, moments, self.risk)[0][:, 0]
            for moments in PlainMoments(rows, plan).moments(losses.beta)
        ]
        return np.concatenate(each)

    def concluded(self, strategy: Any, at: NodeLosses) -> Calibration:
        """Return the calibration at the point of the curve that the strategy chooses."""
        summed, _ = self.summed(at)
        curve = summed.curve(METHOD)
        if isinstance(strategy, Average):
            return self._averaged(strategy, at.losses, summed, curve)
        minimum = strategy.locate(curve, self.bounds)
        return conclude(
            self.model,
            self.data,
            summed.tested,
            strategy,
            self.risk,
            self.bounds,
            curve,
            minimum,
        )

    def _averaged(
        self, strategy: Average, losses: HeldOut | LeftOut, summed: SummedCurve, curve: RiskCurve
    ) -> Calibration:
        """Return the average over betas, by one more pass or two."""

        def sums_of(average: BetaWeights) -> LossSums:
            at = replace(losses, beta=np.append(average.betas, 1.0))
            return self._gathered(at, Other(), average)[0]

        model, data, bounds = self.model, self.data, self.bounds
        inflate = partial(error_inflation, model, data)
        found = averaged(strategy, summed, curve, model, data, bounds, sums_of, inflate)
        concluded = conclude(
            model, data, summed.tested, strategy, self.risk, bounds, curve, found.minimum
        )
        return replace(concluded, average=found.average, risk=found.risk, errors=found.errors)


@dataclass(frozen=True, eq=False)
class NodeLosses:
    """Losses at the nodes of panels, and the betas over which their sum changes."""

    losses: HeldOut | LeftOut
    panels: Panels
    scale: Scale


def _closest_to_bayes(beta: Array) -> int:
    return int(np.argmin(np.abs(beta - 1.0)))


@dataclass(frozen=True, eq=False)
class _AllRows:
    """The eigenbasis of all rows, as the source of a scale: those of fewer rows lie within it."""

    basis: Eigenbasis
    size: float
    exponent: float

    @property
    def eigenvalues(self) -> tuple[float, float]:
        return positive_range(self.exponent * self.basis.sigma**2)

    @property
    def misfits(self) -> Misfits:
        scaled = self.basis._replace(
            sigma=self.basis.sigma * self.exponent**0.5,
            projection=self.basis.projection * self.exponent**0.5,
            remainder=self.basis.remainder * self.exponent,
        )
        return Misfits.of(scaled, np.array([self.exponent * self.size]))

    def moments(self, beta: Array) -> Any:
        raise NotImplementedError("the moments of single rows are computed where they lie")


def noise_of(model: Linear) -> NoiseModel:
    """Return the model of the noise variance."""
    if isinstance(model, NormalInverseGammaLinear):
        return InverseGammaVariance(model.a, model.b)
    return KnownVariance()


def _supported_reference(strategy: ReferenceRisk, risk: Risk) -> ReferenceRisk:
    if risk != "gibbs":
        raise ValueError(
            f"risk must be 'gibbs' for ReferenceRisk on partitions, got {risk!r}; LeaveOneOut and "
            "KFold have the predictive risk"
        )
    if strategy.duplicates == "together":
        raise ValueError(
            "duplicates must be 'auto' or 'apart' on partitions, where equal rows are not seen, "
            "got 'together'"
        )
    return replace(strategy, duplicates="apart")


def _by_reference(problem: Problem, strategy: ReferenceRisk) -> Calibration:
    """Return the choice by the reference risk, within what leave-one-out tolerates."""
    statistics = ReferenceStatistics.of(
        problem.model, problem.data, problem.basis, problem.whitening
    )
    summed, others = problem.summed(problem.leave_one_out(1.0, PIECES_PER_ROW), statistics.sums)
    reference, left_out = statistics.curve(others, problem.noise), summed.curve(METHOD)
    choice, bounds, tested = minimum_of(reference, problem.bounds), problem.bounds, summed.tested
    if strategy.veto is None:
        tested = Data(np.ones((1, 1)), np.ones(1), np.ones(1))
    else:
        least = minimum_of(left_out, bounds).beta
        choice = closest_tolerated(choice, left_out, least, summed.weights, bounds, strategy.veto)
    losses = _AroundReference(reference, None if strategy.veto is None else left_out)
    method = f"{reference.method}, reference model with free scales, by two passes over the rows"
    curve = replace(reference, rows=losses.rows, method=method)
    return conclude(problem.model, problem.data, tested, strategy, "gibbs", bounds, curve, choice)


@dataclass(frozen=True, eq=False)
class _AroundReference:
    """Losses with the scatter of leave-one-out around the reference's risk, or the risk alone."""

    reference: RiskCurve
    left_out: RiskCurve | None

    def rows(self, beta: float) -> tuple[Array, Array]:
        if self.left_out is None:
            return np.array([self.reference(beta)]), np.ones(1)
        loss, share = self.left_out.rows(beta)
        return loss - share @ loss / share.sum() + self.reference(beta), share
