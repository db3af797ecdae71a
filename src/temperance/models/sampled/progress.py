"""Progress of a ladder."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from temperance.models.sampled.ladder import Report


def reporter(progress: Report | bool | None) -> Report | None:
    """Return the function that reports progress, or None.

    Parameters
    ----------
    progress : function, bool or None
        ``None`` draws a line if standard error is a terminal and rich is installed.
    """
    if callable(progress):
        return progress
    wanted = progress or (progress is None and sys.stderr.isatty())
    return _Line() if wanted and find_spec("rich") else None


class _Line:
    """One line on standard error, rewritten at each rung and removed at the end."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)

    def __call__(self, beta: float, upper: float, rungs: int) -> None:
        done = beta >= upper
        line = "" if done else f"climbing: rung {rungs}, beta {beta:.3g} of {upper:.3g}"
        self._console.print(f"{line:<50}", end="\r", highlight=False)
