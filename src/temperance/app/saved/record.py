"""Values from JSON, each checked when it is read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from temperance.checks import shown
from temperance.data import Array

LARGEST = float(np.finfo(float).max)


class Record:
    """A JSON object from an untrusted file.

    Every method reads one field and checks it; errors are one line that names the field.

    Parameters
    ----------
    value : result of ``json.loads``
    name : name of the record within the file, for messages

    Examples
    --------
    >>> record = Record({"mean": [1, 2.5]})
    >>> record.array("mean", 1)
    array([1. , 2.5])
    >>> record.text("kind")
    Traceback (most recent call last):
    ...
    ValueError: kind is not there
    """

    def __init__(self, value: Any, name: str = "") -> None:
        self._name = name
        if not isinstance(value, dict):
            raise ValueError(f"{name or 'the whole'} must be an object, got {_shown(value)}")
        self._value = value

    def take(self, field: str, kind: type | tuple[type, ...], wanted: str) -> Any:
        """Return a field of a type; ``wanted`` describes the type in messages."""
        if field not in self._value:
            raise ValueError(f"{self.name_of(field)} is not there")
        value = self._value[field]
        truth = isinstance(value, bool) and kind is not bool  # bool is a subclass of int
        if truth or not isinstance(value, kind):
            raise ValueError(f"{self.name_of(field)} must be {wanted}, got {_shown(value)}")
        return value

    def name_of(self, field: str) -> str:
        """Return the name of a field within the file."""
        return f"{self._name}.{field}" if self._name else field

    def has(self, field: str) -> bool:
        """Return whether a field exists."""
        return field in self._value

    def text(self, field: str, accepted: Collection[str] | None = None) -> str:
        """Return text; with ``accepted``, one of these texts."""
        value: str = self.take(field, str, "text")
        if accepted is not None and value not in accepted:
            names = ", ".join(map(repr, accepted))
            raise ValueError(f"{self.name_of(field)} must be one of {names}, got {_shown(value)}")
        return value

    def truth(self, field: str) -> bool:
        """Return true or false."""
        return bool(self.take(field, bool, "true or false"))

    def whole(self, field: str, least: int = 0) -> int:
        """Return a whole number of at least ``least``."""
        wanted = f"a whole number of at least {least}"
        value: int = self.take(field, int, wanted)
        if value < least:
            raise ValueError(f"{self.name_of(field)} must be {wanted}, got {_shown(value)}")
        return value

    def number(self, field: str, positive: bool = False) -> float:
        """Return a finite number."""
        wanted = "a positive number" if positive else "a number"
        value = self.take(field, (int, float), wanted)
        if not abs(value) <= LARGEST or (positive and not value > 0):
            raise ValueError(f"{self.name_of(field)} must be {wanted}, got {_shown(value)}")
        return float(value)

    def array(
        self,
        field: str,
        dimensions: int | tuple[int, ...],
        shape: Sequence[int | None] | None = None,
        positive: bool = False,
    ) -> Array:
        """Return an array of finite numbers with this number of dimensions, or of this shape."""
        ways = (dimensions,) if isinstance(dimensions, int) else dimensions
        value = self.take(field, list, "a list of numbers")
        name = self.name_of(field)
        try:
            array = np.array(value, dtype=None if value else float)
        except ValueError:
            raise ValueError(f"{name} must have rows of the same length") from None
        if array.dtype.kind not in "if" or array.ndim not in ways:
            many = " or ".join(map(str, ways))
            raise ValueError(f"{name} must be an array of numbers of {many} dimensions")
        array = array.astype(float)
        if not np.all(np.isfinite(array)) or (positive and not np.all(array > 0)):
            raise ValueError(f"{name} must hold {'positive' if positive else 'finite'} numbers")
        if shape is not None and any(
            wanted not in (None, found) for wanted, found in zip(shape, array.shape, strict=True)
        ):
            expected = " x ".join("any" if size is None else str(size) for size in shape)
            got = " x ".join(map(str, array.shape))
            raise ValueError(f"{name} must have {expected} numbers, got {got}")
        return array

    def record(self, field: str) -> Record:
        """Return a nested object."""
        return Record(self.take(field, dict, "an object"), self.name_of(field))

    def records(self, field: str) -> list[Record]:
        """Return a list of objects."""
        values = self.take(field, list, "a list of objects")
        return [Record(value, f"{self.name_of(field)}[{i}]") for i, value in enumerate(values)]

    def texts(self, field: str) -> list[str]:
        """Return a list of distinct texts."""
        values: list[Any] = self.take(field, list, "a list of texts")
        if not all(isinstance(value, str) for value in values) or len(set(values)) < len(values):
            raise ValueError(f"{self.name_of(field)} must be a list of distinct texts")
        return values


def _shown(value: Any) -> str:
    names = {dict: "an object", list: "a list", type(None): "null"}
    return names.get(type(value)) or shown(value)
