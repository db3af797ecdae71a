r"""Risk curve of a Gaussian approximation: moments of the predictor, losses by quadrature."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from temperance.curves import RiskCurve, curve_of_losses
from temperance.models.logistic.continuation import Path
from temperance.models.logistic.expected_loss import Forces
from temperance.models.logistic.system import PortableSystem, Predictor, Rows, System
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
    Z: Array  # (pairs, widest, k), or (1, widest, k) when all test the same
    offset: Array
    y: Array

    def losses(self, beta: float, risk: Risk, rough: bool) -> tuple[Array, Array]:
        """Return the losses of the tested rows and their slopes, (pairs, widest)."""
        found = self.path.at(beta, rough)
        law = self.path.system.law(found.x, found.tangent, found.beta)
        return predictor_loss(law.predictor(self.Z, self.offset), self.y, risk)


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
    index, _ = plan.tested()
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
    used = trained.copy()
    used[index] = True
    coordinates = rows.Z
    if used.sum() < coordinates.shape[1]:
        weights = rows.weights[pairs].max(axis=0)
        reduced, _ = approximation.coordinates(rows.Z[used], weights[used])
        coordinates = np.zeros((len(used), reduced.shape[1]))
        coordinates[used] = reduced
    system = approximation.system(
        Rows(
            coordinates[trained],
            rows.offset[trained],
            rows.y[trained],
            rows.weights[pairs][:, trained],
        )
    )
    if len(index) > 1 and np.all(index == index[0]):
        index = index[:1]
    guides = (part.path for part in others if alike(system, part.path.system))
    return Part(
        pairs,
        Path(system, next(guides, None)),
        coordinates[index],
        rows.offset[index],
        rows.y[index],
    )


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
    r"""Loss of each row, E softplus(f) - y mu or -log E sigmoid(+-f), and its slope in beta."""
    if risk == "gibbs":
        loss, first, second = softplus_expectations(
            predictor.mean, predictor.variance, 2, rough=rough
        )
        value = loss - y * predictor.mean
        slope = (first - y) * predictor.d_mean + 0.5 * second * predictor.d_variance
        return value, slope
    sign = 2 * y - 1
    log, d_mean, d_variance = log_expected_sigmoid(
        sign * predictor.mean, predictor.variance, derivatives=True
    )
    return -log, -(sign * d_mean * predictor.d_mean + d_variance * predictor.d_variance)
