r"""Tables of held-out losses from a second pass: a sample of the rows, and the means of all.

The pass evaluates the loss of every row at some betas.  It adds these up, and keeps those of the
50,000 rows with the smallest hashes, whatever the partitions, and of the 2,000 whose losses depend
most on beta: a few outliers may decide.  The table is that of the sample, moved at each beta so
that its mean is the exact one.  The latter rows stand for themselves, the others for all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from temperance.calibration import Calibration
from temperance.data import Array, Data, Labels, Risk
from temperance.plans import hashes
from temperance.strategies.selection import warn_of_choice
from temperance.streaming.partitions import Folded, Partitions, S, Statistic
from temperance.table import DECADE, LEAST, HeldOut, Interpolated, half_decades

MOST, EXTREME = 50_000, 2_000  # rows of a sample, by their hashes and by their losses
STACKED = 2, LEAST  # betas in a decade for a stack, and the least of them
HIGHEST = 1e2  # beta up to which they are close
APART = 1e-6  # relative distance of betas, at least
DEGREE = 5
BATCH = 2**20  # elements of the temporaries of a batch of rows
EVERY = np.uint64(2**64 - 1)

Keys = NDArray[np.uint64]
Batch = tuple[NDArray[np.intp], Array, NDArray[np.bool_]]  # places, losses (n, g), set aside


class StreamedCalibration(Calibration):
    """A calibration whose ``data`` are not the rows, but a few that stand for them."""

    def certificate(self, *_: Any, **__: Any) -> NoReturn:
        """Raise an error: a certificate needs the rows."""
        raise ValueError(NEEDS_ROWS.format("a certificate"))

    def sandwich(self, *_: Any, **__: Any) -> NoReturn:
        """Raise an error: scores are those of single rows."""
        raise ValueError(NEEDS_ROWS.format("the sandwich"))


NEEDS_ROWS = (
    "{} needs all rows at once, got sums over partitions; use calibrate(model, X, y) on rows that "
    "fit into memory"
)


def concluded(
    kind: Any,
    model: Any,
    data: Data,
    strategy: Any,
    bounds: tuple[float, float],
    table: HeldOut,
    **more: Any,
) -> Any:
    """Return the calibration of a kind by the rule of a strategy."""
    choice = strategy.rule(table, bounds)
    found = kind(model, data, strategy, table.score, bounds, choice, table, **more)
    warn_of_choice(found)
    return found


def keys_of(data: Data, fold: Labels) -> Keys:
    """Return hashes of rows, by which equal ones of the same fold are known."""
    return hashes((*data.X.T, data.y, data.weights, fold.astype(float)))


class First(NamedTuple):
    """Another statistic, and the smallest hashes."""

    found: Any
    keys: Keys

    def merge(self, *others: First) -> First:
        """Return both of the rows of all."""
        keys = np.concatenate([self.keys, *(each.keys for each in others)])
        found = self.found.merge(*(each.found for each in others))
        return First(found, np.unique(keys)[:MOST])


@dataclass(frozen=True)
class FirstPass:
    """Another statistic, and the smallest hashes of rows."""

    statistic: Statistic[Any]
    folded: Folded

    def __call__(self, partition: int, block: Any) -> First:
        """Return both of a partition (X, y) or (X, y, weights)."""
        found, keys = self.statistic(partition, block), np.empty(0, dtype=np.uint64)
        for rows in self.folded.rows(partition, block):
            keys = np.unique(keys_of(*rows))[:MOST]
        return First(found, keys)


def first_pass(
    partitions: Partitions, statistic: Statistic[S], folded: Folded
) -> tuple[S, np.uint64]:
    """Return a statistic, and the largest hash of a sample."""
    found, keys = partitions.total(FirstPass(statistic, folded))
    return found, keys[-1] if len(keys) == MOST else EVERY


@dataclass(frozen=True, eq=False)
class Sample:
    """Sampled rows by their hashes, sums over all rows, and rows that are set aside."""

    largest: np.uint64  # hash of the sample
    keys: Keys
    losses: Array  # (rows, g)
    weights: Array
    left: Keys  # hashes of the rows set aside
    total: Array  # (g,): weighted sums of losses
    weight: float
    aside: Data

    def merge(self, *others: Self) -> Self:
        """Return the same of the rows of all; equal rows are one of their common weight."""
        parts = (self, *others)
        keys, losses, weights, left = (
            np.concatenate([getattr(each, name) for each in parts])
            for name in ("keys", "losses", "weights", "left")
        )
        keys, first, number = np.unique(keys, return_index=True, return_inverse=True)
        losses, weights = losses[first], np.bincount(number, weights, len(keys))
        kept = (keys <= self.largest) | _extreme(losses)
        sampled = keys[kept], losses[kept], weights[kept].astype(float), left
        total, weight = parts[0].total, parts[0].weight
        for each in others:
            total, weight = total + each.total, weight + each.weight
        aside = [each.aside for each in parts if len(each.aside)] or [self.aside]
        return type(self)(self.largest, *sampled, total, weight, joined(*aside))

    def table(
        self, betas: Array, of_aside: Array, score: Risk, votes: float, method: str
    ) -> HeldOut:
        """Return the table at betas (g,), given the losses (g, m) of the rows set aside."""
        alone = _extreme(self.losses)
        others = self.weight - self.weights[alone].sum()
        factor = others / (self.weights[~alone].sum() or 1.0)
        own = np.where(alone, 1.0, factor) * self.weights
        weights = np.concatenate([own, self.aside.weights])
        losses = np.concatenate([self.losses.T, of_aside], axis=1)
        exact = (self.total + of_aside @ self.aside.weights) / weights.sum()
        at = Smooth(betas, losses + (exact - losses @ weights / weights.sum())[:, None])
        return HeldOut(betas, at, weights, weights, score, votes=votes, method=method)


def _extreme(losses: Array) -> NDArray[np.bool_]:
    """Return which rows (n, g) are among those whose losses depend most on beta."""
    spread = np.ptp(losses, axis=1)
    distinct = np.unique(spread)
    return spread >= (distinct[-EXTREME] if len(distinct) >= EXTREME else -1.0)


def joined(*parts: Data) -> Data:
    """Return the rows of several."""
    names = ("X", "y", "weights")
    return Data(*(np.concatenate([getattr(each, name) for each in parts]) for name in names))


@dataclass(frozen=True, eq=False)
class SecondPass:
    """Sums of the losses of all rows, and those of a sample."""

    losses: Any  # with ``betas`` (g,) and ``batches(data, fold)``, an iterator over Batch
    folded: Folded
    largest: np.uint64  # hash of the sample

    def __call__(self, partition: int, block: Any) -> Sample:
        """Return the sample of a partition (X, y) or (X, y, weights)."""
        g, columns = len(self.losses.betas), self.folded.columns or 0
        keys = np.empty(0, dtype=np.uint64)
        none = Data(np.empty((0, columns)), np.empty(0), np.empty(0))
        sampled = keys, np.empty((0, g)), none.y, keys
        found = [Sample(self.largest, *sampled, np.zeros(g), 0.0, none)]
        for data, fold in self.folded.rows(partition, block):
            keys = keys_of(data, fold)
            for places, losses, away in self.losses.batches(data, fold):
                aside, kept = places[away], places[~away]
                losses, weights = losses[~away], data.weights[kept]
                taken = (keys[kept] <= self.largest) | _extreme(losses)
                left = Data(data.X[aside], data.y[aside], data.weights[aside])
                some = keys[kept][taken], losses[taken], weights[taken], keys[aside]
                sums = weights @ losses, float(weights.sum())
                found.append(Sample(self.largest, *some, *sums, left))
        return found[0].merge(*found[1:])


def betas_for(bounds: tuple[float, float], fine: int, lowest: float) -> Array:
    """Return the betas of a table, ``fine`` in a decade from ``lowest`` on: 0 or the bounds, and 1.

    A stack needs half decades, a minimum more.
    """
    least, most = min(bounds[0] or lowest, 1.0), min(max(bounds[1], 1.0), HIGHEST)
    places = np.arange(np.ceil(fine * np.log10(least)), np.floor(fine * np.log10(most)) + 1)
    betas = np.unique(np.concatenate([half_decades(bounds), DECADE ** (places / fine), [1.0]]))
    betas = betas[np.append(True, np.diff(betas) > APART * betas[1:])]
    return betas if bounds[0] else np.append(0.0, betas)


@dataclass(frozen=True, eq=False)
class Smooth(Interpolated):
    """Functions between the betas of a table by splines of degree five in log beta."""

    @staticmethod
    def _cubic(places: Array, losses: Array) -> Callable[[Array], Array]:
        from scipy.interpolate import make_interp_spline

        return make_interp_spline(places, losses, k=min(DEGREE, len(places) - 1))
