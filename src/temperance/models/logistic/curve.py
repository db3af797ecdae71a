r"""Risk curve of a Gaussian approximation: moments of the predictor, losses by quadrature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from temperance.curves import RiskCurve, curve_of_losses
from temperance.models.logistic.continuation import Path
from temperance.models.logistic.system import Predictor, Rows, System
from temperance.quadrature import log_expected_sigmoid, softplus_expectations
from temperance.types import Array, Plan, Risk, batches

FEW_PAIRS = 16  # enough to hide the cost of Python's steps


class Approximation(Protocol):
    """What a model says about its approximation."""

    def coordinates(self, whitened: Array) -> tuple[Array, Array | None]:
        """Reduce whitened rows to their span, where the family of approximations allows it."""
        ...

    def system(self, rows: Rows) -> System:
        """Return the equations of the approximation."""
        ...

    def largest_matrix(self, n: int, k: int) -> int:
        """Return the number of elements of the largest temporary of one pair."""
        ...


@dataclass(frozen=True, eq=False)
class Part:
    """Pairs that are followed together, on the rows that they use."""

    pairs: slice
    path: Path
    index: NDArray[np.intp]
    y: Array


@dataclass(frozen=True, eq=False)
class PathLosses:
    """Losses of the tested rows, (pairs, widest), under approximations followed in parts."""

    parts: list[Part]
    shape: tuple[int, ...]
    risk: Risk

    def __call__(self, beta: float) -> tuple[Array, Array]:
        """Return the losses and their slopes, (pairs, widest)."""
        value, slope = np.empty((2, *self.shape))
        for part in self.parts:
            found = part.path.at(beta)
            predictor = part.path.system.predictor(found.x, found.tangent, found.beta)
            value[part.pairs], slope[part.pairs] = tested_losses(
                predictor, part.index, part.y, self.risk
            )
        return value, slope


def logistic_risk_curve(
    rows: Rows, plan: Plan, risk: Risk, approximation: Approximation
) -> RiskCurve:
    """Curve of whitened rows; their weights are those of the plan's likelihoods."""
    index, _ = plan.tested()
    used = (rows.weights > 0) | (plan.test > 0)
    parts = [
        _part(rows, pairs, index[pairs], np.any(used[pairs], axis=0), approximation)
        for pairs in _parts(used, approximation.largest_matrix(*rows.Z.shape))
    ]
    losses = PathLosses(parts, index.shape, risk)
    return curve_of_losses(plan, losses, "Gaussian approximation, losses by quadrature", index)


def _parts(used: NDArray[np.bool_], elements_each: int) -> list[slice]:
    """Split into as few parts as memory allows, or smaller ones where that spares rows."""

    def work(parts: list[slice]) -> int:
        return sum(len(used[part]) * int(used[part].any(axis=0).sum()) for part in parts)

    most = list(batches(len(used), elements_each))
    few = list(batches(len(used), 1, budget=FEW_PAIRS))
    return few if len(few) > len(most) and work(few) < 0.75 * work(most) else most


def _part(
    rows: Rows,
    pairs: slice,
    index: NDArray[np.intp],
    used: NDArray[np.bool_],
    approximation: Approximation,
) -> Part:
    coordinates, _ = approximation.coordinates(rows.Z[used])
    kept = Rows(coordinates, rows.offset[used], rows.y[used], rows.weights[pairs][:, used])
    # Rows that pad the index have weight 0; any row will do for them.
    place = np.maximum(np.cumsum(used) - 1, 0)
    return Part(pairs, Path(approximation.system(kept)), place[index], kept.y)


def tested_losses(
    predictor: Predictor, index: NDArray[np.intp], y: Array, risk: Risk
) -> tuple[Array, Array]:
    """Losses of the rows ``index`` (pairs, widest) and their slopes in beta."""
    tested = Predictor(*(np.take_along_axis(part, index, axis=1) for part in predictor))
    return predictor_loss(tested, y[index], risk)


def predictor_loss(predictor: Predictor, y: Array, risk: Risk) -> tuple[Array, Array]:
    r"""Loss of each row, E softplus(f) - y mu or -log E sigmoid(+-f), and its slope in beta."""
    if risk == "gibbs":
        loss, first, second = softplus_expectations(predictor.mean, predictor.variance, 2)
        value = loss - y * predictor.mean
        slope = (first - y) * predictor.d_mean + 0.5 * second * predictor.d_variance
        return value, slope
    sign = 2 * y - 1
    log, d_mean, d_variance = log_expected_sigmoid(
        sign * predictor.mean, predictor.variance, derivatives=True
    )
    return -log, -(sign * d_mean * predictor.d_mean + d_variance * predictor.d_variance)
