r"""Levels of the credible ellipsoids that a point is on, for Gaussian and Student-t posteriors.

For N(m, S) in p dimensions the highest-density region with theta at its edge has the probability

    P(chi2_p <= d),      d = (theta - m)' S^-1 (theta - m).

For a normal-inverse-gamma posterior theta is Student-t with 2a degrees of freedom and the squared
scale (b/a) S, and the probability is P(F_{p, 2a} <= d / (p b/a)).
"""

from __future__ import annotations

import numpy as np
from scipy import special

from temperance.data import Array
from temperance.models.linear_predictor import GaussianPrior


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
