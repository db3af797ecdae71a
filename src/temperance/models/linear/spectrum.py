r"""The eigenbasis of weighted least squares: every beta for the price of one.

In whitened coordinates (prior N(0, I), unit noise) the weighted rows B = W^(1/2) [Z] have the
singular value decomposition B = A diag(sigma) U'.  With g = A'W^(1/2) r and s = 1/(1 + beta
sigma^2),

    Cov = U diag(s) U',    mean = U x,  x = beta g sigma s,
    Q   = min_u { beta |W^(1/2)(r - Z u)|^2 + |u|^2 } = beta (rho^2 + sum_j g_j^2 s_j),

where rho^2 is what lies outside the span of A: a sum of squares, so Q is never negative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from temperance.types import Array, batches


class Spectrum(NamedTuple):
    """Stacked decompositions of m weighted data sets of k coefficients each."""

    sigma: Array  # (m, k)
    vectors: Array  # (m, k, k), columns are the directions U
    projection: Array  # (m, k): g
    remainder: Array  # (m,): rho^2


class State(NamedTuple):
    """Posterior of each data set at each beta, in its eigenbasis, with derivatives in beta."""

    shrinkage: Array  # (m, k, g): s
    mean: Array  # (m, k, g): x
    misfit: Array  # (m, g): Q
    d_shrinkage: Array
    d_mean: Array
    d_misfit: Array


def spectrum_of(factors: Array) -> Spectrum:
    """Decompose stacked weighted rows [Z r] of shape (m, rows, k + 1)."""
    rows, responses = factors[..., :-1], factors[..., -1]
    k = rows.shape[-1]
    left, sigma, right = np.linalg.svd(rows, full_matrices=True)
    seen = np.einsum("mij,mi->mj", left, responses)
    # Directions that the rows do not span carry rounding noise only.
    noise = np.finfo(float).eps * max(rows.shape[-2:]) * sigma[:, :1]
    sigma = np.where(sigma > noise, sigma, 0.0)
    return Spectrum(
        _widen(sigma, k),
        right.swapaxes(-1, -2),
        _widen(seen[:, :k], k),
        (seen[:, k:] ** 2).sum(axis=1),
    )


def weighted_spectra(rows: Array, weights: Array) -> Spectrum:
    """Decompose the rows [Z r] under each of m weightings (m, n)."""
    parts = [
        spectrum_of(weighted_factors(rows, weights[part]))
        for part in batches(len(weights), rows.size)
    ]
    return Spectrum(*(np.concatenate(field) for field in zip(*parts, strict=True)))


def weighted_factors(rows: Array, weights: Array) -> Array:
    """Square roots F of the weighted second moments, F'F = sum_i w_i row_i row_i', stacked."""
    return triangle(np.sqrt(weights)[:, :, None] * rows)


def triangle(rows: Array) -> Array:
    """Keep the second moments in the fewest rows."""
    if rows.shape[-2] <= rows.shape[-1]:
        return rows
    return np.asarray(np.linalg.qr(rows, mode="r"))


def posterior_state(spectrum: Spectrum, beta: Array) -> State:
    """Posterior at betas of shape (g,), or (m, g) when each data set has its own."""
    at = beta[..., None, :]
    sigma = spectrum.sigma[:, :, None]
    projection = spectrum.projection[:, :, None]
    s = 1.0 / (1.0 + at * sigma**2)
    return State(
        shrinkage=s,
        mean=at * projection * sigma * s,
        misfit=beta * (spectrum.remainder[:, None] + (projection**2 * s).sum(axis=1)),
        d_shrinkage=-((sigma * s) ** 2),
        d_mean=projection * sigma * s**2,
        d_misfit=spectrum.remainder[:, None] + ((projection * s) ** 2).sum(axis=1),
    )


def _widen(columns: Array, width: int) -> Array:
    return np.pad(columns, ((0, 0), (0, width - columns.shape[1])))
