r"""The probit loss of binary labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from temperance.losses.base import Loss, Quadratic
from temperance.losses.responses import check_labels
from temperance.types import Array

TAIL = -30.0  # below it the series of Phi(x) / phi(x) in 1 / x^2 has all digits
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
        h, gap = _hazard(sign * u)
        return -sign * h, h * gap, sign * h * (1 - gap * (h + gap))

    def bends(self, y: Array) -> tuple[Array, Array]:
        """Return where Phi is nearly 1, and the distance of its zeros."""
        return CENTRE * _sign(y), np.full_like(y, WIDTH)

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return the curvature 2 / pi at 0, where the predictor is without data."""
        return Quadratic(np.asarray(offset), np.full(np.shape(offset), 2 / np.pi))

    def log_predictive(self, mean: Array, variance: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return log Phi(a), a = s mu / sqrt(1 + v), and its derivatives."""
        sign, width = _sign(y), np.sqrt(1 + variance)
        a = sign * mean / width
        h, _ = _hazard(a)
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


def _hazard(x: Array) -> tuple[Array, Array]:
    """Return h = phi(x) / Phi(x) and h + x, which keeps its digits where h is nearly -x."""
    h = np.sqrt(2 / np.pi) / erfcx(-x / np.sqrt(2))
    far = x < TAIL
    if not np.any(far):
        return h, h + x
    # Phi(x) / phi(x) = (1 - less) / |x|,  less = 1 / x^2 - 3 / x^4 + 15 / x^6 - 105 / x^8 ...
    a = np.where(far, -x, -TAIL)
    q = a**-2.0
    less = q * (1 - q * (3 - q * (15 - q * (105 - q * (945 - q * 10395)))))
    return np.where(far, a / (1 - less), h), np.where(far, a * less / (1 - less), h + x)


def _sign(y: Array) -> Array:
    return 2.0 * y - 1.0
