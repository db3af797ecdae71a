r"""Encoding of columns as inputs, the same for the rows of a fit and for new rows.

Text becomes contrasts with a reference level, the most frequent one.  Every other level has an
input that is 1 where the text is that level, and 0 elsewhere.  Its coefficient is the difference
between that level and the reference level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.app.tables.columns import Typed, joined, typed
from temperance.app.tables.dates import days_of
from temperance.app.tables.problems import Problem, size_problems
from temperance.app.tables.reading import TableError, listed, refuse_duplicates
from temperance.checks import shown
from temperance.data import Array

if TYPE_CHECKING:
    import pandas

Kind = Literal["numbers", "days", "truth", "levels"]

MOST_LEVELS = 100  # of a text column: each but one becomes an input
FEW_LEVELS = 20  # up to which a text column is never taken for an identifier
FEW_ROWS = 5  # a level with fewer rows is reported as rare
MOST_ROWS_NAMED = 10


@dataclass(frozen=True)
class Column:
    """A column and its encoding as inputs.

    Parameters
    ----------
    name : of the column
    kind : type of its values; days are dates as numbers, truth values are 1 and 0
    reference : the level without an input
    levels : the other levels
    """

    name: str
    kind: Kind = "numbers"
    reference: str = ""
    levels: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs of this column."""
        if self.kind != "levels":
            return (self.name,)
        return tuple(f"{self.name}={level}" for level in self.levels)


class Encoded(NamedTuple):
    """Inputs of a fit, and the columns that they come from."""

    inputs: pandas.DataFrame
    columns: tuple[Column, ...]


def level_problems(columns: pandas.DataFrame) -> list[Problem]:
    """Return problems of text columns with too many levels."""
    found = []
    for name in columns.columns[columns.dtypes == "category"]:
        levels, cells = columns[name].nunique(), columns[name].count()
        if levels > FEW_LEVELS and 2 * levels > cells:
            what = f"looks like an identifier, with {levels} distinct texts in {cells} rows"
            found.append(Problem(name, what))
        elif levels > MOST_LEVELS:
            what = f"has {levels} distinct texts, but at most {MOST_LEVELS} can become inputs"
            found.append(Problem(name, what))
    return found


def encoded(
    columns: pandas.DataFrame, days: frozenset[str], weights: Array, notices: list[str]
) -> Encoded:
    """Return the inputs as floats; those constant over rows of positive weight are left out."""
    active = weights > 0
    others = columns.select_dtypes(exclude=float)
    known = {name: _column(others[name], weights) for name in others.columns}
    found = [
        known.get(name) or Column(name, "days" if name in days else "numbers")
        for name in columns.columns
    ]
    refuse_duplicates(
        [each for column in found for each in column.inputs], "the table, with its text encoded,"
    )
    pieces = {name: _contrasts(others[name], column) for name, column in known.items()}
    inputs = _inputs(columns.drop(columns=others.columns).reset_index(drop=True), pieces, found)
    values = inputs.to_numpy()[active]
    varying = dict(zip(inputs.columns, np.any(values != values[0], axis=0), strict=True))
    constant = [column.name for column in found if not any(map(varying.get, column.inputs))]
    if len(constant) == len(found):
        reason = f": {listed(constant)} have the same value in every row" if constant else ""
        raise TableError(f"no input column is left{reason}")
    left_out = set(constant)
    kept = tuple(column for column in found if column.name not in left_out)
    inputs = inputs[[each for column in kept for each in column.inputs]] if constant else inputs
    notices += _notices(kept, others[active])
    if constant:
        notices.append(f"Columns left out, the same in every row: {listed(constant)}.")
    counting = listed(list(inputs.columns[_counts(inputs.to_numpy())]))
    if counting:
        notices.append(f"These only number the rows; leave them out with --drop?: {counting}.")
    return Encoded(inputs, kept)


