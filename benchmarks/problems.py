"""Data of any size, with a truth that calibration has something to say about."""

from __future__ import annotations

import numpy as np


def regression(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Weak signal in all columns, noise of variance 4."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ (rng.standard_normal(d) / np.sqrt(d)) + 2 * rng.standard_normal(n)


def classification(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes, the signal of unit size."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    odds = X @ (rng.standard_normal(d) / np.sqrt(d))
    y = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(float)
    y[:2] = 0.0, 1.0
    return X, y


def named(n: int, d: int) -> str:
    """Write a size, like 1e5 x 100."""
    short = f"{n:.0e}".replace("e+0", "e")
    return f"{short if n >= 10_000 and float(short) == n else n} x {d}"
