r"""What a linear model needs to know of a plan: error and variance of each tested row's prediction.

For every pair p and tested row i: error e = r_i - z_i'm_p and variance v = z_i'S_p z_i as
functions of beta, with derivatives; per pair the misfit Q (see
:mod:`temperance.models.linear.spectrum`).  Gibbs risks need no more than the sums over each pair's
rows, which are cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from temperance.models.linear.extent import Misfits
from temperance.types import Array


class Moments(NamedTuple):
    """Moments of m pairs with e tested rows each at g betas, in units of the noise."""

    error: Array  # (m, e, g)
    variance: Array  # (m, e, g)
    misfit: Array  # (m, g)
    d_error: Array
    d_variance: Array
    d_misfit: Array
    exposure: Array  # (m,): weight of the training rows, so that alpha = beta * exposure
    weight: Array  # (m, e): weight of each tested row
    tested: Array  # (m,): total test weight
    rows: NDArray[np.intp]  # (m, e): which rows


class Sums(NamedTuple):
    """Sums over the tested rows of m pairs at g betas, in units of the noise."""

    square: Array  # (m, g): of weight * error^2
    spread: Array  # (m, g): of weight * variance
    misfit: Array  # (m, g)
    d_square: Array
    d_spread: Array
    d_misfit: Array
    exposure: Array  # (m,)
    tested: Array  # (m,)


class MomentSource(Protocol):
    """Moments of a plan, in batches of pairs."""

    @property
    def reach(self) -> float:
        """Beta, or a little less, from which on sums cost next to nothing."""
        ...

    @property
    def eigenvalues(self) -> tuple[float, float]:
        """The least positive eigenvalue of all training sets and the largest, or bounds on them."""
        ...

    @property
    def misfits(self) -> Misfits:
        """What decides at which betas the misfits of the training sets move."""
        ...

    def moments(self, beta: Array) -> Iterator[Moments]:
        """Yield the moments of the tested rows."""
        ...

    def sums(self, beta: Array, pairwise: bool) -> Iterator[Sums]:
        """Yield their sums, of each pair or, unless ``pairwise``, of several without a misfit."""
        ...


@runtime_checkable
class HasFloor(Protocol):
    """A source that can say little for less."""

    def floor(self, beta: Array) -> Iterator[Sums]:
        """Yield sums of all pairs that are nowhere larger and cost no more."""
        ...


def summed(moments: Moments, pairwise: bool) -> Sums:
    """Sum over the tested rows of each pair, or of all pairs."""
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


def _summed_over_pairs(moments: Moments) -> Sums:
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
