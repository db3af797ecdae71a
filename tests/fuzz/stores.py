"""Damaged stores: a study gives the table of the undamaged one, or one line with the store's name.

Whoever only reads a store gets that table, or a part of it under a warning, or such a line.
"""

from __future__ import annotations

import functools
import os
import random
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import temperance_studies.study
from temperance.strategies import Bayes, KFold, Naive
from temperance_studies.settings import GaussianNoise, MeanSetting
from temperance_studies.study import Ledger, StoreWarning
from temperance_studies.study.identity import digest
from temperance_studies.study.measures import Result

NAME = "study.sqlite"
SETTINGS = {f"mean of {n}": MeanSetting(n, GaussianNoise(1.0), variance=1.0) for n in (8, 9)}
STRATEGIES = {"bayes": Bayes(), "naive": Naive(), "folds": KFold(2)}
REPEATS = 12
PAGE = 4096

# Without waiting for a disk, where the system offers that.
FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

Files = dict[str, bytes]  # by what their names end in: nothing for the main file, "-wal"


@dataclass(frozen=True)
class Case:
    """The files of a store, and what was done to them."""

    told: str
    files: Files


def perform(task):
    """Make up results instead of computing them; some numbers that are hard to store are among."""
    identity = digest(task.setting)
    results = []
    for name, _ in task.strategies:
        chance = random.Random(f"{identity} {task.repetition} {name}")
        numbers = [chance.expovariate(1.0) for _ in Result._fields]
        numbers[chance.randrange(len(numbers))] = chance.choice(
            [float("nan"), float("inf"), -0.0, 0.0, 3.0, 5e-324, 1e300]
        )
        results.append((name, Result(*numbers)))
    return identity, task.repetition, results


def study(store, repeats=REPEATS, progress=False):
    """Run the study, or go on with it, by made-up results."""
    # The function of the same name hides the module.
    with mock.patch.object(sys.modules["temperance_studies.study.compare"], "perform", perform):
        return temperance_studies.study.compare(
            SETTINGS, STRATEGIES, repeats, 0, 1, store=store, progress=progress
        )


@functools.cache
def reference() -> tuple[tuple, ...]:
    """Return the table of the undamaged store."""
    return lines(study(None))


def lines(table) -> tuple[tuple, ...]:
    """Return a table in such a form that NaN equals NaN."""
    return tuple(tuple(map(repr, row)) for row in table.itertuples(index=False))


class Stop(Exception):
    """End a study early."""


@functools.cache
def originals() -> dict[str, Files]:
    """Return undamaged stores: of a study that has ended, and of some that were killed."""
    found: dict[str, Files] = {}
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:

        def copy_at(done: int, name: str, label: str) -> Callable[[int, int], None]:
            def progress(number: int, total: int) -> None:
                if number == done:  # the log is still there, as after a kill
                    found[label] = files_of(Path(folder, name))
                    raise Stop

            return progress

        study(Path(folder, "a"))
        found["finished"] = files_of(Path(folder, "a"))
        for name, first, done in (("b", 0, 17), ("c", 5, 9)):
            if first:
                study(Path(folder, name), first)
            label = f"killed at {done} after {first} repeats"
            try:
                study(Path(folder, name), progress=copy_at(done, name, label))
            except Stop:
                pass
    return found


def files_of(store: Path) -> Files:
    """Return the content of the main file and of the log beside it."""
    return {
        end: Path(f"{store}{end}").read_bytes()
        for end in ("", "-wal")
        if Path(f"{store}{end}").exists()
    }


def problem(seed: int) -> Case:
    """Return a store that was damaged in a way that depends on the seed."""
    chance = random.Random(seed)
    label = chance.choice(sorted(originals()))
    files = dict(originals()[label])
    end = chance.choice(sorted(files))
    way = chance.choice(list(WAYS))
    where = WAYS[way](chance, files, end)
    return Case(f"{label}; {way}{f' of {NAME}{end}' if where else ''} {where}".strip(), files)


