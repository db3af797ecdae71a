r"""Fewer rows with the same sums of squares.

Rows that share their weights in every pair of a plan enter quadratic losses by their second moment
alone, so a block of them is replaced by its triangular factor: ten folds of a million rows in d
columns become ten triangles of d + 1 rows.
"""

from __future__ import annotations

import numpy as np

from temperance.grouping import number_distinct
from temperance.models.linear.spectrum import triangle
from temperance.types import Array

MOST_PAIRS = 64


def condense(rows: Array, *weightings: Array) -> tuple[Array, ...]:
    """Replace blocks of rows of equal weights by triangles.

    Parameters
    ----------
    rows : array of shape (n, c)
    weightings : arrays of shape (pairs, n)

    Returns
    -------
    The rows and the weightings of the condensed problem; as given when that would not be smaller.
    """
    if sum(map(len, weightings)) > 2 * MOST_PAIRS:
        return rows, *weightings
    stacked = np.concatenate(weightings)
    scale = stacked.max(axis=0)
    scaled = np.where(scale > 0, scale, 1.0)
    profile = np.round(stacked / scaled, 13)
    labels = number_distinct(profile)
    blocks = int(labels.max()) + 1
    if blocks * rows.shape[1] >= len(rows):
        return rows, *weightings
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(blocks))
    members = np.split(order, starts[1:])
    triangles = [triangle(np.sqrt(scale[block])[:, None] * rows[block]) for block in members]
    lengths = [len(part) for part in triangles]
    profiles = np.repeat(profile[:, [block[0] for block in members]], lengths, axis=1)
    counts = np.cumsum([len(weighting) for weighting in weightings])[:-1]
    return np.concatenate(triangles), *np.split(profiles, counts)
