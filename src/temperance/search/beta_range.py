r"""Which betas the data do not tell from the best."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from temperance.calibration import mean_and_error
from temperance.curves import RiskCurve
from temperance.search.log_scale import Ruler
from temperance.types import Array

ERRORS = 2.0  # standard errors by which a beta must be worse to be told apart
HALVINGS, FEW_HALVINGS = 20, 8  # of the way to a bound; few where each takes a fit


def beta_range(
    curve: RiskCurve,
    beta: float,
    bounds: tuple[float, float],
    multiplicity: Array,
    inflation: float,
) -> tuple[float, float]:
    """Return the ends of the betas that are not told from ``beta``.

    A beta is told apart when its mean loss exceeds that at ``beta`` by more than two standard
    errors of the difference, paired over rows.

    Parameters
    ----------
    curve : RiskCurve
    beta : the choice
    bounds : where betas may lie
    multiplicity : observations that each row stands for
    inflation : of standard errors over rows
    """
    smallest, share = curve.rows(beta)
    ruler = curve.ruler(bounds)

    def told_apart(other: float) -> bool:
        difference, error = mean_and_error(curve.rows(other)[0] - smallest, share, multiplicity)
        return difference > ERRORS * inflation * error

    def end(bound: float) -> float:
        if bound == beta or not told_apart(bound):
            return bound
        halvings = FEW_HALVINGS if curve.costly else HALVINGS
        return edge(lambda other: not told_apart(other), beta, bound, ruler, halvings)

    return end(bounds[0]), end(bounds[1])


def edge(
    tolerated: Callable[[float], bool], inside: float, outside: float, ruler: Ruler, halvings: int
) -> float:
    """Halve the way between a beta that is tolerated and one that is not."""
    for _ in range(halvings):
        middle = float(ruler.middle(*np.sort([inside, outside])))
        if tolerated(middle):
            inside = middle
        else:
            outside = middle
    return inside
