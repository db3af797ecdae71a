r"""Newton's equations of the mean-field Gaussian when columns are more than rows.

With D = diag(2 t) and Q = Z^2 D, the Jacobian in (m, rho) is the diagonal (1, 2 q) plus

    [Z'A Z   Z'B Q]
    [Q'B Z   Q'C Q],     A, B, C = diag(c psi_mumu), diag(c psi_muv), diag(c psi_vv),

of rank 2 n at most.  A step leads to means m + dm = Z'b, and d = Q drho and b, one number for each
row, satisfy, with K = Z Z', L = Q diag(1/2q) Q', f = Z m, g = c psi_mu and R the residual of rho,

    (I + A K) b + B d = A f - g,
    L B K b + (I + L C) d = -Q R/(2 q) + L B f;        drho = -(R + Q'[B (K b - f) + C d]) / (2 q).

No number here is the difference of much larger ones, as the elements of Z'g - Z'g would be.
"""

from __future__ import annotations

import numpy as np

from temperance.data import Array
from temperance.losses.base import Partials
from temperance.models.glm.gaussians import weighted_gram
from temperance.models.glm.rows import Rows


class RowSpaceEquations:
    """The equations at means m and log deviations rho, (m, k), with partials of the rows."""

    def __init__(
        self, rows: Rows, psi: Partials, m: Array, rho: Array, q: Array, beta: float
    ) -> None:
        c = beta * rows.weights
        self.rows, self.m, self.rho, self.q, self.beta = rows, m, rho, q, beta
        self.dt = 2 * np.exp(2 * rho)
        self.pull = rows.weights * psi.mean
        self.hessian, self.mixed = c * psi.mean_mean, c * psi.mean_variance
        self.bend = c * psi.variance_variance
        self.predictor = m @ rows.Z.T
        self.spread = weighted_gram(rows.squares.T, self.dt**2 / (2 * q))

    def step(self, residual: Array) -> Array:
        """Return the Newton step for this residual of the equations for rho, (m, k)."""
        mixed, spread = self.mixed * self.predictor, self.spread
        first = self.hessian * self.predictor - self.beta * self.pull
        second = self._over_rows(-residual) + np.einsum("mij,mj->mi", spread, mixed)
        b, d = self._solve(first, second)
        moved = self.mixed * (b @ self.rows.kernel - self.predictor) + self.bend * d
        self.b: Array = b
        return np.concatenate([b @ self.rows.Z - self.m, self._rho(-residual, moved)], axis=1)

    def tangent(self, step: Array, spread: Array) -> Array:
        """Return the derivatives in beta, after a step, where the prior's part is known."""
        if self.beta > 0:
            after = self.rho + step[:, self.rho.shape[1] :]
            right: Array = np.expm1(2 * after) / self.beta
            b, d = self._solve(self.b / self.beta, self._over_rows(right))
        else:
            right = -spread
            b, d = self._solve(-self.pull, self._over_rows(right))
        moved = self.mixed * (b @ self.rows.kernel) + self.bend * d
        return np.concatenate([b @ self.rows.Z, self._rho(right, moved)], axis=1)

    def _over_rows(self, right: Array) -> Array:
        """Return Q (right / 2q), (m, n)."""
        return (self.dt * right / (2 * self.q)) @ self.rows.squares.T

    def _rho(self, right: Array, moved: Array) -> Array:
        """Return (right - Q'moved) / 2q."""
        return (right - self.dt * (moved @ self.rows.squares)) / (2 * self.q)

    def _solve(self, first: Array, second: Array) -> tuple[Array, Array]:
        """Solve for b and d, (m, n)."""
        n, kernel = len(self.rows.Z), self.rows.kernel
        size = np.diagonal(kernel) + (np.diagonal(kernel) == 0)
        matrix = np.empty((len(first), 2 * n, 2 * n))
        # The unknowns are size b, of the size of predictors, and d.
        unit = kernel / size
        matrix[:, :n, :n] = self.hessian[:, :, None] * unit
        matrix[:, :n, n:] = 0.0
        matrix[:, n:, :n] = (self.spread * self.mixed[:, None, :]) @ unit
        matrix[:, n:, n:] = self.spread * self.bend[:, None, :]
        index = np.arange(n)
        matrix[:, index, index] += 1 / size
        matrix[:, index, n + index] = self.mixed
        matrix[:, n + index, n + index] += 1.0
        right = np.concatenate([first, second], axis=1)
        largest = np.abs(matrix).max(axis=2)
        solved = np.linalg.solve(matrix / largest[:, :, None], (right / largest)[:, :, None])[
            :, :, 0
        ]
        return solved[:, :n] / size, solved[:, n:]
