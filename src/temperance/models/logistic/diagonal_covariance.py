r"""Equations of N(m, diag(t)), t = exp(2 rho): the mean-field Gaussian.

Stationarity of beta sum_i w_i [psi(mu_i, v_i) - y_i mu_i] + KL with mu = offset + Z m, v = Z^2 t
(Z^2 elementwise) and c = beta w, in (m, rho):

    m + Z'[c (psi_mu - y)] = 0,        t - 1 + 2 t (Z^2)'[c psi_v] = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from temperance.models.logistic.expected_loss import Loss, expected_loss
from temperance.models.logistic.system import (
    DiagonalLaw,
    Rows,
    Tangent,
    solve_newton,
    weighted_gram,
)
from temperance.types import Array


@dataclass(frozen=True, eq=False)
class DiagonalCovarianceSystem:
    """Unknowns x = (m, rho): k means and k log standard deviations."""

    rows: Rows
    loss: Loss = expected_loss

    def start(self) -> Array:
        """Return m = 0, rho = 0."""
        return np.zeros((len(self.rows.weights), 2 * self.rows.Z.shape[1]))

    def scale(self, x: Array) -> Array:
        """Means against what they do, log standard deviations against one."""
        m, rho = self._split(x)
        return np.concatenate([self.rows.coefficient_scale(m), np.ones_like(rho)], axis=1)

    def admissible(self, x: Array) -> bool:
        """Bound variances by the prior's: t = 1 / (1 + 2 (Z^2)'[c psi_v]) is at most 1."""
        _, rho = self._split(x)
        return bool(np.all(np.isfinite(x)) and np.all((rho > -50) & (rho < 1e-8)))

    def guess(self, beta: float) -> Array:
        """Return m = 0 and the variances of curvature 1/4."""
        curvature = 0.25 * (self.rows.weights @ self.rows.squares)
        return self.parameters(np.zeros_like(curvature), curvature, beta)

    def newton(self, x: Array, beta: float) -> tuple[Array, Tangent]:
        """Return the Newton step and the tangent.

        With q = t + 2 t (Z^2)'[c psi_v] the step is that for log q = 0, nearly linear in (m, rho),
        whose Jacobian is that of q - 1 divided by q.
        """
        Z, w = self.rows.Z, self.rows.weights
        m, rho = self._split(x)
        t, squares = np.exp(2 * rho), self.rows.squares
        psi = self.loss(self.rows.offset + m @ Z.T, t @ squares.T)
        pull, spread = (w * (psi.mean - self.rows.y)) @ Z, 2 * t * ((w * psi.variance) @ squares)
        drift = np.concatenate([pull, spread], axis=1)
        k, dt, q, c = Z.shape[1], 2 * t, t + beta * spread, beta * w  # dt/drho
        jacobian = np.empty((len(w), 2 * k, 2 * k))
        jacobian[:, :k, :k] = weighted_gram(Z, c * psi.mean_mean)
        mixed = weighted_gram(Z, c * psi.mean_variance, squares)
        mixed *= dt[:, None, :]
        jacobian[:, :k, k:] = mixed
        jacobian[:, k:, :k] = mixed.swapaxes(1, 2)
        curvature = weighted_gram(squares, c * psi.variance_variance)
        curvature *= dt[:, :, None]
        np.multiply(curvature, dt[:, None, :], out=jacobian[:, k:, k:])
        index = np.arange(2 * k)
        jacobian[:, index, index] += np.concatenate([np.ones_like(m), 2 * q], axis=1)
        # Near beta = 0 the logarithm of q is all in what q has more than 1.
        more = np.expm1(2 * rho) + beta * spread
        log_q = np.where(np.abs(more) < 0.5, np.log1p(np.maximum(more, -0.5)), np.log(q))
        residual = np.concatenate([m + beta * pull, q * log_q], axis=1)
        return solve_newton(jacobian, residual, drift, beta, partial(self._prior, x))

    def _prior(self, x: Array, step: Array) -> Array:
        """Return what the prior adds to the equations, m and t - 1, a step further."""
        m, rho = self._split(x + step)
        return np.concatenate([m, np.expm1(2 * rho)], axis=1)

    def parameters(self, mean: Array, curvature: Array, beta: float) -> Array:
        """Return means and log standard deviations; a diagonal curvature is (m, k)."""
        return np.concatenate([mean, -0.5 * np.log1p(beta * curvature)], axis=1)

    def law(self, x: Array, tangent: Array, beta: float) -> DiagonalLaw:
        """Return the Gaussians and how they move."""
        m, rho = self._split(x)
        dm, drho = self._split(tangent)
        t = np.exp(2 * rho)
        return DiagonalLaw(m, t, dm, 2 * t * drho)

    def gaussian(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return means and diagonal covariance roots."""
        m, rho = self._split(x)
        return m, np.exp(rho)[:, :, None] * np.eye(m.shape[1])

    def _split(self, x: Array) -> tuple[Array, Array]:
        k = self.rows.Z.shape[1]
        return x[:, :k], x[:, k:]
