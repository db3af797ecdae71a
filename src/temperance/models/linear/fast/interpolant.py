r"""Interpolation of functions of beta on an interval, from their values at few points.

Sums of squared errors and variances over rows are rational functions of beta with poles at
-1/lambda, lambda an eigenvalue of a training set.  If all lambda lie in [low, high] and beta in
[a, 1/e], where e may be 0, there is a

    x = (T (beta - a) - (1 - e beta)) / (T (beta - a) + (1 - e beta))

that maps the interval to [-1, 1] and the poles to |x| >= s, with s as large as possible:

    q^2 = (1 + a high)(low + e) / ((1 + a low)(high + e)),    s = (1 + q) / (1 - q),
    T = q (high + e) / (1 + a high),                          rho = (1 + sqrt q) / (1 - sqrt q).

A function that is analytic within the ellipse with foci -1 and 1 whose semi-axes sum to rho, and at
most M there, differs from its polynomial of degree p through Chebyshev points by at most
4 M rho^-p / (rho - 1).  Here the poles lie on the ellipse itself, where no M exists: the
coefficients of a pole of order j decrease like p^(j-1) rho^-p.  So two more points are used than
rho^-p requires, and the truncation error, estimated from the last coefficients, must be a small
share of the least value of the function.

If the eigenvalues are similar, a few points suffice for all betas from 0 to infinity.  Otherwise
they suffice for betas above about 0.1 / low: below, the small eigenvalues matter separately.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple, Self

import numpy as np
from numpy.polynomial import chebyshev

from temperance.data import Array

TOLERANCE = 1e-12
EPSILON = float(np.finfo(float).eps)
TRUNCATION = 1e-11  # largest truncation error, relative to the least value of a function
MOST_POINTS = 24  # with more, direct evaluation is as fast
LARGEST_START = 0.3  # interpolation pays only if the interval starts at or below this beta


class Variable(NamedTuple):
    """The variable x of an interval of beta, and how fast series in it converge."""

    lowest: float  # a
    inverse: float  # e
    factor: float  # T
    root: float  # sqrt q
    contrast: float  # ratio of the largest to the least value of a function

    @classmethod
    def between(
        cls, lowest: float, highest: float, low: float, high: float, contrast: float = 1.0
    ) -> Self:
        """Return x for beta in [lowest, highest]; highest may be infinite."""
        inverse = 1 / highest
        q = math.sqrt((1 + lowest * high) * (low + inverse) / (1 + lowest * low) / (high + inverse))
        factor = q * (high + inverse) / (1 + lowest * high)
        return cls(lowest, inverse, factor, math.sqrt(q), contrast)

    @classmethod
    def upwards(
        cls, low: float, high: float, contrast: float = 1.0, lowest: float = 0.0
    ) -> Self | None:
        """Return x for beta from ``lowest`` on, or from where ``MOST_POINTS`` suffice; or None."""
        if not (0 < low <= high < np.inf and contrast < 1 / EPSILON):
            return None
        rho = (contrast / TOLERANCE) ** (1 / (MOST_POINTS - 2))
        square = ((rho - 1) / (rho + 1)) ** 4  # q^2 = (1 + a high) low / ((1 + a low) high)
        needed = (square - low / high) / (low * (1 - square))
        return cls.between(max(lowest, needed), np.inf, low, high, contrast)

    @property
    def rho(self) -> float:
        """Rate at which the coefficients decrease."""
        return (1 + self.root) / max(1 - self.root, 1e-6)

    @property
    def size(self) -> float:
        """Number of points needed; infinite if a pole may lie at an end of the interval."""
        return self._points(self.rho)

    def size_with(self, eigenvalue: float) -> float:
        """Return the number of points needed if there is this eigenvalue as well."""
        s = abs(float(self.at(np.array(-1 / eigenvalue)))) if eigenvalue > 0 else 1.0
        return max(self.size, self._points(s + math.sqrt(s**2 - 1)))

    def at(self, beta: Array) -> Array:
        """Return x at betas."""
        above, below = self._sides(beta)
        return (above - below) / (above + below)

    def slope(self, beta: Array) -> Array:
        """Return dx / dbeta."""
        above, below = self._sides(beta)
        return 2 * self.factor * (1 - self.inverse * self.lowest) / (above + below) ** 2

    def beta(self, x: Array) -> Array:
        """Return the beta at x in (-1, 1)."""
        ratio = (1 + x) / (1 - x)
        return (ratio + self.factor * self.lowest) / (self.factor + ratio * self.inverse)

    @property
    def nodes(self) -> Array:
        """Interpolation points in beta, ascending."""
        return self.beta(chebyshev_points(int(self.size)).x)

    def _points(self, rho: float) -> float:
        """Return the number of points needed if coefficients decrease at this rate."""
        rate = math.log(rho)
        return math.ceil(math.log(self.contrast / TOLERANCE) / rate) + 2 if rate > 0 else math.inf

    def _sides(self, beta: Array) -> tuple[Array, Array]:
        return self.factor * (beta - self.lowest), 1 - self.inverse * beta


class Interpolant(NamedTuple):
    """Chebyshev series of several functions in the variable of an interval."""

    variable: Variable
    series: Array  # (points, 2, functions): of the functions and of their derivatives in x

    @classmethod
    def through(cls, variable: Variable, values: Array) -> Self:
        """Return interpolants of values (functions, points) at the variable's nodes."""
        points = chebyshev_points(values.shape[1])
        return cls(variable, np.stack([points.transform, points.derivative], 1) @ values.T)

    def at(self, beta: Array) -> Array:
        """Return the functions, shape (functions, betas)."""
        return _evaluated(self.series[:, 0], self.variable.at(beta))

    def with_slope(self, beta: Array) -> Array:
        """Return the functions and their derivatives in beta, shape (2, functions, betas)."""
        found = _evaluated(self.series, self.variable.at(beta))
        found[1] *= self.variable.slope(beta)
        return found


