r"""Expected logistic loss psi(mu, v) of a Gaussian predictor f ~ N(mu, v), up to the term -y mu.

====================  ==========================================
exact                 E softplus(f), by quadrature
Jaakkola's bound      mu/2 + log(2 cosh(xi/2)),  xi^2 = mu^2 + v
====================  ==========================================

The bound is Jensen's inequality for log 2cosh(sqrt(.)/2), concave in f^2; its derivative in v is
Jaakkola's lam(xi) = tanh(xi/2) / (4 xi).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy import special

from temperance.quadrature import softplus_expectations
from temperance.types import Array


class Partials(NamedTuple):
    """First and second partial derivatives of psi in the mean and the variance."""

    mean: Array
    variance: Array
    mean_mean: Array
    mean_variance: Array
    variance_variance: Array


class ExpectedLoss(Protocol):
    """Partial derivatives of an expected loss."""

    def __call__(self, mean: Array, variance: Array) -> Partials:
        """Evaluate them elementwise."""
        ...


def exact(mean: Array, variance: Array) -> Partials:
    """Differentiate E softplus(f): d/dmu raises the order by one, d/dv by two with a half."""
    _, first, second, third, fourth = softplus_expectations(mean, variance, derivatives=4)
    return Partials(first, second / 2, second, third / 2, fourth / 4)


def jaakkola_bound(mean: Array, variance: Array) -> Partials:
    """Differentiate mu/2 + log(2 cosh(xi/2))."""
    lam, slope = lambda_and_slope(mean**2 + variance)
    return Partials(
        mean=0.5 + 2 * mean * lam,
        variance=lam,
        mean_mean=2 * lam + 4 * mean**2 * slope,
        mean_variance=2 * mean * slope,
        variance_variance=slope,
    )


def lambda_and_slope(square: Array) -> tuple[Array, Array]:
    r"""Return lam(xi) = (sigmoid(xi) - 1/2) / (2 xi) and its derivative in xi^2."""
    small = square < 1e-4
    safe = np.where(small, 1.0, square)
    xi = np.sqrt(safe)
    lam = np.tanh(xi / 2) / (4 * xi)
    # d lam / d xi^2 = [sigmoid'(xi) - 2 lam] / (4 xi^2)
    slope = (special.expit(xi) * special.expit(-xi) - 2 * lam) / (4 * safe)
    # tanh(xi/2) / (4 xi) = 1/8 - xi^2/96 + xi^4/960 - 17 xi^6/80640 + ...
    series = 1 / 8 - square / 96 + square**2 / 960
    d_series = -1 / 96 + square / 480 - 17 * square**2 / 26880
    return np.where(small, series, lam), np.where(small, d_series, slope)
