r"""Moments of SafeBayes: every row is predicted from the rows before it, in blocks.

Rows of blocks that share their beta come from :mod:`temperance.models.linear.innovations`, those
with a beta of their own, when alpha is held, from :mod:`temperance.models.linear.own_betas`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from temperance.models.linear.innovations import (
    Blocks,
    Innovations,
    RowSpectra,
    at_shared_beta,
    blocks_of,
    row_spectra,
)
from temperance.models.linear.interpolant import (
    SumsInterpolant,
    count_nodes,
    interpolate_sums,
    node_betas,
)
from temperance.models.linear.moments import Moments, Sums, summed
from temperance.models.linear.own_betas import Interpolant, interpolate
from temperance.models.linear.rows import CACHED, Rows
from temperance.models.linear.spectrum import Spectrum, factor_of
from temperance.models.linear.triangle import WORST_CONDITION
from temperance.types import Array, PrefixPlan, batches

SMALLEST_PART = 32  # times smaller than a cache is a part whose sums are worth an interpolation
LEAST_CEILING = 4.0  # betas up to which to interpolate at least; then in factors of 16


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
                size = blocks.rows.shape[1]
                first, last = chosen[0] * size, min((chosen[-1] + 1) * size, len(self.rows))
                skipped = max(self.plan.start - first, 0)  # rows that only train
                weight = self.plan.weights[self.plan.orders[which]]
                tested = weight[first + skipped : last]
                before = np.cumsum(weight)[first + skipped - 1 : last - 1]
                beta = node_betas(low, high, nodes)
                # The weights cancel: the rows have their roots.  Rows beyond the last are zero.
                square, spread = np.array([blocks.sums_after(skipped, float(at)) for at in beta]).T
                self._sums[key] = interpolate_sums(
                    low, high, square, spread, float(before.sum()), float(tested.sum())
                )
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
                found = at_shared_beta(blocks.take(chosen), beta)
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
        """Blocks after blocks: as many as stay in a cache, and no more than a third of the earlier.

        So their training sets have much the same size, and few betas determine their sums.  Before
        that is worth it all blocks are one part.
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
