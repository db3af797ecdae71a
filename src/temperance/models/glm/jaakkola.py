r"""Jaakkola and Jordan's approximation, from a quadratic bound on the logistic loss.

    log(1 + e^u) <= u/2 + log 2 cosh(xi/2) + lam(xi) (u^2 - xi^2),    lam(xi) = tanh(xi/2) / (4 xi).

The best bound of the expected loss has xi^2 = mu^2 + v.  With few rows the equations are solved in
these variational parameters, with many in means and curvatures.

With c = beta w, K = Z S Z' and predictor means mu = offset + Z u, the squares q_i = xi_i^2 satisfy

    S^-1 = I + Z' diag(2 c lam) Z,    u = S Z'[c (y - 1/2 - 2 lam offset)],    q_i = mu_i^2 + K_ii.

When the curvatures 2 c lam move by e, and c by f, the means and variances move by

    dmu = K [f (y - 1/2) - e mu],    dK_ii = -[(K o K) e]_i,

o elementwise.  The unknowns are x = log q, so e = D dx with D = 2 c q dlam/dq along a step, and
Newton's method solves, with s = mu^2 + diag K,

    [I + diag(1/s) {K o (K + 2 mu mu')} D] dx = log s - x,

and the tangent solves the same with the derivative of log s in beta on the right, at fixed x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from temperance.data import Array
from temperance.losses.base import ExpectedLoss, Forces, Partials, PredictorLoss, Quadratic
from temperance.losses.logistic import Logistic
from temperance.models.glm.gaussians import (
    SMALLEST,
    FullLaw,
    inverse_root,
    row_products,
    solve_at_once,
    times,
    weighted_gram,
)
from temperance.models.glm.mean_and_curvature import MeanAndCurvatureSystem, unknown_by_rows
from temperance.models.glm.newton import StraightAhead, System, Tangent, UnderLoss
from temperance.models.glm.rows import Rows

SMALL_SQUARE = 1e-4  # below it lam is a series


@dataclass(frozen=True)
class JaakkolaBound:
    """The bound mu/2 + log 2 cosh(xi/2) of the expected loss of label 0, xi^2 = mu^2 + v.

    That of label 1 has the predictor's sign turned.
    """

    convex: ClassVar[bool] = True

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return the curvature of xi = 0."""
        return Quadratic(offset, np.full_like(offset, 0.25))

    def expected(self, mean: Array, variance: Array, y: Array) -> Array:
        """Return the bound."""
        return (0.5 - y) * mean + log_cosh(np.sqrt(mean**2 + variance))

    def partials(self, mean: Array, variance: Array, y: Array) -> Partials:
        """Differentiate the bound twice."""
        if not np.isfinite(variance).all():
            raise np.linalg.LinAlgError("the variances of the predictors are not finite")
        sign = 1.0 - 2.0 * y
        psi = bounded_loss(sign * mean, variance)
        return psi._replace(mean=sign * psi.mean, mean_variance=sign * psi.mean_variance)

    def forces(self, mean: Array, variance: Array, y: Array) -> Forces:
        """Differentiate as far as a Newton step for the mean needs."""
        psi = self.partials(mean, variance, y)
        return Forces(psi.mean, psi.mean_mean, 2 * psi.variance)


@dataclass(frozen=True)
class Jaakkola(UnderLoss):
    """The Gaussian of the best bound; for the logistic loss alone."""

    loss: PredictorLoss = Logistic()
    bound: ExpectedLoss = JaakkolaBound()
    diagonal: ClassVar[bool] = False

    def system(self, rows: Rows) -> System:
        """Return the stationarity equations of the bound."""
        if unknown_by_rows(rows):
            return JaakkolaSystem(rows, self.bound)
        return MeanAndCurvatureSystem(rows, self.bound)

    def forces(self, mean: Array, variance: Array, y: Array) -> Forces:
        """Differentiate the bound."""
        return self.bound.forces(mean, variance, y)


