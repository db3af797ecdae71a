"""Numbering what is distinct."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from temperance.types import Array


def number_distinct(columns: Iterable[Array]) -> NDArray[np.intp]:
    """Give numbers to the distinct tuples (c1[i], c2[i], ...) in lexicographic order.

    Columns after the one that tells all tuples apart are not looked at.
    """
    labels: NDArray[np.intp] | None = None
    for column in columns:
        _, codes = np.unique(column, return_inverse=True)
        if labels is None:
            labels = codes
        else:
            _, labels = np.unique(labels * (codes.max() + 1) + codes, return_inverse=True)
        if labels.max() + 1 == len(labels):
            break
    if labels is None:
        raise ValueError("columns must hold at least one column, got 0")
    return labels
