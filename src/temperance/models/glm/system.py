r"""The equations of a Gaussian approximation, for many weightings of the same rows at once.

A system solves F(x, beta) = 0 for the parameters x of N(mean, S) in whitened coordinates, where
the prior is N(0, I).  At beta = 0 the solution is the prior; from there it is followed along beta
(:mod:`temperance.models.glm.continuation`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import iadd
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from scipy.linalg import lapack

from temperance.models.glm.axes import principal_axes, turned
from temperance.types import Array, batches

SMALLEST = 1e-300  # stands for zero in logarithms
FEW_ROWS = 64
FEW_COLUMNS = 32
VAST_PRIOR = 1e6  # variance of a predictor
SMALL = 1e-4
CACHED = 2**15  # elements of a block of rows that stays in the cache while it is worked on


# From whether a rough one will do to the tangent dx/dbeta of a solution.
Tangent: TypeAlias = Callable[[bool], Array]


class Predictor(NamedTuple):
    """Mean and variance of rows' linear predictors and their derivatives in beta, (m, e)."""

    mean: Array
    variance: Array
    d_mean: Array
    d_variance: Array


class Law(Protocol):
    """Approximations that move along beta."""

    def predictor(self, Z: Array, offset: Array) -> Predictor:
        """Return the moments of offset + z'u for rows Z of shape (m, e, k), or (1, e, k)."""
        ...


