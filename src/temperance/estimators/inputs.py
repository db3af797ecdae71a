"""Checks of inputs: scikit-learn's errors in one line that names the argument."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

from temperance.calibration import known_noise_variance
from temperance.checks import LARGEST, as_numbers, refuse_non_finite, shown
from temperance.data import Array, Labels
from temperance.messages import WeightWarning, warn

FEW_OBSERVATIONS = 0.1  # sum of weights per row below which weights look normalised
MOST_DIGITS = 60  # log10 of the largest information of a row, in units of the prior's
NOT_NUMBERS = ("could not convert", "setting an array element")  # beginnings of numpy's messages


def validated(estimator: Any, X: Any, *y: Any, **options: Any) -> Any:
    """Return validated inputs, and responses if given, by scikit-learn's checks."""
    try:
        # Overflow in the check for infinities is not an error of the data.
        with np.errstate(over="ignore", invalid="ignore"):
            return validate_data(estimator, X, *y, dtype=np.float64, order="C", **options)
    except ValueError as error:
        _refuse(str(error), X, *y)
        raise
    except TypeError as error:
        if "sparse" in str(error).lower():
            raise TypeError(
                f"X must be dense, got a sparse {type(X).__name__}: Sparse data are not supported, "
                "use X.toarray() if it fits into memory"
            ) from None
        raise


def _refuse(message: str, X: Any, *y: Any) -> None:
    """Raise a one-line error; some words are required by scikit-learn's own tests."""
    if message.startswith("Expected 2D array"):
        raise ValueError(
            f"X must have two dimensions, got shape {np.shape(X)}. Reshape your data: X[:, None] "
            "is one column, X[None] one row"
        ) from None
    if message.startswith("Complex data"):
        raise ValueError(
            "X and y must hold real numbers, got complex ones. Complex data not supported"
        ) from None
    if message.startswith("Input X contains"):
        try:
            refuse_non_finite("X", check_array(X, dtype=np.float64, ensure_all_finite=False))
        except ValueError as found:
            raise ValueError(f"{found}; impute NaN or leave such rows out") from None
    if message.startswith("Input contains NaN") and y:  # scikit-learn does not say whether X or y
        refuse_non_finite("y", np.asarray(y[0], dtype=float))
    if message.startswith(NOT_NUMBERS):
        as_numbers("X", X)
        if y:
            as_numbers("y", y[0])


def refuse_extreme_units(name: str, values: Array) -> None:
    """Refuse columns (n, d) in units in which squares would overflow or vanish."""
    ordinary = np.all(np.abs(values[0]) >= 1 / LARGEST)  # the first row decides for most columns
    if ordinary and values.max() <= LARGEST and values.min() >= -LARGEST:
        return
    largest = np.maximum(values.max(axis=0), -values.min(axis=0))
    invalid = ~(largest <= LARGEST) | ((largest < 1 / LARGEST) & (largest > 0))
    if invalid.any():
        column = int(np.argmax(invalid))
        place = f" in column {column}" if len(largest) > 1 else ""
        raise ValueError(
            f"{name} must be 0 or between {1 / LARGEST:g} and {LARGEST:g} in size, got at most "
            f"{largest[column]:.3g}{place}; change the unit"
        )


def refuse_certainty(model: Any, rows: Array, weights: Array) -> None:
    """Refuse rows whose information exceeds the prior's by more than numbers can hold."""
    largest = max(float(rows.max()), -float(rows.min()), 1 / LARGEST)
    prior = float(np.max(getattr(model, "prior_cov", 1.0)))
    noise = known_noise_variance(model) or 1.0
    scales = [largest, largest, prior, float(weights.max()), 1 / noise]
    digits = sum(map(np.log10, scales))
    if digits > MOST_DIGITS:
        raise ValueError(
            f"X must say at most 1e{MOST_DIGITS} times as much as the prior in one row, got "
            f"1e{digits:.0f}; standardize, or take a smaller prior_scale or larger noise_variance"
        )


def as_weights(sample_weight: Any, X: Array) -> Array:
    """Return one non-negative weight per row."""
    try:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    except ValueError as error:
        if str(error).startswith(NOT_NUMBERS):
            as_numbers("sample_weight", sample_weight)
        raise
    refuse_extreme_units("sample_weight", weights[:, None])
    total, rows = float(weights.sum()), int(np.count_nonzero(weights))
    if 0 < total < FEW_OBSERVATIONS * rows:
        warn(
            f"sample_weight sums to {total:.3g} for {rows} rows: a weight of k counts like k "
            f"copies of a row, so the data count as {total:.3g} observations; multiply normalised "
            "weights by the number of rows",
            WeightWarning,
        )
    return weights


def as_groups(groups: ArrayLike, weights: Array) -> Labels:
    """Return the index of the group of each row of positive weight."""
    labels = np.asarray(groups)
    if labels.shape != weights.shape:
        raise ValueError(f"groups must have shape {weights.shape}, got shape {labels.shape}")
    missing = np.array([label is None or label != label for label in labels.tolist()])
    if missing.any():
        raise ValueError(
            f"groups must be known, got {shown(labels[missing][0])} in row {missing.argmax()}"
        )
    refuse_labels_of_several_kinds("groups", labels)
    return np.unique(labels[weights > 0], return_inverse=True)[1]


def refuse_labels_of_several_kinds(name: str, labels: NDArray[Any]) -> None:
    """Refuse labels that cannot be sorted, and name their kinds."""
    if labels.dtype.kind == "O":
        kinds = sorted({type(label).__name__ for label in labels})
        try:
            np.unique(labels)
        except TypeError:
            raise ValueError(
                f"{name} must hold labels of one kind, text or numbers, got {', '.join(kinds)}"
            ) from None


def as_seed(random_state: Any) -> int:
    """Return 0 for ``None``, an integer as it is, or a number drawn from a RandomState."""
    if random_state is None:
        return 0
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError:
        raise ValueError(
            "random_state must be a non-negative integer, a RandomState or None, got "
            f"{shown(random_state)}"
        ) from None
