r"""Equations of the Laplace approximation: the mode u and the curvature there.

With c = beta w and s = sigmoid(offset + Z u):  u + Z'[c (s - y)] = 0 and S^-1 = I + Z' diag(c s')
Z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from temperance.models.logistic.system import (
    Predictor,
    Rows,
    inverse_root,
    weighted_gram,
)
from temperance.types import Array


@dataclass(frozen=True, eq=False)
class LaplaceSystem:
    """Unknowns x = u, the mode."""

    rows: Rows

    def start(self) -> Array:
        """Return u = 0."""
        return np.zeros((len(self.rows.weights), self.rows.Z.shape[1]))

    def first_step(self) -> float:
        """Return a beta at which the data weigh about as much as the prior."""
        return self.rows.first_step()

    def scale(self, x: Array) -> Array:
        """Coefficients against what they do."""
        return self.rows.coefficient_scale(x)

    def admissible(self, x: Array) -> bool:
        """Any finite mode will do."""
        return bool(np.all(np.isfinite(x)))

    def newton(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return the Newton step and the tangent."""
        Z, w = self.rows.Z, self.rows.weights
        s = expit(self.rows.offset + x @ Z.T)
        drift = (w * (s - self.rows.y)) @ Z
        right = np.stack([x + beta * drift, drift], axis=2)
        solved = -np.linalg.solve(self._precision(s, beta), right)
        return solved[..., 0], solved[..., 1]

    def predictor(self, x: Array, tangent: Array, beta: float) -> Predictor:
        r"""Return the moments; dv = -z'S [dS^-1/dbeta] S z with s' moving along the mode."""
        Z, w = self.rows.Z, self.rows.weights
        mean, d_mean = self.rows.offset + x @ Z.T, tangent @ Z.T
        s = expit(mean)
        spread = np.linalg.solve(
            self._precision(s, beta), np.broadcast_to(Z.T, (len(x), *Z.T.shape))
        )
        d_weight = w * s * (1 - s) * (1 + beta * (1 - 2 * s) * d_mean)
        d_precision = weighted_gram(Z, d_weight)
        variance = np.einsum("ni,min->mn", Z, spread)
        d_variance = -np.einsum("min,min->mn", spread, d_precision @ spread)
        return Predictor(mean, variance, d_mean, d_variance)

    def gaussian(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return modes and covariance roots."""
        precision = self._precision(expit(self.rows.offset + x @ self.rows.Z.T), beta)
        return x, inverse_root(precision)

    def _precision(self, s: Array, beta: float) -> Array:
        Z = self.rows.Z
        weights = beta * self.rows.weights * s * (1 - s)
        return np.eye(Z.shape[1]) + weighted_gram(Z, weights)
