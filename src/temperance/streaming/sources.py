r"""Blocks of rows from arrays on disk and from Parquet files, which can be read again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import shown, whole
from temperance.data import Array, batches


@dataclass(frozen=True, eq=False)
class Again:
    """Blocks that are read anew by every loop over them."""

    read: Callable[[], Iterator[tuple[Any, ...]]]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Return the blocks from the first one on."""
        return self.read()


def blocks_of_arrays(
    X: Any, y: Any, weights: Any = None, rows: int = 65536
) -> Iterable[tuple[ArrayLike, ...]]:
    """Return blocks of rows of arrays.

    Parameters
    ----------
    X, y, weights : arrays of n rows
        Any objects that support slicing: numpy's memory-mapped arrays, HDF5 or Zarr datasets.
    rows : int
        Number of rows of a block.

    Examples
    --------
    >>> import numpy as np
    >>> [len(y) for X, y in blocks_of_arrays(np.ones((5, 2)), np.ones(5), rows=2)]
    [2, 2, 1]
    """
    whole("rows", rows, 1)
    named = {"X": X, "y": y} | ({} if weights is None else {"weights": weights})
    for name, part in named.items():
        if not hasattr(part, "__len__"):
            raise ValueError(f"{name} must be an array of rows, got {type(part).__name__}")
    lengths = [len(part) for part in named.values()]
    if len(set(lengths)) > 1:
        raise ValueError(f"{', '.join(named)} must have the same length, got {lengths}")

    def read() -> Iterator[tuple[ArrayLike, ...]]:
        for some in batches(lengths[0], 1, rows):
            yield tuple(part[some] for part in named.values())

    return Again(read)


def blocks_of_parquet(
    path: str | PathLike[str], target: str, columns: Sequence[str] | None = None, rows: int = 65536
) -> Iterable[tuple[Array, Array]]:
    """Return blocks of rows of a Parquet file of numbers.

    Parameters
    ----------
    path : path of the file
    target : str
        Column of the responses.
    columns : sequence of str, optional
        Columns of the inputs; by default all but the target.  No intercept is added.
    rows : int
        Number of rows of a block, at most.
    """
    return Again(partial(_read_parquet, path, target, columns, whole("rows", rows, 1)))


def _read_parquet(
    path: str | PathLike[str], target: str, columns: Sequence[str] | None, rows: int
) -> Iterator[tuple[Array, Array]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install 'temperance[cli]'") from None
    begin = 0
    try:
        with parquet.ParquetFile(path) as file:
            inputs = _inputs(file.schema_arrow.names, target, columns)
            for batch in file.iter_batches(batch_size=rows, columns=[*inputs, target]):
                table = [_numbers(name, batch.column(name), begin) for name in (*inputs, target)]
                yield np.column_stack(table[:-1]), table[-1]
                begin += len(batch)
    except (pyarrow.ArrowException, OSError) as error:
        # pyarrow's message about a damaged or foreign file does not name it.
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise ValueError(f"{str(path)!r} cannot be read as a Parquet file: {reason}") from None


def _inputs(known: Sequence[str], target: str, columns: Sequence[str] | None) -> list[str]:
    """Return the columns of the inputs: those given, or all but the target."""
    inputs = [name for name in known if name != target] if columns is None else list(columns)
    for argument, names in (("target", [target]), ("columns", inputs)):
        for name in names:
            if name not in known:
                raise ValueError(f"{argument} must be among {shown(known)}, got {shown(name)}")
    if target in inputs:
        raise ValueError(f"columns must not hold the target, got {shown(target)} among them")
    several = [name for name in (target, *inputs) if known.count(name) + inputs.count(name) > 2]
    if several:
        raise ValueError(f"columns must have names of their own, got {shown(several[0])} twice")
    if not inputs:
        raise ValueError(f"columns must name at least one input beside {shown(target)}, got none")
    return inputs


def _numbers(name: str, column: Any, begin: int) -> Array:
    """Return a column as floats; the error for a missing value names its row."""
    if column.null_count:
        row = begin + column.is_null().to_pylist().index(True)
        raise ValueError(f"column {name!r} must have no missing values, got one in row {row}")
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"column {name!r} must hold real numbers, got {column.type}")
    return np.asarray(values, dtype=float)
