"""Memory and threads: what would not fit is refused, small problems get one thread."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

MEMINFO = Path("/proc/meminfo")
# BLAS threads slow small problems down, much on a busy machine.
LARGE = 100_000_000  # elements of the data beyond which threads pay


def available_bytes() -> float:
    """Return the memory that is free for use; infinite where the system does not say."""
    try:
        lines = MEMINFO.read_text().splitlines()
    except OSError:
        return float("inf")
    for line in lines:
        if line.startswith("MemAvailable:"):
            return 1024.0 * float(line.split()[1])
    return float("inf")


def refuse_too_large(name: str, elements: float, itemsize: int = 8) -> None:
    """Refuse an array of so many elements if it would not fit into memory."""
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
    if elements > LARGE or all(each.num_threads == 1 for each in _controller().lib_controllers):
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")
