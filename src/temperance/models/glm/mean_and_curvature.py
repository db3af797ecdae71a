r"""Equations of N(u, S) with full covariance when rows are many, for any expected loss L(mu, v).

The unknowns are the mean u and the curvature B that the rows add to the precision,

    u + beta Z'[w psi_mu] = 0,    B = Z' diag(2 w psi_v) Z,    S^-1 = I + beta B,

with mu = offset + Z u, v_i = z_i'S z_i and psi_mu, psi_v ... the partial derivatives of L: k + k^2
numbers, however many the rows.  A change dv of the variances moves, with
H = I + beta Z' diag(w psi_mumu) Z,

    du = -beta H^-1 Z'[w psi_muv dv],    dB = Z' diag(2 w [psi_muv Z du + psi_vv dv]) Z,

while a change dB of the curvature makes dv_i = -beta z_i'S dB S z_i.  One after the other is a map
from dB to dB, of the size of v, and Newton's equations are the identity less that map.

Far from the solution precisions are multiples of what they should be: under large variances psi_v
falls like v^-1/2, and what is linear is log B, not B.  Let A A' = S be such that the precision that
B should make is A'^-1 diag(lam) A^-1.  Newton's method for log lam = 0, with A'^-1 exp(X) A^-1 for
the precision, has the same map, for X instead of beta A'dB A, times 2 / (lam_i + lam_j), and log
lam on the right instead of lam - 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from temperance.data import Array
from temperance.losses.base import ExpectedLoss
from temperance.models.glm.gaussians import (
    FullLaw,
    divergence,
    eigen,
    few_rows,
    hessian_root,
    inverse_root,
    largest,
    quadratic_forms,
    squared_lengths,
    times,
    typical_fit,
    weighted_gram,
)
from temperance.models.glm.krylov import solve_batch
from temperance.models.glm.large_variances import following_root
from temperance.models.glm.newton import Tangent
from temperance.models.glm.rows import Rows

FEW_COLUMNS = 32
HUGE = 1e150  # stands for infinity
LARGE_PRIOR = 1e6  # variance of a predictor
LOOSE, TIGHT = 5e-2, 1e-10  # for Newton's steps, which correct each other, and for tangents
NEGLIGIBLE = 1e-10  # part of a precision
FAR = 0.3  # change of a precision from which it is taken by logarithms
BENT, MOST = 0.05, 20.0  # change of a logarithm from which it is one, and the most in one step
LITTLE, NOTHING = 1e-8, 1e-16  # parts of the prior's precision


def unknown_by_rows(rows: Rows) -> bool:
    """Tell whether equations had better have an unknown for each row than for pairs of columns.

    They have if rows are few.  But where the prior gives predictors large variances, the equations
    of pairs are nearer to linear.
    """
    n, k = rows.Z.shape
    large = rows.lengths.max(initial=0.0) > LARGE_PRIOR and k <= FEW_COLUMNS
    return few_rows(n, k) and not large


@dataclass(frozen=True, eq=False)
class MeanAndCurvatureSystem:
    """Unknowns x = (u, B): k coefficients and k^2 elements of the curvature."""

    rows: Rows
    loss: ExpectedLoss

    @property
    def convex(self) -> bool:
        """Whether the loss is convex."""
        return self.loss.convex

    def start(self) -> Array:
        """Return u = 0 and the curvature under the prior."""
        psi = self.loss.partials(self.rows.offset, self.rows.lengths, self.rows.y)
        slopes = np.clip(psi.variance, -HUGE, HUGE)
        return self._unmoved(2 * self.rows.weights * slopes, 0.0)

    def guess(self, beta: float) -> Array:
        """Return mean and curvature of the loss's typical quadratic."""
        mean, weights = typical_fit(self.rows, self.loss, beta)
        return self.parameters(mean, weighted_gram(self.rows.Z, weights), beta)

    def scale(self, x: Array, beta: float) -> Array:
        """Coefficients against what they do, curvatures against those of both coefficients."""
        u, curvature = self._split(x)
        nothing = NOTHING / beta if beta > 0 else np.finfo(float).tiny
        size = np.sqrt(np.abs(np.diagonal(curvature, axis1=1, axis2=2)) + nothing)
        outer = size[:, :, None] * size[:, None, :]
        return np.concatenate([self.rows.coefficient_scale(u), outer.reshape(len(u), -1)], axis=1)

    def ahead(self, x: Array, change: Array, beta: float, target: float) -> Array:
        """Let the logarithm of the curvature go straight on, where it changes much."""
        if beta == 0:
            return x + change
        (u, curvature), (_, d_curvature) = self._split(x), self._split(change)
        # What is little beside the prior is nothing to take a logarithm of.
        floored = curvature + LITTLE / beta * np.eye(u.shape[1])
        root = inverse_root(floored)
        triangle = floored @ root
        raised = exponential(root.swapaxes(1, 2) @ d_curvature @ root)
        moved = curvature + triangle @ raised @ triangle.swapaxes(1, 2)
        return self.parameters(u + self._followed(x, change, beta, target), moved, target)

    def _followed(self, x: Array, change: Array, beta: float, target: float) -> Array:
        """Return the change of the means, which may follow that of the precision's logarithm."""
        (u, curvature), (du, d_curvature) = self._split(x), self._split(change)
        precision = np.eye(u.shape[1]) + beta * curvature
        root = inverse_root(precision)
        rate = beta * (np.log(target / beta) * curvature + d_curvature)
        turned = root.swapaxes(1, 2) @ rate @ root
        if largest(turned) < FAR:
            return du
        inverse = (precision @ root).swapaxes(1, 2)
        eta, d_eta = times(inverse, u), times(inverse, du)
        return times(root, following_root(self.rows.Z, root, eta, d_eta, turned))

    def admissible(self, x: Array) -> bool:
        """Any finite numbers will do; a precision that is none has no root."""
        return bool(np.all(np.isfinite(x)))

    def objective(self, x: Array, beta: float) -> Array:
        """Return beta sum_i w_i L(mu_i, v_i) + KL."""
        u, root = self.gaussian(x, beta)
        mean = self.rows.offset + u @ self.rows.Z.T
        loss = self.loss.expected(mean, squared_lengths(self.rows.Z, root), self.rows.y)
        return beta * (self.rows.weights * loss).sum(axis=1) + divergence(u, root)

    def newton(self, x: Array, beta: float) -> tuple[Array, Tangent]:
        """Return the Newton step and the tangent."""
        u, curvature = self._split(x)
        at = Equations(self.rows, self.loss, u, curvature, beta)
        step = at.step()
        return step, partial(at.tangent, u + step[:, : u.shape[1]])

    def parameters(self, mean: Array, curvature: Array, beta: float) -> Array:
        """Return means and curvatures."""
        return np.concatenate([mean, curvature.reshape(len(mean), -1)], axis=1)

    def law(self, x: Array, tangent: Array, beta: float) -> FullLaw:
        """Return the Gaussians; S^-1 moves by B + beta dB/dbeta."""
        (du, d_curvature), (_, curvature) = self._split(tangent), self._split(x)
        return FullLaw(*self.gaussian(x, beta), du, curvature + beta * d_curvature)

    def gaussian(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return means and covariance roots."""
        u, curvature = self._split(x)
        return u, inverse_root(np.eye(u.shape[1]) + beta * curvature)

    def _unmoved(self, weights: Array, beta: float) -> Array:
        """Return u = 0 and the curvature of rows with these weights."""
        zero = np.zeros((len(weights), self.rows.Z.shape[1]))
        return self.parameters(zero, weighted_gram(self.rows.Z, weights), beta)

    def _split(self, x: Array) -> tuple[Array, Array]:
        k = self.rows.Z.shape[1]
        return x[:, :k], x[:, k:].reshape(-1, k, k)


class Equations:
    """The equations at one mean, curvature and beta."""

    def __init__(
        self,
        rows: Rows,
        loss: ExpectedLoss,
        u: Array,
        curvature: Array,
        beta: float,
    ) -> None:
        Z, w = rows.Z, rows.weights
        self.rows, self.u, self.curvature, self.beta = rows, u, curvature, beta
        precision = np.eye(Z.shape[1]) + beta * curvature
        self.root = inverse_root(precision)
        self.triangle = precision @ self.root
        variance = squared_lengths(Z, self.root)
        psi = loss.partials(rows.offset + u @ Z.T, variance, rows.y)
        self.pull = (w * psi.mean) @ Z
        self.weight = w * psi.variance
        self.mixed, self.bend = w * psi.mean_variance, w * psi.variance_variance
        self.hessian_root = hessian_root(Z, beta * w * psi.mean_mean, loss.convex)
        # The share of a relative change of B that B answers with, where one row makes up B.
        answers = np.abs(psi.variance_variance) * variance
        share = answers / np.maximum(np.abs(psi.variance), np.finfo(float).tiny)
        self.feedback = largest(share) if beta > 0 else 0.0
        self.contraction = min(1.0, 10 * self.feedback)
        self.unit = beta if beta > 0 else 1.0  # of precisions, in those of curvatures
        self.share: Array | float = 1.0  # 2 / (lam_i + lam_j)

    def step(self) -> Array:
        """Return the Newton step."""
        du = -self._over_hessian(self.u + self.beta * self.pull)
        moved = weighted_gram(self.rows.Z, 2 * (self.weight + self.mixed * (du @ self.rows.Z.T)))
        x = self._flat(du, moved - self.curvature)
        far = self.beta > 0 and largest(x[:, du.shape[1] :]) > FAR
        if far:
            x = self._by_logarithms(du)
        answer = self.feedback * self.beta / self.unit * largest(x[:, du.shape[1] :])
        if self.feedback > LOOSE and answer > NEGLIGIBLE:
            x = solve_batch(self._operator, x, LOOSE, contraction=self.contraction)
        return self._turned_back(self._raised(x) if far else x)

    def _by_logarithms(self, du: Array) -> Array:
        """Choose A so that lam is diagonal, and return L'du and the right-hand side for X."""
        identity = np.eye(du.shape[1])
        wanted = identity + self.beta * weighted_gram(self.rows.Z, 2 * self.weight)
        lam, turn = eigen(self.root.swapaxes(1, 2) @ wanted @ self.root)
        lam = np.maximum(lam, np.finfo(float).eps * np.maximum(lam[:, -1:], 1.0))
        self.root, self.triangle = self.root @ turn, self.triangle @ turn
        self.share = 2 / (lam[:, :, None] + lam[:, None, :])
        x = self._flat(du, self._bent(du, np.zeros_like(self.weight)))
        logarithm = np.log(lam)[:, :, None] * identity
        x[:, du.shape[1] :] += logarithm.reshape(len(du), -1)
        return x

    def _raised(self, x: Array) -> Array:
        """Replace X by exp(X) - 1; means may follow."""
        m, k = self.u.shape
        logarithm = x[:, k:].reshape(m, k, k)
        eta = times(self.triangle.swapaxes(1, 2), self.u)
        moved = following_root(self.rows.Z, self.root, eta, x[:, :k], logarithm)
        return np.concatenate([moved, exponential(logarithm).reshape(m, -1)], axis=1)

    def tangent(self, solution: Array) -> Array:
        """Return the derivatives in beta; at fixed B the precision moves by B.

        At the solution u, a step away, the pull is -u / beta.
        """
        self.share = 1.0
        pull = -solution / self.beta if self.beta > 0 else self.pull
        dv = self._variances(self.root.swapaxes(1, 2) @ self.curvature @ self.root)
        du = -self._over_hessian(pull) + self._shift(dv)
        x = self._flat(du, self._bent(du, dv))
        x = solve_batch(self._operator, x, TIGHT, contraction=self.contraction)
        return self._turned_back(x)

    def _operator(self, x: Array) -> Array:
        """Take from changes of u and B what B's own change makes of them."""
        m, k = self.u.shape
        dv = self._variances(self.beta / self.unit * x[:, k:].reshape(m, k, k))
        du = self._shift(dv)
        return x - self._flat(du, self._bent(du, dv))

    def _flat(self, du: Array, d_curvature: Array) -> Array:
        """Join L'du and beta A' dB A, with S = A A' and S^-1 = L L': all directions are alike."""
        turned = self.unit * self.share * (self.root.swapaxes(1, 2) @ d_curvature @ self.root)
        eased = times(self.triangle.swapaxes(1, 2), du)
        return np.concatenate([eased, turned.reshape(len(du), -1)], axis=1)

    def _turned_back(self, x: Array) -> Array:
        """Return du and dB."""
        m, k = self.u.shape
        turned = x[:, k:].reshape(m, k, k) / self.unit
        change = self.triangle @ turned @ self.triangle.swapaxes(1, 2)
        return np.concatenate([times(self.root, x[:, :k]), change.reshape(m, -1)], axis=1)

    def _variances(self, change: Array) -> Array:
        """Return dv when the precision changes by this, in the coordinates of the root."""
        return -quadratic_forms(self.rows.Z, self.root @ change @ self.root.swapaxes(1, 2))

    def _shift(self, dv: Array) -> Array:
        """Return du = -beta H^-1 Z'[w psi_muv dv]."""
        return -self.beta * self._over_hessian((self.mixed * dv) @ self.rows.Z)

    def _over_hessian(self, vectors: Array) -> Array:
        """Return H^-1 times vectors (m, k)."""
        return times(self.hessian_root, times(self.hessian_root.swapaxes(1, 2), vectors))

    def _bent(self, du: Array, dv: Array) -> Array:
        """Return dB = Z' diag(2 w [psi_muv Z du + psi_vv dv]) Z."""
        return weighted_gram(self.rows.Z, 2 * (self.mixed * (du @ self.rows.Z.T) + self.bend * dv))


def exponential(symmetric: Array) -> Array:
    """Return exp(X) - 1 for symmetric matrices X (m, k, k), which along most axes is X."""
    values, vectors = eigen(symmetric)
    more = np.where(np.abs(values) > BENT, np.expm1(np.minimum(values, MOST)) - values, 0.0)
    return symmetric + (vectors * more[:, None, :]) @ vectors.swapaxes(1, 2)
