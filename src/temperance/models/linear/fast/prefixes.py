r"""Moments of SafeBayes: every row is predicted from the rows before it, in blocks.

Rows that share their beta are predicted in blocks
(:mod:`temperance.models.linear.fast.innovations`).  If alpha is kept, each row has its own beta and
is predicted from a decomposition of the rows before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, batches
from temperance.models.linear.eigenbasis import Misfits, positive_range, union
from temperance.models.linear.fast.innovations import (
    Innovations,
    OrderedBlocks,
    RowSpectra,
    at_shared_beta,
    blocks_of,
    row_spectra,
)
from temperance.models.linear.fast.interpolant import LARGEST_START, Variable
from temperance.models.linear.fast.interpolated_sums import InterpolatedSums, interpolate_sums
from temperance.models.linear.fast.sums import summed
from temperance.models.linear.grams import WORST_CONDITION, factor_of
from temperance.models.linear.moments import PredictionMoments, Sums
from temperance.models.linear.rows import CACHED, WhitenedRows
from temperance.models.linear.singular import singular_values
from temperance.plans import PrefixPlan

SMALLEST_PART = 32  # a part must have at least a cache's size divided by this to be interpolated


@dataclass(frozen=True, eq=False)
class PrefixMoments:
    """Moments of whitened rows [Z r]."""

    lowest_interpolated: ClassVar[float] = 0.0  # holds for most blocks
    rows: WhitenedRows
    plan: PrefixPlan
    _row_spectra: dict[tuple[int, int], RowSpectra] = field(default_factory=dict)
    _sums: dict[tuple[int, int], InterpolatedSums | None] = field(default_factory=dict)

    @property
    def eigenvalues(self) -> tuple[float, float]:
        """Bounds on the eigenvalues of the prefixes, from the shortest and those of blocks."""
        k, start = self.rows.width, self.plan.start
        sizes = {start, k // 2, k - 1, k, k + 1, 2 * k}
        found = []
        for which, rows in enumerate(self._ordered):
            exponent = self._exponents[which]
            for size in sizes:
                if start <= size < len(rows):
                    _, sigma, _ = singular_values(rows[:size, :-1])
                    found.append(positive_range(exponent[size] * sigma**2))
            at = self._starts
            found.append(
                positive_range(
                    exponent[at, None]
                    * self._blocks[which].spectrum.sigma[self._tested_blocks] ** 2
                )
            )
            # The trace is an upper bound of the largest eigenvalue.
            traces = np.cumsum((rows[:, :-1] ** 2).sum(axis=1))
            found.append((0.0, float((exponent[start : len(rows)] * traces[start - 1 : -1]).max())))
        return union(found)

    @property
    def misfits(self) -> Misfits:
        """Ranges that determine at which betas the misfits of the prefixes change, or bounds."""
        found = []
        for which, rows in enumerate(self._ordered):
            exponent, start = self._exponents[which], self.plan.start
            blocks = self._blocks[which].spectrum
            spectrum = blocks.take(self._tested_blocks)
            factor = exponent[self._starts]
            of_blocks = Misfits.of(spectrum, np.ones(1))
            own = exponent[start : len(rows)]
            weights = np.cumsum(self.plan.weights[self.plan.orders[which]])[start - 1 : -1]
            squares = np.cumsum(rows[:, -1] ** 2)[start - 1 : -1]
            found.append(
                Misfits(
                    positive_range(own * weights),
                    positive_range(own * squares),
                    positive_range(factor * spectrum.remainder),
                    of_blocks.length,
                )
            )
        return Misfits(*(union(ranges) for ranges in zip(*found, strict=True)))

    def moments(self, beta: Array) -> Iterator[PredictionMoments]:
        """Yield the moments of batches of blocks, one order of the rows at a time."""
        for which in range(len(self.plan.orders)):
            yield from self._of_blocks(which, self._tested_blocks, beta)

    def sums(self, beta: Array, pairwise: bool) -> Iterator[Sums]:
        """Yield the sums of single rows, or of several."""
        shared = not pairwise and self.plan.transfer == "beta"
        for which in range(len(self.plan.orders)):
            others = []
            for part in self._parts if shared else [slice(None)]:
                blocks = self._tested_blocks[part]
                known = self._interpolated(which, part) if shared else None
                if known is None:
                    others.append(blocks)
                else:
                    yield known.at(beta, partial(self._direct, which, blocks, False))
            if others:
                yield from self._direct(which, np.concatenate(others), pairwise, beta)

    def _direct(
        self, which: int, blocks: NDArray[np.intp], pairwise: bool, beta: Array
    ) -> Iterator[Sums]:
        """Yield the sums of some blocks of one order, computed from every row at every beta."""
        return (summed(moments, pairwise) for moments in self._of_blocks(which, blocks, beta))

    def _interpolated(self, which: int, part: slice) -> InterpolatedSums | None:
        """Return the interpolated sums over some blocks; None if they need too many betas."""
        key = (which, part.start)
        if key not in self._sums:
            self._sums[key] = self._interpolate(which, self._tested_blocks[part])
        return self._sums[key]

    def _interpolate(self, which: int, chosen: NDArray[np.intp]) -> InterpolatedSums | None:
        blocks = self._blocks[which].take(chosen)
        low = float((blocks.spectrum.sigma**2).min(initial=np.inf))
        variable = Variable.upwards(low, float(blocks.largest.max()))
        if variable is None or variable.lowest > LARGEST_START:
            return None
        # The remainder must be larger than the rounding error of the explained part.
        explained = (blocks.spectrum.projection**2).sum(axis=1)
        clear = np.all(blocks.spectrum.remainder * WORST_CONDITION >= explained)
        if not clear or not blocks.well_conditioned(np.full(len(chosen), np.inf)).all():
            return None
        size = blocks.rows.shape[1]
        first, last = chosen[0] * size, min((chosen[-1] + 1) * size, len(self.rows))
        skipped = max(self.plan.start - first, 0)  # rows that are never tested
        weight = self.plan.weights[self.plan.orders[which]]
        tested = weight[first + skipped : last]
        before = np.cumsum(weight)[first + skipped - 1 : last - 1]
        # The weights cancel: the rows contain their square roots.  Rows beyond the last are zero.
        values = np.array([blocks.sums_after(skipped, float(at)) for at in variable.nodes]).T
        return interpolate_sums(variable, values, float(before.sum()), float(tested.sum()))

    def _of_blocks(
        self, which: int, selected: NDArray[np.intp], beta: Array
    ) -> Iterator[PredictionMoments]:
        """Yield the moments of some blocks of one order."""
        blocks = self._blocks[which]
        size = blocks.rows.shape[1]
        if self.plan.transfer == "alpha":
            yield from self._with_own_betas(which, beta)
            return
        stable = blocks.take(selected).well_conditioned(np.full(len(selected), beta.max()))
        for block in selected[~stable]:
            found = self._spectra(which, int(block)).innovations(beta)
            yield self._assemble(which, np.arange(block * size, (block + 1) * size), beta, found)
        stable_blocks = selected[stable]
        for part in batches(len(stable_blocks), self._elements, CACHED):
            chosen = stable_blocks[part]
            rows = (chosen[:, None] * size + np.arange(size)).ravel()
            found = at_shared_beta(blocks.take(chosen), beta)
            yield self._assemble(which, rows, beta, found)

    def _with_own_betas(self, which: int, beta: Array) -> Iterator[PredictionMoments]:
        """Yield the moments of all tested blocks of one order if each row has its own beta."""
        spectra, start = self._all_spectra(which), self.plan.start
        before = start - int(self._tested_blocks[0]) * self._blocks[which].rows.shape[1]
        for part in batches(len(self.rows) - start, 6 * self.rows.width * len(beta), CACHED):
            rows = np.arange(part.start, part.stop) + start
            some = spectra.take(slice(before + part.start, before + part.stop))
            own = self._exponents[which][rows, None] * beta
            yield self._assemble(which, rows, beta, some.innovations(own))

    @cached_property
    def _exponents(self) -> list[Array]:
        """Factor on beta at each position of each order, 0 where it is not tested."""
        count, size = self._blocks[0].rows.shape[:2]
        found = np.zeros((len(self.plan.orders), count * size))
        for exponent, order in zip(found, self.plan.orders, strict=True):
            exponent[self.plan.start : len(order)] = self.plan.exponents_of(order)
        return list(found)

    @cached_property
    def _tested_blocks(self) -> NDArray[np.intp]:
        """Blocks with tested rows."""
        count, size = self._blocks[0].rows.shape[:2]
        return np.arange(self.plan.start // size, count)

    @cached_property
    def _parts(self) -> list[slice]:
        """Consecutive blocks: as many as fit into a cache, and at most a third of the earlier ones.

        The training sets of a part then have similar sizes, and few betas determine its sums.  The
        first blocks, where that does not pay, are one part.
        """
        count, most = len(self._tested_blocks), max(1, CACHED // self._elements)
        parts = [slice(0, min(count, 3 * (1 + most // SMALLEST_PART)))]
        while parts[-1].stop < count:
            begin = parts[-1].stop
            longest = min(most, int(self._tested_blocks[begin]) // 3)
            parts.append(slice(begin, min(begin + longest, count)))
        return parts

    @property
    def _elements(self) -> int:
        size = self._blocks[0].rows.shape[1]
        return size * (size + self.rows.width)

    def _spectra(self, which: int, block: int) -> RowSpectra:
        """Return decompositions of the rows before each row of a block."""
        key = (which, block)
        if key not in self._row_spectra:
            blocks = self._blocks[which]
            earlier = blocks.spectrum.take(slice(block, block + 1))
            count = block * blocks.rows.shape[1]
            self._row_spectra[key] = row_spectra(factor_of(earlier)[0], count, blocks.rows[block])
        return self._row_spectra[key]

    def _all_spectra(self, which: int) -> RowSpectra:
        """Return decompositions of the rows before each row of all tested blocks."""
        key = (which, -1)
        if key not in self._row_spectra:
            self._row_spectra[key] = RowSpectra.joined(
                [self._spectra(which, int(block)) for block in self._tested_blocks]
            )
            for block in self._tested_blocks:
                del self._row_spectra[which, int(block)]
        return self._row_spectra[key]

    def _assemble(
        self, which: int, position: NDArray[np.intp], beta: Array, found: Innovations
    ) -> PredictionMoments:
        """Return the moments of the tested positions of an order, with the weights divided out."""
        order, exponent = self.plan.orders[which], self._exponents[which]
        tested = (position >= self.plan.start) & (position < len(order))
        position = position[tested]
        found = Innovations(*(part[tested] for part in found))
        weight = self.plan.weights[order][position][:, None]
        factor = exponent[position, None]
        before = np.cumsum(self.plan.weights[order])[position - 1]
        return PredictionMoments(
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

    @property
    def _starts(self) -> NDArray[np.intp]:
        """First tested position of each tested block."""
        return np.maximum(self._tested_blocks * self._blocks[0].rows.shape[1], self.plan.start)

    @property
    def _ordered(self) -> Iterator[Array]:
        """Rows [Z r] in each order, scaled by the roots of their weights."""
        return (self.rows.take(order, self.plan.weights) for order in self.plan.orders)

    @cached_property
    def _blocks(self) -> list[OrderedBlocks]:
        return [blocks_of(rows) for rows in self._ordered]
