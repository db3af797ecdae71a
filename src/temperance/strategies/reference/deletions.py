r"""Means over the deletions of one copy of each row, at every kappa.

With e_i the residual of row i at kappa, h_i its leverage and k_i = 1 - h_i, both of one copy,

    sum_i h_i e_i^2 / k_i    and    sum_i h_i / k_i,

both divided by sum_i h_i, which follows from the eigenvalues.  These two means are positive and
vary by a small factor.  All their poles lie at -1/lambda, where lambda is an eigenvalue of Z'WZ
without one row or lies between two of them, so that few kappas determine them
(:mod:`temperance.models.linear.fast.interpolant`).  If each row counts once, the sums of
leave-one-out at beta = kappa have the same form and may use the same kappas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from temperance.data import Array
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
from temperance.strategies.reference.seen import ObservedRows

VARIATION = 10.0  # assumed ratio of the largest to the smallest value of the means
LEAST_RESIDUAL = 1e-8  # share of the largest residuals; a smaller interpolated mean is rounding
MOST_EXPLAINED = 1e3  # ratio of explained to residual squares, up to which 12 digits remain


@dataclass(frozen=True, eq=False)
class SharedSums:
    """Sums of leave-one-out and of the reference, from the same kappas, if rows count once.

    Parameters
    ----------
    source : LeaveOneOutMoments
    deletion_sums : DeletionSums
        The sums of the source over all rows.
    basis : RowBasis
    lowest : float
        Smallest kappa that the reference needs.
    """

    source: LeaveOneOutMoments
    deletion_sums: DeletionSums
    basis: RowBasis
    lowest: float

    def moments(self, beta: Array) -> Iterator[PredictionMoments]:
        """Yield the moments of each row's deletion."""
        return self.source.moments(beta)

    def sums(self, beta: Array, pairwise: bool) -> Iterator[Sums]:
        """Yield the sums of single rows, or of all."""
        if pairwise or self._leave_one_out_sums is None:
            return self.source.sums(beta, pairwise)
        return iter([self._leave_one_out_sums.at(beta, self.deletion_sums.direct)])

    def floor(self, beta: Array) -> Iterator[Sums]:
        """Yield sums over all rows that are lower bounds and cost no more."""
        if self._leave_one_out_sums is None:
            return self.source.floor(beta)
        return iter([self._leave_one_out_sums.at(beta, self.deletion_sums.undeleted)])

    @property
    def lowest_interpolated(self) -> float:
        """Smallest beta covered by the interpolant, or a lower bound on it."""
        return self.source.lowest_interpolated

    @property
    def eigenvalues(self) -> tuple[float, float]:
        """Bounds on the eigenvalues of all training sets."""
        return self.source.eigenvalues

    @property
    def misfits(self) -> Misfits:
        """Quantities that determine at which betas the misfits of the training sets change."""
        return self.source.misfits

    @cached_property
    def _leave_one_out_sums(self) -> InterpolatedSums | None:
        if self.interpolant is None:
            return None
        sums, lowest = (
            partial(self._square_and_spread, self.interpolant),
            self.interpolant.variable.lowest,
        )
        return InterpolatedSums(sums, lowest, self.deletion_sums.exposure, self.source.plan.size)

    def _square_and_spread(self, interpolant: Interpolant, beta: Array) -> Array:
        """Return square and spread of leave-one-out, and their slopes, shape (2, 2, betas)."""
        (square, _, mean), (d_square, _, d_mean) = interpolant.with_slope(beta)
        # The total leverage of all rows is beta * total.
        shrunk = self.basis.lam * self.basis.shrinkage(beta)
        total, d_total = shrunk.sum(axis=1), -(shrunk**2).sum(axis=1)
        return np.array([[square, mean * total], [d_square, d_mean * total + mean * d_total]])

    @cached_property
    def interpolant(self) -> Interpolant | None:
        """Sum of squares of leave-one-out and the two means; None unless it covers ``lowest``."""
        variable = self.deletion_sums.variable_from(self.lowest)
        if variable is None or variable.lowest > self.lowest or not self._resolved:
            return None
        return _interpolant_through(variable, self._values)

    @property
    def _resolved(self) -> bool:
        """Whether the residual of the responses is much larger than their rounding error."""
        parts = self.deletion_sums.leverages.decomposition
        return float(parts.projection @ parts.projection) < MOST_EXPLAINED * parts.remainder

    def _values(self, kappa: Array) -> Array:
        square, weighted, left_out = np.zeros((3, len(kappa)))
        for error, leverage in self.deletion_sums.fitted(kappa):
            inverse = np.reciprocal(1.0 - leverage)
            error *= inverse
            left_out += np.einsum("gi,gi->g", leverage, inverse)
            square += np.einsum("gi,gi->g", error, error)
            error *= error
            leverage -= leverage * leverage
            weighted += np.einsum("gi,gi->g", error, leverage)
        total = self.basis.total_leverage(kappa)
        return np.array([square, weighted / total, left_out / total])


