r"""Tables in one SQLite file that survives interruption; rows carry checksums.

A file with a damaged structure is refused, and damaged rows are separated from the others.  Every
error is one line that names the file.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

Row = tuple[Any, ...]
Found = TypeVar("Found")

META = """CREATE TABLE meta (
    key TEXT PRIMARY KEY, value TEXT NOT NULL, checksum TEXT NOT NULL
) WITHOUT ROWID"""


class Database:
    """Tables in one file.

    Parameters
    ----------
    path : path or None
        The file; ``None`` keeps the tables in memory.
    schema : mapping
        The statements that create the tables, by name; the last column of each is ``checksum``.
    format : str
        Name of the format, by which other files are recognised.
    meta : mapping or None
        Entries of a new file; ``None`` opens existing files only.

    Examples
    --------
    >>> schema = {"cats": "CREATE TABLE cats (name TEXT, weight REAL, checksum TEXT)"}
    >>> with Database(None, schema, "cats, format 1", {"owner": "Ann"}) as cats:
    ...     with cats.writing() as write:
    ...         write("cats", [("Tom", 4.5), ("Kit", float("nan"))])
    ...     print(cats.meta["owner"], cats.rows("cats")[0])
    Ann [('Tom', 4.5), ('Kit', None)]
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        schema: Mapping[str, str],
        format: str,
        meta: Mapping[str, str] | None = None,
    ) -> None:
        self.path = None if path is None else _as_path(path)
        if meta is None and (self.path is None or not os.path.exists(self.path)):
            raise self.refusal("does not exist")
        self._connection = self._with_errors_named(
            lambda: sqlite3.connect(self.path or ":memory:", timeout=60, isolation_level=None)
        )
        self._connection.text_factory = _decoded
        try:
            self.meta = self._with_errors_named(lambda: self._opened(schema, format, meta))
        except BaseException:
            self.close()
            raise

    def _opened(
        self, schema: Mapping[str, str], format: str, meta: Mapping[str, str] | None
    ) -> dict[str, str]:
        execute = self._connection.execute
        expected = {"meta": META, **schema}
        if not self._tables():
            if meta is None:
                raise self.refusal("is empty")
            if self.path is not None:
                _write_ahead(self._connection)
            with self.writing() as write:
                # If several processes open a new file at once, only one may create the tables.
                if not self._tables():
                    for statement in expected.values():
                        execute(statement)
                    write("meta", [("format", format), *meta.items()])
        if "meta" not in self._tables():
            raise self.refusal("is a database, but no study")
        found = execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
        if found != (format,):
            raise self.refusal(
                f"must be of {format!r}, got {found and found[0]!r}; "
                "take another file, or delete this one to compute anew"
            )
        if not expected.items() <= self._tables().items():
            raise self.damaged("its tables are not as they were made")
        execute("PRAGMA synchronous=NORMAL")
        return dict(self.sound_rows("meta"))

    def _tables(self) -> dict[str, str]:
        """Return the statements that created the tables of the file, by name."""
        return dict(self._connection.execute("SELECT name, sql FROM sqlite_master").fetchall())

    def refuse_faults(self) -> None:
        """Refuse a file in whose structure SQLite finds errors."""
        ((found,),) = self._execute("PRAGMA integrity_check(1)")
        if found != "ok":  # several lines, which begin with the name of the database
            raise self.damaged(_line(found.strip().splitlines()[-1]))

    def rows(self, table: str) -> tuple[list[Row], list[Row]]:
        """Return the undamaged rows of a table, and the damaged ones."""
        good: list[Row] = []
        bad: list[Row] = []
        for *row, checksum in self._execute(f"SELECT * FROM {table}"):
            (good if checksum == _checksum(row) else bad).append(tuple(row))
        return good, bad

    def sound_rows(self, table: str) -> list[Row]:
        """Return the rows of a table; an error if any is damaged."""
        good, bad = self.rows(table)
        if bad:
            raise self.damaged(f"its table of {table} is not as it was written")
        return good

    def drop_damaged(self, table: str) -> list[Row]:
        """Delete damaged rows of a table whose first column is ``key``; return their contents.

        Nothing is deleted if the file has other damage.
        """
        with self.writing():
            _, damaged = self.rows(table)
            for key, *_ in damaged:
                # As bytes: a damaged key may not be valid text.
                self._execute(f"DELETE FROM {table} WHERE CAST(key AS BLOB) IS ?", (_encoded(key),))
            self.sound_rows(table)
            self.refuse_faults()
        return damaged

    @contextmanager
    def writing(self) -> Iterator[Callable[[str, Iterable[Row]], None]]:
        """Return a context with a function that writes rows; commits all, or none after an error.

        A row replaces one with the same primary key.  Other writers wait.
        """
        self._execute("BEGIN IMMEDIATE")
        try:
            yield self._write
            self._execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # SQLite may have ended it, e.g. on a full disk
                self._execute("ROLLBACK")
            raise

    def _write(self, table: str, rows: Iterable[Row]) -> None:
        for row in map(_as_stored, rows):
            marks = ", ".join("?" * (len(row) + 1))
            self._execute(
                f"INSERT OR REPLACE INTO {table} VALUES ({marks})", (*row, _checksum(row))
            )

    def into_main_file(self) -> None:
        """Move committed pages from the write-ahead log to the main file."""
        self._execute("PRAGMA wal_checkpoint")

    def _execute(self, statement: str, values: Row = ()) -> list[Row]:
        return self._with_errors_named(
            lambda: self._connection.execute(statement, values).fetchall()
        )

    def refusal(self, why: str) -> ValueError:
        """Return an error that names the file."""
        return ValueError(f"store {str(self.path)!r} {why}")

    def damaged(self, what: str) -> ValueError:
        """Return an error that says what to do with a damaged file."""
        return self.refusal(f"is damaged: {what}; delete it to compute anew, or restore a copy")

    def _with_errors_named(self, work: Callable[[], Found]) -> Found:
        """Return the result of work on the file; errors of SQLite become lines that name it."""
        try:
            return work()
        except sqlite3.ProgrammingError:  # an error in this library
            raise
        except sqlite3.DatabaseError as error:
            # The lower byte of an error code is its kind.
            kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if kind == sqlite3.SQLITE_NOTADB:
                raise self.refusal(f"is no study: {_line(error)}; take another file") from None
            if kind == sqlite3.SQLITE_CORRUPT:
                raise self.damaged(_line(error)) from None
            raise self.refusal(f"cannot be used: {_line(error)}") from None
        except UnicodeDecodeError:  # from SQLite's own error message
            raise self.damaged("its tables are not as they were made") from None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Database:
        """Return the database, to be closed at the end."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()


def stored_format(path: str | os.PathLike[str] | None) -> str | None:
    """Return the name of the format of an existing file; None if it has none that can be read."""
    if not isinstance(path, str | os.PathLike) or not os.path.isfile(path):
        return None
    try:
        with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as connection:
            query = "SELECT value FROM meta WHERE key = 'format'"
            found = connection.execute(query).fetchone()
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return None
    return str(found[0]) if found else None


def _as_path(path: str | os.PathLike[str]) -> Path:
    try:
        found = Path(path)
    except TypeError:
        raise ValueError(f"store must be a path, got {path!r}") from None
    # Methods of Path raise an error if a folder may not be searched.
    if not os.path.isdir(found.parent) or "\0" in str(found):
        raise ValueError(f"store must lie in an existing folder, got {str(path)!r}")
    if os.path.exists(found) and not os.path.isfile(found):
        raise ValueError(f"store must be a file, got {str(path)!r}")
    return found


def _write_ahead(connection: sqlite3.Connection, seconds: float = 60.0) -> None:
    """Switch to write-ahead logging; wait for other processes, as SQLite does not here."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _as_stored(row: Iterable[Any]) -> Row:
    """Return a row as SQLite returns it: NaN as ``None``, -0.0 as 0.0, Python's numbers."""
    return tuple(
        (None if each != each else float(each) + 0.0) if isinstance(each, float) else each
        for each in row
    )


def _checksum(row: Iterable[Any]) -> str:
    # None in place of NaN enters the checksum, so that any other NULL is detected as damage.
    return hashlib.blake2b(repr(tuple(row)).encode(), digest_size=8).hexdigest()


def _decoded(text: bytes) -> str:
    """Decode any bytes as text; the checksum detects damage."""
    return text.decode("utf-8", "surrogateescape")


def _encoded(value: Any) -> Any:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _line(words: object) -> str:
    """Return text with control characters escaped; SQLite quotes them from damaged files."""
    return str(words).encode("unicode_escape").decode()
