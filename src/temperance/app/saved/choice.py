"""A saved choice: all that is needed to forecast new rows, as JSON without code."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import temperance
from temperance.app.saved.record import Record
from temperance.app.tables import Column, Table, TableError
from temperance.app.tables.encoding import Kind
from temperance.app.tables.reading import content_of
from temperance.checks import shown

FORMAT = 2


@dataclass(frozen=True, eq=False)
class Choice:
    """A fitted estimator, and the encoding of its columns."""

    target: str
    columns: tuple[Column, ...]
    fitted: Any


def written(fitted: Any, table: Table, about: dict[str, Any]) -> str:
    """Return a fitted estimator and the encoding of its columns as JSON."""
    from temperance.app.saved.estimators import as_plain

    record = {
        "format": FORMAT,
        "version": temperance.__version__,
        "about": about,
        "target": table.target_name,
        "columns": [_plain_column(column) for column in table.columns],
        "model": as_plain(fitted),
    }
    lines = (
        f"{json.dumps(name)}: {json.dumps(each, allow_nan=False)}" for name, each in record.items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read(path: Path) -> Choice:
    """Return the choice in a file of :func:`written`; other files are refused in one line."""
    from temperance.app.saved.estimators import from_plain

    file = repr(str(path))
    try:
        record = Record(json.loads(content_of(path), parse_constant=_refuse_constant))
        found = record.whole("format")
        if found != FORMAT:
            raise TableError(
                f"{file} has format {found}, and temperance {temperance.__version__} reads format "
                f"{FORMAT}: write it again with temperance calibrate --save"
            )
        columns = tuple(_column(each) for each in record.records("columns"))
        names = [name for column in columns for name in column.inputs]
        if not names or len(set(names)) < len(names):
            raise ValueError("columns must give one or more inputs of distinct names")
        fitted = from_plain(record.record("model"), names)
        return Choice(record.text("target"), columns, fitted)
    except TableError:
        raise
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno} is not JSON"
    except UnicodeDecodeError:
        reason = "it is not text"
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:
        reason = " ".join(str(error).split())
    raise ValueError(f"{file} is no choice that --save has written: {reason}")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _plain_column(column: Column) -> dict[str, Any]:
    if column.kind != "levels":
        return {"name": column.name, "kind": column.kind}
    return {
        "name": column.name,
        "kind": column.kind,
        "reference": column.reference,
        "levels": list(column.levels),
    }


def _column(record: Record) -> Column:
    name, kind = record.text("name"), cast(Kind, record.text("kind", get_args(Kind)))
    if kind != "levels":
        return Column(name, kind)
    reference, levels = record.text("reference"), record.texts("levels")
    if reference in levels or not levels:
        raise ValueError(f"{record.name_of('levels')} must be others than {shown(reference)}")
    return Column(name, kind, reference, tuple(levels))
