r"""The expectile loss: squares that weigh more on one side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from temperance.checks import open_unit
from temperance.data import Array
from temperance.losses.base import Loss, Partials, Quadratic
from temperance.losses.ramps import Ramp
from temperance.losses.responses import check_finite, spread


@dataclass(frozen=True)
class Expectile(Loss):
    r"""Loss q r^2 for r = y - u > 0 and (1 - q) r^2 below; with q = 1/2 that is r^2 / 2.

    Parameters
    ----------
    quantile : float
        The level q of the expectile, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> Expectile(0.9).value(np.array([0.0, 2.0]), np.array([1.0, 1.0])).round(2)
    array([0.9, 0.1])
    """

    quantile: float = 0.5
    name: ClassVar[str] = "expectile loss"
    location: ClassVar[bool] = True
    method: ClassVar[str] = "Gaussian approximation, losses in closed form"

    def __post_init__(self) -> None:
        """Refuse a level that is none."""
        open_unit("quantile", self.quantile)

    def check(self, y: Array) -> None:
        """Refuse responses that are not numbers."""
        check_finite(y)

    def value(self, u: Array, y: Array) -> Array:
        """Return the loss."""
        residual = y - u
        return self._half(residual) * residual**2

    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return -2 q r, 2 q and 0, with 1 - q below."""
        residual = y - u
        second = 2 * self._half(residual)
        return -second * residual, second, np.zeros_like(residual)

    def bends(self, y: Array) -> tuple[Array, Array]:
        """Return the response, where the second derivative jumps."""
        return y, np.zeros_like(y)

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return the square with the same weight on both sides."""
        return Quadratic(y, np.ones_like(y))

    def unit(self, y: Array) -> float:
        """Return the spread of the responses."""
        return spread(y)

    def expected(self, mean: Array, variance: Array, y: Array) -> Array:
        """Return q E r_+^2 + (1 - q) E (-r)_+^2."""
        above, below = Ramp(y - mean, variance), Ramp(mean - y, variance)
        return self.quantile * above.square() + (1 - self.quantile) * below.square()

    def partials(self, mean: Array, variance: Array, y: Array) -> Partials:
        """Differentiate: those of squares are twice those of ramps."""
        q = self.quantile
        above, below = Ramp(y - mean, variance), Ramp(mean - y, variance)
        first = 2 * ((1 - q) * below.value() - q * above.value())
        second = 2 * (q * above.first() + (1 - q) * below.first())
        # Above and below have the same density at the response.
        third, fourth = 2 * (1 - 2 * q) * above.second(), 2 * (2 * q - 1) * above.third()
        return Partials(first, second / 2, second, third / 2, fourth / 4)

    def _half(self, residual: Array) -> Array:
        return np.where(residual > 0, self.quantile, 1 - self.quantile)
