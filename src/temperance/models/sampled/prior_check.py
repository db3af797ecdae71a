r"""Whether draws have the density of the prior, by Stein's identity.

For a density pi that vanishes at the ends of its support,

    E[theta_j d log pi(theta) / d theta_j]  =  -1        for every coordinate j.

Densities that end at an edge, as that of a uniform distribution does, need not vanish there: their
coordinates are not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.checks import shown
from temperance.data import Array

FAR = 2.0  # distance from a draw, in ranges of the draws, at which a density with an edge is zero
ERRORS = 6.0  # standard errors by which means may miss -1
MISS_OF_CHAINS = 0.25  # by which means over chains may miss it: they mix slowly in heavy tails


def has_edge(draws: Array, log_density: Callable[[Array], Any]) -> NDArray[np.bool_]:
    """Return for each coordinate whether the density ends far from the draws (size, d), (d,)."""
    start, far = draws[0], FAR * (np.ptp(draws, axis=0) + np.finfo(float).tiny)
    beyond = np.concatenate([start + np.diag(far), start - np.diag(far)])
    ends = ~np.isfinite(np.asarray(log_density(beyond)))
    return ends.reshape(2, -1).any(axis=0)


def refuse_other_draws(
    draws: Array,
    products: Array,
    independent: bool,
    checked: NDArray[np.bool_] | None = None,
) -> None:
    """Refuse draws (pairs, groups, size, d) of another density than the prior's.

    Parameters
    ----------
    draws, products : arrays of shape (pairs, groups, size, d)
        Draws theta, and theta_j d log pi / d theta_j at each.
    independent : bool
        Whether all draws are independent, or groups are chains.
    checked : array of shape (d,), optional
        Coordinates without an edge; by default all.
    """
    d = draws.shape[-1]
    flat = draws.reshape(-1, d)
    if independent and (flat == flat[0]).all():
        raise ValueError(
            "draw_prior must draw another parameter for every key, got "
            f"{shown(flat[0].round(4).tolist())} each time; a start is init"
        )
    if not np.isfinite(products).all():
        where = flat[~np.isfinite(products).reshape(-1, d).all(axis=1)][0]
        raise ValueError(
            "log_prior must have a finite gradient at draws from the prior, got nan or infinity "
            f"at theta = {shown(where.round(4).tolist())}"
        )
    if checked is None:
        checked = np.ones(d, dtype=bool)
    if not checked.any():
        return
    units = products.reshape(-1, d) if independent else products.mean(axis=2).reshape(-1, d)
    units = units[:, checked]
    # Each coordinate, and their mean: its error is smaller where all are wrong a little.
    units = np.column_stack([units, units.mean(axis=1)])
    mean, error = units.mean(axis=0), units.std(axis=0, ddof=1) / np.sqrt(len(units))
    miss = np.abs(mean + 1)
    allowed = ERRORS * error + (1e-9 if independent else MISS_OF_CHAINS)
    worst = int(np.argmax(miss - allowed))
    if miss[worst] <= allowed[worst]:
        return
    numbers = np.flatnonzero(checked)
    which = "" if worst == len(numbers) else f" of coordinate {numbers[worst]}"
    got = f"got {mean[worst]:.3g} ± {error[worst]:.1g}{which}"
    if independent:
        raise ValueError(
            "draw_prior must draw from exp(log_prior), of which theta . grad log_prior has the "
            f"mean -1 per coordinate, {got}; prior= takes both from one distribution"
        )
    raise ValueError(
        "log_prior must be the log density of a proper prior, of which "
        f"theta . grad log_prior has the mean -1 per coordinate, {got}; prior= takes distributions"
    )
