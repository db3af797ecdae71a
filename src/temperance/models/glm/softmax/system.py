r"""Equations of the Laplace approximation for several classes: the mode and the curvature there.

In whitened coordinates the coefficients of class k are u_k ~ N(0, I).  The loss depends on
u = C v only, with orthonormal contrasts C of shape (K, K - 1) and v ~ N(0, I) of shape (K - 1, k);
along the mean of the classes the posterior is the prior.  With c = beta w and the probabilities p
of the classes at the logits C v z:

    v + sum_i c_i C'(p_i - e_{y_i}) z_i' = 0,        S^-1 = I + sum_i c_i W_i (x) z_i z_i',

    W = C'(diag(p) - p p')C = sum_{j<k} p_j p_k d_jk d_jk',        d_jk = C_j - C_k,

a sum of positive terms, each with all its digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, Labels, Risk, batches
from temperance.losses.base import Predictor, Quadratic
from temperance.models.glm.gaussians import inverse_root, symmetric_solver
from temperance.models.glm.newton import StraightAhead, System, Tangent
from temperance.models.glm.rows import Rows
from temperance.models.glm.softmax.quadrature import (
    Logits,
    contrasts,
    expected_losses,
    losses_and_shares,
)

CHORDS = 6  # steps by one and the same curvature
SHRINKS = 0.5  # a step of those must be that much shorter than the one before
CACHED = 2**20  # elements of products of columns, and of what tested rows need


@dataclass(frozen=True, eq=False)
class ClassRows(Rows):
    """Rows whose labels y are 0 ... K - 1; the offset is zero."""

    n_classes: int

    @cached_property
    def labels(self) -> Labels:
        """Labels as integers."""
        return self.y.astype(np.intp)


def class_rows(Z: Array, y: Array, weights: Array, n_classes: int) -> ClassRows:
    """Return rows under weights (m, n)."""
    return ClassRows(Z, np.zeros(len(y)), y, weights, n_classes)


class Probabilities(NamedTuple):
    """Loss of each row and probabilities of the classes less the label, (m, n) and (m, n, K)."""

    loss: Array
    p: Array
    residual: Array


@dataclass(frozen=True, eq=False)
class SoftmaxLaw:
    """N(mode, A A') over contrasts, (m, c k) and (m, c k, c k), and how mode and A^-2 move."""

    mean: Array
    root: Array
    d_mean: Array
    d_precision: Array
    dimension: int  # number of contrasts c

    def predictor(self, Z: Array, offset: Array) -> Predictor:
        """Return mean and covariance of the contrasts of rows (m, e, k), or (1, e, k)."""
        m, c, e = len(self.mean), self.dimension, Z.shape[1]
        mean, d_mean = (
            Z @ part.reshape(m, c, -1).swapaxes(1, 2) for part in (self.mean, self.d_mean)
        )
        cov, d_cov = np.empty((2, m, e, c, c))
        for j in range(m):
            blocks = self.root[j].reshape(c, -1, self.root.shape[2])
            inner = self.root[j].T @ self.d_precision[j] @ self.root[j]
            for rows in batches(e, c * len(inner), budget=CACHED):
                spread = (Z[j % len(Z), rows] @ blocks).swapaxes(0, 1)
                back = spread.swapaxes(1, 2)
                cov[j, rows] = spread @ back
                d_cov[j, rows] = -_times(spread, inner) @ back
        return Predictor(mean, cov, d_mean, d_cov)


@dataclass(frozen=True)
class SoftmaxLoss:
    """Loss log sum_k exp(f_k) - f_y of logits f, whose contrasts are the predictors."""

    n_classes: int
    method: ClassVar[str] = "Laplace approximation, losses by quasi-Monte Carlo"

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return the largest curvature of a contrast, without a direction."""
        return Quadratic(offset, np.full_like(offset, 0.25))

    def risk(self, predictor: Predictor, y: Array, risk: Risk) -> tuple[Array, Array]:
        """Return E l, or -log E exp(-l), of rows (m, e), and the slopes in beta."""
        shape = predictor.mean.shape[:-1]
        labels = np.broadcast_to(y, shape).astype(np.intp).ravel()
        flat = Logits(*(each.reshape(-1, *each.shape[2:]) for each in predictor))
        value, slope = expected_losses(flat, labels, self.n_classes, risk)
        return value.reshape(shape), slope.reshape(shape)


@dataclass(frozen=True)
class SoftmaxLaplace:
    """The Laplace approximation for several classes."""

    loss: SoftmaxLoss
    diagonal: ClassVar[bool] = False

    def system(self, rows: Rows) -> System:
        """Return the equations of the mode."""
        return SoftmaxSystem(class_rows(rows.Z, rows.y, rows.weights, self.loss.n_classes))


@dataclass(frozen=True, eq=False)
class SoftmaxSystem(StraightAhead):
    """Unknowns x = v, the mode, contrast after contrast."""

    rows: ClassRows

    convex: ClassVar[bool] = True

    @property
    def loss(self) -> SoftmaxLoss:
        """The loss of the classes."""
        return SoftmaxLoss(self.rows.n_classes)

    @property
    def dimension(self) -> int:
        """Number of contrasts."""
        return self.rows.n_classes - 1

    def start(self) -> Array:
        """Return v = 0."""
        return np.zeros((len(self.rows.weights), self.dimension * self.rows.Z.shape[1]))

    def scale(self, x: Array, beta: float) -> Array:
        """Coefficients against what they do."""
        blocks = x.reshape(len(x), self.dimension, -1)
        return self.rows.coefficient_scale(blocks).reshape(x.shape)

    def admissible(self, x: Array) -> bool:
        """Any finite mode will do."""
        return bool(np.all(np.isfinite(x)))

    def guess(self, beta: float) -> Array:
        """Return the mode of the prior."""
        return self.start()

    def objective(self, x: Array, beta: float) -> Array:
        """Return beta sum_i w_i l_i + |v|^2 / 2."""
        loss = (self.rows.weights * self.probabilities(x).loss).sum(axis=1)
        return beta * loss + 0.5 * (x**2).sum(axis=1)

    def newton(self, x: Array, beta: float) -> tuple[Array, Tangent]:
        """Return the Newton step and the tangent.

        The step goes on by the same curvature while that leads on: a step costs little beside the
        curvature.
        """
        found = self.probabilities(x)
        solve = symmetric_solver(self.precision(found, beta))
        drift = self.drift(found)
        step = last = solve(-(x + beta * drift))
        for _ in range(CHORDS):
            there = x + step
            if not np.all(np.isfinite(there)):
                break
            drift = self.drift(self.probabilities(there))
            more = solve(-(there + beta * drift))
            if not np.linalg.norm(more) < SHRINKS * np.linalg.norm(last):
                break
            step, last = step + more, more
        after = x + step
        return step, lambda: solve(after / beta if beta > 0 else -drift)

    def law(self, x: Array, tangent: Array, beta: float) -> SoftmaxLaw:
        """Return the Gaussians; their curvatures move along the mode."""
        found = self.probabilities(x)
        moved = self.logits(tangent)
        centre = np.einsum("mnk,mnk->mn", found.p, moved)
        first, second = pairs_of(self.rows.n_classes)
        # d(p_j p_k) = p_j p_k (df_j + df_k - 2 sum_l p_l df_l)
        rates = moved[..., first] + moved[..., second] - 2 * centre[..., None]
        d_precision = self.information(self.products(found) * (1 + beta * rates))
        root = inverse_root(self.precision(found, beta))
        return SoftmaxLaw(x, root, tangent, d_precision, self.dimension)

    def gaussian(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return modes and covariance roots."""
        return x, inverse_root(self.precision(self.probabilities(x), beta))

    def logits(self, x: Array) -> Array:
        """Return C v z of each row, (m, n, K)."""
        blocks = x.reshape(len(x), self.dimension, -1)
        return self.rows.Z @ (contrasts(self.rows.n_classes) @ blocks).swapaxes(1, 2)

    def probabilities(self, x: Array) -> Probabilities:
        """Return losses, probabilities, and probabilities less the label."""
        return class_probabilities(self.logits(x), self.rows.labels)

    def drift(self, found: Probabilities) -> Array:
        """Return the derivative in beta of the equations: the sum of the rows' slopes."""
        slopes = (self.rows.weights[..., None] * found.residual) @ contrasts(self.rows.n_classes)
        return (slopes.swapaxes(1, 2) @ self.rows.Z).reshape(len(slopes), -1)

    def precision(self, found: Probabilities, beta: float) -> Array:
        """Return I + beta times the information of the rows."""
        matrices = beta * self.information(self.products(found))
        index = np.arange(matrices.shape[1])
        matrices[:, index, index] += 1.0
        return matrices

    def products(self, found: Probabilities) -> Array:
        """Return w p_j p_k of the pairs of classes, (m, n, pairs)."""
        first, second = pairs_of(self.rows.n_classes)
        return self.rows.weights[..., None] * found.p[..., first] * found.p[..., second]

    def information(self, products: Array) -> Array:
        """Return sum_i W_i (x) z_i z_i' where W_i has these weights of pairs, (m, c k, c k)."""
        return kronecker_sums(curvatures(products, self.rows.n_classes), self.rows.Z)


def class_probabilities(logits: Array, labels: Labels) -> Probabilities:
    """Return losses and probabilities from logits (m, n, K), all with their digits."""
    index = np.broadcast_to(labels[:, None], (len(logits), len(labels), 1))
    against = logits - np.take_along_axis(logits, index, axis=2)
    np.put_along_axis(against, index, -np.inf, axis=2)  # of the others only
    loss, p = losses_and_shares(against, axis=2)
    residual = p.copy()
    np.put_along_axis(residual, index, -p.sum(axis=2, keepdims=True), axis=2)
    np.put_along_axis(p, index, np.exp(-loss)[..., None], axis=2)
    return Probabilities(loss, p, residual)


def _times(spread: Array, inner: Array) -> Array:
    """Return the product (e, c, q) with a matrix (q, q) as one of two matrices."""
    return (spread.reshape(-1, len(inner)) @ inner).reshape(spread.shape)


def row_covariances(Z: Array, blocks: Array) -> Array:
    """Return the covariances (n, c, c) of rows' contrasts from the root in blocks (c, k, q)."""
    c, _, q = blocks.shape
    cov = np.empty((len(Z), c, c))
    for rows in batches(len(Z), c * q, budget=CACHED):
        spread = (Z[rows] @ blocks).swapaxes(0, 1)
        cov[rows] = spread @ spread.swapaxes(1, 2)
    return cov


@lru_cache
def pairs_of(n_classes: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the pairs of different classes."""
    return np.triu_indices(n_classes, 1)


def curvatures(products: Array, n_classes: int) -> Array:
    """Return the upper triangles of W = sum of products d d', (..., c (c + 1) / 2)."""
    C = contrasts(n_classes)
    first, second = pairs_of(n_classes)
    d = C[first] - C[second]
    one, other = np.triu_indices(n_classes - 1)
    return products @ (d[:, one] * d[:, other])


def kronecker_sums(triangles: Array, Z: Array) -> Array:
    """Return sum_i W_i (x) z_i z_i' from the upper triangles of W, (m, n, t): (m, c k, c k)."""
    m, _, t = triangles.shape
    k = Z.shape[1]
    one, other = np.triu_indices(k)
    sums = np.zeros((m * t, len(one)))
    weights = triangles.swapaxes(1, 2).reshape(m * t, -1)
    for rows in batches(len(Z), len(one), budget=CACHED):
        sums += weights[:, rows] @ (Z[rows][:, one] * Z[rows][:, other])
    blocks = sums.reshape(m, t, -1)[:, square_places(t)][..., square_places(len(one))]
    return blocks.swapaxes(2, 3).reshape(m, blocks.shape[1] * k, -1)


def square_places(size: int) -> NDArray[np.intp]:
    """Return the places of a symmetric matrix in its upper triangle of this size."""
    side = int(np.sqrt(2 * size))
    places = np.empty((side, side), dtype=np.intp)
    one, other = np.triu_indices(side)
    places[one, other] = places[other, one] = np.arange(size)
    return places
