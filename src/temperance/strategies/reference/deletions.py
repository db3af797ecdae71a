r"""What the deletion of one copy of each row shows, summed over rows, at every kappa.

With e_i the residual of row i at kappa, h_i its leverage and k_i = 1 - h_i, of one copy,

    sum_i h_i e_i^2 / k_i    and    sum_i h_i / k_i,

both over sum_i h_i, which the eigenvalues tell.  These two means are positive and vary little, and
all their poles lie at -1/lambda, lambda an eigenvalue of Z'WZ without one row, or a point between
two: few kappas determine them (:mod:`temperance.models.linear.fast.interpolant`).  The same rows,
each counted once, have the sums of leave-one-out at beta = kappa, which may come from the same
kappas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from temperance.models.linear.eigenbasis import Misfits
from temperance.models.linear.fast.decomposition import MODERATE
from temperance.models.linear.fast.deletion_sums import DeletionSums
from temperance.models.linear.fast.interpolant import (
    Interpolant,
    Variable,
    chebyshev_points,
    resolved,
)
from temperance.models.linear.fast.interpolated_sums import InterpolatedSums
from temperance.models.linear.fast.leave_one_out import LeaveOneOutMoments
from temperance.models.linear.moments import PredictionMoments, Sums
from temperance.models.linear.rows import MANY_ELEMENTS
from temperance.strategies.reference.row_basis import RowBasis
from temperance.strategies.reference.seen import Seen
from temperance.types import Array

VARY = 10.0  # by how much the means may vary
DROWNED = 1e-8  # of the largest residuals, below which an interpolated mean has no digits
MOST = 1e3  # times what is left that rows may explain, so that rounding leaves 12 digits of it


@dataclass(frozen=True, eq=False)
class SharedSums:
    """Sums of leave-one-out, and of the reference, of rows that both count once.

    Parameters
    ----------
    source : LeaveOneOutMoments
    together : DeletionSums
        Its sums of all rows.
    basis : RowBasis
    lowest : float
        The least kappa that the reference asks for.
    """

    source: LeaveOneOutMoments
    together: DeletionSums
    basis: RowBasis
    lowest: float

    def moments(self, beta: Array) -> Iterator[PredictionMoments]:
        """Yield the moments of each row's deletion."""
        return self.source.moments(beta)

    def sums(self, beta: Array, pairwise: bool) -> Iterator[Sums]:
        """Yield the sums of single rows, or of all."""
        if pairwise or self._interpolated is None:
            return self.source.sums(beta, pairwise)
        return iter([self._interpolated.at(beta, self.together.direct)])

    def floor(self, beta: Array) -> Iterator[Sums]:
        """Yield sums over all rows that are nowhere larger and cost no more."""
        if self._interpolated is None:
            return self.source.floor(beta)
        return iter([self._interpolated.at(beta, self.together.undeleted)])

    @property
    def lowest_interpolated(self) -> float:
        """Beta, or a little less, from which on few others determine the sums."""
        return self.source.lowest_interpolated

    @property
    def eigenvalues(self) -> tuple[float, float]:
        """Bounds on the eigenvalues of all training sets."""
        return self.source.eigenvalues

    @property
    def misfits(self) -> Misfits:
        """What decides at which betas the misfits of the training sets move."""
        return self.source.misfits

    @cached_property
    def _interpolated(self) -> InterpolatedSums | None:
        if self.interpolant is None:
            return None
        known, lowest = partial(self._known, self.interpolant), self.interpolant.variable.lowest
        return InterpolatedSums(known, lowest, self.together.exposure, self.source.plan.size)

    def _known(self, interpolant: Interpolant, beta: Array) -> Array:
        """Return square and spread of leave-one-out, and their slopes, shape (2, 2, betas)."""
        (square, _, mean), (d_square, _, d_mean) = interpolant.with_slope(beta)
        # The leverage of all rows is beta times total.
        shrunk = self.basis.lam * self.basis.shrinkage(beta)
        total, d_total = shrunk.sum(axis=1), -(shrunk**2).sum(axis=1)
        return np.array([[square, mean * total], [d_square, d_mean * total + mean * d_total]])

    @cached_property
    def interpolant(self) -> Interpolant | None:
        """Squares of leave-one-out, summed, then the two means, if it reaches the lowest kappa."""
        variable = self.together.variable_from(self.lowest)
        if variable is None or variable.lowest > self.lowest or not self._clear:
            return None
        return _interpolated(variable, self._values)

    @property
    def _clear(self) -> bool:
        """Whether what is left of the responses stands out from the rounding of all of them."""
        parts = self.together.leverages.decomposition
        return float(parts.projection @ parts.projection) < MOST * parts.remainder

    def _values(self, kappa: Array) -> Array:
        square, pull, left_out = np.zeros((3, len(kappa)))
        for error, leverage in self.together.fitted(kappa):
            inverse = np.reciprocal(1.0 - leverage)
            error *= inverse
            left_out += np.einsum("gi,gi->g", leverage, inverse)
            square += np.einsum("gi,gi->g", error, error)
            error *= error
            leverage -= leverage * leverage
            pull += np.einsum("gi,gi->g", error, leverage)
        total = self.basis.total_leverage(kappa)
        return np.array([square, pull / total, left_out / total])


