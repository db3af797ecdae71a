"""Plans: which rows train and which test, as weights of the same n rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, Data, Labels, all_ones, refuse_too_large, total_weight

Transfer = Literal["beta", "alpha"]
Duplicates = Literal["auto", "together", "apart"]

PIECES_PER_ROW = 100  # enough to give folds nearly equal shares
MANY = 20_000  # rows that are tested to stack: more change the weights by less than 2e-4 nats
MANY_TO_SORT = 2**16  # rows from which on sorting takes longer than the sums
COPIES = 6  # copies of explicit pairs that exist at a time, at most
MIXED = np.uint64(0x9E3779B97F4A7C15)  # an odd number, whose multiples look random


@dataclass(frozen=True, eq=False)
class Pairs:
    r"""Pairs of train and test weights over the same rows.

    With ``transfer="beta"`` the exponent of a row does not depend on the size of its training set;
    with ``transfer="alpha"`` the total weight of a training set equals ``size``.

    Parameters
    ----------
    train, test : arrays of shape (pairs, n)
    size : the total weight of the full data, for which beta is chosen
    transfer : what is kept equal from a training set to the full data
    """

    train: Array
    test: Array
    size: float
    transfer: Transfer = "beta"

    def __post_init__(self) -> None:
        """Refuse invalid weights, and pairs without training or tested rows."""
        for name, weights in (("train", self.train), ("test", self.test)):
            if np.ndim(weights) != 2 or weights.shape != self.train.shape:
                raise ValueError(
                    f"a plan's {name} weights must have shape (pairs, n), got {np.shape(weights)}"
                )
            if not weights.size or not weights.min() >= 0:
                least = float(weights.min()) if weights.size else "none"
                raise ValueError(f"a plan's {name} weights must be non-negative, got {least}")
            used = weights.any(axis=1)
            if not used.all():
                raise ValueError(
                    f"a plan's {name} weights must be positive somewhere, got only 0 in pair "
                    f"{used.argmin()}"
                )

    def pairs(self) -> Pairs:
        """Return the plan as explicit pairs: itself."""
        return self

    @property
    def likelihood_weights(self) -> Array:
        """Exponent of each row's likelihood per unit of beta, shape (pairs, n)."""
        if self.transfer == "beta":
            return self.train
        return self.train * (self.size / self.train.sum(axis=1, keepdims=True))

    def tested_rows(self) -> tuple[NDArray[np.intp], Array]:
        """Return the rows that each pair tests and their weights, (pairs, widest), padded by 0."""
        used = self.test > 0
        if used.all():
            every = np.arange(used.shape[1], dtype=np.intp)
            return np.broadcast_to(every, used.shape), self.test
        widest = int(used.sum(axis=1).max())
        order = np.argsort(~used, axis=1, kind="stable")[:, :widest]
        return order, np.take_along_axis(self.test, order, axis=1)


