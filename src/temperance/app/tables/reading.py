"""Reading of a CSV or Parquet file as a table; the format is recognised by content.

Files are data only; nothing in them is evaluated.
"""

from __future__ import annotations

import csv
import io
import re
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temperance.checks import shown
from temperance.data import refuse_too_large

if TYPE_CHECKING:
    import pandas

NOTICES = "temperance.notices"  # key of the notices in frame.attrs
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
PARQUET = b"PAR1"
FOREIGN = {
    b"PK\x03\x04": "is an Excel workbook or a zip archive",
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook",
    b"\x1f\x8b": "is compressed",
    b"\xff\xfe": "is text in UTF-16",
    b"\xfe\xff": "is text in UTF-16",
}
MOST_COLUMNS = 100_000  # each column takes time, even with few rows
COPIES_OF_TEXT = 8  # copies of a byte that exist at a time: bytes, text, and two parsers
COPIES_OF_NUMBERS = 4  # copies of a cell: as read, as input, standardised, as row of a model
DECIMAL_COMMA = re.compile(r"\s*[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?\s*", re.ASCII)


class TableError(ValueError):
    """A file or column that cannot be used; the message is one line for the user."""


def read_frame(
    path: str | PathLike[str], text: Collection[str] = (), least_columns: int = 2
) -> pandas.DataFrame:
    """Return the table in a CSV or Parquet file.

    Parquet is recognised by its first bytes.  Other files are read as text in UTF-8, separated by
    commas, semicolons or tabs, whichever is most frequent in the header.  Empty cells and NA, N/A,
    NaN, NULL, None and similar ones are missing, as in pandas.

    Parameters
    ----------
    path : path of the file
    text : names of columns of a CSV file that are always text
    least_columns : with fewer than two columns the separator is usually another one

    Returns
    -------
    The columns as pandas reads them, with distinct names.  Row labels and empty columns without a
    name are left out; sentences in ``frame.attrs["temperance.notices"]`` report it.

    Raises
    ------
    TableError
        If the file contains no table, or one that does not fit into memory.
    """
    file = repr(str(path))
    content = content_of(Path(path))
    notices: list[str] = []
    if content.startswith(PARQUET):
        frame = _parquet(content, file, notices)
    elif Path(path).suffix.lower() in (".parquet", ".pq"):
        raise TableError(f"{file} is not a Parquet file, in spite of its name")
    else:
        frame = _separated(_text(content, file), file, notices, text, least_columns)
    if not len(frame):
        raise TableError(f"{file} has a header but no rows")
    if frame.columns.empty:
        raise TableError(f"{file} has no column with a name and values")
    frame.attrs = {NOTICES: notices}
    return frame


def refuse_duplicates(names: Iterable[str], where: str) -> None:
    """Refuse names that several columns share."""
    several = [name for name, count in Counter(names).items() if count > 1]
    if several:
        raise TableError(f"{where} has several columns named {listed(several)}; rename them")


def listed(names: Sequence[Any], most: int = 10) -> str:
    """Return the first few of many names as one line."""
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return ", ".join([*map(shown, names[:most]), *more])


def _refuse_too_large(what: str, elements: float, itemsize: int = 8) -> None:
    try:
        refuse_too_large(what, elements, itemsize)
    except ValueError as error:
        raise TableError(str(error)) from None


def _refuse_many_cells(file: str, rows: int, columns: int) -> None:
    """Refuse a table with too many columns, or with cells that do not fit into memory."""
    if columns > MOST_COLUMNS:
        raise TableError(f"{file} has {columns} columns, but at most {MOST_COLUMNS} are read")
    what = f"the table in {file}, of {rows} rows and {columns} columns,"
    _refuse_too_large(what, COPIES_OF_NUMBERS * rows * columns)


def content_of(path: Path) -> bytes:
    """Return the content of a file; errors are one line."""
    file = repr(str(path))
    try:
        found = path.stat()
        if stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode):
            raise TableError(f"{file} is a device; name a file")
        size = found.st_size
        _refuse_too_large(f"{file}, of {size:.3g} bytes,", COPIES_OF_TEXT * size, 1)
        content = path.read_bytes()
    except TableError:
        raise
    except FileNotFoundError:
        raise TableError(f"there is no file {file}") from None
    except IsADirectoryError:
        raise TableError(f"{file} is a directory; name a file in it") from None
    except PermissionError:
        raise TableError(f"there is no permission to read {file}") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL byte
        reason = getattr(error, "strerror", None) or error
        raise TableError(f"{file} cannot be read: {reason}") from None
    if not content:
        raise TableError(f"{file} is empty")
    return content


def _parquet(content: bytes, file: str, notices: list[str]) -> pandas.DataFrame:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise TableError(
            f"{file} is a Parquet file, which needs pyarrow: pip install pyarrow"
        ) from None
    try:
        stored = parquet.ParquetFile(pyarrow.BufferReader(content))
        _refuse_many_cells(file, stored.metadata.num_rows, stored.metadata.num_columns)
        table = stored.read()
        refuse_duplicates(table.column_names, file)
        labels = [name for name in table.column_names if re.fullmatch(r"__index_level_\d+__", name)]
        # pandas metadata about types and index is ignored, so that columns are as in a CSV.
        frame = table.drop_columns(labels).to_pandas(ignore_metadata=True)
    except TableError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError):
        raise TableError(f"{file} begins like a Parquet file but cannot be read as one") from None
    if labels:
        notices.append("The row labels that pandas had stored are left out.")
    return frame


