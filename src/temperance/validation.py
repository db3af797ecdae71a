"""Checks at the door: every bad argument gets one line that names it and its value."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temperance.types import Array, Data


def as_data(X: ArrayLike | None, y: ArrayLike, weights: ArrayLike | None = None) -> Data:
    """Validate observations; rows of weight zero play no part and are left out.

    ``X`` may be ``None`` for a model without inputs; a vector is one column.
    """
    response = _numeric("y", y)
    if response.ndim != 1:
        raise ValueError(f"y must be one-dimensional, got shape {response.shape}")
    n = len(response)
    if n == 0:
        raise ValueError("y must have at least one observation, got 0")
    inputs = np.empty((n, 0)) if X is None else as_inputs(X)
    if len(inputs) != n:
        raise ValueError(f"X and y must have the same length, got {len(inputs)} and {n}")
    _refuse_non_finite("y", response)
    weight = np.ones(n) if weights is None else _numeric("weights", weights)
    if weight.shape != (n,):
        raise ValueError(f"weights must have shape ({n},), got shape {weight.shape}")
    _refuse_non_finite("weights", weight)
    if np.any(weight < 0):
        row = int(np.argmin(weight))
        raise ValueError(f"weights must be non-negative, got {float(weight[row])!r} in row {row}")
    kept = weight > 0
    if not kept.any():
        raise ValueError("weights must have a positive sum, got 0.0")
    if kept.all():
        return Data(inputs, response, weight)
    return Data(inputs[kept], response[kept], weight[kept])


def as_inputs(X: ArrayLike) -> Array:
    """Validate an input matrix (n, d); a vector is one column."""
    inputs = _numeric("X", X)
    if inputs.ndim == 1:
        inputs = inputs[:, None]
    if inputs.ndim != 2:
        raise ValueError(f"X must have one or two dimensions, got shape {inputs.shape}")
    _refuse_non_finite("X", inputs)
    return inputs


def non_negative(name: str, value: Any) -> float:
    """Return a finite non-negative number."""
    number = _number(name, value)
    if number < 0:
        raise ValueError(f"{name} must be non-negative, got {value!r}")
    return number


def positive(name: str, value: Any) -> float:
    """Return a finite positive number."""
    number = _number(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {value!r}")
    return number


def whole(name: str, value: Any, least: int) -> int:
    """Return an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r}")
    return int(value)


def one_of(name: str, value: Any, accepted: Collection[Any]) -> None:
    """Refuse a value that is not among those accepted."""
    if not isinstance(value, str | bool) or value not in accepted:
        choices = ", ".join(repr(choice) for choice in accepted)
        raise ValueError(f"{name} must be one of {choices}, got {value!r}")


def as_bounds(bounds: Any) -> tuple[float, float]:
    """Return bounds on beta, 0 <= lower < upper < infinity."""
    try:
        lower, upper = (float(end) for end in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be two numbers (lower, upper), got {bounds!r}") from None
    if not (0 <= lower < upper < math.inf):
        raise ValueError(f"bounds must satisfy 0 <= lower < upper < infinity, got {bounds!r}")
    return lower, upper


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {value!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return number


def _numeric(name: str, values: ArrayLike) -> Array:
    if values is None:
        raise ValueError(f"{name} must be an array of numbers, got None")
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise ValueError
        return np.array(array, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be an array of real numbers, got {_offender(values)}"
        ) from None


def _offender(values: ArrayLike) -> str:
    """Show the first entry that is not a real number."""
    try:
        flat = np.asarray(values, dtype=object).ravel()
    except ValueError:
        return "rows of different lengths"
    for entry in flat:
        try:
            float(entry)
        except (TypeError, ValueError):
            return repr(entry)
    return "rows of different lengths"


def _refuse_non_finite(name: str, array: Array) -> None:
    bad = ~np.isfinite(array)
    if bad.any():
        where = np.argwhere(bad)[0]
        place = f"row {where[0]}" + (f", column {where[1]}" if array.ndim == 2 else "")
        raise ValueError(f"{name} must be finite, got {float(array[tuple(where)])!r} in {place}")
