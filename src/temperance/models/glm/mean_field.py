r"""Mean-field approximation: the Gaussian N(m, diag(t)), t = exp(2 rho), of diagonal covariance.

Stationarity of beta sum_i w_i L_i(mu_i, v_i) + KL with mu = offset + Z m, v = Z^2 t (Z^2
elementwise), c = beta w and the partial derivatives psi_mu, psi_v ... of L, in (m, rho):

    m + Z'[c psi_mu] = 0,        t - 1 + 2 t (Z^2)'[c psi_v] = 0.

Variances have axes of their own; means may be taken along others, where columns nearly depend on
each other.  Steps of means follow their deviations where these are large (:mod:`.large_variances`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import as_numbers
from temperance.data import Array
from temperance.losses.base import ExpectedLoss, Forces, Partials
from temperance.models.glm.gaussians import (
    WIDER,
    DiagonalLaw,
    largest,
    solve_newton,
    typical_fit,
    weighted_gram,
)
from temperance.models.glm.large_variances import LARGE, following
from temperance.models.glm.mean_field_wide import RowSpaceEquations
from temperance.models.glm.newton import System, Tangent, UnderLoss
from temperance.models.glm.rows import Rows
from temperance.models.linear_predictor import GaussianPrior, gaussian_prior

LITTLE = 0.05  # change of a logarithm below which a line is as good


@dataclass(frozen=True)
class MeanField(UnderLoss):
    """The Gaussian of diagonal covariance that minimises expected loss and divergence."""

    diagonal: ClassVar[bool] = True

    def system(self, rows: Rows) -> System:
        """Return the stationarity equations of the variational objective."""
        return MeanFieldSystem(rows, self.loss)

    def forces(self, mean: Array, variance: Array, y: Array) -> Forces:
        """Differentiate the expected loss."""
        return self.loss.forces(mean, variance, y)


@dataclass(frozen=True, eq=False)
class MeanFieldSystem:
    """Unknowns x = (V'm, rho): k means, along axes V, and k log standard deviations."""

    rows: Rows
    loss: ExpectedLoss

    @property
    def convex(self) -> bool:
        """Whether the loss is convex."""
        return self.loss.convex

    def start(self) -> Array:
        """Return m = 0, rho = 0."""
        return np.zeros((len(self.rows.weights), 2 * self.rows.Z.shape[1]))

    def scale(self, x: Array, beta: float) -> Array:
        """Means against what they do and their deviations, logarithms of these against one."""
        m, rho = self._split(x)
        along = self.rows.turned.coefficient_scale(m)
        if self.rows.axes is None:
            # Under large variances a predictor's deviation is the scale of its loss.
            deviation = np.exp(rho)
            large = deviation * self.rows.largest > np.sqrt(LARGE)
            along = np.where(large, np.maximum(along, deviation), along)
        return np.concatenate([along, np.ones_like(rho)], axis=1)

    def admissible(self, x: Array) -> bool:
        """Bound variances by the prior's: t = 1 / (1 + 2 (Z^2)'[c psi_v]) is at most 1.

        Not so if the loss is not convex.
        """
        _, rho = self._split(x)
        highest = 1e-8 if self.loss.convex else WIDER
        return bool(np.all(np.isfinite(x)) and np.all((rho > -350) & (rho < highest)))

    def guess(self, beta: float) -> Array:
        """Return means and variances of the loss's typical quadratic."""
        mean, weights = typical_fit(self.rows, self.loss, beta)
        return self.parameters(mean, weights @ self.rows.squares, beta)

    def objective(self, x: Array, beta: float) -> Array:
        """Return beta sum_i w_i L(mu_i, v_i) + KL."""
        m, rho = self._split(x)
        t = np.exp(2 * rho)
        mean = self.rows.offset + m @ self.rows.turned.Z.T
        loss = self.loss.expected(mean, t @ self.rows.squares.T, self.rows.y)
        prior = (0.5 * (m**2 + t) - rho).sum(axis=1)
        return beta * (self.rows.weights * loss).sum(axis=1) + prior

    def newton(self, x: Array, beta: float) -> tuple[Array, Tangent]:
        """Return the Newton step and the tangent.

        With q = t + 2 t (Z^2)'[c psi_v] the step is that for log q = 0, nearly linear in (m, rho),
        whose Jacobian is that of q - 1 divided by q.
        """
        Z, w, squares = self.rows.turned.Z, self.rows.weights, self.rows.squares
        m, rho = self._split(x)
        t = np.exp(2 * rho)
        mean, variance = self.rows.offset + m @ Z.T, t @ squares.T
        psi = self.loss.partials(mean, variance, self.rows.y)
        spread = 2 * t * ((w * psi.variance) @ squares)
        q = t + beta * spread
        # Near beta = 0 the logarithm of q is all in what q has more than 1.
        more = np.expm1(2 * rho) + beta * spread
        log_q = np.where(np.abs(more) < 0.5, np.log1p(np.maximum(more, -0.5)), np.log(q))
        if len(Z) < Z.shape[1]:
            at = RowSpaceEquations(self.rows, psi, m, rho, q, beta)
            step = self._bent(x, at.step(q * log_q))
            return step, lambda: at.tangent(step, spread)
        pull = (w * psi.mean) @ Z
        drift = np.concatenate([pull, spread], axis=1)
        residual = np.concatenate([m + beta * pull, q * log_q], axis=1)
        jacobian = self._jacobian(psi, 2 * t, q, beta)
        step, tangent = solve_newton(jacobian, residual, drift, beta, partial(self._prior, x))
        return self._bent(x, step), tangent

    def _bent(self, x: Array, change: Array) -> Array:
        """Let means follow their deviations, as far as these are large."""
        (m, rho), (dm, drho) = self._split(x), self._split(change)
        variance = (np.exp(rho) * self.rows.largest) ** 2
        if largest(drho * variance / (LARGE + variance)) < LITTLE:
            return change
        size = np.exp(rho)
        eta, d_eta = (self.rows.back(each) / size for each in (m, dm))
        moved = size * following(eta, d_eta, drho, variance)
        return np.concatenate([self.rows.along(moved), drho], axis=1)

    def ahead(self, x: Array, change: Array, beta: float, target: float) -> Array:
        """Go straight on, by logarithms where these are straight."""
        return x + self._bent(x, change)

    def _jacobian(self, psi: Partials, dt: Array, q: Array, beta: float) -> Array:
        """Return the Jacobian in (m, rho), (m, 2 k, 2 k); dt/drho = 2 t."""
        Z, squares, c = self.rows.turned.Z, self.rows.squares, beta * self.rows.weights
        k = Z.shape[1]
        jacobian = np.empty((len(c), 2 * k, 2 * k))
        jacobian[:, :k, :k] = weighted_gram(Z, c * psi.mean_mean)
        mixed = weighted_gram(Z, c * psi.mean_variance, squares)
        mixed *= dt[:, None, :]
        jacobian[:, :k, k:] = mixed
        jacobian[:, k:, :k] = mixed.swapaxes(1, 2)
        curvature = weighted_gram(squares, c * psi.variance_variance)
        curvature *= dt[:, :, None]
        np.multiply(curvature, dt[:, None, :], out=jacobian[:, k:, k:])
        index = np.arange(2 * k)
        jacobian[:, index, index] += np.concatenate([np.ones_like(q), 2 * q], axis=1)
        return jacobian

    def _prior(self, x: Array, step: Array) -> Array:
        """Return what the prior adds to the equations, m and t - 1, a step further."""
        m, rho = self._split(x + step)
        return np.concatenate([m, np.expm1(2 * rho)], axis=1)

    def parameters(self, mean: Array, curvature: Array, beta: float) -> Array:
        """Return means and log standard deviations; a diagonal curvature is (m, k)."""
        along = self.rows.along(mean)
        return np.concatenate([along, -0.5 * np.log1p(beta * curvature)], axis=1)

    def law(self, x: Array, tangent: Array, beta: float) -> DiagonalLaw:
        """Return the Gaussians and how they move."""
        m, rho = self._split(x)
        dm, drho = self._split(tangent)
        t = np.exp(2 * rho)
        return DiagonalLaw(self.rows.back(m), t, self.rows.back(dm), 2 * t * drho)

    def gaussian(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return means and standard deviations."""
        m, rho = self._split(x)
        return self.rows.back(m), np.exp(rho)

    def _split(self, x: Array) -> tuple[Array, Array]:
        k = self.rows.Z.shape[1]
        return x[:, :k], x[:, k:]


def diagonal_prior(mean: ArrayLike, cov: ArrayLike, dimension: int) -> GaussianPrior:
    """Return the prior of a mean-field approximation, which must be diagonal."""
    spread = as_numbers("prior_cov", cov)
    if spread.shape == (dimension, dimension) and np.all(np.isfinite(spread)):
        off = spread - np.diag(np.diag(spread))
        if np.any(off):
            largest = float(np.abs(off).max())
            raise ValueError(
                "prior_cov must be diagonal for a mean-field posterior, got an off-diagonal "
                f"element {largest!r}"
            )
        spread = np.diag(spread)
    return gaussian_prior(mean, spread, dimension)
