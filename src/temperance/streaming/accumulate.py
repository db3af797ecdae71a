r"""Second moments of folds from blocks of rows, as triangular factors that are updated.

A fold with rows [X y] is stored as a triangle R with R'R = sum_i w_i [x y]'[x y].  New rows of the
fold update it to the triangle of R stacked on their own: as accurate as a QR decomposition of all
rows, for any scales of the columns, in memory O(d^2) for each fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.models.linear.grams import triangle, triangle_of_gram
from temperance.resources import refuse_too_large
from temperance.streaming.folds import FoldNumbers
from temperance.types import Array, Data
from temperance.validation import as_rows, refuse_non_finite, shown

LEAST_PIECE = 2**18  # elements of rows for which a triangle is computed, at least
MANY = 2**24  # elements from which on available memory is checked
SMALLEST, LARGEST = 1e-280, 1e280  # sums of squares between these neither overflow nor vanish


class FoldMoments:
    """Triangles, weights and numbers of rows of each fold."""

    def __init__(self, n_folds: int, columns: int) -> None:
        self.triangles: list[Array] = [np.empty((0, columns + 1))] * n_folds
        self.weight = np.zeros(n_folds)
        self.count = np.zeros(n_folds, dtype=np.intp)

    def add(self, rows: Array, fold: NDArray[np.intp], weights: Array) -> None:
        """Add rows [X y], scaled by the square roots of their weights."""
        for number, before in enumerate(self.triangles):
            chosen = rows[fold == number] if len(self.triangles) > 1 else rows
            self.triangles[number] = triangle(np.concatenate([before, _condensed(chosen)]))
        folds = len(self.triangles)
        with np.errstate(over="ignore"):
            self.weight += np.bincount(fold, weights, folds)
        self.count += np.bincount(fold, minlength=folds)

    def as_data(self) -> tuple[Data, NDArray[np.intp]]:
        """Return a few weighted rows with the moments and weights of all rows, and their folds."""
        heights = [len(each) for each in self.triangles]
        fold = np.repeat(np.arange(len(heights)), heights)
        weights = (self.weight / heights)[fold]
        rows = np.concatenate(self.triangles) / np.sqrt(weights)[:, None]
        return Data(rows[:, :-1], rows[:, -1], weights), fold


def accumulate(
    blocks: Iterable[Any], n_folds: int, seed: int | np.random.Generator | None
) -> FoldMoments:
    """Return the moments of the folds of all rows, in one pass."""
    numbers, moments = FoldNumbers(n_folds, seed), None
    for rows, weights in _pieces(blocks, n_folds):
        if moments is None:
            moments = FoldMoments(n_folds, rows.shape[1] - 1)
        moments.add(rows, numbers.take(len(rows)), weights)
    if moments is None:
        raise ValueError(
            "blocks must hold at least one row of positive weight, got none (a generator can be "
            "read only once)"
        )
    if not np.isfinite(moments.weight.sum()):
        raise ValueError("weights must have a finite sum over all blocks, got infinity")
    return moments


def _condensed(rows: Array) -> Array:
    if len(rows) <= rows.shape[1]:
        return rows
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        gram = rows.T @ rows
    squares = gram.diagonal()
    known = (SMALLEST < squares) & (squares < LARGEST)
    if not known.all() and rows[:, ~known].any():
        return triangle(rows)  # QR does not form squares
    factor = triangle_of_gram(gram)
    return triangle(rows) if factor is None else factor


def _pieces(blocks: Iterable[Any], n_folds: int) -> Iterator[tuple[Array, Array]]:
    """Yield blocks cut and joined to pieces that are large enough for one triangle per fold."""
    waiting: list[tuple[Array, Array]] = []
    collected = 0
    for number, data in _validated(blocks):
        columns = data.X.shape[1] + 1
        _refuse_too_large(columns - 1, collected + 2 * len(data))
        enough = max(4 * n_folds * columns, LEAST_PIECE // columns)
        for begin in range(0, len(data), enough):
            part = slice(begin, begin + enough)
            weights = data.weights[part]
            rows = np.column_stack([data.X[part], data.y[part]])
            if np.any(weights != 1.0):
                with np.errstate(over="ignore"):
                    rows *= np.sqrt(weights)[:, None]
                refuse_non_finite(f"block {number}: X and y times the roots of the weights", rows)
            waiting.append((rows, weights))
            collected += len(rows)
            if collected >= enough:
                yield _joined(waiting)
                waiting, collected = [], 0
    if waiting:
        yield _joined(waiting)


def _refuse_too_large(columns: int, rows: int) -> None:
    if rows * (columns + 1) > MANY:
        refuse_too_large(f"{rows} rows of {columns} columns", rows * (columns + 1))


def _joined(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    rows, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
    return rows, weights


def _validated(blocks: Iterable[Any]) -> Iterator[tuple[int, Data]]:
    """Yield checked blocks with equal columns; those without rows are left out."""
    columns = None
    try:
        iterator = iter(blocks)
    except TypeError:
        raise ValueError(
            f"blocks must be an iterable of (X, y) or (X, y, weights), got {shown(blocks)}"
        ) from None
    for number, block in enumerate(iterator):
        if not isinstance(block, tuple | list) or len(block) not in (2, 3):
            raise ValueError(
                f"blocks must hold (X, y) or (X, y, weights), got {type(block).__name__} as block "
                f"{number}"
            )
        try:
            data = as_rows(*block)
        except ValueError as error:
            raise ValueError(f"block {number}: {error}") from None
        if not len(data):
            continue
        columns = data.X.shape[1] if columns is None else columns
        if data.X.shape[1] != columns or columns == 0:
            raise ValueError(
                f"X must have {columns or 'one or more'} columns in every block, got "
                f"{data.X.shape[1]} in block {number}"
            )
        yield number, data
