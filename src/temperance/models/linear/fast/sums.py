r"""Sums over tested rows: Gibbs risks need no more, and sums are cheaper than single rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

import numpy as np

from temperance.data import Array
from temperance.models.linear.moments import MomentSource, PredictionMoments, Sums
from temperance.models.linear.noise import NoiseModel


class SummedSource(MomentSource, Protocol):
    """Moments of a plan, and their sums."""

    @property
    def lowest_interpolated(self) -> float:
        """Smallest beta covered by the interpolant of the sums; infinite without one."""
        ...

    def sums(self, beta: Array, pairwise: bool) -> Iterator[Sums]:
        """Yield the sums of each pair or, unless ``pairwise``, of several, without a misfit."""
        ...


@runtime_checkable
class HasFloor(Protocol):
    """A source with a cheap lower bound."""

    def floor(self, beta: Array) -> Iterator[Sums]:
        """Yield cheap lower bounds of the sums over all pairs."""
        ...


def mean_gibbs(beta: Array, parts: Iterable[Sums], noise: NoiseModel) -> tuple[Array, Array]:
    """Return the mean Gibbs loss over all pairs and its derivative, (g,) each."""
    value, slope, total = np.zeros(len(beta)), np.zeros(len(beta)), 0.0
    for sums in parts:
        found, d_found = noise.summed(beta, sums)
        value += found
        slope += d_found
        total += float(sums.tested.sum())
    return value / total, slope / total


def summed(moments: PredictionMoments, pairwise: bool) -> Sums:
    """Return the sums over the tested rows of each pair, or of all pairs."""
    if not pairwise:
        return _summed_over_pairs(moments)
    weight = moments.weight[:, :, None]
    weighted = weight * moments.error
    return Sums(
        square=np.einsum("meg,meg->mg", weighted, moments.error),
        spread=(weight * moments.variance).sum(axis=1),
        misfit=moments.misfit,
        d_square=2 * np.einsum("meg,meg->mg", weighted, moments.d_error),
        d_spread=(weight * moments.d_variance).sum(axis=1),
        d_misfit=moments.d_misfit,
        exposure=moments.exposure,
        tested=moments.tested,
    )


def _summed_over_pairs(moments: PredictionMoments) -> Sums:
    error, d_error, variance, d_variance = (
        part.reshape(-1, part.shape[-1])
        for part in (moments.error, moments.d_error, moments.variance, moments.d_variance)
    )
    weight = moments.weight.reshape(1, -1)
    weighted = weight.T * error
    none = np.zeros((1, error.shape[1]))
    return Sums(
        square=np.einsum("rg,rg->g", weighted, error)[None],
        spread=weight @ variance,
        misfit=none,
        d_square=2 * np.einsum("rg,rg->g", weighted, d_error)[None],
        d_spread=weight @ d_variance,
        d_misfit=none,
        exposure=moments.exposure.sum(keepdims=True),
        tested=moments.tested.sum(keepdims=True),
    )