@dataclass(frozen=True, eq=False)
class Folds:
    """Every row belongs to one fold; folds from ``start`` on are tested by the other rows.

    A sample split is two folds of which only the second is tested.
    """

    weights: Array
    fold: Labels
    n_folds: int
    transfer: Transfer = "beta"
    start: int = 0

    @cached_property
    def size(self) -> float:
        """The total weight of the full data."""
        return total_weight(self.weights)

    @cached_property
    def counts(self) -> NDArray[np.intp]:
        """Number of rows of each fold, shape (n_folds,)."""
        return np.bincount(self.fold, minlength=self.n_folds)

    @cached_property
    def members(self) -> list[NDArray[np.intp]]:
        """The rows of each fold."""
        return np.split(np.argsort(self.fold, kind="stable"), np.cumsum(self.counts)[:-1])

    @cached_property
    def fold_weights(self) -> Array:
        """Weight of each tested fold, shape (n_folds - start,)."""
        if all_ones(self.weights):
            return self.counts[self.start :].astype(float)
        return np.bincount(self.fold, self.weights, self.n_folds)[self.start :].astype(float)

    @property
    def exponents(self) -> Array:
        """Factor on beta in each tested fold's training set, shape (n_folds - start,)."""
        if self.transfer == "beta":
            return np.ones(self.n_folds - self.start)
        return self.size / (self.size - self.fold_weights)

    def pairs(self) -> Pairs:
        """Return the plan as explicit pairs, (n_folds - start) x n."""
        tested = np.arange(self.start, self.n_folds)[:, None]
        test = np.where(self.fold == tested, self.weights, 0.0)
        return Pairs(self.weights - test, test, self.size, self.transfer)


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Every row is tested once by the posterior of all the others.

    Parameters
    ----------
    weights : array of shape (n,)
    transfer : what is kept equal from the other rows to all
    pieces : array of shape (n,), optional
        Equal pieces of each row's weight, one of which is left out at a time; by default the row.
    places : array of shape (m,), optional
        Places of the rows that are tested; by default all.
    """

    weights: Array
    transfer: Transfer = "beta"
    pieces: NDArray[np.int_] | None = None
    places: NDArray[np.intp] | None = None

    @cached_property
    def size(self) -> float:
        """The total weight of the full data."""
        return total_weight(self.weights)

    @cached_property
    def deleted(self) -> Array:
        """The weight that is left out with each row, shape (n,)."""
        return self.weights if self.pieces is None else self.weights / self.pieces

    @cached_property
    def tested(self) -> Array:
        """The weight with which each row is tested, shape (n,)."""
        if self.places is None:
            return self.weights
        tested = np.zeros(len(self.weights))
        tested[self.places] = self.weights[self.places]
        return tested

    @cached_property
    def exponents(self) -> Array:
        """Factor on beta in each row's training set, shape (n,)."""
        if self.transfer == "beta":
            return np.broadcast_to(1.0, len(self.weights))
        return self.size / (self.size - self.deleted)

    def pairs(self) -> Pairs:
        """Return the plan as explicit pairs, one for each tested row."""
        places = np.arange(len(self.weights)) if self.places is None else self.places
        what = f"leave-one-out of {len(places)} rows, each with weights of its own"
        refuse_too_large(what, COPIES * len(places) * len(self.weights))
        deleted, test = np.zeros((2, len(places), len(self.weights)))
        pair = np.arange(len(places))
        deleted[pair, places] = self.deleted[places]
        test[pair, places] = self.weights[places]
        return Pairs(np.maximum(self.weights - deleted, 0.0), test, self.size, self.transfer)


AnyPlan = Pairs | Folds | LeaveOneOut


def observations(data: Data, duplicates: Duplicates) -> tuple[Data, NDArray[np.int_] | None]:
    """Return the distinct rows, and the pieces that each can be divided into, or None.

    Copies of one observation are held out together: otherwise a row is tested by a posterior that
    has seen it.  Different observations that happen to be equal are not: leaving them all out
    removes a part of the distribution.  ``"auto"`` holds copies together unless inputs and response
    take few values.  A row of weight k counts exactly like k copies of it.
    """
    rows = data if all_distinct(data.y) else distinct_rows(data)[0]
    if all_ones(rows.weights):
        return (data if len(rows.y) == len(data.y) else rows), None
    apart = duplicates == "apart" or (duplicates == "auto" and takes_few_values(rows))
    pieces = np.clip(np.ceil(rows.weights), 1, PIECES_PER_ROW).astype(int)
    return rows, pieces if apart and pieces.max() > 1 else None


def hashed(data: Data, most: int = MANY) -> NDArray[np.intp] | None:
    """Return the places of so many rows, or None for all, by a hash that ignores their order.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.arange(10.0)
    >>> y[hashed(Data(np.zeros((10, 0)), y, np.ones(10)), most=3)]
    array([0., 3., 4.])
    """
    if len(data) <= most:
        return None
    return np.sort(np.argpartition(hashes((*data.X.T, data.y)), most)[:most])


def hashes(columns: Iterable[Array]) -> NDArray[np.uint64]:
    """Return a hash of each row of some columns."""
    found: NDArray[np.uint64] = np.zeros(1, dtype=np.uint64)
    for column in columns:
        found = found ^ np.ascontiguousarray(column + 0.0).view(np.uint64)  # -0. is 0.
        found *= MIXED
        found ^= found >> np.uint64(32)
    return found


