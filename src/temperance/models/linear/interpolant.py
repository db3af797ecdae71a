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
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from temperance.models.linear.moments import Sums
from temperance.types import Array

TOLERANCE = 1e-13
MOST_NODES = 16  # beyond them the betas themselves are as cheap


class SumsInterpolant(NamedTuple):
    """Chebyshev series of square and spread in x."""

    series: Array  # (degree + 1, 4): square and spread, then their derivatives in x
    middle: float  # m
    exposure: Array
    tested: Array

    def at(self, beta: Array) -> Sums:
        """Return the sums at betas (g,)."""
        x = (beta * self.middle - 1) / (beta * self.middle + 1)
        chain = 2 * self.middle / (beta * self.middle + 1) ** 2
        square, spread, d_square, d_spread = chebyshev.chebval(x, self.series)[:, None]
        none = np.zeros((1, len(beta)))
        return Sums(
            square=square,
            spread=spread,
            misfit=none,
            d_square=d_square * chain,
            d_spread=d_spread * chain,
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
    points = _interpolation(nodes)
    x = points.x
    middle = float(np.sqrt(low * high))
    found = sums((1 + x) / (1 - x) / middle)
    stretch = 2 / (middle * (1 - x) ** 2)  # d beta / d x
    values = np.concatenate([found.square, found.spread])
    slopes = np.concatenate([found.d_square, found.d_spread]) * (points.turn * stretch)
    coefficients = np.linalg.solve(points.system, np.concatenate([values, slopes], axis=1).T)
    series = np.zeros((2 * nodes, 4))
    series[:, :2] = coefficients
    series[:-1, 2:] = chebyshev.chebder(coefficients)
    return SumsInterpolant(series, middle, found.exposure, found.tested)


class _Interpolation(NamedTuple):
    """Chebyshev points, and the equations of a polynomial with given values and slopes there."""

    x: Array  # (nodes,)
    turn: Array  # (nodes,): what slopes are multiplied by
    system: Array  # (2 nodes, 2 nodes)


@cache
def _interpolation(nodes: int) -> _Interpolation:
    x = chebyshev.chebpts1(nodes)
    degree = 2 * nodes - 1
    # Slopes in the angle, so that both kinds of rows have the same size.
    turn = np.sqrt(1 - x**2) / degree
    values = chebyshev.chebvander(x, degree)
    slopes = chebyshev.chebval(x, chebyshev.chebder(np.eye(degree + 1))).T
    return _Interpolation(x, turn, np.concatenate([values, turn[:, None] * slopes]))
