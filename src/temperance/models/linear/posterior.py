r"""Whitened rows and the conjugate posterior of a linear model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from temperance.models.linear.spectrum import posterior_state, weighted_spectra
from temperance.models.prior import GaussianPrior, row_space
from temperance.types import Array


class LinearPosterior(NamedTuple):
    """Mean (d,), covariance root (d, d) and misfit Q of the alpha-posterior, unit noise."""

    mean: Array
    root: Array
    misfit: float


def whitened_rows(Z: Array, y: Array, prior: GaussianPrior) -> tuple[Array, Array | None]:
    r"""Rows [Z C, y - Z mu_0] in their own span, and the basis of that span (see ``row_space``)."""
    coordinates, basis = row_space(prior.whiten(Z))
    return np.column_stack([coordinates, y - Z @ prior.mean]), basis


def linear_posterior(
    Z: Array, y: Array, weights: Array, alpha: float, prior: GaussianPrior
) -> LinearPosterior:
    r"""Posterior ∝ exp(-alpha sum_i w_i (y_i - z_i'theta)^2 / 2 sum_i w_i) N(theta; mu_0, S_0)."""
    rows, basis = whitened_rows(Z, y, prior)
    spectrum = weighted_spectra(rows, weights[None])
    state = posterior_state(spectrum, np.array([alpha / weights.sum()]))
    directions = spectrum.vectors[0] if basis is None else basis @ spectrum.vectors[0]
    spread = np.sqrt(state.shrinkage[0, :, 0])
    if basis is None:
        root = directions * spread
    else:
        # I - D diag(1 - sqrt s) D': the prior across the span of the rows.
        root = np.eye(Z.shape[1]) - (directions * (1 - spread)) @ directions.T
    return LinearPosterior(
        prior.mean + prior.unwhiten(directions @ state.mean[0, :, 0]),
        prior.unwhiten(root),
        float(state.misfit[0, 0]),
    )
