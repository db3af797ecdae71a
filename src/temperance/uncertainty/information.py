r"""Information of scores and of curvature: what rates match, and what the sandwich combines.

With the scores s_i, the curvature J and the total weight W,

    I = sum_i w_i s_i s_i' / W,      or   sum_g (sum_{i in g} w_i s_i)(...)' / W   for groups g,

and the minimiser varies from sample to sample by about J^-1 I J^-1 / W, while the posterior at beta
has the covariance J^-1 / (beta W).  Both agree where J = beta I: along direction v the rate is the
generalised eigenvalue of J v = rate I v.

Scores at the minimiser are smaller than at the true parameter, since the rows are fitted.  HC3
divides the score of a row by 1 - h_i, where h_i = r_i'(W J)^-1 r_i is its leverage and r_i r_i' the
Hessian of its loss; that of a group is multiplied by (1 - sum_{i in g} w_i r_i r_i'(W J)^-1)^-1.
They are then what the minimiser moves by when the row or the group is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from temperance.data import Array, Data, Labels
from temperance.protocols import Information, NoMinimiserError

Correction = Literal["HC0", "HC3"]
CORRECTIONS = ("HC0", "HC3")
FITTED = 1e-10  # 1 - h from which on a row determines a direction alone, and has no score there
DIFFERENT = 3.0  # ratio of the rates of two directions from which no single rate fits both
MOST_OBSERVATIONS = 1_000_000  # that are told apart when blocks of them are left out
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

    def without_blocks(self, most: int) -> Iterator[Units]:
        """Yield the units without each of at most ``most`` random blocks of equal size.

        A row of weight k is k observations, which may be in different blocks.
        """
        if self.groups is None:
            thinned = MOST_OBSERVATIONS / max(self.rows.size, MOST_OBSERVATIONS)
            copies = np.maximum(np.rint(self.rows.weights * thinned), 1).astype(int)
            numbers = np.repeat(np.arange(len(self.rows)), copies)
        else:
            copies, numbers = np.ones(self.count, dtype=int), np.arange(self.count)
        order = np.random.default_rng(0).permutation(numbers)
        for block in np.array_split(order, min(most, len(order))):
            yield self.kept(1 - np.bincount(block, minlength=len(copies)) / copies)

    def kept(self, share: Array) -> Units:
        """Return the units with these shares of their weights."""
        weights = self.rows.weights * (share if self.groups is None else share[self.groups])
        left = weights > 0
        part = Data(self.rows.X[left], self.rows.y[left], weights[left])
        if self.groups is None:
            return Units(part)
        return Units(part, np.unique(self.groups[left], return_inverse=True)[1])

    @property
    def count(self) -> int:
        """Number of independent units."""
        return len(self.rows) if self.groups is None else int(self.groups.max()) + 1


def whitened_scores(
    information: Information, units: Units, correction: Correction = "HC0"
) -> Array:
    """Return A L^-T / sqrt(W) for the Cholesky factor J = L L', shape (units, p)."""
    L, size = _curvature_factor(information)
    unit = size * np.sqrt(units.rows.size)
    scores: Array = np.linalg.solve(L, (units.scores(information) / unit).T).T
    if correction == "HC0":
        return scores
    if information.roots is None:
        raise ValueError(
            "correction must be 'HC0' for a model whose information has no Hessians of rows, got "
            f"{correction!r}"
        )
    roots = np.linalg.solve(L, (information.roots / unit).T).T
    return _without_own_fit(scores, roots, units)


def _without_own_fit(scores: Array, roots: Array, units: Units) -> Array:
    """Return whitened scores of rows divided by 1 - h, or of groups by the same of matrices."""
    if units.groups is None:
        left = 1 - (roots**2).sum(axis=1)
        return scores * np.divide(1.0, left, out=np.zeros(len(left)), where=left > FITTED)[:, None]
    p = roots.shape[1]
    own = np.zeros((units.count, p, p))
    np.add.at(own, units.groups, units.rows.weights[:, None, None] * outer(roots))
    inverses = np.linalg.pinv(np.eye(p) - own, rcond=FITTED, hermitian=True)
    return np.asarray((inverses @ scores[:, :, None])[:, :, 0])


def outer(vectors: Array) -> Array:
    """Return v v' for each row v, shape (n, p, p)."""
    return vectors[:, :, None] * vectors[:, None, :]


def _curvature_factor(information: Information) -> tuple[Array, Array]:
    """Return L and sizes of the parameters with J = diag(size) L L' diag(size)."""
    # Parameters in units of their own curvature: squares of extreme units stay finite.
    size = np.sqrt(np.diagonal(information.curvature))
    try:
        return np.linalg.cholesky(information.curvature / size[:, None] / size), size
    except np.linalg.LinAlgError:
        raise NoMinimiserError(
            "the mean loss must be curved in all directions at its minimiser, got none in one: X "
            "has columns that nearly depend on each other"
        ) from None


def rates_by_direction(
    information: Information, units: Units, correction: Correction = "HC0"
) -> Array:
    """Return the generalised eigenvalues of J v = rate I v, ascending, shape (p,)."""
    A = whitened_scores(information, units, correction)
    eigenvalues = np.linalg.eigvalsh(A.T @ A)[::-1]
    largest = eigenvalues[0]
    singular = eigenvalues <= 1e-13 * largest * len(eigenvalues)
    with np.errstate(divide="ignore"):
        return 1 / np.where(singular, 0.0, eigenvalues)


def sandwich_root(information: Information, units: Units, correction: Correction = "HC0") -> Array:
    r"""Return a root R of J^-1 I J^-1 / W, R R' = J^-1 I J^-1 / W, shape (p, p)."""
    L, size = _curvature_factor(information)
    A = whitened_scores(information, units, correction)
    triangle = np.asarray(np.linalg.qr(A, mode="r"))  # triangle' triangle = L^-1 I L^-T
    root = np.zeros((len(size), len(size)))
    root[:, : len(triangle)] = triangle.T
    return np.linalg.solve(L.T, root) / size[:, None] / np.sqrt(units.rows.size)


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
