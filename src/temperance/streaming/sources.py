r"""Blocks of rows from arrays on disk and from Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temperance.types import Array
from temperance.validation import shown, whole


def blocks_of_arrays(
    X: Any, y: Any, weights: Any = None, rows: int = 65536
) -> Iterator[tuple[ArrayLike, ...]]:
    """Cut arrays into blocks of rows.

    Parameters
    ----------
    X, y, weights : arrays of n rows
        Anything that gives a slice of itself: numpy's memory-mapped arrays, HDF5 or Zarr datasets.
    rows : int
        Rows of a block.

    Examples
    --------
    >>> import numpy as np
    >>> [len(y) for X, y in blocks_of_arrays(np.ones((5, 2)), np.ones(5), rows=2)]
    [2, 2, 1]
    """
    whole("rows", rows, 1)
    parts = (X, y) if weights is None else (X, y, weights)
    lengths = [len(part) for part in parts]
    if len(set(lengths)) > 1:
        names = ("X", "y", "weights")[: len(parts)]
        raise ValueError(f"{', '.join(names)} must have the same length, got {lengths}")
    for begin in range(0, lengths[0], rows):
        yield tuple(part[begin : begin + rows] for part in parts)


def blocks_of_parquet(
    path: str | PathLike[str], target: str, columns: Sequence[str] | None = None, rows: int = 65536
) -> Iterator[tuple[Array, Array]]:
    """Read a Parquet file of numbers block by block.

    Parameters
    ----------
    path : path of the file
    target : str
        Column of the responses.
    columns : sequence of str, optional
        Columns of the inputs; by default all but the target.  No intercept is added.
    rows : int
        Rows of a block, at most.
    """
    try:
        from pyarrow import parquet
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install 'temperance[cli]'") from None
    whole("rows", rows, 1)
    with parquet.ParquetFile(path) as file:
        known = file.schema_arrow.names
        inputs = [name for name in known if name != target] if columns is None else list(columns)
        for argument, names in (("target", [target]), ("columns", inputs)):
            for name in names:
                if name not in known:
                    raise ValueError(f"{argument} must be among {shown(known)}, got {name!r}")
        for batch in file.iter_batches(batch_size=rows, columns=[*inputs, target]):
            table = [_numbers(name, batch.column(name)) for name in (*inputs, target)]
            yield np.column_stack(table[:-1]), table[-1]


def _numbers(name: str, column: Any) -> Array:
    """Return a column as floats; missing entries become nan, which is refused by its place."""
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"column {name!r} must hold real numbers, got {column.type}")
    return np.asarray(values, dtype=float)
