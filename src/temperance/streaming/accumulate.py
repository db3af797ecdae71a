r"""Second moments of folds from blocks of rows, as triangular factors that are updated.

A fold with rows [X y] is stored as a triangle R with R'R = sum_i w_i [x y]'[x y].  New rows of the
fold update it to the triangle of R stacked on their own: as accurate as a QR decomposition of all
rows, for any scales of the columns, in memory O(d^2) for each fold.  The moments of two sets of
rows merge in the same way, so that machines can add up sets of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from temperance.checks import as_rows, refuse_non_finite, shown, whole
from temperance.data import Array, Data, batches, refuse_too_large
from temperance.streaming.folds import partition_folds

PIECE = 2**18  # elements of rows for which a triangle is computed
MANY = 2**24  # elements from which on available memory is checked
SIMILAR = 1e2  # ratio of lengths of rows up to which QR does not need the longest first


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
        self.n_folds, self.partition = n_folds, partition
        self.triangles: list[Array] = [np.empty((0, columns + 1))] * n_folds
        self.weight, self.count = np.zeros(n_folds), np.zeros(n_folds, dtype=np.intp)
        self.ones = True  # whether all rows begin with 1

    @property
    def columns(self) -> int:
        """The number of columns of X."""
        return self.triangles[0].shape[1] - 1

    def add(self, rows: Array, fold: NDArray[np.intp], weights: Array) -> None:
        """Add rows [X y], scaled by the square roots of their weights."""
        for number, before in enumerate(self.triangles):
            chosen = rows[fold == number] if self.n_folds > 1 else rows
            self.triangles[number] = triangle(np.concatenate([before, chosen]))
        with np.errstate(over="ignore"):
            self.weight += np.bincount(fold, weights, self.n_folds)
        self.count += np.bincount(fold, minlength=self.n_folds)
        self.ones = self.ones and bool(np.all(rows[:, 0] == np.sqrt(weights)))

    def merge(self, *others: FoldMoments) -> FoldMoments:
        """Return the moments of all rows of several sets; those without rows do not matter."""
        parts = [each for each in (self, *others) if each.count.any()] or [self]
        folds, columns = parts[0].n_folds, parts[0].columns
        for each in parts[1:]:
            if each.n_folds != folds:
                raise ValueError(
                    f"moments must have the same number of folds, got {folds} and {each.n_folds}"
                )
            refuse_columns(each.columns, columns, each.partition)
        merged = FoldMoments(folds, columns, min(each.partition for each in parts))
        stacks = zip(*(each.triangles for each in parts), strict=True)
        merged.triangles = [triangle(np.concatenate(stack)) for stack in stacks]
        with np.errstate(over="ignore"):
            merged.weight = np.sum([each.weight for each in parts], axis=0)
        merged.count = np.sum([each.count for each in parts], axis=0)
        merged.ones = all(each.ones for each in parts)
        return merged

    def to_bytes(self) -> bytes:
        """Return the moments as the bytes of a file of arrays, to be sent to another machine."""
        file, heights = BytesIO(), [len(each) for each in self.triangles]
        names = ("weight", "count", "partition", "ones")
        arrays: dict[str, Any] = {name: getattr(self, name) for name in names}
        np.savez(file, rows=np.concatenate(self.triangles), heights=heights, **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Return the moments that :meth:`to_bytes` wrote."""
        try:
            with np.load(BytesIO(content), allow_pickle=False) as arrays:
                rows, ends = arrays["rows"], np.cumsum(arrays["heights"])
                moments = cls(len(ends), rows.shape[1] - 1, int(arrays["partition"]))
                moments.triangles = np.split(rows, ends[:-1])
                moments.weight, moments.count = arrays["weight"], arrays["count"]
                moments.ones = bool(arrays["ones"])
        except Exception as error:  # zipfile and numpy raise many kinds for damaged bytes
            raise ValueError(
                f"content must be bytes from FoldMoments.to_bytes, got {shown(content)} "
                f"({type(error).__name__})"
            ) from None
        return moments

    def as_data(self, ones: bool = False) -> tuple[Data, NDArray[np.intp]]:
        """Return a few weighted rows with the moments and weights of all rows, and their folds.

        With ``ones`` the first column of all rows is 1, and that of these rows as well.
        """
        if ones and not self.ones:
            raise ValueError("X must begin with a column of ones, or intercept must be False")
        factors = [_constant_first(each) for each in self.triangles] if ones else self.triangles
        heights = [len(each) for each in factors]
        fold = np.repeat(np.arange(len(heights)), heights)
        weights = (self.weight / heights)[fold]
        rows = np.concatenate(factors) / np.sqrt(weights)[:, None]
        if ones:
            rows[:, 0] = 1.0
        return Data(rows[:, :-1], rows[:, -1], weights), fold


