"""One line that says how far a computation is."""

from __future__ import annotations

import sys
from collections.abc import Callable

from temperance.models.sampled.ladder import Report


def reporter(progress: Report | bool | None) -> Report | None:
    """Return the function that reports progress of a ladder, or None.

    Parameters
    ----------
    progress : function, bool or None
        ``None`` draws a line if standard error is a terminal, or in a notebook.
    """
    if callable(progress):
        return progress
    return line if _wanted(progress) else None


def writer(progress: Callable[[str], None] | bool | None) -> Callable[[str], None] | None:
    """Return the function that takes a line of text, or None; likewise."""
    if callable(progress):
        return progress
    return write if _wanted(progress) else None


def line(beta: float, upper: float, rungs: int) -> None:
    """Write how far a ladder is."""
    write("" if beta >= upper else f"climbing: rung {rungs}, beta {beta:.3g} of {upper:.3g}")


def write(text: str) -> None:
    """Write one line on standard error, in place of the last; no text removes it."""
    # Notebooks, too, take a carriage return as the beginning of the same line.
    print(f"\r{text:<70}", end="" if text else "\r", file=sys.stderr, flush=True)


def _wanted(progress: bool | None) -> bool:
    return bool(progress) or (progress is None and (sys.stderr.isatty() or _in_notebook()))


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules
