r"""Folds of many rows by one fit of all of them, and a Newton step that takes each fold out.

Let (u, S) solve the equations of all rows, each with its weight averaged over the training sets.
There the rows of fold j add to pull, Hessian and curvature, with the partial derivatives psi_mu,
psi_v ... of expected losses,

    G_j = sum_i w_i psi_mu z_i,    H_j = sum_i w_i psi_mumu z_i z_i',
    B_j = sum_i 2 w_i psi_v z_i z_i',

and one pass over the rows gives those of all folds.  With c_k beta times the exponent of the
training set without fold k, and sums over the other folds, a Newton step for the mean leads to

    u_k = u - (I + c_k sum_j H_j)^-1 (u + c_k sum_j G_j),    S_k^-1 = I + c_k sum_j B_j,

of which mean-field takes the diagonal; the Laplace approximation has v = 0.  What the step does to
the curvature is left out: of the order 1/sqrt(n), it has, to first order, no mean over the folds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from temperance.data import Array
from temperance.models.glm.fast.fold_rows import FoldRows
from temperance.models.glm.fast.pairs import Path
from temperance.models.glm.gaussians import (
    DiagonalLaw,
    FullLaw,
    Law,
    inverse_root,
    predictor_moments,
    symmetric_solver,
    times,
    weighted_gram,
)
from temperance.models.glm.newton import Approximation, small_step
from temperance.models.glm.rows import Rows

Gaussian = tuple[Array, Array]  # mean (1, k) and covariance root (1, k, k), or (1, k)

MOST_REMEMBERED = 2**20  # elements of curvatures
LAST_STEP = 0.05  # of Newton's method to the fit of all rows; the folds' own go on from there


class Fits(NamedTuple):
    """Means and curvatures of the fits without each fold: S^-1 = I + beta curvature."""

    mean: Array  # (folds, k)
    curvature: Array  # (folds, k, k), or (folds, k) where it is diagonal


class Others(NamedTuple):
    """What the rows outside each fold add to its equations at the fit of all rows."""

    pull: Array  # (folds, k)
    hessian: Array  # (folds, k, k)


class MovingFits(NamedTuple):
    """Fits at beta and a step ahead."""

    beta: float
    now: Fits
    step: float
    ahead: Fits


@dataclass(frozen=True, eq=False)
class FoldSketch:
    """Fits without each fold, by a Newton step from the fit of all rows.

    They move along beta by what the step does there and a little ahead.  Where slopes need not be
    as good as values, a fold's fit moves like that of all rows, but for its own pull and Hessian.
    """

    rows: FoldRows
    approximation: Approximation
    good_slopes: bool = True
    _known: dict[float, MovingFits] = field(default_factory=dict, repr=False)

    def at(self, beta: float) -> MovingFits:
        """Return the fits, and how they move with that of all rows; the latest are remembered."""
        if beta not in self._known:
            found = self._moving(beta)
            most = max(2, MOST_REMEMBERED // (2 * found.now.curvature.size))
            if len(self._known) >= most:
                del self._known[next(iter(self._known))]
            self._known[beta] = found
        return self._known[beta]

    def law(self, fold: int, beta: float) -> Law:
        """Return the Gaussian without a fold, and its movement."""
        fits, one = self.at(beta), slice(fold, fold + 1)
        mean, curvature = (part[one] for part in fits.now)
        d_mean, d_curvature = (
            (after[one] - before[one]) / fits.step
            for after, before in zip(fits.ahead, fits.now, strict=True)
        )
        d_precision = curvature + fits.beta * d_curvature
        if self.approximation.diagonal:
            variance = 1 / (1 + fits.beta * curvature)
            return DiagonalLaw(mean, variance, d_mean, -(variance**2) * d_precision)
        root = inverse_root(np.eye(mean.shape[1]) + fits.beta * curvature)
        return FullLaw(mean, root, d_mean, d_precision)

    @cached_property
    def _whole(self) -> Path:
        return Path(self.approximation.system(self.rows.once), tolerance=LAST_STEP)

    def _moving(self, beta: float) -> MovingFits:
        found, system = self._whole.at(beta), self._whole.system
        step = small_step(system, beta)
        here, there = (
            system.gaussian(found.x + move * found.tangent, beta + move) for move in (0.0, step)
        )
        now, others = self._left_out(here, beta)
        if self.good_slopes:
            ahead, _ = self._left_out(there, beta + step)
        else:
            ahead = self._carried(now, others, (here, there), beta, step)
        return MovingFits(beta, now, step, ahead)

    def _carried(
        self, now: Fits, others: Others, whole: tuple[Gaussian, Gaussian], beta: float, step: float
    ) -> Fits:
        """Carry the fits along with that of all rows.

        It moves by -H^-1 G, G the pull, and by what variances do to the mean, where fold k's moves
        by -H_k^-1 G_k, G_k the pull of the others at its own mean.
        """
        (u, root), (u_ahead, root_ahead) = whole
        prior = np.eye(u.shape[1])
        pull = others.pull + times(others.hessian, self._along(now.mean - u))
        own = symmetric_solver(prior + beta * others.hessian)(pull)
        mean_pull, mean_hessian = (part.mean(axis=0, keepdims=True) for part in others)
        common = symmetric_solver(prior + beta * mean_hessian)(mean_pull)
        mean = now.mean + (u_ahead - u) + step * self._back(common - own)
        if beta == 0:
            return Fits(mean, now.curvature)
        change = self._curvature(root_ahead, beta + step) - self._curvature(root, beta)
        return Fits(mean, now.curvature + change)

    def _curvature(self, root: Array, beta: float) -> Array:
        """From a covariance root to the curvature."""
        if self.approximation.diagonal:
            return (1 / root[0] ** 2 - 1) / beta
        inverse = np.linalg.inv(root[0])
        return (inverse.T @ inverse - np.eye(len(inverse))) / beta

    def _left_out(self, gaussian: Gaussian, beta: float) -> tuple[Fits, Others]:
        """Take each fold out of a fit of all rows."""
        rows, w, u = self.rows.once, self.rows.weights, self._along(gaussian[0])
        mean, variance = predictor_moments(rows, gaussian)
        force = self.approximation.forces(mean, variance, rows.y)
        pull = self._products(w * force.pull, self._means.Z)
        hessian = self._grams(w * force.hessian)
        left = symmetric_solver(np.eye(u.shape[1]) + beta * hessian)(u + beta * pull)
        mean = self._back(u - left)
        if self.approximation.diagonal:
            curvature = self._products(w * force.curvature, rows.squares)
        else:
            same = force.curvature is force.hessian
            curvature = hessian if same else self._grams(w * force.curvature)
        return Fits(mean, curvature), Others(pull, hessian)

    @cached_property
    def _means(self) -> Rows:
        """The rows along the axes of the means."""
        return self.rows.once.turned if self.approximation.diagonal else self.rows.once

    def _along(self, means: Array) -> Array:
        """Return means (m, k) along these axes."""
        return self.rows.once.along(means) if self.approximation.diagonal else means

    def _back(self, along: Array) -> Array:
        """Return means from those along the axes."""
        return self.rows.once.back(along) if self.approximation.diagonal else along

    def _products(self, values: Array, columns: Array) -> Array:
        """Sum the rows of columns, times values, over the other folds: (folds, k)."""
        return self._without(np.stack([values[fold] @ columns[fold] for fold in self.rows.folds]))

    def _grams(self, values: Array) -> Array:
        """Z' diag(values) Z over the other folds, (folds, k, k)."""
        Z = self._means.Z
        grams = [weighted_gram(Z[fold], values[None, fold]) for fold in self.rows.folds]
        return self._without(np.concatenate(grams))

    def _without(self, sums: Array) -> Array:
        """From sums over the rows of each fold to weighted ones over the others."""
        exponents = self.rows.exponents.reshape(-1, *[1] * (sums.ndim - 1))
        return exponents * (sums.sum(axis=0) - sums)
