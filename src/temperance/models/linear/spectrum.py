r"""The eigenbasis of weighted least squares: every beta for the price of one.

In whitened coordinates (prior N(0, I), unit noise) the weighted rows B = W^(1/2) [Z] have the
singular value decomposition B = A diag(sigma) U'.  With g = A'W^(1/2) r and s = 1/(1 + beta
sigma^2),

    Cov = U diag(s) U',    mean = U x,  x = beta g sigma s,
    Q   = min_u { beta |W^(1/2)(r - Z u)|^2 + |u|^2 } = beta (rho^2 + sum_j g_j^2 s_j),

where rho^2 is what lies outside the span of A: a sum of squares, so Q is never negative.

The eigenvectors of the Gram matrix B'B are the same U, at a fraction of the cost, but small sigma
drown in rounding: they serve where the condition number is below ``WORST_CONDITION``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.models.linear.singular import alike, outside, singular_values
from temperance.models.linear.triangle import WORST_CONDITION
from temperance.types import Array


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
    if not alike(rows):
        return joined([_spectrum_of_one(each) for each in factors])
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


def _spectrum_of_one(factor: Array) -> Spectrum:
    """Decompose weighted rows [Z r] whose columns differ in scale."""
    short = max(factor.shape[1] - 1 - len(factor), 0)
    rows, response = np.pad(factor[:, :-1], ((0, short), (0, 0))), np.pad(factor[:, -1], (0, short))
    left, sigma, right = singular_values(rows)
    seen = left.T @ response
    spanning = rows.any(axis=1)
    # Independent rows leave nothing outside: a difference would be rounding.
    independent = np.count_nonzero(sigma) >= np.count_nonzero(spanning)
    rest = response[~spanning] if independent else outside(left, response, seen)
    return Spectrum(sigma[None], right.T[None], seen[None], (rest @ rest)[None])


def joined(spectra: list[Spectrum]) -> Spectrum:
    """Stack decompositions."""
    if len(spectra) == 1:
        return spectra[0]
    return Spectrum(*(np.concatenate(field) for field in zip(*spectra, strict=True)))


def spectrum_of_grams(grams: Array, counts: NDArray[np.intp]) -> tuple[Spectrum, NDArray[np.bool_]]:
    """Decompose stacked second moments (m, k + 1, k + 1) of ``counts`` rows (m,) each.

    Returns the spectra, and which of them are as good as those of the rows.
    """
    k = grams.shape[-1] - 1
    ascending, vectors = np.linalg.eigh(grams[:, :k, :k])
    cross = (grams[:, k:, :k] @ vectors)[:, 0, ::-1]
    eigenvalues, vectors = np.maximum(ascending[:, ::-1], 0.0), vectors[:, :, ::-1]
    least = eigenvalues[:, -1]
    if (counts < k).any():  # fewer rows than directions span no more than they are
        spanned = np.arange(k) < counts[:, None]
        least = np.where(spanned, eigenvalues, np.inf).min(axis=1)
        eigenvalues *= spanned
    sigma = np.sqrt(eigenvalues)
    projection = np.divide(cross, sigma, out=np.zeros(cross.shape), where=sigma > 0)
    square = grams[:, k, k]
    # As many independent rows as directions, or fewer, leave nothing outside.
    remainder = np.where(counts > k, square - (projection**2).sum(axis=1), 0.0)
    safe = (least * WORST_CONDITION > eigenvalues[:, 0]) & (
        (remainder * WORST_CONDITION >= square) | (counts <= k)
    )
    if (counts < k).any():
        # Directions that no row spans are as exact as the longest column allows.
        squares = grams.diagonal(axis1=1, axis2=2)[:, :k]
        shortest = np.where(squares > 0, squares, np.inf).min(axis=1)
        safe &= (squares.max(axis=1) <= WORST_CONDITION**2 * shortest) | (counts >= k)
    return Spectrum(sigma, vectors, projection, np.maximum(remainder, 0.0)), safe


def factor_of(spectrum: Spectrum) -> Array:
    """Return F with F'F = sum_i w_i [z r]'[z r], stacked (m, k + 1, k + 1)."""
    m, k = spectrum.sigma.shape
    factor = np.zeros((m, k + 1, k + 1))
    factor[:, :k, :k] = spectrum.sigma[:, :, None] * spectrum.vectors.swapaxes(1, 2)
    factor[:, :k, k] = spectrum.projection
    factor[:, k, k] = np.sqrt(spectrum.remainder)
    return factor


def posterior_state(spectrum: Spectrum, beta: Array) -> State:
    """Posterior at betas of shape (g,), or (m, g) when each data set has its own."""
    at = beta[..., None, :]
    lam, cross = (
        part[:, :, None] for part in (spectrum.sigma**2, spectrum.projection * spectrum.sigma)
    )
    squares, remainder = (spectrum.projection**2)[:, None, :], spectrum.remainder[:, None]
    s = 1.0 / (1.0 + at * lam)
    square, pull = s * s, cross * s
    return State(
        shrinkage=s,
        mean=at * pull,
        misfit=beta * (remainder + (squares @ s)[:, 0]),
        d_shrinkage=-lam * square,
        d_mean=pull * s,
        d_misfit=remainder + (squares @ square)[:, 0],
    )


def _widen(columns: Array, width: int) -> Array:
    return np.pad(columns, ((0, 0), (0, width - columns.shape[1])))
