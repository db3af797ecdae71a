r"""The Student-t loss: noise with heavy tails."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import gammaln, stdtr, wofz

from temperance.checks import positive
from temperance.data import Array
from temperance.losses.base import Loss, Partials, Quadratic
from temperance.losses.responses import (
    AUTO,
    best_scale,
    check_finite,
    check_free,
    known,
    spread,
)

NEAR = 5.0  # deviations to the poles up to which derivatives of Faddeeva's w keep their digits


@dataclass(frozen=True)
class StudentT(Loss):
    r"""Loss (df + 1)/2 log(1 + r^2/a^2) + c, r = u - y, a^2 = df scale^2: not convex.

    Parameters
    ----------
    df : float
        Degrees of freedom.
    scale : float or "auto"
        Scale of the noise; "auto" fits it by maximum likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> float(np.exp(-StudentT(1.0, 1.0).value(np.array(0.0), np.array(0.0))).round(4))
    0.3183
    """

    df: float = 4.0
    scale: float | str = AUTO
    name: ClassVar[str] = "Student-t loss"
    location: ClassVar[bool] = True
    convex: ClassVar[bool] = False
    likelihood: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse degrees of freedom and scales that are not positive."""
        positive("df", self.df)
        check_free("scale", self.scale)

    @property
    def free(self) -> bool:
        """Whether the scale is still to be fitted."""
        return self.scale == AUTO

    @property
    def _scale(self) -> float:
        return known("scale", self.scale)

    def check(self, y: Array) -> None:
        """Refuse responses that are not numbers."""
        check_finite(y)

    def fitted(self, u: Array, y: Array, weights: Array) -> Self:
        """Return the loss with the scale that maximises the likelihood."""
        if not self.free:
            return self

        def objective(scale: float) -> float:
            return float((weights * replace(self, scale=scale).value(u, y)).sum())

        size = spread(np.asarray(y) - u, weights)
        return replace(self, scale=best_scale(objective, 1e-4 * size, 1e4 * size))

    def value(self, u: Array, y: Array) -> Array:
        """Return the loss."""
        df, scale = self.df, self._scale
        x = (u - y) / (np.sqrt(df) * scale)
        constant = gammaln(df / 2) - gammaln((df + 1) / 2) + 0.5 * np.log(np.pi * df)
        return (df + 1) / 2 * np.log1p(x**2) + constant + np.log(scale)

    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Differentiate log(1 + x^2), x = r / a."""
        a = np.sqrt(self.df) * self._scale
        x = (u - y) / a
        share = 1 / (1 + x**2)
        factor = (self.df + 1) / a
        first, second = factor * x * share, factor / a * (1 - x) * (1 + x) * share**2
        return first, second, 2 * factor / a**2 * x * (x**2 - 3) * share**3

    def bends(self, y: Array) -> tuple[Array, Array]:
        """Return the response, and the distance of the poles."""
        return y, np.full_like(y, np.sqrt(self.df) * self._scale)

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return the quadratic at the response."""
        curvature = (self.df + 1) / (self.df * self.unit(y) ** 2)
        return Quadratic(y, np.full_like(y, curvature))

    def unit(self, y: Array) -> float:
        """Return the scale."""
        return spread(y) if self.free else self._scale

    def partials(self, mean: Array, variance: Array, y: Array) -> Partials:
        """Differentiate, in closed form where the Gaussian is as wide as the loss."""
        mean, variance, y = np.broadcast_arrays(mean, variance, y)
        s, a = np.sqrt(variance), np.sqrt(self.df) * self._scale
        wide = (np.hypot(mean - y, a) < NEAR * s) & np.isfinite(s)
        if not wide.any():
            return super().partials(mean, variance, y)
        found = np.empty((5, *mean.shape))
        found[:, wide] = _wide_partials(mean[wide] - y[wide], s[wide], a, self.df)
        if not wide.all():
            found[:, ~wide] = super().partials(mean[~wide], variance[~wide], y[~wide])
        return Partials(*found)

    def response_mean(self, u: Array) -> Array:
        """Return the predictor: the median, and the mean if df > 1."""
        known("scale", self.scale)
        return np.asarray(u)

    def response_variance(self, u: Array) -> Array:
        """Return scale^2 df / (df - 2), infinite for two degrees of freedom or fewer."""
        variance = self._scale**2 * self.df / (self.df - 2) if self.df > 2 else np.inf
        return np.full(np.shape(u), variance)

    def sample(self, u: Array, rng: np.random.Generator) -> Array:
        """Draw responses."""
        return u + self._scale * rng.standard_t(self.df, size=np.shape(u))

    def cdf(self, u: Array, y: Array) -> Array:
        """Return the distribution function of Student-t."""
        return stdtr(self.df, (y - u) / self._scale)


def _wide_partials(residual: Array, s: Array, a: float, df: float) -> Partials:
    r"""Differentiate by Faddeeva's function w, for deviations s not much smaller than a.

    l' = (df + 1) Re 1 / (r - i a), and E 1 / (r - i a) = i sqrt(pi) w(z) / (sqrt(2) s) at
    z = (i a - r) / (sqrt(2) s), with w' = 2 i / sqrt(pi) - 2 z w and
    w^(j + 1) = -2 z w^(j) - 2 j w^(j - 1).
    """
    width = np.sqrt(2) * s
    z = (1j * a - residual) / width
    w = wofz(z)
    w1 = 2j / np.sqrt(np.pi) - 2 * z * w
    w2 = -2 * z * w1 - 2 * w
    w3 = -2 * z * w2 - 4 * w1
    first, second, third, fourth = (
        (df + 1) * (1j * np.sqrt(np.pi) * each).real / width * (-1 / width) ** j
        for j, each in enumerate((w, w1, w2, w3))
    )
    return Partials(first, second / 2, second, third / 2, fourth / 4)
