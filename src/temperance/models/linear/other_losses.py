r"""Losses of a Gaussian response other than the Gibbs and the predictive one.

With error e and variance v of the linear predictor, and the mean s2 of the noise variance:

* squared error of a draw ``e^2 + s2 v`` (v in units of the noise), of the posterior mean ``e^2``;
* log loss of the mean parameters, ``[e^2/s2 + log(2 pi s2)] / 2``.

For a known variance the constant log(2 pi s2) / 2 is left out, as in the risks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from temperance.data import Array, Risk
from temperance.models.linear.moments import PredictionMoments
from temperance.models.linear.noise import InverseGammaVariance, KnownVariance
from temperance.protocols import LossName


@dataclass(frozen=True)
class KnownVarianceLoss(KnownVariance):
    """Losses under a known noise variance; the rows are in units of it."""

    variance: float
    kind: LossName
    in_model: bool

    def loss(self, beta: Array, moments: PredictionMoments, risk: Risk) -> tuple[Array, Array]:
        """Return e^2 or e^2 + v, halved for the log loss, and its derivative, (m, e, g)."""
        unit = 0.5 if self.kind == "log" else self.variance
        value, slope = moments.error**2, 2 * moments.error * moments.d_error
        if not self.in_model:
            value, slope = value + moments.variance, slope + moments.d_variance
        return unit * value, unit * slope


@dataclass(frozen=True)
class InverseGammaLoss(InverseGammaVariance):
    """Losses under an unknown noise variance, whose posterior mean is b / (a - 1)."""

    kind: LossName
    in_model: bool

    def __post_init__(self) -> None:
        """Refuse a prior without a mean noise variance."""
        if not self.a > 1 and not (self.kind == "square" and self.in_model):
            raise ValueError(
                f"a must be above 1 for the posterior mean of the noise variance, got {self.a!r}"
            )

    def loss(self, beta: Array, moments: PredictionMoments, risk: Risk) -> tuple[Array, Array]:
        """Return the loss of each tested row and its derivative, (m, e, g)."""
        square, d_square = moments.error**2, 2 * moments.error * moments.d_error
        if self.kind == "square" and self.in_model:
            return square, d_square
        a, b, d_a, d_b = (part[:, None] for part in self._at(beta, moments))
        mean = b / (a - 1)
        d_mean = (d_b - mean * d_a) / (a - 1)
        if self.kind == "square":
            value = square + mean * moments.variance
            return value, d_square + d_mean * moments.variance + mean * moments.d_variance
        value = 0.5 * (square / mean + np.log(2 * math.pi * mean))
        return value, 0.5 * (d_square / mean + (1 - square / mean) * d_mean / mean)
