r"""Folds for an unknown number of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from temperance.checks import whole
from temperance.data import refuse_too_large

DRAWN = 2**20  # folds drawn at a time; at least one permutation


class FoldNumbers:
    """An endless sequence of folds: each ``n_folds`` consecutive rows are a random permutation.

    Fold sizes differ by at most one row, and the fold of a row depends on its position only, not on
    the blocks in which the rows come.
    """

    def __init__(
        self, n_folds: int, seed: int | Sequence[int] | np.random.Generator | None
    ) -> None:
        refuse_too_large(f"n_folds={n_folds}", 3 * n_folds)
        self._sequence = _shuffled(n_folds, np.random.default_rng(seed))
        self._left = np.empty(0, dtype=np.intp)

    def take(self, count: int) -> NDArray[np.intp]:
        """Return the folds of the next ``count`` rows."""
        parts = [self._left]
        while sum(map(len, parts)) < count:
            parts.append(next(self._sequence))
        drawn = np.concatenate(parts)
        self._left = drawn[count:]
        return drawn[:count]


def _shuffled(n_folds: int, rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    ordered = np.tile(np.arange(n_folds), (max(1, min(1024, DRAWN // n_folds)), 1))
    while True:
        yield rng.permuted(ordered, axis=1).ravel()


def fold_numbers(
    n: int, n_folds: int, seed: int | np.random.Generator | None = 0
) -> NDArray[np.intp]:
    """Return the folds that ``calibrate_blocks`` assigns to the first ``n`` rows.

    Examples
    --------
    >>> fold_numbers(9, 3)
    array([2, 0, 1, 2, 1, 0, 2, 0, 1])
    """
    whole("n", n, 0)
    return FoldNumbers(whole("n_folds", n_folds, 1), seed).take(n)


def partition_folds(n_folds: int, seed: int, partition: int) -> FoldNumbers:
    """Return the folds of the rows of one partition, from ``default_rng([seed, partition])``."""
    return FoldNumbers(n_folds, [whole("seed", seed, 0), partition])
