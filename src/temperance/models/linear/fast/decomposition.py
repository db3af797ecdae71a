r"""One decomposition of all rows, and the leverage of each: see leave-one-out.

B = A diag(sigma) U' are the rows scaled by the roots of their weights, g = A'r.  The Gram matrix
tells U and sigma where it is well-conditioned, and A = B U / sigma is made of the rows as needed;
else a singular value decomposition tells all three.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.models.linear.fast.grams import eigenbasis_of_grams
from temperance.models.linear.rows import CACHED, Rows
from temperance.models.linear.singular import outside, singular_values
from temperance.types import Array, batches

CLEAR = 0.5  # leverage up to which 1 - h is no difference of near-equals


class Decomposition(NamedTuple):
    """Decomposition of all rows, scaled by the roots of their weights."""

    sigma: Array  # (rank,)
    projection: Array  # (rank,): g
    response: Array  # (n,)
    remainder: float  # |o|^2
    factor: Array  # (n, rank): A, or (k, rank): what makes the inputs A
    rotates: bool

    @property
    def square(self) -> bool:
        """Whether the rows span everything."""
        return len(self.response) == len(self.sigma)


def from_gram(rows: Rows, weights: Array | None) -> Decomposition | None:
    """Take A = Z U / sigma of rows of these weights, or of weight 1, if the Gram matrix tells U."""
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


def from_rows(rows: Rows, weights: Array | None) -> Decomposition:
    """Decompose the rows themselves."""
    scaled, response = rows.take(slice(None), weights), _weighted(rows.response, weights)
    left, sigma, _ = singular_values(scaled[:, :-1])
    left, sigma = left[:, sigma > 0], sigma[sigma > 0]
    g = left.T @ response
    if left.shape[0] == left.shape[1]:
        # The rows span everything: exact zeros, where differences would leave rounding noise.
        return Decomposition(sigma, g, response, 0.0, left, False)
    remainder = float((outside(left, response, g) ** 2).sum())
    return Decomposition(sigma, g, response, remainder, left, False)


def _weighted(response: Array, weights: Array | None) -> Array:
    return response if weights is None else response * np.sqrt(weights)


@dataclass(frozen=True, eq=False)
class Leverages:
    """Leverages sum_j A_ij^2 of rows, without a prior, from their decomposition.

    Parameters
    ----------
    rows : Rows
    weights : array of shape (n,), or None where all are 1
    decomposition : Decomposition
        Of the rows scaled by the roots of their weights.
    """

    rows: Rows
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
    def most(self) -> float:
        """Bound on all: by the rows' lengths if that says enough, else exact."""
        bound = self._by_length(slice(None))
        return bound if bound < CLEAR else float(1 - self.slack.min())

    def most_of(self, which: slice, enough: float) -> float:
        """Bound those of some rows: by their lengths if that is below ``enough``, else exact."""
        bound = self._by_length(which)
        return bound if bound < enough else float(1 - self._slack_of(which).min())

    @cached_property
    def slack(self) -> Array:
        """What is left of each row's length, 1 - sum_j A_ij^2."""
        return self._slack_of(slice(None))

    @cached_property
    def outside(self) -> Array:
        """What of the responses, times the roots of the weights, lies outside the span, (n,)."""
        parts = self.decomposition
        if parts.square:
            return np.zeros(len(self.rows))
        if not parts.rotates:
            return outside(parts.factor, parts.response, parts.projection)
        fit = self.rows.inputs @ (parts.factor @ parts.projection)
        return parts.response - (fit if self.weights is None else fit * np.sqrt(self.weights))

    def _by_length(self, which: slice) -> float:
        """Bound those of some rows by their lengths."""
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
