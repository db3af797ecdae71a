r"""Squared scores averaged over a Gaussian prior, in coordinates in which it is N(0, I).

With u = z'theta, a score l'(u, y) z and the prior N(mu_0, C C') of theta,

    D(z, y) = |C'z|^2 E l'(u, y)^2,      u ~ N(z'mu_0, |C'z|^2).

The fitted model expects the average of D over responses y at the minimiser's predictors.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from temperance.data import Array
from temperance.models.linear_predictor import GaussianPrior

NODES = 64  # of the quadrature over predictors of binary responses


def gaussian_prior_information(
    Z: Array, y: Array, prior: GaussianPrior, noise_variance: float, theta: Array
) -> tuple[Array, Array]:
    """Return D expected at ``theta`` and observed, (n,) each, for Gaussian responses.

    The score is (u - y) z / s2, so that D = |C'z|^2 [(y - z'mu_0)^2 + |C'z|^2] / s2^2.
    """
    mean, lengths = _predictors(Z, prior)
    unit = lengths / noise_variance
    observed = unit * ((y - mean) ** 2 + lengths) / noise_variance
    expected = unit * ((Z @ theta - mean) ** 2 + noise_variance + lengths) / noise_variance
    return expected, observed


def logistic_prior_information(
    Z: Array, y: Array, prior: GaussianPrior, theta: Array
) -> tuple[Array, Array]:
    """Return D expected at ``theta`` and observed, (n,) each, for labels 0 and 1.

    The score is (sigma(u) - y) z, and its square is averaged over u by quadrature.
    """
    mean, lengths = _predictors(Z, prior)
    nodes, shares = np.polynomial.hermite_e.hermegauss(NODES)
    shares = shares / shares.sum()
    u = mean[:, None] + np.sqrt(lengths)[:, None] * nodes
    zero, one = (lengths * (special.expit(sign * u) ** 2 @ shares) for sign in (1.0, -1.0))
    p = special.expit(Z @ theta)
    return p * one + (1 - p) * zero, np.where(y == 1, one, zero)


def _predictors(Z: Array, prior: GaussianPrior) -> tuple[Array, Array]:
    """Return mean and variance of the predictor of each row under the prior."""
    return Z @ prior.mean, (prior.whiten(Z) ** 2).sum(axis=1)
