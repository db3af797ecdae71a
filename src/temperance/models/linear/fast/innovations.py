r"""Moments of one-step-ahead prediction: the innovations of blocks of rows.

Before a block the posterior is known from the spectrum of the earlier rows: mean U x, covariance
U diag(s) U'.  With T = Z_b U the block's rows in that basis and I + beta T diag(s) T' = L D L' (L
unit lower triangular),

    e = L^-1 (r_b - T x),     a_t = S_{t-1} z_t: the rows of L^-1 T diag(s),     v_t = a_t'T_t,

are the errors, gains and variances of predicting each row from all rows before it.  With
n_{t-1} = S_{t-1} sum_{i<t} z_i r_i, the derivatives in beta are

    e_t' = -a_t'n_{t-1},      v_t' = -a_t'(sum_{i<t} z_i z_i') a_t,

where a_t'z_i = -(L^-1)_ti / beta for the rows i < t of the block; the misfit of the rows up to t
grows by beta e_t^2 / (1 + beta v_t).

The pivots 1 + beta v_t have a rounding error of beta h_t eps, h_t = T_t'diag(s) T_t.  Blocks where
beta h_t exceeds ``MOST_GROWTH`` (the first rows under a vague prior, columns on very different
scales) get a spectrum for each of their rows instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from temperance.data import Array, batches
from temperance.models.linear.eigenbasis import Eigenbasis, joined, shrinkage
from temperance.models.linear.grams import eigenbasis_of_grams, guarded_eigenbasis, triangle
from temperance.models.linear.rows import CACHED

MOST_GROWTH = 1e5
SMALLEST_BLOCK = 32
LEAST_SHRINKAGE = 1e-25  # beta times the largest eigenvalue: smaller values are replaced by it
LEAST_BETA = 1e-150  # its square does not underflow


class Innovations(NamedTuple):
    """Moments of rows, their misfit divided by beta, and derivatives in the rows' own beta."""

    error: Array
    variance: Array
    misfit: Array
    d_error: Array
    d_variance: Array
    d_misfit: Array


