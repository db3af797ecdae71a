r"""The best Gaussian approximation N(u, S) of full covariance, for any expected loss L(mu, v).

The minimiser of beta sum_i w_i L_i(mu_i, v_i) + KL(N(u, S) | N(0, I)) satisfies, with c = beta w
and psi_mu, psi_v ... the partial derivatives of L,

    u + Z'[c psi_mu] = 0,        S^-1 = I + Z' diag(2 c psi_v) Z.

With many rows the unknowns are u and the curvature (:mod:`.mean_and_curvature`).  With few they are
u and the logarithms of the predictor variances v_i, which should equal s_i = z_i'S z_i.  With
M = (Z S Z')^2 elementwise, H = I + Z' diag(c psi_mumu) Z and the steps (du, v dx) for residuals R_u
and log(v/s),

    [I + diag(1/s) M diag(2c) {diag(psi_vv) - diag(psi_muv) Z H^-1 Z' diag(c psi_muv)} diag(v)] dx
        = -log(v/s) + diag(1/s) M [2 c psi_muv Z H^-1 R_u],
    du = -H^-1 (R_u + Z'[c psi_muv v dx]),

numbers without units, however large the rows are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from temperance.data import Array
from temperance.losses.base import ExpectedLoss, Forces, Partials
from temperance.models.glm.gaussians import (
    SMALLEST,
    WIDER,
    FullLaw,
    divergence,
    hessian_root,
    inverse_root,
    row_products,
    solve_at_once,
    squares_times,
    typical_fit,
    weighted_gram,
)
from temperance.models.glm.mean_and_curvature import MeanAndCurvatureSystem, unknown_by_rows
from temperance.models.glm.newton import StraightAhead, System, Tangent, UnderLoss
from temperance.models.glm.rows import Rows


@dataclass(frozen=True)
class FullCovariance(UnderLoss):
    """The Gaussian of full covariance that minimises expected loss and divergence."""

    diagonal: ClassVar[bool] = False

    def system(self, rows: Rows) -> System:
        """Return the stationarity equations of the variational objective."""
        if unknown_by_rows(rows):
            return FullCovarianceSystem(rows, self.loss)
        return MeanAndCurvatureSystem(rows, self.loss)

    def forces(self, mean: Array, variance: Array, y: Array) -> Forces:
        """Differentiate the expected loss."""
        return self.loss.forces(mean, variance, y)


@dataclass(frozen=True, eq=False)
class FullCovarianceSystem(StraightAhead):
    """Unknowns x = (u, log v): k coefficients and n predictor variances."""

    rows: Rows
    loss: ExpectedLoss

    @property
    def convex(self) -> bool:
        """Whether the loss is convex."""
        return self.loss.convex

    def start(self) -> Array:
        """Return u = 0 and the prior variances of the predictors."""
        Z = self.rows.Z
        prior = np.concatenate([np.zeros(Z.shape[1]), np.log((Z**2).sum(axis=1) + SMALLEST)])
        return np.tile(prior, (len(self.rows.weights), 1))

    def scale(self, x: Array, beta: float) -> Array:
        """Coefficients against what they do, logarithms against one."""
        u, log_v = self._split(x)
        return np.concatenate([self.rows.coefficient_scale(u), np.ones_like(log_v)], axis=1)

    def admissible(self, x: Array) -> bool:
        """Bound variances by the prior's: data narrow a posterior, if their loss is convex."""
        _, log_v = self._split(x)
        prior = np.log((self.rows.Z**2).sum(axis=1) + SMALLEST)
        highest = prior + (1e-8 if self.loss.convex else WIDER)
        return bool(np.all(np.isfinite(x)) and np.all((log_v > -700) & (log_v < highest)))

    def guess(self, beta: float) -> Array:
        """Return the mean and the predictor variances of the loss's typical quadratic."""
        Z, (mean, weights) = self.rows.Z, typical_fit(self.rows, self.loss, beta)
        precision = np.eye(Z.shape[1]) + beta * weighted_gram(Z, weights)
        v = ((Z @ inverse_root(precision)) ** 2).sum(axis=2)
        return np.concatenate([mean, np.log(v + SMALLEST)], axis=1)

    def objective(self, x: Array, beta: float) -> Array:
        """Return beta sum_i w_i L(mu_i, v_i) + KL of the Gaussians that x stands for."""
        u, root = self.gaussian(x, beta)
        spread = self.rows.Z @ root
        mean = self.rows.offset + u @ self.rows.Z.T
        loss = self.loss.expected(mean, row_products(spread, spread), self.rows.y)
        return beta * (self.rows.weights * loss).sum(axis=1) + divergence(u, root)

    def newton(self, x: Array, beta: float) -> tuple[Array, Tangent]:
        """Return the Newton step and the tangent."""
        Z, w = self.rows.Z, self.rows.weights
        u, log_v = self._split(x)
        v, c = np.exp(log_v), beta * w
        psi = self._partials(u, v)
        over_hessian = hessian_root(Z, c * psi.mean_mean, self.loss.convex)
        spread = Z @ self._root(psi, beta)
        s = row_products(spread, spread) + SMALLEST
        coupling = Coupling(
            cross=c * psi.mean_variance * v,
            curvature=2 * c * psi.variance_variance * v * v,
            variance=v,
            second=s,
            spread=spread,
            pulled=Z @ over_hessian,
        )

        def invert_hessian(columns: Array) -> Array:
            return np.einsum(
                "mij,mj->mi", over_hessian, np.einsum("mij,mi->mj", over_hessian, columns)
            )

        def pushed(residual: Array, gap: Array) -> tuple[Array, Array]:
            """Eliminate du: H^-1 R_u, and the right-hand side of the equations for dv."""
            inverse = invert_hessian(residual)
            return inverse, coupling.squares(2 * coupling.cross * (inverse @ Z.T)) - gap

        def completed(inverse: Array, dx: Array) -> Array:
            du = -inverse - invert_hessian((coupling.cross * dx) @ Z)
            return np.concatenate([du, dx], axis=1)

        def moving() -> tuple[Array, Array]:
            return pushed((w * psi.mean) @ Z, coupling.squares(2 * w * psi.variance * v))

        inverse, right = pushed(u + (c * psi.mean) @ Z, log_v - np.log(s))
        drifting, drift = moving()
        dx, d_drift = solve_at_once(coupling.matrix(), right, drift)
        return completed(inverse, dx), lambda: completed(drifting, d_drift())

    def law(self, x: Array, tangent: Array, beta: float) -> FullLaw:
        """Return the Gaussians; their curvatures 2 c psi_v move with the predictors."""
        Z, w = self.rows.Z, self.rows.weights
        (u, log_v), (du, d_log_v) = self._split(x), self._split(tangent)
        v = np.exp(log_v)
        psi = self._partials(u, v)
        d_psi = psi.mean_variance * (du @ Z.T) + psi.variance_variance * v * d_log_v
        d_precision = weighted_gram(Z, 2 * w * (psi.variance + beta * d_psi))
        return FullLaw(u, self._root(psi, beta), du, d_precision)

    def gaussian(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return means and covariance roots."""
        u, log_v = self._split(x)
        return u, self._root(self._partials(u, np.exp(log_v)), beta)

    def _partials(self, u: Array, v: Array) -> Partials:
        return self.loss.partials(self.rows.offset + u @ self.rows.Z.T, v, self.rows.y)

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
    """Coefficients of the equations for dx; see the head of the module."""

    cross: Array  # (m, n): c psi_muv v
    curvature: Array  # (m, n): 2 c psi_vv v^2
    variance: Array  # (m, n): v
    second: Array  # (m, n): s
    spread: Array  # (m, n, k): rows z'A with S = A A'
    pulled: Array  # (m, n, k): rows z'B with H^-1 = B B'

    def squares(self, y: Array) -> Array:
        """M (y / v) / s for y of shape (m, n)."""
        return squares_times(self.spread, y / self.variance) / self.second

    def matrix(self) -> Array:
        """Form the matrix of the equations, (m, n, n)."""
        one, other = (
            self.spread / np.sqrt(size)[:, :, None] for size in (self.second, self.variance)
        )
        squares = (one @ other.swapaxes(1, 2)) ** 2
        moved = self.cross[:, :, None] * self.pulled
        inner = -2 * (moved @ moved.swapaxes(1, 2))
        diagonal = np.arange(inner.shape[1])
        inner[:, diagonal, diagonal] += self.curvature
        matrix = squares @ inner
        matrix[:, diagonal, diagonal] += 1.0
        return matrix