class System(Protocol):
    """Stationarity equations of m approximations; x has shape (m, parameters)."""

    @property
    def rows(self) -> Rows:
        """The rows that are trained on."""
        ...

    def start(self) -> Array:
        """Return the solution at beta = 0: the prior."""
        ...

    def guess(self, beta: float) -> Array:
        """Return the parameters of the loss's largest curvature, not far off at large beta."""
        ...

    def objective(self, x: Array, beta: float) -> Array:
        """Return what the solution minimises, (m,), up to a constant."""
        ...

    def newton(self, x: Array, beta: float) -> tuple[Array, Tangent]:
        r"""Return the Newton step -J^-1 F and how to get the tangent dx/dbeta = -J^-1 dF/dbeta."""
        ...

    def scale(self, x: Array, beta: float) -> Array:
        """Return the size against which a step in each parameter is small."""
        ...

    def ahead(self, x: Array, change: Array, beta: float, target: float) -> Array:
        """Return parameters at ``target`` from those at ``beta`` and a first-order change."""
        ...

    def admissible(self, x: Array) -> bool:
        """Tell whether the parameters are those of a Gaussian."""
        ...

    def law(self, x: Array, tangent: Array, beta: float) -> Law:
        """Return the approximations and how they move."""
        ...

    def gaussian(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return means (m, k) and covariance roots (m, k, k), or diagonal ones (m, k)."""
        ...


@runtime_checkable
class PortableSystem(System, Protocol):
    """A system whose x means the same with other rows: it is about coefficients, not rows."""

    def parameters(self, mean: Array, curvature: Array, beta: float) -> Array:
        """Return x of Gaussians with these means (m, k) and precisions I + beta curvature."""
        ...


class StraightAhead:
    """Parameters that move along straight lines in log(beta), more or less."""

    def ahead(self, x: Array, change: Array, beta: float, target: float) -> Array:
        """Return parameters at ``target`` from those at ``beta`` and a first-order change."""
        return x + change


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


@dataclass(frozen=True, eq=False)
class Rows:
    """What the approximations are about: f = offset + Z u, y in {0, 1}, weights (m, n)."""

    Z: Array
    offset: Array
    y: Array
    weights: Array

    @cached_property
    def sign(self) -> Array:
        """1 - 2 y: the loss is softplus(sign f), (n,)."""
        return 1.0 - 2.0 * self.y

    @cached_property
    def squares(self) -> Array:
        """Z^2 elementwise."""
        return self.Z**2

    @cached_property
    def kernel(self) -> Array:
        """Inner products of the rows, (n, n)."""
        return self.Z @ self.Z.T

    @cached_property
    def lengths(self) -> Array:
        """Squared lengths of the rows, (n,)."""
        return np.einsum("nk,nk->n", self.Z, self.Z)

    @cached_property
    def reach(self) -> Array:
        """Largest effect on f of a unit step in each coefficient."""
        return np.maximum(self.Z.max(axis=0, initial=0.0), -self.Z.min(axis=0, initial=0.0))

    def coefficient_scale(self, u: Array) -> Array:
        """Return steps in u that are small in units of the prior and in what they do to f."""
        return (1.0 + np.abs(u) * self.reach) / (1.0 + self.reach)

    @cached_property
    def axes(self) -> Array | None:
        """Orthonormal axes (k, k) along which many rows tell means apart, where they do not."""
        if len(self.Z) < self.Z.shape[1]:
            return None
        return principal_axes(self.Z, self.weights.max(axis=0))

    @cached_property
    def turned(self) -> Rows:
        """The same rows along these axes."""
        return self if self.axes is None else replace(self, Z=turned(self.Z, self.axes))

    def along(self, means: Array) -> Array:
        """Return means (m, k) along these axes."""
        return means if self.axes is None else means @ self.axes

    def back(self, along: Array) -> Array:
        """Return means from those along these axes."""
        return along if self.axes is None else along @ self.axes.T

    @cached_property
    def first_step(self) -> float:
        """A beta at which the data weigh about as much as the prior: information inverted."""
        information = 0.25 * (self.weights @ self.lengths).max()
        return 1.0 / float(information) if information > 0 else 1.0

    def small_step(self, beta: float) -> float:
        """Return a difference of betas that is small on the scale on which solutions move."""
        return SMALL * (beta + self.first_step)


def predictor_moments(rows: Rows, gaussian: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return mean and variance of each row's predictor, (n,), under a mean and covariance root.

    The root is (1, k, k), or (1, k) where it is diagonal.
    """
    mean, root = gaussian
    diagonal = root.ndim == 2
    variance = rows.squares @ root[0] ** 2 if diagonal else squared_lengths(rows.Z, root)[0]
    return rows.offset + rows.Z @ mean[0], variance


def divergence(mean: Array, root: Array) -> Array:
    """Return KL(N(mean, A A') | N(0, I)) up to a constant, (m,)."""
    spread = (root**2).sum(axis=(1, 2)) + (mean**2).sum(axis=1)
    return 0.5 * spread - np.linalg.slogdet(root)[1]


def few_rows(n: int, k: int) -> bool:
    """Tell whether matrices over n rows cost less than passes over rows of k coordinates."""
    return n <= max(FEW_ROWS, 6 * k)


def unknown_by_rows(rows: Rows) -> bool:
    """Tell whether equations had better have an unknown for each row than for pairs of columns.

    They have if rows are few.  But where the prior makes predictors vast, those of pairs are nearer
    to linear.
    """
    n, k = rows.Z.shape
    vast = rows.lengths.max(initial=0.0) > VAST_PRIOR and k <= FEW_COLUMNS
    return few_rows(n, k) and not vast


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


def solve_at_once(matrices: Array, now: Array, later: Array) -> tuple[Array, Tangent]:
    """Solve for two right-hand sides (m, n) by one factorisation; the second is for later."""
    solved = np.linalg.solve(matrices, np.stack([now, later], axis=2))
    return solved[..., 0], lambda rough: solved[..., 1]


def solve_newton(
    jacobian: Array,
    residual: Array,
    drift: Array,
    beta: float,
    prior_after: Callable[[Array], Array],
) -> tuple[Array, Tangent]:
    """Solve J step = -residual, and for the tangent -J^-1 drift; F = prior + beta drift, J = J'.

    After the step drift = -prior / beta, to second order: the tangent is then as good as the step's
    error, however much the data outweigh the prior.
    """
    solve = symmetric_solver(jacobian)
    step = solve(-residual)
    return step, lambda rough: solve(prior_after(step) / beta if beta > 0 else -drift)


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
