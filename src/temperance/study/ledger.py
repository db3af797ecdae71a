r"""Where a study keeps its results: one SQLite file, whole after every kill.

Each result is committed under the hash of all that determines it.  The file also holds the
description of the study, and is refused for any other.
"""

from __future__ import annotations

import io
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from temperance.files import write_whole
from temperance.study.identity import canonical, digest

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "temperance study, format 2"

# The generation of the numbers.  Raise it with every change that makes a study give other numbers
# than before, be it to data, seeds, strategies, models or optimisers: older stores are then
# refused.  A digest of the source would do so after any edit, of a comment as well, and make
# resuming useless while the library is worked on; tests/test_study.py compares some numbers of
# every model with those of this generation, so that a change does not go unnoticed.
NUMBERS = 2

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE names (
    kind TEXT, name TEXT, setting TEXT, identity TEXT NOT NULL, description TEXT NOT NULL,
    place INTEGER NOT NULL, PRIMARY KEY (kind, name, setting)
) WITHOUT ROWID;
CREATE TABLE results (
    key TEXT PRIMARY KEY, setting TEXT NOT NULL, repetition INTEGER NOT NULL,
    strategy TEXT NOT NULL, beta REAL, alpha REAL, risk REAL, excess REAL, best_beta REAL,
    best_risk REAL, bayes_risk REAL, estimated_risk REAL, estimated_error REAL, seconds REAL
) WITHOUT ROWID;
"""


class Result(NamedTuple):
    """One line of a study: what a strategy chose on one data set, and how good that was."""

    beta: float
    alpha: float
    risk: float
    excess: float
    best_beta: float
    best_risk: float
    bayes_risk: float
    estimated_risk: float
    estimated_error: float
    seconds: float


COLUMNS = ("setting", "repetition", "strategy", *Result._fields)


def _write_ahead(connection: sqlite3.Connection, seconds: float = 60.0) -> None:
    """Switch to write-ahead logging, for which SQLite itself does not wait for other processes."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


