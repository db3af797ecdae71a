"""Quality of an estimator's forecasts on rows that were not used in the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.checks import shown
from temperance.data import Array, Data
from temperance.plans import distinct_rows, takes_few_values
from temperance.table import mean_and_error

JUDGED = (0.5, 0.8, 0.95)  # levels of the intervals that are checked
LEAST_MISS = 0.05  # smallest error of a coverage that is reported


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Forecasts of n responses, each by a posterior that was fitted without it.

    Parameters
    ----------
    log_score : log density or log probability of the outcome, shape (n,), of a likelihood
    place : for responses, the forecast's probability of at most the outcome, shape (n,); for
        counts also that of less than it, in a first column, shape (n, 2)
    probabilities : for classes, the probability of each, shape (n, classes)
    loss : the loss of the posterior mean of the predictor, shape (n,), if it is no likelihood
    below : of such a loss of responses, whether they are at most the fitted value, as 0 or 1
    right : of such a loss of classes, whether they are on the side predicted, as 0 or 1
    """

    log_score: Any = None
    place: Any = None
    probabilities: Any = None
    loss: Any = None
    below: Any = None
    right: Any = None


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Forecasts of the calibrated posterior and of Bayes', on the same held-out rows.

    Parameters
    ----------
    calibrated, bayes : Forecasts; no Bayes if the loss is no likelihood
    gains : loss under Bayes minus loss under the choice, in the chosen risk, shape (n,)
    weights : weights of the rows, shape (n,)
    """

    calibrated: Forecasts
    bayes: Forecasts | None
    gains: Any
    weights: Array

    def mean(self, values: Array) -> tuple[float, float]:
        """Return the weighted mean of a value per row, and its standard error."""
        return mean_and_error(values, self.weights, self.weights)


def hold_out(
    estimator: Any,
    X: Any,
    y: Any,
    weights: Array | None = None,
    *,
    n_folds: int = 5,
    seed: int = 0,
    step: Callable[[], None] = lambda: None,
) -> HeldOut:
    """Return forecasts of each fold by a fit to all other folds.

    Parameters
    ----------
    estimator : GibbsRegressor or GibbsClassifier
        It is cloned, not fitted.
    X : frame or array of shape (n, d)
    y : array of shape (n,)
    weights : array of shape (n,), optional
    n_folds : int
        At most; never more than the rows of the rarest class.  Copies of a row share a fold.
    seed : int
        Seed of the folds.
    step : function without arguments
        Called after each fit.
    """
    from sklearn.base import clone

    y = np.asarray(y)
    known = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    parts = []
    for train, test in _folds(estimator, X, y, known, n_folds, seed):
        fitted = clone(estimator).fit(_take(X, train), y[train], sample_weight=known[train])
        new = _take(X, test)
        bayes = gains = None
        if fitted.likelihood:
            bayes = forecasts(fitted, new, y[test], beta=1.0)
            gains = _gains(fitted, new, y[test])
        parts.append(_Part(test, forecasts(fitted, new, y[test]), bayes, gains))
        step()
    order = np.argsort(np.concatenate([part.rows for part in parts]))
    bayes_too = [part.bayes for part in parts if part.bayes is not None]
    return HeldOut(
        _joined([part.calibrated for part in parts], order),
        _joined(bayes_too, order) if bayes_too else None,
        np.concatenate([part.gains for part in parts])[order] if bayes_too else None,
        known,
    )


def forecasts(fitted: Any, X: Any, y: NDArray[Any], beta: float | None = None) -> Forecasts:
    """Return a fitted estimator's forecasts of rows, at its choice or at another ``beta``."""
    if not fitted.likelihood:
        return _fitted_values(fitted, X, y, beta)
    if hasattr(fitted, "classes_"):
        log_probabilities = fitted.predict_log_proba(X, beta=beta)
        happened = y[:, None] == fitted.classes_
        # A class without a row of positive weight has probability zero.
        log_score = np.max(log_probabilities, axis=1, where=happened, initial=-np.inf)
        return Forecasts(log_score, probabilities=np.exp(log_probabilities))
    law = fitted.forecast(X, beta=beta)
    place = law.cdf(y)
    if getattr(getattr(law, "loss", None), "discrete", False):
        place = np.column_stack([law.cdf(y - 1), place])
    return Forecasts(law.log_density(y), place=place)


def _fitted_values(fitted: Any, X: Any, y: NDArray[Any], beta: float | None) -> Forecasts:
    """Return how rows compare with the posterior mean of the predictor."""
    model = fitted.calibration_.model
    if hasattr(fitted, "classes_"):
        margin = fitted.decision_function(X, beta=beta)
        code = np.searchsorted(fitted.classes_, y).astype(float)
        return Forecasts(loss=model.row_loss.value(margin, code), right=(margin > 0) == code)
    line = fitted.fitted_value(X, beta=beta).mean
    return Forecasts(loss=model.row_loss.value(line, y), below=(y <= line) + 0.0)


