"""Times of alternatives in one run, so that their ratios mean something on a busy machine.

The clock is that of the process: what other processes do in the meantime does not count.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

Call = Callable[[], Any]
Clock = Callable[[], float]


def seconds(
    calls: dict[str, Call],
    repeats: int = 3,
    budget: float = 20.0,
    clock: Clock = time.process_time,
) -> dict[str, float]:
    """Return the best time of each call; their repetitions take turns.

    A call that takes long is repeated less, for ``budget`` seconds at most after the first time.
    """
    best: dict[str, float] = {}
    spent = dict.fromkeys(calls, 0.0)
    for _ in range(repeats):
        for name, call in calls.items():
            if name in best and spent[name] + best[name] > budget:
                continue
            best[name] = min(best.get(name, float("inf")), once(call, clock))
            spent[name] += best[name]
    return best


def once(call: Call, clock: Clock = time.process_time) -> float:
    """Time one call, whatever it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = clock()
        call()
        return clock() - begin


def peak_bytes(call: Call) -> int:
    """Return the most memory that a call held at a time, beyond what was held before."""
    tracemalloc.start()
    try:
        once(call)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