class Ledger:
    """Results of one study.

    Parameters
    ----------
    path : path or None
        The file, made if it does not exist; ``None`` keeps the results in memory.
    description : mapping or None
        What the study is, in plain values; ``None`` takes it from an existing file.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, description: Mapping[str, Any] | None = None
    ) -> None:
        self.path = None if path is None else Path(path)
        if self.path is not None and not self.path.parent.is_dir():
            raise ValueError(f"store must lie in an existing folder, got {str(path)!r}")
        if description is None and (self.path is None or not self.path.exists()):
            raise ValueError(f"store {str(path)!r} does not exist")
        self._connection = sqlite3.connect(
            ":memory:" if self.path is None else self.path, timeout=60, isolation_level=None
        )
        try:
            self.description = self._opened(description)
        except sqlite3.OperationalError as error:
            self.close()
            raise ValueError(f"store {str(path)!r} cannot be opened: {error}") from None
        except sqlite3.DatabaseError as error:
            self.close()
            raise ValueError(f"store {str(path)!r} is no study: {error}") from None
        except ValueError:
            self.close()
            raise

    def _opened(self, description: Mapping[str, Any] | None) -> dict[str, Any]:
        execute = self._connection.execute
        # Only one of several processes that open a new file at once may fill it.
        if not execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            if description is None:
                raise ValueError(f"store {str(self.path)!r} is empty")
            if self.path is not None:
                _write_ahead(self._connection)
            execute("BEGIN IMMEDIATE")
            if not execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in SCHEMA.strip().split(";\n"):
                    execute(statement)
                entries = (("format", FORMAT), ("description", canonical(description)))
                self._connection.executemany("INSERT INTO meta VALUES (?, ?)", entries)
            execute("COMMIT")
        if not execute("SELECT count(*) FROM sqlite_master WHERE name = 'meta'").fetchone()[0]:
            raise ValueError(f"store {str(self.path)!r} is a database, but no study")
        meta = dict(execute("SELECT key, value FROM meta").fetchall())
        if meta.get("format") != FORMAT:
            raise ValueError(
                f"store {str(self.path)!r} must be of {FORMAT!r}, got {meta.get('format')!r}"
            )
        stored: dict[str, Any] = json.loads(meta["description"])
        if description is not None:
            self._refuse_another(stored, json.loads(canonical(description)))
        execute("PRAGMA synchronous=NORMAL")
        return stored

    def _refuse_another(self, stored: dict[str, Any], wanted: dict[str, Any]) -> None:
        differ = [key for key in sorted(stored | wanted) if stored.get(key) != wanted.get(key)]
        if "numbers" in differ:
            older = stored.get("numbers", 0) < wanted.get("numbers", 0)
            raise ValueError(
                f"store {str(self.path)!r} was made by a version of the library that gives other "
                f"numbers, {'before' if older else 'after'} this one (generation "
                f"{stored.get('numbers', 0)} in the file, {wanted.get('numbers', 0)} now); "
                "take another file, or delete this one to compute anew"
            )
        if differ:
            told = "; ".join(
                f"{key}: {_short(stored.get(key), wanted.get(key))} in the file, "
                f"{_short(wanted.get(key), stored.get(key))} asked for"
                for key in differ
            )
            raise ValueError(
                f"store {str(self.path)!r} holds another study ({told}); take another file"
            )

    def name(
        self, settings: Mapping[str, Any], strategies: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Enter the names of settings, and of the strategies of each; never for something else."""
        rows = [
            ("setting", name, "", digest(setting), canonical(setting), place)
            for place, (name, setting) in enumerate(settings.items())
        ]
        rows += [
            ("strategy", name, digest(settings[label]), digest(strategy), canonical(strategy), i)
            for label, chosen in strategies.items()
            for i, (name, strategy) in enumerate(chosen.items())
        ]
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            for row in rows:
                known = execute(
                    "SELECT identity, description FROM names "
                    "WHERE (kind, name, setting) = (?, ?, ?)",
                    row[:3],
                ).fetchone()
                if known and known[0] != row[3]:
                    raise ValueError(
                        f"store {str(self.path)!r} has another {row[0]} named {row[1]!r}: "
                        f"{known[1]} in the file, {row[4]} asked for; give it another name"
                    )
                execute("INSERT OR IGNORE INTO names VALUES (?, ?, ?, ?, ?, ?)", row)
        except BaseException:
            execute("ROLLBACK")
            raise
        execute("COMMIT")

    def key(self, setting: str, repetition: int, strategy: str) -> str:
        """Return the hash of all that determines a result; settings and strategies by digest."""
        return digest([self._described, setting, repetition, strategy])

    @cached_property
    def _described(self) -> str:
        return digest(self.description)

    def keys(self) -> set[str]:
        """Return the keys of all results."""
        return {key for (key,) in self._connection.execute("SELECT key FROM results")}

    def add(self, setting: str, repetition: int, results: Iterable[tuple[str, Result]]) -> None:
        """Commit the results of one data set, given with the digests of their strategies."""
        rows = [
            (self.key(setting, repetition, strategy), setting, repetition, strategy, *result)
            for strategy, result in results
        ]
        marks = ", ".join("?" * (4 + len(Result._fields)))
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(f"INSERT OR IGNORE INTO results VALUES ({marks})", rows)
        self._connection.execute("COMMIT")

    def table(self) -> pd.DataFrame:
        """Return all results with the names of their settings and strategies."""
        import pandas as pd

        fields = ", ".join(f"r.{field}" for field in Result._fields)
        rows = self._connection.execute(
            f"""SELECT s.name, r.repetition, t.name, {fields} FROM results r
            JOIN names s ON s.kind = 'setting' AND s.identity = r.setting
            JOIN names t ON t.kind = 'strategy' AND t.identity = r.strategy
                AND t.setting = r.setting
            ORDER BY s.place, r.repetition, t.place, t.name"""
        ).fetchall()
        table = pd.DataFrame(rows, columns=list(COLUMNS))
        return table.astype(dict.fromkeys(Result._fields, "float64") | {"repetition": "int64"})

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write all results as Parquet; the file appears whole or not at all."""
        target = Path(path)
        if not target.parent.is_dir():
            raise ValueError(f"path must lie in an existing folder, got {str(path)!r}")
        content = io.BytesIO()
        self.table().to_parquet(content, engine="pyarrow", index=False)
        write_whole(target, content.getvalue())
        return target

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        """Return the ledger, to be closed at the end."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()


def _short(value: Any, other: Any) -> str:
    """Write a value, of a mapping only what is not the same in the other."""
    if isinstance(value, dict) and isinstance(other, dict):
        own = {key: each for key, each in value.items() if other.get(key) != each}
        return ", ".join(f"{key} = {json.dumps(each)}" for key, each in own.items()) or "nothing"
    return json.dumps(value)
