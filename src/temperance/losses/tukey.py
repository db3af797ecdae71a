r"""Tukey's loss, under which a response far away counts for nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from temperance.checks import positive
from temperance.data import Array
from temperance.losses.base import Loss, Quadratic
from temperance.losses.responses import check_finite


@dataclass(frozen=True)
class Tukey(Loss):
    r"""Loss ``c^2/6 (1 - (1 - x^2)^3)``, x = (y - u)/c, ``c^2/6`` for ``|x| > 1``: not convex.

    Parameters
    ----------
    c : float
        Distance beyond which a response has no influence, usually 4.685 noise deviations.

    Examples
    --------
    >>> import numpy as np
    >>> Tukey(3.0).value(np.array([0.0, 3.0, 90.0]), np.array([0.0, 0.0, 0.0]))
    array([0. , 1.5, 1.5])
    """

    c: float
    name: ClassVar[str] = "Tukey loss"
    location: ClassVar[bool] = True
    convex: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse a distance that is not positive."""
        positive("c", self.c)

    def check(self, y: Array) -> None:
        """Refuse responses that are not numbers."""
        check_finite(y)

    def value(self, u: Array, y: Array) -> Array:
        """Return the loss."""
        square = np.minimum(((u - y) / self.c) ** 2, 1.0)
        return self.c**2 / 6 * square * (3 - square * (3 - square))

    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return c x (1 - x^2)^2, (1 - x^2) (1 - 5 x^2) and x (20 x^2 - 12) / c within c."""
        x = (u - y) / self.c
        inside = np.abs(x) < 1
        x = np.where(inside, x, 0.0)
        rest = 1 - x**2
        return (
            self.c * x * rest**2,
            np.where(inside, rest * (1 - 5 * x**2), 0.0),
            x * (20 * x**2 - 12) / self.c,
        )

    def bends(self, y: Array) -> tuple[Array, Array]:
        """Return where the loss becomes constant, on either side."""
        centres = np.stack([y - self.c, y + self.c])
        return centres, np.zeros_like(centres)

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return Huber's square, which the loss resembles near the response.

        The loss has several minima, so the search starts at that of Huber's loss.
        """
        return Quadratic(y, np.ones_like(y))

    def unit(self, y: Array) -> float:
        """Return c."""
        return self.c
