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

from temperance.data import Array, Risk
from temperance.models.linear.eigenbasis import Misfits
from temperance.models.linear.moments import PredictionMoments, Sums
from temperance.posteriors.student import gamma_half_step


class Gibbs(NamedTuple):
    """Gibbs loss = slope * e^2 + v / 2 + constant, per pair and beta (m, g), with derivatives."""

    slope: Array
    constant: Array
    d_slope: Array
    d_constant: Array


HALF_THE_SQUARE = Gibbs(np.full((1, 1), 0.5), *np.zeros((3, 1, 1)))  # of every pair and beta


def gibbs_rows(gibbs: Gibbs, moments: PredictionMoments) -> tuple[Array, Array]:
    """Return the Gibbs loss of each tested row and its derivative, (m, e, g)."""
    slope, constant, d_slope, d_constant = (part[:, None] for part in gibbs)
    error = moments.error
    value = slope * error**2 + 0.5 * moments.variance + constant
    d_square = d_slope * error**2 + 2 * slope * error * moments.d_error
    return value, d_square + 0.5 * moments.d_variance + d_constant


class Misfit(Protocol):
    """Misfit and total weight of training sets."""

    @property
    def misfit(self) -> Array:
        """The misfit Q of each pair at each beta, (m, g)."""
        ...

    @property
    def d_misfit(self) -> Array:
        """Its derivative, (m, g)."""
        ...

    @property
    def exposure(self) -> Array:
        """Weight of the training rows, (m,)."""
        ...


class NoiseModel(Protocol):
    """Model of the noise variance."""

    @property
    def pairwise(self) -> bool:
        """Whether the coefficients of the Gibbs loss depend on the misfit of the pair."""
        ...

    def gibbs(self, beta: Array, moments: PredictionMoments | Sums) -> Gibbs:
        """Return the coefficients of the Gibbs loss."""
        ...

    def loss(self, beta: Array, moments: PredictionMoments, risk: Risk) -> tuple[Array, Array]:
        """Return the loss of each tested row and its derivative, (m, e, g)."""
        ...

    def predictive(self, beta: Array, moments: PredictionMoments) -> tuple[Array, Array]:
        """Return the predictive loss of each tested row and its derivative, (m, e, g)."""
        ...

    def summed(self, beta: Array, sums: Sums) -> tuple[Array, Array]:
        """Return the Gibbs loss of all tested rows together and its derivative, (g,)."""
        ...

    def log_evidence(self, beta: Array, fit: Misfit) -> tuple[Array, Array]:
        """Return the misfit's term of the log evidence and its derivative, (m, g) each."""
        ...

    def changing(self, misfits: Misfits) -> list[float]:
        """Return betas that span the change of the noise posterior; none if it is fixed."""
        ...


@dataclass(frozen=True)
class KnownVariance:
    """Unit noise variance: the rows were divided by the noise's standard deviation."""

    pairwise: ClassVar[bool] = False

    def gibbs(self, beta: Array, moments: PredictionMoments | Sums) -> Gibbs:
        """Return the coefficients of (e^2 + v) / 2."""
        return HALF_THE_SQUARE

    def loss(self, beta: Array, moments: PredictionMoments, risk: Risk) -> tuple[Array, Array]:
        """Return the loss of each tested row and its derivative, (m, e, g)."""
        if risk == "predictive":
            return self.predictive(beta, moments)
        return gibbs_rows(self.gibbs(beta, moments), moments)

    def summed(self, beta: Array, sums: Sums) -> tuple[Array, Array]:
        """Return the sums of (e^2 + v) / 2."""
        value, slope = sums.square + sums.spread, sums.d_square + sums.d_spread
        return 0.5 * value.sum(axis=0), 0.5 * slope.sum(axis=0)

    def predictive(self, beta: Array, moments: PredictionMoments) -> tuple[Array, Array]:
        """Return [e^2/(1+v) + log(1+v)] / 2."""
        total = 1.0 + moments.variance
        standard = moments.error / total
        value = 0.5 * (moments.error * standard + np.log1p(moments.variance))
        slope = standard * moments.d_error + 0.5 * (1 / total - standard**2) * moments.d_variance
        return value, slope

    def log_evidence(self, beta: Array, fit: Misfit) -> tuple[Array, Array]:
        """Return -Q / 2 and its derivative."""
        return -0.5 * fit.misfit, -0.5 * fit.d_misfit

    def changing(self, misfits: Misfits) -> list[float]:
        """Return an empty list: the variance is known."""
        return []


@dataclass(frozen=True)
class InverseGammaVariance:
    """Noise variance with the prior inverse gamma (a, b)."""

    pairwise: ClassVar[bool] = True
    a: float
    b: float

    def gibbs(self, beta: Array, moments: PredictionMoments | Sums) -> Gibbs:
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

    def loss(self, beta: Array, moments: PredictionMoments, risk: Risk) -> tuple[Array, Array]:
        """Return the loss of each tested row and its derivative, (m, e, g)."""
        if risk == "predictive":
            return self.predictive(beta, moments)
        return gibbs_rows(self.gibbs(beta, moments), moments)

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

    def predictive(self, beta: Array, moments: PredictionMoments) -> tuple[Array, Array]:
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

    def log_evidence(self, beta: Array, fit: Misfit) -> tuple[Array, Array]:
        """Return -a log b and its derivative, with a and b of the posterior."""
        a, b, d_a, d_b = self._at(beta, fit)
        log_b = np.log(b)
        return -a * log_b, -(d_a * log_b + a * d_b / b)

    def changing(self, misfits: Misfits) -> list[float]:
        r"""Return betas between which a + beta exposure / 2 and b + Q / 2 change.

        Near 0, Q is beta times the sum of squared responses.  Towards infinity it is beta times the
        remainder plus u'u, where u are the least-squares coefficients.
        """
        exposure, squares, remainder, length = misfits
        scale, most = 2 * self.b, 2 * self.b + length[1]
        pairs = [(2 * self.a, exposure), (scale, squares), (most, remainder)]
        return [size / rate for size, rates in pairs for rate in rates if rate > 0]

    def _at(self, beta: Array, fit: Misfit) -> tuple[Array, Array, Array, Array]:
        exposure = fit.exposure
        # Pairs of equal exposure share one row: special functions of a are slow.
        d_a = 0.5 * (exposure if np.ptp(exposure) else exposure[:1])[:, None]
        return (
            self.a + d_a * beta,
            self.b + 0.5 * fit.misfit,
            d_a,
            0.5 * fit.d_misfit,
        )
