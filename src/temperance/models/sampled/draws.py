r"""Output of a sampler: draws of a tempered posterior and the loss of every row at each.

For exponents c over the rows the target is

    pi_c(theta)  ∝  exp(-sum_i c_i l(theta, x_i)) pi_0(theta),

so one sampler serves every pair of a plan and every beta: c = beta w.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from temperance.data import Array


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws from one tempered posterior.

    Parameters
    ----------
    theta : parameters by name, each of shape (chains, size, ...)
    losses : loss of every row, used for training or not, at every draw, (chains, size, n)
    divergent : number of divergent transitions
    end : last positions and tuning of the chains, to start at a neighbouring target; its format
        belongs to the sampler
    dims : names of the dimensions of parameters and observed variables, after chain and draw
    coords : labels along named dimensions
    """

    theta: Mapping[str, Array]
    losses: Array
    divergent: int = 0
    end: Any = None
    dims: Mapping[str, Sequence[str]] = field(default_factory=dict)
    coords: Mapping[str, Any] = field(default_factory=dict)


class Sampler(Protocol):
    """A sampler of one model on one data set."""

    def draw(self, exponents: Array, seed: int, start: Any = None) -> Draws:
        """Return draws for ``exponents`` (n,); ``start`` is the ``end`` of earlier draws."""
        ...
