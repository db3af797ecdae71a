r"""The reference risk from sums over rows.

A few rows with the second moments of all give the posterior of the reference's scales.  Single rows
enter by three means only: two over their deletions at each likely kappa
(:mod:`temperance.strategies.reference.deletions`), and the fourth moments of Ledoit and Wolf's
intensity (:mod:`temperance.strategies.reference.new_rows`).  All three are sums over rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from temperance.curves import RiskCurve
from temperance.data import Array, Data, batches
from temperance.models import GaussianLinear, NormalInverseGammaLinear
from temperance.models.linear.eigenbasis import Eigenbasis
from temperance.models.linear.fast import choose
from temperance.models.linear.fast.decomposition import MODERATE
from temperance.models.linear.noise import NoiseModel
from temperance.models.linear.plain import plain_curve
from temperance.models.linear.rows import rows_of
from temperance.strategies.reference.deletions import Deletions
from temperance.strategies.reference.linear import reference_rows
from temperance.strategies.reference.new_rows import COMPARED, left_out_intensity
from temperance.strategies.reference.scales import (
    AroundKnownVariance,
    ScalePrior,
    Scales,
    UnknownVariance,
    likely_scales,
)
from temperance.strategies.reference.seen import ObservedRows, observed_rows
from temperance.streaming.row_losses import BATCH, Other, Whitening


@dataclass(frozen=True, eq=False)
class ReferenceSums(Other):
    """Sums over rows at some kappas, and of fourth moments of the inputs.

    Parameters
    ----------
    whitening : Whitening
    basis : Eigenbasis
        Of all rows.
    kappa : array of shape (k,)
    squares : array of shape (d,)
        Mean squares of the columns; 1 for columns of zeros.
    """

    whitening: Whitening
    basis: Eigenbasis
    kappa: Array
    squares: Array

    def __call__(self, data: Data) -> Array:
        """Return sum h e^2/k and sum h/k at each kappa, and sum_{i != j} x_i^2 x_j^2."""
        total = np.zeros(2 * len(self.kappa) + 1)
        for part in batches(len(data), data.X.shape[1] + 6 * len(self.kappa), BATCH):
            some = Data(data.X[part], data.y[part], data.weights[part])
            squares = some.X**2 / self.squares
            lengths = squares.sum(axis=1)
            total[-1] += some.weights @ (lengths**2 - (squares**2).sum(axis=1))
            total[:-1] += np.concatenate(self._deletions(some))
        return total

    def _deletions(self, data: Data) -> tuple[Array, Array]:
        Z, r = self.whitening.rows(data.X, data.y)
        lam, weights = self.basis.sigma[0] ** 2, data.weights[:, None]
        shrinkage = 1 / (1 + np.multiply.outer(lam, self.kappa))
        cross = self.basis.projection[0] * self.basis.sigma[0]
        along = Z @ self.basis.vectors[0]
        error = r[:, None] - along @ (self.kappa * cross[:, None] * shrinkage)
        leverage = weights * (along**2 @ (self.kappa * shrinkage))
        slack = 1 - leverage
        high = leverage.max(axis=1) >= MODERATE
        if high.any():  # the same without a difference that cancels
            inverse = np.divide(1.0, lam, out=np.zeros_like(lam), where=lam > 0)
            lengths = weights[high] * along[high] ** 2 * inverse
            slack[high] = lengths @ shrinkage + np.maximum(
                1 - lengths.sum(axis=1, keepdims=True), 0.0
            )
        single = np.minimum(weights, 1.0) / weights
        slack = 1 - single + single * slack
        known = slack > 0
        square = np.divide(error**2, slack, out=np.zeros_like(slack), where=known)
        alone = np.divide(leverage, slack, out=leverage.copy(), where=known)
        return (square * leverage).sum(axis=0), alone.sum(axis=0)


@dataclass(frozen=True, eq=False)
class KnownDeletions(Deletions):
    """Means over deletions that were summed up at some kappas."""

    kappa: Array
    values: Array

    def means(self, kappa: Array) -> Array:
        """Return both means, shape (2, kappas)."""
        return self.values[:, np.searchsorted(self.kappa, kappa)]


@dataclass(frozen=True, eq=False)
class ReferenceStatistics:
    """What the first pass says about the reference, and what the second must add up."""

    observed: ObservedRows
    scales: Scales
    data: Data
    sums: ReferenceSums

    @classmethod
    def of(
        cls,
        model: GaussianLinear | NormalInverseGammaLinear,
        data: Data,
        basis: Eigenbasis,
        whitening: Whitening,
    ) -> Self:
        """Return the statistics of a few rows with the second moments of all."""
        prior = model.prior(data.X.shape[1])
        scale_prior: ScalePrior = AroundKnownVariance()
        if isinstance(model, NormalInverseGammaLinear):
            scale_prior = UnknownVariance()
            observed = observed_rows(
                data.X, data.y, data.weights, prior, expected_variance=model.b / model.a
            )
        else:
            observed = observed_rows(data.X, data.y, data.weights, prior, model.noise_variance)
        scales = likely_scales(observed.spectrum, scale_prior)
        kappa = np.unique(np.concatenate([scales.kappa, COMPARED]))
        squares = data.weights @ data.X**2 / data.size
        sums = ReferenceSums(whitening, basis, kappa, np.where(squares > 0, squares, 1.0))
        return cls(observed, scales, data, sums)

    def curve(self, sums: Array, noise: NoiseModel) -> RiskCurve:
        """Return the risk that the reference expects, from the sums over rows."""
        kappa, fourths = self.sums.kappa, float(sums[-1]) / self.data.size
        values = sums[:-1].reshape(2, -1)
        if len(self.observed.basis.sigma):
            values = values / self.observed.basis.total_leverage(kappa)
        deletions = KnownDeletions(
            self.observed, float(kappa.min()), float(kappa.max()), len(kappa), kappa, values
        )

        def intensity(deletions: Deletions, axes: Array, outside: Array) -> float:
            """Return Ledoit and Wolf's intensity, or a smaller one if left-out rows suggest it."""
            plain = self._plain_intensity(fourths)
            basis = self.observed.basis
            if not len(basis.sigma):
                return plain
            seen = basis.total_leverage(COMPARED) / self.data.size
            left_out = deletions.means(COMPARED)[1] * seen
            along = basis.variance(axes, outside, COMPARED).mean(axis=0)
            return min(left_out_intensity(seen, along, left_out), plain)

        rows, plan = reference_rows(deletions, self.scales, self.data.weights, "gibbs", intensity)
        fresh = rows_of(rows)
        return choose(fresh, plan, noise, "gibbs") or plain_curve(fresh, plan, noise, "gibbs")

    def _plain_intensity(self, fourths: float) -> float:
        """Return Ledoit and Wolf's intensity; see ``new_rows.shrinkage_intensity``."""
        X, size, unit = self.data.X, self.data.size, np.sqrt(self.sums.squares)
        correlations = (X.T * self.data.weights) @ X / size / unit / unit[:, None]
        np.fill_diagonal(correlations, 0.0)
        squares = float((correlations**2).sum())
        if squares <= np.finfo(float).eps * len(unit) ** 2:
            return 0.0
        return float(np.clip((fourths - squares) / (size * squares), 0.0, 1.0))
