"""Checks of arguments: a bad one raises a one-line error with its name and value."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temperance.data import Array, Data

REAL = "biuf"  # kinds of numpy's booleans, integers and floats
ONE = np.float64(1.0).tobytes()
LARGEST_BETA = 1e100
LARGEST = 1e50  # size of inputs and responses up to which squares are safe
FEW = 20_000  # up to so many numbers a check of each is faster than a sum


def as_data(X: ArrayLike | None, y: ArrayLike, weights: ArrayLike | None = None) -> Data:
    """Return validated observations; rows of weight zero are left out.

    ``X`` may be ``None`` for a model without inputs; a vector is one column.  Arrays of floats are
    not copied, and are read-only in the data.
    """
    data = as_rows(X, y, weights)
    if not len(data):
        if weights is not None and np.size(weights):
            raise ValueError("weights must have a positive sum, got 0.0")
        raise ValueError("y must have at least one observation, got 0")
    return data


def as_rows(X: ArrayLike | None, y: ArrayLike, weights: ArrayLike | None = None) -> Data:
    """Return validated observations like ``as_data``, possibly without any row."""
    response = as_numbers("y", y, copy=False)
    if response.ndim != 1:
        raise ValueError(f"y must be one-dimensional, got shape {response.shape}")
    n = len(response)
    inputs = np.empty((n, 0)) if X is None else as_inputs(X)
    if len(inputs) != n:
        raise ValueError(f"X and y must have the same length, got {len(inputs)} and {n}")
    refuse_non_finite("y", response)
    if weights is None:
        return Data(_read_only(inputs), _read_only(response), _ones(n))
    weight = as_numbers("weights", weights, copy=False)
    if weight.shape != (n,):
        raise ValueError(f"weights must have shape ({n},), got shape {weight.shape}")
    refuse_non_finite("weights", weight)
    if (weight < 0).any():
        row = int(np.argmin(weight))
        raise ValueError(f"weights must be non-negative, got {float(weight[row])!r} in row {row}")
    with np.errstate(over="ignore"):
        if not math.isfinite(weight.sum()):
            raise ValueError(f"weights must have a finite sum, got up to {float(weight.max())!r}")
    kept = weight > 0
    if kept.all():
        return Data(*(_read_only(part) for part in (inputs, response, weight)))
    return Data(inputs[kept], response[kept], weight[kept])


def as_inputs(X: ArrayLike) -> Array:
    """Return a validated input matrix (n, d); a vector is one column."""
    inputs = as_numbers("X", X, copy=False)
    if inputs.ndim == 1:
        inputs = inputs[:, None]
    if inputs.ndim != 2:
        raise ValueError(f"X must have one or two dimensions, got shape {inputs.shape}")
    refuse_non_finite("X", inputs)
    return inputs


def non_negative(name: str, value: Any) -> float:
    """Return a finite non-negative number."""
    number = _number(name, value)
    if number < 0:
        raise ValueError(f"{name} must be non-negative, got {shown(value)}")
    return number


def positive(name: str, value: Any) -> float:
    """Return a finite positive number."""
    number = _number(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {shown(value)}")
    return number


def open_unit(name: str, value: Any) -> float:
    """Return a number strictly between 0 and 1."""
    number = _number(name, value)
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {shown(value)}")
    return number


def open_units(name: str, values: Any) -> Array:
    """Return numbers strictly between 0 and 1, as an array of the same shape."""
    numbers = as_numbers(name, values)
    outside = ~((numbers > 0) & (numbers < 1))
    if outside.any():
        raise ValueError(f"{name} must lie between 0 and 1, got {shown(numbers[outside][0])}")
    return numbers


def whole(name: str, value: Any, least: int) -> int:
    """Return an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} must be an integer, got {shown(value)}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {shown(value)}")
    return int(value)


def one_of(name: str, value: Any, accepted: Collection[Any]) -> None:
    """Refuse a value that is not among those accepted."""
    if not isinstance(value, str | bool) or value not in accepted:
        choices = ", ".join(repr(choice) for choice in accepted)
        raise ValueError(f"{name} must be one of {choices}, got {shown(value)}")


