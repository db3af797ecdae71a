"""Progress of a study, with the remaining time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int], None]


@contextmanager
def reporting(progress: Report | bool | None, total: int) -> Iterator[Report]:
    """Return a context with a function to be called with the data sets done and the total.

    Parameters
    ----------
    progress : function, False or None
        ``None`` draws a bar with the remaining time if standard error is a terminal.
    total : int
    """
    if callable(progress):
        yield progress
    elif progress is False or not (progress or sys.stderr.isatty()):
        yield lambda done, total: None
    else:
        with _bar(total) as report:
            yield report


@contextmanager
def _bar(total: int) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("data sets"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("data sets", total=total)
        yield lambda done, total: bar.update(task, completed=done, total=total)
