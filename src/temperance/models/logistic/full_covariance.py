r"""Equations of N(u, S) with full covariance, for any expected loss psi(mu, v).

The minimiser of beta sum_i w_i [psi(mu_i, v_i) - y_i mu_i] + KL(N(u, S) | N(0, I)) satisfies, with c = beta w,

    u + Z'[c (psi_mu - y)] = 0,        S^-1 = I + Z' diag(2 c psi_v) Z,

so the unknowns are u and the predictor variances v_i = z_i'S z_i.  With M = (Z S Z')^2 elementwise,
H = I + Z' diag(c psi_mumu) Z and the steps (du, dv) for residuals (R_u, R_v),

    [I + M diag(2c) {diag(psi_vv) - diag(psi_muv) Z H^-1 Z' diag(c psi_muv)}] dv
        = -R_v + M [2 c psi_muv Z H^-1 R_u],
    du = -H^-1 (R_u + Z'[c psi_muv dv]).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from temperance.models.logistic.expected_loss import ExpectedLoss, Partials
from temperance.models.logistic.system import Predictor, Rows
from temperance.types import Array

MOST_DENSE_ROWS = 1500


@dataclass(frozen=True, eq=False)
class FullCovarianceSystem:
    """Unknowns x = (u, v): k coefficients and n predictor variances."""

    rows: Rows
    loss: ExpectedLoss

    def start(self) -> Array:
        """Return u = 0 and the prior variances of the predictors."""
        Z = self.rows.Z
        prior = np.concatenate([np.zeros(Z.shape[1]), (Z**2).sum(axis=1)])
        return np.tile(prior, (len(self.rows.weights), 1))

    def first_step(self) -> float:
        """Return a beta at which the data weigh about as much as the prior."""
        return self.rows.first_step()

    def scale(self, x: Array) -> Array:
        """Coefficients against one or their largest, variances against themselves."""
        u, v = self._split(x)
        largest = 1.0 + np.abs(u).max(axis=1, keepdims=True)
        return np.concatenate([np.broadcast_to(largest, u.shape), v + 1e-300], axis=1)

    def admissible(self, x: Array) -> bool:
        """Variances are non-negative."""
        _, v = self._split(x)
        return bool(np.all(v >= 0)) and bool(np.all(np.isfinite(x)))

    def newton(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return the Newton step and the tangent."""
        Z, w = self.rows.Z, self.rows.weights
        u, v = self._split(x)
        psi = self.loss(self.rows.offset + u @ Z.T, v)
        pull = psi.mean - self.rows.y
        root = self._root(psi, beta)
        spread = Z @ root  # rows z'R^-1, so that z'Sz is their squared length
        hessian = np.eye(Z.shape[1]) + _gram(Z, beta * w * psi.mean_mean)
        residual_u = np.stack([u + (beta * w * pull) @ Z, (w * pull) @ Z], axis=2)
        inverse_residual = np.linalg.solve(hessian, residual_u)
        solve = _solve_dense if len(Z) <= MOST_DENSE_ROWS else _solve_iteratively
        gap = v - (spread**2).sum(axis=2)
        dv = solve(Z, beta * w, 2 * w * psi.variance, psi, hessian, spread, inverse_residual, gap)
        weighted = (beta * w * psi.mean_variance)[..., None] * dv
        du = -inverse_residual - np.linalg.solve(hessian, Z.T @ weighted)
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
        psi = self.loss(self.rows.offset + u @ self.rows.Z.T, v)
        return u, self._root(psi, beta)

    def _root(self, psi: Partials, beta: float) -> Array:
        """R^-1 for R'R = S^-1, so that S = R^-1 R^-1'."""
        Z = self.rows.Z
        precision = np.eye(Z.shape[1]) + _gram(Z, 2 * beta * self.rows.weights * psi.variance)
        return np.linalg.inv(np.linalg.cholesky(precision)).swapaxes(1, 2)

    def _split(self, x: Array) -> tuple[Array, Array]:
        k = self.rows.Z.shape[1]
        return x[:, :k], x[:, k:]


def _gram(Z: Array, weights: Array) -> Array:
    """Z' diag(w) Z for each row of weights."""
    return (Z.T * weights[:, None, :]) @ Z


def _solve_dense(
    Z: Array,
    c: Array,
    rate: Array,
    psi: Partials,
    hessian: Array,
    spread: Array,
    inverse_residual: Array,
    gap: Array,
) -> Array:
    """Solve for dv, the Newton step and the tangent side by side, with n x n matrices."""
    squares = (spread @ spread.swapaxes(1, 2)) ** 2
    cross = c * psi.mean_variance
    projected = Z @ np.linalg.solve(hessian, np.broadcast_to(Z.T, (len(c), *Z.T.shape)))
    inner = -2 * cross[:, :, None] * projected * cross[:, None, :]
    diagonal = np.arange(len(Z))
    inner[:, diagonal, diagonal] += 2 * c * psi.variance_variance
    right = squares @ (2 * cross[..., None] * (Z @ inverse_residual))
    right[..., 0] -= gap
    right[..., 1] -= (squares @ rate[..., None])[..., 0]
    matrix = squares @ inner
    matrix[:, diagonal, diagonal] += 1.0
    return np.linalg.solve(matrix, right)


def _solve_iteratively(
    Z: Array,
    c: Array,
    rate: Array,
    psi: Partials,
    hessian: Array,
    spread: Array,
    inverse_residual: Array,
    gap: Array,
) -> Array:
    """Solve the same equations without n x n matrices: M y = diag(Z S [Z' diag(y) Z] S Z')."""
    solved = np.empty((*c.shape, 2))
    for pair in range(len(c)):
        cross, curvature = c[pair] * psi.mean_variance[pair], psi.variance_variance[pair]
        rows, factor = spread[pair], np.linalg.inv(hessian[pair])

        def squares(y: Array, rows: Array = rows) -> Array:
            return ((rows @ ((rows.T * y) @ rows)) * rows).sum(axis=1)

        def operator(
            dv: Array,
            cross: Array = cross,
            curvature: Array = 2 * c[pair] * curvature,
            factor: Array = factor,
            squares: object = squares,
        ) -> Array:
            pulled = Z @ (factor @ (Z.T @ (cross * dv)))
            return dv + squares(curvature * dv - 2 * cross * pulled)  # type: ignore[operator]

        right = [squares(2 * cross * (Z @ inverse_residual[pair, :, j])) for j in range(2)]
        right[0] -= gap[pair]
        right[1] -= squares(rate[pair])
        system = LinearOperator((len(Z), len(Z)), matvec=operator, dtype=float)
        for j in range(2):
            solved[pair, :, j], _ = gmres(system, right[j], rtol=1e-12, restart=60, maxiter=5)
    return solved
