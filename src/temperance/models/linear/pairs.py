r"""Moments of explicit pairs: one decomposition per pair, then any beta at O(k^2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from temperance.models.linear.blocks import blocks_of, partition_of
from temperance.models.linear.moments import Moments, Sums
from temperance.models.linear.rows import Rows
from temperance.models.linear.spectrum import Spectrum, posterior_state
from temperance.models.linear.training import Training, training_of_blocks, training_of_weights
from temperance.types import Array, FoldPlan, Plan, batches


@dataclass(frozen=True, eq=False)
class PairSums:
    """Sums over what each of m pairs tests, from square roots of its second moments."""

    training: Training
    exposure: Array  # (m,)
    tested: Array  # (m,)

    def sums(self, beta: Array, pairwise: bool = True) -> Iterator[Sums]:
        """Yield the sums of batches of pairs."""
        spectrum = self.training.spectrum
        rotated, column_squares, response = self._rotated
        for part in batches(len(self.tested), (rotated[0].size + spectrum.sigma.shape[1]) * 4):
            state = posterior_state(Spectrum(*(field[part] for field in spectrum)), beta)
            squares = column_squares[part][:, None, :]
            error = response[part] - rotated[part] @ state.mean
            d_error = rotated[part] @ state.d_mean
            yield Sums(
                square=np.einsum("meg,meg->mg", error, error),
                spread=(squares @ state.shrinkage)[:, 0],
                misfit=state.misfit,
                d_square=-2 * np.einsum("meg,meg->mg", error, d_error),
                d_spread=(squares @ state.d_shrinkage)[:, 0],
                d_misfit=state.d_misfit,
                exposure=self.exposure[part],
                tested=self.tested[part],
            )

    @cached_property
    def _rotated(self) -> tuple[Array, Array, Array]:
        tests, vectors = self.training.tests, self.training.spectrum.vectors
        rotated = tests[..., :-1] @ vectors
        response = tests[..., -1:]
        if len(tests) < len(rotated):
            response = np.broadcast_to(response, (*rotated.shape[:2], 1))
        return rotated, np.einsum("mek,mek->mk", rotated, rotated), response


@dataclass(frozen=True, eq=False)
class PairMoments:
    """Moments of whitened rows under a plan."""

    rows: Rows
    plan: Plan | FoldPlan

    def moments(self, beta: Array) -> Iterator[Moments]:
        """Yield the moments of batches of pairs."""
        pairs, k = len(self._summary.tested), self.rows.width
        index, weight = self._tested
        for part in batches(pairs, (weight.shape[1] + k) * max(k, len(beta))):
            yield self._batch(part, index[part], weight[part], beta)

    def sums(self, beta: Array, pairwise: bool = True) -> Iterator[Sums]:
        """Yield the sums of batches of pairs."""
        return self._summary.sums(beta)

    def _batch(self, part: slice, index: NDArray[np.intp], weight: Array, beta: Array) -> Moments:
        summary = self._summary
        spectrum = Spectrum(*(field[part] for field in summary.training.spectrum))
        state = posterior_state(spectrum, beta)
        tests = self.rows.whole[index]
        rotated = tests[..., :-1] @ spectrum.vectors
        squared = rotated**2
        return Moments(
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
        return self.plan.pairs().tested()

    @cached_property
    def _summary(self) -> PairSums:
        partition = partition_of(self.plan, self.rows.width + 1)
        if partition is None:
            pairs = self.plan.pairs()
            train, test = pairs.likelihood_weights, pairs.test
            training = training_of_weights(self.rows.whole, train, test)
            return PairSums(training, train.sum(axis=1), test.sum(axis=1))
        blocks = blocks_of(self.rows, partition)
        training = training_of_blocks(blocks, partition.train, partition.test)
        return PairSums(training, partition.train @ blocks.sizes, partition.test @ blocks.sizes)
