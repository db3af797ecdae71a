"""Output: results on stdout; errors on stderr; progress on stderr if it is a terminal."""

from __future__ import annotations

import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from temperance.app.cli import CLOSED_PIPE, stop_writing
from temperance.messages import TemperanceWarning

QUIET_SECONDS = 2.0
BAD_INPUT, BUG, INTERRUPTED = 2, 1, 130


TRAILING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$", re.M)


class Output(Console):
    """A console on the current stdout, without trailing blanks."""

    def __init__(self) -> None:
        super().__init__(highlight=False)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, without the blanks that fill up lines."""
        with self.capture() as captured:
            super().print(*objects, **options)
        sys.stdout.write(TRAILING.sub(r"\1", captured.get()))


def errors() -> Console:
    """Return a console on the current stderr."""
    return Console(stderr=True, highlight=False)


@contextmanager
def one_line_errors(debug: bool, reword: Callable[[str], str] = str) -> Iterator[None]:
    """Turn exceptions into one line on stderr and an exit code; ``debug`` raises them.

    Messages about bad input go through ``reword``.  A closed output pipe, as by ``head``, is
    detected here at the latest.
    """
    try:
        yield
        sys.stdout.flush()
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        _leave("interrupted", INTERRUPTED)
    except BrokenPipeError:
        stop_writing()
        raise typer.Exit(CLOSED_PIPE) from None
    except (ValueError, OSError) as error:
        if debug:
            raise
        _leave(reword(_line(error)), BAD_INPUT)
    except ModuleNotFoundError as error:
        if debug:
            raise
        _leave(f"this needs {error.name}: pip install 'temperance[cli]'", BAD_INPUT)
    except Exception as error:
        if debug:
            raise
        _leave(
            f"unexpected {type(error).__name__}: {_line(error)}; --debug shows where it came from",
            BUG,
        )


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print each warning of the library as one line on stderr, without its location."""
    before = warnings.showwarning

    def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, TemperanceWarning):
            errors().print(f"temperance: {printable(str(message))}", markup=False, soft_wrap=True)
        else:
            before(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror.lower()}" if error.filename else error.strerror
    return " ".join(str(error).split())


def _leave(message: str, code: int) -> None:
    errors().print(f"temperance: {printable(message)}", markup=False, soft_wrap=True)
    raise typer.Exit(code)


def printable(text: str) -> str:
    """Return text with control characters escaped, since they could control a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class TimeLeft(TimeRemainingColumn):
    """The remaining time, from recent steps, or as given by the caller if steps differ."""

    def render(self, task: Task) -> Text:
        """Show the given time, if there is one."""
        given = task.fields.get("left")
        if given is None:
            return super().render(task)
        minutes, seconds = divmod(round(given), 60)
        return Text(f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}", style="progress.remaining")


class Steps:
    """A progress bar that appears after two seconds, and only on a terminal.

    While the number of steps is unknown, or if it is one, the bar pulses.
    """

    def __init__(self) -> None:
        console = errors()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeLeft(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=None)
        self._timer = threading.Timer(QUIET_SECONDS, self._progress.start)
        self._timer.daemon = True

    def __enter__(self) -> Steps:
        """Show the bar after two seconds."""
        self._timer.start()
        return self

    def __exit__(self, *failure: object) -> None:
        """Remove the bar."""
        self._timer.cancel()
        self._timer.join()
        self._progress.stop()

    def expect(self, total: int) -> None:
        """Set the number of steps."""
        self._progress.update(self._task, total=total if total > 1 else None)

    def say(self, doing: str) -> None:
        """Set the description of the current work."""
        self._progress.update(self._task, description=doing)

    def step(self, left: float | None = None) -> None:
        """Count one step; ``left`` are the remaining seconds, if the caller knows them."""
        self._progress.update(self._task, advance=1, left=left)
