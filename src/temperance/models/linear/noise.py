r"""Losses of a Gaussian response as functions of the moments of its prediction.

In units of the noise, with error e and variance v of the linear predictor:

* known variance: Gibbs ``(e^2 + v) / 2``, predictive ``[e^2/(1+v) + log(1+v)] / 2``;
* inverse gamma (a, b): Gibbs ``[(a/b) e^2 + v + log b - digamma(a) + log 2 pi] / 2``, predictive
  minus the log density of a Student-t of 2a degrees of freedom and squared scale ``(b/a)(1+v)``.

For a known variance s2 both leave out the constant log(2 pi s2) / 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from scipy import special

from temperance.models.linear.moments import Moments, MomentSource, Sums
from temperance.posteriors.student import gamma_half_step
from temperance.types import Array


class Gibbs(NamedTuple):
    """Gibbs loss = slope * e^2 + v / 2 + constant, per pair and beta (m, g), with derivatives."""

    slope: Array
    constant: Array
    d_slope: Array
    d_constant: Array


HALF_THE_SQUARE = Gibbs(np.full((1, 1), 0.5), *np.zeros((3, 1, 1)))  # of every pair and beta


class Noise(Protocol):
    """What is believed of the noise variance."""

    @property
    def pairwise(self) -> bool:
        """Whether the coefficients of the Gibbs loss differ between pairs, by their misfit."""
        ...

    def gibbs(self, beta: Array, moments: Moments | Sums) -> Gibbs:
        """Return the coefficients of the Gibbs loss."""
        ...

    def summed(self, beta: Array, sums: Sums) -> tuple[Array, Array]:
        """Return the Gibbs loss of all tested rows together and its derivative, (g,)."""
        ...

    def predictive(self, beta: Array, moments: Moments) -> tuple[Array, Array]:
        """Return the predictive loss of each tested row and its derivative, (m, e, g)."""
        ...

    def moving(self, source: MomentSource) -> list[float]:
        """Return betas between which what is believed of the noise moves; none if it does not."""
        ...


@dataclass(frozen=True)
class KnownVariance:
    """Unit noise variance: the rows were divided by the noise's standard deviation."""

    pairwise: ClassVar[bool] = False

    def gibbs(self, beta: Array, moments: Moments | Sums) -> Gibbs:
        """Return the coefficients of (e^2 + v) / 2."""
        return HALF_THE_SQUARE

    def summed(self, beta: Array, sums: Sums) -> tuple[Array, Array]:
        """Return the sums of (e^2 + v) / 2."""
        value, slope = sums.square + sums.spread, sums.d_square + sums.d_spread
        return 0.5 * value.sum(axis=0), 0.5 * slope.sum(axis=0)

    def predictive(self, beta: Array, moments: Moments) -> tuple[Array, Array]:
        """Return [e^2/(1+v) + log(1+v)] / 2."""
        total = 1.0 + moments.variance
        standard = moments.error / total
        value = 0.5 * (moments.error * standard + np.log1p(moments.variance))
        slope = standard * moments.d_error + 0.5 * (1 / total - standard**2) * moments.d_variance
        return value, slope

    def moving(self, source: MomentSource) -> list[float]:
        """Return none: the variance is known."""
        return []


@dataclass(frozen=True)
class InverseGammaVariance:
    """Noise variance with the prior inverse gamma (a, b)."""

    pairwise: ClassVar[bool] = True
    a: float
    b: float

    def gibbs(self, beta: Array, moments: Moments | Sums) -> Gibbs:
        """Return the coefficients of [(a/b) e^2 + v + log b - digamma(a) + log 2 pi] / 2."""
        a, b, d_a, d_b = self._at(beta, moments)
        half = 0.5 / b
        slope = a * half
        return Gibbs(
            slope=slope,
            constant=0.5 * (np.log(2 * math.pi * b) - special.digamma(a)),
            d_slope=half * d_a - slope * (d_b / b),
            d_constant=half * d_b - 0.5 * special.zeta(2.0, a) * d_a,  # the trigamma function
        )

    def summed(self, beta: Array, sums: Sums) -> tuple[Array, Array]:
        """Return the sums of slope * e^2 + v / 2 + constant."""
        gibbs, tested = self.gibbs(beta, sums), sums.tested[:, None]
        value = gibbs.slope * sums.square + 0.5 * sums.spread + tested * gibbs.constant
        slope = (
            gibbs.d_slope * sums.square
            + gibbs.slope * sums.d_square
            + 0.5 * sums.d_spread
            + tested * gibbs.d_constant
        )
        return value.sum(axis=0), slope.sum(axis=0)

    def predictive(self, beta: Array, moments: Moments) -> tuple[Array, Array]:
        """Return the negative log density of the Student-t predictive."""
        a, b, d_a, d_b = (part[:, None] for part in self._at(beta, moments))
        total = 1.0 + moments.variance
        standard = moments.error / total
        ratio = moments.error * standard / (2 * b)
        gamma_step, d_gamma_step = gamma_half_step(a)
        value = (
            0.5 * (np.log(2 * math.pi * b) + np.log1p(moments.variance))
            + (a + 0.5) * np.log1p(ratio)
            - gamma_step
        )
        d_ratio = (
            (standard * moments.d_error - 0.5 * standard**2 * moments.d_variance) - ratio * d_b
        ) / b
        slope = (
            (np.log1p(ratio) - d_gamma_step) * d_a
            + 0.5 * (d_b / b + moments.d_variance / total)
            + (a + 0.5) * d_ratio / (1 + ratio)
        )
        return value, slope

    def moving(self, source: MomentSource) -> list[float]:
        r"""Return betas between which a + beta exposure / 2 and b + Q / 2 move.

        From 0 on Q is beta times the squares of the responses; towards infinity, with u the
        coefficients of least squares, it is beta times the remainder plus u'u.
        """
        exposure, squares, remainder, length = source.misfits
        scale, most = 2 * self.b, 2 * self.b + length[1]
        pairs = [(2 * self.a, exposure), (scale, squares), (most, remainder)]
        return [size / rate for size, rates in pairs for rate in rates if rate > 0]

    def _at(self, beta: Array, moments: Moments | Sums) -> tuple[Array, Array, Array, Array]:
        exposure = moments.exposure
        # One row for all pairs of equal exposure: functions of a are dear.
        d_a = 0.5 * (exposure if np.ptp(exposure) else exposure[:1])[:, None]
        return (
            self.a + d_a * beta,
            self.b + 0.5 * moments.misfit,
            d_a,
            0.5 * moments.d_misfit,
        )
