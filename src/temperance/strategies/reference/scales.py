r"""The scales of a linear reference model: noise variance s and prior factor t, kappa = t / s.

    y = Z theta + e,    e ~ N(0, s I),    theta ~ N(mu_0, t S_0).

In the eigenbasis of the weighted, whitened rows, with eigenvalues lam, projections g of the
responses and squared residual rho^2 (see :mod:`temperance.models.linear.eigenbasis`),

    Q(kappa) = rho^2 + sum_j g_j^2 / (1 + kappa lam_j),    |I + kappa Z S_0 Z'| = prod_j (1 + kappa
    lam_j),

and the weight of kappa is |I + kappa Z S_0 Z'|^(-1/2) times the integral over s of s^(-n/2)
exp(-Q/2s) and the priors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import numpy as np
from scipy.special import wrightomega

from temperance.data import Array

SPREAD = 1.5  # prior standard deviation of the logarithm of each free scale
COARSE = np.linspace(-30.0, 30.0, 121)
FINE = 41
NEGLIGIBLE = 30.0  # difference in log weight from the most likely scale beyond which one is dropped
# Nodes of the integral over log s, in standard deviations from its mode; the right tail is longer.
NODES = np.linspace(-7.0, 13.0, 41)
NO_NOISE = -200.0  # logarithm of a noise variance that is treated as zero
# A scale more than this many prior standard deviations above its prior mean widens the prior, by a
# tenth at least.
MOST_DEVIATIONS, LEAST_WIDENING = 2.5, 1.1


class Spectrum(NamedTuple):
    """Sufficient statistics for kappa: eigenvalues, projections, remainder, sample size."""

    lam: Array
    projection: Array
    remainder: float
    size: float

    def misfit(self, kappa: Array) -> Array:
        """Return Q(kappa) for kappas (g,)."""
        shrinkage = 1 / (1 + np.multiply.outer(kappa, self.lam))
        return self.remainder + shrinkage @ self.projection**2

    def log_determinant(self, kappa: Array) -> Array:
        """Return log |I + kappa Z S_0 Z'|."""
        return np.log1p(np.multiply.outer(kappa, self.lam)).sum(axis=1)


class Scales(NamedTuple):
    """Posterior of the scales on a grid: kappa, weight (sums to 1) and E[s | kappa]."""

    kappa: Array
    weight: Array
    noise: Array


class ScalePrior(Protocol):
    """Prior of the scales."""

    def posterior(self, spectrum: Spectrum, log_kappa: Array) -> tuple[Array, Array]:
        """Return the log weight of each kappa, up to a constant, and E[s | kappa]."""
        ...

    def widened(self, scales: Scales) -> Self | None:
        """Return a wider prior if the scales lie far above it, otherwise None."""
        ...


@dataclass(frozen=True)
class AroundKnownVariance:
    r"""Known variance 1, the unit: log s and log t are N(0, spread^2), independent."""

    spread: float = SPREAD

    def posterior(self, spectrum: Spectrum, log_kappa: Array) -> tuple[Array, Array]:
        """Return log weights and noise by integrating over log s around its mode."""
        half, misfit = spectrum.size / 2, spectrum.misfit(np.exp(log_kappa))
        log_s = np.maximum(self._mode(half, misfit, log_kappa), NO_NOISE)
        curvature = misfit / 2 * np.exp(-log_s) + 2 / self.spread**2
        grid = log_s[:, None] + NODES / np.sqrt(curvature)[:, None]
        height = (
            -half * grid
            - misfit[:, None] / 2 * np.exp(-grid)
            - (grid**2 + (grid + log_kappa[:, None]) ** 2) / (2 * self.spread**2)
        )
        top = height.max(axis=1, keepdims=True)
        density = np.exp(height - top)
        total = density.sum(axis=1)
        log_weight = top[:, 0] + np.log(total) - np.log(curvature) / 2
        noise = (density * np.exp(grid)).sum(axis=1) / total
        return log_weight - spectrum.log_determinant(np.exp(log_kappa)) / 2, noise

    def _mode(self, half: float, misfit: Array, log_kappa: Array) -> Array:
        """Return the maximiser of -half l - (Q/2) e^-l - (l^2 + (l + log kappa)^2) / 2 spread^2.

        The slope is zero where (Q/2) e^-l = a + b l; the solution is Wright's omega function.
        """
        b = 2 / self.spread**2
        shift = half / b + log_kappa / 2
        with np.errstate(divide="ignore"):  # zero misfit: -inf is correct
            return wrightomega(np.log(misfit / (2 * b)) + shift) - shift

    def widened(self, scales: Scales) -> Self | None:
        """Return a prior so wide that s and t are at most ``MOST_DEVIATIONS`` above its mean.

        Otherwise data in other units would distort the reference.  Scales far below do no harm: the
        assumed prior or noise is then too large to matter.
        """
        log_s = float(scales.weight @ np.log(scales.noise))
        log_t = log_s + float(scales.weight @ np.log(scales.kappa))
        needed = max(log_s, log_t) / MOST_DEVIATIONS
        if needed <= self.spread:
            return None
        return replace(self, spread=max(needed, LEAST_WIDENING * self.spread))


@dataclass(frozen=True)
class UnknownVariance:
    r"""No known variance: s has the density 1/s, log kappa is N(0, spread^2).

    By default the spread is that of log kappa = log t - log s around a known variance.
    """

    spread: float = SPREAD * 2**0.5

    def posterior(self, spectrum: Spectrum, log_kappa: Array) -> tuple[Array, Array]:
        """Return log weights Q^(-n/2), the integral over s, and the mean Q / (n - 2)."""
        if spectrum.size <= 2:
            raise ValueError(
                "X and y must hold more than 2 observations for a reference of unknown variance, "
                f"copies counted once, got {spectrum.size:g}"
            )
        kappa = np.exp(log_kappa)
        misfit = np.maximum(spectrum.misfit(kappa), np.finfo(float).tiny)
        log_weight = (
            -spectrum.size / 2 * np.log(misfit)
            - spectrum.log_determinant(kappa) / 2
            - log_kappa**2 / (2 * self.spread**2)
        )
        return log_weight, misfit / (spectrum.size - 2)

    def widened(self, scales: Scales) -> None:
        """Return None: s has no unit, and t / s needs its prior if all responses are fitted."""


def likely_scales(spectrum: Spectrum, scale_prior: ScalePrior) -> Scales:
    """Return the posterior of the scales; the prior is widened as often as necessary."""
    widened: ScalePrior | None = scale_prior
    while widened is not None:
        scales = _weighed(spectrum, widened)
        widened = widened.widened(scales)
    return scales


def _weighed(spectrum: Spectrum, scale_prior: ScalePrior) -> Scales:
    """Return a fine grid over the kappas of non-negligible weight."""
    log_weight, _ = scale_prior.posterior(spectrum, COARSE)
    if not np.isfinite(log_weight.max()):
        raise ValueError(
            "y must be of a size whose squares are finite, and not all zero, in the units of the "
            "model"
        )
    likely = np.flatnonzero(log_weight > log_weight.max() - NEGLIGIBLE)
    first, last = max(likely[0] - 1, 0), min(likely[-1] + 1, len(COARSE) - 1)
    grid = np.linspace(COARSE[first], COARSE[last], FINE)
    log_weight, noise = scale_prior.posterior(spectrum, grid)
    weight = np.exp(log_weight - log_weight.max())
    return Scales(np.exp(grid), weight / weight.sum(), noise)
