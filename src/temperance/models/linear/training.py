r"""The training sets of a plan, decomposed, and square roots of what each pair tests.

Gram matrices come first; a pair whose Gram matrix is too ill-conditioned to tell its directions
apart is decomposed from square roots of its rows instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.models.linear.blocks import Blocks
from temperance.models.linear.spectrum import (
    Spectrum,
    joined,
    spectrum_of,
    spectrum_of_grams,
)
from temperance.models.linear.triangle import triangle
from temperance.types import Array, batches


class Training(NamedTuple):
    """What m pairs learnt and what they test."""

    spectrum: Spectrum
    tests: Array  # (m or 1, e, k + 1): square roots of the second moments that are tested


def training_of_blocks(blocks: Blocks, train: Array, test: Array) -> Training:
    """Train and test pairs on blocks that weigh ``train`` and ``test`` (pairs, blocks)."""
    spectra, flat = [], blocks.grams.reshape(len(blocks.grams), -1)
    for part in batches(len(train), flat.shape[1]):
        grams = (train[part] @ flat).reshape(-1, *blocks.grams.shape[1:])
        counts = (train[part] > 0) @ blocks.counts

        def factor(pair: int, at: int = part.start) -> Array:
            return _stacked(blocks, train[at + pair])

        spectra.append(guarded_spectra(grams, counts, factor))
    blocks.factors(np.flatnonzero(test.any(axis=0)))  # those of all tests at once
    return Training(joined(spectra), _padded([_stacked(blocks, each) for each in test]))


def training_of_weights(rows: Array, train: Array, test: Array) -> Training:
    """Train and test pairs on rows [Z r] that weigh ``train`` and ``test`` (pairs, n)."""
    spectra = []
    for part in batches(len(train), rows.size):
        weighted = np.sqrt(train[part])[:, :, None] * rows
        grams = weighted.swapaxes(1, 2) @ weighted
        counts = (train[part] > 0).sum(axis=1)

        def factor(pair: int, parts: Array = weighted) -> Array:
            return triangle(parts[pair])

        spectra.append(guarded_spectra(grams, counts, factor))
    different = test[:1] if np.all(test == test[0]) else test
    factors = [triangle(np.sqrt(each)[:, None] * rows) for each in different]
    return Training(joined(spectra), _padded(factors))


def guarded_spectra(
    grams: Array, counts: NDArray[np.intp], factor: Callable[[int], Array]
) -> Spectrum:
    """Decompose Gram matrices (m, k + 1, k + 1), or the square roots of those that are unsafe."""
    spectrum, safe = spectrum_of_grams(grams, counts)
    unsafe = np.flatnonzero(~safe)
    if len(unsafe):
        again = spectrum_of(_padded([factor(int(pair)) for pair in unsafe]))
        for field, better in zip(spectrum, again, strict=True):
            field[unsafe] = better
    return spectrum


def _stacked(blocks: Blocks, weights: Array) -> Array:
    """Square root of the weighted sum of the blocks' second moments."""
    (used,) = weights.nonzero()
    factors = blocks.factors(used)
    if len(used) == 1 and weights[used[0]] == 1.0:
        return factors[0]
    roots = np.sqrt(weights[used])
    return triangle(
        np.concatenate([root * each for root, each in zip(roots, factors, strict=True)])
    )


def _padded(factors: list[Array]) -> Array:
    """Stack square roots of different heights, with rows of zeros below the lower."""
    if len(factors) == 1:
        return factors[0][None]
    stacked = np.zeros((len(factors), max(map(len, factors)), factors[0].shape[1]))
    for place, factor in zip(stacked, factors, strict=True):
        place[: len(factor)] = factor
    return stacked
