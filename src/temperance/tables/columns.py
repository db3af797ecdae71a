"""Columns of any kind become numbers, truth values or text, and these become inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from temperance.tables.reading import TableError, listed, refuse_duplicates
from temperance.types import Array
from temperance.validation import shown

if TYPE_CHECKING:
    import pandas

MOST_LEVELS = 100  # of a text column: each becomes a column of the inputs
FEW_LEVELS = 20  # up to which a text column is never taken for an identifier
TRUTHS = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}
NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "empty")
LISTS = "lists or values of several kinds"
REPAIR = (
    "correct it, leave the cell empty and use --drop-missing, or leave the column out with --drop"
)


def typed(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Give each column one of three types: float, nullable truth values or categories of text."""
    numeric = [isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in frame.dtypes]
    others = {name: _typed_column(frame[name]) for name in frame.columns[np.invert(numeric)]}
    return _joined(frame.loc[:, numeric], others, frame.columns)


def _joined(
    numbers: pandas.DataFrame, others: dict[str, Any], names: Sequence[str]
) -> pandas.DataFrame:
    """Put columns of numbers and other columns into one table, in the order of the names.

    The numbers are one matrix: there may be very many, and each column by itself costs more than
    a few numbers do.
    """
    import pandas

    matrix = np.asfortranarray(numbers.to_numpy(dtype=float))
    table = pandas.DataFrame(matrix, columns=numbers.columns, index=numbers.index, copy=False)
    if not others:
        return table
    more = pandas.DataFrame(others, index=numbers.index)
    return pandas.concat([table, more], axis="columns")[list(names)]


def _typed_column(column: pandas.Series) -> Any:
    import pandas

    if column.dtype == bool:
        return pandas.array(column, dtype="boolean")
    values = column.to_numpy(dtype=object)
    kind = pandas.api.types.infer_dtype(values, skipna=True)
    if kind in NUMBERS:
        known = pandas.notna(values)
        numbers = np.full(len(values), np.nan)
        numbers[known] = [_real(value) for value in values[known]]
        return numbers
    if kind == "boolean":
        return pandas.array(values, dtype="boolean")
    if kind != "string":
        what = {"mixed": LISTS, "mixed-integer": LISTS}.get(kind, kind)
        raise TableError(
            f"column {shown(column.name)} holds neither numbers nor text nor true/false, but"
            f" {what}; leave it out with --drop"
        )
    return _typed_text(values, column.name)


def _real(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # a whole number of more than 308 digits
        return np.inf if number > 0 else -np.inf


def _typed_text(values: NDArray[np.object_], name: str) -> Any:
    """Return text as categories, or as the numbers or truth values that it spells."""
    import pandas

    codes, levels = pandas.factorize(values)
    present = codes[codes >= 0]
    # Only what pandas takes for a number is one; Python then reads it to the last bit.
    numbers = pandas.to_numeric(pandas.Series(levels), errors="coerce").notna().to_numpy()
    if numbers.all():
        return np.append(levels.astype(float), np.nan)[codes]
    if 2 * np.count_nonzero(numbers[present]) > len(present):
        texts = np.flatnonzero((codes >= 0) & ~numbers[codes])
        others = f", and {len(texts) - 1} more" if len(texts) > 1 else ""
        raise TableError(
            f"column {shown(name)} has text among its numbers: {shown(values[texts[0]])} in data"
            f" row {texts[0] + 1}{others}; {REPAIR}"
        )
    if set(levels) <= TRUTHS.keys():
        return pandas.array([TRUTHS.get(value) for value in values], dtype="boolean")
    return pandas.Categorical(values, categories=sorted(levels))


def encoded(
    columns: pandas.DataFrame, active: NDArray[np.bool_], notices: list[str]
) -> pandas.DataFrame:
    """Return the inputs as floats that vary over the active rows."""
    others = columns.select_dtypes(exclude=float)
    pieces = {name: _encoded_column(others[name]) for name in others.columns}
    names = [each for name in columns.columns for each in pieces.get(name, (name,))]
    refuse_duplicates(names, "the table, with its text encoded,")
    numbers = columns.drop(columns=others.columns).reset_index(drop=True)
    inputs = _joined(numbers, {k: v for piece in pieces.values() for k, v in piece.items()}, names)
    values = inputs.to_numpy()[active]
    varies = np.any(values != values[0], axis=0)
    constant = listed(list(inputs.columns[~varies]))
    if not varies.any():
        reason = f": {constant} have the same value in every row" if constant else ""
        raise TableError(f"no input column is left{reason}")
    inputs = inputs.loc[:, varies]
    notes = [
        f"{shown(name)} {_encoding(others[name])}"
        for name, piece in pieces.items()
        if any(name in inputs.columns for name in piece)
    ]
    if notes:
        more = [f"and {len(notes) - 10} more"] if len(notes) > 10 else []
        notices.append(f"Columns encoded as numbers: {'; '.join([*notes[:10], *more])}.")
    if any("each of" in note for note in notes):
        notices.append("Coefficients of such columns mean something beside each other only.")
    if constant:
        notices.append(f"Columns left out, the same in every row: {constant}.")
    counting = listed(list(inputs.columns[_counts(inputs.to_numpy())]))
    if counting:
        notices.append(f"These only number the rows; leave them out with --drop?: {counting}.")
    return inputs


def _counts(values: Array) -> NDArray[np.bool_]:
    """Whether each column is consecutive whole numbers in some order, as row numbers are."""
    n = len(values)
    low = values.min(axis=0)
    with np.errstate(over="ignore"):
        counts = (n > FEW_LEVELS) & (values.max(axis=0) - low == n - 1) & (low % 1 == 0)
    ordered = np.sort(values[:, counts], axis=0)
    counts[counts] = np.all(np.diff(ordered, axis=0) == 1, axis=0)
    return counts


def _encoded_column(column: pandas.Series) -> dict[str, Array]:
    """Return the columns that one becomes; text of a single level becomes a constant."""
    name = column.name
    if column.dtype != "category":
        return {name: column.to_numpy(dtype=float)}
    levels = list(column.cat.categories)
    if len(levels) > FEW_LEVELS and 2 * len(levels) > len(column):
        raise TableError(
            f"column {shown(name)} looks like an identifier, with {len(levels)} distinct texts in"
            f" {len(column)} rows; leave it out with --drop"
        )
    if len(levels) > MOST_LEVELS:
        raise TableError(
            f"column {shown(name)} has {len(levels)} distinct texts, but at most {MOST_LEVELS} can"
            " become inputs; leave it out with --drop"
        )
    codes = column.cat.codes.to_numpy()
    if len(levels) == 1:
        return {name: codes.astype(float)}
    ones = enumerate(levels) if len(levels) > 2 else [(1, levels[1])]
    return {f"{name}={level}": (codes == code).astype(float) for code, level in ones}


def _encoding(column: pandas.Series) -> str:
    """Say how a column of text or truth values has become numbers."""
    if column.dtype != "category":
        return "(1 for true, 0 for false)"
    levels = list(column.cat.categories)
    if len(levels) == 2:
        return f"(1 for {shown(levels[1])}, 0 for {shown(levels[0])})"
    return f"(a column of 0 and 1 for each of {listed(levels, most=5)})"
