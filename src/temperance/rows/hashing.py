r"""Random keys of rows that depend on nothing but their values.

A keyed hash gives equal rows equal keys, wherever they are, and others independent ones, without
sorting.  Whether the keys tell rows apart shows in their collisions: where c_b is the weight of all
rows whose key falls into bin b of B, and W the weight of all,

    (sum_b c_b^2 - W^2 / B) / W

is the weight that shares a row's key, on average over observations: 1 if no two share one.  Its
standard deviation is about sqrt(2 / B).  A row of weight k counts like k copies of it.
"""

from __future__ import annotations

from itertools import chain

import numpy as np
from numpy.typing import NDArray

from temperance.rows.duplicates import label_type
from temperance.types import Array, Data, Labels, all_ones, batches, total_weight

Keys = NDArray[np.uint64]

BITS = 12  # of a key, that number the bins
MOST_SHARED = 1.5  # weight behind a key, on average, at which keys tell rows apart
CHUNK = 2**15  # keys that stay in a processor's cache while they are mixed
COUNTED = 2**18  # keys whose counting takes longer than that of the bins
HALF = np.uint64(32)


def telling_keys(data: Data, rng: np.random.Generator) -> Keys | None:
    """Return keys of the rows; nothing where many rows are the same.

    They are keys of the responses if these tell the rows apart, else of the first column of the
    inputs as well, and so on.
    """
    keys = np.full(len(data), rng.integers(2**64, dtype=np.uint64))
    for column in chain([data.y], data.X.T):
        _mix(keys, column, rng)
        if shared_weight(keys, data.weights) < MOST_SHARED:
            return keys
    return None


def shared_weight(keys: Keys, weights: Array) -> float:
    """Estimate the weight that shares a row's key, on average over observations."""
    once, counted = all_ones(weights), np.empty(min(COUNTED, len(keys)), dtype=np.uint64)
    bins: Array | NDArray[np.intp] = np.zeros(0)
    for part in batches(len(keys), 1, COUNTED):
        places = np.right_shift(keys[part], 64 - BITS, out=counted[: part.stop - part.start])
        found = np.bincount(places.view(np.int64), None if once else weights[part], 2**BITS)
        bins = np.add(bins, found, out=found) if len(bins) else found
    size = total_weight(weights)
    return float(bins @ bins - size**2 / 2**BITS) / size


def parts_of(keys: Keys, count: int) -> Labels:
    """Cut the range of the keys into ``count`` equal parts, fewer than 2^32, and number them."""
    labels = np.empty(len(keys), dtype=label_type(count))
    for part in batches(len(keys), 1, CHUNK):
        high = keys[part] >> HALF
        high *= np.uint64(count)
        high >>= HALF
        labels[part] = high
    return labels


def _mix(keys: Keys, column: Array, rng: np.random.Generator) -> None:
    """Mix the bits of a column into the keys: shift high bits to low ones, multiply, twice."""
    factors = rng.integers(2**64, size=2, dtype=np.uint64) | np.uint64(1)
    for part in batches(len(keys), 1, CHUNK):
        some = keys[part]
        some ^= (column[part] + 0.0).view(np.uint64)  # the sum makes -0.0 the same as 0.0
        for factor in factors:
            some ^= some >> HALF
            some *= factor
