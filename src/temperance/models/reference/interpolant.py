r"""Functions of kappa at every point of an interval, from few.

Sums over rows of what a posterior says are rational functions of kappa whose poles lie at
-1/lambda, lambda an eigenvalue of Z'WZ, without a row or with it.  If all lambda lie in [low, high]
and kappa in [a, 1/e], where e may be 0, there is a

    x = (T (kappa - a) - (1 - e kappa)) / (T (kappa - a) + (1 - e kappa))

that takes the interval to [-1, 1] and the poles to |x| >= s, as far out as any such map can:

    q^2 = (1 + a high)(low + e) / ((1 + a low)(high + e)),    s = (1 + q) / (1 - q),
    T = q (high + e) / (1 + a high),                          rho = (1 + sqrt q) / (1 - sqrt q).

A function that is analytic within the ellipse of semi-axes' sum rho, and at most M there, misses
its polynomial of degree p through Chebyshev points by at most 4 M rho^-p / (rho - 1).  The poles
lie on its edge, where no M is: the coefficients of a pole of order j fall like p^(j-1) rho^-p, so
that two points more are taken than rho^-p asks for, and what the last coefficients let expect of
those left out must be a small share of the least value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from numpy.polynomial import chebyshev

from temperance.models.linear.interpolant import chebyshev_points
from temperance.types import Array

TOLERANCE = 1e-13
LEFT_OUT = 1e-11  # share of a function's least value that coefficients left out may have
BETWEEN = 8  # times as many points at which to look for the least value


class Variable(NamedTuple):
    """The variable x of an interval of kappa, and how fast series in it converge."""

    lowest: float  # a
    inverse: float  # e
    factor: float  # T
    root: float  # sqrt q

    @classmethod
    def between(cls, lowest: float, highest: float, low: float, high: float) -> Self:
        """Choose x for kappa in [lowest, highest], where highest may be infinite."""
        inverse = 1 / highest
        q = np.sqrt((1 + lowest * high) * (low + inverse) / (1 + lowest * low) / (high + inverse))
        factor = q * (high + inverse) / (1 + lowest * high)
        return cls(lowest, inverse, float(factor), float(np.sqrt(q)))

    @property
    def rho(self) -> float:
        """How much smaller each coefficient is than the one before."""
        return (1 + self.root) / max(1 - self.root, 1e-6)

    @property
    def size(self) -> float:
        """How many points determine a function; infinite where a pole may lie at the end."""
        rate = np.log(self.rho)
        return float(np.ceil(-np.log(TOLERANCE) / rate)) + 2 if rate > 0 else np.inf

    def at(self, kappa: Array) -> Array:
        """Return x."""
        above, below = self._sides(kappa)
        return (above - below) / (above + below)

    def slope(self, kappa: Array) -> Array:
        """Return dx / dkappa."""
        above, below = self._sides(kappa)
        return 2 * self.factor * (1 - self.inverse * self.lowest) / (above + below) ** 2

    def kappa(self, x: Array) -> Array:
        """Return the kappa at x, within (-1, 1)."""
        ratio = (1 + x) / (1 - x)
        return (ratio + self.factor * self.lowest) / (self.factor + ratio * self.inverse)

    def _sides(self, kappa: Array) -> tuple[Array, Array]:
        return self.factor * (kappa - self.lowest), 1 - self.inverse * kappa


class Interpolant(NamedTuple):
    """Chebyshev series of several functions in the variable of an interval."""

    variable: Variable
    series: Array  # (points, functions)

    def at(self, kappa: Array) -> Array:
        """Return the functions, shape (functions, kappas)."""
        return chebyshev.chebval(self.variable.at(kappa), self.series)

    def slope(self, kappa: Array) -> Array:
        """Return their derivatives in kappa, shape (functions, kappas)."""
        falling = chebyshev.chebder(self.series)
        return chebyshev.chebval(self.variable.at(kappa), falling) * self.variable.slope(kappa)


def interpolate(variable: Variable, functions: Callable[[Array], Array]) -> Interpolant | None:
    """Pass polynomials through positive functions, from kappas (g,) to values (functions, g).

    Nothing where their last coefficients say that more points would be needed, or where a function
    is so much smaller at one point than at another that rounding would show.
    """
    x, transform = chebyshev_points(int(variable.size))
    values = functions(variable.kappa(x))
    series = transform @ values.T
    following = np.abs(series[-2:]).T / [variable.rho**2, variable.rho]
    rounding = np.finfo(float).eps * np.abs(values).max(axis=1)
    least = chebyshev.chebval(np.linspace(-1, 1, BETWEEN * len(x)), series).min(axis=1)
    resolved = np.maximum(following.max(axis=1), rounding) <= LEFT_OUT * least
    return Interpolant(variable, series) if resolved.all() else None
