r"""What a sampler gives: draws of a tempered posterior and the loss of every row at each.

For exponents c over the rows the target is

    pi_c(theta)  ∝  exp(-sum_i c_i l(theta, x_i)) pi_0(theta),

so one sampler serves every pair of a plan and every beta: c = beta w.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from temperance.types import Array


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws from one tempered posterior.

    Parameters
    ----------
    theta : parameters by name, each of shape (chains, size, ...)
    losses : loss of every row, trained on or not, at every draw, shape (chains, size, n)
    divergent : number of divergent transitions
    end : where the chains stopped and how they were tuned, for a start at a neighbouring target;
        opaque to all but the sampler that made it
    """

    theta: Mapping[str, Array]
    losses: Array
    divergent: int = 0
    end: Any = None


class Sampler(Protocol):
    """A sampler of one model on one data set."""

    def draw(self, exponents: Array, seed: int, start: Any = None) -> Draws:
        """Draw from the posterior with ``exponents`` (n,); ``start`` is an ``end`` of before."""
        ...