def as_bounds(bounds: Any) -> tuple[float, float]:
    """Return bounds on beta, 0 <= lower < upper <= 1e100."""
    ends = list(bounds) if np.iterable(bounds) else []
    if len(ends) != 2 or not all(_is_number(end) for end in ends):
        raise ValueError(f"bounds must be two numbers (lower, upper), got {shown(bounds)}")
    lower, upper = (float(end) for end in ends)
    if not (0 <= lower < upper <= LARGEST_BETA):
        raise ValueError(
            f"bounds must satisfy 0 <= lower < upper <= {LARGEST_BETA:g}, got "
            f"{shown((lower, upper))}"
        )
    return lower, upper


def as_non_negative(name: str, values: ArrayLike) -> Array:
    """Return finite non-negative numbers, in the shape given."""
    array = as_numbers(name, values)
    bad = array[~np.isfinite(array) | (array < 0)]
    if len(bad):
        raise ValueError(f"{name} must be finite and non-negative, got {float(bad[0])!r}")
    return array


def as_numbers(name: str, values: ArrayLike | None, copy: bool = True) -> Array:
    """Return real numbers as floats, in the shape given.

    Text, dates and complex numbers are refused even where numpy would convert them.
    """
    if np.ma.is_masked(values):
        raise ValueError(f"{name} must hold real numbers, got masked entries")
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must hold real numbers, got rows of different lengths") from None
    if array.dtype.kind not in REAL:
        entries = np.asarray(values, dtype=object).flat
        unaccepted = next((shown(entry) for entry in entries if not _is_number(entry)), None)
        if unaccepted is not None or array.dtype.kind != "O":
            raise ValueError(f"{name} must hold real numbers, got {unaccepted or array.dtype}")
    return np.array(array, dtype=float) if copy else np.asarray(array, dtype=float)


def refuse_non_finite(name: str, array: Array, axes: Sequence[str] = ("row", "column")) -> None:
    """Refuse NaN and infinity, and name their place."""
    if array.size <= FEW:
        if np.isfinite(array).all():
            return
    else:
        # A finite sum proves that all numbers are finite; an infinite sum may be an overflow.
        with np.errstate(over="ignore", invalid="ignore"):
            if math.isfinite(array.sum()):
                return
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        value = float(array[tuple(bad[0])])
        place = ", ".join(f"{axis} {at}" for axis, at in zip(axes, bad[0], strict=False))
        raise ValueError(f"{name} must be finite, got {value!r}{place and ' in ' + place}")


@contextmanager
def refuse_overflow(X: Array, y: Array) -> Iterator[None]:
    """Raise an error about too large numbers where an operation overflows."""
    try:
        with np.errstate(over="raise"):
            yield
    except (FloatingPointError, OverflowError, np.linalg.LinAlgError):
        largest = [float(np.abs(part).max(initial=0.0)) for part in (X, y)]
        raise ValueError(
            "X and y must be of a size whose squares are finite, also times weights, prior "
            f"variances and beta, got numbers up to {largest[0]:.3g} and {largest[1]:.3g}"
        ) from None


def shown(value: Any) -> str:
    """Return a value as one short line; numpy's numbers look like Python's."""
    line = " ".join(repr(_plain(value)).split())
    return line if len(line) <= 80 else f"{line[:77]}..."


def _ones(n: int) -> Array:
    """Return read-only ones, broadcast from one number."""
    return np.ndarray(n, buffer=ONE, strides=(0,))


def _read_only(array: Array) -> Array:
    """Return a read-only view of the same numbers."""
    view = array.view()
    view.flags.writeable = False
    return view


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if type(value) in (tuple, list):
        return type(value)(_plain(part) for part in value)
    return value


def _number(name: str, value: Any) -> float:
    if not _is_number(value):
        raise ValueError(f"{name} must be a number, got {shown(value)}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {shown(value)}")
    return float(value)


def _is_number(value: Any) -> bool:
    try:
        array = np.asarray(value)
    except ValueError:
        return False
    return array.ndim == 0 and array.dtype.kind in REAL
