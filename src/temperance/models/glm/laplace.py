r"""Equations of the Laplace approximation: the mode u and the curvature there.

With c = beta w, the labels' signs s = 1 - 2 y and p = sigmoid(s (offset + Z u)):

    u + Z'[c s p] = 0,        S^-1 = I + Z' diag(c p (1 - p)) Z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.models.glm.expected_loss import sigmoid_and_slope
from temperance.models.glm.system import (
    FullLaw,
    Rows,
    StraightAhead,
    Tangent,
    inverse_root,
    solve_newton,
    weighted_gram,
)
from temperance.types import Array


@dataclass(frozen=True, eq=False)
class LaplaceSystem(StraightAhead):
    """Unknowns x = u, the mode."""

    rows: Rows

    def start(self) -> Array:
        """Return u = 0."""
        return np.zeros((len(self.rows.weights), self.rows.Z.shape[1]))

    def scale(self, x: Array, beta: float) -> Array:
        """Coefficients against what they do."""
        return self.rows.coefficient_scale(x)

    def admissible(self, x: Array) -> bool:
        """Any finite mode will do."""
        return bool(np.all(np.isfinite(x)))

    def guess(self, beta: float) -> Array:
        """Return the mode of the prior."""
        return self.start()

    def objective(self, x: Array, beta: float) -> Array:
        """Return beta sum_i w_i softplus(s_i mu_i) + |u|^2 / 2."""
        mean = self.rows.sign * (self.rows.offset + x @ self.rows.Z.T)
        loss = (self.rows.weights * np.logaddexp(0.0, mean)).sum(axis=1)
        return beta * loss + 0.5 * (x**2).sum(axis=1)

    def newton(self, x: Array, beta: float) -> tuple[Array, Tangent]:
        """Return the Newton step and the tangent."""
        Z, w = self.rows.Z, self.rows.weights
        p, slope = self._probability(x)
        drift = (w * self.rows.sign * p) @ Z
        precision = self._precision(slope, beta)
        return solve_newton(precision, x + beta * drift, drift, beta, lambda step: x + step)

    def parameters(self, mean: Array, curvature: Array, beta: float) -> Array:
        """Return the mode."""
        return mean

    def law(self, x: Array, tangent: Array, beta: float) -> FullLaw:
        """Return the Gaussians; their curvatures move along the mode."""
        Z, w = self.rows.Z, self.rows.weights
        p, slope = self._probability(x)
        d_weight = w * slope * (1 + beta * self.rows.sign * (1 - 2 * p) * (tangent @ Z.T))
        root = inverse_root(self._precision(slope, beta))
        return FullLaw(x, root, tangent, weighted_gram(Z, d_weight))

    def gaussian(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return modes and covariance roots."""
        return x, inverse_root(self._precision(self._probability(x)[1], beta))

    def _probability(self, x: Array) -> tuple[Array, Array]:
        """Return p, the probability of the other label, and p (1 - p)."""
        return sigmoid_and_slope(self.rows.sign * (self.rows.offset + x @ self.rows.Z.T))

    def _precision(self, slope: Array, beta: float) -> Array:
        Z = self.rows.Z
        return np.eye(Z.shape[1]) + beta * weighted_gram(Z, self.rows.weights * slope)
