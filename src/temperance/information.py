r"""Information of scores and of curvature: what rates match, and what the sandwich combines.

With the scores s_i, the curvature J and the total weight W,

    I = sum_i w_i s_i s_i' / W,      or   sum_g (sum_{i in g} w_i s_i)(...)' / W   for groups g,

and the minimiser varies from sample to sample by about J^-1 I J^-1 / W, while the posterior at beta
has the covariance J^-1 / (beta W).  Both agree where J = beta I: along direction v the rate is the
generalised eigenvalue of J v = rate I v.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from temperance.types import Array, Data, Information, Labels, NoMinimiserError

DIFFERENT = 3.0  # ratio of the rates of two directions from which no single rate fits both
FEWEST_GROUPS = 20  # below which the covariance of their scores is not worth an estimate


@dataclass(frozen=True, eq=False)
class Units:
    """Observations that are independent of each other: rows, or groups of rows.

    Parameters
    ----------
    rows : Data
    groups : array of shape (n,), numbers 0, 1, ... of the groups; None if rows are independent
    """

    rows: Data
    groups: Labels | None = None

    def scores(self, information: Information) -> Array:
        """Return scores A of independent units with A'A / W = I, shape (units, p)."""
        scores, weights = information.scores, self.rows.weights
        if self.groups is None:
            return np.sqrt(weights)[:, None] * scores
        sums = np.zeros((int(self.groups.max()) + 1, scores.shape[1]))
        np.add.at(sums, self.groups, weights[:, None] * scores)
        return sums

    def without(self, units: Labels) -> Units:
        """Return the other units; ``units`` are numbers of rows or groups."""
        numbers = np.arange(len(self.rows)) if self.groups is None else self.groups
        kept = ~np.isin(numbers, units)
        part = Data(self.rows.X[kept], self.rows.y[kept], self.rows.weights[kept])
        if self.groups is None:
            return Units(part)
        return Units(part, np.unique(self.groups[kept], return_inverse=True)[1])

    @property
    def count(self) -> int:
        """Number of independent units."""
        return len(self.rows) if self.groups is None else int(self.groups.max()) + 1


def whitened_scores(information: Information, units: Units) -> Array:
    """Return A L^-T / sqrt(W) for the Cholesky factor J = L L', shape (units, p)."""
    # Parameters in units of their own curvature: squares of extreme units stay finite.
    size = np.sqrt(np.diagonal(information.curvature))
    try:
        L = np.linalg.cholesky(information.curvature / size[:, None] / size)
    except np.linalg.LinAlgError:
        raise NoMinimiserError(
            "the mean loss must be curved in all directions at its minimiser, got none in one: X "
            "has columns that nearly depend on each other"
        ) from None
    scores = units.scores(information) / size / np.sqrt(units.rows.size)
    return np.linalg.solve(L, scores.T).T


def rates_by_direction(information: Information, units: Units) -> Array:
    """Return the generalised eigenvalues of J v = rate I v, ascending, shape (p,)."""
    A = whitened_scores(information, units)
    eigenvalues = np.linalg.eigvalsh(A.T @ A)[::-1]
    largest = eigenvalues[0]
    singular = eigenvalues <= 1e-13 * largest * len(eigenvalues)
    with np.errstate(divide="ignore"):
        return 1 / np.where(singular, 0.0, eigenvalues)


def sandwich_root(information: Information, units: Units) -> Array:
    r"""Return a root R of J^-1 I J^-1 / W, R R' = J^-1 I J^-1 / W, shape (p, p)."""
    size = np.sqrt(np.diagonal(information.curvature))
    J = information.curvature / size[:, None] / size
    scores = units.scores(information) / size
    triangle = np.asarray(np.linalg.qr(scores, mode="r"))  # triangle' triangle = W I
    root = np.zeros((len(size), len(size)))
    root[:, : len(triangle)] = triangle.T
    return np.linalg.solve(J, root) / size[:, None] / units.rows.size


def as_groups(groups: ArrayLike | None, n: int) -> Labels | None:
    """Return labels of n rows as numbers 0, 1, ...; refuse fewer than 20 groups."""
    if groups is None:
        return None
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(
            f"groups must have shape ({n},), one entry for each row of positive weight, got "
            f"shape {labels.shape}"
        )
    numbers = np.unique(labels, return_inverse=True)[1]
    count = int(numbers.max()) + 1
    if count < FEWEST_GROUPS:
        raise ValueError(
            f"groups must hold at least {FEWEST_GROUPS} groups for a covariance of their scores, "
            f"got {count}"
        )
    return numbers
