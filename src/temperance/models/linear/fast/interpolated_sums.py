r"""Sums of moments at every beta, from few where these determine them.

With a known noise variance the sums over tested rows are functions of the kind of
:mod:`temperance.models.linear.fast.interpolant`: from some beta on, their values at few betas
determine them and their slopes.  At smaller betas they are computed one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from temperance.models.linear.fast.interpolant import Interpolant, Variable, resolved
from temperance.models.linear.moments import Sums
from temperance.types import Array


class InterpolatedSums(NamedTuple):
    """Sums of tested rows from some beta on."""

    known: Callable[[Array], Array]  # from betas (g,) to square and spread, with slopes, (2, 2, g)
    lowest: float
    exposure: float
    tested: float

    def at(self, beta: Array, below: Callable[[Array], Iterable[Sums]]) -> Sums:
        """Return the sums at betas (g,); parts of those at lower betas are said ``below``."""
        far = beta >= self.lowest
        if far.all():
            return sums_of(self.known(beta), self.exposure, self.tested)
        found = np.zeros((2, 2, len(beta)))
        found[:, :, far] = self.known(beta[far])
        for each in below(beta[~far]):
            found[0][:, ~far] += np.concatenate([each.square, each.spread])
            found[1][:, ~far] += np.concatenate([each.d_square, each.d_spread])
        return sums_of(found, self.exposure, self.tested)


def interpolate_sums(
    variable: Variable, values: Array, exposure: float, tested: float
) -> InterpolatedSums | None:
    """Interpolate square and spread (2, points) at a variable's nodes, if these resolve the sum."""
    if not resolved(variable, values.sum(axis=0, keepdims=True)):
        return None
    known = Interpolant.through(variable, values).with_slope
    return InterpolatedSums(known, variable.lowest, exposure, tested)


def sums_of(found: Array, exposure: float, tested: float) -> Sums:
    """Take square and spread, and their slopes, (2, 2, g), as sums of all pairs."""
    (square, spread), (d_square, d_spread) = found[:, :, None]
    none = np.zeros_like(square)
    return Sums(
        square=square,
        spread=spread,
        misfit=none,
        d_square=d_square,
        d_spread=d_spread,
        d_misfit=none,
        exposure=np.array([exposure]),
        tested=np.array([tested]),
    )
