"""Arrays, data and their weights; memory and threads for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Array = NDArray[np.floating[Any]]
Labels = NDArray[np.integer[Any]]
Risk = Literal["gibbs", "predictive"]

MEMINFO = Path("/proc/meminfo")
# Several BLAS threads slow small problems down, especially on a busy machine.
LARGE = 100_000_000  # elements of the data beyond which threads are faster


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


def available_bytes() -> float:
    """Return the available memory in bytes; infinite if the system does not report it."""
    try:
        lines = MEMINFO.read_text().splitlines()
    except OSError:
        return float("inf")
    for line in lines:
        if line.startswith("MemAvailable:"):
            return 1024.0 * float(line.split()[1])
    return float("inf")


def refuse_too_large(name: str, elements: float, itemsize: int = 8) -> None:
    """Refuse an array of ``elements`` elements if it does not fit into memory."""
    needed, available = elements * itemsize, available_bytes()
    if needed > available:
        raise ValueError(
            f"{name} would take {needed:.3g} bytes of memory, {available:.3g} are available"
        )


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def threads_for(elements: int) -> AbstractContextManager[Any]:
    """Limit BLAS to one thread inside the context, unless the data have very many elements."""
    threads = [each.num_threads for each in _controller().lib_controllers]
    if elements > LARGE or max(threads, default=1) == 1:
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")
