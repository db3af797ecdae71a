r"""Second moments of folds from blocks of rows, as triangular factors that are updated.

A fold with rows [X y] is stored as a triangle R with R'R = sum_i w_i [x y]'[x y].  New rows of the
fold update it to the triangle of R stacked on their own: as accurate as a QR decomposition of all
rows, for any scales of the columns, in memory O(d^2) for each fold.  The moments of two sets of
rows merge in the same way, so that machines can add up sets of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from temperance.checks import as_rows, refuse_non_finite, shown, whole
from temperance.data import Array, Data
from temperance.models.linear.grams import triangle, triangle_of_gram
from temperance.resources import refuse_too_large
from temperance.streaming.folds import FoldNumbers, partition_folds

LEAST_PIECE = 2**18  # elements of rows for which a triangle is computed, at least
MANY = 2**24  # elements from which on available memory is checked
SMALLEST, LARGEST = 1e-280, 1e280  # sums of squares between these neither overflow nor vanish


class FoldMoments:
    """Triangles, weights and numbers of rows of each fold.

    Parameters
    ----------
    n_folds, columns : int
        Number of folds, and of columns of X.
    partition : int
        Partition that the rows come from, for messages; the first one, if there are several.

    Examples
    --------
    >>> import numpy as np
    >>> one, other = (FoldMoments(1, 1) for _ in range(2))
    >>> for moments, rows in ((one, [[1.0, 2.0]]), (other, [[3.0, 4.0], [5.0, 6.0]])):
    ...     moments.add(np.array(rows), np.zeros(len(rows), int), np.ones(len(rows)))
    >>> both = one.merge(other)
    >>> both.weight, (both.triangles[0].T @ both.triangles[0]).round(10)
    (array([3.]), array([[35., 44.], [44., 56.]]))
    """

    def __init__(self, n_folds: int, columns: int, partition: int = 0) -> None:
        self.triangles: list[Array] = [np.empty((0, columns + 1))] * n_folds
        self.weight = np.zeros(n_folds)
        self.count = np.zeros(n_folds, dtype=np.intp)
        self.partition = partition

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return len(self.triangles)

    @property
    def columns(self) -> int:
        """The number of columns of X."""
        return self.triangles[0].shape[1] - 1

    def add(self, rows: Array, fold: NDArray[np.intp], weights: Array) -> None:
        """Add rows [X y], scaled by the square roots of their weights."""
        for number, before in enumerate(self.triangles):
            chosen = rows[fold == number] if len(self.triangles) > 1 else rows
            self.triangles[number] = triangle(np.concatenate([before, _condensed(chosen)]))
        folds = len(self.triangles)
        with np.errstate(over="ignore"):
            self.weight += np.bincount(fold, weights, folds)
        self.count += np.bincount(fold, minlength=folds)

    def merge(self, *others: FoldMoments) -> FoldMoments:
        """Return the moments of all rows of several sets; those without rows do not matter."""
        parts = [each for each in (self, *others) if each.count.any()]
        if len(parts) < 2:
            return parts[0] if parts else self
        first = parts[0]
        for each in parts[1:]:
            if each.n_folds != first.n_folds:
                raise ValueError(
                    f"moments must have the same number of folds, got {first.n_folds} and "
                    f"{each.n_folds}"
                )
            if each.columns != first.columns:
                raise ValueError(
                    f"X must have {first.columns} columns in every partition, got {each.columns} "
                    f"in partition {each.partition}"
                )
        merged = FoldMoments(first.n_folds, first.columns, min(each.partition for each in parts))
        stacks = zip(*(each.triangles for each in parts), strict=True)
        merged.triangles = [triangle(np.concatenate(stack)) for stack in stacks]
        with np.errstate(over="ignore"):
            merged.weight = np.sum([each.weight for each in parts], axis=0)
        merged.count = np.sum([each.count for each in parts], axis=0)
        return merged

    def to_bytes(self) -> bytes:
        """Return the moments as the bytes of a file of arrays, to be sent to another machine."""
        file = BytesIO()
        arrays: dict[str, Any] = {
            f"triangle{number}": each for number, each in enumerate(self.triangles)
        }
        arrays |= {"weight": self.weight, "count": self.count, "partition": self.partition}
        np.savez(file, **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Return the moments that :meth:`to_bytes` wrote."""
        try:
            with np.load(BytesIO(content), allow_pickle=False) as arrays:
                folds = len(arrays["weight"])
                moments = cls(folds, arrays["triangle0"].shape[1] - 1, int(arrays["partition"]))
                moments.triangles = [arrays[f"triangle{number}"] for number in range(folds)]
                moments.weight, moments.count = arrays["weight"], arrays["count"]
        except Exception as error:  # zipfile and numpy raise many kinds for damaged bytes
            raise ValueError(
                f"content must be bytes from FoldMoments.to_bytes, got {shown(content)} "
                f"({type(error).__name__})"
            ) from None
        return moments

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
    """Return the moments of the folds of all rows, in one pass; folds go by the place of a row."""
    return _accumulated(validated(blocks), n_folds, FoldNumbers(n_folds, seed))


