r"""What a linear reference model believes of a new observation, as weighted rows.

The Gibbs losses of linear models are quadratic in a row, so that a new observation enters by its
second moments alone.  With A the second moment of its inputs, m the reference posterior's mean of
the coefficients, V its covariance and s its noise variance, these are

    E zz' = A,    E zy = A m,    E y^2 = m'A m + tr(A V) + s.

The rows returned here have exactly these moments; a risk curve on them is the reference risk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.models.prior import GaussianPrior, row_space
from temperance.models.reference.scales import Belief, Scales, Spectrum, likely_scales
from temperance.models.reference.second_moment import shrinkage_intensity
from temperance.types import Array, Plan

LEAST_RATIO = 1e-8


@dataclass(frozen=True, eq=False)
class Reference:
    """Mean and covariance of the reference posterior in an eigenbasis, and its noise variance.

    Parameters
    ----------
    directions : array of shape (k, rank)
        The eigenbasis, in the coordinates of the rows.
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

    directions: Array
    mean: Array
    variance: Array
    means: Array
    prior_variance: float
    noise: float
    row_noise: Array

    def location(self, rows: Array) -> Array:
        """Return z'm of rows (m, k)."""
        return rows @ (self.directions @ self.mean)

    def predictor_variance(self, rows: Array, across: Array) -> Array:
        """Return z'V z of rows (m, k) that reach ``across`` (m,) beyond these coordinates."""
        inside = rows @ self.directions
        outside = np.maximum((rows**2).sum(axis=1) - (inside**2).sum(axis=1), 0.0) + across**2
        return (
            inside**2 @ self.variance
            + ((inside @ self.means.T) ** 2).sum(axis=1)
            + self.prior_variance * outside
        )


def linear_reference(rows: Array, weights: Array, belief: Belief) -> Reference:
    """Posterior of the reference model, given whitened rows [Z r] in units of the noise."""
    root = np.sqrt(weights)
    left, sigma, right = np.linalg.svd(root[:, None] * rows[:, :-1], full_matrices=False)
    kept = sigma > np.finfo(float).eps * max(rows.shape) * sigma.max(initial=0.0)
    left, sigma, directions = left[:, kept], sigma[kept], right[kept].T
    response = root * rows[:, -1]
    projection = left.T @ response
    # Exact zeros where the rows span everything; differences would leave rounding.
    spanned = left.shape[0] == left.shape[1]
    outside = np.zeros_like(response) if spanned else response - left @ projection
    lam = sigma**2
    scales = likely_scales(
        Spectrum(lam, projection, float(outside @ outside), float(weights.sum())), belief
    )
    square, leverage = studentised_squares(left, lam, projection, outside, weights, scales.kappa)
    phi = noise_at_leverage(square, leverage, scales)
    # phi / kappa stands for 1 / kappa.
    precision = phi / scales.kappa[:, None] + lam
    means = sigma * projection / precision
    mean = scales.weight @ means
    noise, row_noise = float(scales.weight @ scales.noise), square @ scales.weight
    mean_noise = float(weights @ row_noise / weights.sum())
    return Reference(
        directions,
        mean,
        (scales.weight * scales.noise) @ (phi / precision),
        np.sqrt(scales.weight)[:, None] * (means - mean),
        float(scales.weight @ (scales.noise * scales.kappa)),
        noise,
        row_noise * (noise / mean_noise) if mean_noise > 0 else np.full(len(rows), noise),
    )


