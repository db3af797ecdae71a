r"""The predictive distribution of a linear reference model for a new observation, as rows.

The Gibbs losses of linear models are quadratic in a row, so that a new observation enters by its
second moments alone.  With A the second moment of its inputs, m and V the reference posterior's
mean and covariance of the coefficients, and s its noise variance, these are

    E zz' = A,    E zy = A m,    E y^2 = m'A m + tr(A V) + s.

The rows returned here have exactly these moments; a risk curve on them is the reference risk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from temperance.curves import ReferenceCurve
from temperance.data import Array, Risk, batches
from temperance.models.linear.fast import choose, summed_curve
from temperance.models.linear.grams import triangle_of_gram
from temperance.models.linear.noise import NoiseModel
from temperance.models.linear.plain import plain_curve
from temperance.models.linear.rows import CACHED, rows_of
from temperance.plans import LeaveOneOutPlan, Plan
from temperance.posteriors.covariance_root import squares_across
from temperance.strategies.reference.deletions import Deletions
from temperance.strategies.reference.new_rows import (
    careful_intensity,
    deletions_for,
    noise_at_leverage,
)
from temperance.strategies.reference.row_basis import RowBasis
from temperance.strategies.reference.scales import ScalePrior, Scales, likely_scales
from temperance.strategies.reference.seen import ObservedRows

Intensity = Callable[[Deletions, Array, Array], float]


@dataclass(frozen=True, eq=False)
class Reference:
    """Mean and covariance of the reference posterior in an eigenbasis, and its noise variance.

    Parameters
    ----------
    basis : RowBasis
        Basis of the observed rows.
    mean, variance : arrays of shape (rank,)
        Mean of the coefficients, and their variance within each scale, averaged over scales.
    means : array of shape (scales, rank)
        Mean at each scale minus the overall mean, times the square root of the scale's weight.
    prior_variance : float
        Variance in directions outside the span of the rows.
    noise : float
        Expected noise variance s.
    """

    basis: RowBasis
    mean: Array
    variance: Array
    means: Array
    prior_variance: float
    noise: float

    def location(self, rows: Array) -> Array:
        """Return z'm of rows (m, k)."""
        return rows @ (self.basis.directions @ self.mean)

    def predictor_variance(self, rows: Array, across: Array) -> Array:
        """Return z'V z of rows (m, k) whose part outside the coordinates has length ``across``."""
        inside, outside = self.basis.resolve(rows, across)
        return (
            inside**2 @ self.variance
            + ((inside @ self.means.T) ** 2).sum(axis=1)
            + self.prior_variance * outside
        )


def linear_reference(observed: ObservedRows, scales: Scales, phi: float) -> Reference:
    """Return the posterior of the reference model, given whitened rows in units of the noise.

    The noise is larger by the factor phi at rows of high leverage.
    """
    basis = observed.basis
    # phi enters as phi / kappa in place of 1 / kappa.
    precision = phi / scales.kappa[:, None] + basis.lam
    means = basis.sigma * observed.projection / precision
    mean = scales.weight @ means
    return Reference(
        basis,
        mean,
        (scales.weight * scales.noise) @ (phi / precision),
        np.sqrt(scales.weight)[:, None] * (means - mean),
        float(scales.weight @ (scales.noise * scales.kappa)),
        float(scales.weight @ scales.noise),
    )


def reference_risk_curve(
    observed: ObservedRows,
    weights: Array,
    scale_prior: ScalePrior,
    noise: NoiseModel,
    risk: Risk,
    intensity: Intensity = careful_intensity,
) -> ReferenceCurve:
    """Return the risk curve expected by the reference; see :func:`reference_rows`."""
    scales = likely_scales(observed.spectrum, scale_prior)
    deletions = deletions_for(observed, scales)
    rows, plan = reference_rows(deletions, scales, weights, risk, intensity)
    fresh = rows_of(rows)
    curve = choose(fresh, plan, noise, risk) or plain_curve(fresh, plan, noise, risk)
    left_out = None
    if deletions.shared is not None and np.all(weights == 1):
        each = LeaveOneOutPlan(weights)
        left_out = summed_curve(deletions.shared, noise, risk, observed.rows, each)
    return ReferenceCurve(
        curve.evaluate,
        curve.rows,
        curve.method,
        curve.costly,
        scale=curve.scale,
        left_out=left_out,
    )


