r"""Sums of moments at every beta, from few.

With a known noise variance the sums over tested rows are rational functions of beta whose poles lie
at -1/lambda, lambda an eigenvalue of a training set.  If these lie in [low, high], and
m = sqrt(low high),

    x = (beta m - 1) / (beta m + 1)

takes beta in [0, infinity] to [-1, 1] and the poles out of the ellipse with semi-axes' sum

    rho = (kappa^(1/4) + 1) / (kappa^(1/4) - 1),      kappa = high / low,

so polynomials of degree p in x miss the sums by about rho^-p: well-conditioned training sets need a
handful of betas for all.  Values and slopes at p/2 Chebyshev points determine the polynomial.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from temperance.models.linear.moments import Sums
from temperance.types import Array

TOLERANCE = 1e-13
MOST_NODES = 16  # beyond them the betas themselves are as cheap


class SumsInterpolant(NamedTuple):
    """Chebyshev series of square and spread in x."""

    coefficients: Array  # (degree + 1, 2)
    middle: float  # m
    exposure: Array
    tested: Array

    def at(self, beta: Array) -> Sums:
        """Return the sums at betas (g,)."""
        x = (beta * self.middle - 1) / (beta * self.middle + 1)
        chain = 2 * self.middle / (beta * self.middle + 1) ** 2
        value = chebyshev.chebval(x, self.coefficients)
        slope = chebyshev.chebval(x, chebyshev.chebder(self.coefficients)) * chain
        none = np.zeros((1, len(beta)))
        return Sums(
            square=value[:1],
            spread=value[1:],
            misfit=none,
            d_square=slope[:1],
            d_spread=slope[1:],
            d_misfit=none,
            exposure=self.exposure,
            tested=self.tested,
        )


def count_nodes(low: float, high: float) -> int | None:
    """Return how many betas determine sums with such eigenvalues; nothing if they are too many."""
    root = (high / low) ** 0.25 if low > 0 else np.inf
    if root > 3.0:  # rho < 2
        return None
    rate = np.log((root + 1) / max(root - 1, 1e-3))
    nodes = int(np.ceil(-np.log(TOLERANCE) / rate / 2)) + 2
    return nodes if nodes <= MOST_NODES else None


def interpolate_sums(
    low: float, high: float, nodes: int, sums: Callable[[Array], Sums]
) -> SumsInterpolant:
    """Evaluate sums of one pair at the nodes and pass a polynomial through them."""
    x = chebyshev.chebpts1(nodes)
    middle = float(np.sqrt(low * high))
    beta = (1 + x) / (1 - x) / middle
    found = sums(beta)
    stretch = 2 / (middle * (1 - x) ** 2)  # d beta / d x
    degree = 2 * nodes - 1
    # Slopes in the angle, so that both kinds of rows have the same size.
    turn = np.sqrt(1 - x**2) / degree
    values = chebyshev.chebvander(x, degree)
    slopes = chebyshev.chebval(x, chebyshev.chebder(np.eye(degree + 1))).T
    system = np.concatenate([values, turn[:, None] * slopes])
    wanted = np.concatenate(
        [
            np.stack([found.square[0], found.spread[0]], axis=1),
            np.stack([found.d_square[0], found.d_spread[0]], axis=1) * (turn * stretch)[:, None],
        ]
    )
    return SumsInterpolant(np.linalg.solve(system, wanted), middle, found.exposure, found.tested)