def studentised_squares(
    left: Array, lam: Array, projection: Array, outside: Array, weights: Array, kappa: Array
) -> tuple[Array, Array]:
    r"""Squared residuals over what leverage leaves of them, and the leverages, (n, kappas) each.

    .. math:: (r_i - z_i'm_\kappa)^2 / (1 - h_i)

    The leverages are those of all copies of a row together; its residual is that of one copy.

    Parameters
    ----------
    left, lam, projection, outside
        Of the weighted rows: left singular vectors (n, rank), squared singular values, projections
        of the responses, and what of the responses (n,) lies outside.
    weights : array of shape (n,)
    kappa : array of shape (g,)
    """
    shrinkage = 1 / (1 + np.multiply.outer(lam, kappa))
    error = outside[:, None] + left @ (projection[:, None] * shrinkage)
    leverage = left**2 @ (1 - shrinkage)
    beyond = 0.0 if left.shape[0] == left.shape[1] else 1 - (left**2).sum(axis=1)[:, None]
    kept = np.maximum(beyond, 0.0) + left**2 @ shrinkage  # 1 - leverage, without cancellation
    # A row of weight k is k rows, each with the k-th part of its leverage.
    single = np.minimum(weights, 1.0)[:, None] / weights[:, None]
    kept = 1 - single + single * kept
    square = np.divide(error**2 / weights[:, None], kept, out=np.zeros_like(error), where=kept > 0)
    return square, leverage


def noise_at_leverage(square: Array, leverage: Array, scales: Scales) -> float:
    r"""How much larger than on average the noise is where rows have leverage.

    .. math::

        \varphi = \exp \sum_\kappa w_\kappa \log \frac{\sum_i h_i u_i}{\sum_i h_i}, \qquad
        u_i = \frac{(r_i - z_i'm_\kappa)^2}{(1 - h_i) s_\kappa},

    with h the leverages at kappa.  Where the variance of the noise grows with the leverage of the
    rows, the coefficients are less certain than a constant variance says.

    Parameters
    ----------
    square, leverage : arrays of shape (n, g)
        From :func:`studentised_squares`.
    scales : Scales
    """
    total = leverage.sum(axis=0) * scales.noise
    ratio = np.divide(
        (leverage * square).sum(axis=0), total, out=np.ones_like(total), where=total > 0
    )
    return float(np.exp(scales.weight @ np.log(np.maximum(ratio, LEAST_RATIO))))


def reference_rows(
    Z: Array, y: Array, weights: Array, counts: Array, prior: GaussianPrior, belief: Belief
) -> tuple[Array, Plan]:
    r"""Whitened rows [Z r]: those that train, then those of a new observation; and their plan.

    The second moment of a new row is ``(1 - rho) Z'Z/n + rho diag(Z'Z/n)``: the rows that were
    seen, and one along each axis.  Its response is one of two points with the right moments; at
    rows that were seen the noise is that of their own residuals, with the same mean.

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
    """
    n, d = Z.shape
    coordinates, basis = row_space(prior.whiten(Z))
    response = y - Z @ prior.mean
    reference = linear_reference(np.column_stack([coordinates, response]), counts, belief)
    share = counts / counts.sum()
    rho = shrinkage_intensity(Z, counts)
    # Rows sqrt(d a_j) e_j'L along the axes, in the coordinates of those that were seen.
    reach = np.sqrt(d * (share @ Z**2))
    axes = reach[:, None] * prior.unwhiten(np.eye(d) if basis is None else basis)
    inside = np.concatenate([coordinates, axes])
    # One more coordinate for what lies across the rows that were seen: only its square matters.
    across = np.zeros(n + d)
    if basis is not None:
        square = reach**2 * prior.variances - (axes**2).sum(axis=1)
        across[n:] = np.sqrt(np.maximum(square, 0.0))
    location = reference.location(inside)
    noise = np.concatenate([reference.row_noise, np.full(d, reference.noise)])
    deviation = np.sqrt(reference.predictor_variance(inside, across) + noise)
    fresh = np.column_stack([inside, across])
    rows = np.concatenate(
        [
            np.column_stack([coordinates, np.zeros(n), response]),
            np.column_stack([fresh, location - deviation]),
            np.column_stack([fresh, location + deviation]),
        ]
    )
    test = np.tile(np.concatenate([(1 - rho) * share, np.full(d, rho / d)]), 2) / 2
    return rows, Plan(
        np.concatenate([weights, np.zeros(len(test))])[None],
        np.concatenate([np.zeros(n), test])[None],
        float(weights.sum()),
    )
