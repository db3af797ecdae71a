r"""Equations of the Laplace approximation: the mode u and the curvature there.

With c = beta w and s = sigmoid(offset + Z u):  u + Z'[c (s - y)] = 0 and S^-1 = I + Z' diag(c s')
Z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from temperance.models.logistic.system import (
    FullLaw,
    Rows,
    Tangent,
    inverse_root,
    solve_newton,
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

    def scale(self, x: Array) -> Array:
        """Coefficients against what they do."""
        return self.rows.coefficient_scale(x)

    def admissible(self, x: Array) -> bool:
        """Any finite mode will do."""
        return bool(np.all(np.isfinite(x)))

    def guess(self, beta: float) -> Array:
        """Return the mode of the prior."""
        return self.start()

    def newton(self, x: Array, beta: float) -> tuple[Array, Tangent]:
        """Return the Newton step and the tangent."""
        Z, w = self.rows.Z, self.rows.weights
        s = expit(self.rows.offset + x @ Z.T)
        drift = (w * (s - self.rows.y)) @ Z
        residual = x + beta * drift
        return solve_newton(self._precision(s, beta), residual, drift, beta, lambda step: x + step)

    def parameters(self, mean: Array, curvature: Array, beta: float) -> Array:
        """Return the mode."""
        return mean

    def law(self, x: Array, tangent: Array, beta: float) -> FullLaw:
        """Return the Gaussians; their curvatures move along the mode."""
        Z, w = self.rows.Z, self.rows.weights
        s = expit(self.rows.offset + x @ Z.T)
        d_weight = w * s * (1 - s) * (1 + beta * (1 - 2 * s) * (tangent @ Z.T))
        root = inverse_root(self._precision(s, beta))
        return FullLaw(x, root, tangent, weighted_gram(Z, d_weight))

    def gaussian(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return modes and covariance roots."""
        precision = self._precision(expit(self.rows.offset + x @ self.rows.Z.T), beta)
        return x, inverse_root(precision)

    def _precision(self, s: Array, beta: float) -> Array:
        Z = self.rows.Z
        return np.eye(Z.shape[1]) + beta * weighted_gram(Z, self.rows.weights * s * (1 - s))
