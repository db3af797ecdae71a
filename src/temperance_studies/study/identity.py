r"""Identity of settings and strategies: their canonical JSON, and seeds derived from it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
import types
from typing import Any

import numpy as np


def canonical(value: Any) -> str:
    """Return the canonical JSON of plain values, dataclasses and objects made of these.

    An object is its type and its fields; 8 and 8.0 are equal.

    Examples
    --------
    >>> from temperance.strategies import KFold
    >>> canonical({"b": KFold(5), "a": (1.0, None)})  # doctest: +ELLIPSIS
    '{"a":[1,null],"b":{"duplicates":"auto","n_folds":5,...}}'
    """
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def generator(seed: int, repetition: int, *identities: str) -> np.random.Generator:
    """Return a generator that depends on the seed, the repetition and these digests only."""
    words = [int(each, 16) for each in identities]
    return np.random.default_rng(np.random.SeedSequence([seed, repetition, *words]))


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, np.ndarray):
        return [_plain(each) for each in value.tolist()]
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    kind = type(value)
    if isinstance(value, types.FunctionType | type) or not hasattr(value, "__dict__"):
        raise ValueError(
            f"settings and strategies must be made of plain values to be told apart, got {value!r}"
        )
    if dataclasses.is_dataclass(value):
        fields = {
            each.name: getattr(value, each.name)
            for each in dataclasses.fields(value)
            if not _absent(each, value)
        }
    else:
        fields = vars(value)
    return {"type": f"{_stored_module(kind)}.{kind.__qualname__}"} | _plain(fields)


def _absent(field: dataclasses.Field[Any], value: Any) -> bool:
    """Whether a field that was added later has the value that stands for its absence."""
    name = "stored_unless"
    return name in field.metadata and bool(getattr(value, field.name) == field.metadata[name])


def _stored_module(kind: type) -> str:
    """Return the module's name; ``STORED_AS`` is the name in stored studies if it has moved."""
    return getattr(sys.modules[kind.__module__], "STORED_AS", kind.__module__)
