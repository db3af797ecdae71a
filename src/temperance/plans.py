"""Plans: which rows train and which test, as weights of the same n rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, Data, Labels, all_ones, total_weight
from temperance.duplicates import distinct_rows, number_rows, takes_few_values

Transfer = Literal["beta", "alpha"]
Duplicates = Literal["auto", "together", "apart"]

PIECES_PER_ROW = 100  # enough to give folds nearly equal shares
MANY = 20_000  # rows that are tested to stack: more change the weights by less than 2e-4 nats
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
        deleted, test = np.zeros((2, len(places), len(self.weights)))
        pair = np.arange(len(places))
        deleted[pair, places] = self.deleted[places]
        test[pair, places] = self.weights[places]
        return Pairs(np.maximum(self.weights - deleted, 0.0), test, self.size, self.transfer)


AnyPlan = Pairs | Folds | LeaveOneOut


def observations(
    data: Data, duplicates: Duplicates
) -> tuple[Data, NDArray[np.intp], NDArray[np.int_] | None]:
    """Return the distinct rows, their numbers, and pieces that each can be divided into, or None.

    Copies of one observation are held out together: otherwise a row is tested by a posterior that
    has seen it.  Different observations that happen to be equal are not: leaving them all out
    removes a part of the distribution.  ``"auto"`` holds copies together unless inputs and response
    take few values.  A row of weight k counts exactly like k copies of it.  Numbers are those of
    sorted rows.
    """
    number, rows = number_rows(data), data
    if int(number.max()) + 1 < len(data):
        rows = distinct_rows(data)[0]
        number = np.arange(len(rows))
    if all_ones(rows.weights):
        return rows, number, None
    apart = duplicates == "apart" or (duplicates == "auto" and takes_few_values(rows))
    pieces = np.clip(np.ceil(rows.weights), 1, PIECES_PER_ROW).astype(int)
    return rows, number, pieces if apart and pieces.max() > 1 else None


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
