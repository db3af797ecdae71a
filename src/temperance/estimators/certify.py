"""Rows set aside for standardisation and prior, so that the others can be certified."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.checks import open_unit, shown
from temperance.data import Array, all_ones
from temperance.estimators.inputs import as_seed

Rows = slice | NDArray[np.intp]


def rows_apart(
    share: float | None, codes: Array, weights: Array, groups: Any, random_state: Any
) -> tuple[Rows, Rows]:
    """Return a random share of the rows, which give units and prior, and the others.

    Both are all rows if the share is None.

    Parameters
    ----------
    share : float between 0 and 1, or None
    codes, weights : arrays of shape (n,), numbers of classes, and zeros and ones
    groups : must be None if there is a share
    random_state : int, RandomState or None
    """
    if share is None:
        return slice(None), slice(None)
    part, seed = open_unit("certify", share), as_seed(random_state)
    refuse_dependent_rows(weights, groups)
    used = np.random.default_rng([seed, 1]).permutation(np.flatnonzero(weights > 0))
    count = round(part * len(used))
    first, others = np.sort(used[:count]), np.sort(used[count:])
    classes = len(np.unique(codes[used]))
    if classes > 2:
        raise ValueError(f"certify must be None for more than two classes, got {classes} classes")
    if min(len(np.unique(codes[rows])) for rows in (first, others)) < 2:
        raise ValueError(
            "certify must leave rows of both classes in either part, got "
            f"{shown(share)} with {len(first)} and {len(others)} rows"
        )
    return first, others


def refuse_dependent_rows(weights: Array, groups: Any) -> None:
    """Refuse rows that are copies or depend on each other."""
    if not all_ones(weights[weights > 0]):
        other = float(weights[(weights > 0) & (weights != 1)][0])
        raise ValueError(
            "sample_weight must be 0 or 1 with certify, which counts independent rows: copies add "
            f"none, got {other!r}"
        )
    if groups is not None:
        raise ValueError("groups must be None with certify: rows of a group are not independent")


def decided_by_rows(standardize: bool, learns_scale: bool, learns_mean: bool) -> tuple[str, ...]:
    """Return what rows decide that give both the units of X and the prior."""
    found = {
        "the units of X (standardize)": standardize,
        "the scale of the prior (prior_scale)": learns_scale,
        "the mean of the prior": learns_mean,
    }
    return tuple(phrase for phrase, decided in found.items() if decided)
