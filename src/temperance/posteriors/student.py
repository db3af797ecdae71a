r"""Student-t distributions: forecasts of responses, marginals of coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from temperance.checks import open_units
from temperance.data import Array


@dataclass(frozen=True, eq=False)
class StudentT:
    r"""Distribution of location + scale * T, T Student-t, or Gaussian if ``dof`` is infinite.

    Parameters
    ----------
    location, scale : arrays of the same shape
    dof : float
        Degrees of freedom.

    Examples
    --------
    >>> import numpy as np
    >>> forecast = StudentT(np.array([1.0]), np.array([2.0]), dof=np.inf)
    >>> print(forecast.interval(0.95).round(3))
    [[-2.92  4.92]]
    """

    location: Array
    scale: Array
    dof: float = np.inf

    @property
    def mean(self) -> Array:
        """The location."""
        return self.location

    @property
    def std(self) -> Array:
        """Standard deviation; infinite for two degrees of freedom or fewer."""
        if np.isinf(self.dof):
            return self.scale
        return self.scale * (np.sqrt(self.dof / (self.dof - 2)) if self.dof > 2 else np.inf)

    def quantile(self, q: ArrayLike) -> Array:
        """Return the quantiles of order q: (n,), or (levels, n) for several q."""
        at = open_units("q", q)
        standard = special.ndtri(at) if np.isinf(self.dof) else special.stdtrit(self.dof, at)
        return self.location + np.multiply.outer(standard, self.scale)

    def interval(self, level: ArrayLike = 0.95) -> Array:
        """Return the ends of central intervals: (n, 2), or (levels, n, 2) for several levels."""
        return central_interval(self, level)

    def cdf(self, value: ArrayLike) -> Array:
        """Return the probability of at most ``value``."""
        standard = (np.asarray(value, dtype=float) - self.location) / self.scale
        if np.isinf(self.dof):
            return special.ndtr(standard)
        return special.stdtr(self.dof, standard)

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log density at ``value``."""
        standard = (np.asarray(value, dtype=float) - self.location) / self.scale
        if np.isinf(self.dof):
            return -0.5 * (standard**2 + np.log(2 * np.pi)) - np.log(self.scale)
        a = np.asarray(self.dof / 2)
        normaliser = gamma_half_step(a)[0] - 0.5 * np.log(np.pi * self.dof)
        return normaliser - np.log(self.scale) - (a + 0.5) * np.log1p(standard**2 / self.dof)


class Distribution(Protocol):
    """A distribution of each of n numbers."""

    @property
    def mean(self) -> Array:
        """Mean, shape (n,)."""
        ...

    @property
    def std(self) -> Array:
        """Standard deviation, shape (n,)."""
        ...

    def quantile(self, q: ArrayLike) -> Array:
        """Return the quantiles of order q."""
        ...

    def interval(self, level: ArrayLike = 0.95) -> Array:
        """Return the ends of central intervals."""
        ...

    def cdf(self, value: ArrayLike) -> Array:
        """Return the probability of at most ``value``."""
        ...

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log density at ``value``."""
        ...


def central_interval(law: Distribution, level: ArrayLike) -> Array:
    """Return the ends of the central intervals of probability ``level``, on the last axis."""
    tail = (1 - open_units("level", level)) / 2
    return np.stack([law.quantile(tail), law.quantile(1 - tail)], axis=-1)


def gamma_half_step(a: Array) -> tuple[Array, Array]:
    """Return log Gamma(a + 1/2) - log Gamma(a) and its derivative in a.

    Series are used where the differences would lose digits by cancellation.
    """
    log_gamma = special.loggamma if np.iscomplexobj(a) else special.gammaln
    large = np.real(a) > 20.0
    small, inverse = np.where(large, 1.0, a), 1.0 / np.where(large, a, 20.0)
    square = inverse**2
    value = -0.5 * np.log(inverse) - inverse * (
        1 / 8 - square * (1 / 192 - square * (1 / 640 - square * 17 / 14336))
    )
    slope = inverse / 2 + square * (
        1 / 8 - square * (1 / 64 - square * (1 / 128 - square * 17 / 2048))
    )
    return (
        np.where(large, value, log_gamma(small + 0.5) - log_gamma(small)),
        np.where(large, slope, special.digamma(small + 0.5) - special.digamma(small)),
    )