def triangle(rows: Array) -> Array:
    """Return at most k rows with the same second moments."""
    if len(rows) <= rows.shape[1]:
        return rows
    lengths = np.abs(rows).max(axis=1)
    if lengths.max() > SIMILAR * lengths.min(initial=lengths.max(), where=lengths > 0):
        rows = rows[np.argsort(-lengths, kind="stable")]
    return np.asarray(np.linalg.qr(rows, mode="r"))


def _constant_first(factor: Array) -> Array:
    """Return rows with the same second moments, the first column of which is constant."""
    upper: Array = np.asarray(np.linalg.qr(factor, mode="r"))
    return np.sign(upper[0, 0]) * (helmert(len(upper), full=True).T @ upper)


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
    numbers = partition_folds(whole("n_folds", n_folds, 1), seed, whole("partition", partition, 0))
    block = (X, y) if weights is None else (X, y, weights)
    for data in checked(partition, block):
        return moments_of(data, numbers.take(len(data)), n_folds, partition)
    return FoldMoments(n_folds, 1, partition)


def moments_of(data: Data, fold: NDArray[np.intp], n_folds: int, partition: int) -> FoldMoments:
    """Return the moments of the folds of some rows."""
    columns = data.X.shape[1] + 1
    if len(data) * columns > MANY:
        refuse_too_large(f"{len(data)} rows of {columns - 1} columns", 2 * len(data) * columns)
    moments = FoldMoments(n_folds, columns - 1, partition)
    for part in batches(len(data), 1, max(4 * n_folds * columns, PIECE // columns)):
        weights, rows = data.weights[part], np.column_stack([data.X[part], data.y[part]])
        if np.any(weights != 1.0):
            with np.errstate(over="ignore"):
                rows *= np.sqrt(weights)[:, None]
            name = f"partition {partition}: X and y times the roots of the weights"
            refuse_non_finite(name, rows)
        moments.add(rows, fold[part], weights)
    return moments


def checked(partition: int, block: Any, columns: int | None = None) -> Iterator[Data]:
    """Yield the rows of a partition, if there are any; refuse another number of columns."""
    if not isinstance(block, tuple | list) or len(block) not in (2, 3):
        raise ValueError(
            f"blocks must hold (X, y) or (X, y, weights), got {type(block).__name__} as partition "
            f"{partition}"
        )
    try:
        data = as_rows(*block)
    except ValueError as error:
        raise ValueError(f"partition {partition}: {error}") from None
    if len(data):
        refuse_columns(data.X.shape[1], columns or data.X.shape[1], partition)
        yield data


def refuse_columns(found: int, columns: int, partition: int) -> None:
    """Refuse a partition with another number of columns, or with none."""
    if found != columns or not found:
        raise ValueError(
            f"X must have {columns or 'one or more'} columns in every partition, got {found} in "
            f"partition {partition}"
        )


def refuse_empty(count: NDArray[Any], weight: float, strategy: Any) -> None:
    """Refuse no rows, infinite weight, and folds without rows, given the number in each."""
    if not count.any():
        raise ValueError(
            "X must have at least one row of positive weight, got none (a generator can be read "
            "only once)"
        )
    if not np.isfinite(weight):
        raise ValueError("weights must have a finite sum over all rows, got infinity")
    if not count.all():
        raise ValueError(
            f"X must have a row in every fold of {strategy!r}, got none in one of them out of "
            f"{int(count.sum())} rows"
        )
