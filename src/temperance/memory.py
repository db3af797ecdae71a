"""What would not fit into memory is refused before it starts."""

from __future__ import annotations

from pathlib import Path

MEMINFO = Path("/proc/meminfo")


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