class _Part(NamedTuple):
    rows: NDArray[np.intp]
    calibrated: Forecasts
    bayes: Forecasts | None
    gains: Any


def _gains(fitted: Any, X: Any, y: NDArray[Any]) -> Array:
    """Return the gains of rows whose class occurs in the fit."""
    known = np.isin(y, fitted.classes_) if hasattr(fitted, "classes_") else np.full(len(y), True)
    gains = np.full(len(y), np.nan)
    gains[known] = fitted.gains(_take(X, np.flatnonzero(known)), y[known])
    return gains


def _folds(
    estimator: Any, X: Any, y: NDArray[Any], weights: Array, n_folds: int, seed: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield training rows and test rows; rows of weight zero are only tested."""
    counted, zero_weight = np.flatnonzero(weights > 0), np.flatnonzero(weights <= 0)
    _, codes = np.unique(y[counted], return_inverse=True)
    inputs = np.asarray(_take(X, counted), dtype=float)
    units = _units(Data(inputs, codes.astype(float), weights[counted]))
    # scikit-learn accepts seeds of 32 bits.
    for train, test in _splits(estimator, y[counted], units, n_folds, seed % 2**32):
        yield counted[train], np.concatenate([counted[test], zero_weight])
        zero_weight = zero_weight[:0]


def _units(data: Data) -> NDArray[np.intp]:
    """Return a number for each row, the same for copies, so that copies share a fold."""
    rows, number = distinct_rows(data)
    return np.arange(len(data)) if takes_few_values(rows) else number


def _splits(
    estimator: Any, y: NDArray[Any], units: NDArray[np.intp], n_folds: int, seed: int
) -> Any:
    from sklearn.base import is_classifier
    from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

    options = {"shuffle": True, "random_state": seed}
    _, first = np.unique(units, return_index=True)
    no_copies = len(first) == len(y)
    if not is_classifier(estimator):
        folds = min(n_folds, len(first))
        if no_copies:
            return KFold(folds, **options).split(y)
        return GroupKFold(folds, **options).split(y, groups=units)
    labels, counts = np.unique(y[first], return_counts=True)
    rarest = int(counts.min())
    if rarest < 2:
        raise ValueError(
            "y must hold every class at least twice to hold rows out, got 1 row of "
            f"{shown(labels[np.argmin(counts)])}"
        )
    folds = min(n_folds, rarest)
    if no_copies:
        return StratifiedKFold(folds, **options).split(y, y)
    return StratifiedGroupKFold(folds, **options).split(y, y, units)


def _take(X: Any, rows: NDArray[np.intp]) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows]


def _joined(parts: list[Forecasts], order: NDArray[np.intp]) -> Forecasts:
    def join(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        return None if values[0] is None else np.concatenate(values)[order]

    return Forecasts(*(join(field.name) for field in fields(Forecasts)))


def hits(forecasts: Forecasts, y: NDArray[Any], classes: NDArray[Any]) -> Array:
    """Return whether each row's class was predicted correctly, as 0 or 1."""
    if forecasts.right is not None:
        return forecasts.right.astype(float)
    return (classes[np.argmax(forecasts.probabilities, axis=1)] == y).astype(float)


def missed(held: HeldOut) -> dict[float, float]:
    """Return levels and coverages of the choice's intervals, if one of them is far from its level.

    That is more than three standard errors of a share of so many rows, and more than a twentieth.
    """
    if held.calibrated.place is None:
        return {}
    shares = {level: held.mean(coverage(held.calibrated.place, level))[0] for level in JUDGED}
    count = held.weights.sum()

    def is_far(level: float, share: float) -> bool:
        chance = 3 * np.sqrt(level * (1 - level) / count)
        return abs(share - level) > max(chance, LEAST_MISS)

    return shares if any(is_far(*each) for each in shares.items()) else {}


def coverage(place: Array, level: float) -> Array:
    """Return whether each response lies in its central interval of this level, as 0 or 1.

    Of a count, the share of its probability that does: whole intervals of counts hold more than
    their level, and the mean of the shares is the level if forecasts are right (the nonrandomised
    probability transform of Czado, Gneiting and Held, 2009).
    """
    if place.ndim == 1:
        return (np.abs(2 * place - 1) <= level).astype(float)
    low, high = place.T
    held = np.minimum(high, (1 + level) / 2) - np.maximum(low, (1 - level) / 2)
    return np.clip(held, 0.0, None) / np.maximum(high - low, np.finfo(float).tiny)