def reference_rows(
    deletions: Deletions,
    scales: Scales,
    weights: Array,
    risk: Risk,
    intensity: Intensity = careful_intensity,
) -> tuple[Array, Plan]:
    r"""Return whitened rows [Z r], training rows first, then new observations, and their plan.

    The second moment of a new row is ``(1 - rho) Z'Z/n + rho diag(Z'Z/n)``: it is one of the
    observed rows or a row along an axis.  Its response takes one of two values, which have the
    right moments; at observed rows the noise is that of their own residuals, scaled to the expected
    mean.  The Gibbs risk depends on second moments only, so fewer rows replace the observed ones,
    in training as well.

    Parameters
    ----------
    deletions : Deletions
        Of the observed rows.
    scales : Scales
        Posterior of the reference's scales.
    weights : array of shape (n,)
        Weight of each row in the posterior whose risk is estimated.
    risk : {"gibbs", "predictive"}
    intensity : function
        Returns rho.
    """
    observed = deletions.observed
    reference = linear_reference(observed, scales, noise_at_leverage(deletions, scales))
    axes, outside = _along_axes(observed)
    rho = intensity(deletions, axes, outside)
    train, trained = _training(observed, weights, risk)
    old, share, noise = _observed_again(deletions, scales, reference, risk)
    inside = np.concatenate([old, axes])
    across = np.concatenate([np.zeros(len(old)), outside])
    location = reference.location(inside)
    noise = np.concatenate([noise, np.full(len(axes), reference.noise)])
    deviation = np.sqrt(reference.predictor_variance(inside, across) + noise)
    fresh = inside
    if across.any():  # one more coordinate, zero in all training rows
        fresh, train = np.column_stack([inside, across]), np.insert(train, -1, 0.0, axis=1)
    rows = np.concatenate(
        [
            train,
            np.column_stack([fresh, location - deviation]),
            np.column_stack([fresh, location + deviation]),
        ]
    )
    test = np.tile(np.concatenate([(1 - rho) * share, np.full(len(axes), rho / len(axes))]), 2) / 2
    return rows, Plan(
        np.concatenate([trained, np.zeros(len(test))])[None],
        np.concatenate([np.zeros(len(train)), test])[None],
        float(weights.sum()),
    )


def _training(observed: ObservedRows, weights: Array, risk: Risk) -> tuple[Array, Array]:
    """Return rows [Z r] with the second moments of the weighted observed rows, and weights."""
    rows = None
    if risk == "gibbs" and 0 < len(observed.basis.sigma) < len(weights):
        if np.array_equal(weights, observed.counts):
            rows = observed.basis.condensed(observed.projection, observed.remainder)
        else:
            rows = triangle_of_gram(observed.rows.gram(weights=weights))
    if rows is None:
        return np.column_stack([observed.coordinates, observed.rows.response]), weights
    equal = np.full(len(rows), float(weights.sum()) / len(rows))
    return rows / np.sqrt(equal)[:, None], equal


def _observed_again(
    deletions: Deletions, scales: Scales, reference: Reference, risk: Risk
) -> tuple[Array, Array, Array]:
    """Return rows in place of the observed ones, their shares, and the noise at each."""
    observed = deletions.observed
    basis, counts = observed.basis, observed.counts
    rank, share = len(basis.sigma), counts / counts.sum()
    if risk == "gibbs" and 0 < rank < len(counts):
        rows = np.sqrt(rank / counts.sum()) * basis.sigma[:, None] * basis.directions.T
        return rows, np.full(rank, 1 / rank), np.full(rank, reference.noise)
    noise = deletions.row_noise(scales.kappa, scales.weight)
    mean = float(share @ noise)
    noise = noise * (reference.noise / mean) if mean > 0 else np.full(len(counts), reference.noise)
    return observed.coordinates, share, noise


def _along_axes(observed: ObservedRows) -> tuple[Array, Array]:
    """Return rows sqrt(d a_j) e_j'L along the axes, in the coordinates of the observed rows.

    Also the lengths of their parts outside these coordinates.
    """
    squares, prior = observed.mean_squares, observed.prior
    d = len(squares)
    length = np.sqrt(d * squares)
    if observed.along is None:
        return length[:, None] * prior.unwhiten(np.eye(d)), np.zeros(d)
    if prior.root.ndim == 1:
        length = length * prior.root
        return length[:, None] * observed.along, length * np.sqrt(squares_across(observed.along))
    inside, outside = np.empty(observed.along.shape), np.empty(d)
    for part in batches(d, d, 8 * CACHED):  # in batches: the matrix is d x d
        axes = length[part, None] * prior.rows(part)
        inside[part] = axes @ observed.along
        outside[part] = np.linalg.norm(axes - inside[part] @ observed.along.T, axis=1)
    return inside, outside
