r"""The rows that a linear reference learns from, and what it asks of them as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from temperance.models.linear.fast.decomposition import Decomposition
from temperance.models.linear.fast.leave_one_out import LeaveOneOutMoments
from temperance.models.linear.rows import WhitenedRows, rescaled, whitened_rows
from temperance.models.linear_predictor import GaussianPrior
from temperance.strategies.reference.row_basis import RowBasis, mean_squares, second_moments
from temperance.strategies.reference.scales import Spectrum
from temperance.types import Array, LeaveOneOutPlan


@dataclass(frozen=True, eq=False)
class Seen:
    """Rows that were seen, before and after whitening.

    Parameters
    ----------
    Z : array of shape (n, d)
        Rows in any unit.
    counts : array of shape (n,)
        How many observations each row is for the reference.
    prior : GaussianPrior
    rows : Rows
        The same, whitened, in units of the noise and in the coordinates of their span.
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
    def once(self) -> LeaveOneOutMoments | None:
        """Leave-one-out of the rows, if each counts once: it is then the reference's own."""
        if np.any(self.counts != 1):
            return None
        return LeaveOneOutMoments(self.rows, LeaveOneOutPlan(self.counts))

    @property
    def _known(self) -> Decomposition | None:
        """What leave-one-out knows of them."""
        return None if self.once is None else self.once.from_gram

    @cached_property
    def basis(self) -> RowBasis:
        """RowBasis of the whitened rows."""
        rows, known = self.rows, self._known
        if known:
            directions = known.factor * known.sigma / rows.scale[:, None]
            return RowBasis(rows.inputs, known.factor, known.sigma, directions, self.counts)
        return RowBasis.of(self.coordinates, self.counts, self._gram)

    @cached_property
    def projection(self) -> Array:
        """Projections of the responses on the basis, shape (rank,)."""
        return self._known.projection if self._known else self.basis.project(self.rows.response)

    @cached_property
    def outside(self) -> Array:
        """What of the responses lies outside the basis, shape (n,)."""
        return self.basis.outside(self.rows.response, self.projection)

    @cached_property
    def remainder(self) -> float:
        """Square of what lies outside."""
        return self._known.remainder if self._known else float(self.outside @ self.outside)

    @property
    def spectrum(self) -> Spectrum:
        """What the rows say of the scales."""
        size = float(self.counts.sum())
        return Spectrum(self.basis.lam, self.projection, self.remainder, size)

    @property
    def coordinates(self) -> Array:
        """The whitened rows, shape (n, k)."""
        rows = self.rows
        return rows.inputs if np.all(rows.scale == 1) else rows.inputs * rows.scale

    @cached_property
    def moments(self) -> Array | None:
        """Mean of zz' before whitening, shape (d, d); nothing for fewer rows than columns."""
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
        if self.moments is None:
            squares = mean_squares(self.Z, self.counts / self.counts.sum())
        else:
            squares = np.diag(self.moments)
        return squares / self.noise_variance

    @cached_property
    def _gram(self) -> Array | None:
        """Second moments of the whitened rows, shape (k, k)."""
        if len(self.Z) < self.Z.shape[1]:
            return None
        weights = None if self.once else self.counts
        both = self.rows.second_moments if weights is None else self.rows.gram(weights=weights)
        return both[:-1, :-1]


def seen_rows(
    Z: Array,
    y: Array,
    counts: Array,
    prior: GaussianPrior,
    noise_variance: float = 1.0,
    expected_variance: float | None = None,
) -> Seen:
    """Whiten the rows that were seen."""
    Z, prior = rescaled(Z, prior.graded(Z))
    rows, along = whitened_rows(Z, y, prior, noise_variance, expected_variance)
    return Seen(Z, counts, prior, rows, along, noise_variance)
