r"""Levels of the credible ellipsoids that a point is on, for Gaussian and Student-t posteriors.

For N(m, S) in p dimensions the highest-density region with theta at its edge has the probability

    P(chi2_p <= d),      d = (theta - m)' S^-1 (theta - m).

For a normal-inverse-gamma posterior theta is Student-t with 2a degrees of freedom and the squared
scale (b/a) S, and the probability is P(F_{p, 2a} <= d / (p b/a)).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from temperance.data import Array
from temperance.linear.engine import Fits, LinearRows, decompose, decompose_sets, moments_of
from temperance.models.linear_predictor import GaussianPrior
from temperance.plans import Pairs


def gaussian_levels(distances: Array, dimension: int) -> Array:
    """Return P(chi2_p <= d) of squared distances."""
    return special.chdtr(dimension, distances)


def student_levels(distances: Array, dimension: int, a: Array, b: Array) -> Array:
    """Return P(F_{p, 2a} <= d / (p b/a)) of squared distances."""
    return special.fdtr(dimension, 2 * a, distances * a / b / dimension)


def whitened_point(theta: Array, prior: GaussianPrior, basis: Array | None) -> tuple[Array, float]:
    """Return C^-1 (theta - mu_0) along a basis, and the squared length outside its span."""
    deviation = theta - prior.mean
    u: Array = (
        deviation / prior.root if prior.root.ndim == 1 else np.linalg.solve(prior.root, deviation)
    )
    if basis is None:
        return u, 0.0
    along = basis.T @ u
    return along, max(float(u @ u - along @ along), 0.0)


def linear_levels(
    rows: LinearRows, prior: GaussianPrior, own: Array, weights: Array, theta: Array | None
) -> Callable[[float], Array]:
    """Return the levels of ``theta`` under linear posteriors of many weightings of the same rows.

    In directions that no row identifies a posterior is the prior, and they take no part.

    Parameters
    ----------
    own : weights of the data (n,), whose posterior mean is the point if ``theta`` is None
    weights : weightings (m, n)
    """
    whole, _ = decompose(rows, own)
    axes = whole.directions[0][:, whole.singular[0] > 0]
    plan = Pairs(weights, np.broadcast_to(own, weights.shape), float(own.sum()))
    fits = decompose_sets(rows, weights, moments_of(rows, plan))
    kappa, p, noise = float(rows.scales[0]), axes.shape[1], rows.noise
    point = None if theta is None else whitened_point(theta, prior, rows.basis)[0]

    def solved(of: Fits, beta: float) -> tuple[Array, Array]:
        g = 1 / (1 + beta * kappa * of.singular**2)
        return g, beta * kappa * of.singular * of.response * g

    def levels(beta: float) -> Array:
        g, mean = solved(fits, beta)
        at = whole.directions[0] @ solved(whole, beta)[1][0] if point is None else point
        away = axes @ (axes.T @ at) - np.einsum("mjk,mk->mj", fits.directions, mean)
        along = np.einsum("mjk,mj->mk", fits.directions, away)
        distances = (along**2 / (kappa * g)).sum(axis=1)
        if noise.variance is not None:
            return gaussian_levels(distances / noise.variance, p)
        misfit = fits.rest + (g * fits.response**2).sum(axis=1)
        return student_levels(distances, p, *noise.at(np.asarray(beta), misfit, fits.size))

    return levels
