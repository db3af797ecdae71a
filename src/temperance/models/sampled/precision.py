"""Double precision for the computations in JAX, for any setting of the user's."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

import jax


def double_precision() -> AbstractContextManager[Any]:
    """Return a context of double precision; the user's own setting is not changed."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return import_module("jax.experimental").enable_x64()
