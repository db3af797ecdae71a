r"""Moments of explicit pairs: one decomposition per pair, then any beta at O(k^2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from temperance.models.linear.condense import condense
from temperance.models.linear.moments import Moments
from temperance.models.linear.spectrum import (
    Spectrum,
    posterior_state,
    weighted_factors,
    weighted_spectra,
)
from temperance.types import Array, Plan, batches


@dataclass(frozen=True, eq=False)
class PairMoments:
    """Moments of the rows [Z r] (n, k + 1), whitened and in units of the noise, under a plan."""

    rows: Array
    plan: Plan

    def moments(self, beta: Array, condensed: bool) -> Iterator[Moments]:
        """Yield the moments of batches of pairs."""
        pairs, k = len(self.plan.test), self.rows.shape[1] - 1
        if condensed:
            tests = self._condensed_tests
            none = np.empty((pairs, 0), dtype=np.intp)
            for part in batches(pairs, (tests.shape[1] + k) * max(k, len(beta))):
                yield self._batch(part, tests[part], np.ones((1, 1)), none[part], beta)
        else:
            index, weight = self._tested
            for part in batches(pairs, (weight.shape[1] + k) * max(k, len(beta))):
                yield self._batch(part, self.rows[index[part]], weight[part], index[part], beta)

    def _batch(
        self, part: slice, tests: Array, weight: Array, index: NDArray[np.intp], beta: Array
    ) -> Moments:
        spectrum = Spectrum(*(field[part] for field in self._spectrum))
        state = posterior_state(spectrum, beta)
        rotated = tests[..., :-1] @ spectrum.vectors
        squared = rotated**2
        return Moments(
            error=tests[..., -1:] - rotated @ state.mean,
            variance=squared @ state.shrinkage,
            misfit=state.misfit,
            d_error=-(rotated @ state.d_mean),
            d_variance=squared @ state.d_shrinkage,
            d_misfit=state.d_misfit,
            exposure=self._exposure[part],
            weight=np.broadcast_to(weight, tests.shape[:2]),
            tested=self.plan.test[part].sum(axis=1),
            rows=index,
        )

    @cached_property
    def _tested(self) -> tuple[NDArray[np.intp], Array]:
        return self.plan.tested()

    @cached_property
    def _condensed(self) -> tuple[Array, ...]:
        return condense(self.rows, self.plan.likelihood_weights, self.plan.test)

    @cached_property
    def _spectrum(self) -> Spectrum:
        rows, train, _ = self._condensed
        return weighted_spectra(rows, train)

    @cached_property
    def _condensed_tests(self) -> Array:
        rows, _, test = self._condensed
        if np.all(test == test[0]):
            factor = weighted_factors(rows, test[:1])
            return np.broadcast_to(factor, (len(test), *factor.shape[1:]))
        return np.concatenate(
            [weighted_factors(rows, test[part]) for part in batches(len(test), rows.size)]
        )

    @cached_property
    def _exposure(self) -> Array:
        return self.plan.likelihood_weights.sum(axis=1)
