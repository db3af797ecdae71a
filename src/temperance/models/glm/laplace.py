r"""Laplace approximation: a Gaussian at the mode theta with the curvature there.

With c = beta w and the derivatives l', l'' of the loss at u = offset + Z theta:

    theta + Z'[c l'] = 0,        S^-1 = I + Z' diag(c l'') Z.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from temperance.data import Array
from temperance.losses.base import Forces, PredictorLoss
from temperance.models.glm.gaussians import (
    FullLaw,
    inverse_root,
    positive_definite,
    solve_newton,
    typical_fit,
    weighted_gram,
)
from temperance.models.glm.newton import StraightAhead, System, Tangent, UnderLoss
from temperance.models.glm.rows import Rows


@dataclass(frozen=True)
class Laplace(UnderLoss):
    """The Laplace approximation under a smooth loss."""

    diagonal: ClassVar[bool] = False

    def system(self, rows: Rows) -> System:
        """Return the equations of the mode."""
        return LaplaceSystem(rows, self.loss)

    def forces(self, mean: Array, variance: Array, y: Array) -> Forces:
        """Differentiate the loss at the mode, whatever the variance."""
        first, second, _ = self.loss.derivatives(mean, y)
        return Forces(first, second, second)


@dataclass(frozen=True, eq=False)
class LaplaceSystem(StraightAhead):
    """Unknowns x = theta, the mode."""

    rows: Rows
    loss: PredictorLoss

    @property
    def convex(self) -> bool:
        """Whether the loss is convex."""
        return self.loss.convex

    def start(self) -> Array:
        """Return theta = 0."""
        return np.zeros((len(self.rows.weights), self.rows.Z.shape[1]))

    def scale(self, x: Array, beta: float) -> Array:
        """Coefficients against what they do."""
        return self.rows.coefficient_scale(x)

    def admissible(self, x: Array) -> bool:
        """Any finite mode will do."""
        return bool(np.all(np.isfinite(x)))

    def guess(self, beta: float) -> Array:
        """Return the mode of the loss's typical quadratic."""
        return typical_fit(self.rows, self.loss, beta)[0]

    def objective(self, x: Array, beta: float) -> Array:
        """Return beta sum_i w_i l_i + |theta|^2 / 2."""
        loss = (self.rows.weights * self.loss.value(self._predictor(x), self.rows.y)).sum(axis=1)
        return beta * loss + 0.5 * (x**2).sum(axis=1)

    def newton(self, x: Array, beta: float) -> tuple[Array, Tangent]:
        """Return the Newton step and the tangent."""
        first, second, _ = self._derivatives(x)
        pull = (self.rows.weights * first) @ self.rows.Z
        precision = self._precision(second, beta)
        if not self.loss.convex and not positive_definite(precision):
            precision = self._precision(np.maximum(second, 0.0), beta)
        return solve_newton(precision, x + beta * pull, pull, beta, lambda step: x + step)

    def parameters(self, mean: Array, curvature: Array, beta: float) -> Array:
        """Return the mode."""
        return mean

    def law(self, x: Array, tangent: Array, beta: float) -> FullLaw:
        """Return the Gaussians; their precisions move by Z' diag(w [l'' + beta l''' du]) Z."""
        Z, w = self.rows.Z, self.rows.weights
        _, second, third = self._derivatives(x)
        d_precision = weighted_gram(Z, w * (second + beta * third * (tangent @ Z.T)))
        return FullLaw(x, inverse_root(self._precision(second, beta)), tangent, d_precision)

    def gaussian(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return modes and covariance roots."""
        return x, inverse_root(self._precision(self._derivatives(x)[1], beta))

    def _predictor(self, x: Array) -> Array:
        return self.rows.offset + x @ self.rows.Z.T

    def _derivatives(self, x: Array) -> tuple[Array, Array, Array]:
        return self.loss.derivatives(self._predictor(x), self.rows.y)

    def _precision(self, second: Array, beta: float) -> Array:
        Z = self.rows.Z
        return np.eye(Z.shape[1]) + beta * weighted_gram(Z, self.rows.weights * second)
