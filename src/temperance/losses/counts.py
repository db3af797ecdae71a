r"""Constants of the likelihoods of counts, without the loss of digits of large factorials.

Stirling's formula with its error d(y):  log y! = (y + 1/2) log y - y + log(2 pi) / 2 + d(y).
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from temperance.data import Array

LARGE = 16.0  # from here on the series of d has all digits


def stirling_error(y: Array) -> Array:
    """Return d(y) for y > 0."""
    y = np.asarray(y, dtype=float)
    small = np.minimum(y, LARGE)
    near = gammaln(small + 1) - (small + 0.5) * np.log(small) + small - 0.5 * np.log(2 * np.pi)
    r = 1 / np.maximum(y, LARGE)
    q = r * r
    far = r * (1 / 12 - q * (1 / 360 - q * (1 / 1260 - q * (1 / 1680 - q / 1188))))
    return np.where(y < LARGE, near, far)


def least_poisson(y: Array) -> Array:
    """Return y - y log y + log y!, the least Poisson loss of a count; 0 for y = 0."""
    at = np.maximum(y, 1.0)
    return np.where(y > 0, 0.5 * np.log(2 * np.pi * at) + stirling_error(at), 0.0)


def negative_binomial_constant(y: Array, k: float) -> Array:
    """Return log Gamma(k) + log y! - log Gamma(y + k)."""
    at = np.maximum(y, 1.0)
    # y log(1 + k/y) + k log(1 + y/k) is what N log N - y log y - k log k is for N = y + k.
    split = at * np.log1p(k / at) + k * np.log1p(at / k)
    rest = 0.5 * np.log(2 * np.pi * at * (1 + at / k))
    errors = stirling_error(at) + stirling_error(np.asarray(k)) - stirling_error(at + k)
    return np.where(y > 0, rest + errors - split, 0.0)
