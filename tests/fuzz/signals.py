"""Studies that are killed or interrupted: nothing is lost, and going on gives the same table.

A study signals itself at some call of a function, which may lie within a transaction, or is
signalled from outside as soon as it has reported some data sets: nothing here depends on speed.
"""

from __future__ import annotations

import functools
import os
import random
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from temperance_studies.study import Ledger, StoreWarning

from .stores import FOLDER, NAME, REPEATS, SETTINGS, STRATEGIES, lines, reference, study

SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Blow:
    """A signal, at a call of the study's functions or after so many data sets were reported."""

    signal: signal.Signals
    call: int = 0
    reported: int = 0


@dataclass(frozen=True)
class Case:
    """What happens to a store: rounds of one study, or of two at once."""

    rounds: tuple[tuple[Blow, ...], ...]


def problem(seed: int) -> Case:
    """Return blows that depend on the seed."""
    chance = random.Random(seed)

    def blow(alone: bool) -> Blow:
        kind = chance.choice(SIGNALS)
        if alone and chance.random() < 0.4:
            return Blow(kind, reported=chance.randint(1, len(SETTINGS) * REPEATS))
        return Blow(kind, call=chance.randint(1, calls()))

    studies = chance.choice([(1,), (1, 1), (2,), (1, 2)])
    return Case(tuple(tuple(blow(count == 1) for _ in range(count)) for count in studies))


def check(case: Case) -> str | None:
    """Return what was lost or is otherwise wrong; ``None`` if all is well."""
    wrong = _checked(case)
    return wrong and f"{wrong} ({case})"


def run(seed: int) -> str | None:
    """Signal studies in a way that depends on the seed; return what is wrong, if anything."""
    wrong = check(problem(seed))
    return wrong and f"seed {seed}: {wrong}"


def _checked(case: Case) -> str | None:
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        store = Path(folder, NAME)
        held = 0
        for blows in case.rounds:
            reported, wrong = _struck(store, blows)
            if wrong:
                return wrong
            found = _data_sets(store)
            if isinstance(found, str):
                return found
            # A study alone commits at most one data set that it did not report.
            if found < held + max(reported) or (len(blows) == 1 and found > held + reported[0] + 1):
                return f"{found} data sets in the store, {held} before, reported {reported}"
            held = found
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a signal damages nothing
            if lines(study(store)) != reference():
                return "another table"
    return None


def _struck(store: Path, blows: tuple[Blow, ...]) -> tuple[list[int], str | None]:
    """Run a study for each blow at the same time; return how many data sets each reported."""
    here = str(Path(__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([here, *sys.path])}
    reported = []
    with ExitStack() as stack, tempfile.TemporaryFile("w+") as errors:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "fuzz.signals", store, str(blow.signal), str(blow.call)],
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    env=environment,
                )
            )
            for blow in blows
        ]
        for process, blow in zip(processes, blows, strict=True):
            count = 0
            for count, _ in enumerate(process.stdout, 1):
                if count == blow.reported:
                    process.send_signal(blow.signal)
            reported.append(count)
            if process.wait() not in (0, -blow.signal):
                errors.seek(0)
                return [], f"exit code {process.returncode}: {errors.read().strip()[-300:]}"
    return reported, None


def _data_sets(store: Path) -> int | str:
    """Return how many data sets a reader finds, or what is wrong."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with Ledger(store) as ledger:
                found = lines(ledger.table())
        except ValueError as error:
            nothing = ("does not exist", "is empty")
            return 0 if str(error).endswith(nothing) else f"reading: {error}"
    if not set(found) <= set(reference()) or len(found) % len(STRATEGIES):
        return "reading gave other rows"
    expected = [StoreWarning] * (len(found) < len(reference()))
    if [each.category for each in caught] != expected:
        return f"reading {len(found)} rows gave the warnings {[str(each) for each in caught]}"
    return len(found) // len(STRATEGIES)


@functools.cache
def calls() -> int:
    """Return how many calls a whole study makes."""
    count = Counter(lambda: None, 0)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        _profiled(Path(folder, NAME), count)
    return count.calls


class Counter:
    """Count calls of the study's functions, and what these call; act at one of them."""

    def __init__(self, act: Callable[[], object], at: int) -> None:
        self.act, self.at, self.calls = act, at, 0

    def __call__(self, frame, event, argument) -> None:
        if frame.f_globals.get("__name__", "").startswith("temperance_studies.study"):
            self.calls += 1
            if self.calls == self.at:
                self.act()


def _profiled(store: Path, counter: Counter, progress=False) -> None:
    before = sys.getprofile()
    sys.setprofile(counter)
    try:
        study(store, progress=progress)
    finally:
        sys.setprofile(before)


def main() -> None:
    """Run the study in a process of its own, which signals itself at a call, unless it is 0."""
    store, number, call = sys.argv[1:]
    counter = Counter(lambda: os.kill(os.getpid(), int(number)), int(call))
    _profiled(Path(store), counter, lambda done, total: print(done, flush=True))


if __name__ == "__main__":
    main()
