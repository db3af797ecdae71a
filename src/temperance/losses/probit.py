r"""The probit loss of binary labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from temperance.data import Array
from temperance.losses.base import Loss, Quadratic
from temperance.losses.responses import check_labels

TAIL, TERMS = -5.0, 24  # below it so many terms of a continued fraction give all digits
# Phi(x) has zeros in the complex plane, the nearest to the real line at 1.92 +- 2.82 i.
CENTRE, WIDTH = 1.9, 2.8


@dataclass(frozen=True)
class Probit(Loss):
    r"""Loss -log Phi(s u) of labels y in {0, 1}, s = 2 y - 1.

    Examples
    --------
    >>> import numpy as np
    >>> np.exp(-Probit().value(np.array([0.0, 1.96]), np.array([1.0, 1.0]))).round(3)
    array([0.5  , 0.975])
    """

    name: ClassVar[str] = "probit loss"
    binary: ClassVar[bool] = True
    likelihood: ClassVar[bool] = True
    discrete: ClassVar[bool] = True

    def check(self, y: Array) -> None:
        """Refuse labels other than 0 and 1."""
        check_labels(y)

    def value(self, u: Array, y: Array) -> Array:
        """Return -log Phi(s u)."""
        return -log_ndtr(_sign(y) * u)

    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return -s h, h (h + x) and s h (1 - (h + x) (2 h + x)), h = phi(x) / Phi(x), x = s u."""
        sign = _sign(y)
        h, gap, bend = _hazard(sign * u)
        return -sign * h, h * gap, sign * h * bend

    def bends(self, y: Array) -> tuple[Array, Array]:
        """Return where Phi is nearly 1, and the distance of its zeros."""
        return CENTRE * _sign(y), np.full_like(y, WIDTH)

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return the curvature 2 / pi at the predictor 0."""
        return Quadratic(np.asarray(offset), np.full(np.shape(offset), 2 / np.pi))

    def log_predictive(self, mean: Array, variance: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return log Phi(a), a = s mu / sqrt(1 + v), and its derivatives."""
        sign, width = _sign(y), np.sqrt(1 + variance)
        a = sign * mean / width
        h, _, _ = _hazard(a)
        return log_ndtr(a), sign * h / width, -0.5 * h * a / width**2

    def response_mean(self, u: Array) -> Array:
        """Return the probability of label 1."""
        return ndtr(u)

    def sample(self, u: Array, rng: np.random.Generator) -> Array:
        """Draw labels."""
        return (rng.random(np.shape(u)) < ndtr(u)).astype(float)

    def cdf(self, u: Array, y: Array) -> Array:
        """Return 0 below the label 0, the probability of it below 1, and then 1."""
        return np.where(y < 0, 0.0, np.where(y < 1, ndtr(-np.asarray(u)), 1.0))


def _hazard(x: Array) -> tuple[Array, Array, Array]:
    r"""Return h = phi(x) / Phi(x), g = h + x and 1 - g (h + g).

    Below zero, with a = -x, h = a + 1/(a + t), t = 2/(a + w), w = 3/(a + 4/(a + 5/(a + ...))), so
    that no digits are lost where h is nearly a:  1 - g (h + g) = 2 g (t - w) / ((a + w) (a + t)).
    """
    x = np.asarray(x, dtype=float)
    h = np.asarray(np.sqrt(2 / np.pi) / erfcx(-x / np.sqrt(2)))
    gap = np.asarray(h + x)
    bend = np.asarray(1 - gap * (h + gap))
    far = x < TAIL
    if far.any():
        a = -x[far]
        w = np.zeros_like(a)
        for term in range(TERMS, 2, -1):
            w = term / (a + w)
        t = 2 / (a + w)
        g = 1 / (a + t)
        h[far], gap[far] = a + g, g
        bend[far] = 2 * g * (t - w) / ((a + w) * (a + t))
    return h, gap, bend


def _sign(y: Array) -> Array:
    return 2.0 * y - 1.0
