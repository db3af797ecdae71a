"""What scikit-learn would say of bad input in several lines, in one that names the argument."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

from temperance.types import Array
from temperance.validation import LARGEST, as_numbers, refuse_non_finite, shown

MOST_DIGITS = 60  # of the information of a row in units of the prior's
NOT_NUMBERS = ("could not convert", "setting an array element")  # how numpy begins to say so


def validated(estimator: Any, X: Any, *y: Any, **options: Any) -> Any:
    """Validate inputs, and responses if given, as scikit-learn does."""
    try:
        # A sum that overflows in the search for infinities is no fault of the data.
        with np.errstate(over="ignore", invalid="ignore"):
            return validate_data(estimator, X, *y, dtype=np.float64, order="C", **options)
    except ValueError as error:
        _refuse(str(error), X, *y)
        raise


def _refuse(message: str, X: Any, *y: Any) -> None:
    """Say what was wrong; some words are those that scikit-learn's checks insist on."""
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
    if message.startswith("Input contains NaN") and y:  # scikit-learn does not say of what
        refuse_non_finite("y", np.asarray(y[0], dtype=float))
    if message.startswith(NOT_NUMBERS):
        as_numbers("X", X)
        if y:
            as_numbers("y", y[0])


def refuse_strange_units(name: str, values: Array) -> None:
    """Refuse columns (n, d) in units in which squares of numbers would overflow or vanish."""
    ordinary = np.all(np.abs(values[0]) >= 1 / LARGEST)  # one row tells of most columns
    if ordinary and values.max() <= LARGEST and values.min() >= -LARGEST:
        return
    largest = np.maximum(values.max(axis=0), -values.min(axis=0))
    strange = ~(largest <= LARGEST) | ((largest < 1 / LARGEST) & (largest > 0))
    if strange.any():
        column = int(np.argmax(strange))
        place = f" in column {column}" if len(largest) > 1 else ""
        raise ValueError(
            f"{name} must be 0 or between {1 / LARGEST:g} and {LARGEST:g} in size, got at most "
            f"{largest[column]:.3g}{place}; change the unit"
        )


def refuse_certainty(model: Any, rows: Array, weights: Array) -> None:
    """Refuse rows that would outweigh the prior by more than numbers can hold."""
    largest = max(float(rows.max()), -float(rows.min()), 1 / LARGEST)
    scales = [largest, largest, model.prior_cov, float(weights.max())]
    scales.append(1 / getattr(model, "noise_variance", 1.0))
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
    refuse_strange_units("sample_weight", weights[:, None])
    return weights


def as_seed(random_state: Any) -> int:
    """Return an integer as it is, and draw one from a generator or from numpy's global one."""
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError:
        raise ValueError(
            "random_state must be a non-negative integer, a RandomState or None, got "
            f"{shown(random_state)}"
        ) from None
