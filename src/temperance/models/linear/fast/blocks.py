r"""Groups of rows that have equal weights in every pair of a plan, and their second moments.

Such rows enter quadratic losses by their second moments alone: ten folds of a million rows in d
columns become ten Gram matrices of d + 1 columns, and the training set of a pair is a sum of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, Labels, all_ones
from temperance.duplicates import first_places, members_of, number_distinct
from temperance.models.linear.grams import triangle, triangles_of_grams
from temperance.models.linear.rows import WhitenedRows
from temperance.plans import FoldPlan, Plan

MOST_PAIRS = 64  # beyond them rows rarely share their weights
SAMPLE = 1000  # rows from which the distinct weight profiles are guessed


@dataclass(frozen=True, eq=False)
class Partition:
    """Blocks of rows, and the weight of a block in each pair, relative to the rows' weights."""

    labels: Labels  # (n,): the block of each row
    weights: Array  # (n,)
    train: Array  # (pairs, blocks)
    test: Array  # (pairs, blocks)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self.train.shape[1]

    @cached_property
    def unequal_weights(self) -> Array | None:
        """The weights of the rows, or None if all are 1."""
        return None if all_ones(self.weights) else self.weights

    @cached_property
    def members(self) -> list[NDArray[np.intp]]:
        """Indices of the rows of each block, in order."""
        return members_of(self.labels, self.blocks)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Second moments of blocks of weighted rows [Z r], and cached square roots of them."""

    rows: WhitenedRows
    partition: Partition
    grams: Array  # (blocks, k + 1, k + 1)
    counts: NDArray[np.intp]  # (blocks,): number of rows
    _factors: dict[int, Array] = field(default_factory=dict)

    @property
    def sizes(self) -> Array:
        """Total weight of the rows of each block, (blocks,)."""
        labels, weights = self.partition.labels, self.partition.unequal_weights
        if weights is None:
            return self.counts.astype(float)
        return np.bincount(labels, weights, len(self.counts)).astype(float)

    def factors(self, which: NDArray[np.intp]) -> list[Array]:
        """Return square roots of the second moments of some blocks, at most k + 1 rows each."""
        requested = which.tolist()
        missing = [block for block in requested if block not in self._factors]
        if missing:
            self._factors.update(self._computed(missing))
        return [self._factors[block] for block in requested]

    def _computed(self, which: list[int]) -> Iterator[tuple[int, Array]]:
        # A block with fewer rows than columns is its own factor.
        tall = [block for block in which if self.counts[block] > self.grams.shape[1]]
        known = dict(zip(tall, triangles_of_grams(self.grams[tall]), strict=True))
        for block in which:
            factor = known.get(block)
            if factor is None:
                members, weights = self.partition.members[block], self.partition.unequal_weights
                factor = triangle(self.rows.take(members, weights))
            yield block, factor


def blocks_of(rows: WhitenedRows, partition: Partition) -> Blocks:
    """Return the second moments of each block."""
    moments = rows.grams(partition.labels, partition.blocks, partition.unequal_weights)
    return Blocks(rows, partition, *moments)


def partition_of(plan: Plan | FoldPlan, columns: int) -> Partition | None:
    """Return blocks of rows of equal weights; None if there are too many to gain time."""
    if isinstance(plan, FoldPlan):
        test = np.eye(plan.n_folds)[plan.start :]
        train = (1 - test) * plan.exponents[:, None]
        return Partition(plan.fold, plan.weights, train, test)
    pairs, n = plan.test.shape
    if pairs > MOST_PAIRS:
        return None
    weightings = np.concatenate([plan.likelihood_weights, plan.test])
    weights = weightings.max(axis=0)
    used = weightings > 0
    profile: Array | NDArray[np.bool_] = used
    if not np.all((weightings == weights) | ~used):  # some rows have partial weights
        profile = np.round(weightings / np.where(weights > 0, weights, 1.0), 13)
    labels, count = _number_columns(profile)
    if count > max(2 * pairs, n // columns):
        return None
    shares = profile[:, first_places(labels, count)].astype(float)
    return Partition(labels, weights, shares[:pairs], shares[pairs:])


def _number_columns(profile: Array | NDArray[np.bool_]) -> tuple[NDArray[np.intp], int]:
    """Return a number for each distinct column, by bits or a random projection, and the count."""
    if profile.dtype == bool and len(profile) <= 8:
        bits = np.zeros(profile.shape[1], dtype=np.uint8)
        for place, row in enumerate(profile):
            bits |= row.view(np.uint8) << np.uint8(place)
        number = np.cumsum(np.bincount(bits, minlength=256) > 0) - 1
        return number.take(bits), int(number[-1]) + 1
    key = np.zeros(profile.shape[1])
    for factor, row in zip(
        np.random.default_rng(0).uniform(1, 2, len(profile)), profile, strict=True
    ):
        key += factor * row
    known = np.unique(key[:: 1 + len(key) // SAMPLE])
    labels = np.minimum(np.searchsorted(known, key), len(known) - 1)
    if not np.array_equal(known[labels], key):
        known, labels = np.unique(key, return_inverse=True)
    if not np.array_equal(profile[:, first_places(labels, len(known))[labels]], profile):
        labels = number_distinct(profile)
        return labels, int(labels.max()) + 1
    return labels, len(known)
