"""Times of alternatives in one run, so that their ratios mean something on a busy machine.

The clock is that of the process: what other processes do in the meantime does not count.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.record import Record

Call = Callable[[], Any]


def compare(
    section: str, size: str, ours: dict[str, tuple[Call, str]], theirs: dict[str, Call]
) -> Iterator[Record]:
    """Yield a record of each call, ours with the alternatives that stand beside them."""
    took = seconds({work: call for work, (call, _) in ours.items()} | theirs)
    for work, (_, beside) in ours.items():
        yield Record(section, work, size, took[work], beside)
    for work in theirs:
        yield Record(section, work, size, took[work])


def seconds(calls: dict[str, Call], repeats: int = 3, budget: float = 4.0) -> dict[str, float]:
    """Return the best time of each call; their repetitions take turns.

    A call that takes long is repeated less: not when its times would sum to more than ``budget``.
    """
    best: dict[str, float] = {}
    spent = dict.fromkeys(calls, 0.0)
    for _ in range(repeats):
        for name, call in calls.items():
            if name in best and spent[name] + best[name] > budget:
                continue
            took = once(call)
            best[name] = min(best.get(name, took), took)
            spent[name] += took
    return best


def once(call: Call, clock: Callable[[], float] = time.process_time) -> float:
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
