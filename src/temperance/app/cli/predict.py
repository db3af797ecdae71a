"""``temperance predict``: forecasts of new rows by a saved choice."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from temperance.app.cli.console import Output, errors, one_line_errors, printable
from temperance.app.cli.options import real_number, refuse_unwritable
from temperance.app.cli.request import as_written
from temperance.app.files import write_whole
from temperance.app.tables import TableError, new_rows, read_frame
from temperance.checks import open_unit

if TYPE_CHECKING:
    import pandas


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL.json", help="What temperance calibrate --save wrote.", show_default=False
        ),
    ],
    data: Annotated[
        Path,
        typer.Argument(help="CSV or Parquet file with the columns of the fit.", show_default=False),
    ],
    level: Annotated[
        list[float] | None,
        real_number("Probability of an interval (default 0.95); repeat for more.", "NUMBER"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a CSV or Parquet file, by its name, instead of CSV to stdout (-).",
        ),
    ] = None,
    skip_unknown: Annotated[
        bool,
        typer.Option(
            "--skip-unknown",
            help="Leave out rows with missing values or with levels that the fit did not see.",
        ),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Forecast new rows from a saved choice.

    Numbers are forecast by their mean and intervals, classes by probabilities. A loss
    that is no likelihood gives the fitted value with its credible band, or margins.
    Each line begins with the number of its row in the data.

    \b
    temperance calibrate houses.csv --target price --save houses.json
    temperance predict houses.json new.csv --level 0.9 --out forecasts.csv
    """  # noqa: D301
    from temperance.app.saved import choice

    with one_line_errors(debug, as_written):
        levels = list(dict.fromkeys(open_unit("--level", each) for each in level or []))
        file = None if out is None or str(out) == "-" else out
        if file is not None:
            for other in (model, data):
                if file.exists() and other.exists() and file.samefile(other):
                    raise ValueError(f"--out would overwrite {file}")
            refuse_unwritable("--out", file)
        chosen = choice.read(model)
        text = [column.name for column in chosen.columns if column.kind == "levels"]
        frame = read_frame(data, text=text, least_columns=1)
        rows = new_rows(frame, chosen.columns, skip_unknown)
        forecast = forecasts(chosen.fitted, rows.inputs, levels)
        forecast.insert(0, "row", rows.numbers)
        _refuse_overflow(forecast)
        for notice in rows.notices:
            errors().print(f"temperance: {printable(notice)}", markup=False, soft_wrap=True)
        if file is None:
            sys.stdout.write(forecast.to_csv(index=False, lineterminator="\n"))
        else:
            write_whole(file, _content(forecast, file))
            message = f"Forecasts of {len(forecast)} rows are in {printable(str(file))}"
            Output().print(message, markup=False, soft_wrap=True)


def forecasts(fitted: Any, inputs: pandas.DataFrame, levels: list[float]) -> pandas.DataFrame:
    """Return the forecasts of rows, one column for each quantity."""
    import pandas

    columns: dict[str, Any] = {}
    with _numbers():
        if hasattr(fitted, "classes_"):
            if levels:
                raise ValueError(
                    "--level is for forecasts of numbers; this model gives the probability of "
                    "each class"
                    if fitted.likelihood
                    else "--level is for forecasts of numbers; this model gives classes"
                )
            if not fitted.likelihood:
                columns["forecast"] = fitted.predict(inputs)
                columns["margin"] = fitted.decision_function(inputs)
                return pandas.DataFrame(columns)
            probabilities = fitted.predict_proba(inputs)
            columns["forecast"] = fitted.predict(inputs)
            for label, each in zip(fitted.classes_, probabilities.T, strict=True):
                columns[f"p({label})"] = each
        else:
            law = fitted.forecast(inputs) if fitted.likelihood else fitted.fitted_value(inputs)
            columns["forecast"] = law.mean
            for level in levels or [0.95]:
                percent = f"{100 * level:.10g}"
                columns[f"low_{percent}"], columns[f"high_{percent}"] = law.interval(level).T
    return pandas.DataFrame(columns)


@contextmanager
def _numbers() -> Iterator[None]:
    """Ignore overflow, which is checked at the end, or refuse it."""
    try:
        with np.errstate(all="ignore"):
            yield
    except OverflowError:
        raise TableError("the forecasts are too large numbers") from None


def _refuse_overflow(forecast: pandas.DataFrame) -> None:
    finite = np.isfinite(forecast.select_dtypes(float).to_numpy()).all(axis=1)
    if not finite.all():
        row = forecast["row"].iloc[int(np.argmin(finite))]
        raise TableError(f"the forecast of data row {row} is too large a number")


def _content(forecast: pandas.DataFrame, file: Path) -> bytes:
    if file.suffix.lower() in (".parquet", ".pq"):
        content = io.BytesIO()
        forecast.to_parquet(content, index=False)
        return content.getvalue()
    return forecast.to_csv(index=False, lineterminator="\n").encode("utf-8", "replace")
