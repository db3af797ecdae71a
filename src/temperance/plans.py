"""Plans: which rows train and which test, as pairs of weights (w, v) over the same n rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, Labels, all_ones, total_weight

Transfer = Literal["beta", "alpha"]


@dataclass(frozen=True, eq=False)
class Plan:
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

    def pairs(self) -> Plan:
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
        widest = int(used.sum(axis=1).max())
        order = np.argsort(~used, axis=1, kind="stable")[:, :widest]
        return order, np.take_along_axis(self.test, order, axis=1)


@dataclass(frozen=True, eq=False)
class FoldPlan:
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

    def pairs(self) -> Plan:
        """Return the plan as explicit pairs, (n_folds - start) x n."""
        tested = np.arange(self.start, self.n_folds)[:, None]
        test = np.where(self.fold == tested, self.weights, 0.0)
        return Plan(self.weights - test, test, self.size, self.transfer)


@dataclass(frozen=True, eq=False)
class LeaveOneOutPlan:
    """Every row is tested once by the posterior of all the others."""

    weights: Array
    transfer: Transfer = "beta"

    @cached_property
    def size(self) -> float:
        """The total weight of the full data."""
        return total_weight(self.weights)

    @cached_property
    def exponents(self) -> Array:
        """Factor on beta in each row's training set, shape (n,)."""
        if self.transfer == "beta":
            return np.broadcast_to(1.0, len(self.weights))
        return self.size / (self.size - self.weights)

    def pairs(self) -> Plan:
        """Return the plan as explicit pairs, n x n."""
        test = np.diag(self.weights)
        return Plan(self.weights - test, test, self.size, self.transfer)


@dataclass(frozen=True, eq=False)
class PrefixPlan:
    """Rows before row t train, row t is tested, for every t from ``start`` on, in each order.

    A model that must be fitted for every prefix may refit only when the prefix has grown by the
    share ``growth`` and by ``stride`` rows, and predict the rows in between from the last fit.
    """

    weights: Array
    orders: NDArray[np.intp]
    start: int = 1
    transfer: Transfer = "beta"
    growth: float = 0.0
    stride: int = 1

    @property
    def size(self) -> float:
        """The total weight of the full data."""
        return total_weight(self.weights)

    @cached_property
    def ends(self) -> NDArray[np.intp]:
        """Lengths of the prefixes to fit; each predicts the rows up to the next length."""
        ends = [self.start]
        while (longer := ends[-1] + max(self.stride, int(self.growth * ends[-1]))) < len(
            self.weights
        ):
            ends.append(longer)
        return np.array(ends)

    @property
    def thinned(self) -> bool:
        """Whether some prefix predicts more than the next row."""
        return len(self.ends) < len(self.weights) - self.start

    def exponents_of(self, order: NDArray[np.intp]) -> Array:
        """Return the factor on beta in the training set of each row of one order, (n - start,)."""
        if self.transfer == "beta":
            return np.ones(len(order) - self.start)
        return self.size / np.cumsum(self.weights[order])[self.start - 1 : -1]

    def pairs(self) -> Plan:
        """Return the plan as explicit pairs, as many as ``ends`` for each order."""
        n, ends = len(self.weights), self.ends
        place = np.arange(n)
        earlier = place < ends[:, None]
        following = ~earlier & (place < np.append(ends[1:], n)[:, None])
        train = np.zeros((len(self.orders), len(ends), n))
        test = np.zeros_like(train)
        for trained, tested, order in zip(train, test, self.orders, strict=True):
            trained[:, order] = earlier * self.weights[order]
            tested[:, order] = following * self.weights[order]
        return Plan(train.reshape(-1, n), test.reshape(-1, n), self.size, self.transfer)


AnyPlan = Plan | FoldPlan | LeaveOneOutPlan | PrefixPlan