def partition_moments(
    X: Any, y: Any, weights: Any = None, *, n_folds: int = 10, seed: int = 0, partition: int = 0
) -> FoldMoments:
    """Return the moments of the folds of one partition of the rows.

    The folds come from ``default_rng([seed, partition])``, so that a worker draws them without any
    other partition; they depend on how the rows are divided into partitions.

    Parameters
    ----------
    X, y, weights : arrays of shape (n, d), (n,) and (n,)
        Rows of the partition; there may be none.
    n_folds : int
    seed : int
    partition : int
        Number of the partition.

    Examples
    --------
    >>> import numpy as np
    >>> parts = [partition_moments(np.eye(3), np.ones(3), n_folds=2, partition=i) for i in (0, 1)]
    >>> parts[0].merge(parts[1]).count
    array([3, 3])
    """
    number = whole("partition", partition, 0)
    numbers = partition_folds(whole("n_folds", n_folds, 1), seed, number)
    block = (X, y) if weights is None else (X, y, weights)
    return _accumulated(validated([block], "partition", number), n_folds, numbers, number)


def _accumulated(
    blocks: Iterable[tuple[str, Data]], n_folds: int, numbers: FoldNumbers, partition: int = 0
) -> FoldMoments:
    moments = None
    for rows, weights in _pieces(blocks, n_folds):
        if moments is None:
            moments = FoldMoments(n_folds, rows.shape[1] - 1, partition)
        moments.add(rows, numbers.take(len(rows)), weights)
    return FoldMoments(n_folds, 1, partition) if moments is None else moments


def refuse_no_rows(moments: FoldMoments) -> None:
    """Refuse moments of no rows, or of infinite weight."""
    if not moments.count.any():
        raise ValueError(
            "X must have at least one row of positive weight, got none (a generator can be read "
            "only once)"
        )
    if not np.isfinite(moments.weight.sum()):
        raise ValueError("weights must have a finite sum over all rows, got infinity")


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


def _pieces(blocks: Iterable[tuple[str, Data]], n_folds: int) -> Iterator[tuple[Array, Array]]:
    """Yield blocks cut and joined to pieces that are large enough for one triangle per fold."""
    waiting: list[tuple[Array, Array]] = []
    collected = 0
    for name, data in blocks:
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
                refuse_non_finite(f"{name}: X and y times the roots of the weights", rows)
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


def validated(
    blocks: Iterable[Any], word: str = "block", first: int = 0
) -> Iterator[tuple[str, Data]]:
    """Yield checked blocks with equal columns and their names; those without rows are left out."""
    columns = None
    try:
        iterator = iter(blocks)
    except TypeError:
        raise ValueError(
            f"blocks must be an iterable of (X, y) or (X, y, weights), got {shown(blocks)}"
        ) from None
    for number, block in enumerate(iterator, first):
        name = f"{word} {number}"
        if not isinstance(block, tuple | list) or len(block) not in (2, 3):
            raise ValueError(
                f"blocks must hold (X, y) or (X, y, weights), got {type(block).__name__} as {name}"
            )
        try:
            data = as_rows(*block)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        if not len(data):
            continue
        columns = data.X.shape[1] if columns is None else columns
        if data.X.shape[1] != columns or columns == 0:
            raise ValueError(
                f"X must have {columns or 'one or more'} columns in every {word}, got "
                f"{data.X.shape[1]} in {name}"
            )
        yield name, data
