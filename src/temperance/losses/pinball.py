r"""The pinball loss, whose least expectation is at a quantile."""

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
class Pinball(Loss):
    r"""Loss max(q r, (q - 1) r), r = y - u, for the quantile q.

    Parameters
    ----------
    quantile : float
        Between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> Pinball(0.9).value(np.array([0.0, 2.0]), np.array([1.0, 1.0])).round(2)
    array([0.9, 0.1])
    """

    quantile: float = 0.5
    name: ClassVar[str] = "pinball loss"
    location: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    method: ClassVar[str] = "Gaussian approximation, losses in closed form"

    def __post_init__(self) -> None:
        """Refuse a quantile that is none."""
        open_unit("quantile", self.quantile)

    def check(self, y: Array) -> None:
        """Refuse responses that are not numbers."""
        check_finite(y)

    def value(self, u: Array, y: Array) -> Array:
        """Return the loss."""
        residual = y - u
        return np.maximum(self.quantile * residual, (self.quantile - 1) * residual)

    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return the slope on either side, and 0 twice."""
        residual = y - u
        first = 0.5 - self.quantile - 0.5 * np.sign(residual)
        return first, np.zeros_like(first), np.zeros_like(first)

    def bends(self, y: Array) -> tuple[Array, Array]:
        """Return the response, a kink."""
        return y, np.zeros_like(y)

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return a quadratic as steep as the loss at the usual distance."""
        return Quadratic(y, np.full_like(y, 1 / self.unit(y)))

    def unit(self, y: Array) -> float:
        """Return the spread of the responses."""
        return spread(y)

    def expected(self, mean: Array, variance: Array, y: Array) -> Array:
        """Return E r_+ - (1 - q) E r."""
        residual = y - mean
        return Ramp(residual, variance).value() - (1 - self.quantile) * residual

    def partials(self, mean: Array, variance: Array, y: Array) -> Partials:
        """Differentiate: the mean moves r the other way."""
        ramp = Ramp(y - mean, variance)
        second = ramp.second()
        first = (1 - self.quantile) - ramp.first()
        return Partials(first, second / 2, second, -ramp.third() / 2, ramp.fourth() / 4)
