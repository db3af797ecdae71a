r"""One decomposition of all rows, with what it says of each: see leave-one-out.

B = A diag(sigma) U' are the rows scaled by the roots of their weights, g = A'r.  The Gram matrix
tells U and sigma where it is well-conditioned, and A = B U / sigma is made of the rows as needed;
else a singular value decomposition tells all three.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from temperance.models.linear.fast.grams import eigenbasis_of_grams
from temperance.models.linear.rows import Rows
from temperance.models.linear.singular import outside, singular_values
from temperance.types import Array


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
