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

The pivots 1 + beta v_t carry a rounding error of beta h_t eps, h_t = T_t'diag(s) T_t.  Blocks where
beta h_t is beyond ``TAME`` (a vague prior met for the first time, columns on very different scales)
get a spectrum for each of their rows instead.

When alpha is held, each prefix has its own beta.  The moments of a block are analytic in
u = log(1 + beta lam_max) with singularities on the lines |Im u| = pi only, so they are interpolated
in u by Chebyshev polynomials whose degree makes the error at most ``TOLERANCE`` of their size;
variance and misfit, sums of positive c_j / (1 + beta lam_j) without zeros off the negative axis, by
their logarithms, since they range over many orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy.linalg import lapack

from temperance.models.linear.interpolant import SumsInterpolant, count_nodes, interpolate_sums
from temperance.models.linear.moments import Moments, Sums, summed
from temperance.models.linear.rows import CACHED, Rows
from temperance.models.linear.spectrum import (
    Spectrum,
    factor_of,
    posterior_state,
    spectrum_of,
    spectrum_of_grams,
)
from temperance.models.linear.triangle import WORST_CONDITION, triangle
from temperance.types import Array, PrefixPlan, batches

TOLERANCE = 1e-11
TAME = 1e5
SMALLEST_BLOCK = 32
LEAST_BETA = 1e-60  # stands for 0, where gains within a block are ratios of terms in beta
LEAST_CEILING = 4.0  # betas up to which to interpolate at least; then in factors of 16


class Innovations(NamedTuple):
    """Moments of rows, their misfit divided by beta, and derivatives in the rows' own beta."""

    error: Array
    variance: Array
    misfit: Array
    d_error: Array
    d_variance: Array
    d_misfit: Array


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows [Z r] in order, scaled by the roots of their weights, in blocks with their prefixes."""

    rows: Array  # (blocks, size, k + 1)
    spectrum: Spectrum  # of the earlier rows
    rotated: Array  # (blocks, size, k): T
    largest: Array  # (blocks,): largest eigenvalue of any training set in the block

    def take(self, blocks: NDArray[np.intp]) -> Blocks:
        """Return some of the blocks, without copies if they are neighbours."""
        neighbours = blocks[-1] - blocks[0] == len(blocks) - 1
        which = slice(blocks[0], blocks[-1] + 1) if neighbours else blocks
        spectrum = Spectrum(*(part[which] for part in self.spectrum))
        return Blocks(self.rows[which], spectrum, self.rotated[which], self.largest[which])

    def tame(self, beta: Array) -> NDArray[np.bool_]:
        """Tell which blocks keep beta h_t within ``TAME`` up to their beta (blocks,)."""
        # beta / (1 + beta lam), at infinity as well
        with np.errstate(divide="ignore"):
            share = 1.0 / (1.0 / beta[:, None] + self.spectrum.sigma**2)
        return (self.rotated**2 @ share[:, :, None]).max(axis=(1, 2)) <= TAME

    def innovations(self, beta: Array) -> Innovations:
        """Predict every row from the rows before it, one beta per block: (blocks, size)."""
        # The smallest beta that keeps the ratios of terms in beta exact.
        beta = np.maximum(beta, LEAST_BETA)
        spectrum = self.spectrum
        state = posterior_state(spectrum, beta[:, None])
        s, x = state.shrinkage[:, :, 0], state.mean[:, :, 0]
        at = beta[:, None]
        scaled = self.rotated * (at * s)[:, None, :]
        kernel = scaled @ self.rotated.swapaxes(1, 2)
        np.einsum("bii->bi", kernel)[...] += 1.0
        inverse = _inverse_of_unit_root(kernel)
        gap = self.rows[..., -1] - (self.rotated @ x[:, :, None])[..., 0]
        # The gains come times beta.
        gain, error = inverse @ scaled, (inverse @ gap[..., None])[..., 0]

        growth = np.einsum("bij,bij->bi", gain, self.rotated)
        variance, pivot = growth / at, 1.0 + growth
        # n before the block is x / beta = g sigma s; within it grows by a_t e_t / (1 + beta v_t).
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
    """Invert L of K = L D L', unit lower triangular, for stacked K."""
    root = np.linalg.cholesky(kernel)
    root /= np.einsum("bii->bi", root)[:, None, :].copy()
    for each in root:
        lapack.dtrtri(each.T, lower=0, unitdiag=1, overwrite_c=1)
    return root


