r"""One decomposition of all rows, and their leverages, for leave-one-out.

B = A diag(sigma) U' are the rows scaled by the square roots of their weights, g = A'r.  If the Gram
matrix is well-conditioned, it gives U and sigma, and A = B U / sigma is computed from the rows as
needed.  Otherwise a singular value decomposition gives all three.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, batches
from temperance.models.linear.grams import eigenbasis_of_grams
from temperance.models.linear.rows import CACHED, WhitenedRows
from temperance.models.linear.singular import outside, singular_values

MODERATE = 0.5  # leverage h up to which 1 - h loses no digits


class Decomposition(NamedTuple):
    """Decomposition of all rows, scaled by the roots of their weights."""

    sigma: Array  # (rank,)
    projection: Array  # (rank,): g
    response: Array  # (n,)
    remainder: float  # |o|^2
    factor: Array  # (n, rank): A, or (k, rank): F with A = W^(1/2) inputs F
    rotates: bool  # whether the factor is F

    @property
    def square(self) -> bool:
        """Whether the rows have full rank n."""
        return len(self.response) == len(self.sigma)


def from_gram(rows: WhitenedRows, weights: Array | None) -> Decomposition | None:
    """Return A = Z U / sigma of weighted rows; None if the Gram matrix is ill-conditioned."""
    if len(rows) <= rows.width:
        return None
    gram = rows.second_moments if weights is None else rows.gram(weights=weights)
    spectrum, safe = eigenbasis_of_grams(gram[None], np.array([len(rows)]))
    if not safe[0]:
        return None
    sigma = spectrum.sigma[0]
    rotation = rows.scale[:, None] * spectrum.vectors[0] / sigma
    remainder = float(spectrum.remainder[0])
    response = _weighted(rows.response, weights)
    return Decomposition(sigma, spectrum.projection[0], response, remainder, rotation, True)


def from_rows(rows: WhitenedRows, weights: Array | None) -> Decomposition:
    """Return the singular value decomposition of the weighted rows."""
    scaled, response = rows.take(slice(None), weights), _weighted(rows.response, weights)
    left, sigma, _ = singular_values(scaled[:, :-1])
    left, sigma = left[:, sigma > 0], sigma[sigma > 0]
    g = left.T @ response
    if left.shape[0] == left.shape[1]:
        # Full rank: the remainder is exactly zero, and a difference would leave rounding errors.
        return Decomposition(sigma, g, response, 0.0, left, False)
    remainder = float((outside(left, response, g) ** 2).sum())
    return Decomposition(sigma, g, response, remainder, left, False)


def _weighted(response: Array, weights: Array | None) -> Array:
    return response if weights is None else response * np.sqrt(weights)


@dataclass(frozen=True, eq=False)
class Leverages:
    """Leverages sum_j A_ij^2 of rows (without a prior), from their decomposition.

    Parameters
    ----------
    rows : Rows
    weights : array of shape (n,), or None where all are 1
    decomposition : Decomposition
        Of the rows scaled by the square roots of their weights.
    """

    rows: WhitenedRows
    weights: Array | None
    decomposition: Decomposition

    def left(self, part: slice | NDArray[np.intp]) -> Array:
        """Return some rows of A, shape (rows, rank)."""
        found = self.decomposition.factor
        if not self.decomposition.rotates:
            return found[part]
        rotated = self.rows.inputs[part] @ found
        return rotated if self.weights is None else rotated * np.sqrt(self.weights[part])[:, None]

    @cached_property
    def largest(self) -> float:
        """Upper bound on all leverages: from the row norms if that is small, otherwise exact."""
        bound = self._norm_bound(slice(None))
        return bound if bound < MODERATE else float(1 - self.slack.min())

    def largest_of(self, which: slice, enough: float) -> float:
        """Return an upper bound for some rows: from their norms if below ``enough``, else exact."""
        bound = self._norm_bound(which)
        return bound if bound < enough else float(1 - self._slack_of(which).min())

    @cached_property
    def slack(self) -> Array:
        """Complement of the leverage of each row, 1 - sum_j A_ij^2."""
        return self._slack_of(slice(None))

    @cached_property
    def outside(self) -> Array:
        """Part of the weighted responses outside the column span, (n,)."""
        parts = self.decomposition
        if parts.square:
            return np.zeros(len(self.rows))
        if not parts.rotates:
            return outside(parts.factor, parts.response, parts.projection)
        fit = self.rows.inputs @ (parts.factor @ parts.projection)
        return parts.response - (fit if self.weights is None else fit * np.sqrt(self.weights))

    def _norm_bound(self, which: slice) -> float:
        """Return an upper bound on the leverages of some rows from their norms."""
        inputs = self.rows.inputs[which]
        squares, longest = self.rows.scale**2, 0.0
        for part in batches(len(inputs), self.rows.width, CACHED):
            lengths = inputs[part] ** 2 @ squares
            if self.weights is not None:
                lengths *= self.weights[which][part]
            longest = max(longest, float(lengths.max()))
        return longest / float(self.decomposition.sigma.min(initial=np.inf)) ** 2

    def _slack_of(self, which: slice) -> Array:
        places = range(len(self.rows))[which]
        slack = np.empty(len(places))
        for part in batches(len(slack), self.rows.width, CACHED):
            some = places[part]
            a = self.left(slice(some.start, some.stop, some.step))
            slack[part] = 1.0 - np.einsum("ij,ij->i", a, a)
        return np.maximum(slack, 0.0)
