r"""Equations of N(u, S) with full covariance, for any expected loss psi(mu, v).

The minimiser of beta sum_i w_i [psi(mu_i, v_i) - y_i mu_i] + KL(N(u, S) | N(0, I)) satisfies, with
c = beta w,

    u + Z'[c (psi_mu - y)] = 0,        S^-1 = I + Z' diag(2 c psi_v) Z,

so the unknowns are u and the predictor variances v_i = z_i'S z_i.  With M = (Z S Z')^2 elementwise,
H = I + Z' diag(c psi_mumu) Z and the steps (du, dv) for residuals (R_u, R_v),

    [I + M diag(2c) {diag(psi_vv) - diag(psi_muv) Z H^-1 Z' diag(c psi_muv)}] dv
        = -R_v + M [2 c psi_muv Z H^-1 R_u],
    du = -H^-1 (R_u + Z'[c psi_muv dv]).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from temperance.models.logistic.expected_loss import Partials, expected_loss
from temperance.models.logistic.krylov import solve_batch
from temperance.models.logistic.system import (
    Predictor,
    Rows,
    inverse_root,
    weighted_gram,
)
from temperance.types import Array

DENSE_ROWS = 64


@dataclass(frozen=True, eq=False)
class FullCovarianceSystem:
    """Unknowns x = (u, v): k coefficients and n predictor variances."""

    rows: Rows

    def start(self) -> Array:
        """Return u = 0 and the prior variances of the predictors."""
        Z = self.rows.Z
        prior = np.concatenate([np.zeros(Z.shape[1]), (Z**2).sum(axis=1)])
        return np.tile(prior, (len(self.rows.weights), 1))

    def first_step(self) -> float:
        """Return a beta at which the data weigh about as much as the prior."""
        return self.rows.first_step()

    def scale(self, x: Array) -> Array:
        """Coefficients against what they do, variances against themselves."""
        u, v = self._split(x)
        return np.concatenate([self.rows.coefficient_scale(u), v + 1e-300], axis=1)

    def admissible(self, x: Array) -> bool:
        """Bound variances by the prior's: data narrow a posterior."""
        _, v = self._split(x)
        prior = (self.rows.Z**2).sum(axis=1)
        return bool(np.all(np.isfinite(x)) and np.all((v >= 0) & (v <= prior * (1 + 1e-8))))

    def newton(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return the Newton step and the tangent."""
        Z, w = self.rows.Z, self.rows.weights
        u, v = self._split(x)
        psi = expected_loss(self.rows.offset + u @ Z.T, v)
        pull, c = psi.mean - self.rows.y, beta * w
        hessian_root = inverse_root(np.eye(Z.shape[1]) + weighted_gram(Z, c * psi.mean_mean))
        coupling = Coupling(
            cross=c * psi.mean_variance,
            curvature=2 * c * psi.variance_variance,
            spread=Z @ self._root(psi, beta),
            reach=Z @ hessian_root,
        )

        def invert_hessian(columns: Array) -> Array:
            return hessian_root @ (hessian_root.swapaxes(1, 2) @ columns)

        # H^-1 R_u for the residual and for its derivative in beta, side by side.
        residuals = np.stack([u + (c * pull) @ Z, (w * pull) @ Z], axis=2)
        inverse = invert_hessian(residuals)
        gap = v - (coupling.spread**2).sum(axis=2)
        drift = coupling.squares(2 * w * psi.variance)
        pushed = [
            coupling.squares(2 * coupling.cross * (du @ Z.T)) for du in np.moveaxis(inverse, 2, 0)
        ]
        dv = solve_variances(coupling, np.stack([pushed[0] - gap, pushed[1] - drift], axis=2))
        du = -inverse - invert_hessian(Z.T @ (coupling.cross[..., None] * dv))
        both = np.concatenate([du, dv], axis=1)
        return both[..., 0], both[..., 1]

    def predictor(self, x: Array, tangent: Array, beta: float) -> Predictor:
        """Return the moments of the linear predictor: the variances are unknowns of the system."""
        u, v = self._split(x)
        du, dv = self._split(tangent)
        Z = self.rows.Z
        return Predictor(self.rows.offset + u @ Z.T, v, du @ Z.T, dv)

    def gaussian(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return means and covariance roots."""
        u, v = self._split(x)
        psi = expected_loss(self.rows.offset + u @ self.rows.Z.T, v)
        return u, self._root(psi, beta)

    def _root(self, psi: Partials, beta: float) -> Array:
        """R^-1 for R'R = S^-1, so that S = R^-1 R^-1'."""
        Z = self.rows.Z
        precision = np.eye(Z.shape[1]) + weighted_gram(
            Z, 2 * beta * self.rows.weights * psi.variance
        )
        return inverse_root(precision)

    def _split(self, x: Array) -> tuple[Array, Array]:
        k = self.rows.Z.shape[1]
        return x[:, :k], x[:, k:]


class Coupling(NamedTuple):
    """Coefficients of the equations for dv; see the head of the module."""

    cross: Array  # (m, n): c psi_muv
    curvature: Array  # (m, n): 2 c psi_vv
    spread: Array  # (m, n, k): rows z'A with S = A A'
    reach: Array  # (m, n, k): rows z'B with H^-1 = B B'

    def squares(self, y: Array) -> Array:
        """M y = diag(Z S [Z' diag(y) Z] S Z') for y of shape (m, n)."""
        inner = (self.spread.swapaxes(1, 2) * y[:, None, :]) @ self.spread
        return ((self.spread @ inner) * self.spread).sum(axis=2)

    def operator(self, dv: Array) -> Array:
        """Apply the matrix of the equations without forming it."""
        pulled = np.einsum("mnk,mn->mk", self.reach, self.cross * dv)
        back = np.einsum("mnk,mk->mn", self.reach, pulled)
        return dv + self.squares(self.curvature * dv - 2 * self.cross * back)

    def matrix(self) -> Array:
        """Form the matrix of the equations, (m, n, n)."""
        squares = (self.spread @ self.spread.swapaxes(1, 2)) ** 2
        pulled = self.cross[:, :, None] * self.reach
        inner = -2 * (pulled @ pulled.swapaxes(1, 2))
        diagonal = np.arange(inner.shape[1])
        inner[:, diagonal, diagonal] += self.curvature
        matrix = squares @ inner
        matrix[:, diagonal, diagonal] += 1.0
        return matrix


def solve_variances(coupling: Coupling, right: Array) -> Array:
    """Solve for dv with right-hand sides (m, n, 2), in whichever way is cheaper."""
    _, n, k = coupling.spread.shape
    if n <= max(DENSE_ROWS, 6 * k):
        return np.linalg.solve(coupling.matrix(), right)
    return np.stack([solve_batch(coupling.operator, right[..., j]) for j in range(2)], axis=2)
