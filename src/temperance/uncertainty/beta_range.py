r"""The range of betas whose risk does not differ significantly from that of the choice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from temperance.curves import RiskCurve
from temperance.data import Array
from temperance.search.compressed import compress
from temperance.search.log_scale import Ruler
from temperance.uncertainty.standard_errors import mean_and_error

ERRORS = 2.0  # standard errors by which the risk of a beta must be larger to be excluded
HALVINGS, FEW_HALVINGS = 20, 8  # of the interval to a bound; few if each point takes a fit


def beta_range(
    curve: RiskCurve,
    beta: float,
    bounds: tuple[float, float],
    multiplicity: Array,
    inflation: float,
    groups: Array | None = None,
) -> tuple[float, float]:
    """Return the lowest and the highest beta that are not significantly worse than ``beta``.

    A beta is significantly worse if its mean loss exceeds that at ``beta`` by more than two
    standard errors of the difference, paired over rows.

    Parameters
    ----------
    curve : RiskCurve
    beta : the choice
    bounds : range allowed for beta
    multiplicity : number of observations that each row represents
    inflation : factor on the standard errors over rows
    groups : labels of rows that depend on each other
    """
    smallest, share = curve.rows(beta)
    ruler, level = curve.ruler(bounds), float(share @ smallest / share.sum())

    def losses(other: float) -> Array:
        # A few rows with exponentially large losses would hide that all others are worse.
        found = curve.rows(other)[0]
        return compress(found, level) if curve.steep else found

    smallest = losses(beta)

    def worse(other: float) -> bool:
        difference, error = mean_and_error(losses(other) - smallest, share, multiplicity, groups)
        return difference > ERRORS * inflation * error

    def end(bound: float) -> float:
        if bound == beta or not worse(bound):
            return bound
        halvings = FEW_HALVINGS if curve.costly else HALVINGS
        return edge(lambda other: not worse(other), beta, bound, ruler, halvings)

    return end(bounds[0]), end(bounds[1])


def edge(
    accepted: Callable[[float], bool], inside: float, outside: float, ruler: Ruler, halvings: int
) -> float:
    """Return the accepted end after bisecting between an accepted beta and a rejected one."""
    for _ in range(halvings):
        middle = float(ruler.middle(*np.sort([inside, outside])))
        if accepted(middle):
            inside = middle
        else:
            outside = middle
    return inside
