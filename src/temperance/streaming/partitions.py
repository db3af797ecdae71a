r"""Statistics that add up over partitions of the rows, merged in a tree of fixed shape.

A pass computes a statistic of each partition and merges these in groups of eight, the results again
in groups of eight, and so on.  The tree depends on the number of partitions alone, so that all
engines give the same digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from temperance.checks import shown
from temperance.data import Data
from temperance.streaming.accumulate import FoldMoments, checked, moments_of
from temperance.streaming.folds import FoldNumbers, partition_folds

TOGETHER = 8  # statistics that are merged at once
NO_BLOCKS = "blocks must hold at least one block, got none (a generator can be read only once)"


class Additive(Protocol):
    """A statistic of some rows that can be merged with those of others."""

    def merge(self, *others: Self) -> Self:
        """Return the statistic of the rows of all."""


S = TypeVar("S", bound=Additive)
S_co = TypeVar("S_co", bound=Additive, covariant=True)


class Statistic(Protocol[S_co]):
    """A function of one partition; engines send it to other processes."""

    def __call__(self, partition: int, block: Any) -> S_co:
        """Return the statistic of the partition with this number and these rows."""


class Partitions(Protocol):
    """Partitions of the rows that can be read again and again."""

    def total(self, statistic: Statistic[S]) -> S:
        """Return the statistic of all rows, in one pass."""


@dataclass(frozen=True)
class Folded:
    """Rows of partitions with their folds, which each draws from default_rng([seed, partition])."""

    n_folds: int
    seed: int = 0
    columns: int | None = None  # of X, if it is known
    in_order: FoldNumbers | None = None  # folds by the place among all, for one pass here

    def rows(self, partition: int, block: Any) -> Iterator[tuple[Data, NDArray[np.intp]]]:
        """Yield the rows of a partition (X, y) or (X, y, weights), if there are any."""
        for data in checked(partition, block, self.columns):
            numbers = self.in_order or partition_folds(self.n_folds, self.seed, partition)
            yield data, numbers.take(len(data))

    def __call__(self, partition: int, block: Any) -> FoldMoments:
        """Return the moments of the folds of a partition."""
        for data, fold in self.rows(partition, block):
            return moments_of(data, fold, self.n_folds, partition)
        return FoldMoments(self.n_folds, 1, partition)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of rows in this process, one after another; each is a partition."""

    blocks: Iterable[Any]

    def total(self, statistic: Statistic[S]) -> S:
        """Return the statistic of all rows, in one pass."""
        try:
            parts = enumerate(self.blocks)
        except TypeError:
            raise ValueError(
                f"blocks must be an iterable of (X, y) or (X, y, weights), got {shown(self.blocks)}"
            ) from None
        return merged(statistic(number, block) for number, block in parts)


def merged(parts: Iterable[S]) -> S:
    """Merge statistics as they come, in groups, in groups of groups and so on."""
    levels: list[list[S]] = [[]]
    for part in parts:
        _push(levels, 0, part)
    for level, waiting in enumerate(levels):  # grows on the way
        if level == len(levels) - 1 and len(waiting) == 1:
            return waiting[0]
        if waiting:
            _push(levels, level + 1, merge_group(waiting))
    raise ValueError(NO_BLOCKS)


def _push(levels: list[list[S]], level: int, part: S) -> None:
    if level == len(levels):
        levels.append([])
    levels[level].append(part)
    if len(levels[level]) == TOGETHER:
        group, levels[level] = levels[level], []
        _push(levels, level + 1, merge_group(group))


def merge_group(parts: list[S]) -> S:
    """Return the statistic of all rows of a group."""
    return parts[0].merge(*parts[1:])
