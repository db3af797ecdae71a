"""Identical rows: which they are, and whether they are copies."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, Data, Labels

MANY = 2**16  # from so many rows on sorting takes longer than the sums


def number_distinct(columns: Iterable[Array | Labels]) -> NDArray[np.intp]:
    """Return numbers for the distinct tuples (c1[i], c2[i], ...), in lexicographic order.

    Columns after the first few that make all tuples distinct are not read.
    """
    labels: NDArray[np.intp] | None = None
    for column in columns:
        codes = _ranks(column)
        if labels is None:
            labels = codes
        else:
            labels = _ranks(labels * (codes.max() + 1) + codes)
        if labels.max() + 1 == len(labels):
            break
    if labels is None:
        raise ValueError("columns must hold at least one column, got 0")
    return labels


def _ranks(values: Array | Labels) -> NDArray[np.intp]:
    """Return numbers for the distinct values, ascending."""
    if not all_distinct(values):
        return np.unique(values, return_inverse=True)[1]
    ranks = np.empty(len(values), dtype=np.intp)
    ranks[np.argsort(values)] = np.arange(len(values))
    return ranks


def all_distinct(values: Array | Labels) -> bool:
    """Return whether no two values are equal.

    Examples
    --------
    >>> all_distinct(np.array([0.5, 2.0, -1.0])), all_distinct(np.array([0.5, 0.0, -0.0]))
    (True, False)
    """
    ordered = np.sort(values)
    return bool(np.all(ordered[1:] != ordered[:-1]))


def first_places(labels: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Return the first position of each label from 0 to ``count - 1``.

    Examples
    --------
    >>> first_places(np.array([1, 0, 1, 2, 0]), 3)
    array([1, 0, 3])
    """
    first = np.zeros(count, dtype=np.intp)
    first[labels[::-1]] = np.arange(len(labels))[::-1]
    return first


def label_type(count: int) -> type[np.signedinteger[Any]]:
    """Return the smallest integer type for ``count`` labels: smaller types are faster."""
    return np.int8 if count <= 2**7 else np.int16 if count <= 2**15 else np.intp


def sorting_order(labels: Labels, count: int) -> NDArray[np.intp]:
    """Return the stable order that sorts labels below ``count``."""
    return np.argsort(labels.astype(label_type(count), copy=False), kind="stable")


def members_of(labels: Labels, count: int) -> list[NDArray[np.intp]]:
    """Return the positions of each label below ``count``, ascending."""
    counts = np.bincount(labels, minlength=count)
    return np.split(sorting_order(labels, count), np.cumsum(counts)[:-1])


def number_rows(data: Data) -> NDArray[np.intp]:
    """Return numbers for the distinct rows, sorted by response, then inputs."""
    return _number(data.y, data.X)


def _number(first: Array, others: Array) -> NDArray[np.intp]:
    """Return numbers for the distinct rows of a first column and others (n, d), sorted."""
    if others.shape[1] <= len(others):
        return number_distinct(chain([first], others.T))
    labels = number_distinct([first])
    while int(labels.max()) + 1 < len(labels):
        # With many columns, read only those that differ between rows of the same label.
        same = first_places(labels, int(labels.max()) + 1)[labels]
        differs = (others != others[same]).any(axis=0)
        if not differs.any():
            break
        labels = number_distinct([labels, others[:, differs.argmax()]])
    return labels


def distinct_rows(data: Data) -> tuple[Data, NDArray[np.intp]]:
    """Return the distinct rows, sorted, with summed weights, and the index of each row there."""
    number = number_rows(data)
    first = first_places(number, int(number.max()) + 1)
    weights = np.bincount(number, weights=data.weights).astype(float)
    return Data(data.X[first], data.y[first], weights), number


def joined_rows(data: Data) -> Data:
    """Return the data with identical rows joined, sorted; many distinct rows are not sorted.

    Fewer rows are sorted, so that sums over them do not depend on the order of the data, to the
    last bit.
    """
    if len(data) >= MANY and all_distinct(data.y):
        return data
    return distinct_rows(data)[0]


def takes_few_values(rows: Data) -> bool:
    """Return whether equal rows must be different observations; ``rows`` are distinct, weighted.

    That is so if most observations repeat another, most have inputs that occur with several
    responses, and the responses repeat from input to input.  Copies of one observation, or a large
    weight on it, would repeat its response as well.
    """
    half = rows.size / 2
    if len(rows) > half:
        return False
    X = rows.X
    inputs = _number(X[:, 0], X[:, 1:]) if X.shape[1] else np.zeros(len(rows), dtype=int)
    several_responses = np.bincount(inputs)[inputs] > 1
    same_inputs = inputs.max() == 0
    responses = len(np.unique(rows.y))
    return bool(
        rows.weights[several_responses].sum() >= half
        and (same_inputs or responses <= len(rows) / 2)
    )
