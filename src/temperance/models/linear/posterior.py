r"""The conjugate posterior of a linear model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from temperance.data import Array, all_ones, total_weight
from temperance.models.linear import limits
from temperance.models.linear.eigenbasis import Eigenbasis
from temperance.models.linear.grams import guarded_eigenbasis, triangle
from temperance.models.linear.rows import WhitenedRows
from temperance.models.linear_predictor import GaussianPrior
from temperance.posteriors import CovarianceRoot, LowRankRoot


class LinearPosterior(NamedTuple):
    """Mean (d,), covariance root and misfit Q of the alpha-posterior, unit noise."""

    mean: Array
    root: CovarianceRoot
    misfit: float


def linear_posterior(
    rows: WhitenedRows, basis: Array | None, weights: Array, alpha: float, prior: GaussianPrior
) -> LinearPosterior:
    r"""Posterior ∝ exp(-alpha sum_i w_i (y_i - z_i'theta)^2 / 2 sum_i w_i) N(theta; mu_0, S_0)."""
    limits.refuse_alpha(alpha)
    return posterior_of(_spectrum(rows, weights), basis, alpha / total_weight(weights), prior)


def parameters_used(rows: WhitenedRows, weights: Array, betas: Array) -> Array:
    r"""Return sum_j beta s_j^2 / (1 + beta s_j^2), where s are the singular values."""
    scaled = betas[:, None] * _spectrum(rows, weights).sigma[0] ** 2
    return (scaled / (1 + scaled)).sum(axis=1)


def _spectrum(rows: WhitenedRows, weights: Array) -> Eigenbasis:
    """Return the decomposition of all rows."""
    unequal_weights = None if all_ones(weights) else weights
    return guarded_eigenbasis(
        rows.gram(weights=unequal_weights)[None],
        np.array([len(rows)]),
        lambda _: triangle(rows.take(slice(None), unequal_weights)),
    )


def posterior_of(
    spectrum: Eigenbasis, basis: Array | None, beta: float, prior: GaussianPrior
) -> LinearPosterior:
    """Return the posterior at ``beta`` of the only data set of a spectrum."""
    state = spectrum.at(np.array([beta]))
    directions = spectrum.vectors[0] if basis is None else basis @ spectrum.vectors[0]
    spread = np.sqrt(state.shrinkage[0, :, 0])
    if basis is None:
        root = CovarianceRoot(prior.unwhiten(directions * spread))
    else:  # outside the span of the rows it is the prior
        root = LowRankRoot(prior.root, directions, spread)
    return LinearPosterior(
        prior.mean + prior.unwhiten(directions @ state.mean[0, :, 0]),
        root,
        float(state.misfit[0, 0]),
    )
