r"""The negative binomial loss of counts that scatter more than a Poisson law allows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, expit

from temperance.data import Array
from temperance.losses.base import Loss, Partials, Quadratic
from temperance.losses.counts import negative_binomial_constant
from temperance.losses.responses import AUTO, best_scale, check_counts, check_free, known
from temperance.quadrature import softplus_expectations

# Expectations of softplus have small absolute errors, and up to this variance small relative ones:
# large counts or dispersions multiply the former.
LARGE, WIDE = 100.0, 0.25


@dataclass(frozen=True)
class NegativeBinomial(Loss):
    r"""Loss k softplus(x) + y softplus(-x) + c(y), x = u - log k, of counts y with mean exp(u).

    The variance of a count with mean m is m + m^2 / k: as the dispersion k grows, the distribution
    approaches Poisson's.  The constant is c(y) = log Gamma(k) + log y! - log Gamma(y + k).

    Parameters
    ----------
    dispersion : float or "auto"
        k; "auto" fits it by maximum likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> loss = NegativeBinomial(2.0)
    >>> float(np.exp(-loss.value(np.array(0.0), np.array(1.0))).round(4))
    0.2963
    """

    dispersion: float | str = AUTO
    name: ClassVar[str] = "negative binomial loss"
    likelihood: ClassVar[bool] = True
    discrete: ClassVar[bool] = True
    predictor: ClassVar[str] = "log rates"
    largest_predictor: ClassVar[float] = 500.0

    def __post_init__(self) -> None:
        """Refuse a dispersion that is not positive."""
        check_free("dispersion", self.dispersion)

    @property
    def free(self) -> bool:
        """Whether the dispersion is still to be fitted."""
        return self.dispersion == AUTO

    @property
    def _k(self) -> float:
        return known("dispersion", self.dispersion)

    def check(self, y: Array) -> None:
        """Refuse responses that are not counts."""
        check_counts(y)

    def fitted(self, u: Array, y: Array, weights: Array) -> Self:
        """Return the loss with the dispersion that maximises the likelihood."""
        if not self.free:
            return self
        if not np.any(y > 0):
            raise ValueError("y must hold a count above 0 for a dispersion to be fitted, got none")

        def objective(k: float) -> float:
            return float((weights * replace(self, dispersion=k).value(u, y)).sum())

        return replace(self, dispersion=best_scale(objective, 1e-4, 1e8))

    def value(self, u: Array, y: Array) -> Array:
        """Return the loss."""
        x = u - np.log(self._k)
        constant = negative_binomial_constant(y, self._k)
        return self._k * np.logaddexp(0.0, x) + y * np.logaddexp(0.0, -x) + constant

    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return k p - y (1 - p), (y + k) p (1 - p) and that times 1 - 2 p, p = sigmoid(x)."""
        k = self._k
        x = u - np.log(k)
        p, rest = expit(x), expit(-x)
        slope = (y + k) * p * rest
        return k * p - y * rest, slope, slope * (rest - p)

    def bends(self, y: Array) -> tuple[Array, Array]:
        """Return the logarithm of the dispersion, pi away from the poles of softplus."""
        return np.full_like(y, np.log(self._k)), np.full_like(y, np.pi)

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return the quadratic at the logarithm of the count, about."""
        k = 1.0 if self.free else self._k
        return Quadratic(np.log(y + 0.5), (y + 0.5) * k / (y + 0.5 + k))

    def expected(self, mean: Array, variance: Array, y: Array) -> Array:
        """Return k E softplus(x) + y E softplus(-x) + c(y)."""
        mean, variance, y, large = self._rows(mean, variance, y)
        x = mean - np.log(self._k)
        above, below = (softplus_expectations(side, variance)[0] for side in (x, -x))
        found = np.asarray(self._k * above + y * below + negative_binomial_constant(y, self._k))
        if large.any():
            found[large] = super().expected(mean[large], variance[large], y[large])
        return found

    def partials(self, mean: Array, variance: Array, y: Array) -> Partials:
        """Differentiate k softplus(x) + y softplus(-x)."""
        if not np.isfinite(variance).all():
            raise np.linalg.LinAlgError("the variances of the predictors are not finite")
        mean, variance, y, large = self._rows(mean, variance, y)
        k, x = self._k, mean - np.log(self._k)
        # At -|x| the sigmoid keeps its digits, and with it 1 - sigmoid at |x|.
        rows = softplus_expectations(-np.abs(x), variance, derivatives=4, first=1)
        small, second, third, fourth = rows
        sign, total = np.where(x > 0, -1.0, 1.0), y + k
        first = np.where(x > 0, k - total * small, total * small - y)
        second, third, fourth = total * second, sign * total * third, total * fourth
        found = np.stack([first, second / 2, second, third / 2, fourth / 4])
        if large.any():
            found[:, large] = super().partials(mean[large], variance[large], y[large])
        return Partials(*found)

    def response_mean(self, u: Array) -> Array:
        """Return exp(u)."""
        known("dispersion", self.dispersion)
        return np.exp(u)

    def response_variance(self, u: Array) -> Array:
        """Return m + m^2 / k for the mean m."""
        mean = np.exp(u)
        return mean + mean**2 / self._k

    def sample(self, u: Array, rng: np.random.Generator) -> Array:
        """Draw counts: Poisson with Gamma distributed rates of shape k and mean exp(u)."""
        k = self._k
        return rng.poisson(rng.gamma(k, np.exp(u) / k)).astype(float)

    def cdf(self, u: Array, y: Array) -> Array:
        """Return P(Y <= y), an incomplete Beta function of k / (k + exp(u))."""
        p = expit(np.log(self._k) - np.asarray(u))
        at = np.maximum(np.floor(y), 0.0)
        return np.where(y < 0, 0.0, betainc(self._k, at + 1, p))

    def _rows(
        self, mean: Array, variance: Array, y: Array
    ) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
        """Return rows of one shape, and which are large numbers under wide Gaussians."""
        mean, variance, y = np.broadcast_arrays(mean, variance, y)
        large = (np.maximum(y, self._k) > LARGE) & (variance > WIDE) & np.isfinite(variance)
        return mean, variance, y, large
