"""Data of any size, with a truth that calibration has something to say about."""

from __future__ import annotations

import numpy as np


def regression(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Weak signal in all columns, noise of variance 4."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ (rng.standard_normal(d) / np.sqrt(d)) + 2 * rng.standard_normal(n)


def classification(
    n: int, d: int, classes: int = 2, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw classes 0, 1, ... by a logistic model; each beside class 0 has a signal of unit size."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    odds = np.zeros((n, classes))
    odds[:, 1:] = X @ (rng.standard_normal((d, classes - 1)) / np.sqrt(d))
    # The largest of log odds plus Gumbel noise has the probabilities of the logistic model.
    y = np.argmax(odds + rng.gumbel(size=(n, classes)), axis=1).astype(float)
    y[:classes] = np.arange(classes)
    return X, y


def named(n: int, d: int) -> str:
    """Write a size, like 1e5 × 100."""
    short = f"{n:.0e}".replace("e+0", "e")
    return f"{short if n >= 10_000 and float(short) == n else n} × {d}"
