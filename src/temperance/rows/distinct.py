"""Whether values are all distinct, without sorting them."""

from __future__ import annotations

import numpy as np

from temperance.types import Array

MIXER = np.uint64(0x9E3779B97F4A7C15)  # odd: a product with it loses no bit


def all_distinct(values: Array) -> bool:
    """Return whether no two of some finite numbers are equal.

    Each number is put where its hash says, whoever is there.  Of two that are equal one stays,
    and the other finds it there, or neither does: then both are among the few that lost their
    place, which are sorted.

    Examples
    --------
    >>> all_distinct(np.array([0.5, 2.0, -1.0])), all_distinct(np.array([0.5, 0.0, -0.0]))
    (True, False)
    """
    bits = len(values).bit_length() + 1  # two to four places for each
    numbers = np.arange(len(values), dtype=np.int32 if bits < 32 else np.int64)
    keys = (values + 0.0).astype(np.float64, copy=False).view(np.uint64)  # -0.0 becomes 0.0
    place = (keys * MIXER >> np.uint64(64 - bits)).view(np.int64)
    holder = np.empty(2**bits, dtype=numbers.dtype)
    holder[place] = numbers
    there = holder.take(place, mode="clip")
    lost = np.flatnonzero(there != numbers)
    if np.any(values[lost] == values[there[lost]]):
        return False
    ordered = np.sort(values[lost])
    return bool(np.all(ordered[1:] != ordered[:-1]))
