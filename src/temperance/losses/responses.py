"""Which responses a loss takes, how far they spread, and parameters found from them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from temperance.checks import positive
from temperance.data import Array

AUTO = "auto"


def check_labels(y: Array) -> None:
    """Refuse labels other than 0 and 1."""
    strange = y[(y != 0) & (y != 1)]
    if len(strange):
        raise ValueError(f"y must hold the labels 0 and 1, got {float(strange[0])!r}")


def check_counts(y: Array) -> None:
    """Refuse what is no count."""
    strange = y[~((y >= 0) & (y == np.floor(y)) & np.isfinite(y))]
    if len(strange):
        raise ValueError(f"y must hold counts 0, 1, 2, ..., got {float(strange[0])!r}")


def check_finite(y: Array) -> None:
    """Refuse what is no number."""
    strange = y[~np.isfinite(y)]
    if len(strange):
        raise ValueError(f"y must hold finite numbers, got {float(strange[0])!r}")


def spread(values: Array, weights: Array | None = None) -> float:
    """Return a deviation that outliers hardly move: interquartile range / 1.349.

    Where that is 0, the standard deviation, and where that is 0, 1.
    """
    values = np.ravel(values)
    weights = np.ones(len(values)) if weights is None else np.ravel(weights)
    values, weights = values[weights > 0], weights[weights > 0]
    if not len(values):
        return 1.0
    order = np.argsort(values)
    below = np.cumsum(weights[order]) - 0.5 * weights[order]
    low, high = np.interp(np.array([0.25, 0.75]) * weights.sum(), below, values[order])
    deviation = np.sqrt(np.cov(values, aweights=weights, ddof=0))
    for found in ((high - low) / 1.349, float(deviation)):
        if np.isfinite(found) and found > 1e-12 * np.abs(values).max():
            return float(found)
    return 1.0


def check_free(name: str, value: float | str) -> None:
    """Refuse a parameter that is neither positive nor ``"auto"``."""
    if isinstance(value, str):
        if value != AUTO:
            raise ValueError(f"{name} must be positive or 'auto', got {value!r}")
    else:
        positive(name, value)


def known(name: str, value: float | str) -> float:
    """Return a parameter, or say that it is still to be found."""
    if isinstance(value, str):
        raise ValueError(f"{name} must be a number, got 'auto': fitted(u, y, weights) finds it")
    return float(value)


def best_scale(objective: Callable[[float], float], low: float, high: float) -> float:
    """Return the positive number between two others that minimises a function of it."""
    from scipy.optimize import minimize_scalar

    # The lowest of a grid first: there may be several minima.
    grid = np.linspace(np.log(low), np.log(high), 41)
    best = int(np.argmin([objective(float(np.exp(at))) for at in grid]))
    bounds = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    found = minimize_scalar(
        lambda at: objective(float(np.exp(at))),
        bounds=bounds,
        method="bounded",
        options={"xatol": 1e-9},
    )
    return float(np.exp(found.x))
