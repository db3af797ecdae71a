"""What scikit-learn would say of bad input in several lines, in one that names the argument."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

from temperance.types import Array
from temperance.validation import as_numbers, refuse_non_finite, shown

LARGEST = 1e300
NOT_NUMBERS = ("could not convert", "setting an array element")  # how numpy begins to say so


def validated(estimator: Any, X: Any, *y: Any, **options: Any) -> Any:
    """Validate inputs, and responses if given, as scikit-learn does."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # sums that tell what is not finite
            found = validate_data(estimator, X, *y, dtype=np.float64, order="C", **options)
    except ValueError as error:
        _refuse(str(error), X, *y)
        raise
    for name, array in zip(("X", "y"), found if y else (found,), strict=False):
        _refuse_huge(name, array)
    return found


def _refuse_huge(name: str, array: Any) -> None:
    """Refuse numbers whose differences and sums may be infinite."""
    if array.dtype.kind != "f":
        return
    if array.size and max(array.max(), -array.min()) > LARGEST:
        place = tuple(np.argwhere(np.abs(array) > LARGEST)[0].tolist())
        raise ValueError(
            f"{name} must lie between {-LARGEST:g} and {LARGEST:g}, got {float(array[place])!r} in"
            f" row {place[0]}" + "".join(f", column {column}" for column in place[1:])
        )


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
    if message.startswith("Input contains NaN") and y:  # sklearn does not say of what
        refuse_non_finite("y", np.asarray(y[0], dtype=float))
    if message.startswith(NOT_NUMBERS):
        as_numbers("X", X)
        if y:
            as_numbers("y", y[0])


def as_weights(sample_weight: Any, X: Array) -> Array:
    """Return one non-negative weight per row."""
    try:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    except ValueError as error:
        if str(error).startswith(NOT_NUMBERS):
            as_numbers("sample_weight", sample_weight)
        raise
    _refuse_huge("sample_weight", weights)
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