def number_distinct(columns: Iterable[Array | Labels]) -> NDArray[np.intp]:
    """Return numbers for the distinct tuples (c1[i], c2[i], ...), in lexicographic order.

    Columns after the first few that make all tuples distinct are not read.
    """
    labels: NDArray[np.intp] | None = None
    for column in columns:
        codes = _ranks(column)
        if labels is None:
            labels = codes
        else:
            labels = _ranks(labels * (codes.max() + 1) + codes)
        if labels.max() + 1 == len(labels):
            break
    if labels is None:
        raise ValueError("columns must hold at least one column, got 0")
    return labels


def _ranks(values: Array | Labels) -> NDArray[np.intp]:
    """Return numbers for the distinct values, ascending."""
    if not all_distinct(values):
        return np.unique(values, return_inverse=True)[1]
    ranks = np.empty(len(values), dtype=np.intp)
    ranks[np.argsort(values)] = np.arange(len(values))
    return ranks


def all_distinct(values: Array | Labels) -> bool:
    """Return whether no two values are equal.

    Examples
    --------
    >>> all_distinct(np.array([0.5, 2.0, -1.0])), all_distinct(np.array([0.5, 0.0, -0.0]))
    (True, False)
    """
    ordered = np.sort(values)
    return bool(np.all(ordered[1:] != ordered[:-1]))


def first_places(labels: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Return the first position of each label from 0 to ``count - 1``.

    Examples
    --------
    >>> first_places(np.array([1, 0, 1, 2, 0]), 3)
    array([1, 0, 3])
    """
    first = np.zeros(count, dtype=np.intp)
    first[labels[::-1]] = np.arange(len(labels))[::-1]
    return first


def number_rows(data: Data) -> NDArray[np.intp]:
    """Return numbers for the distinct rows, sorted by response, then inputs."""
    return _number(data.y, data.X)


def _number(first: Array, others: Array) -> NDArray[np.intp]:
    """Return numbers for the distinct rows of a first column and others (n, d), sorted."""
    if others.shape[1] <= len(others):
        return number_distinct(chain([first], others.T))
    labels = number_distinct([first])
    while int(labels.max()) + 1 < len(labels):
        # With many columns, read only those that differ between rows of the same label.
        same = first_places(labels, int(labels.max()) + 1)[labels]
        differs = (others != others[same]).any(axis=0)
        if not differs.any():
            break
        labels = number_distinct([labels, others[:, differs.argmax()]])
    return labels


def distinct_rows(data: Data) -> tuple[Data, NDArray[np.intp]]:
    """Return the distinct rows, sorted, with summed weights, and the index of each row there."""
    number = number_rows(data)
    first = first_places(number, int(number.max()) + 1)
    weights = np.bincount(number, weights=data.weights).astype(float)
    return Data(data.X[first], data.y[first], weights), number


def joined_rows(data: Data) -> Data:
    """Return the data with identical rows joined, sorted; many distinct rows are not sorted.

    Fewer rows are sorted, so that sums over them do not depend on the order of the data, to the
    last bit.
    """
    if len(data) >= MANY_TO_SORT and all_distinct(data.y):
        return data
    return distinct_rows(data)[0]


def takes_few_values(rows: Data) -> bool:
    """Return whether equal rows must be different observations; ``rows`` are distinct, weighted.

    That is so if most observations repeat another, most have inputs that occur with several
    responses, and the responses repeat from input to input.  Copies of one observation, or a large
    weight on it, would repeat its response as well.
    """
    half = rows.size / 2
    if len(rows) > half:
        return False
    X = rows.X
    inputs = _number(X[:, 0], X[:, 1:]) if X.shape[1] else np.zeros(len(rows), dtype=int)
    several_responses = np.bincount(inputs)[inputs] > 1
    same_inputs = inputs.max() == 0
    responses = len(np.unique(rows.y))
    return bool(
        rows.weights[several_responses].sum() >= half
        and (same_inputs or responses <= len(rows) / 2)
    )
