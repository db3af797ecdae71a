r"""Gaussians over coefficients that move along beta, and the linear algebra of their equations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import iadd
from typing import Protocol

import numpy as np
from scipy.linalg import lapack

from temperance.data import Array, batches
from temperance.losses.base import Predictor, Resembling
from temperance.models.glm.rows import Rows

SMALLEST = 1e-300  # stands for zero in logarithms
FEW_ROWS = 64
WIDER = 5.0  # logarithm of variances over the prior's, under losses that are not convex
CACHED = 2**15  # elements of a block of rows that stays in the cache while it is worked on


class Law(Protocol):
    """Approximations that move along beta."""

    def predictor(self, Z: Array, offset: Array) -> Predictor:
        """Return the moments of offset + z'u for rows Z of shape (m, e, k), or (1, e, k)."""
        ...


@dataclass(frozen=True, eq=False)
class FullLaw:
    r"""N(mean, A A') with means (m, k) and roots A (m, k, k), and the movement of mean and A^-2."""

    mean: Array
    root: Array
    d_mean: Array
    d_precision: Array

    def predictor(self, Z: Array, offset: Array) -> Predictor:
        r"""Return the moments; the variance z'S z moves by -z'S [dS^-1/dbeta] S z."""
        inner = self.root.swapaxes(1, 2) @ self.d_precision @ self.root
        if len(Z) == 1:
            outer = self.root @ inner @ self.root.swapaxes(1, 2)
            variance, shrinking = squared_lengths(Z[0], self.root), quadratic_forms(Z[0], outer)
        else:
            spread = Z @ self.root
            variance = row_products(spread, spread)
            shrinking = row_products(spread @ inner, spread)
        return Predictor(
            offset + _products(Z, self.mean),
            variance,
            _products(Z, self.d_mean),
            -shrinking,
        )


@dataclass(frozen=True, eq=False)
class DiagonalLaw:
    """N(mean, diag(variance)), both (m, k), and their movement."""

    mean: Array
    variance: Array
    d_mean: Array
    d_variance: Array

    def predictor(self, Z: Array, offset: Array) -> Predictor:
        """Return the moments."""
        squares = Z**2
        return Predictor(
            offset + _products(Z, self.mean),
            _products(squares, self.variance),
            _products(Z, self.d_mean),
            _products(squares, self.d_variance),
        )


def _products(Z: Array, u: Array) -> Array:
    """Return z'u for rows (m, e, k) or (1, e, k) and u (m, k): (m, e)."""
    return u @ Z[0].T if len(Z) == 1 else (Z @ u[:, :, None])[:, :, 0]


