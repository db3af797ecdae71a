"""A table as inputs and a target; errors are one line with a remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from temperance.app.tables.columns import typed
from temperance.app.tables.encoding import Column, encoded, level_problems
from temperance.app.tables.problems import Problem, described, size_problems
from temperance.app.tables.reading import NOTICES, TableError, listed, refuse_duplicates
from temperance.checks import one_of, shown
from temperance.data import Array

if TYPE_CHECKING:
    import pandas

Task = Literal["regression", "classification"]

MOST_CLASSES = 20
MISSING = "empty cells, NA, N/A, NaN, NULL and None count as missing"


@dataclass(frozen=True, eq=False)
class Table:
    """Inputs, a target and optional weights of a model.

    Parameters
    ----------
    name : name of the file, for titles
    inputs : finite floats; text has become contrasts of 0 and 1
    target : floats in a regression; whole numbers, truth values or text in a classification
    target_name : name of the target's column
    task : regression or classification
    weights : non-negative with a positive sum, if a column has them
    notices : sentences on what was left out, encoded and chosen
    columns : the encoding of the inputs, for new rows
    """

    name: str
    inputs: pandas.DataFrame
    target: NDArray[Any]
    target_name: str
    task: Task
    weights: Array | None
    notices: tuple[str, ...]
    columns: tuple[Column, ...] = ()


def prepare(
    frame: pandas.DataFrame,
    target: str,
    *,
    name: str,
    task: Task | None = None,
    drop: Iterable[str] = (),
    weights: str | None = None,
    drop_missing: bool = False,
    dates_as_days: bool = False,
) -> Table:
    """Return a table as inputs and a target.

    Truth values become 0 and 1.  Text becomes one input of 0 and 1 for each of its levels but the
    most frequent one (the first of those, if there are several).  Text columns with numbers only
    become numbers.  Constant columns are left out.

    Parameters
    ----------
    frame : the table, from ``read_frame`` or elsewhere
    target : name of the target's column
    name : name of the table, for titles
    task : by default classification for text, truth values and targets of two distinct values, and
        regression otherwise
    drop : names of columns to leave out
    weights : name of the column of the observations' weights
    drop_missing : whether rows with missing values are left out; otherwise they are refused
    dates_as_days : whether dates become numbers of days; otherwise they are refused

    Raises
    ------
    TableError
        If the table cannot be used; the message names all columns concerned.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"size": [1, 2, 4], "hue": ["red", "blue", "red"], "y": [3, 1, 2]})
    >>> table = prepare(frame, "y", name="toy")
    >>> table.inputs
       size  hue=blue
    0   1.0       0.0
    1   2.0       1.0
    2   4.0       0.0
    >>> table.task
    'regression'
    """
    if task is not None:
        one_of("task", task, ("regression", "classification"))
    notices = list(frame.attrs.get(NOTICES, ()))
    frame = frame.set_axis([str(column) for column in frame.columns], axis="columns")
    refuse_duplicates(frame.columns, "the table")
    dropped = list(drop)
    _check_names(frame, target, dropped, weights)
    if not len(frame):
        raise TableError("the table has no rows")
    chosen = frame.drop(columns=dropped).reset_index(drop=True)
    used, days, problems = typed(chosen, dates=chosen.columns if dates_as_days else ())
    roles = [target] if weights is None else [target, weights]
    missing = used.isna().to_numpy()
    whole = ~missing.any(axis=1) | (not drop_missing)  # rows that are used
    problems += size_problems(used.select_dtypes(float)[whole])
    problems += level_problems(used.drop(columns=roles, errors="ignore"))
    _refuse(problems, list(chosen.columns), roles, "" if drop_missing else _share(used, missing))
    used = _without_missing(used, missing, notices)
    weight = None if weights is None else _weights(used[weights])
    # Rows of weight zero are ignored, also in the check for constant columns.
    weight_of_rows = np.ones(len(used)) if weight is None else weight
    task = task or _chosen_task(used[target], notices)
    response = _responses(used[target]) if task == "regression" else _labels(used[target])
    _refuse_constant(response[weight_of_rows > 0], target, task)
    inputs, columns = encoded(used.drop(columns=roles), days, weight_of_rows, notices)
    return Table(name, inputs, response, target, task, weight, tuple(notices), columns)


def diabetes() -> pandas.DataFrame:
    """Return scikit-learn's 442 patients, whose diabetes progressed within a year.

    Ten inputs in their own units (age, sex, body mass index, blood pressure, six blood serum
    measurements); the target, ``"progression"``, is a measure of the disease a year later.
    """
    from sklearn.datasets import load_diabetes

    frame = load_diabetes(as_frame=True, scaled=False).frame
    return frame.rename(columns={"target": "progression"})


def _check_names(
    frame: pandas.DataFrame, target: str, dropped: list[str], weights: str | None
) -> None:
    wanted = [("--target", target), *(("--drop", column) for column in dropped)]
    if weights is not None:
        wanted.append(("--weights", weights))
    for option, column in wanted:
        if column not in frame.columns:
            hint = _hint(column, frame)
            raise TableError(f"there is no column {shown(column)} for {option}{hint}")
    if target in dropped:
        raise TableError(f"column {shown(target)} is the target and cannot be dropped")
    if weights == target:
        raise TableError(f"column {shown(target)} cannot be both the target and the weights")
    if weights in dropped:
        raise TableError(f"column {shown(weights)} holds the weights and cannot be dropped")


def _hint(wanted: str, frame: pandas.DataFrame) -> str:
    """Return columns with similar names, and all columns if they are few, as text."""
    spelled: dict[str, str] = {column.casefold(): column for column in frame.columns}
    near = [spelled[match] for match in difflib.get_close_matches(wanted.casefold(), spelled)]
    meant = f"; did you mean {' or '.join(map(shown, near))}?" if near else ""
    return f"{meant or ';'} the columns are {listed(list(frame.columns))}"


def _share(frame: pandas.DataFrame, missing: NDArray[np.bool_]) -> str:
    """Return how many rows have missing values and in which columns, or an empty text."""
    rows, counts = np.count_nonzero(missing.any(axis=1)), missing.sum(axis=0)
    if not rows:
        return ""
    worst = [f"{shown(frame.columns[at])} ({counts[at]})" for at in np.flatnonzero(counts)]
    where = ", ".join(worst[:10] + [f"and {len(worst) - 10} more columns"] * (len(worst) > 10))
    return f"{rows} of {len(frame)} rows have missing values, in {where}"


def _refuse(problems: list[Problem], order: list[str], roles: list[str], missing: str) -> None:
    """Refuse unusable columns and missing values, all in one line."""
    place = {name: at for at, name in enumerate(order)}
    found = sorted(problems, key=lambda problem: place[problem.column])
    if found and missing:
        raise TableError(f"{described(found, roles)}; {missing}: use --drop-missing")
    if found:
        raise TableError(described(found, roles))
    if missing:
        raise TableError(
            f"{missing}; leave the rows out with --drop-missing or the columns with --drop"
            f" ({MISSING})"
        )


def _without_missing(
    frame: pandas.DataFrame, missing: NDArray[np.bool_], notices: list[str]
) -> pandas.DataFrame:
    rows = missing.any(axis=1)
    if not rows.any():
        return frame
    share = _share(frame, missing)
    if rows.all():
        where = share.partition(" rows have missing values, in ")[2]
        raise TableError(
            f"all {len(frame)} rows have missing values, in {where}; leave columns out with --drop"
            f" ({MISSING})"
        )
    notices.append(
        f"Rows left out for missing values: {share.replace(' have missing values', '')}."
    )
    kept = frame[~rows].copy()
    for name in kept.columns[kept.dtypes == "category"]:
        kept[name] = kept[name].cat.remove_unused_categories()
    return kept


def _weights(column: pandas.Series) -> Array:
    if column.dtype == "category":
        raise TableError(f"weights must be numbers, got text: {_first(column)}")
    weight: Array = column.to_numpy(dtype=float)
    if np.any(weight < 0):
        negative = column[weight < 0]
        raise TableError(f"weights must not be negative: {_first(negative)}")
    if not np.any(weight > 0):
        raise TableError(f"weights must not all be zero, as in column {shown(column.name)}")
    return weight


def _responses(column: pandas.Series) -> Array:
    if column.dtype == "category":
        raise TableError(
            f"the target of a regression must be numbers, got text: {_first(column)}; take --model"
            " logistic for a classification"
        )
    return column.to_numpy(dtype=float)


def _first(column: pandas.Series) -> str:
    name, value = shown(column.name), shown(column.iloc[0])
    return f"column {name} has {value} in data row {column.index[0] + 1}"


def _chosen_task(column: pandas.Series, notices: list[str]) -> Task:
    classes = column.nunique()
    target = f"The target, {shown(column.name)},"
    if column.dtype == "category":
        notices.append(f"{target} is text: the model is logistic.")
        return "classification"
    if column.dtype != float or classes == 2:
        what = "has two distinct values" if column.dtype == float else "is true or false"
        notices.append(
            f"{target} {what}: the model is logistic (--model linear makes it a regression)."
        )
        return "classification"
    change = " (--model logistic makes it a classification)" if classes <= MOST_CLASSES else ""
    notices.append(f"{target} is numeric: this is a regression{change}.")
    return "regression"


def _labels(column: pandas.Series) -> NDArray[Any]:
    """Return text, truth values or numbers; whole numbers as integers."""
    classes = column.nunique()
    if classes > MOST_CLASSES:
        if column.dtype == "category":
            what = f"texts such as {shown(column.iloc[0])}"
            remedy = "; numbers must come without signs of currency and thousands"
        else:
            what, remedy = "numbers and looks continuous", "; take --model linear for a regression"
        raise TableError(
            f"the target, {shown(column.name)}, has {classes} distinct {what}, but a classification"
            f" takes at most {MOST_CLASSES} classes{remedy}"
        )
    if column.dtype == "category":
        return column.to_numpy(dtype=str)
    if column.dtype != float:
        return column.to_numpy(dtype=bool)
    numbers = column.to_numpy()
    whole = np.all((numbers == np.round(numbers)) & (np.abs(numbers) < 2**53))
    return numbers.astype(int) if whole else numbers


def _refuse_constant(response: NDArray[Any], target: str, task: Task) -> None:
    if np.any(response != response[0]):
        return
    what = "a single class" if task == "classification" else "a single value"
    raise TableError(
        f"the target, {shown(target)}, has {what}, {shown(response[0])}, in every row; there is"
        " nothing to learn from it"
    )
