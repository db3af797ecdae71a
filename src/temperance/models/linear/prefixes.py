r"""Moments of one-step-ahead prediction: the innovations of blocks of rows.

Before a block the posterior is known from the spectrum of the earlier rows: mean U x, covariance U
diag(s) U'. With T = Z_b U the block's rows in that basis and I + beta T diag(s) T' = L D L' (L
unit lower triangular),

    e = L^-1 (r_b - T x),     a_t = S_{t-1} z_t: the rows of L^-1 T diag(s),     v_t = a_t'T_t,

are the errors, gains and variances of predicting each row from all rows before it.  With
n_{t-1} = S_{t-1} sum_{i<t} z_i r_i, the derivatives in beta are

    e_t' = -a_t'n_{t-1},      v_t' = -a_t'(sum_{i<t} z_i z_i') a_t,

and the misfit of the rows up to t grows by beta e_t^2 / (1 + beta v_t).

When alpha is held, each prefix has its own beta.  The moments of a block are analytic in
u = log(1 + beta lam_max) with singularities on the lines |Im u| = pi only, so they are
interpolated in u by Chebyshev polynomials whose degree makes the error at most ``TOLERANCE`` of
their size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from temperance.models.linear.moments import Moments
from temperance.models.linear.spectrum import Spectrum, posterior_state, spectrum_of, triangle
from temperance.types import Array, PrefixPlan

TOLERANCE = 1e-11
SMALLEST_BLOCK = 32
LEAST_RANGE = 1.0  # betas up to which to interpolate at least


class Innovations(NamedTuple):
    """Moments of each block's rows at one beta per block, (blocks, size); misfit is Q / beta."""

    error: Array
    variance: Array
    misfit: Array
    d_error: Array
    d_variance: Array
    d_misfit: Array


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows in order, scaled by the roots of their weights, in blocks with their prefix spectra."""

    spectrum: Spectrum
    rotated: Array  # (blocks, size, k): T
    response: Array  # (blocks, size): r
    largest: Array  # (blocks,): largest eigenvalue of any training set in the block

    def innovations(self, beta: Array) -> Innovations:
        """Predict every row of each block from the rows before it, one beta per block."""
        state = posterior_state(self.spectrum, beta[:, None])
        s, x = state.shrinkage[:, :, 0], state.mean[:, :, 0]
        sigma2 = self.spectrum.sigma**2
        at = beta[:, None]
        scaled = self.rotated * s[:, None, :]
        size = self.response.shape[1]
        kernel = np.eye(size) + at[..., None] * (scaled @ self.rotated.swapaxes(1, 2))
        root = np.linalg.cholesky(kernel)
        unit = root / np.einsum("bii->bi", root)[:, None, :]
        ahead = np.concatenate(
            [scaled, (self.response - np.einsum("bij,bj->bi", self.rotated, x))[..., None]], axis=2
        )
        solved = np.linalg.solve(unit, ahead)
        gain, error = solved[..., :-1], solved[..., -1]

        cross = gain @ self.rotated.swapaxes(1, 2)
        variance = np.einsum("bii->bi", cross)
        earlier = np.tri(size, k=-1)
        pivot = 1.0 + at * variance
        # n before the block is x / beta = g sigma s; within it grows by a_t e_t / (1 + beta v_t).
        start = self.spectrum.projection * self.spectrum.sigma * s
        inside = (gain @ gain.swapaxes(1, 2)) * earlier
        d_error = -(
            np.einsum("bij,bj->bi", gain, start) + np.einsum("bij,bj->bi", inside, error / pivot)
        )
        d_variance = -(
            np.einsum("bij,bj->bi", gain**2, sigma2) + ((cross * earlier) ** 2).sum(axis=2)
        )
        step = error**2 / pivot
        d_step = (2 * error * d_error - step * (variance + at * d_variance)) / pivot
        g2 = self.spectrum.projection**2
        before = self.spectrum.remainder + (g2 * s).sum(axis=1)
        d_before = (g2 * state.d_shrinkage[:, :, 0]).sum(axis=1)
        return Innovations(
            error,
            variance,
            before[:, None] + np.cumsum(step, axis=1) - step,
            d_error,
            d_variance,
            d_before[:, None] + np.cumsum(d_step, axis=1) - d_step,
        )


def blocks_of(rows: Array) -> Blocks:
    """Cut ordered rows [Z r], scaled by the roots of their weights, into blocks."""
    n, width = rows.shape
    size = min(n, max(SMALLEST_BLOCK, width - 1))
    count = -(-n // size)
    cut = np.pad(rows, ((0, count * size - n), (0, 0))).reshape(count, size, width)
    prefixes = np.zeros((count + 1, width, width))
    for block, after, before in zip(cut, prefixes[1:], prefixes, strict=False):
        factor = triangle(np.concatenate([before, block]))
        after[: len(factor)] = factor
    spectrum = spectrum_of(prefixes[:-1])
    last = np.linalg.svd(prefixes[-1, :, :-1], compute_uv=False).max(initial=0.0)
    return Blocks(
        spectrum,
        cut[..., :-1] @ spectrum.vectors,
        cut[..., -1],
        np.append(spectrum.sigma[1:].max(axis=1, initial=0.0), last) ** 2,
    )


class Interpolant(NamedTuple):
    """Chebyshev series of (error, variance, misfit) in u, one per row: (degree + 1, 3, n, 1)."""

    coefficients: Array
    rate: Array  # (n, 1): the lam_max of u = log(1 + beta lam_max)
    span: Array  # (n, 1): largest u

    def __call__(self, beta: Array, exponent: Array) -> Innovations:
        """Moments (n, g) at beta times each row's exponent (n, 1); derivatives in beta."""
        own = exponent * beta
        position = 2 * np.log1p(own * self.rate) / self.span - 1
        chain = 2 / self.span * exponent * self.rate / (1 + own * self.rate)
        value, slope = (
            chebyshev.chebval(position, series, tensor=False)
            for series in (self.coefficients, chebyshev.chebder(self.coefficients))
        )
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
    # Discrete orthogonality on the Chebyshev points.
    vandermonde = chebyshev.chebvander(nodes, degree) * (2.0 / (degree + 1))
    vandermonde[:, 0] /= 2.0
    coefficients = np.tensordot(vandermonde.T, values, axes=1)
    rows = blocks.response.size
    return Interpolant(
        coefficients.reshape(degree + 1, 3, rows, 1),
        *(np.repeat(column, rows // len(rate))[:, None] for column in (rate, span)),
    )


@dataclass(frozen=True, eq=False)
class PrefixMoments:
    """Moments of the rows [Z r] (n, k + 1), whitened and in units of the noise."""

    rows: Array
    plan: PrefixPlan
    _interpolants: dict[int, tuple[float, Interpolant]] = field(default_factory=dict)

    def moments(self, beta: Array, condensed: bool) -> Iterator[Moments]:
        """Yield the moments, one order of the rows at a time."""
        for which, order in enumerate(self.plan.orders):
            exponents = self.plan.exponents(order)
            if self.plan.transfer == "beta":
                parts = _at_shared_beta(self._blocks[which], beta)
            else:
                parts = self._at_own_beta(which, beta, exponents)
            yield self._assemble(order, exponents, beta, parts)

    def _at_own_beta(self, which: int, beta: Array, exponents: Array) -> Innovations:
        """Moments (n, g) when row t has beta times its exponent."""
        blocks = self._blocks[which]
        count, size = blocks.response.shape
        exponent = np.zeros((count * size, 1))
        exponent[self.plan.start : self.plan.start + len(exponents), 0] = exponents
        highest = max(float(beta.max()), LEAST_RANGE)
        ceiling, series = self._interpolants.get(which, (0.0, None))
        if series is None or ceiling < highest:
            # Up to the next power of two, so that later betas seldom ask for more.
            ceiling = 2.0 ** np.ceil(np.log2(highest))
            top = ceiling * exponent.reshape(count, size).max(axis=1)
            series = interpolate(blocks, np.where(top > 0, top, ceiling))
            self._interpolants[which] = ceiling, series
        return series(beta, exponent)

    def _assemble(
        self, order: NDArray[np.intp], exponents: Array, beta: Array, parts: Innovations
    ) -> Moments:
        tested = slice(self.plan.start, len(order))
        parts = Innovations(*(part[tested] for part in parts))
        weight = self.plan.weights[order][tested][:, None]
        exposure = exponents * np.cumsum(self.plan.weights[order])[self.plan.start - 1 : -1]
        own = exponents[:, None] * beta
        return Moments(
            error=(parts.error / np.sqrt(weight))[:, None],
            variance=(parts.variance / weight)[:, None],
            misfit=own * parts.misfit,
            d_error=(parts.d_error / np.sqrt(weight))[:, None],
            d_variance=(parts.d_variance / weight)[:, None],
            d_misfit=exponents[:, None] * parts.misfit + own * parts.d_misfit,
            exposure=exposure,
            weight=weight,
            tested=weight[:, 0],
            rows=order[tested][:, None],
        )

    @cached_property
    def _blocks(self) -> list[Blocks]:
        scaled = np.sqrt(self.plan.weights)[:, None] * self.rows
        return [blocks_of(scaled[order]) for order in self.plan.orders]


def _at_shared_beta(blocks: Blocks, beta: Array) -> Innovations:
    """Moments (n, g) when all prefixes have the same beta."""
    count = len(blocks.response)
    columns = [blocks.innovations(np.full(count, at)) for at in beta]
    return Innovations(
        *(
            np.stack([part.ravel() for part in parts], axis=1)
            for parts in zip(*columns, strict=True)
        )
    )


def _degree(span: float) -> int:
    """Smallest degree with error rho^-degree <= TOLERANCE, rho the largest ellipse in the strip."""
    height = 0.9 * np.pi / (span / 2)
    rho = height + np.hypot(1.0, height)
    return int(np.ceil(-np.log(TOLERANCE) / np.log(rho))) + 4
