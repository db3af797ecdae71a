r"""Moments that the risks of a linear model need: error and variance of each prediction.

For every pair p and tested row i: error e = r_i - z_i'm_p and variance v = z_i'S_p z_i as
functions of beta, with derivatives; per pair the misfit Q, see
:mod:`temperance.models.linear.eigenbasis`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array
from temperance.models.linear.eigenbasis import Misfits


class PredictionMoments(NamedTuple):
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
    def eigenvalues(self) -> tuple[float, float]:
        """Smallest positive and largest eigenvalue of all training sets, or bounds on them."""
        ...

    @property
    def misfits(self) -> Misfits:
        """Quantities that determine at which betas the misfits of the training sets change."""
        ...

    def moments(self, beta: Array) -> Iterator[PredictionMoments]:
        """Yield the moments of the tested rows."""
        ...
