r"""Real data from scikit-learn and statsmodels: nothing is downloaded.

Inputs are as in the packages, without a constant column and without scaling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

import numpy as np

from temperance.data import Array

Task = Literal["regression", "classification"]


@dataclass(frozen=True, eq=False)
class RealData:
    """A data set with descriptions of its columns.

    Parameters
    ----------
    name : str
    X : array of shape (n, d)
        Inputs, without a column of ones.
    y : array of shape (n,)
        Response; labels 0 and 1 for a classification.
    features : names of the columns of X
    target : description of y, with its unit
    task : {"regression", "classification"}
    source : package with the data, and their origin
    """

    name: str
    X: Array = field(repr=False)
    y: Array = field(repr=False)
    features: tuple[str, ...] = field(repr=False)
    target: str
    task: Task
    source: str = field(repr=False)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.y)


@dataclass(frozen=True)
class _Entry:
    """The loader of a data set, and the conversion of its table to (X, y)."""

    package: str
    loader: str
    task: Task
    target: str
    source: str
    prepare: Callable[[Any], tuple[Any, Any, Any]]


def _bunch(bunch: Any) -> tuple[Any, Any, Any]:
    return bunch.data, bunch.target, getattr(bunch, "feature_names", None)


def _one_class(label: int) -> Callable[[Any], tuple[Any, Any, Any]]:
    def prepare(bunch: Any) -> tuple[Any, Any, Any]:
        return bunch.data, bunch.target == label, bunch.feature_names

    return prepare


def _digits(bunch: Any) -> tuple[Any, Any, Any]:
    kept = np.isin(bunch.target, (3, 8))
    return bunch.data[kept], bunch.target[kept] == 8, bunch.feature_names


def _columns(
    response: str, *, leave_out: tuple[str, ...] = (), positive: float | None = None
) -> Callable[[Any], tuple[Any, Any, Any]]:
    """Return a function that takes one column as response, or as a label ``> positive``."""

    def prepare(dataset: Any) -> tuple[Any, Any, Any]:
        table = dataset.data
        X = table.drop(columns=[response, *leave_out])
        y = table[response]
        return X, y if positive is None else y > positive, list(X.columns)

    return prepare


def _star98(dataset: Any) -> tuple[Any, Any, Any]:
    table = dataset.data
    X = table.drop(columns=["NABOVE", "NBELOW"])
    return X, table["NABOVE"] / (table["NABOVE"] + table["NBELOW"]), list(X.columns)


_ENTRIES: dict[str, _Entry] = {
    "diabetes": _Entry(
        "sklearn",
        "load_diabetes",
        "regression",
        "disease progression after one year, 25 to 346, no unit",
        "scikit-learn; 442 patients; inputs centred and scaled to unit length; Efron, Hastie, "
        "Johnstone and Tibshirani 2004",
        _bunch,
    ),
    "breast-cancer": _Entry(
        "sklearn",
        "load_breast_cancer",
        "classification",
        "benign (1) or malignant (0)",
        "scikit-learn; 569 tumours, 30 measures of cell nuclei; Wolberg, Street and Mangasarian "
        "1995",
        _bunch,
    ),
    "wine": _Entry(
        "sklearn",
        "load_wine",
        "classification",
        "the second of three cultivars (1) or another (0)",
        "scikit-learn; 178 Italian wines, 13 chemical measures; Forina and others 1988",
        _one_class(1),
    ),
    "iris": _Entry(
        "sklearn",
        "load_iris",
        "classification",
        "versicolor (1) or another species (0)",
        "scikit-learn; 150 flowers, lengths in cm; Fisher 1936",
        _one_class(1),
    ),
    "digits": _Entry(
        "sklearn",
        "load_digits",
        "classification",
        "an eight (1) or a three (0)",
        "scikit-learn; the 357 threes and eights among 1,797 images of 8 x 8 pixels, brightness 0 "
        "to 16; Alpaydin and Kaynak 1998",
        _digits,
    ),
    "engel": _Entry(
        "statsmodels",
        "engel",
        "regression",
        "food expenditure of a household, Belgian francs a year",
        "statsmodels; 235 Belgian households; Engel 1857; the only input is income, same unit",
        _columns("foodexp"),
    ),
    "stackloss": _Entry(
        "statsmodels",
        "stackloss",
        "regression",
        "ammonia that escapes through the stack, tenths of a percent",
        "statsmodels; 21 days of a plant that oxidises ammonia; Brownlee 1965",
        _columns("STACKLOSS"),
    ),
    "statecrime": _Entry(
        "statsmodels",
        "statecrime",
        "regression",
        "murders per 100,000 inhabitants",
        "statsmodels; 50 states of the USA and Washington, 2009",
        _columns("murder"),
    ),
    "ccard": _Entry(
        "statsmodels",
        "ccard",
        "regression",
        "average monthly credit card expenditure, US dollars",
        "statsmodels; 72 card holders, income in 10,000 dollars; Greene, Econometric Analysis",
        _columns("AVGEXP"),
    ),
    "copper": _Entry(
        "statsmodels",
        "copper",
        "regression",
        "world consumption of copper, 1,000 metric tons",
        "statsmodels; 25 years from 1951; inputs are indices of prices, income, inventories and "
        "time; Gill 2000",
        _columns("WORLDCONSUMPTION"),
    ),
    "star98": _Entry(
        "statsmodels",
        "star98",
        "regression",
        "share of pupils above the national median in mathematics, 0 to 1",
        "statsmodels; 303 Californian school districts, 1998; Gill 2000",
        _star98,
    ),
    "fair": _Entry(
        "statsmodels",
        "fair",
        "classification",
        "had an extramarital affair (1) or not (0)",
        "statsmodels; 6,366 women, Redbook survey of 1974; Fair 1978",
        _columns("affairs", positive=0.0),
    ),
    "spector": _Entry(
        "statsmodels",
        "spector",
        "classification",
        "the grade improved (1) or not (0)",
        "statsmodels; 32 students of economics; Spector and Mazzeo 1980",
        _columns("GRADE", positive=0.5),
    ),
    "longley": _Entry(
        "statsmodels",
        "longley",
        "regression",
        "total employment, 1,000 people",
        "statsmodels; 16 years of the USA from 1947, nearly collinear; Longley 1967",
        _columns("TOTEMP"),
    ),
}

REAL: tuple[str, ...] = tuple(_ENTRIES)


def load(name: str) -> RealData:
    """Return a real data set from an installed package.

    Parameters
    ----------
    name : str
        One of ``REAL``.

    Returns
    -------
    RealData

    Examples
    --------
    >>> data = load("diabetes")
    >>> data.X.shape, data.task
    ((442, 10), 'regression')
    """
    if name not in _ENTRIES:
        raise ValueError(f"name must be one of {', '.join(REAL)}, got {name!r}")
    entry = _ENTRIES[name]
    X, y, features = entry.prepare(_held(name, entry))
    inputs, response = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    names = tuple(str(each) for each in features)
    return RealData(name, inputs, response, names, entry.target, entry.task, entry.source)


def _held(name: str, entry: _Entry) -> Any:
    try:
        if entry.package == "sklearn":
            return getattr(import_module("sklearn.datasets"), entry.loader)()
        return import_module(f"statsmodels.datasets.{entry.loader}").load_pandas()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != entry.package:
            raise
        package = {"sklearn": "scikit-learn"}.get(entry.package, entry.package)
        raise ImportError(
            f"{name!r} comes with {package}, which is not installed: "
            "pip install 'temperance[study]'"
        ) from None