@dataclass(frozen=True, eq=False)
class OrderedBlocks:
    """Ordered rows [Z r] in blocks, scaled by the square roots of their weights."""

    rows: Array  # (blocks, size, k + 1)
    spectrum: Eigenbasis  # of the earlier rows
    rotated: Array  # (blocks, size, k): T
    largest: Array  # (blocks,): largest eigenvalue of any training set in the block

    def take(self, blocks: NDArray[np.intp]) -> OrderedBlocks:
        """Return some of the blocks, without copies if they are consecutive."""
        neighbours = blocks[-1] - blocks[0] == len(blocks) - 1
        which = slice(blocks[0], blocks[-1] + 1) if neighbours else blocks
        return OrderedBlocks(
            self.rows[which], self.spectrum.take(which), self.rotated[which], self.largest[which]
        )

    def well_conditioned(self, beta: Array) -> NDArray[np.bool_]:
        """Return which blocks keep beta h_t below ``MOST_GROWTH`` up to their beta (blocks,)."""
        # beta / (1 + beta lam), valid at infinity as well
        with np.errstate(divide="ignore"):
            share = 1.0 / (1.0 / beta[:, None] + self.spectrum.sigma**2)
        return (self.rotated**2 @ share[:, :, None]).max(axis=(1, 2)) <= MOST_GROWTH

    @property
    def _least(self) -> Array:
        """Betas (blocks,) used in place of 0: gains within a block are ratios of terms in beta."""
        largest = np.where(self.largest > 0, self.largest, 1.0)
        return np.maximum(LEAST_SHRINKAGE / largest, LEAST_BETA)

    def sums_after(self, skipped: int, beta: float) -> tuple[float, float]:
        """Return the sums of squared errors and variances after the first rows, at one beta > 0.

        With K = I + beta T diag(s) T' = R R' the errors are diag(R) R^-1 (r_b - T x), and beta v_t
        is K_tt - 1 minus the squares of R_ti over the columns i before t.
        """
        spectrum = self.spectrum
        s = shrinkage(spectrum.sigma**2, beta)
        scaled = self.rotated * np.sqrt(beta * s)[:, None, :]
        kernel = scaled @ scaled.swapaxes(1, 2)  # a symmetric product costs half
        diagonal = np.einsum("bii->bi", kernel)
        growth = diagonal.copy()
        diagonal += 1.0
        root = np.linalg.cholesky(kernel)
        pivot = np.einsum("bii->bi", root).copy()
        x = beta * spectrum.projection * spectrum.sigma * s
        gap = self.rows[..., -1] - (self.rotated @ x[:, :, None])[..., 0]
        error = pivot * [
            lapack.dtrtrs(each.T, b, lower=0, trans=1)[0] for each, b in zip(root, gap, strict=True)
        ]
        growth -= np.einsum("bij,bij->bi", root, root) - pivot**2
        error, growth = error.ravel()[skipped:], growth.ravel()[skipped:]
        return float(error @ error), float(growth.sum()) / beta

    def innovations(self, beta: Array) -> Innovations:
        """Return the prediction of every row from the rows before it, (blocks, size)."""
        beta = np.maximum(beta, self._least)
        spectrum = self.spectrum
        state = spectrum.at(beta[:, None])
        s, x = state.shrinkage[:, :, 0], state.mean[:, :, 0]
        at = beta[:, None]
        scaled = self.rotated * (at * s)[:, None, :]
        kernel = scaled @ self.rotated.swapaxes(1, 2)
        np.einsum("bii->bi", kernel)[...] += 1.0
        inverse = _inverse_of_unit_root(kernel)
        gap = self.rows[..., -1] - (self.rotated @ x[:, :, None])[..., 0]
        # This gain is a_t times beta.
        gain, error = inverse @ scaled, (inverse @ gap[..., None])[..., 0]

        growth = np.einsum("bij,bij->bi", gain, self.rotated)
        variance, pivot = growth / at, 1.0 + growth
        # Before the block n = x / beta = g sigma s; row t adds a_t e_t / (1 + beta v_t).
        start = (spectrum.projection * spectrum.sigma * s)[:, :, None]
        earlier = gain @ gain.swapaxes(1, 2)
        earlier *= np.tri(earlier.shape[1], k=-1)
        d_error = -(gain @ start + earlier @ (error / (at * pivot))[..., None])[..., 0] / at
        # a_t'z_i = -(L^-1)_ti / beta for the rows i < t of the block.
        np.einsum("bii->bi", inverse)[...] = 0.0
        inside = np.einsum("bij,bij->bi", inverse, inverse)
        gain *= gain
        d_variance = -((gain @ (spectrum.sigma**2)[..., None])[..., 0] + inside) / at**2
        step = error**2 / pivot
        d_step = (2 * error * d_error - step * (variance + at * d_variance)) / pivot
        g2 = spectrum.projection**2
        before = spectrum.remainder + (g2 * s).sum(axis=1)
        d_before = (g2 * state.d_shrinkage[:, :, 0]).sum(axis=1)
        return Innovations(
            error,
            variance,
            before[:, None] + _sum_before(step),
            d_error,
            d_variance,
            d_before[:, None] + _sum_before(d_step),
        )


def _inverse_of_unit_root(kernel: Array) -> Array:
    """Return the inverse of the unit lower triangular L of K = L D L', for stacked K."""
    root = np.linalg.cholesky(kernel)
    root /= np.einsum("bii->bi", root)[:, None, :].copy()
    for each in root:
        lapack.dtrtri(each.T, lower=0, unitdiag=1, overwrite_c=1)
    return root


def _sum_before(steps: Array) -> Array:
    """Return the sum of the earlier steps in each block, along the second axis."""
    sums = np.empty_like(steps)
    sums[:, 0] = 0.0
    np.cumsum(steps[:, :-1], axis=1, out=sums[:, 1:])
    return sums


