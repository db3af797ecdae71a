r"""Linear models on partitions: from second moments of folds, or with a second pass over the rows.

A few rows with the second moments of a fold stand for its rows (:meth:`FoldMoments.as_data`).  They
have the same posteriors and, of each fold in sum, the same Gibbs losses, so that one pass gives the
Gibbs risk of folds; its errors are those between folds, which are the independent units.  All else
needs the losses of single rows, from the decompositions that the first pass gave.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance import plans
from temperance.calibration import Calibration
from temperance.checks import refuse_overflow
from temperance.data import Array, Data, Labels, Risk, batches
from temperance.linear import engine
from temperance.linear.engine import (
    Fits,
    LeftOut,
    LinearRows,
    Points,
    Tested,
    decompose_sets,
    every_scale,
    losses_at,
    tested_beside,
)
from temperance.models import GaussianLinear, HierarchicalLinear, NormalInverseGammaLinear
from temperance.strategies import KFold, LeaveOneOut, Naive, SampleSplitting, Stacking
from temperance.streaming.accumulate import FoldMoments, moments_of, refuse_empty
from temperance.streaming.partitions import Folded, Partitions
from temperance.streaming.sample import (
    BATCH,
    STACKED,
    Batch,
    Keys,
    Sample,
    SecondPass,
    StreamedCalibration,
    betas_for,
    concluded,
    first_pass,
    joined,
    keys_of,
)

Linear = GaussianLinear | NormalInverseGammaLinear | HierarchicalLinear
FINE, LOWEST = 8, 1e-5  # betas in a decade for a minimum, and the least of them
METHOD = "closed form, by two passes over the rows"


def folds_of(strategy: Any) -> int | None:
    """Return the number of folds of a strategy whose Gibbs risk takes one pass; None for others."""
    if isinstance(strategy, KFold) and strategy.duplicates != "together":
        return strategy.n_folds
    if isinstance(strategy, SampleSplitting) and strategy.shuffle and strategy.repeats == 1:
        return 2
    return 1 if isinstance(strategy, Naive) else None  # Bayes is a subclass of Naive


def source_of(strategy: Any) -> Any:
    """Return how a strategy holds rows out: itself, or the source of a stack."""
    if not isinstance(strategy, Stacking):
        return strategy
    return LeaveOneOut() if strategy.source is None else strategy.source


def from_moments(
    model: Linear, moments: FoldMoments, strategy: Any, bounds: tuple[float, float]
) -> Calibration:
    """Return the choice by the Gibbs risk that second moments of folds determine."""
    data, fold = _few_rows(model, moments, strategy)
    with refuse_overflow(data.X, data.y):
        table = model.held_out(data, _plan(strategy, data, fold), "gibbs", bounds)
        table = replace(table, groups=fold.astype(float))
        return concluded(StreamedCalibration, model, data, strategy, bounds, table)


def calibrate_in_passes(
    model: Linear,
    partitions: Partitions,
    folded: Folded,
    strategy: Any,
    bounds: tuple[float, float],
    risk: Risk,
) -> Calibration:
    """Return the choice by the losses of single rows, in two passes or three."""
    moments, largest = first_pass(partitions, folded, folded)
    folded, source = replace(folded, columns=moments.columns), source_of(strategy)
    data, fold = _few_rows(model, moments, source)
    with refuse_overflow(data.X, data.y):
        plan = _plan(source, data, fold)
        few = model.held_out(data, plan, risk, bounds)
        finer = FINE, min(LOWEST, float(few.betas[0]))
        betas = betas_for(bounds, *(STACKED if isinstance(strategy, Stacking) else finer))
        losses = RowLosses.of(model, data, source, plan, risk, betas, int(moments.count.sum()))
        sample = partitions.total(SecondPass(losses, folded, largest))
        of_aside: Array = np.empty((len(betas), 0))
        if len(sample.aside):
            of_aside = losses.refitted(sample, partitions.total(Without(sample.left, folded)))
        table = sample.table(betas, of_aside, risk, few.votes, METHOD)
        return concluded(StreamedCalibration, model, data, strategy, bounds, table)


def _plan(strategy: Any, data: Data, fold: NDArray[np.intp]) -> plans.AnyPlan:
    """Return the plan of a strategy for a few rows with given folds."""
    if isinstance(strategy, LeaveOneOut):
        return plans.LeaveOneOut(data.weights)
    if isinstance(strategy, Naive):
        return strategy.plan(data, np.random.default_rng(0))
    one_way = isinstance(strategy, SampleSplitting) and not strategy.both_directions
    n_folds = folds_of(strategy) or 1
    return plans.Folds(data.weights, fold, n_folds, strategy.transfer, start=int(one_way))


def _has_level(model: Linear) -> bool:
    return isinstance(model, HierarchicalLinear) and model.intercept


def _few_rows(model: Linear, moments: FoldMoments, strategy: Any) -> tuple[Data, NDArray[np.intp]]:
    """Return a few rows that stand for all, and their folds; refuse folds without rows."""
    refuse_empty(moments.count, moments.weight.sum(), strategy)
    data, fold = moments.as_data(_has_level(model))
    model.check(data)
    return data, fold


@dataclass(frozen=True, eq=False)
class RowLosses:
    """Losses of single rows: held out with their folds, or left out one at a time."""

    model: Linear
    basis: Array | None  # of the span of all rows
    fits: list[Fits]  # one for each training set
    start: int  # the fold that the first of them tests
    source: Any
    score: Risk
    betas: Array  # of the table
    at: Array  # of the training sets
    points: Points  # the latter with scales
    own: float | None = None  # weight that every row must have

    @classmethod
    def of(
        cls,
        model: Linear,
        data: Data,
        source: Any,
        plan: plans.AnyPlan,
        score: Risk,
        betas: Array,
        count: int,
    ) -> RowLosses:
        """Return the losses, from a few rows that stand for ``count``."""
        rows = model.rows(data)
        if isinstance(plan, plans.LeaveOneOut):
            alpha = source.transfer == "alpha"
            at, own = (betas / (1 - 1 / count), data.size / count) if alpha else (betas, None)
            every = LeftOut(rows, data.weights, data.weights, score)
            fits, (points, _) = [every.decomposed[0]], every.points(at, count)
            return cls(model, rows.basis, fits, 0, source, score, betas, at, points, own)
        weights = plan.pairs().likelihood_weights
        sets = decompose_sets(rows, weights, engine.moments_of(rows, plan))
        fits = [Fits(*(part[p : p + 1] for part in sets)) for p in range(len(weights))]
        start = plan.start if isinstance(plan, plans.Folds) else 0
        points = every_scale(rows, betas)
        return cls(model, rows.basis, fits, start, source, score, betas, betas, points)

    def batches(self, data: Data, fold: Labels) -> Iterator[Batch]:
        """Yield the losses of batches of tested rows."""
        each = data.X.shape[1] + 8 * len(self.points.beta)
        for number, fits in enumerate(self.fits, self.start):
            (places,) = np.nonzero(fold == number)
            for part in batches(len(places), each, BATCH):
                some = places[part]
                weights = data.weights[some]
                rows = self._in_frame(self.model.rows(Data(data.X[some], data.y[some], weights)))
                tested = self._tested(rows, fits, weights)
                losses, cancelled = losses_at(rows, fits, tested, self.score, self.points)
                yield some, losses[0].T, cancelled[0]

    def _tested(self, rows: LinearRows, fits: Fits, weights: Array) -> Tested:
        if isinstance(self.source, LeaveOneOut):
            return tested_beside(rows, fits, weights, self._deleted(weights))
        inputs, response = rows.inputs, rows.response
        if rows.level:
            inputs, response = inputs - fits.centre[0], response - fits.mean[0]
        return Tested((inputs @ fits.directions[0])[None], response[None])

    def _in_frame(self, rows: LinearRows) -> LinearRows:
        """Return rows in the coordinates of all, which few rows do not have."""
        inputs = rows.inputs if rows.basis is None else rows.inputs @ rows.basis.T
        return replace(rows, inputs=inputs if self.basis is None else inputs @ self.basis)

    def _deleted(self, weights: Array) -> Array:
        """Return the weights that are left out at once."""
        if self.own is not None and np.any(np.abs(weights - self.own) > 1e-6 * self.own):
            raise ValueError(
                "weights must be equal for LeaveOneOut(transfer='alpha') on partitions, got from "
                f"{weights.min():g} to {weights.max():g}"
            )
        if self.source.duplicates == "apart":
            return weights / np.clip(np.ceil(weights), 1, plans.PIECES_PER_ROW)
        return weights

    def refitted(self, sample: Sample, rest: FoldMoments) -> Array:
        """Return the losses (g, m) of rows set aside, each without itself, given all others."""
        data = aside = sample.aside
        if rest.count.any():
            data = joined(rest.as_data(_has_level(self.model))[0], aside)
        places, deleted = np.arange(len(data))[-len(aside) :], self._deleted(aside.weights)
        rows = self.model.rows(data)
        return LeftOut(rows, data.weights, deleted, self.score, places)(self.at)


@dataclass(frozen=True, eq=False)
class Without:
    """The moments of all rows but some, which are known by their hashes."""

    left: Keys
    folded: Folded

    def __call__(self, partition: int, block: Any) -> FoldMoments:
        """Return the moments of a partition (X, y) or (X, y, weights)."""
        for data, fold in self.folded.rows(partition, block):
            kept = ~np.isin(keys_of(data, fold), self.left)
            others = Data(data.X[kept], data.y[kept], data.weights[kept])
            return moments_of(others, np.zeros(len(others), dtype=np.intp), 1, partition)
        return FoldMoments(1, 1, partition)
