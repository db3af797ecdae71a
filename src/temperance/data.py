"""Arrays, data and their weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Labels = NDArray[np.integer[Any]]
Risk = Literal["gibbs", "predictive"]


@dataclass(frozen=True, eq=False)
class Data:
    """Validated observations: inputs (n, d), responses (n,) and positive weights (n,)."""

    X: Array
    y: Array
    weights: Array

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.y)

    @cached_property
    def size(self) -> float:
        """The number of observations: the sum of the weights."""
        return total_weight(self.weights)


def total_weight(weights: Array) -> float:
    """Return the sum of the weights, without a loop if all are one broadcast number."""
    if weights.strides == (0,) and len(weights):
        return len(weights) * float(weights[0])
    return float(weights.sum())


def all_ones(weights: Array) -> bool:
    """Return whether every weight is 1, without a loop if all are one broadcast number."""
    return bool(np.all((weights[:1] if weights.strides == (0,) else weights) == 1.0))


def batches(count: int, elements_each: int, budget: int = 2**22) -> Iterator[slice]:
    """Yield slices of ``range(count)`` whose temporaries have at most ``budget`` elements."""
    step = max(1, budget // max(1, elements_each))
    for begin in range(0, count, step):
        yield slice(begin, min(begin + step, count))
