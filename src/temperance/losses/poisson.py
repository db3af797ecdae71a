r"""The Poisson loss of counts, with the logarithm of the rate as predictor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import pdtr

from temperance.data import Array
from temperance.losses.base import Loss, Partials, Quadratic
from temperance.losses.counts import least_poisson
from temperance.losses.responses import check_counts

LARGEST = 250.0  # logarithm of a rate whose derivatives are computed


@dataclass(frozen=True)
class Poisson(Loss):
    r"""Loss exp(u) - y u + log y! of counts y with rate exp(u).

    It is computed as y (exp(d) - 1 - d) + c(y), d = u - log y, which is accurate for large counts.
    Its expectation has exp(mu + v/2) in the place of exp(mu).

    Examples
    --------
    >>> import numpy as np
    >>> float(Poisson().expected(np.array(0.0), np.array(2.0), np.array(1.0)).round(4))
    2.7183
    """

    name: ClassVar[str] = "Poisson loss"
    likelihood: ClassVar[bool] = True
    discrete: ClassVar[bool] = True
    steep: ClassVar[bool] = True
    predictor: ClassVar[str] = "log rates"
    largest_predictor: ClassVar[float] = 500.0
    method: ClassVar[str] = "Gaussian approximation, losses in closed form"

    def check(self, y: Array) -> None:
        """Refuse responses that are not counts."""
        check_counts(y)

    def value(self, u: Array, y: Array) -> Array:
        """Return the loss."""
        return self.expected(u, np.zeros(()), y)

    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return exp(u) - y, exp(u) and exp(u)."""
        with np.errstate(over="ignore"):
            rate = np.exp(u)
        return rate - y, rate, rate

    def bends(self, y: Array) -> tuple[Array, Array]:
        """Return the logarithm of the count, about; the exponential's unit is 1 everywhere."""
        return np.log(y + 0.5), np.ones_like(y)

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return the quadratic at the logarithm of the count, about."""
        return Quadratic(np.log(y + 0.5), y + 0.5)

    def expected(self, mean: Array, variance: Array, y: Array) -> Array:
        """Return exp(mu + v/2) - y mu + log y!."""
        log_y = np.log(np.maximum(y, 1.0))
        d = mean - log_y
        with np.errstate(over="ignore"):
            above = np.expm1(d + variance / 2) - d
            rate = np.exp(mean + variance / 2)
        return np.where(y > 0, y * np.where(y > 0, above, 0.0) + least_poisson(y), rate)

    def partials(self, mean: Array, variance: Array, y: Array) -> Partials:
        """Differentiate: the rate exp(mu + v/2) is its own derivative, half of it in v."""
        # Products of derivatives stay finite; rates as large as that are those of no posterior.
        rate = np.exp(np.minimum(mean + variance / 2, LARGEST)) + np.zeros_like(y)
        return Partials(rate - y, rate / 2, rate, rate / 2, rate / 4)

    def response_mean(self, u: Array) -> Array:
        """Return the rate."""
        return np.exp(u)

    def response_variance(self, u: Array) -> Array:
        """Return the rate."""
        return np.exp(u)

    def sample(self, u: Array, rng: np.random.Generator) -> Array:
        """Draw counts."""
        return rng.poisson(np.exp(u)).astype(float)

    def cdf(self, u: Array, y: Array) -> Array:
        """Return P(Y <= y)."""
        return np.where(y < 0, 0.0, pdtr(np.maximum(np.floor(y), 0.0), np.exp(u)))
