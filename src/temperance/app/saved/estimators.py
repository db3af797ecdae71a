"""Fitted estimators as plain values, for files without code; sufficient for forecasts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import PolynomialFeatures

from temperance.app.saved import posteriors as posteriors
from temperance.app.saved.record import Record
from temperance.estimators.classifier import GibbsClassifier
from temperance.estimators.coordinates import AffineScale, Coordinates, count_terms
from temperance.estimators.regressor import GibbsRegressor
from temperance.estimators.stored import StoredChoice
from temperance.posteriors import MixturePosterior

KINDS = {"regressor": GibbsRegressor, "classifier": GibbsClassifier}
# Method that a posterior needs to forecast for an estimator, unless its loss is no likelihood.
FORECASTS = {"regressor": "predictive", "classifier": "log_predict"}


def as_plain(fitted: GibbsRegressor | GibbsClassifier) -> dict[str, Any]:
    """Return a fitted estimator as plain values, without its training data."""
    way = fitted.coordinates_
    record: dict[str, Any] = {
        "kind": next(name for name, kind in KINDS.items() if isinstance(fitted, kind)),
        "degree": 1 if way.powers is None else way.powers.degree,
        "intercept": way.intercept,
        "inputs": _scale(way.inputs),
        "terms": _scale(way.terms),
        "columns": way.columns.tolist(),
        "beta": float(fitted.calibration_.beta),
        "posterior": posteriors.as_plain(fitted.calibration_.posterior),
    }
    if isinstance(fitted, GibbsClassifier):
        return {**record, "classes": fitted.classes_.tolist()}
    return {**record, "response": _scale(fitted._response)}


def from_plain(record: Record, names: list[str]) -> Any:
    """Return an estimator with the same forecasts as the stored one, for inputs of these names.

    Values that :func:`as_plain` did not write are refused in one line.
    """
    kind = record.text("kind", KINDS)
    way = _coordinates(record, len(names))
    fitted: Any = KINDS[kind](
        degree=record.whole("degree", 1), fit_intercept=record.truth("intercept")
    )
    fitted.n_features_in_ = len(names)
    fitted.coordinates_ = way
    posterior = posteriors.from_plain(record.record("posterior"))
    first = posterior.parts[0] if isinstance(posterior, MixturePosterior) else posterior
    loss = getattr(first, "loss", None)
    forecasts = loss is None or loss.likelihood
    of_kind = loss is None or loss.binary == (kind == "classifier")
    if not of_kind or not hasattr(first, FORECASTS[kind] if forecasts else "combination"):
        raise ValueError(f"{record.name_of('posterior')} must be that of a {kind}")
    if loss is not None:
        fitted.loss = loss
    fitted.calibration_ = StoredChoice(record.number("beta"), posterior)
    if kind == "regressor":
        fitted._response = _scale_of(record.record("response"), 1)
    else:
        fitted.classes_ = _classes(record)
    _try(fitted)
    fitted.feature_names_in_ = np.array(names, dtype=object)
    return fitted


def _scale(scale: AffineScale) -> dict[str, Any]:
    return {"centre": scale.centre.tolist(), "unit": scale.unit.tolist()}


def _scale_of(record: Record, columns: int) -> AffineScale:
    centre = record.array("centre", 1, (columns,))
    return AffineScale(centre, record.array("unit", 1, (columns,), positive=True))


def _coordinates(record: Record, columns: int) -> Coordinates:
    degree, terms = record.whole("degree", 1), record.record("terms")
    count = len(terms.array("centre", 1))
    if count_terms(columns, degree) != count:
        raise ValueError(
            f"{record.name_of('terms')} must be those of {columns} columns up to degree {degree},"
            f" got {count}"
        )
    powers = None
    if degree > 1:
        powers = PolynomialFeatures(degree, include_bias=False).fit(np.zeros((1, columns)))
    return Coordinates(
        _scale_of(record.record("inputs"), columns),
        powers,
        _scale_of(terms, count),
        record.truth("intercept"),
        _columns(record, count),
    )


def _columns(record: Record, count: int) -> NDArray[np.intp]:
    """Return the model's column of each term: numbers from 0 on, none left out, and -1."""
    found = record.array("columns", 1, (count,))
    columns = np.clip(found, -2, count).astype(int)
    used = np.unique(columns)
    if (
        np.any(columns != found)
        or not np.array_equal(used[used >= 0], np.arange(columns.max() + 1))
        or used[0] < -1
    ):
        raise ValueError(f"{record.name_of('columns')} must number the columns of the model")
    return columns


def _classes(record: Record) -> NDArray[Any]:
    """Return the labels of the classes, all of one kind and distinct."""
    values = record.take("classes", list, "a list of classes")
    kinds = {type(value) for value in values}
    name = record.name_of("classes")
    if len(kinds) != 1 or not kinds <= {str, bool, int, float}:
        raise ValueError(f"{name} must be texts, truth values or numbers")
    try:
        classes = np.array(values)
    except OverflowError:
        raise ValueError(f"{name} must be numbers of less than 64 bits") from None
    if classes.dtype.kind not in "Ubif" or len(values) < 2 or len(np.unique(classes)) < len(values):
        raise ValueError(f"{name} must be two or more, each once")
    return classes


def _try(fitted: Any) -> None:
    """Refuse posteriors that cannot forecast a row, for example those of other columns."""
    row = fitted.coordinates_.inputs.centre[None]
    try:
        with np.errstate(all="ignore"):
            forecast = getattr(fitted, "predict_proba", fitted.predict)(row)
            if not fitted.likelihood and hasattr(fitted, "classes_"):
                forecast = fitted.decision_function(row)
    except (ValueError, IndexError, OverflowError) as error:
        raise ValueError(f"the posterior does not fit the columns: {error}") from None
    classes = getattr(fitted, "classes_", None) if fitted.likelihood else None
    if forecast.shape != ((1,) if classes is None else (1, len(classes))):
        raise ValueError("the posterior must be of as many classes as are listed")
    if not np.all(np.isfinite(forecast)):
        raise ValueError("the posterior does not give finite forecasts")
