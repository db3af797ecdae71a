r"""The equations of a Gaussian approximation, for many weightings of the same rows at once.

A system solves F(x, beta) = 0 for the parameters x of N(mean, S) in whitened coordinates, where
the prior is N(0, I).  At beta = 0 the solution is the prior; from there it is followed along beta
(:mod:`temperance.models.logistic.continuation`).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from temperance.types import Array


class Predictor(NamedTuple):
    """Mean and variance of every row's linear predictor and their derivatives in beta, (m, n)."""

    mean: Array
    variance: Array
    d_mean: Array
    d_variance: Array


class System(Protocol):
    """Stationarity equations of m approximations; x has shape (m, parameters)."""

    def start(self) -> Array:
        """Return the solution at beta = 0: the prior."""
        ...

    def first_step(self) -> float:
        """Return a beta at which the data weigh about as much as the prior."""
        ...

    def newton(self, x: Array, beta: float) -> tuple[Array, Array]:
        r"""Return the Newton step -J^-1 F and the tangent dx/dbeta = -J^-1 dF/dbeta."""
        ...

    def scale(self, x: Array) -> Array:
        """Return the size against which a step in each parameter is small."""
        ...

    def admissible(self, x: Array) -> bool:
        """Tell whether the parameters are those of a Gaussian."""
        ...

    def predictor(self, x: Array, tangent: Array, beta: float) -> Predictor:
        """Return the moments of the linear predictor."""
        ...

    def gaussian(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return means (m, k) and covariance roots (m, k, k)."""
        ...


class Rows(NamedTuple):
    """What the approximations are about: f = offset + Z u, y in {0, 1}, weights (m, n)."""

    Z: Array
    offset: Array
    y: Array
    weights: Array

    def coefficient_scale(self, u: Array) -> Array:
        """Return steps in u that are small in units of the prior and in what they do to f."""
        reach = np.abs(self.Z).max(axis=0, initial=0.0)
        return (1.0 + np.abs(u) * reach) / (1.0 + reach)

    def first_step(self) -> float:
        """Bound the information of any weighting per unit of beta, and invert."""
        information = 0.25 * (self.weights @ (self.Z**2).sum(axis=1)).max()
        return 1.0 / float(information) if information > 0 else 1.0


def inverse_root(precisions: Array) -> Array:
    """Return A = R^-1 for R'R the precision, so that the covariance is A A'."""
    return np.linalg.inv(np.linalg.cholesky(precisions)).swapaxes(1, 2)


def weighted_gram(Z: Array, weights: Array) -> Array:
    """Z' diag(w) Z for each row of weights."""
    return (Z.T * weights[:, None, :]) @ Z