class ChebyshevPoints(NamedTuple):
    """Chebyshev points, and linear maps from values there to series."""

    x: Array  # (points,)
    transform: Array  # (points, points): to the series of the function
    derivative: Array  # to the series of its derivative
    ends: Array  # (2, points): to the function at -1 and at 1


@cache
def chebyshev_points(count: int) -> ChebyshevPoints:
    """Return ``count`` Chebyshev points."""
    x = chebyshev.chebpts1(count)
    # Discrete orthogonality on the Chebyshev points.
    transform = chebyshev.chebvander(x, count - 1).T * (2.0 / count)
    transform[0] /= 2.0
    derivative = np.zeros_like(transform)
    derivative[:-1] = chebyshev.chebder(transform)
    ends = chebyshev.chebvander(np.array([-1.0, 1.0]), count - 1) @ transform
    return ChebyshevPoints(x, transform, derivative, ends)


def resolved(variable: Variable, values: Array) -> bool:
    """Return whether the nodes resolve positive functions with these values (functions, points).

    They do not if the last coefficients are too large, or if a function is so much smaller at one
    point than at another that rounding errors matter.
    """
    points = chebyshev_points(values.shape[1])
    before_last, last = np.abs(points.transform[-2:] @ values.T)
    following = np.maximum(before_last / variable.rho, last) / variable.rho
    rounding = EPSILON * np.abs(values).max(axis=1)
    least = np.minimum(values.min(axis=1), (points.ends @ values.T).min(axis=0))
    return bool((np.maximum(following, rounding) <= TRUNCATION * least).all())


def _evaluated(series: Array, x: Array) -> Array:
    """Return series (points, ...) at x (g,) in [-1, 1], shape (..., g)."""
    angle = np.arccos(np.clip(x, -1.0, 1.0))
    basis = np.cos(np.multiply.outer(angle, np.arange(len(series))))
    return np.moveaxis(np.tensordot(basis, series, 1), 0, -1)
