"""One case of a kind, run within limits."""

from __future__ import annotations

import importlib
import re
import signal
import time
from dataclasses import dataclass
from typing import Any

from .watchdog import OutOfTimeError, limited

SLOW = 8.0  # seconds of processor time that no calibration may take


@dataclass(frozen=True)
class Result:
    """How one case ended: ``failure`` in one line, or None."""

    kind: str
    seed: int
    ending: str
    failure: str | None
    seconds: float


def case(job: tuple[str, int, float]) -> Result:
    """Run one case within the hard limit."""
    kind, seed, limit = job
    module = module_of(kind)
    begin = time.process_time()
    ending, failure, seconds = "well", None, None
    try:
        with limited(limit):
            if hasattr(module, "examine"):
                outcome = module.examine(seed)
                failure, seconds = outcome.failure, outcome.seconds
                ending = without_numbers(outcome.ending)[:100]
            else:
                failure = module.run(seed)
    except OutOfTimeError as error:
        ending, failure = "out of time", f"{error} ({limit:g} s) | {described(module, seed)}"
    except Exception as error:  # noqa: BLE001
        ending = "traceback"
        failure = f"{type(error).__name__}: {error} | {described(module, seed)}"
    if seconds is None:
        seconds = time.process_time() - begin
    if failure is None and seconds > SLOW:
        failure = f"{seconds:.1f} s of processor time | {described(module, seed)}"
    if failure is not None and ending == "well":
        ending = "wrong"
    return Result(kind, seed, ending, failure, seconds)


def described(module: Any, seed: int) -> str:
    """Return the problem's line where the module has problems."""
    return str(module.problem(seed)) if hasattr(module, "problem") else f"seed {seed}"


def module_of(kind: str) -> Any:
    """Import what runs cases of a kind."""
    return importlib.import_module(f"{__package__}.{kind}")


def leave_interrupts() -> None:
    """Let the first process alone answer an interruption."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def without_numbers(text: str) -> str:
    """Replace numbers, so that messages that differ in them only are one."""
    return re.sub(r"-?\b\d[\d.]*(e[+-]?\d+)?", "#", text)
