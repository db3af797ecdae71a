"""Compiled programs on disk: JAX's compilation cache, in the user's cache folder.

``TEMPERANCE_CACHE`` names another folder, or is ``off``.  A folder that JAX is set to already is
taken as it is, and JAX's own settings are as before when a computation ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

FOLDER = "jax_compilation_cache_dir"
VARIABLE = "TEMPERANCE_CACHE"
LEAST_SECONDS = 0.03  # of compilation: shorter ones are not kept
LARGEST = 2**28  # bytes on disk


def folder() -> Path | None:
    """Return the folder of compiled programs, or None if they are not kept."""
    named = os.environ.get(VARIABLE, "")
    if named.lower() in ("off", "0", "no"):
        return None
    if named:
        return Path(named)
    if sys.platform == "win32":
        above = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        above = Path.home() / "Library" / "Caches"
    else:
        above = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return above / "temperance" / "jax"


@contextmanager
def kept_on_disk(wanted: bool = True) -> Iterator[None]:
    """Return a context in which compiled programs are kept on disk and read from there."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    at = folder() if wanted else None
    if at is None or getattr(jax.config, FOLDER) is not None or not _usable(at):
        yield
        return
    chosen = {
        FOLDER: str(at),
        "jax_persistent_cache_min_compile_time_secs": LEAST_SECONDS,
        "jax_persistent_cache_min_entry_size_bytes": 0,
        # JAX removes the oldest programs only where it can lock the folder.
        "jax_compilation_cache_max_size": LARGEST if find_spec("filelock") else -1,
    }
    before = {name: getattr(jax.config, name) for name in chosen}
    try:
        _set(chosen)
        compilation_cache.reset_cache()
        yield
    finally:
        _set(before)
        compilation_cache.reset_cache()


def _set(values: dict[str, object]) -> None:
    import jax

    update: Callable[[str, object], None] = jax.config.update
    for name, value in values.items():
        update(name, value)


def _usable(at: Path) -> bool:
    """Return whether the folder exists or can be made, for this user alone."""
    try:
        at.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(at, os.W_OK)
