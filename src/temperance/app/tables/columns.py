"""Conversion of columns to numbers, truth values or text; other columns are reported."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.app.tables.dates import all_days
from temperance.app.tables.problems import Problem, Remedy
from temperance.checks import shown

if TYPE_CHECKING:
    import pandas

TRUTHS = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}
NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "empty")
DATES = ("date", "datetime", "datetime64")
LISTS = "lists or values of several kinds"


class Typed(NamedTuple):
    """Columns, each of one type.

    Attributes
    ----------
    frame : floats, nullable truth values and categories of text
    days : names of the columns of floats that were dates
    problems : the columns that are left out of the frame, with the reasons
    """

    frame: pandas.DataFrame
    days: frozenset[str]
    problems: list[Problem]


class _Unusable(Exception):
    def __init__(self, what: str, remedy: Remedy = "drop") -> None:
        self.what, self.remedy = what, remedy


def typed(
    frame: pandas.DataFrame, dates: Collection[str] = (), text: Collection[str] = ()
) -> Typed:
    """Return each column as one of three types: float, nullable truth values, text categories.

    Dates in the columns named by ``dates`` become numbers of days; elsewhere they are a problem.
    The columns named by ``text`` are always text.
    """
    numeric = np.array(
        [
            isinstance(dtype, np.dtype) and dtype.kind in "iuf" and name not in text
            for name, dtype in frame.dtypes.items()
        ],
        dtype=bool,
    )
    others: dict[str, Any] = {}
    days, problems = set(), []
    for name in frame.columns[~numeric]:
        column = frame[name]
        try:
            others[name] = as_text(column) if name in text else _typed_column(column)
        except _Unusable as error:
            problems.append(Problem(name, error.what, error.remedy))
            continue
        if isinstance(others[name], _Dates):
            if name in dates:
                others[name] = others[name].days
                days.add(name)
            else:
                found = f"holds dates such as {shown(others.pop(name).example)}"
                problems.append(Problem(name, found, "days"))
    usable = [name for name, is_number in zip(frame.columns, numeric, strict=True)
              if is_number or name in others]  # fmt: skip
    return Typed(joined(frame.loc[:, numeric], others, usable), frozenset(days), problems)


class _Dates(NamedTuple):
    days: NDArray[np.float64]
    example: str


def joined(
    numbers: pandas.DataFrame, others: dict[str, Any], names: Sequence[str]
) -> pandas.DataFrame:
    """Return a table of numeric and other columns, in the order of the names.

    The numbers are one matrix: with very many columns, separate ones would need far more memory
    and time.
    """
    import pandas

    matrix = np.asfortranarray(numbers.to_numpy(dtype=float))
    table = pandas.DataFrame(matrix, columns=numbers.columns, index=numbers.index, copy=False)
    if not others:
        return table
    more = pandas.DataFrame(others, index=numbers.index)
    return pandas.concat([table, more], axis="columns")[list(names)]


def as_text(column: pandas.Series) -> Any:
    """Return a column as categories of text."""
    import pandas

    values = column.to_numpy(dtype=object)
    texts = [None if missing else _spelled(value)
             for value, missing in zip(values, pandas.isna(values), strict=True)]  # fmt: skip
    return pandas.Categorical(texts, categories=_sorted(texts))


def _spelled(value: Any) -> str:
    """Return a value as text; whole numbers without a decimal point."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _sorted(texts: Iterable[str | None]) -> list[str]:
    return sorted({text for text in texts if text is not None})


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
    if kind in DATES or kind == "string":
        return _typed_text(values)
    what = {"mixed": LISTS, "mixed-integer": LISTS}.get(kind, kind)
    raise _Unusable(f"holds neither numbers nor text nor true/false, but {what}")


def _real(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # a whole number of more than 308 digits
        return np.inf if number > 0 else -np.inf


def _typed_text(values: NDArray[np.object_]) -> Any:
    """Return text as categories, or as numbers, dates or truth values if all are such."""
    import pandas

    codes, levels = pandas.factorize(values)
    days = all_days(levels)
    if days is not None:
        return _Dates(np.append(days, np.nan)[codes], str(levels[0]))
    present = codes[codes >= 0]
    # pandas decides what is a number; Python then parses it exactly.
    numbers = pandas.to_numeric(pandas.Series(levels), errors="coerce").notna().to_numpy()
    if numbers.all():
        return np.append(levels.astype(float), np.nan)[codes]
    if 2 * np.count_nonzero(numbers[present]) > len(present):
        texts = np.flatnonzero((codes >= 0) & ~numbers[codes])
        others = f", and {len(texts) - 1} more" if len(texts) > 1 else ""
        raise _Unusable(
            f"has text among its numbers: {shown(values[texts[0]])} in data row"
            f" {texts[0] + 1}{others}",
            "cells",
        )
    if set(levels) <= TRUTHS.keys():
        return pandas.array([TRUTHS.get(value) for value in values], dtype="boolean")
    return pandas.Categorical(values, categories=sorted(levels))