def _column(column: pandas.Series, weights: Array) -> Column:
    """Return the encoding of a column of text or truth values."""
    name = str(column.name)
    if column.dtype != "category":
        return Column(name, "truth")
    levels = np.array(column.cat.categories, dtype=object)
    total = np.bincount(column.cat.codes, weights=weights, minlength=len(levels))
    levels, total = levels[total > 0], total[total > 0]
    at = int(np.argmax(total))  # the first one among equals
    return Column(name, "levels", str(levels[at]), tuple(map(str, np.delete(levels, at))))


def _contrasts(column: pandas.Series, how: Column) -> dict[str, Array]:
    """Return the inputs of a column of text or truth values."""
    if how.kind == "truth":
        return {how.name: column.to_numpy(dtype=float, na_value=np.nan)}
    codes = column.cat.codes.to_numpy()
    place = {level: code for code, level in enumerate(column.cat.categories)}
    return {
        name: (codes == place.get(level, -2)).astype(float)
        for name, level in zip(how.inputs, how.levels, strict=True)
    }


def _inputs(
    numbers: pandas.DataFrame, pieces: dict[str, dict[str, Array]], columns: Sequence[Column]
) -> pandas.DataFrame:
    names = [each for column in columns for each in column.inputs]
    return joined(numbers, {k: v for piece in pieces.values() for k, v in piece.items()}, names)


def _notices(columns: Sequence[Column], others: pandas.DataFrame) -> list[str]:
    """Return sentences on how columns were encoded and which levels are rare."""
    texts = [column for column in columns if column.kind == "levels"]
    sentences = []
    if texts:
        pairs = [f"{shown(each.name)} with {shown(each.reference)}" for each in texts]
        compared = "; ".join(_few(pairs))
        sentences.append(f"Text is compared with its most frequent level: {compared}.")
    for kind, how in (("truth", "True counts as 1, false as 0"), ("days", "Dates count in days")):
        names = [column.name for column in columns if column.kind == kind]
        if names:
            sentences.append(f"{how}: {listed(names)}.")
    counts = {column.name: others[column.name].value_counts() for column in texts}
    rare = [
        f"{shown(level)} of {shown(column.name)} ({counts[column.name][level]})"
        for column in texts
        for level in column.levels
        if counts[column.name][level] < FEW_ROWS
    ]
    if rare:
        sentences.append(
            f"Levels of fewer than {FEW_ROWS} rows tell little: {', '.join(_few(rare))}."
        )
    return sentences


def _few(words: list[str], most: int = 10) -> list[str]:
    return [*words[:most], f"and {len(words) - most} more"] if len(words) > most else words


def _counts(values: Array) -> NDArray[np.bool_]:
    """Return whether each column is consecutive whole numbers in some order, as row numbers."""
    n = len(values)
    low = values.min(axis=0)
    with np.errstate(over="ignore"):
        counts = (n > FEW_LEVELS) & (values.max(axis=0) - low == n - 1) & (low % 1 == 0)
    ordered = np.sort(values[:, counts], axis=0)
    counts[counts] = np.all(np.diff(ordered, axis=0) == 1, axis=0)
    return counts


class NewRows(NamedTuple):
    """Inputs of new rows, their numbers in the table from 1 on, and notices."""

    inputs: pandas.DataFrame
    numbers: NDArray[np.intp]
    notices: list[str]


def new_rows(
    frame: pandas.DataFrame, columns: Sequence[Column], skip_unknown: bool = False
) -> NewRows:
    """Return new rows, encoded like those of the fit.

    Columns may be in another order, with additional ones.  Rows with missing values, or with a
    level that the fit did not have, are refused, or left out if ``skip_unknown``.

    Raises
    ------
    TableError
        If columns are missing, or have other contents than those of the fit.
    """
    names = [column.name for column in columns]
    frame = frame.set_axis([str(name) for name in frame.columns], axis="columns")
    refuse_duplicates(frame.columns, "the table")
    present = set(frame.columns)
    lacking = [name for name in names if name not in present]
    if lacking:
        available = listed(list(frame.columns))
        raise TableError(
            f"the model needs columns that are not there: {listed(lacking)}; the columns are "
            f"{available}"
        )
    of_kind = {
        kind: [column.name for column in columns if column.kind == kind]
        for kind in ("numbers", "days", "truth", "levels")
    }
    found = typed(
        frame[names].reset_index(drop=True), dates=of_kind["days"], text=of_kind["levels"]
    )
    problems = [*found.problems, *_mismatches(found, columns)]
    if not problems:
        problems = size_problems(found.frame[[*of_kind["numbers"], *of_kind["days"]]], 0.0)
    if problems:
        what = "; ".join(f"column {shown(each.column)} {each.what}" for each in problems)
        raise TableError(f"{what}; correct the cells, or leave them empty and use --skip-unknown")
    return _known_rows(found.frame, columns, skip_unknown)


