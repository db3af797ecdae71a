r"""The squared loss: Gaussian noise of known variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from temperance.checks import positive
from temperance.data import Array
from temperance.losses.base import Loss, Partials, Quadratic
from temperance.losses.responses import check_finite


@dataclass(frozen=True)
class Squared(Loss):
    r"""Loss (y - u)^2 / (2 s2) + log(2 pi s2) / 2 for the noise variance s2.

    Parameters
    ----------
    noise_variance : float

    Examples
    --------
    >>> float(Squared(4.0).expected(1.0, 3.0, 2.0).round(4))
    2.1121
    """

    noise_variance: float = 1.0
    name: ClassVar[str] = "squared loss"
    location: ClassVar[bool] = True
    likelihood: ClassVar[bool] = True
    method: ClassVar[str] = "Gaussian approximation, losses in closed form"

    def __post_init__(self) -> None:
        """Refuse a variance that is not positive."""
        positive("noise_variance", self.noise_variance)

    def check(self, y: Array) -> None:
        """Refuse responses that are not numbers."""
        check_finite(y)

    def value(self, u: Array, y: Array) -> Array:
        """Return the loss."""
        return self.expected(u, np.zeros(()), y)

    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return (u - y) / s2, 1 / s2 and 0."""
        first = (u - y) / self.noise_variance
        return first, np.full_like(first, 1 / self.noise_variance), np.zeros_like(first)

    def bends(self, y: Array) -> tuple[Array, Array]:
        """Return the response; a square is smooth everywhere."""
        return y, np.full_like(y, np.sqrt(self.noise_variance))

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return the loss itself."""
        return Quadratic(y, np.full_like(y, 1 / self.noise_variance))

    def unit(self, y: Array) -> float:
        """Return the standard deviation of the noise."""
        return float(np.sqrt(self.noise_variance))

    def expected(self, mean: Array, variance: Array, y: Array) -> Array:
        """Return ((y - mu)^2 + v) / (2 s2) + log(2 pi s2) / 2."""
        s2 = self.noise_variance
        return ((y - mean) ** 2 + variance) / (2 * s2) + 0.5 * np.log(2 * np.pi * s2)

    def partials(self, mean: Array, variance: Array, y: Array) -> Partials:
        """Differentiate: all but the first are constant."""
        first = (mean - y + 0 * variance) / self.noise_variance
        second, zero = np.full_like(first, 1 / self.noise_variance), np.zeros_like(first)
        return Partials(first, second / 2, second, zero, zero)

    def log_predictive(self, mean: Array, variance: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return the logarithm of N(y; mu, s2 + v) and its derivatives."""
        total = self.noise_variance + variance
        residual = y - mean
        pull = residual / total
        log = -0.5 * (np.log(2 * np.pi * total) + residual * pull)
        return log, pull, 0.5 * (pull**2 - 1 / total)

    def response_mean(self, u: Array) -> Array:
        """Return the predictor."""
        return np.asarray(u)

    def response_variance(self, u: Array) -> Array:
        """Return the noise variance."""
        return np.full(np.shape(u), self.noise_variance)

    def sample(self, u: Array, rng: np.random.Generator) -> Array:
        """Draw from N(u, s2)."""
        return u + np.sqrt(self.noise_variance) * rng.standard_normal(np.shape(u))

    def cdf(self, u: Array, y: Array) -> Array:
        """Return Phi((y - u) / s)."""
        return ndtr((y - u) / np.sqrt(self.noise_variance))