@dataclass(frozen=True, eq=False)
class Deletions:
    """Means over rows that were seen, for kappas of an interval.

    Parameters
    ----------
    seen : Seen
    lowest, highest : float
        Ends of the interval.
    most : int
        How many kappas will be asked for: the more, the more an interpolation is worth.
    """

    seen: Seen
    lowest: float
    highest: float
    most: int

    def means(self, kappa: Array) -> Array:
        """Return both means, shape (2, kappas); the rows must not all be zero."""
        if self.shared is not None and self.shared.interpolant is not None:
            return self.shared.interpolant.at(kappa)[1:]
        if self._interpolant is not None:
            return self._interpolant.at(kappa)
        return self._direct(kappa)

    def row_noise(self, kappa: Array, weight: Array) -> Array:
        """Return e_i^2 / k_i of each row, averaged over kappas with weights, shape (n,)."""
        variable = self._variable
        if variable is not None:
            points = chebyshev_points(int(variable.size))
            basis = np.polynomial.chebyshev.chebvander(variable.at(kappa), len(points.x) - 1)
            noise, most = self._row_noise(variable.nodes, weight @ basis @ points.transform)
            # Residuals that nearly vanish at the likely kappas drown in the rounding of others.
            if noise.sum() >= DROWNED * most:
                return np.maximum(noise, 0.0)
        return self._row_noise(kappa, weight)[0]

    def _row_noise(self, kappa: Array, weight: Array) -> tuple[Array, float]:
        """Return sums over kappas of each row, and the sum over rows of the largest of each."""
        noise, most = np.empty(len(self.seen.counts)), 0.0
        for part, square, _, _ in studentised(self.seen, kappa):
            noise[part] = weight @ square
            most += float(square.max(axis=0).sum())
        return noise, most

    @cached_property
    def shared(self) -> SharedSums | None:
        """Leave-one-out's sums of the same rows, where it takes the same decomposition."""
        once = self.seen.once
        if once is None or once.deletion_sums is None:
            return None
        return SharedSums(once, once.deletion_sums, self.seen.basis, self.lowest)

    @cached_property
    def _interpolant(self) -> Interpolant | None:
        return self._variable and _interpolated(self._variable, self._direct)

    @cached_property
    def _variable(self) -> Variable | None:
        """The variable in which fewer kappas determine the means, if there is one."""
        basis = self.seen.basis
        if not len(basis.sigma) or basis.inputs.size <= MANY_ELEMENTS:
            return None
        least = float(basis.lam.min()) * self._least_kept
        most = float(basis.lam.max())
        variable = Variable.between(self.lowest, self.highest, least, most, VARY)
        return variable if variable.size <= self.most else None

    @cached_property
    def _least_kept(self) -> float:
        """Least k_i at any kappa: without a copy of its row an eigenvalue keeps as much of it."""
        if self.seen.basis.spans_rows:
            return 0.0
        least = 1.0
        for part, left in self.seen.basis.parts(0):
            leverage = np.einsum("ji,ji->i", left, left) / np.maximum(self.seen.counts[part], 1.0)
            least = min(least, 1.0 - float(leverage.max()))
        return max(least, 0.0)

    def _direct(self, kappa: Array) -> Array:
        means = np.zeros((2, len(kappa)))
        for _, square, leverage, undeleted in studentised(self.seen, kappa):
            means[0] += np.einsum("gi,gi->g", square, leverage)
            # A row that is all there is of a direction leaves nothing to compare with.
            np.divide(leverage, undeleted, out=leverage, where=undeleted > 0)
            means[1] += leverage.sum(axis=1)
        return means / self.seen.basis.total_leverage(kappa)


def _interpolated(variable: Variable, functions: Callable[[Array], Array]) -> Interpolant | None:
    """Pass polynomials through positive functions of kappa, if their points resolve them."""
    values = functions(variable.nodes)
    return Interpolant.through(variable, values) if resolved(variable, values) else None


def studentised(seen: Seen, kappa: Array) -> Iterator[tuple[slice, Array, Array, Array]]:
    r"""Yield e_i^2 / k_i, h_i and k_i of parts of the rows, (kappas, rows) each.

    A row of weight w is w rows, each with the w-th part of the leverage: h is that of all copies,
    e is the residual of one copy and k what its own leverage leaves.
    """
    basis, outside, weights = seen.basis, seen.outside, seen.counts
    shrinkage = basis.shrinkage(kappa)
    fit = shrinkage * seen.projection
    for part, left in basis.parts(4 * len(kappa)):
        square = fit @ left
        square += outside[part]
        square *= square
        lengths = left * left
        leverage = (kappa[:, None] * basis.lam * shrinkage) @ lengths
        if leverage.max(initial=0.0) < MODERATE:
            undeleted = 1 - leverage
        else:
            undeleted = shrinkage @ lengths
            if not basis.spans_rows:
                undeleted += np.maximum(1 - lengths.sum(axis=0), 0.0)
        if basis.weighted:
            single = np.minimum(weights[part], 1.0) / weights[part]
            undeleted = 1 - single + single * undeleted
            square /= weights[part]
        np.divide(square, undeleted, out=square, where=undeleted > 0)
        square[undeleted <= 0] = 0.0
        yield part, square, leverage, undeleted
