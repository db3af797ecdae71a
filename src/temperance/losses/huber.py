r"""Huber's loss: squares near the response, straight lines far from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from temperance.data import Array
from temperance.losses.base import Loss, Partials, Quadratic
from temperance.losses.ramps import Ramp
from temperance.losses.responses import AUTO, check_finite, check_free, known, spread

EFFICIENT = 1.345  # deviations: 95 % efficient under Gaussian noise


@dataclass(frozen=True)
class Huber(Loss):
    r"""Loss ``r^2 / 2`` for ``|r| <= delta``, ``delta (|r| - delta/2)`` beyond, r = y - u.

    Parameters
    ----------
    delta : float or "auto"
        Residual at which the loss becomes linear; "auto" fits 1.345 times the residuals' spread.

    Examples
    --------
    >>> import numpy as np
    >>> Huber(1.0).value(np.array([0.0, 3.0]), np.array([0.5, 0.0]))
    array([0.125, 2.5  ])
    """

    delta: float | str = AUTO
    name: ClassVar[str] = "Huber loss"
    location: ClassVar[bool] = True
    method: ClassVar[str] = "Gaussian approximation, losses in closed form"

    def __post_init__(self) -> None:
        """Refuse a delta that is not positive."""
        check_free("delta", self.delta)

    @property
    def free(self) -> bool:
        """Whether delta is still to be fitted."""
        return self.delta == AUTO

    @property
    def _delta(self) -> float:
        return known("delta", self.delta)

    def check(self, y: Array) -> None:
        """Refuse responses that are not numbers."""
        check_finite(y)

    def fitted(self, u: Array, y: Array, weights: Array) -> Self:
        """Return the loss with delta from the spread of the residuals."""
        if not self.free:
            return self
        return replace(self, delta=EFFICIENT * spread(np.asarray(y) - u, weights))

    def value(self, u: Array, y: Array) -> Array:
        """Return the loss."""
        size = np.abs(y - u)
        inner = np.minimum(size, self._delta)
        return inner * (size - 0.5 * inner)

    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return the residual within delta, 1 or 0, and 0."""
        residual = u - y
        first = np.clip(residual, -self._delta, self._delta)
        return first, (np.abs(residual) < self._delta) + 0.0, np.zeros_like(residual)

    def bends(self, y: Array) -> tuple[Array, Array]:
        """Return where the loss becomes linear, on either side."""
        centres = np.stack([y - self._delta, y + self._delta])
        return centres, np.zeros_like(centres)

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return the square."""
        return Quadratic(y, np.ones_like(y))

    def unit(self, y: Array) -> float:
        """Return delta."""
        return EFFICIENT * spread(y) if self.free else self._delta

    def expected(self, mean: Array, variance: Array, y: Array) -> Array:
        """Return E[(r + d)_+^2 - (r - d)_+^2]/2 - d E r - d^2/2, with r turned to be below 0."""
        d, size = self._delta, np.abs(y - mean)
        inner, outer = Ramp(d - size, variance), Ramp(-d - size, variance)
        return 0.5 * (inner.square() - outer.square()) + d * (size - 0.5 * d)

    def partials(self, mean: Array, variance: Array, y: Array) -> Partials:
        """Differentiate; odd derivatives are turned back."""
        d, residual = self._delta, mean - y
        size, sign = np.abs(residual), np.where(residual < 0, -1.0, 1.0)
        inner, outer = Ramp(d - size, variance), Ramp(-d - size, variance)
        first = sign * (d - (inner.value() - outer.value()))
        second = inner.first() - outer.first()
        third = -sign * (inner.second() - outer.second())
        fourth = inner.third() - outer.third()
        return Partials(first, second / 2, second, third / 2, fourth / 4)
