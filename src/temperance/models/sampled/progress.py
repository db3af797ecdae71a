"""Progress of a ladder."""

from __future__ import annotations

import sys

from temperance.models.sampled.ladder import Report


def reporter(progress: Report | bool | None) -> Report | None:
    """Return the function that reports progress, or None.

    Parameters
    ----------
    progress : function, bool or None
        ``None`` draws a line if standard error is a terminal, or in a notebook.
    """
    if callable(progress):
        return progress
    wanted = progress or (progress is None and (sys.stderr.isatty() or _in_notebook()))
    return line if wanted else None


def line(beta: float, upper: float, rungs: int) -> None:
    """Write one line on standard error, in place of the last; remove it at the end."""
    text = "" if beta >= upper else f"climbing: rung {rungs}, beta {beta:.3g} of {upper:.3g}"
    # Notebooks, too, take a carriage return as the beginning of the same line.
    print(f"\r{text:<50}", end="" if text else "\r", file=sys.stderr, flush=True)


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules
