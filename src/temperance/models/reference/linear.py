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

from temperance.models.prior import GaussianPrior, row_space
from temperance.models.reference.eigenbasis import Eigenbasis
from temperance.models.reference.leverage import careful_intensity, noise_at_leverage
from temperance.models.reference.scales import Belief, Spectrum, likely_scales
from temperance.models.reference.second_moment import mean_squares
from temperance.types import Array, Plan, Risk

Intensity = Callable[[Array, Eigenbasis, Array, Array], float]


@dataclass(frozen=True, eq=False)
class Reference:
    """Mean and covariance of the reference posterior in an eigenbasis, and its noise variance.

    Parameters
    ----------
    basis : Eigenbasis
        Of the rows that were seen.
    mean, variance : arrays of shape (rank,)
        Mean of the coefficients, and their variance within each scale, averaged over scales.
    means : array of shape (scales, rank)
        Mean at each scale less the overall mean, times the root of the scale's weight.
    prior_variance : float
        Variance in every direction that the rows do not span.
    noise : float
        Expected noise variance s.
    row_noise : array of shape (n,)
        The same at each row that was seen, from its residual, with the same mean.
    """

    basis: Eigenbasis
    mean: Array
    variance: Array
    means: Array
    prior_variance: float
    noise: float
    row_noise: Array

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


def linear_reference(
    basis: Eigenbasis, projection: Array, outside: Array, belief: Belief
) -> Reference:
    """Posterior of the reference model, given whitened rows and responses in units of the noise."""
    weights, lam = basis.weights, basis.lam
    spectrum = Spectrum(lam, projection, float(outside @ outside), float(weights.sum()))
    scales = likely_scales(spectrum, belief)
    phi, row_noise = noise_at_leverage(basis, projection, outside, scales)
    # phi / kappa stands for 1 / kappa.
    precision = phi / scales.kappa[:, None] + lam
    means = basis.sigma * projection / precision
    mean = scales.weight @ means
    noise = float(scales.weight @ scales.noise)
    mean_noise = float(weights @ row_noise / weights.sum())
    return Reference(
        basis,
        mean,
        (scales.weight * scales.noise) @ (phi / precision),
        np.sqrt(scales.weight)[:, None] * (means - mean),
        float(scales.weight @ (scales.noise * scales.kappa)),
        noise,
        row_noise * (noise / mean_noise) if mean_noise > 0 else np.full(len(weights), noise),
    )


def reference_rows(
    Z: Array,
    y: Array,
    weights: Array,
    counts: Array,
    prior: GaussianPrior,
    belief: Belief,
    risk: Risk,
    intensity: Intensity = careful_intensity,
) -> tuple[Array, Plan]:
    r"""Whitened rows [Z r]: those that train, then those of a new observation; and their plan.

    The second moment of a new row is ``(1 - rho) Z'Z/n + rho diag(Z'Z/n)``: the rows that were
    seen, and one along each axis.  Its response is one of two points with the right moments; at
    rows that were seen the noise is that of their own residuals, with the same mean.  Only second
    moments matter to the Gibbs risk, so that fewer rows stand for those that were seen, in training
    as well where posterior and reference count them alike.

    Parameters
    ----------
    Z, y : arrays of shape (n, d) and (n,), in units of the noise
    weights : array of shape (n,)
        How much each row counts in the posterior that is judged.
    counts : array of shape (n,)
        How many observations each row is for the reference.
    prior : GaussianPrior
    belief : Belief
        What is believed of the scales.
    risk : {"gibbs", "predictive"}
    intensity : function
        What gives rho.
    """
    n, d = Z.shape
    coordinates, along = row_space(prior.whiten(Z))
    response = y - Z @ prior.mean if prior.mean.any() else y
    basis = Eigenbasis.of(coordinates, counts)
    projection = basis.project(response)
    outside = basis.outside(response, projection)
    reference = linear_reference(basis, projection, outside, belief)
    share = counts / counts.sum()
    axes, beyond = _along_axes(Z, share, prior, along)
    rho = intensity(Z, basis, axes, beyond)
    seen, noise = coordinates, reference.row_noise
    rank, size = len(basis.sigma), float(weights.sum())
    fewer = risk == "gibbs" and 0 < rank < n
    if fewer:
        seen = np.sqrt(rank / counts.sum()) * basis.sigma[:, None] * basis.directions.T
        share, noise = np.full(rank, 1 / rank), np.full(rank, reference.noise)
    if fewer and np.array_equal(weights, counts):
        train = basis.condensed(projection, outside)
        weights = np.full(len(train), size / len(train))
        train /= np.sqrt(weights)[:, None]
    else:
        train = np.column_stack([coordinates, response])
    inside = np.concatenate([seen, axes])
    across = np.concatenate([np.zeros(len(seen)), beyond])
    location = reference.location(inside)
    noise = np.concatenate([noise, np.full(d, reference.noise)])
    deviation = np.sqrt(reference.predictor_variance(inside, across) + noise)
    fresh = np.column_stack([inside, across])
    rows = np.concatenate(
        [
            np.insert(train, -1, 0.0, axis=1),
            np.column_stack([fresh, location - deviation]),
            np.column_stack([fresh, location + deviation]),
        ]
    )
    test = np.tile(np.concatenate([(1 - rho) * share, np.full(d, rho / d)]), 2) / 2
    return rows, Plan(
        np.concatenate([weights, np.zeros(len(test))])[None],
        np.concatenate([np.zeros(len(train)), test])[None],
        size,
    )


def _along_axes(
    Z: Array, share: Array, prior: GaussianPrior, along: Array | None
) -> tuple[Array, Array]:
    """Rows sqrt(d a_j) e_j'L along the axes, in the coordinates of those that were seen.

    And how far they reach across these: one more coordinate, of which only the square matters.
    """
    d = Z.shape[1]
    reach = np.sqrt(d * mean_squares(Z, share))
    axes = reach[:, None] * prior.unwhiten(np.eye(d))
    if along is None:
        return axes, np.zeros(d)
    inside = axes @ along
    return inside, np.linalg.norm(axes - inside @ along.T, axis=1)