def _text(content: bytes, file: str) -> str:
    for signature, what in FOREIGN.items():
        if content.startswith(signature):
            raise TableError(f"{file} {what}; save it as CSV in UTF-8 or as Parquet")
    nul = content.find(b"\0")
    if nul >= 0:
        raise TableError(
            f"{file} is neither text nor Parquet (byte {nul + 1} is NUL); expected CSV or Parquet"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = error.object[error.start]
        raise TableError(
            f"{file} is not text in UTF-8: byte 0x{byte:02x} in line {line}; save it in UTF-8"
        ) from None
    if not text.strip():
        raise TableError(f"{file} is empty")
    # pandas and the csv module differ on blank lines that end in a single carriage return.
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _separated(
    text: str, file: str, notices: list[str], as_text: Collection[str], least_columns: int
) -> pandas.DataFrame:
    import pandas

    separator = _separator(text)
    header, n_rows = _header(text, separator, file, least_columns)
    names = [name or f"column {place}" for place, name in enumerate(header, start=1)]
    refuse_duplicates(names, file)
    _refuse_many_cells(file, n_rows, len(names))
    # Newer pandas reads floats exactly and warns about the option that older versions need.
    version = tuple(map(int, pandas.__version__.split(".")[:2]))
    exact = {} if version >= (3, 1) else {"float_precision": "round_trip"}
    try:
        frame = pandas.read_csv(
            io.StringIO(text),
            sep=separator,
            header=0,
            names=names,
            index_col=False,
            skipinitialspace=True,
            low_memory=False,
            dtype={name: object for name in as_text},
            **exact,
        )
    except pandas.errors.ParserError as error:
        reason = " ".join(str(error).split())
        raise TableError(f"{file} cannot be read as CSV: {reason}") from None
    if len(frame) != n_rows:
        raise TableError(f"{file} has rows that can be read in two ways; check its quotes")
    if separator == ";":
        _convert_decimal_commas(frame, notices, as_text)
    # A copy stores columns of one type together: separate ones would be slow.
    return _without_unnamed(frame.copy(), header, notices)


def _separator(text: str) -> str:
    """Return the separator that is most frequent in the first line, outside quotes."""
    first = next(line for line in io.StringIO(text) if line.strip())
    unquoted = re.sub(r'"[^"]*"', "", first)
    return max(SEPARATORS, key=unquoted.count)


def _header(text: str, separator: str, file: str, least_columns: int) -> tuple[list[str], int]:
    """Return the names in the first row and the number of other rows, all of equal length."""
    rows = _rows(text, separator, file)
    _, header = next(rows, (0, [""]))
    if len(header) < least_columns:
        raise TableError(
            f"{file} has a single column, {shown(header[0])}; expected at least two,"
            f" separated by {', '.join(SEPARATORS.values())}"
        )
    _refuse_many_cells(file, 1, len(header))
    n_rows = 0
    for line, row in rows:
        n_rows += 1
        if len(row) != len(header):
            raise TableError(
                f"{file}, line {line}: got {len(row)} cells where the header has {len(header)}"
                f" (separated by {SEPARATORS[separator]}; put quotes around a cell that has some)"
            )
    return [name.strip() for name in header], n_rows


def _rows(text: str, separator: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, with the number of their last line."""
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if row not in ([], [""]):
                yield reader.line_num, row
    except csv.Error as error:
        raise TableError(
            f"{file}, line {reader.line_num} cannot be read ({error}); check its quotes"
        ) from None


def _convert_decimal_commas(
    frame: pandas.DataFrame, notices: list[str], as_text: Collection[str]
) -> None:
    """Replace 1,5 by 1.5 in columns where most cells are such numbers and none has a point."""
    import pandas

    converted = []
    for name in frame.columns[[dtype.kind == "O" for dtype in frame.dtypes]]:
        if name in as_text:
            continue
        codes, levels = pandas.factorize(frame[name])
        texts = [str(level) for level in levels]
        with_comma = [DECIMAL_COMMA.fullmatch(text) is not None for text in texts]
        if not any(with_comma):
            continue
        pointed = [
            text.replace(",", ".") if comma else text
            for text, comma in zip(texts, with_comma, strict=True)
        ]
        numbers = pandas.to_numeric(pandas.Series(pointed, dtype=object), errors="coerce").notna()
        counts = pandas.Series(codes[codes >= 0]).value_counts().reindex(range(len(texts)))
        if counts[numbers].sum() * 2 > counts.sum() and not any("." in text for text in texts):
            values = list(map(float, pointed)) if numbers.all() else pointed
            frame[name] = pandas.Series([*values, None]).to_numpy()[codes]
            converted.append(name)
    if converted:
        notices.append(f"Commas are read as decimal points in {listed(converted)}.")


def _without_unnamed(
    frame: pandas.DataFrame, header: Sequence[str], notices: list[str]
) -> pandas.DataFrame:
    """Return the table without row labels and empty columns without a name; name the others."""
    unnamed = [column for column, name in zip(frame.columns, header, strict=True) if not name]
    empty = [column for column in unnamed if frame[column].isna().all()]
    labels = []
    if header[0] in ("", "Unnamed: 0") and frame.columns[0] not in empty:
        first = frame.iloc[:, 0]
        if first.dtype.kind in "iuO" and first.is_unique:
            labels = [frame.columns[0]]
            notices.append("The first column, row labels without a name, is left out.")
    if empty:
        notices.append(f"Empty columns without a name are left out: {len(empty)}.")
    named = [column for column in unnamed if column not in (*empty, *labels)]
    if named:
        notices.append(f"Columns without a name are named by their place: {listed(named)}.")
    left_out = [*labels, *empty]
    return frame.drop(columns=left_out) if left_out else frame
