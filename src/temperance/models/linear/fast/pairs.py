r"""Moments of explicit pairs: one decomposition per pair, then O(k^2) operations per beta."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, batches
from temperance.models.linear.eigenbasis import Misfits, positive_range, shrinkage
from temperance.models.linear.fast.blocks import blocks_of, partition_of
from temperance.models.linear.fast.training import (
    TrainedPairs,
    training_of_blocks,
    training_of_weights,
)
from temperance.models.linear.moments import PredictionMoments, Sums
from temperance.models.linear.rows import WhitenedRows
from temperance.plans import FoldPlan, Plan


@dataclass(frozen=True, eq=False)
class PairSums:
    r"""Sums over the tested rows of m pairs, from square roots T = [Z r] of their second moments.

    With B = Z U in the eigenbasis U of a pair's training set, c_j = g_j sigma_j and b_j the columns
    of B (see :mod:`temperance.models.linear.eigenbasis`), all of them are linear in s or in s^2:

        error  = r - beta sum_j b_j c_j s_j,    spread  =  sum_j |b_j|^2 s_j,
        error' =   - sum_j b_j c_j s_j^2,       spread' = -sum_j |b_j|^2 sigma_j^2 s_j^2.
    """

    training: TrainedPairs
    exposure: Array  # (m,)
    tested: Array  # (m,)

    def sums(self, beta: Array, pairwise: bool = True) -> Iterator[Sums]:
        """Yield the sums of batches of pairs."""
        responses, linear = self._responses, self._linear
        for part in batches(len(self.tested), linear[0].size * 4):
            s = shrinkage(self._eigenvalues[part], beta)
            value, slope = linear[part] @ s, linear[part] @ (s * s)
            error = responses[part] - beta * value[:, :-3]
            outside = self.training.spectrum.remainder[part, None]
            yield Sums(
                square=np.einsum("meg,meg->mg", error, error),
                spread=value[:, -2],
                misfit=beta * (outside + value[:, -3]),
                d_square=-2 * np.einsum("meg,meg->mg", error, slope[:, :-3]),
                d_spread=-slope[:, -1],
                d_misfit=outside + slope[:, -3],
                exposure=self.exposure[part],
                tested=self.tested[part],
            )

    @cached_property
    def _eigenvalues(self) -> Array:
        return (self.training.spectrum.sigma**2)[:, :, None]

    @cached_property
    def _linear(self) -> Array:
        """Coefficients of s: those of the errors, g^2, |b|^2 and |b|^2 sigma^2, (m, e + 3, k)."""
        sigma, vectors, projection, _ = self.training.spectrum
        rotated = self.training.tests[..., :-1] @ vectors
        found = np.empty((len(rotated), rotated.shape[1] + 3, rotated.shape[2]))
        np.multiply(rotated, (projection * sigma)[:, None], out=found[:, :-3])
        found[:, -3] = projection**2
        np.einsum("mek,mek->mk", rotated, rotated, out=found[:, -2])
        np.multiply(found[:, -2], sigma**2, out=found[:, -1])
        return found

    @cached_property
    def _responses(self) -> Array:
        """Errors at beta = 0, (m, e, 1)."""
        response = self.training.tests[..., -1:]
        count = len(self.tested)
        return response if len(response) == count else np.repeat(response, count, axis=0)


@dataclass(frozen=True, eq=False)
class PairMoments:
    """Moments of whitened rows under a plan."""

    rows: WhitenedRows
    plan: Plan | FoldPlan
    lowest_interpolated: ClassVar[float] = 0.0

    def moments(self, beta: Array) -> Iterator[PredictionMoments]:
        """Yield the moments of batches of pairs."""
        pairs, k = len(self.summary.tested), self.rows.width
        index, weight = self._tested
        for part in batches(pairs, (weight.shape[1] + k) * max(k, len(beta))):
            yield self._batch(part, index[part], weight[part], beta)

    def sums(self, beta: Array, pairwise: bool = True) -> Iterator[Sums]:
        """Yield the sums of batches of pairs."""
        return self.summary.sums(beta)

    @property
    def eigenvalues(self) -> tuple[float, float]:
        """Smallest positive and largest eigenvalue of all training sets."""
        return positive_range(self.summary.training.spectrum.sigma**2)

    @property
    def misfits(self) -> Misfits:
        """Quantities that determine at which betas the misfits of the training sets change."""
        return Misfits.of(self.summary.training.spectrum, self.summary.exposure)

    def _batch(
        self, part: slice, index: NDArray[np.intp], weight: Array, beta: Array
    ) -> PredictionMoments:
        summary = self.summary
        spectrum = summary.training.spectrum.take(part)
        state = spectrum.at(beta)
        tests = self.rows.whole[index]
        rotated = tests[..., :-1] @ spectrum.vectors
        squared = rotated**2
        return PredictionMoments(
            error=tests[..., -1:] - rotated @ state.mean,
            variance=squared @ state.shrinkage,
            misfit=state.misfit,
            d_error=-(rotated @ state.d_mean),
            d_variance=squared @ state.d_shrinkage,
            d_misfit=state.d_misfit,
            exposure=summary.exposure[part],
            weight=weight,
            tested=summary.tested[part],
            rows=index,
        )

    @cached_property
    def _tested(self) -> tuple[NDArray[np.intp], Array]:
        return self.plan.pairs().tested_rows()

    @cached_property
    def summary(self) -> PairSums:
        """Decomposed training sets, and the second moments of the tested rows."""
        partition = partition_of(self.plan, self.rows.width + 1)
        if partition is None:
            pairs = self.plan.pairs()
            train, test = pairs.likelihood_weights, pairs.test
            training = training_of_weights(self.rows.whole, train, test)
            return PairSums(training, train.sum(axis=1), test.sum(axis=1))
        blocks = blocks_of(self.rows, partition)
        training = training_of_blocks(blocks, partition.train, partition.test)
        return PairSums(training, partition.train @ blocks.sizes, partition.test @ blocks.sizes)
