r"""Rows in the coordinates in which the prior is N(0, I) and the noise has unit variance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from temperance.grouping import label_type
from temperance.models.linear import limits
from temperance.models.linear.singular import by_length, short_rows_are_lost
from temperance.models.prior import GaussianPrior, row_space
from temperance.types import Array, Labels, batches

CACHED = 2**17  # elements of a chunk that stays in a processor's cache
SORTED = 3 * 2**17  # the same, where rows are sorted by their labels
DEAR = 2**17  # elements of the rows beyond which a look at all of them is dear
FEW_COLUMNS = 128  # up to which a symmetric product takes longer than plain ones of its blocks
BLOCK, OVERLAP = 16, 4  # columns of such a block, and by how many the last reaches into another
SMALL = 10**6  # multiplications up to which BLAS takes matrices as they lie: twice as fast

LONG = 1e10  # length of a row beside which those of length 1 are short

Index = NDArray[np.intp] | slice


@dataclass(frozen=True, eq=False)
class Rows:
    r"""Rows [Z r] with Z = inputs diag(scale); the inputs are the caller's own, not copied."""

    inputs: Array  # (n, k)
    response: Array  # (n,)
    scale: Array  # (k,)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.response)

    @property
    def width(self) -> int:
        """The number of coefficients, k."""
        return self.inputs.shape[1]

    @cached_property
    def whole(self) -> Array:
        """All rows [Z r], shape (n, k + 1)."""
        return self.take(slice(None))

    def take(self, which: Index, weights: Array | None = None) -> Array:
        """Return some rows [Z r], scaled by the roots of the weights of all rows."""
        inputs = _some(self.inputs, which)
        found = np.empty((len(inputs), self.width + 1))
        np.multiply(inputs, self.scale, out=found[:, :-1])
        found[:, -1] = _some(self.response, which)
        if weights is not None:
            found *= np.sqrt(_some(weights, which))[:, None]
        return found

    @cached_property
    def second_moments(self) -> Array:
        """Second moments of all rows, each counted once, shape (k + 1, k + 1)."""
        return self.gram()

    def gram(self, which: slice = slice(None), weights: Array | None = None) -> Array:
        """Second moments sum_i w_i [z r]'[z r] of neighbours, or all, shape (k + 1, k + 1)."""
        width = self.width + 1
        total = np.zeros((width, width))
        self._add(total, which, weights)
        return self._finished(total)

    def _add(self, total: Array, which: slice, weights: Array | None) -> None:
        """Add second moments of neighbours, their lower triangle at least, without the scale."""
        found = np.zeros(total.shape)
        first, last, _ = which.indices(len(self))
        for part in batches(last - first, 1, _height(self.width)):
            here = slice(first + part.start, first + part.stop)
            z, r = self.inputs[here], self.response[here]
            if weights is not None:
                root = np.sqrt(weights[here])
                z, r = z * root[:, None], r * root
            _multiply(z, found[:-1, :-1])
            found[-1, :-1], found[-1, -1] = r @ z, r @ r
            total += found

    def grams(
        self, labels: Labels, count: int, weights: Array | None = None
    ) -> tuple[Array, NDArray[np.intp]]:
        """Second moments of the rows of each label below ``count``, and how many they are.

        Their shapes are (count, k + 1, k + 1) and (count,).
        """
        labels = labels.astype(label_type(count), copy=False)
        if not _in_order(labels):
            return self._sorted_grams(labels, count, weights)
        ends = labels.searchsorted(np.arange(count, dtype=labels.dtype), side="right")
        totals = np.zeros((count, self.width + 1, self.width + 1))
        for total, run in zip(totals, _runs(ends), strict=True):
            self._add(total, run, weights)
        return self._finished(totals), _lengths(ends)

    def _sorted_grams(
        self, labels: Labels, count: int, weights: Array | None
    ) -> tuple[Array, NDArray[np.intp]]:
        """Sort chunks of the rows by their labels, and sum up each."""
        width, each = self.width + 1, np.arange(count, dtype=labels.dtype)
        # Of an even number of columns products of blocks are faster.
        even = width + width % 2 if width <= FEW_COLUMNS else width
        # Rows are sorted in a cache, but as many as make products worth their calls; of few rows a
        # part, since memory is dear where it is first written to.
        chunk = min(SORTED, max(CACHED, self.inputs.size // 8))
        height = min(len(self), max(chunk // even, count * even))
        totals, counted = np.zeros((count, even, even)), np.zeros(count, dtype=np.intp)
        found = totals if height == len(self) else np.zeros(totals.shape)
        near, ordered = np.empty((2, height, even))
        near[:, width:] = 0.0  # or what was there would be multiplied
        for part in batches(len(self), 1, height):
            some = labels[part]
            order = some.argsort(kind="stable")
            rows = near[: len(order)]
            _copy_rows(rows[:, : self.width], self.inputs[part])
            rows[:, self.width] = self.response[part]
            if weights is not None:
                rows *= np.sqrt(weights[part])[:, None]
            rows = rows.take(order, axis=0, out=ordered[: len(order)], mode="clip")
            ends = some.searchsorted(each, side="right", sorter=order)
            counted += _lengths(ends)
            for product, run in zip(found, _runs(ends), strict=True):
                _multiply(rows[run], product)
            if found is not totals:
                totals += found
        return self._finished(totals[:, :width, :width]), counted

    def _finished(self, totals: Array) -> Array:
        """Scale second moments of inputs and responses, of which the lower triangle is known."""
        totals[..., :-1] *= self.scale
        totals[..., :-1, :-1] *= self.scale[:, None]  # their squares may overflow
        totals[..., :-1, -1] = totals[..., -1, :-1]
        for _, block in _blocks(self.width):
            below = slice(block.stop, self.width)
            totals[..., block, below] = totals[..., below, block].swapaxes(-1, -2)
        return totals


def _in_order(labels: Labels) -> bool:
    """Whether labels are sorted; those that are not soon show it."""
    parts = batches(len(labels) - 1, 1, CACHED)
    return all((labels[part] <= labels[part.start + 1 : part.stop + 1]).all() for part in parts)


def _runs(ends: NDArray[np.intp]) -> Iterator[slice]:
    """Yield what lies between neighbouring ends, the first from 0 on."""
    return (slice(*each) for each in pairwise([0, *ends.tolist()]))


def _lengths(ends: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return how long the runs are."""
    lengths = ends.copy()
    lengths[1:] -= ends[:-1]
    return lengths


def _copy_rows(target: Array, rows: Array) -> None:
    """Copy rows; those that lie together as bytes, not as a few numbers each: twice as fast."""
    width = rows.shape[1] * rows.itemsize
    if rows.strides == (width, rows.itemsize):
        whole = np.dtype((np.void, width))
        target.view(whole)[:] = rows.view(whole)
    else:
        target[:] = rows


def _multiply(rows: Array, out: Array) -> None:
    """Find second moments of rows, of which the lower triangle at least is asked for."""
    for below, block in _blocks(rows.shape[1]):
        np.matmul(rows[:, below].T, rows[:, block], out=out[below, block])


@cache
def _blocks(width: int) -> list[tuple[slice, slice]]:
    """Return columns to multiply with each other: blocks, and those from the same place on."""
    step = _step(width)
    blocks = [(slice(at, width), slice(at, min(at + step, width))) for at in range(0, width, step)]
    if len(blocks) > 1:
        # Some more for the last ones, lest the product be taken for a symmetric one.
        last = blocks[-1][1]
        blocks[-1] = slice(max(0, last.start - OVERLAP), width), last
    return blocks


def _step(width: int) -> int:
    """Return how many columns make a block: all of them where the symmetric product is faster."""
    if width > FEW_COLUMNS:
        return width
    return min(BLOCK, 1 << max(0, (width - 1).bit_length() - 1))


def _height(width: int) -> int:
    """Return how many rows are best multiplied at a time."""
    if width > FEW_COLUMNS:
        return max(CACHED // width, 4 * width)
    return max(1, SMALL // (width * _step(width)))


def _some(array: Array, which: Index) -> Array:
    """Return some rows, by ``take`` where that is thrice as fast: elsewhere it copies them all."""
    if isinstance(which, slice) or not array.flags.c_contiguous:
        return array[which]
    return array.take(which, axis=0)


def rows_of(whole: Array) -> Rows:
    """Take whitened rows [Z r], shape (n, k + 1), as they are."""
    return Rows(whole[:, :-1], whole[:, -1], np.ones(whole.shape[1] - 1))


def whitened_rows(
    Z: Array,
    y: Array,
    prior: GaussianPrior,
    noise_variance: float = 1.0,
    expected_variance: float | None = None,
) -> tuple[Rows, Array | None]:
    r"""Rows [Z C, y - Z mu_0] / s in their own span, and the basis of that span.

    What is expected of the variance of the noise, where it is unknown, says which digits matter.

    See :func:`temperance.models.prior.row_space`.  With more rows than columns and a diagonal C
    the inputs stay as they are: the scale of the columns carries C.
    """
    Z, prior = rescaled(Z, prior)
    deviation = float(np.sqrt(noise_variance))
    expected = deviation if expected_variance is None else float(np.sqrt(expected_variance))
    response = _response(Z, y, prior.mean, deviation, expected)
    if prior.root.ndim == 1 and Z.shape[0] >= Z.shape[1]:
        scale = prior.root / deviation
        bound = limits.refuse_inputs(Z, scale)
        return _unless_lost(Rows(Z, response, scale), bound), None
    with np.errstate(over="ignore", invalid="ignore"):
        whitened = prior.whiten(Z)
    bound = limits.refuse_inputs(whitened, np.full(Z.shape[1], 1.0 / deviation))
    coordinates, basis = _row_space(whitened)
    rows = Rows(coordinates, response, np.full(coordinates.shape[1], 1.0 / deviation))
    return _unless_lost(rows, bound), basis


def _unless_lost(rows: Rows, bound: float) -> Rows:
    """Return rows of bounded length; refuse them where some are rounding beside others."""
    if bound > LONG and short_rows_are_lost(rows.inputs * rows.scale):
        raise ValueError(
            f"X must have rows that are not lost in the rounding of others, got one of length "
            f"{bound:.2g} in units of the prior's and the noise's standard deviations"
        )
    return rows


def _row_space(rows: Array) -> tuple[Array, Array | None]:
    """Coordinates of rows in their own span, exact in every column, and the basis of that span."""
    order = by_length(rows.T) if rows.shape[0] < rows.shape[1] else None
    if order is None:
        return row_space(rows)
    coordinates, basis = row_space(rows[:, order])
    return coordinates, None if basis is None else basis[np.argsort(order)]


def rescaled(Z: Array, prior: GaussianPrior) -> tuple[Array, GaussianPrior]:
    """Return the same model of columns whose squares are neither infinite nor zero."""
    if limits.usual(Z):
        return Z, prior
    powers = np.frexp(np.abs(Z).max(axis=0, initial=0.0))[1]  # of two: the factors are exact
    with np.errstate(over="ignore"):
        mean, root = np.ldexp(prior.mean, powers), np.ldexp(prior.root.T, powers).T
    return np.ldexp(Z, -powers), GaussianPrior(mean, root)


def _response(Z: Array, y: Array, mean: Array, deviation: float, expected: float) -> Array:
    """Return (y - Z mu_0) / s, the difference in more digits than the rest."""
    if mean.any():
        with np.errstate(over="ignore", invalid="ignore"):
            predicted = Z.astype(np.longdouble) @ mean.astype(np.longdouble)
        limits.refuse_far_predictions(predicted, y, expected)
        y = (y - predicted).astype(float)
    with np.errstate(over="ignore"):
        response = y / deviation if deviation != 1.0 else y
    limits.refuse_responses(response, "the noise's standard deviation")
    return response
