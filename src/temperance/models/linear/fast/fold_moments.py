r"""Moments of the rows of folds, each in the eigenbasis of its training rows.

With U the eigenvectors of the rows outside a fold and A = Z U of the rows in it, stored by columns,
the errors r - A m and variances A^2 s at a beta are two products; see
:mod:`temperance.models.linear.eigenbasis`.  A is cached: it is as large as the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, batches
from temperance.duplicates import members_of
from temperance.models.linear.eigenbasis import Misfits
from temperance.models.linear.fast.pairs import PairMoments
from temperance.models.linear.moments import PredictionMoments, Sums
from temperance.models.linear.rows import CACHED, WhitenedRows
from temperance.plans import FoldPlan


@dataclass(frozen=True, eq=False)
class FoldPlanMoments:
    """Moments of many whitened rows under a plan of folds."""

    lowest_interpolated: ClassVar[float] = 0.0
    rows: WhitenedRows
    plan: FoldPlan

    def sums(self, beta: Array, pairwise: bool = True) -> Iterator[Sums]:
        """Yield the sums of batches of folds."""
        return self._pairs.sums(beta, pairwise)

    def moments(self, beta: Array) -> Iterator[PredictionMoments]:
        """Yield the moments of parts of each fold."""
        summary = self._pairs.summary
        for pair, (members, rotated) in enumerate(self._rotated):
            spectrum = summary.training.spectrum.take(slice(pair, pair + 1))
            state = spectrum.at(beta)
            mean = np.concatenate([state.mean[0], state.d_mean[0]], axis=1).T
            shrinkage = np.concatenate([state.shrinkage[0], state.d_shrinkage[0]], axis=1).T
            for part in batches(len(members), len(rotated) + 8 * len(beta), CACHED):
                a, response = rotated[:-1, part], rotated[-1:, part]
                fit, d_fit = np.split(mean @ a, 2)
                variance, d_variance = np.split(shrinkage @ (a * a), 2)
                weight = self.plan.weights[members[part]]
                yield PredictionMoments(
                    error=(response - fit).T[None],
                    variance=variance.T[None],
                    misfit=state.misfit,
                    d_error=-d_fit.T[None],
                    d_variance=d_variance.T[None],
                    d_misfit=state.d_misfit,
                    exposure=summary.exposure[pair : pair + 1],
                    weight=weight[None],
                    tested=weight.sum(keepdims=True),
                    rows=members[None, part],
                )

    @property
    def eigenvalues(self) -> tuple[float, float]:
        """Smallest positive and largest eigenvalue of all training sets."""
        return self._pairs.eigenvalues

    @property
    def misfits(self) -> Misfits:
        """Quantities that determine at which betas the misfits of the training sets change."""
        return self._pairs.misfits

    @cached_property
    def _pairs(self) -> PairMoments:
        return PairMoments(self.rows, self.plan)

    @cached_property
    def _rotated(self) -> list[tuple[NDArray[np.intp], Array]]:
        """Row indices of each tested fold, and [A r]', shape (k + 1, rows)."""
        folds = members_of(self.plan.fold, self.plan.n_folds)[self.plan.start :]
        vectors = self._pairs.summary.training.spectrum.vectors
        found: list[tuple[NDArray[np.intp], Array]] = []
        for members, basis in zip(folds, vectors, strict=True):
            whole = self.rows.take(members)
            rotated = np.empty((whole.shape[1], len(members)))
            np.matmul(basis.T, whole[:, :-1].T, out=rotated[:-1])
            rotated[-1] = whole[:, -1]
            found.append((members, rotated))
        return found