def _mismatches(found: Typed, columns: Sequence[Column]) -> list[Problem]:
    """Return problems of columns whose contents differ from those of the fit."""
    wanted = {"numbers": "numbers", "days": "ISO dates (YYYY-MM-DD)", "truth": "true or false"}
    mismatched = []
    types = found.frame.dtypes.to_dict()
    for column in columns:
        ordinary = column.kind == "numbers" and types.get(column.name) == np.dtype(float)
        if ordinary or column.kind == "levels" or column.name not in types:
            continue
        cells = found.frame[column.name]
        if column.kind == "truth" and cells.dtype == float:
            right = bool(cells.dropna().isin([0.0, 1.0]).all())
        elif column.kind == "truth":
            right = cells.dtype != "category"
        else:
            dated = column.name in found.days or bool(cells.isna().all())
            right = cells.dtype == float and (column.kind == "numbers" or dated)
        if not right:
            first = _first_wrong(cells, column.kind)
            got = f"{shown(cells[first])} in data row {first + 1}"
            mismatched.append(Problem(column.name, f"must hold {wanted[column.kind]}, got {got}"))
    return mismatched


def _first_wrong(cells: pandas.Series, kind: Kind) -> Any:
    """Return the place of the first cell that is not of the kind, or of the first that is there."""
    present = cells.dropna()
    if kind == "days":
        wrong = [np.isnan(days_of(cell)) for cell in present]
        if any(wrong):
            return present.index[int(np.argmax(wrong))]
    return present.index[0]


def _known_rows(frame: pandas.DataFrame, columns: Sequence[Column], skip: bool) -> NewRows:
    missing = frame.isna().to_numpy()
    unknown = missing.any(axis=1)
    sentences = []
    if unknown.any():
        where = listed([frame.columns[at] for at in np.flatnonzero(missing.any(axis=0))])
        sentences.append(f"{_rows(unknown)} with missing values, in {where}")
    for column in columns:
        if column.kind != "levels":
            continue
        mismatched = frame[column.name].notna() & ~frame[column.name].isin(
            [column.reference, *column.levels]
        )
        if mismatched.any():
            levels = listed(list(dict.fromkeys(map(str, frame[column.name][mismatched]))), most=5)
            rows = mismatched.to_numpy(dtype=bool)
            what = f"with a level of {shown(column.name)} that the model has not seen: {levels}"
            sentences.append(f"{_rows(rows)} {what}")
            unknown |= rows
    if sentences and not skip:
        raise TableError(f"{'; '.join(sentences)}; --skip-unknown leaves such rows out")
    if unknown.all():
        raise TableError(f"no row can be forecast: {'; '.join(sentences)}")
    kept = frame[~unknown]
    others = kept.select_dtypes(exclude=float)
    how = {column.name: column for column in columns}
    pieces = {name: _contrasts(others[name], how[name]) for name in others.columns}
    inputs = _inputs(kept.drop(columns=others.columns), pieces, columns)
    notices = [f"Left out: {each}" for each in sentences]
    return NewRows(inputs.reset_index(drop=True), np.flatnonzero(~unknown) + 1, notices)


def _rows(where: Any) -> str:
    """Return which rows are concerned, by their numbers, as text."""
    numbers = [str(at + 1) for at in np.flatnonzero(where)]
    return f"data row{'s' if len(numbers) > 1 else ''} {', '.join(_few(numbers, MOST_ROWS_NAMED))}"
