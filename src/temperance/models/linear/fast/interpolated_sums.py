r"""Sums of moments at every beta, by interpolation where possible.

With a known noise variance the sums over tested rows are functions of the kind described in
:mod:`temperance.models.linear.fast.interpolant`: above some beta, their values at few betas
determine them and their slopes.  At smaller betas they are computed directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from temperance.data import Array
from temperance.models.linear.fast.interpolant import Interpolant, Variable, resolved
from temperance.models.linear.moments import Sums


class InterpolatedSums(NamedTuple):
    """Sums over tested rows, interpolated from some beta on."""

    interpolant: Callable[[Array], Array]  # betas (g,) -> square, spread and slopes (2, 2, g)
    lowest: float
    exposure: float
    tested: float

    def at(self, beta: Array, below: Callable[[Array], Iterable[Sums]]) -> Sums:
        """Return the sums at betas (g,); ``below`` yields parts of the sums at lower betas."""
        covered = beta >= self.lowest
        if covered.all():
            return sums_of(self.interpolant(beta), self.exposure, self.tested)
        found = np.zeros((2, 2, len(beta)))
        found[:, :, covered] = self.interpolant(beta[covered])
        for each in below(beta[~covered]):
            found[0][:, ~covered] += np.concatenate([each.square, each.spread])
            found[1][:, ~covered] += np.concatenate([each.d_square, each.d_spread])
        return sums_of(found, self.exposure, self.tested)


def interpolate_sums(
    variable: Variable, values: Array, exposure: float, tested: float
) -> InterpolatedSums | None:
    """Return interpolated sums from square and spread (2, points) at the nodes, if resolved."""
    if not resolved(variable, values.sum(axis=0, keepdims=True)):
        return None
    interpolant = Interpolant.through(variable, values).with_slope
    return InterpolatedSums(interpolant, variable.lowest, exposure, tested)


def sums_of(found: Array, exposure: float, tested: float) -> Sums:
    """Return square and spread, with their slopes, (2, 2, g), as sums of all pairs."""
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
