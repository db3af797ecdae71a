r"""Sums over rows at many points of several training sets, and losses under their posteriors.

With P_i the products z_j z_k of a row, j <= k, all Hessians of a batch of rows are one product of
matrices,

    H  =  [w_i l''(u_i)] [P_i],    (points, rows) times (rows, k (k + 1) / 2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, Data, Labels, Risk, batches
from temperance.losses.base import Loss, Predictor
from temperance.models import GibbsLinear, LaplaceLogistic
from temperance.streaming.accumulate import refuse_columns
from temperance.streaming.partitions import Folded
from temperance.streaming.sample import BATCH, Batch

FEW_ROWS = 128

LaplaceModel = LaplaceLogistic | GibbsLinear


class ModeSums(NamedTuple):
    """Sums over t sets of rows, at b points each; ``partition`` is the first that they are of."""

    partition: int
    rows: Array  # (t,): how many
    weight: Array  # (t,)
    labels: Array  # (t,): sum of the responses
    value: Array  # (t, b)
    gradient: Array  # (t, b, k)
    packed: Array  # (t, b, k (k + 1) / 2): upper triangles of the Hessians

    @classmethod
    def zero(cls, partition: int, t: int, b: int, k: int) -> Self:
        """Return the sums over no rows."""
        points: list[tuple[int, ...]] = [(t, b), (t, b, k), (t, b, k * (k + 1) // 2)]
        return cls(partition, *(np.zeros(shape) for shape in [(t,)] * 3 + points))

    @property
    def hessian(self) -> Array:
        """The Hessians (t, b, k, k)."""
        t, b, k = self.gradient.shape
        i, j = np.triu_indices(k)
        hessian = np.empty((t, b, k, k))
        hessian[..., i, j] = hessian[..., j, i] = self.packed
        return hessian

    @property
    def together(self) -> Self:
        """The sums over the rows of all sets, as one set."""
        return type(self)(self.partition, *(part.sum(axis=0, keepdims=True) for part in self[1:]))

    @property
    def others(self) -> Self:
        """The sums over the rows outside of each set."""
        return type(self)(self.partition, *(part.sum(axis=0) - part for part in self[1:]))

    def repeated(self, times: int) -> Self:
        """Return the sums at one point as those at several that are the same."""
        return type(self)(*self[:4], *(np.repeat(part, times, axis=1) for part in self[4:]))

    def merge(self, *others: Self) -> Self:
        """Return the sums over the rows of all; those without rows do not matter."""
        parts = [each for each in (self, *others) if each.weight.any()] or [self]
        for each in parts:
            refuse_columns(each.gradient.shape[-1], parts[0].gradient.shape[-1], each.partition)
        sums = zip(*(each[1:] for each in parts), strict=True)
        return type(self)(parts[0].partition, *(np.sum(part, axis=0) for part in sums))


@dataclass(frozen=True, eq=False)
class Modes:
    """What is known of the rows of a partition: their folds and their whitened coordinates."""

    model: LaplaceModel
    folded: Folded

    @property
    def loss(self) -> Loss:
        """The loss of a linear predictor."""
        return self.model.row_loss

    def by_fold(self, data: Data, fold: Labels, elements: int) -> Iterator[tuple[int, Rows]]:
        """Yield batches of the rows of each fold of a partition, with so many other elements."""
        columns = data.X.shape[1]
        each = columns * (columns + 1) // 2 + elements
        for number in range(self.folded.n_folds):
            (rows,) = np.nonzero(fold == number)
            for part in batches(len(rows), each, max(BATCH, FEW_ROWS * each)):
                some = rows[part]
                Z, offset, _ = self.model.whitened(data.X[some])
                yield number, Rows(some, Z, offset, data.y[some], data.weights[some])


class Rows(NamedTuple):
    """Places of rows, whitened (n, k), their predictors at 0, responses and weights."""

    places: NDArray[np.intp]
    Z: Array
    offset: Array
    y: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class SumAtPoints(Modes):
    """The sums over the rows of each fold at the same points theta (1, b, k), by default at 0.

    With points for each fold, (folds, b, k), the sums over the rows outside of it.
    """

    theta: Array | None = None

    def __call__(self, partition: int, block: Any) -> ModeSums:
        """Return the sums of a partition (X, y) or (X, y, weights)."""
        folds = np.arange(self.folded.n_folds)
        theta = np.zeros((1, 1, 1)) if self.theta is None else self.theta
        sums = ModeSums.zero(partition, len(folds), *theta.shape[1:])
        for data, fold in self.folded.rows(partition, block):
            if self.theta is None:
                theta = np.zeros((1, 1, self._columns(partition, data)))
                sums = ModeSums.zero(partition, len(folds), *theta.shape[1:])
            together = len(theta) == 1
            for number, rows in self.by_fold(data, fold, 6 * theta[..., 0].size):
                sets = folds[number : number + 1] if together else np.delete(folds, number)
                _add(sums, sets, theta if together else theta[sets], self.loss, rows)
        return sums

    def _columns(self, partition: int, data: Data) -> int:
        """Return the number of coefficients; refuse rows that do not fit the model."""
        try:
            self.loss.check(data.y)
            return self.model.whitened(data.X)[0].shape[1]
        except ValueError as error:
            raise ValueError(f"partition {partition}: {error}") from None


def _add(sums: ModeSums, sets: NDArray[np.intp], theta: Array, loss: Loss, rows: Rows) -> None:
    """Add the sums of some rows at points theta (s, b, k) to those of s sets."""
    s, b, k = theta.shape
    u = rows.offset + theta.reshape(-1, k) @ rows.Z.T
    value, first, second = loss.to_second_order(u, rows.y)
    sums.rows[sets] += len(rows.y)
    sums.weight[sets] += rows.weights.sum()
    sums.labels[sets] += rows.weights @ rows.y
    sums.value[sets] += (value @ rows.weights).reshape(s, b)
    sums.gradient[sets] += ((first * rows.weights) @ rows.Z).reshape(s, b, k)
    sums.packed[sets] += ((second * rows.weights) @ products(rows.Z).T).reshape(s, b, -1)


@dataclass(frozen=True, eq=False)
class LossesAtModes(Modes):
    """Losses of the rows of each fold under the posterior of the others."""

    betas: Array
    risk: Risk
    means: Array  # (folds, g, k)
    roots: Array  # (folds, g, k, k): of the covariances

    def batches(self, data: Data, fold: Labels) -> Iterator[Batch]:
        """Yield the losses of batches of rows, fold by fold; none is set aside."""
        none, k = np.zeros((1, 1)), self.means.shape[2]
        for number, rows in self.by_fold(data, fold, (k + 8) * len(self.betas)):
            mean = rows.offset + self.means[number] @ rows.Z.T
            variance = ((rows.Z @ self.roots[number]) ** 2).sum(axis=2)
            losses = self.loss.risk(Predictor(mean, variance, none, none), rows.y, self.risk)[0]
            yield rows.places, losses.T, np.zeros(len(rows.y), dtype=bool)


def products(Z: Array) -> Array:
    """Return the products z_j z_k, j <= k, of each row: (k (k + 1) / 2, n)."""
    n, k = Z.shape
    columns, found, begin = np.ascontiguousarray(Z.T), np.empty((k * (k + 1) // 2, n)), 0
    for j in range(k):
        np.multiply(columns[j:], columns[j], out=found[begin : begin + k - j])
        begin += k - j
    return found
