r"""Sums over rows at many points of several training sets, and losses under their posteriors.

With P_i the products z_j z_k of a row, j <= k, all Hessians of a batch of rows are one product of
matrices,

    H  =  [w_i l''(u_i)] [P_i],    (points, rows) times (rows, k (k + 1) / 2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, Data, Risk, batches
from temperance.losses.base import Loss, Predictor
from temperance.models import GibbsLinear, LaplaceLogistic
from temperance.streaming.folds import partition_folds
from temperance.streaming.row_losses import BATCH, Batch, checked

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
        columns = [each.gradient.shape[-1] for each in parts]
        for each, found in zip(parts, columns, strict=True):
            if found != columns[0]:
                raise ValueError(
                    f"X must have {columns[0]} columns in every partition, got {found} in "
                    f"partition {each.partition}"
                )
        sums = zip(*(each[1:] for each in parts), strict=True)
        return type(self)(parts[0].partition, *(np.sum(part, axis=0) for part in sums))


@dataclass(frozen=True, eq=False)
class Modes:
    """What is known of the rows of a partition: their folds and their whitened coordinates.

    Of each fold of a partition only one row of ``every`` is taken, with the weight of all.
    """

    model: LaplaceModel
    n_folds: int
    seed: int
    columns: int | None
    every: int = field(default=1, kw_only=True)

    @property
    def loss(self) -> Loss:
        """The loss of a linear predictor."""
        return self.model.row_loss

    def by_fold(self, number: int, data: Data, elements: int) -> Iterator[tuple[int, Rows]]:
        """Yield batches of the rows of each fold of a partition, with so many other elements."""
        fold = partition_folds(self.n_folds, self.seed, number).take(len(data))
        columns = data.X.shape[1]
        each = columns * (columns + 1) // 2 + elements
        for number in range(self.n_folds):
            (rows,) = np.nonzero(fold == number)
            taken = rows[:: self.every]
            factor = data.weights[rows].sum() / data.weights[taken].sum() if len(rows) else 1.0
            for part in batches(len(taken), each, max(BATCH, FEW_ROWS * each)):
                some = taken[part]
                Z, offset, _ = self.model.whitened(data.X[some])
                yield number, Rows(Z, offset, data.y[some], factor * data.weights[some])


class Rows(NamedTuple):
    """Whitened rows (n, k), their predictors at 0, responses and weights."""

    Z: Array
    offset: Array
    y: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class SumByFold(Modes):
    """The sums over the rows of each fold at the same points theta (b, k), by default at 0."""

    theta: Array | None = None

    def __call__(self, partition: int, block: Any) -> ModeSums:
        """Return the sums of a partition (X, y) or (X, y, weights)."""
        sums = ModeSums.zero(partition, self.n_folds, *np.shape(_or_zero(self.theta, 1)))
        for data in checked(partition, block, self.columns):
            if self.theta is None:
                self._refuse(partition, data)
            theta = _or_zero(self.theta, self.model.features(data.X[:1]).shape[1])
            sums = ModeSums.zero(partition, self.n_folds, *theta.shape)
            for fold, rows in self.by_fold(partition, data, 6 * len(theta)):
                _add(sums, np.array([fold]), theta[None], self.loss, rows)
        return sums

    def _refuse(self, partition: int, data: Data) -> None:
        try:
            self.loss.check(data.y)
            self.model.whitened(data.X)
        except ValueError as error:
            raise ValueError(f"partition {partition}: {error}") from None


@dataclass(frozen=True, eq=False)
class SumOutsideFolds(Modes):
    """The sums over the rows outside of each fold, at points theta (folds, b, k) of its own."""

    theta: Array

    def __call__(self, partition: int, block: Any) -> ModeSums:
        """Return the sums of a partition (X, y) or (X, y, weights)."""
        sums, folds = ModeSums.zero(partition, *self.theta.shape), np.arange(self.n_folds)
        for data in checked(partition, block, self.columns):
            for fold, rows in self.by_fold(partition, data, 6 * self.theta[..., 0].size):
                others = np.delete(folds, fold)
                _add(sums, others, self.theta[others], self.loss, rows)
        return sums


def _or_zero(theta: Array | None, columns: int) -> Array:
    return np.zeros((1, columns)) if theta is None else theta


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

    beta: Array
    risk: Risk
    means: Array  # (folds, b, k)
    forms: Array  # (folds, b, k (k + 1) / 2): covariances S, as what gives z'Sz from products of z

    def partition(self, number: int, data: Data) -> Iterator[Batch]:
        """Yield the losses of batches of rows, fold by fold; none is set aside."""
        none = np.zeros((1, 1))
        for fold, rows in self.by_fold(number, data, 8 * len(self.beta)):
            mean = rows.offset + self.means[fold] @ rows.Z.T
            # S is at most the prior's I: rounding is small beside the prior's variance |z|^2.
            variance = np.maximum(self.forms[fold] @ products(rows.Z), 0.0)
            losses = self.loss.risk(Predictor(mean, variance, none, none), rows.y, self.risk)[0]
            yield Batch(losses.T, rows.weights, np.zeros(len(rows.y), dtype=bool))


def products(Z: Array) -> Array:
    """Return the products z_j z_k, j <= k, of each row: (k (k + 1) / 2, n)."""
    n, k = Z.shape
    columns, found, begin = np.ascontiguousarray(Z.T), np.empty((k * (k + 1) // 2, n)), 0
    for j in range(k):
        np.multiply(columns[j:], columns[j], out=found[begin : begin + k - j])
        begin += k - j
    return found


def as_forms(symmetric: Array) -> Array:
    """Return what gives z'Sz from the products of z, for matrices (..., k, k)."""
    i, j = np.triu_indices(symmetric.shape[-1])
    return np.where(i == j, 1.0, 2.0) * symmetric[..., i, j]