def blocks_of(rows: Array) -> OrderedBlocks:
    """Return ordered rows [Z r], scaled by the square roots of their weights, in blocks."""
    n, width = rows.shape
    # Per row, the decompositions cost d^3 / size and the predictions at a few betas d * size.
    size = min(n, max(SMALLEST_BLOCK, 3 * (width - 1) // 4))
    count = -(-n // size)
    cut = np.pad(rows, ((0, count * size - n), (0, 0))).reshape(count, size, width)
    spectrum, last = _prefix_spectra(cut)
    largest = np.append(spectrum.sigma[1:].max(axis=1, initial=0.0) ** 2, last)
    return OrderedBlocks(cut, spectrum, cut[..., :-1] @ spectrum.vectors, largest)


def _prefix_spectra(cut: Array) -> tuple[Eigenbasis, float]:
    """Return decompositions of the rows before each block, and the largest eigenvalue of all."""
    count, size, width = cut.shape
    grams = np.zeros((count + 1, width, width))
    for before, block, after in zip(grams, cut, grams[1:], strict=False):
        np.add(before, block.T @ block, out=after)
    spectrum, safe = eigenbasis_of_grams(grams[:-1], size * np.arange(count))
    unsafe = np.flatnonzero(~safe)
    if len(unsafe):
        # The factor of each prefix is updated from the one before, up to the last that is needed.
        factors = np.zeros((unsafe[-1] + 1, width, width))
        for block, after, before in zip(cut, factors[1:], factors, strict=False):
            factor = triangle(np.concatenate([before, block]))
            after[: len(factor)] = factor
        for field, better in zip(spectrum, Eigenbasis.of(factors[unsafe]), strict=True):
            field[unsafe] = better
    return spectrum, float(np.linalg.eigvalsh(grams[-1, :-1, :-1])[-1])


@dataclass(frozen=True, eq=False)
class RowSpectra:
    """Decompositions of the rows before each of some rows."""

    spectrum: Eigenbasis
    rotated: Array  # (size, k)
    response: Array  # (size,)

    @classmethod
    def joined(cls, parts: list[RowSpectra]) -> RowSpectra:
        """Return the concatenation of several parts."""
        return cls(
            joined([each.spectrum for each in parts]),
            np.concatenate([each.rotated for each in parts]),
            np.concatenate([each.response for each in parts]),
        )

    def take(self, part: slice) -> RowSpectra:
        """Return some of the rows."""
        return RowSpectra(self.spectrum.take(part), self.rotated[part], self.response[part])

    def innovations(self, beta: Array) -> Innovations:
        """Return the prediction of every row at betas (g,), or (size, g) with one row for each."""
        state = self.spectrum.at(beta)
        squared, g2 = self.rotated**2, self.spectrum.projection**2

        def total(coefficients: Array, values: Array) -> Array:
            return np.einsum("rk,rkg->rg", coefficients, values)

        return Innovations(
            self.response[:, None] - total(self.rotated, state.mean),
            total(squared, state.shrinkage),
            self.spectrum.remainder[:, None] + total(g2, state.shrinkage),
            -total(self.rotated, state.d_mean),
            total(squared, state.d_shrinkage),
            total(g2, state.d_shrinkage),
        )


def row_spectra(prefix: Array, count: int, rows: Array) -> RowSpectra:
    """Decompose the rows before each of some rows.

    ``prefix`` is a square root of the ``count`` rows before all of them.
    """
    before, parts = prefix.T @ prefix, []
    for part in batches(len(rows), 4 * rows.shape[1] ** 2):
        some = rows[part]
        grams = some[:, :, None] * some[:, None, :]
        np.cumsum(grams, axis=0, out=grams)
        grams[1:], grams[0], last = grams[:-1] + before, before, grams[-1] + before

        def factor(row: int, first: int = part.start) -> Array:
            return triangle(np.concatenate([prefix, rows[: first + row]]))

        counts = count + np.arange(part.start, part.stop)
        found, before = guarded_eigenbasis(grams, counts, factor), last
        rotated = np.einsum("rk,rkj->rj", some[:, :-1], found.vectors)
        parts.append((found.sigma, found.projection, found.remainder, rotated))
    sigma, projection, remainder, rotated = (
        np.concatenate(each) for each in zip(*parts, strict=True)
    )
    none = np.empty((len(rows), 0, 0))  # eigenvectors would take k times the memory
    return RowSpectra(Eigenbasis(sigma, none, projection, remainder), rotated, rows[:, -1])


def at_shared_beta(blocks: OrderedBlocks, beta: Array) -> Innovations:
    """Return the moments (rows, g) when all prefixes have the same beta."""
    count = len(blocks.rows)
    parts = []
    # Blocks are repeated, so that one call computes many betas.
    for part in batches(len(beta), blocks.rows.size + count * blocks.rows.shape[1] ** 2, CACHED):
        some = beta[part]
        repeated = blocks.take(np.tile(np.arange(count), len(some)))
        found = repeated.innovations(np.repeat(some, count))
        parts.append(np.stack(found).reshape(len(found), len(some), -1))
    return Innovations(*np.concatenate(parts, axis=1).swapaxes(1, 2))
