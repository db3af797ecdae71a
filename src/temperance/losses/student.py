r"""The Student-t loss: noise with heavy tails."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import gammaln, stdtr

from temperance.losses.base import Loss, Quadratic
from temperance.losses.responses import (
    AUTO,
    best_scale,
    check_finite,
    check_free,
    known,
    spread,
)
from temperance.types import Array
from temperance.validation import positive


@dataclass(frozen=True)
class StudentT(Loss):
    r"""Loss (df + 1)/2 log(1 + r^2/a^2) + c, r = u - y, a^2 = df scale^2: not convex.

    Parameters
    ----------
    df : float
        Degrees of freedom.
    scale : float or "auto"
        Of the noise, or to be fitted.

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
        """Whether the scale is still to be found."""
        return self.scale == AUTO

    @property
    def _scale(self) -> float:
        return known("scale", self.scale)

    def check(self, y: Array) -> None:
        """Refuse what is no number."""
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

    def response_mean(self, u: Array) -> Array:
        """Return the predictor: the median, and the mean if df > 1."""
        return np.asarray(u)

    def response_variance(self, u: Array) -> Array:
        """Return scale^2 df / (df - 2), infinite for two degrees of freedom or fewer."""
        variance = self._scale**2 * self.df / (self.df - 2) if self.df > 2 else np.inf
        return np.full(np.shape(u), variance)

    def sample(self, u: Array, rng: np.random.Generator) -> Array:
        """Draw responses."""
        return u + self._scale * rng.standard_t(self.df, size=np.shape(u))

    def cdf(self, u: Array, y: Array) -> Array:
        """Return the law of Student-t."""
        return stdtr(self.df, (y - u) / self._scale)
