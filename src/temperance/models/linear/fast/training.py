r"""Decomposed training sets of a plan, and square roots of the tested second moments.

Gram matrices are used first.  If the Gram matrix of a pair is too ill-conditioned, a square root of
its rows is decomposed instead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from temperance.data import Array, batches
from temperance.models.linear.eigenbasis import Eigenbasis, joined
from temperance.models.linear.fast.blocks import Blocks
from temperance.models.linear.grams import guarded_eigenbasis, padded, triangle


class TrainedPairs(NamedTuple):
    """Decomposed training sets of m pairs, and what they test."""

    spectrum: Eigenbasis
    tests: Array  # (m or 1, e, k + 1): square roots of the second moments that are tested


def training_of_blocks(blocks: Blocks, train: Array, test: Array) -> TrainedPairs:
    """Return pairs whose blocks have weights ``train`` and ``test`` (pairs, blocks)."""
    spectra, flat = [], blocks.grams.reshape(len(blocks.grams), -1)
    for part in batches(len(train), flat.shape[1]):
        grams = (train[part] @ flat).reshape(-1, *blocks.grams.shape[1:])
        counts = (train[part] > 0) @ blocks.counts

        def factor(pair: int, at: int = part.start) -> Array:
            return _stacked(blocks, train[at + pair])

        spectra.append(guarded_eigenbasis(grams, counts, factor))
    blocks.factors(np.flatnonzero(test.any(axis=0)))  # the factors of all tests in one call
    return TrainedPairs(joined(spectra), padded([_stacked(blocks, each) for each in test]))


def training_of_weights(rows: Array, train: Array, test: Array) -> TrainedPairs:
    """Return pairs whose rows [Z r] have weights ``train`` and ``test`` (pairs, n)."""
    spectra = []
    for part in batches(len(train), rows.size):
        weighted = np.sqrt(train[part])[:, :, None] * rows
        grams = weighted.swapaxes(1, 2) @ weighted
        counts = (train[part] > 0).sum(axis=1)

        def factor(pair: int, parts: Array = weighted) -> Array:
            return triangle(parts[pair])

        spectra.append(guarded_eigenbasis(grams, counts, factor))
    distinct = test[:1] if np.all(test == test[0]) else test
    factors = [triangle(np.sqrt(each)[:, None] * rows) for each in distinct]
    return TrainedPairs(joined(spectra), padded(factors))


def _stacked(blocks: Blocks, weights: Array) -> Array:
    """Return the square root of the weighted sum of the blocks' second moments."""
    (used,) = weights.nonzero()
    factors = blocks.factors(used)
    if len(used) == 1 and weights[used[0]] == 1.0:
        return factors[0]
    roots = np.sqrt(weights[used])
    return triangle(
        np.concatenate([root * each for root, each in zip(roots, factors, strict=True)])
    )
