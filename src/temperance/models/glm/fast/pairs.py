r"""Pairs of a plan followed along beta, several at a time: each solution starts from others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from temperance.curves import RiskCurve, curve_of_losses
from temperance.models.glm.fast.path import Path
from temperance.models.glm.fast.shared_rows import shared_rows
from temperance.models.glm.loss import TestedLoss
from temperance.models.glm.mean_and_curvature import few_rows
from temperance.models.glm.newton import Fit
from temperance.models.glm.plain import method_of
from temperance.models.glm.rows import Rows
from temperance.types import AnyPlan, Array, Risk, batches

CACHED = 2**17  # elements of a temporary that fit into the cache


@dataclass(frozen=True, eq=False)
class Part:
    """Pairs that are followed together, and the rows that they test."""

    path: Path
    rows: Rows  # all rows, in the coordinates of the path
    tested: NDArray[np.intp] | slice  # (pairs, widest), or one row or slice when all test the same
    loss: TestedLoss

    def losses(self, beta: float, risk: Risk) -> tuple[Array, Array]:
        """Return the losses of the tested rows and their slopes, (pairs, widest)."""
        found = self.path.at(beta)
        law = self.path.system.law(found.x, found.tangent, found.beta)
        which = (None, self.tested) if isinstance(self.tested, slice) else self.tested
        Z, offset, y = (part[which] for part in (self.rows.Z, self.rows.offset, self.rows.y))
        return self.loss.risk(law.predictor(Z, offset), y, risk)


@dataclass(frozen=True, eq=False)
class PartLosses:
    """Losses of the tested rows, (pairs, widest), under approximations followed in parts."""

    parts: list[Part]
    shape: tuple[int, ...]
    risk: Risk

    def __call__(self, beta: float) -> tuple[Array, Array]:
        """Return the losses and their slopes, (pairs, widest)."""
        value, slope = np.empty((2, *self.shape))
        begin = 0
        for part in self.parts:
            end = begin + len(part.path.system.rows.weights)
            value[begin:end], slope[begin:end] = part.losses(beta, self.risk)
            begin = end
        return value, slope


def pairs_risk_curve(rows: Rows, plan: AnyPlan, risk: Risk, approximation: Fit) -> RiskCurve:
    """Curve of whitened rows under the weights of the plan's pairs."""
    pairs = plan.pairs()
    index, _ = pairs.tested_rows()
    parts = parts_of_pairs(rows.weighted(pairs.likelihood_weights), index, approximation)
    losses = PartLosses(parts, index.shape, risk)
    return curve_of_losses(pairs, losses, method_of(plan, approximation), index)


def parts_of_pairs(rows: Rows, index: NDArray[np.intp], approximation: Fit) -> list[Part]:
    """Split the pairs of weights into parts; each pair tests the rows in its row of ``index``."""
    size = largest_matrix(*rows.Z.shape)
    parts = batches(len(rows.weights), size, budget=CACHED)
    return [_part(rows, pairs, index[pairs], approximation) for pairs in parts]


def largest_matrix(n: int, k: int) -> int:
    """Return the elements of the largest temporary of a pair: of the rows, or of a Jacobian."""
    return n * max(n, k) if few_rows(n, k) else n * k + 4 * k * k


def _part(rows: Rows, pairs: slice, index: NDArray[np.intp], approximation: Fit) -> Part:
    weights = rows.weights[pairs]
    trained = np.any(weights > 0, axis=0)
    if len(index) > 1 and np.all(index == index[0]):
        index = index[:1]
    if rows.Z.shape[0] < rows.Z.shape[1]:
        # Columns are many, and held once for all parts.
        system = approximation.system(shared_rows(rows, slice(None), weights))
        return Part(Path(system, len(rows.weights)), rows, index, approximation.loss)
    used = trained.copy()
    used[index] = True
    if used.sum() < rows.Z.shape[1]:
        reduced, _ = approximation.coordinates(rows.Z[used], weights.max(axis=0)[used])
        coordinates = np.zeros((len(used), reduced.shape[1]))
        coordinates[used] = reduced
        rows = replace(rows, Z=coordinates)
    system = approximation.system(rows.subset(trained, weights[:, trained]))
    return Part(Path(system, 1), rows, index, approximation.loss)