def truncated(chance, files, end):
    size = len(files[end])
    length = chance.choice([size * 99 // 100, chance.randrange(size), size - PAGE, size - 1])
    files[end] = files[end][:length]
    return f"to {length}"


def flipped(chance, files, end):
    content = bytearray(files[end])
    places = sorted(chance.randrange(len(content)) for _ in range(chance.choice([1, 1, 1, 2, 8])))
    for place in places:
        content[place] ^= 1 << chance.randrange(8)
    files[end] = bytes(content)
    return f"at {places}"


def header_changed(chance, files, end):
    content = bytearray(files[end])
    # Of the file, of a page or of a frame of the log.
    begin = chance.choice([0, PAGE * chance.randrange(1 + len(content) // PAGE)])
    place = min(begin + chance.randrange(100), len(content) - 1)
    content[place] = chance.choice([0, 1, 2, 255, chance.randrange(256)])
    files[end] = bytes(content)
    return f"at {place}: {content[place]}"


def overwritten(chance, files, end):
    content = bytearray(files[end])
    begin = PAGE * chance.randrange(1 + len(content) // PAGE) + chance.choice([0, 0, 1000, 3000])
    length = chance.choice([PAGE, PAGE, 100, 10])
    length = min(length, max(len(content) - begin, 0))
    zeros = chance.random() < 0.6
    content[begin : begin + length] = bytes(length) if zeros else chance.randbytes(length)
    files[end] = bytes(content)
    return f"from {begin}, {length} {'zeros' if zeros else 'random'}"


def page_copied(chance, files, end):
    content = bytearray(files[end])
    pages = len(content) // PAGE
    source, target = (PAGE * chance.randrange(max(pages, 1)) for _ in range(2))
    content[target : target + PAGE] = content[source : source + PAGE]
    files[end] = bytes(content[: len(files[end])])
    return f"from {source} to {target}"


def log_deleted(chance, files, end):
    files.pop("-wal", None)
    return ""


def log_exchanged(chance, files, end):
    other = chance.choice(sorted(originals()))
    files["-wal"] = originals()[other].get("-wal", chance.randbytes(5000))
    return f"by that of {other}"


def older_file(chance, files, end):
    files[""] = originals()[chance.choice(sorted(originals()))][""]
    return "exchanged"


def extended(chance, files, end):
    length = chance.choice([1, 100, PAGE, 3 * PAGE])
    files[end] += bytes(length) if chance.random() < 0.5 else chance.randbytes(length)
    return f"by {length}"


def edited(chance, files, end):
    """Change values by SQL, which leaves the file in order and its checksums wrong."""
    field, repetition = chance.choice(Result._fields), chance.randrange(REPEATS)
    statement = chance.choice(
        [
            f"UPDATE results SET {field} = NULL WHERE repetition = {repetition}",
            f"UPDATE results SET {field} = {field} + 1 WHERE repetition < {repetition}",
            f"UPDATE results SET {field} = 'x' WHERE repetition = {repetition}",
            f"UPDATE results SET repetition = repetition + 1 WHERE repetition = {repetition}",
            "UPDATE results SET key = CAST(x'ff00fe' AS TEXT) WHERE key = (SELECT min(key) FROM "
            "results)",
            "UPDATE results SET strategy = (SELECT max(strategy) FROM results)",
            "DELETE FROM results WHERE repetition % 3 = 1",
            "DELETE FROM results",
            "UPDATE names SET name = name || 'x' WHERE kind = 'strategy'",
            "UPDATE names SET repeats = 1 WHERE kind = 'strategy'",
            "DELETE FROM names WHERE name = 'naive'",
            "DELETE FROM names WHERE kind = 'setting'",
            "DELETE FROM names",
            "UPDATE meta SET value = replace(value, '8', '7')",
            "DELETE FROM meta WHERE key = 'description'",
            "DROP TABLE results",
            "ALTER TABLE results RENAME COLUMN beta TO theta",
            "CREATE INDEX more ON results (repetition)",
        ]
    )
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        store = Path(folder, NAME)
        put(files, store)
        connection = sqlite3.connect(store)
        with connection:
            connection.execute(statement)
        connection.close()
        files.clear()
        files.update(files_of(store))
    return f"by {statement}"


WAYS = {
    "truncation": truncated,
    "flipped bits": flipped,
    "changed header": header_changed,
    "part overwritten": overwritten,
    "page copied": page_copied,
    "log deleted": log_deleted,
    "log exchanged": log_exchanged,
    "main file": older_file,
    "extension": extended,
    "edit": edited,
}


def put(files: Files, store: Path) -> None:
    """Write the files of a store."""
    for end, content in files.items():
        Path(f"{store}{end}").write_bytes(content)


def check(case: Case) -> str | None:
    """Return what is wrong when the store is read and gone on with; ``None`` if all is well."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        read, resumed = Path(folder, "read", NAME), Path(folder, "resumed", NAME)
        for store in (read, resumed):
            store.parent.mkdir()
            put(case.files, store)
        wrong = (
            _check_reading(read)
            or _check_resuming(resumed)
            # What was refused may be so again, what was mended is whole.
            or _check_reading(resumed)
        )
        return wrong and f"{wrong} ({case.told})"


def run(seed: int) -> str | None:
    """Damage a store in a way that depends on the seed; return what is wrong, if anything."""
    wrong = check(problem(seed))
    return wrong and f"seed {seed}: {wrong}"


def _check_reading(store: Path) -> str | None:
    table, warned, wrong = _outcome(store, lambda: _read(store))
    if wrong or table is None:
        return wrong and f"reading: {wrong}"
    if not set(table) <= set(reference()) or len(set(table)) != len(table):
        return "reading gave other rows"
    if len(table) < len(reference()) and not warned:
        return f"reading gave {len(table)} of {len(reference())} rows silently"
    return None


def _check_resuming(store: Path) -> str | None:
    table, _, wrong = _outcome(store, lambda: study(store))
    if wrong or table is None:
        return wrong and f"resuming: {wrong}"
    if table != reference():
        return "resuming gave another table"
    again, warned, wrong = _outcome(store, lambda: _read(store))
    if again != reference() or warned or wrong:
        return f"the store was not mended: {wrong or warned or 'another table'}"
    return None


def _read(store: Path):
    with Ledger(store) as ledger:
        return ledger.table()


def _outcome(store: Path, work: Callable):
    """Return the table, whether a warning came with it, and what is wrong with the words."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            table = lines(work())
        except ValueError as error:
            if type(error) is not ValueError:
                return None, False, f"{type(error).__name__}: {error}"
            table, words = None, [str(error)]
        except Exception as error:
            return None, False, f"{type(error).__name__}: {error}"
        else:
            words = []
    for each in caught:
        if each.category is not StoreWarning:
            return None, True, f"{each.category.__name__}: {each.message}"
    words += [str(each.message) for each in caught]
    for each in words:
        if NAME not in each or not each.isprintable():
            return None, True, f"not one line with the store's name: {each!r}"
    return table, bool(caught), None