def _sum_before(steps: Array) -> Array:
    """Sum of the earlier steps in each block, over the second axis."""
    sums = np.empty_like(steps)
    sums[:, 0] = 0.0
    np.cumsum(steps[:, :-1], axis=1, out=sums[:, 1:])
    return sums


def blocks_of(rows: Array) -> Blocks:
    """Cut ordered rows [Z r], scaled by the roots of their weights, into blocks."""
    n, width = rows.shape
    size = min(n, max(SMALLEST_BLOCK, width - 1))
    count = -(-n // size)
    cut = np.pad(rows, ((0, count * size - n), (0, 0))).reshape(count, size, width)
    spectrum, last = _prefix_spectra(cut)
    largest = np.append(spectrum.sigma[1:].max(axis=1, initial=0.0) ** 2, last)
    return Blocks(cut, spectrum, cut[..., :-1] @ spectrum.vectors, largest)


def _prefix_spectra(cut: Array) -> tuple[Spectrum, float]:
    """Decompose the rows before each block; also the largest eigenvalue of all rows."""
    count, size, width = cut.shape
    grams = np.zeros((count + 1, width, width))
    for before, block, after in zip(grams, cut, grams[1:], strict=False):
        np.add(before, block.T @ block, out=after)
    spectrum, safe = spectrum_of_grams(grams[:-1], size * np.arange(count))
    unsafe = np.flatnonzero(~safe)
    if len(unsafe):
        # The factors of the prefixes follow from one another, up to the last that is needed.
        factors = np.zeros((unsafe[-1] + 1, width, width))
        for block, after, before in zip(cut, factors[1:], factors, strict=False):
            factor = triangle(np.concatenate([before, block]))
            after[: len(factor)] = factor
        for field, better in zip(spectrum, spectrum_of(factors[unsafe]), strict=True):
            field[unsafe] = better
    return spectrum, float(np.linalg.eigvalsh(grams[-1, :-1, :-1])[-1])


@dataclass(frozen=True, eq=False)
class RowSpectra:
    """One spectrum for the training set of each row of a block."""

    spectrum: Spectrum
    rotated: Array  # (size, k)
    response: Array  # (size,)

    def innovations(self, beta: Array) -> Innovations:
        """Predict every row at betas (g,) or its own (size, g)."""
        state = posterior_state(self.spectrum, beta)
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


def row_spectra(prefix: Array, rows: Array) -> RowSpectra:
    """Decompose the rows before each row of a block, with the prefix of the block."""
    earlier = np.tri(len(rows), k=-1)
    parts = []
    for part in batches(len(rows), (len(prefix) + len(rows)) * rows.shape[1]):
        seen = earlier[part][:, :, None] * rows
        before = np.broadcast_to(prefix, (len(seen), *prefix.shape))
        parts.append(spectrum_of(triangle(np.concatenate([before, seen], axis=1))))
    spectrum = Spectrum(*(np.concatenate(each) for each in zip(*parts, strict=True)))
    rotated = np.einsum("rk,rkj->rj", rows[:, :-1], spectrum.vectors)
    return RowSpectra(spectrum, rotated, rows[:, -1])


class Interpolant(NamedTuple):
    """Chebyshev series of (error, log variance, log misfit) in u: (degree + 1, 3, n, 1)."""

    coefficients: Array
    rate: Array  # (n, 1): the lam_max of u = log(1 + beta lam_max)
    span: Array  # (n, 1): largest u

    def innovations(self, beta: Array) -> Innovations:
        """Predict every row at its own betas (n, g)."""
        position = 2 * np.log1p(beta * self.rate) / self.span - 1
        chain = 2 / self.span * self.rate / (1 + beta * self.rate)
        value, slope = (
            chebyshev.chebval(position, series, tensor=False)
            for series in (self.coefficients, chebyshev.chebder(self.coefficients))
        )
        value[1:] = np.exp(value[1:])
        slope[1:] *= value[1:]
        return Innovations(*value, *(slope * chain))


def interpolate(blocks: Blocks, top: Array) -> Interpolant:
    """Interpolate the moments of each block for betas from 0 to ``top`` (blocks,)."""
    rate = np.where(blocks.largest > 0, blocks.largest, 1.0)
    span = np.log1p(top * rate)
    degree = _degree(float(span.max()))
    nodes = chebyshev.chebpts1(degree + 1)
    values = np.stack(
        [np.stack(blocks.innovations(np.expm1(span * (node + 1) / 2) / rate)[:3]) for node in nodes]
    )
    values[:, 1:] = np.log(np.maximum(values[:, 1:], np.finfo(float).tiny))
    # Discrete orthogonality on the Chebyshev points.
    vandermonde = chebyshev.chebvander(nodes, degree) * (2.0 / (degree + 1))
    vandermonde[:, 0] /= 2.0
    coefficients = np.tensordot(vandermonde.T, values, axes=1)
    count, size = blocks.rows.shape[:2]
    return Interpolant(
        coefficients.reshape(degree + 1, 3, count * size, 1),
        *(np.repeat(column, size)[:, None] for column in (rate, span)),
    )


def _degree(span: float) -> int:
    """Smallest degree with error rho^-degree <= TOLERANCE, rho the largest ellipse in the strip."""
    height = 0.9 * np.pi / (span / 2)
    rho = height + np.hypot(1.0, height)
    return int(np.ceil(-np.log(TOLERANCE) / np.log(rho))) + 4


@dataclass(frozen=True, eq=False)
class PrefixMoments:
    """Moments of whitened rows [Z r]."""

    rows: Rows
    plan: PrefixPlan
    _kept: dict[tuple[int, ...], RowSpectra | Interpolant] = field(default_factory=dict)
    _sums: dict[tuple[int, int], SumsInterpolant | None] = field(default_factory=dict)

    def moments(self, beta: Array) -> Iterator[Moments]:
        """Yield the moments of batches of blocks, one order of the rows at a time."""
        for which in range(len(self.plan.orders)):
            yield from self._of_blocks(which, self._tested_blocks, beta)

    def sums(self, beta: Array, pairwise: bool) -> Iterator[Sums]:
        """Yield the sums of single rows, or of several."""
        for which in range(len(self.plan.orders)):
            others = self._tested_blocks
            if not pairwise and self.plan.transfer == "beta":
                known = [self._interpolant(which, part) for part in self._parts]
                yield from (each.at(beta) for each in known if each is not None)
                missing = [np.empty(0, dtype=np.intp)]
                missing += [
                    self._tested_blocks[part]
                    for part, each in zip(self._parts, known, strict=True)
                    if each is None
                ]
                others = np.concatenate(missing)
            if len(others):
                for moments in self._of_blocks(which, others, beta):
                    yield summed(moments, pairwise)

    def _interpolant(self, which: int, part: slice) -> SumsInterpolant | None:
        """Interpolate the sums over some blocks, where few betas determine them."""
        key = (which, part.start)
        if key not in self._sums:
            chosen = self._tested_blocks[part]
            blocks = self._blocks[which].take(chosen)
            low = float((blocks.spectrum.sigma**2).min(initial=np.inf))
            high = float(blocks.largest.max())
            nodes = count_nodes(low, high)
            # What is left of the responses must not drown in the rounding of what is explained.
            explained = (blocks.spectrum.projection**2).sum(axis=1)
            clear = np.all(blocks.spectrum.remainder * WORST_CONDITION >= explained)
            if nodes is None or not clear or not blocks.tame(np.full(len(chosen), np.inf)).all():
                self._sums[key] = None
            else:

                def sums(beta: Array) -> Sums:
                    each = [summed(found, False) for found in self._of_blocks(which, chosen, beta)]
                    return Sums(*(sum(field) for field in zip(*each, strict=True)))

                self._sums[key] = interpolate_sums(low, high, nodes, sums)
        return self._sums[key]

    def _of_blocks(self, which: int, selected: NDArray[np.intp], beta: Array) -> Iterator[Moments]:
        """Yield the moments of some blocks of one order."""
        order, blocks = self.plan.orders[which], self._blocks[which]
        count, size = blocks.rows.shape[:2]
        exponent = np.zeros(count * size)
        exponent[self.plan.start : len(order)] = self.plan.exponents(order)
        ceiling = self._ceiling(beta)
        top = ceiling * exponent.reshape(count, size).max(axis=1)[selected]
        tame = blocks.take(selected).tame(top)
        for block in selected[~tame]:
            rows = slice(block * size, (block + 1) * size)
            spectra = self._spectra(which, int(block))
            found = spectra.innovations(exponent[rows, None] * beta)
            yield self._assemble(order, exponent, rows, beta, found)
        calm, top = selected[tame], top[tame]
        for part in batches(len(calm), self._elements, CACHED):
            chosen = calm[part]
            rows = (chosen[:, None] * size + np.arange(size)).ravel()
            if self.plan.transfer == "beta":
                found = _at_shared_beta(blocks.take(chosen), beta)
            else:
                key = (which, part.start, *np.frexp([ceiling])[1])
                if key not in self._kept:
                    self._kept[key] = interpolate(blocks.take(chosen), top[part])
                found = self._kept[key].innovations(exponent[rows, None] * beta)
            yield self._assemble(order, exponent, rows, beta, found)

    @cached_property
    def _tested_blocks(self) -> NDArray[np.intp]:
        """Blocks with tested rows."""
        count, size = self._blocks[0].rows.shape[:2]
        return np.arange(self.plan.start // size, count)

    @cached_property
    def _parts(self) -> list[slice]:
        return list(batches(len(self._tested_blocks), self._elements, CACHED))

    @property
    def _elements(self) -> int:
        size = self._blocks[0].rows.shape[1]
        return size * (size + self.rows.width)

    def _ceiling(self, beta: Array) -> float:
        """Beta up to which blocks must be tame: the largest asked, or the interpolants' range."""
        highest = float(beta.max())
        if self.plan.transfer == "beta" or highest <= LEAST_CEILING:
            return highest if self.plan.transfer == "beta" else LEAST_CEILING
        return LEAST_CEILING * 16.0 ** np.ceil(np.log(highest / LEAST_CEILING) / np.log(16.0))

    def _spectra(self, which: int, block: int) -> RowSpectra | Interpolant:
        key = (which, block)
        if key not in self._kept:
            blocks = self._blocks[which]
            earlier = Spectrum(*(part[[block]] for part in blocks.spectrum))
            self._kept[key] = row_spectra(factor_of(earlier)[0], blocks.rows[block])
        return self._kept[key]

    def _assemble(
        self,
        order: NDArray[np.intp],
        exponent: Array,
        rows: slice | NDArray[np.intp],
        beta: Array,
        found: Innovations,
    ) -> Moments:
        """Restrict the moments of rows (in order) to those tested, and undo their scaling."""
        position = np.arange(len(exponent))[rows]
        tested = (position >= self.plan.start) & (position < len(order))
        position = position[tested]
        found = Innovations(*(part[tested] for part in found))
        weight = self.plan.weights[order][position][:, None]
        factor = exponent[position, None]
        before = np.cumsum(self.plan.weights[order])[position - 1]
        return Moments(
            error=(found.error / np.sqrt(weight))[:, None],
            variance=(found.variance / weight)[:, None],
            misfit=factor * beta * found.misfit,
            d_error=(factor * found.d_error / np.sqrt(weight))[:, None],
            d_variance=(factor * found.d_variance / weight)[:, None],
            d_misfit=factor * (found.misfit + factor * beta * found.d_misfit),
            exposure=factor[:, 0] * before,
            weight=weight,
            tested=weight[:, 0],
            rows=order[position][:, None],
        )

    @cached_property
    def _blocks(self) -> list[Blocks]:
        weights = self.plan.weights
        return [blocks_of(self.rows.take(order, weights)) for order in self.plan.orders]


def _at_shared_beta(blocks: Blocks, beta: Array) -> Innovations:
    """Moments (rows, g) when all prefixes have the same beta."""
    columns = [blocks.innovations(np.full(len(blocks.rows), at)) for at in beta]
    return Innovations(
        *(np.stack([part.ravel() for part in each], axis=1) for each in zip(*columns, strict=True))
    )
