r"""Sums of moments at every beta, from few.

With a known noise variance the sums over tested rows are rational functions of beta whose poles lie
at -1/lambda, lambda an eigenvalue of a training set.  If these lie in [low, high], and
m = sqrt(low high),

    x = (beta m - 1) / (beta m + 1)

takes beta in [0, infinity] to [-1, 1] and the poles out of the ellipse with semi-axes' sum

    rho = (kappa^(1/4) + 1) / (kappa^(1/4) - 1),      kappa = high / low,

so polynomials of degree p in x miss the sums by about rho^-p: well-conditioned training sets need a
handful of betas for all.  Values at p + 1 Chebyshev points determine the polynomial and its slopes,
for less than values and slopes at half as many.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from temperance.models.linear.moments import Sums
from temperance.types import Array

TOLERANCE = 1e-13
MOST_NODES = 32  # beyond them the betas themselves are as cheap


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
    nodes = int(np.ceil(-np.log(TOLERANCE) / rate)) + 2
    return nodes if nodes <= MOST_NODES else None


def node_betas(low: float, high: float, nodes: int) -> Array:
    """Return betas (nodes,), ascending, that determine sums with eigenvalues in [low, high]."""
    x, _ = chebyshev_points(nodes)
    beta: Array = (1 + x) / (1 - x) / np.sqrt(low * high)
    return beta


def interpolate_sums(
    low: float, high: float, square: Array, spread: Array, exposure: float, tested: float
) -> SumsInterpolant:
    """Pass polynomials through the sums at :func:`node_betas`.

    Parameters
    ----------
    low, high : float
        Where the eigenvalues lie.
    square, spread : arrays of shape (nodes,)
    exposure, tested : float
        Their weights; see :class:`Sums`.
    """
    _, transform = chebyshev_points(len(square))
    found = np.column_stack([square, spread])
    series = np.concatenate([transform @ found, _derivative(len(square)) @ found], axis=1)
    middle = float(np.sqrt(low * high))
    return SumsInterpolant(series, middle, np.array([exposure]), np.array([tested]))


@cache
def chebyshev_points(count: int) -> tuple[Array, Array]:
    """Return Chebyshev points, and what takes values there to a series."""
    x = chebyshev.chebpts1(count)
    # Discrete orthogonality on the Chebyshev points.
    transform = chebyshev.chebvander(x, count - 1).T * (2.0 / count)
    transform[0] /= 2.0
    return x, transform


@cache
def _derivative(count: int) -> Array:
    """Return what takes values at Chebyshev points to the series of the derivative."""
    _, transform = chebyshev_points(count)
    derivative = np.zeros_like(transform)
    derivative[:-1] = chebyshev.chebder(transform)
    return derivative