@dataclass(frozen=True, eq=False)
class Deletions:
    """Means over the deletions of the observed rows, for kappas in an interval.

    Parameters
    ----------
    observed : ObservedRows
    lowest, highest : float
        Ends of the interval.
    count : int
        Number of kappas that will be evaluated: interpolation pays only for many.
    """

    observed: ObservedRows
    lowest: float
    highest: float
    count: int

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
            # Residuals near zero at the likely kappas are lost in the rounding error of others.
            if noise.sum() >= LEAST_RESIDUAL * most:
                return np.maximum(noise, 0.0)
        return self._row_noise(kappa, weight)[0]

    def _row_noise(self, kappa: Array, weight: Array) -> tuple[Array, float]:
        """Return a weighted sum over kappas for each row, and the total of the rows' maxima."""
        noise, most = np.empty(len(self.observed.counts)), 0.0
        for part, square, _, _ in studentised(self.observed, kappa):
            noise[part] = weight @ square
            most += float(square.max(axis=0).sum())
        return noise, most

    @cached_property
    def shared(self) -> SharedSums | None:
        """Sums shared with leave-one-out, if it uses the same decomposition."""
        leave_one_out = self.observed.leave_one_out
        if leave_one_out is None or leave_one_out.deletion_sums is None:
            return None
        return SharedSums(
            leave_one_out, leave_one_out.deletion_sums, self.observed.basis, self.lowest
        )

    @cached_property
    def _interpolant(self) -> Interpolant | None:
        return self._variable and _interpolant_through(self._variable, self._direct)

    @cached_property
    def _variable(self) -> Variable | None:
        """Variable that interpolates the means from fewer kappas; None if there is no gain."""
        basis = self.observed.basis
        if not len(basis.sigma) or basis.inputs.size <= MANY_ELEMENTS:
            return None
        least = float(basis.lam.min()) * self._least_slack
        most = float(basis.lam.max())
        variable = Variable.between(self.lowest, self.highest, least, most, VARIATION)
        return variable if variable.size <= self.count else None

    @cached_property
    def _least_slack(self) -> float:
        """Lower bound of k_i over rows and kappas; it bounds eigenvalues after deletion as well."""
        if self.observed.basis.spans_rows:
            return 0.0
        least = 1.0
        for part, left in self.observed.basis.parts(0):
            leverage = np.einsum("ji,ji->i", left, left) / np.maximum(
                self.observed.counts[part], 1.0
            )
            least = min(least, 1.0 - float(leverage.max()))
        return max(least, 0.0)

    def _direct(self, kappa: Array) -> Array:
        means = np.zeros((2, len(kappa)))
        for _, square, leverage, slack in studentised(self.observed, kappa):
            means[0] += np.einsum("gi,gi->g", square, leverage)
            # A row that alone determines a direction has no other rows to compare with.
            np.divide(leverage, slack, out=leverage, where=slack > 0)
            means[1] += leverage.sum(axis=1)
        return means / self.observed.basis.total_leverage(kappa)


def _interpolant_through(
    variable: Variable, functions: Callable[[Array], Array]
) -> Interpolant | None:
    """Return interpolants of positive functions of kappa; None if the nodes do not resolve them."""
    values = functions(variable.nodes)
    return Interpolant.through(variable, values) if resolved(variable, values) else None


def studentised(
    observed: ObservedRows, kappa: Array
) -> Iterator[tuple[slice, Array, Array, Array]]:
    r"""Yield e_i^2 / k_i, h_i and k_i of batches of rows, (kappas, rows) each.

    A row of weight w is treated as w rows with 1/w of its leverage each: h is the leverage of all
    copies, e is the residual of one copy and k is one minus the leverage of one copy.
    """
    basis, outside, weights = observed.basis, observed.outside, observed.counts
    shrinkage = basis.shrinkage(kappa)
    fit = shrinkage * observed.projection
    for part, left in basis.parts(4 * len(kappa)):
        square = fit @ left
        square += outside[part]
        square *= square
        lengths = left * left
        leverage = (kappa[:, None] * basis.lam * shrinkage) @ lengths
        if leverage.max(initial=0.0) < MODERATE:
            slack = 1 - leverage
        else:
            slack = shrinkage @ lengths
            if not basis.spans_rows:
                slack += np.maximum(1 - lengths.sum(axis=0), 0.0)
        if basis.weighted:
            single = np.minimum(weights[part], 1.0) / weights[part]
            slack = 1 - single + single * slack
            square /= weights[part]
        np.divide(square, slack, out=square, where=slack > 0)
        square[slack <= 0] = 0.0
        yield part, square, leverage, slack
