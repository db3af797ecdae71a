r"""What a linear model needs to know of a plan: error and variance of each tested row's prediction.

For every pair p and tested row i: error e = r_i - z_i'm_p and variance v = z_i'S_p z_i as
functions of beta, with derivatives; per pair the misfit Q (see
:mod:`temperance.models.linear.spectrum`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

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
    tested: Array  # (m,): total test weight, whatever the rows were condensed to
    rows: NDArray[np.intp]  # (m, e): which rows; none when they are condensed


class MomentSource(Protocol):
    """Moments of a plan, in batches of pairs."""

    def moments(self, beta: Array, condensed: bool) -> Iterator[Moments]:
        """Yield the moments; ``condensed`` allows rows that only add up to the same squares."""
        ...
