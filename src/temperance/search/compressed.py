r"""Curves that fall by orders of magnitude, compressed so that cubics can follow them.

The expected loss of a prior on log rates grows like exp(v/2) with their variance.  Beside such
numbers the differences that matter vanish.  With c the risk at the upper bound, s = 1 + |c|,

    g(R) = c + s log(1 + (R - c)/s)   above c,      g(R) = R   below,

is increasing and has a continuous derivative, so that the minimum of g(R) is that of R.
"""

from __future__ import annotations

import numpy as np

from temperance.data import Array
from temperance.search.minimise import Evaluate

LARGEST = 1e300  # stands for infinity


def compressed(evaluate: Evaluate, level: float) -> Evaluate:
    """Return the compressed curve; ``level`` is c."""

    def evaluate_compressed(betas: Array) -> tuple[Array, Array]:
        values, slopes = evaluate(betas)
        finite = np.nan_to_num(slopes, posinf=LARGEST, neginf=-LARGEST)
        return compress(values, level), finite / (1 + _above(values, level))

    return evaluate_compressed


def compress(values: Array, level: float) -> Array:
    """Return g of values."""
    scale = 1 + abs(level)
    return np.where(values > level, level + scale * np.log1p(_above(values, level)), values)


def _above(values: Array, level: float) -> Array:
    """Return how far values are above the level, in units of s; infinity is a large number."""
    finite = np.nan_to_num(values, nan=LARGEST, posinf=LARGEST)
    return np.maximum(finite - level, 0.0) / (1 + abs(level))