def predictor_moments(rows: Rows, gaussian: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return mean and variance of each row's predictor, (n,), under a mean and covariance root.

    The root is (1, k, k), or (1, k) where it is diagonal.
    """
    mean, root = gaussian
    diagonal = root.ndim == 2
    variance = rows.squares @ root[0] ** 2 if diagonal else squared_lengths(rows.Z, root)[0]
    return rows.offset + rows.Z @ mean[0], variance


def typical_fit(rows: Rows, loss: Resembling, beta: float) -> tuple[Array, Array]:
    r"""Return means (m, k) under quadratics that resemble the loss, and their weights w h, (m, n).

    With h (u - c)^2 / 2 for the loss of a row, the mean is beta (I + beta Z'WHZ)^-1 Z'WH (c - o).
    """
    Z, quadratic = rows.Z, loss.typical(rows.y, rows.offset)
    weights, distance = rows.weights * quadratic.curvature, quadratic.centre - rows.offset
    if not np.any(distance):
        return np.zeros((len(weights), Z.shape[1])), weights
    if len(Z) < Z.shape[1]:
        # With b over the rows the mean is Z'b: (I + beta WH ZZ') b = beta WH (c - o).
        scaled = beta * weights
        matrices = scaled[:, :, None] * rows.kernel + np.eye(len(Z))
        return np.linalg.solve(matrices, (scaled * distance)[:, :, None])[:, :, 0] @ Z, weights
    root = inverse_root(np.eye(Z.shape[1]) + beta * weighted_gram(Z, weights))
    pull = beta * (weights * distance) @ Z
    return times(root, times(root.swapaxes(1, 2), pull)), weights


def divergence(mean: Array, root: Array) -> Array:
    """Return KL(N(mean, A A') | N(0, I)) up to a constant, (m,)."""
    spread = (root**2).sum(axis=(1, 2)) + (mean**2).sum(axis=1)
    return 0.5 * spread - np.linalg.slogdet(root)[1]


def few_rows(n: int, k: int) -> bool:
    """Tell whether matrices over n rows cost less than passes over rows of k coordinates."""
    return n <= max(FEW_ROWS, 6 * k)


def largest(values: Array) -> float:
    """Return the largest absolute value."""
    return float(np.abs(values).max(initial=0.0))


def row_products(one: Array, other: Array) -> Array:
    """Inner products of the rows of two stacks (m, n, k)."""
    return np.einsum("mnk,mnk->mn", one, other)


def inverse_root(precisions: Array) -> Array:
    """Return A with A A' the covariance: R^-1 for R'R the precision.

    Scales of the coordinates do not matter to the triangle R; it fails where, beside others, a
    combination of coordinates is known less than rounding lets one see.
    """
    roots = np.empty_like(precisions)
    for root, precision in zip(roots, precisions, strict=True):
        # numpy inverts triangles as if they were full, at several times the cost.
        triangle, failure = lapack.dpotrf(precision.T)
        root[...] = _root_by_axes(precision) if failure else lapack.dtrtri(triangle)[0]
    return roots


def hessian_root(Z: Array, weights: Array, convex: bool) -> Array:
    """Return A with A A' = (I + Z' diag(c) Z)^-1 for weights c, (m, n), of one sign if convex.

    Far from a minimum the matrix of a loss that is not convex may be indefinite.  Without the
    negative weights it is not, and still leads downhill.
    """
    prior = np.eye(Z.shape[1])
    hessian = prior + weighted_gram(Z, weights)
    if not convex and not positive_definite(hessian):
        hessian = prior + weighted_gram(Z, np.maximum(weights, 0.0))
    return inverse_root(hessian)


def positive_definite(matrices: Array) -> bool:
    """Tell whether all matrices (m, k, k) are positive definite."""
    return not any(lapack.dpotrf(matrix.T)[1] for matrix in matrices)


def _root_by_axes(precision: Array) -> Array:
    """Return A with A A' the inverse, when what is less than rounding is taken for rounding."""
    variances = np.diagonal(precision)
    if not np.all(np.isfinite(precision)) or variances.min() <= 0:
        raise np.linalg.LinAlgError("the precision is not positive definite")
    scale = 1 / np.sqrt(variances)
    values, vectors = np.linalg.eigh(precision * np.outer(scale, scale))
    rounding = len(values) * np.finfo(float).eps
    if values[0] < -64 * rounding:
        raise np.linalg.LinAlgError("the precision is not positive definite")
    return (scale[:, None] * vectors) / np.sqrt(np.maximum(values, rounding))


def eigen(symmetric: Array) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of matrices (m, k, k), as they are but for rounding."""
    if not np.all(np.isfinite(symmetric)):
        raise np.linalg.LinAlgError("the matrices are not finite")
    values, vectors = np.linalg.eigh((symmetric + symmetric.swapaxes(1, 2)) / 2)
    return values, vectors


def weighted_gram(Z: Array, weights: Array, other: Array | None = None) -> Array:
    """Z' diag(w) Z, or Z' diag(w) other, for each row of weights (m, n); in blocks of rows."""
    right = Z if other is None else other
    products = (
        (Z[rows].T * weights[:, None, rows]) @ right[rows]
        for rows in batches(len(Z), len(weights) * Z.shape[1], budget=CACHED)
    )
    return reduce(iadd, products)


def squares_times(T: Array, y: Array) -> Array:
    """(K o K) y = diag(K diag(y) K) for K = T T', T of shape (m, n, k), y of shape (m, n)."""
    m, n, k = T.shape
    blocks = list(batches(n, m * k, budget=CACHED))
    inner = np.zeros((m, k, k))
    for rows in blocks:
        inner += (T[:, rows].swapaxes(1, 2) * y[:, None, rows]) @ T[:, rows]
    product = np.empty((m, n))
    for rows in blocks:
        product[:, rows] = row_products(T[:, rows] @ inner, T[:, rows])
    return product


def quadratic_forms(Z: Array, matrices: Array) -> Array:
    """Return z'M z for each row z of Z and each M of shape (m, k, k): (m, n); in blocks of rows."""
    forms = np.empty((len(matrices), len(Z)))
    for rows in batches(len(Z), matrices.shape[0] * Z.shape[1], budget=CACHED):
        np.einsum("mnk,nk->mn", Z[rows] @ matrices, Z[rows], out=forms[:, rows])
    return forms


def squared_lengths(Z: Array, roots: Array) -> Array:
    """Return |A'z|^2 for each row z of Z and each A of shape (m, k, k): (m, n), in blocks."""
    lengths = np.empty((len(roots), len(Z)))
    for rows in batches(len(Z), roots.shape[0] * Z.shape[1], budget=CACHED):
        spread = Z[rows] @ roots
        np.einsum("mnk,mnk->mn", spread, spread, out=lengths[:, rows])
    return lengths


def times(matrices: Array, vectors: Array) -> Array:
    """M v for stacks (m, k, l) and (m, l)."""
    return (matrices @ vectors[:, :, None])[:, :, 0]


def solve_at_once(matrices: Array, now: Array, later: Array) -> tuple[Array, Callable[[], Array]]:
    """Solve for two right-hand sides (m, n) by one factorisation; the second is for later."""
    solved = np.linalg.solve(matrices, np.stack([now, later], axis=2))
    return solved[..., 0], lambda: solved[..., 1]


def solve_newton(
    jacobian: Array,
    residual: Array,
    drift: Array,
    beta: float,
    prior_after: Callable[[Array], Array],
) -> tuple[Array, Callable[[], Array]]:
    """Solve J step = -residual, and for the tangent -J^-1 drift; F = prior + beta drift, J = J'.

    After the step drift = -prior / beta, to second order: the tangent is then as good as the step's
    error, however much the data outweigh the prior.
    """
    solve = symmetric_solver(jacobian)
    step = solve(-residual)
    return step, lambda: solve(prior_after(step) / beta if beta > 0 else -drift)


def symmetric_solver(matrices: Array) -> Callable[[Array], Array]:
    """Return what solves systems (m, k, k) for (m, k): by their roots, where they have some."""
    roots, failures = zip(
        *(lapack.dpotrf(matrix.T, clean=False) for matrix in matrices), strict=True
    )
    if any(failures):
        scale = 1 / np.sqrt(np.abs(np.diagonal(matrices, axis1=1, axis2=2)))
        scaled = matrices * scale[:, :, None] * scale[:, None, :]
        return lambda right: scale * np.linalg.solve(scaled, (scale * right)[:, :, None])[:, :, 0]
    return lambda right: np.stack(
        [lapack.dpotrs(root, each)[0] for root, each in zip(roots, right, strict=True)]
    )
