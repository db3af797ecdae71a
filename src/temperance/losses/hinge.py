r"""The hinge loss of support vector machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from temperance.data import Array
from temperance.losses.base import Loss, Partials, Quadratic
from temperance.losses.ramps import Ramp
from temperance.losses.responses import check_labels


@dataclass(frozen=True)
class Hinge(Loss):
    r"""Loss max(0, 1 - s u) of labels y in {0, 1}, s = 2 y - 1.

    Examples
    --------
    >>> import numpy as np
    >>> Hinge().value(np.array([-1.0, 0.5, 2.0]), np.array([1.0, 1.0, 1.0]))
    array([2. , 0.5, 0. ])
    """

    name: ClassVar[str] = "hinge loss"
    binary: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    method: ClassVar[str] = "Gaussian approximation, losses in closed form"

    def check(self, y: Array) -> None:
        """Refuse labels other than 0 and 1."""
        check_labels(y)

    def value(self, u: Array, y: Array) -> Array:
        """Return the loss."""
        return np.maximum(0.0, 1 - _sign(y) * u)

    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return the slope on either side, and 0 twice."""
        sign = _sign(y)
        first = -0.5 * sign * (1 + np.sign(1 - sign * u))
        return first, np.zeros_like(first), np.zeros_like(first)

    def bends(self, y: Array) -> tuple[Array, Array]:
        """Return the sign of the label, a kink."""
        return _sign(y), np.zeros_like(y)

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return a quadratic with its minimum at the kink."""
        return Quadratic(_sign(y), np.ones_like(y))

    def expected(self, mean: Array, variance: Array, y: Array) -> Array:
        """Return E (1 - s u)_+."""
        return Ramp(1 - _sign(y) * mean, variance).value()

    def partials(self, mean: Array, variance: Array, y: Array) -> Partials:
        """Differentiate the ramp."""
        sign = _sign(y)
        ramp = Ramp(1 - sign * mean, variance)
        second = ramp.second()
        third = -sign * ramp.third()
        return Partials(-sign * ramp.first(), second / 2, second, third / 2, ramp.fourth() / 4)


def _sign(y: Array) -> Array:
    return 2.0 * y - 1.0