@dataclass(frozen=True, eq=False)
class JaakkolaSystem(StraightAhead):
    """Unknowns x = log q, the logarithm of each row's squared variational parameter."""

    rows: Rows
    loss: ExpectedLoss

    @property
    def convex(self) -> bool:
        """Whether the loss is convex."""
        return self.loss.convex

    def start(self) -> Array:
        """Return the logarithms of the predictors' second moments under the prior."""
        prior = self.rows.offset**2 + (self.rows.Z**2).sum(axis=1)
        return np.tile(np.log(prior + SMALLEST), (len(self.rows.weights), 1))

    def scale(self, x: Array, beta: float) -> Array:
        """Logarithms against one."""
        return np.ones_like(x)

    def admissible(self, x: Array) -> bool:
        """Tell whether the squares are numbers."""
        return bool(np.all(np.abs(x) < 700))

    def guess(self, beta: float) -> Array:
        """Return the second moments of curvature 1/4, that of xi = 0."""
        return np.log(Moments(self.rows, np.zeros_like(self.rows.weights), beta).second)

    def objective(self, x: Array, beta: float) -> Array:
        r"""Return the bound's value at its best Gaussian, up to the sign a bound on log evidence.

        With o the offset, it is the negative of

            sum_i c_i [(y - 1/2) o - lam o^2 + lam q - log 2 cosh(sqrt(q)/2)]
            + log|S|/2 + u'S^-1 u/2.
        """
        at = Moments(self.rows, np.exp(x), beta)
        c, o, half = beta * self.rows.weights, self.rows.offset, self.rows.y - 0.5
        bound = half * o - at.lam * o**2 + at.lam * np.exp(x) - log_cosh(np.exp(x / 2))
        pull = (c * (half - 2 * at.lam * o)) @ self.rows.Z
        gain = np.linalg.slogdet(at.root)[1] + 0.5 * (pull * at.u).sum(axis=1)
        return -((c * bound).sum(axis=1) + gain)

    def newton(self, x: Array, beta: float) -> tuple[Array, Tangent]:
        """Return the Newton step and the tangent."""
        at = Moments(self.rows, np.exp(x), beta)
        w = self.rows.weights
        coupling = at.coupling()
        pushed = 2 * at.mean / at.second * at.times_kernel(w * (self.rows.y - 0.5))
        drift = pushed - times(coupling, 2 * w * at.lam)
        coupling *= at.bend[:, None, :]
        diagonal = np.arange(coupling.shape[1])
        coupling[:, diagonal, diagonal] += 1.0
        return solve_at_once(coupling, np.log(at.second) - x, drift)

    def law(self, x: Array, tangent: Array, beta: float) -> FullLaw:
        """Return the Gaussians; their curvatures 2 c lam move with the squares."""
        at = Moments(self.rows, np.exp(x), beta)
        Z, w = self.rows.Z, self.rows.weights
        curvature = 2 * w * at.lam + at.bend * tangent
        pull = (w * (self.rows.y - 0.5) - curvature * at.mean) @ Z
        return FullLaw(at.u, at.root, at.times_covariance(pull), weighted_gram(Z, curvature))

    def gaussian(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return means and covariance roots."""
        at = Moments(self.rows, np.exp(x), beta)
        return at.u, at.root


class Moments:
    """The Gaussians that squares q stand for: S = root root', K = spread spread'."""

    def __init__(self, rows: Rows, q: Array, beta: float) -> None:
        Z, c = rows.Z, beta * rows.weights
        self.rows = rows
        self.lam, slope = lambda_and_slope(q)
        self.bend = 2 * c * slope * q  # D
        self.root = inverse_root(np.eye(Z.shape[1]) + weighted_gram(Z, 2 * c * self.lam))
        self.spread = Z @ self.root
        self.u = self.times_covariance((c * (rows.y - 0.5 - 2 * self.lam * rows.offset)) @ Z)
        self.mean = rows.offset + self.u @ Z.T
        self.second = self.mean**2 + row_products(self.spread, self.spread) + SMALLEST

    def times_covariance(self, vectors: Array) -> Array:
        """S v for v of shape (m, k)."""
        return times(self.root, times(self.root.swapaxes(1, 2), vectors))

    def times_kernel(self, vectors: Array) -> Array:
        """K v for v of shape (m, n)."""
        return times(self.spread, times(self.spread.swapaxes(1, 2), vectors))

    def coupling(self) -> Array:
        """Form diag(1/s) {K o (K + 2 mu mu')}, (m, n, n)."""
        kernel = self.spread @ self.spread.swapaxes(1, 2)
        coupling = 2 * self.mean[:, :, None] * self.mean[:, None, :]
        coupling += kernel
        coupling *= kernel
        coupling /= self.second[:, :, None]
        return coupling


def log_cosh(xi: Array) -> Array:
    """Return log 2 cosh(xi / 2) for xi >= 0."""
    return xi / 2 + np.log1p(np.exp(-xi))


def bounded_loss(mean: Array, variance: Array) -> Partials:
    """Differentiate psi = mu/2 + log 2 cosh(xi/2) at xi^2 = mu^2 + v, where dpsi/dv = lam.

    Below zero dpsi/dmu = 1/2 + 2 lam mu is sigmoid(-xi) + 2 lam v / (xi - mu), and its derivative
    2 lam + 4 dlam/dv mu^2 is [2 lam v + sigmoid'(xi) mu^2] / xi^2: sums without differences.
    """
    square = mean**2 + variance
    lam, slope = lambda_and_slope(square)
    xi = np.sqrt(square)
    odds = np.exp(-xi)
    share = 1 / (1 + odds)
    small = odds * share  # sigmoid(-xi)
    bend = small * share
    part = variance / (square + SMALLEST)
    below = small + 2 * lam * variance / (xi + np.abs(mean) + SMALLEST)
    return Partials(
        np.where(mean < 0, below, 1 - below),
        lam,
        2 * lam * part + bend * (1 - part),
        2 * slope * mean,
        slope,
    )


def lambda_and_slope(square: Array) -> tuple[Array, Array]:
    r"""Return lam(xi) = (sigmoid(xi) - 1/2) / (2 xi) and its derivative in xi^2."""
    xi = np.sqrt(np.maximum(square, SMALL_SQUARE))
    tanh = np.tanh(xi / 2)
    lam = tanh / (4 * xi)
    # d lam / d xi^2 = [sigmoid'(xi) - 2 lam] / (4 xi^2) with 4 sigmoid'(xi) = 1 - tanh(xi/2)^2
    slope = ((1 - tanh**2) / 4 - 2 * lam) / (4 * xi**2)
    small = square < SMALL_SQUARE
    if np.any(small):
        # tanh(xi/2) / (4 xi) = 1/8 - xi^2/96 + xi^4/960 - 17 xi^6/80640 + ...
        lam = np.where(small, 1 / 8 - square / 96 + square**2 / 960, lam)
        slope = np.where(small, -1 / 96 + square / 480 - 17 * square**2 / 26880, slope)
    return lam, slope
