"""Real regressions that come with scikit-learn and statsmodels: at most three of a data set."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from sklearn import datasets

# Regressions on the other columns of statsmodels' tables: table, response, left out.
TABLES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "anes96 party": ("anes96", "PID", ("vote", "popul")),
    "anes96 income": ("anes96", "income", ("vote", "popul", "ClinLR", "DoleLR")),
    "anes96 left-right": ("anes96", "selfLR", ("vote", "popul", "ClinLR", "DoleLR")),
    "cancer": ("cancer", "cancer", ()),
    "ccard": ("ccard", "AVGEXP", ()),
    "committee": ("committee", "BILLS104", ()),
    "copper": ("copper", "WORLDCONSUMPTION", ()),
    "cpunish": ("cpunish", "EXECUTIONS", ()),
    "danish money": ("danish_data", "lrm", ()),
    "elnino december": ("elnino", "DEC", ("JUL", "AUG", "SEP", "OCT", "NOV")),
    "engel": ("engel", "foodexp", ()),
    "fair affairs": ("fair", "affairs", ()),
    "fair rating": ("fair", "rate_marriage", ("affairs",)),
    "grunfeld": ("grunfeld", "invest", ("firm",)),
    "heart": ("heart", "survival", ()),
    "longley": ("longley", "TOTEMP", ()),
    "macrodata inflation": ("macrodata", "infl", ("year", "quarter", "realint")),
    "macrodata unemployment": ("macrodata", "unemp", ("year", "quarter", "realint")),
    "randhie": ("randhie", "mdvis", ()),
    "scotland": ("scotland", "YES", ()),
    "spector": ("spector", "GPA", ("GRADE",)),
    "stackloss": ("stackloss", "STACKLOSS", ()),
    "statecrime murder": ("statecrime", "murder", ()),
    "statecrime violent": ("statecrime", "violent", ("murder",)),
    "strikes": ("strikes", "duration", ()),
}


def regressions() -> Iterator[tuple[str, Any, Any]]:
    """Yield name, inputs and response."""
    yield "diabetes", *datasets.load_diabetes(return_X_y=True)
    exercise = datasets.load_linnerud()
    for name, response in zip(exercise.target_names, exercise.target.T, strict=True):
        yield f"linnerud {name.lower()}", exercise.data, response
    wine = datasets.load_wine().data
    yield "wine alcohol", wine[:, 1:], wine[:, 0]
    iris = datasets.load_iris().data
    yield "iris sepal length", iris[:, 1:], iris[:, 0]
    tumours = datasets.load_breast_cancer().data
    yield "breast cancer, worst concavity", tumours[:, :10], tumours[:, 26]
    for name, (source, response, left_out) in TABLES.items():
        rows = table(source)
        yield name, rows.drop(columns=[response, *left_out]), rows[response]
    yield from derived()
    yield from series()


def table(name: str) -> Any:
    """Return the table of a data set of statsmodels."""
    return import_module(f"statsmodels.datasets.{name}").load_pandas().data


def derived() -> Iterator[tuple[str, Any, Any]]:
    """Yield regressions whose columns are computed from a table."""
    schools = table("star98")
    share = schools["NABOVE"] / (schools["NABOVE"] + schools["NBELOW"])
    yield "star98", schools.drop(columns=["NABOVE", "NBELOW"]), share
    births = table("fertility")[["1960", "1970", "1980", "1990", "2000", "2011"]].dropna()
    yield "fertility", births.drop(columns="2011"), births["2011"]
    ways = table("modechoice").pivot(index="individual", columns="mode", values=["invt", "invc"])
    times = ways["invt"].to_numpy()  # by plane, train, bus and car
    yield "modechoice, time by car", np.hstack([times[:, :3], ways["invc"]]), times[:, 3]
    levels = table("macrodata")[["realcons", "realgdp", "realinv", "realgovt", "realdpi", "m1"]]
    growth = 100 * np.diff(np.log(levels.to_numpy()), axis=0)
    yield "macrodata consumption growth", growth[:-1], growth[1:, 0]


def series() -> Iterator[tuple[str, Any, Any]]:
    """Yield series on their past, or on a trend and the season."""
    yield "sunspots", *past(table("sunspots")["SUNACTIVITY"], 9)
    yield "nile", *past(table("nile")["volume"], 3)
    sea = table("elnino").drop(columns="YEAR").to_numpy().ravel()
    yield "elnino monthly", *past(sea, 12)
    machines = table("elec_equip").to_numpy()[:, 0]
    yield "elec_equip past", *past(machines, 12)
    yield "elec_equip season", *season(machines, 12)
    air = table("co2")["co2"].interpolate()
    yield "co2 season", *season(air, 365.25 / 7)
    yield "co2 change", *past(np.diff(air), 4)
    rates = table("interest_inflation")
    inputs, inflation = past(rates["Dp"], 4)
    interest = rates["R"].to_numpy()
    yield "interest", np.column_stack([inputs, interest[3:-1]]), interest[4:]
    yield "inflation", np.column_stack([inputs, interest[3:-1]]), inflation


def past(values: Any, lags: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of the ``lags`` values before each, and the values."""
    windows = np.lib.stride_tricks.sliding_window_view(np.asarray(values, dtype=float), lags + 1)
    return windows[:, :-1], windows[:, -1]


def season(values: Any, period: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a quadratic trend and two harmonics, and the values."""
    t = np.arange(len(values), dtype=float)
    waves = [f(2 * np.pi * k * t / period) for k in (1, 2) for f in (np.sin, np.cos)]
    return np.column_stack([t, t**2, *waves]), np.asarray(values, dtype=float)
