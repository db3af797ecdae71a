r"""The observed rows of a linear reference model, and statistics of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from temperance.data import Array
from temperance.models.linear.fast.decomposition import Decomposition
from temperance.models.linear.fast.leave_one_out import LeaveOneOutMoments
from temperance.models.linear.rows import WhitenedRows, rescaled, whitened_rows
from temperance.models.linear_predictor import GaussianPrior
from temperance.plans import LeaveOneOutPlan
from temperance.strategies.reference.row_basis import RowBasis, mean_squares, second_moments
from temperance.strategies.reference.scales import Spectrum


@dataclass(frozen=True, eq=False)
class ObservedRows:
    """Observed rows, before and after whitening.

    Parameters
    ----------
    Z : array of shape (n, d)
        Rows in any unit.
    counts : array of shape (n,)
        Number of observations that each row is for the reference.
    prior : GaussianPrior
    rows : Rows
        The same rows, whitened, in units of the noise and in the coordinates of their span.
    along : array of shape (d, k), or None
        The basis of that span; see :func:`temperance.models.linear.rows.whitened_rows`.
    noise_variance : float
        Square of the unit of the noise.
    """

    Z: Array
    counts: Array
    prior: GaussianPrior
    rows: WhitenedRows
    along: Array | None
    noise_variance: float

    @cached_property
    def leave_one_out(self) -> LeaveOneOutMoments | None:
        """Leave-one-out of the rows, if each counts once; None otherwise."""
        if np.any(self.counts != 1):
            return None
        return LeaveOneOutMoments(self.rows, LeaveOneOutPlan(self.counts))

    @property
    def _decomposition(self) -> Decomposition | None:
        """Decomposition that leave-one-out uses, if it comes from a Gram matrix."""
        return None if self.leave_one_out is None else self.leave_one_out.from_gram

    @cached_property
    def basis(self) -> RowBasis:
        """Eigenbasis of the whitened rows."""
        rows, decomposition = self.rows, self._decomposition
        if decomposition:
            directions = decomposition.factor * decomposition.sigma / rows.scale[:, None]
            return RowBasis(
                rows.inputs, decomposition.factor, decomposition.sigma, directions, self.counts
            )
        return RowBasis.of(self.coordinates, self.counts, self._gram)

    @cached_property
    def projection(self) -> Array:
        """Projections of the responses on the basis, shape (rank,)."""
        return (
            self._decomposition.projection
            if self._decomposition
            else self.basis.project(self.rows.response)
        )

    @cached_property
    def outside(self) -> Array:
        """Part of the responses outside the basis, shape (n,)."""
        return self.basis.residual_of(self.rows.response, self.projection)

    @cached_property
    def remainder(self) -> float:
        """Squared length of the part outside."""
        return (
            self._decomposition.remainder
            if self._decomposition
            else float(self.outside @ self.outside)
        )

    @property
    def spectrum(self) -> Spectrum:
        """Statistics that determine the posterior of the scales."""
        size = float(self.counts.sum())
        return Spectrum(self.basis.lam, self.projection, self.remainder, size)

    @property
    def coordinates(self) -> Array:
        """The whitened rows, shape (n, k)."""
        rows = self.rows
        return rows.inputs if np.all(rows.scale == 1) else rows.inputs * rows.scale

    @cached_property
    def second_moments(self) -> Array | None:
        """Mean of zz' before whitening, shape (d, d); None for fewer rows than columns."""
        if self._gram is None:
            return None
        share = self.counts / self.counts.sum()
        if self.prior.root.ndim > 1:
            return second_moments(self.Z, share)
        unit = np.sqrt(self.counts.sum()) * self.rows.scale
        return self._gram / unit / unit[:, None]

    @property
    def mean_squares(self) -> Array:
        """Mean square of each column of Z, in units of the noise."""
        if self.second_moments is None:
            squares = mean_squares(self.Z, self.counts / self.counts.sum())
        else:
            squares = np.diag(self.second_moments)
        return squares / self.noise_variance

    @cached_property
    def _gram(self) -> Array | None:
        """Second moments of the whitened rows, shape (k, k)."""
        if len(self.Z) < self.Z.shape[1]:
            return None
        weights = None if self.leave_one_out else self.counts
        both = self.rows.second_moments if weights is None else self.rows.gram(weights=weights)
        return both[:-1, :-1]


def observed_rows(
    Z: Array,
    y: Array,
    counts: Array,
    prior: GaussianPrior,
    noise_variance: float = 1.0,
    expected_variance: float | None = None,
) -> ObservedRows:
    """Return the observed rows, whitened."""
    Z, prior = rescaled(Z, prior.graded(Z))
    rows, along = whitened_rows(Z, y, prior, noise_variance, expected_variance)
    return ObservedRows(Z, counts, prior, rows, along, noise_variance)
