r"""Leave-one-out of many rows: one fit of all of them, and a Newton step that takes each row out.

With the partial derivatives psi_mu, psi_v ... of expected losses L(mu, v), c = beta w,
H = I + Z' diag(c psi_mumu) Z and h_i = z_i'H^-1 z_i, a Newton step for the mean without row i, from
the solution with it, moves the row's predictor to

    mu_i + c_i psi_mu h_i / (1 - c_i psi_mumu h_i);

the precision loses 2 c_i psi_v z_i z_i', which leaves the variance

    v_i / (1 - 2 c_i psi_v v_i),    or    sum_j z_ij^2 / (1/t_j - 2 c_i psi_v z_ij^2)

when it is diag(1/t).  What the mean's step does to the variances and theirs to the mean is left
out: like the step's own error it is of the order 1/n^2.  The few rows that move far are refitted.

References
----------
.. [1] K. R. Rad, A. Maleki, A scalable estimate of the out-of-sample prediction error via
   approximate leave-one-out cross-validation, JRSS B 82, 2020.
.. [2] R. Giordano, W. Stephenson, R. Liu, M. Jordan, T. Broderick, A Swiss army infinitesimal
   jackknife, AISTATS 2019.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from temperance.curves import RiskCurve, curve_of_tested
from temperance.data import Array, Risk, batches
from temperance.losses.base import Predictor
from temperance.models.glm.fast.pairs import Part, Path
from temperance.models.glm.fast.shared_rows import shared_rows
from temperance.models.glm.gaussians import (
    CACHED,
    inverse_root,
    predictor_moments,
    squared_lengths,
    weighted_gram,
)
from temperance.models.glm.newton import Approximation, small_step
from temperance.models.glm.rows import Rows
from temperance.plans import LeaveOneOut

FAR = 0.5  # movement of a predictor that a Newton step does not describe well
MOST_REFITS = 32
LEAST = 0.5  # of what is left in exact arithmetic; a little below beta = 0 it may be less
BAYES = 1.0  # the beta at which it is decided which rows are refitted


def left_out_risk_curve(
    rows: Rows, plan: LeaveOneOut, risk: Risk, approximation: Approximation
) -> RiskCurve:
    """Curve of whitened rows."""
    weighted = rows.weighted(plan.weights[None])
    losses = LeftOutLosses(plan.exponents, risk, weighted, approximation)
    n, method = len(rows.y), f"{approximation.loss.method}, rows left out by one Newton step"
    return curve_of_tested(losses, np.arange(n), plan.weights, n, method)


@dataclass(frozen=True, eq=False)
class NewtonLeaveOneOut(ABC):
    """Loss of each row under the approximation without it, at beta times the row's exponent."""

    exponents: Array
    risk: Risk

    def __call__(self, beta: float) -> tuple[Array, Array]:
        """Return the losses and their slopes, (n,)."""
        low, high = float(self.exponents.min()), float(self.exponents.max())
        value, slope = self._by_newton(low * beta)
        slope *= low
        if high > low:
            # Exponents are close to one another, unless a row outweighs many: losses are linear.
            share = (self.exponents - low) / (high - low)
            other, rise = self._by_newton(high * beta)
            value += share * (other - value)
            slope += share * (high * rise - slope)
        for row, part in self._refits:
            exponent = float(self.exponents[row])
            found, rise = part.losses(exponent * beta, self.risk)
            value[row], slope[row] = found[0, 0], exponent * rise[0, 0]
        return value, slope

    @property
    @abstractmethod
    def path(self) -> Path:
        """The fits of all rows along beta."""

    @abstractmethod
    def moved(self, x: Array, beta: float) -> Array:
        """Return how far leaving it out moves each row's predictor, (n,), from the fit x."""

    @abstractmethod
    def without(self, row: int) -> Part:
        """Return the fits of all other rows along beta, and the row that they test."""

    @abstractmethod
    def moments(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return mean and covariance of each row's predictor, without that row."""

    @abstractmethod
    def losses(self, moments: tuple[Array, Array], rises: Sequence[Array]) -> tuple[Array, Array]:
        """Return losses and slopes, (n,), from moments and their derivatives in beta."""

    @cached_property
    def _refits(self) -> list[tuple[int, Part]]:
        """The rows that move farthest at beta = 1, each with the path of the others."""
        found = self.path.at(BAYES)
        moved = self.moved(found.x, found.beta)
        farthest = np.argsort(-moved, kind="stable")[:MOST_REFITS]
        return [(int(row), self.without(int(row))) for row in farthest if moved[row] > FAR]

    def _by_newton(self, beta: float) -> tuple[Array, Array]:
        """Return losses and slopes; the moments move with the solution along its tangent."""
        found = self.path.at(beta)
        step = small_step(self.path.system, found.beta)
        here, ahead, behind = (
            self.moments(found.x + move * found.tangent, found.beta + move)
            for move in (0.0, step, -step)
        )
        rises = [(after - before) / (2 * step) for after, before in zip(ahead, behind, strict=True)]
        return self.losses(here, rises)


@dataclass(frozen=True, eq=False)
class LeftOutLosses(NewtonLeaveOneOut):
    """Losses of rows with one predictor each."""

    rows: Rows
    approximation: Approximation

    @cached_property
    def path(self) -> Path:
        """The fits of all rows along beta."""
        return Path(self.approximation.system(self.rows))

    def moved(self, x: Array, beta: float) -> Array:
        """Return how far leaving it out moves each row's predictor, (n,), from the fit x."""
        mean, _ = self.moments(x, beta)
        coefficients = self.path.system.gaussian(x, beta)[0][0]
        return np.abs(mean - self.rows.offset - self.rows.Z @ coefficients)

    def without(self, row: int) -> Part:
        """Return the fits of all other rows along beta, and the row that they test."""
        weights = self.rows.weights.copy()
        weights[:, row] = 0.0
        system = self.approximation.system(shared_rows(self.rows, slice(None), weights))
        tested = slice(row, row + 1)
        return Part(Path(system, MOST_REFITS), self.rows, tested, self.approximation.loss)

    def moments(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return mean and variance of each row's predictor, without that row, (n,) each."""
        return left_out(self.rows, self.path.system.gaussian(x, beta), self.approximation, beta)

    def losses(self, moments: tuple[Array, Array], rises: Sequence[Array]) -> tuple[Array, Array]:
        """Return losses and slopes, (n,), from moments and their derivatives in beta."""
        return self.approximation.loss.risk(Predictor(*moments, *rises), self.rows.y, self.risk)


def left_out(
    rows: Rows, gaussian: tuple[Array, Array], approximation: Approximation, beta: float
) -> tuple[Array, Array]:
    """Return mean and variance of each row's predictor, (n,), without that row.

    The Gaussian of all rows has a mean (1, k) and a covariance root (1, k, k), or (1, k).
    """
    diagonal = approximation.diagonal
    # Leverages are the same along any axes.
    Z, c = (rows.turned if diagonal else rows).Z, beta * rows.weights[0]
    mean, variance = predictor_moments(rows, gaussian)
    force = approximation.forces(mean, variance, rows.y)
    hessian = np.eye(Z.shape[1]) + weighted_gram(Z, (c * force.hessian)[None])
    h = squared_lengths(Z, inverse_root(hessian))[0]
    mean = mean + c * force.pull * h / _kept(c * force.hessian, h, rows.lengths)
    lost = c * force.curvature
    if not diagonal:
        return mean, variance / _kept(lost, variance, rows.lengths)
    variances = gaussian[1][0] ** 2
    for part in batches(len(Z), Z.shape[1], budget=CACHED):
        squares = rows.squares[part]
        # The prior's precision is left in any case.
        precision = np.maximum(1 / variances - lost[part, None] * squares, LEAST)
        variance[part] = (squares / precision).sum(axis=1)
    return mean, variance


def _kept(lost: Array, variance: Array, prior: Array) -> Array:
    """Return 1 - lost variance, the share of a row's precision that the others and the prior give.

    It is 1 / (1 + lost g) for the variance g without the row, at most the prior's: where the row
    gives nearly all, rounding must not take more.
    """
    return np.maximum(1 - lost * variance, LEAST / (1 + lost * prior))
