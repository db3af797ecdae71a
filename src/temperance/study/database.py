r"""Tables in one SQLite file, whole after every kill, whose rows carry checksums.

A file that SQLite finds at fault is refused, and a row that is not as it was written is set apart.
Whatever goes wrong is told in one line with the name of the file.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

Row = tuple[Any, ...]
Found = TypeVar("Found")

META = """CREATE TABLE meta (
    key TEXT PRIMARY KEY, value TEXT NOT NULL, checksum TEXT NOT NULL
) WITHOUT ROWID"""


class Database:
    """Tables of one file.

    Parameters
    ----------
    path : path or None
        The file; ``None`` keeps the tables in memory.
    schema : mapping
        The statements that make the tables, by name; the last column of each is ``checksum``.
    format : str
        The name of this arrangement, by which other files are told apart.
    meta : mapping or None
        Texts that a new file begins with; ``None`` opens existing files only.

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
        self._connection = self._told(
            lambda: sqlite3.connect(self.path or ":memory:", timeout=60, isolation_level=None)
        )
        self._connection.text_factory = _decoded
        try:
            self.meta = self._told(lambda: self._opened(schema, format, meta))
        except BaseException:
            self.close()
            raise

    def _opened(
        self, schema: Mapping[str, str], format: str, meta: Mapping[str, str] | None
    ) -> dict[str, str]:
        execute = self._connection.execute
        wanted = {"meta": META, **schema}
        if not self._tables():
            if meta is None:
                raise self.refusal("is empty")
            if self.path is not None:
                _write_ahead(self._connection)
            with self.writing() as write:
                # Only one of several processes that open a new file at once may fill it.
                if not self._tables():
                    for statement in wanted.values():
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
        if not wanted.items() <= self._tables().items():
            raise self.damaged("its tables are not as they were made")
        execute("PRAGMA synchronous=NORMAL")
        return dict(self.sound_rows("meta"))

    def _tables(self) -> dict[str, str]:
        """Return the statements that made the tables of the file, by name."""
        return dict(self._connection.execute("SELECT name, sql FROM sqlite_master").fetchall())

    def refuse_faults(self) -> None:
        """Let SQLite check the structure of the whole file."""
        ((found,),) = self._execute("PRAGMA integrity_check(1)")
        if found != "ok":  # several lines, which begin with the name of the database
            raise self.damaged(_line(found.strip().splitlines()[-1]))

    def rows(self, table: str) -> tuple[list[Row], list[Row]]:
        """Return the rows that are as they were written, and the damaged ones."""
        good: list[Row] = []
        bad: list[Row] = []
        for *row, checksum in self._execute(f"SELECT * FROM {table}"):
            (good if checksum == _checksum(row) else bad).append(tuple(row))
        return good, bad

    def sound_rows(self, table: str) -> list[Row]:
        """Return the rows of a table in which nothing may be damaged."""
        good, bad = self.rows(table)
        if bad:
            raise self.damaged(f"its table of {table} is not as it was written")
        return good

    def drop_damaged(self, table: str) -> list[Row]:
        """Delete damaged rows of a table whose first column is ``key``; return what they held.

        Nothing is deleted from a file that is at fault even without them.
        """
        with self.writing():
            _, damaged = self.rows(table)
            for key, *_ in damaged:
                # As bytes: they may be no text any more.
                self._execute(f"DELETE FROM {table} WHERE CAST(key AS BLOB) IS ?", (_encoded(key),))
            self.sound_rows(table)
            self.refuse_faults()
        return damaged

    @contextmanager
    def writing(self) -> Iterator[Callable[[str, Iterable[Row]], None]]:
        """Give a function that writes rows into a table; commit all, or nothing after an error.

        A row takes the place of one with the same primary key.  Other writers wait.
        """
        self._execute("BEGIN IMMEDIATE")
        try:
            yield self._write
            self._execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # a full disk has ended it
                self._execute("ROLLBACK")
            raise

    def _write(self, table: str, rows: Iterable[Row]) -> None:
        for row in map(_as_stored, rows):
            marks = ", ".join("?" * (len(row) + 1))
            self._execute(
                f"INSERT OR REPLACE INTO {table} VALUES ({marks})", (*row, _checksum(row))
            )

    def into_main_file(self) -> None:
        """Move what was committed from the log of new pages, a file beside it, to the main file."""
        self._execute("PRAGMA wal_checkpoint")

    def _execute(self, statement: str, values: Row = ()) -> list[Row]:
        return self._told(lambda: self._connection.execute(statement, values).fetchall())

    def refusal(self, why: str) -> ValueError:
        """Return an error that names the file."""
        return ValueError(f"store {str(self.path)!r} {why}")

    def damaged(self, what: str) -> ValueError:
        """Return an error that says what to do with a damaged file."""
        return self.refusal(f"is damaged: {what}; delete it to compute anew, or restore a copy")

    def _told(self, work: Callable[[], Found]) -> Found:
        """Turn SQLite's errors into lines that name the file."""
        try:
            return work()
        except sqlite3.ProgrammingError:  # a fault of ours
            raise
        except sqlite3.DatabaseError as error:
            # The lower byte of a code is its kind.
            kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if kind == sqlite3.SQLITE_NOTADB:
                raise self.refusal(f"is no study: {_line(error)}; take another file") from None
            if kind == sqlite3.SQLITE_CORRUPT:
                raise self.damaged(_line(error)) from None
            raise self.refusal(f"cannot be used: {_line(error)}") from None
        except UnicodeDecodeError:  # SQLite quotes what it does not understand
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


def _as_path(path: str | os.PathLike[str]) -> Path:
    try:
        found = Path(path)
    except TypeError:
        raise ValueError(f"store must be a path, got {path!r}") from None
    # Path's own methods raise where a folder may not be searched.
    if not os.path.isdir(found.parent) or "\0" in str(found):
        raise ValueError(f"store must lie in an existing folder, got {str(path)!r}")
    if os.path.exists(found) and not os.path.isfile(found):
        raise ValueError(f"store must be a file, got {str(path)!r}")
    return found


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


def _as_stored(row: Iterable[Any]) -> Row:
    """Return a row as SQLite gives it back: NaN as ``None``, -0.0 as 0.0, numbers as Python's."""
    return tuple(
        (None if each != each else float(each) + 0.0) if isinstance(each, float) else each
        for each in row
    )


def _checksum(row: Iterable[Any]) -> str:
    # A None that stands for NaN has a part in it: any other NULL is seen to be damage.
    return hashlib.blake2b(repr(tuple(row)).encode(), digest_size=8).hexdigest()


def _decoded(text: bytes) -> str:
    """Decode a text whatever its bytes are; a checksum tells whether it is damaged."""
    return text.decode("utf-8", "surrogateescape")


def _encoded(value: Any) -> Any:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _line(words: object) -> str:
    """Show control characters, which SQLite quotes from damaged files, as Python writes them."""
    return str(words).encode("unicode_escape").decode()
