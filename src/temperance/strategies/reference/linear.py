r"""What a linear reference model believes of a new observation, as weighted rows.

The Gibbs losses of linear models are quadratic in a row, so that a new observation enters by its
second moments alone.  With A the second moment of its inputs, m the reference posterior's mean of
the coefficients, V its covariance and s its noise variance, these are

    E zz' = A,    E zy = A m,    E y^2 = m'A m + tr(A V) + s.

The rows returned here have exactly these moments; a risk curve on them is the reference risk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from temperance.curves import ReferenceCurve
from temperance.models.linear.fast import choose, summed_curve
from temperance.models.linear.fast.grams import triangle_of_gram
from temperance.models.linear.noise import Noise
from temperance.models.linear.plain import plain_curve
from temperance.models.linear.rows import CACHED, rows_of
from temperance.posteriors.covariance_root import squares_across
from temperance.strategies.reference.deletions import Deletions
from temperance.strategies.reference.new_rows import (
    careful_intensity,
    deletions_for,
    noise_at_leverage,
)
from temperance.strategies.reference.row_basis import RowBasis
from temperance.strategies.reference.scales import Belief, Scales, likely_scales
from temperance.strategies.reference.seen import Seen
from temperance.types import Array, LeaveOneOutPlan, Plan, Risk, batches

Intensity = Callable[[Deletions, Array, Array], float]


@dataclass(frozen=True, eq=False)
class Reference:
    """Mean and covariance of the reference posterior in an eigenbasis, and its noise variance.

    Parameters
    ----------
    basis : RowBasis
        Of the rows that were seen.
    mean, variance : arrays of shape (rank,)
        Mean of the coefficients, and their variance within each scale, averaged over scales.
    means : array of shape (scales, rank)
        Mean at each scale less the overall mean, times the root of the scale's weight.
    prior_variance : float
        Variance in every direction that the rows do not span.
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
        """Return z'V z of rows (m, k) that reach ``across`` (m,) beyond these coordinates."""
        inside, outside = self.basis.resolve(rows, across)
        return (
            inside**2 @ self.variance
            + ((inside @ self.means.T) ** 2).sum(axis=1)
            + self.prior_variance * outside
        )


def linear_reference(seen: Seen, scales: Scales, phi: float) -> Reference:
    """Posterior of the reference model, given whitened rows and responses in units of the noise.

    Where rows have leverage the noise is larger by the factor phi.
    """
    basis = seen.basis
    # phi / kappa stands for 1 / kappa.
    precision = phi / scales.kappa[:, None] + basis.lam
    means = basis.sigma * seen.projection / precision
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
    seen: Seen,
    weights: Array,
    belief: Belief,
    noise: Noise,
    risk: Risk,
    intensity: Intensity = careful_intensity,
) -> ReferenceCurve:
    """Curve that a reference expects of rows that were seen; see :func:`reference_rows`."""
    scales = likely_scales(seen.spectrum, belief)
    deletions = deletions_for(seen, scales)
    rows, plan = reference_rows(deletions, scales, weights, risk, intensity)
    fresh = rows_of(rows)
    curve = choose(fresh, plan, noise, risk) or plain_curve(fresh, plan, noise, risk)
    left_out = None
    if deletions.shared is not None and np.all(weights == 1):
        each = LeaveOneOutPlan(weights)
        left_out = summed_curve(deletions.shared, noise, risk, seen.rows, each)
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
    r"""Whitened rows [Z r]: those that train, then those of a new observation; and their plan.

    The second moment of a new row is ``(1 - rho) Z'Z/n + rho diag(Z'Z/n)``: the rows that were
    seen, and one along each axis.  Its response is one of two points with the right moments; at
    rows that were seen the noise is that of their own residuals, with the same mean.  Only second
    moments matter to the Gibbs risk, so that fewer rows stand for those that were seen, in training
    as well.

    Parameters
    ----------
    deletions : Deletions
        Of the rows that were seen.
    scales : Scales
        What is known of the reference's scales.
    weights : array of shape (n,)
        How much each row counts in the posterior that is judged.
    risk : {"gibbs", "predictive"}
    intensity : function
        What gives rho.
    """
    seen = deletions.seen
    reference = linear_reference(seen, scales, noise_at_leverage(deletions, scales))
    axes, beyond = _along_axes(seen)
    rho = intensity(deletions, axes, beyond)
    train, trained = _training(seen, weights, risk)
    old, share, noise = _once_more(deletions, scales, reference, risk)
    inside = np.concatenate([old, axes])
    across = np.concatenate([np.zeros(len(old)), beyond])
    location = reference.location(inside)
    noise = np.concatenate([noise, np.full(len(axes), reference.noise)])
    deviation = np.sqrt(reference.predictor_variance(inside, across) + noise)
    fresh = inside
    if across.any():  # one more coordinate, in which no row trains
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


def _training(seen: Seen, weights: Array, risk: Risk) -> tuple[Array, Array]:
    """Rows [Z r] that train as those that were seen do with their weights, and weights of these."""
    rows = None
    if risk == "gibbs" and 0 < len(seen.basis.sigma) < len(weights):
        if np.array_equal(weights, seen.counts):
            rows = seen.basis.condensed(seen.projection, seen.remainder)
        else:
            rows = triangle_of_gram(seen.rows.gram(weights=weights))
    if rows is None:
        return np.column_stack([seen.coordinates, seen.rows.response]), weights
    equal = np.full(len(rows), float(weights.sum()) / len(rows))
    return rows / np.sqrt(equal)[:, None], equal


def _once_more(
    deletions: Deletions, scales: Scales, reference: Reference, risk: Risk
) -> tuple[Array, Array, Array]:
    """Rows that stand for those that were seen, their shares of 1, and the noise at each."""
    seen = deletions.seen
    basis, counts = seen.basis, seen.counts
    rank, share = len(basis.sigma), counts / counts.sum()
    if risk == "gibbs" and 0 < rank < len(counts):
        rows = np.sqrt(rank / counts.sum()) * basis.sigma[:, None] * basis.directions.T
        return rows, np.full(rank, 1 / rank), np.full(rank, reference.noise)
    noise = deletions.row_noise(scales.kappa, scales.weight)
    mean = float(share @ noise)
    noise = noise * (reference.noise / mean) if mean > 0 else np.full(len(counts), reference.noise)
    return seen.coordinates, share, noise


def _along_axes(seen: Seen) -> tuple[Array, Array]:
    """Rows sqrt(d a_j) e_j'L along the axes, in the coordinates of those that were seen.

    And how far they reach across these: one more coordinate, of which only the square matters.
    """
    squares, prior = seen.mean_squares, seen.prior
    d = len(squares)
    length = np.sqrt(d * squares)
    if seen.along is None:
        return length[:, None] * prior.unwhiten(np.eye(d)), np.zeros(d)
    if prior.root.ndim == 1:
        length = length * prior.root
        return length[:, None] * seen.along, length * np.sqrt(squares_across(seen.along))
    inside, beyond = np.empty(seen.along.shape), np.empty(d)
    for part in batches(d, d, 8 * CACHED):  # not all at once: they are d x d
        axes = length[part, None] * prior.rows(part)
        inside[part] = axes @ seen.along
        beyond[part] = np.linalg.norm(axes - inside[part] @ seen.along.T, axis=1)
    return inside, beyond
