r"""Risk curve of a Gaussian approximation: moments of the predictor, losses by quadrature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from temperance.curves import RiskCurve, curve_of_losses
from temperance.models.glm.continuation import Path
from temperance.models.glm.expected_loss import Forces
from temperance.models.glm.shared_rows import shared_rows
from temperance.models.glm.system import PortableSystem, Predictor, Rows, System
from temperance.quadrature import log_expected_sigmoid, softplus_expectations
from temperance.types import Array, Plan, Risk, batches

CACHED = 2**17  # elements of a temporary that fit into the cache
FEW_PAIRS = 16  # enough to hide the cost of Python's steps


QUADRATURE = "Gaussian approximation, losses by quadrature"


class Approximation(Protocol):
    """What a model says about its approximation."""

    @property
    def diagonal(self) -> bool:
        """Whether the covariance is diagonal in the coordinates of the rows."""
        ...

    def forces(self, mean: Array, variance: Array, rough: bool = False) -> Forces:
        """Return what rows do to the approximation, by its equations, maybe roughly."""
        ...

    def coordinates(self, whitened: Array, weights: Array) -> tuple[Array, Array | None]:
        """Return whitened rows along axes of their span, where the approximations allow it."""
        ...

    def system(self, rows: Rows, rough: bool = False) -> System:
        """Return the equations of the approximation, whose losses may be rough."""
        ...

    def largest_matrix(self, n: int, k: int) -> int:
        """Return the number of elements of the largest temporary of one pair."""
        ...


@dataclass(frozen=True, eq=False)
class Part:
    """Pairs that are followed together, and the rows that they test."""

    pairs: slice
    path: Path
    rows: Rows  # all rows, in the coordinates of the path
    tested: NDArray[np.intp] | slice  # (pairs, widest), or one row or slice when all test the same

    def losses(self, beta: float, risk: Risk, rough: bool) -> tuple[Array, Array]:
        """Return the losses of the tested rows and their slopes, (pairs, widest)."""
        found = self.path.at(beta, rough)
        law = self.path.system.law(found.x, found.tangent, found.beta)
        which = (None, self.tested) if isinstance(self.tested, slice) else self.tested
        Z, offset, y = (part[which] for part in (self.rows.Z, self.rows.offset, self.rows.y))
        return predictor_loss(law.predictor(Z, offset), y, risk)


@dataclass(frozen=True, eq=False)
class PathLosses:
    """Losses of the tested rows, (pairs, widest), under approximations followed in parts."""

    parts: list[Part]
    shape: tuple[int, ...]
    risk: Risk

    def __call__(self, beta: float, rough: bool = False) -> tuple[Array, Array]:
        """Return the losses and their slopes, (pairs, widest)."""
        value, slope = np.empty((2, *self.shape))
        for part in self.parts:
            value[part.pairs], slope[part.pairs] = part.losses(beta, self.risk, rough)
        return value, slope


def logistic_risk_curve(
    rows: Rows, plan: Plan, risk: Risk, approximation: Approximation, method: str = QUADRATURE
) -> RiskCurve:
    """Curve of whitened rows; their weights are those of the plan's likelihoods."""
    index, _ = plan.tested_rows()
    losses = PathLosses(parts_of_pairs(rows, index, approximation), index.shape, risk)
    return curve_of_losses(plan, losses, method, index, sketch=partial(losses, rough=True))


def parts_of_pairs(rows: Rows, index: NDArray[np.intp], approximation: Approximation) -> list[Part]:
    """Split the pairs of weights into parts; each pair tests the rows in its row of ``index``."""
    trained = rows.weights > 0
    parts: list[Part] = []
    for pairs in _parts(trained, approximation.largest_matrix(*rows.Z.shape)):
        used = np.any(trained[pairs], axis=0)
        parts.append(_part(rows, pairs, used, index[pairs], approximation, parts))
    return parts


def _parts(trained: NDArray[np.bool_], elements_each: int) -> list[slice]:
    """Split into as few parts as the cache allows, or smaller ones where that spares rows."""

    def work(parts: list[slice]) -> int:
        return sum(len(trained[part]) * int(trained[part].any(axis=0).sum()) for part in parts)

    most = list(batches(len(trained), elements_each, budget=CACHED))
    few = list(batches(len(trained), 1, budget=FEW_PAIRS))
    return few if len(few) > len(most) and work(few) < 0.75 * work(most) else most


def _part(
    rows: Rows,
    pairs: slice,
    trained: NDArray[np.bool_],
    index: NDArray[np.intp],
    approximation: Approximation,
    others: list[Part],
) -> Part:
    weights = rows.weights[pairs]
    if len(index) > 1 and np.all(index == index[0]):
        index = index[:1]
    if approximation.diagonal and rows.Z.shape[0] < rows.Z.shape[1]:
        # Columns are many, and held once for all parts.
        system = approximation.system(shared_rows(rows, slice(None), weights))
        return Part(pairs, Path(system, among=len(rows.weights)), rows, index)
    used = trained.copy()
    used[index] = True
    if used.sum() < rows.Z.shape[1]:
        reduced, _ = approximation.coordinates(rows.Z[used], weights.max(axis=0)[used])
        coordinates = np.zeros((len(used), reduced.shape[1]))
        coordinates[used] = reduced
        rows = replace(rows, Z=coordinates)
    system = approximation.system(
        Rows(rows.Z[trained], rows.offset[trained], rows.y[trained], weights[:, trained])
    )
    guides = (part.path for part in others if alike(system, part.path.system))
    return Part(pairs, Path(system, next(guides, None)), rows, index)


def alike(one: System, other: System) -> bool:
    """Tell whether solutions are close: each of a pair alone with many rows, in all coordinates."""
    k = one.rows.Z.shape[1]
    return all(
        isinstance(system, PortableSystem)
        and len(system.rows.weights) == 1
        and len(Z) >= k == Z.shape[1]
        for system in (one, other)
        for Z in [system.rows.Z]
    )


def predictor_loss(
    predictor: Predictor, y: Array, risk: Risk, rough: bool = False
) -> tuple[Array, Array]:
    r"""Loss of each row, E softplus(s f) or -log E sigmoid(-s f), s = 1 - 2 y, and its slope."""
    sign = 1 - 2 * y
    if risk == "gibbs":
        loss, first, second = softplus_expectations(
            sign * predictor.mean, predictor.variance, 2, rough=rough
        )
        return loss, sign * first * predictor.d_mean + 0.5 * second * predictor.d_variance
    log, d_mean, d_variance = log_expected_sigmoid(
        -sign * predictor.mean, predictor.variance, derivatives=True
    )
    return -log, sign * d_mean * predictor.d_mean - d_variance * predictor.d_variance
