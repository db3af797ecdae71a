"""Memory and threads: refuse what does not fit, use one thread for small problems."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

MEMINFO = Path("/proc/meminfo")
# Several BLAS threads slow small problems down, especially on a busy machine.
LARGE = 100_000_000  # elements of the data beyond which threads are faster


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
    if elements > LARGE or all(each.num_threads == 1 for each in _controller().lib_controllers):
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")
