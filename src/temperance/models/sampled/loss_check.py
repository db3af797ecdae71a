"""Whether a function is a loss: it depends on its row, and does not fall without end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from temperance.data import Array

DRAWS = 64
ROWS = 1000
DECADES = (1e1, 1e2, 1e3, 1e4)  # factors on the draws, along rays from zero
FALL = 0.5  # of the mean loss from one factor to the next
SHARE = 0.9  # of the rays on which a log likelihood falls, at least


def refuse_other_than_losses(
    losses: Callable[[Array, Any, Any], Array], draws: Array, X: Any, y: Any
) -> None:
    """Refuse a loss that is the same for all rows, or that falls below any bound.

    Parameters
    ----------
    losses : function (draws, X, y) -> array of shape (draws, rows)
    draws : array of shape (draws, d), from the prior
    X, y : pytrees of arrays of n rows
    """
    X, y = jax.tree.map(lambda part: part[:ROWS], (X, y))
    rays = draws[np.linspace(0, len(draws) - 1, min(len(draws), DRAWS)).astype(int)]
    at_draws = losses(rays, X, y)
    if _rows_differ((X, y)) and (at_draws == at_draws[:, :1]).all():
        raise ValueError(
            "loss must depend on its observation, got the same number for all rows: is it the "
            "sum over all of them?"
        )
    with np.errstate(all="ignore"):
        means = np.array([losses(factor * rays, X, y).mean(axis=1) for factor in DECADES])
        falls = means[:-1] - means[1:] > FALL
        # Beyond the range of numbers there is no further fall.
        falls |= (means[:-1] == -np.inf) & (means[1:] == -np.inf)
    share = falls.all(axis=0).mean()
    if share >= SHARE:
        raise ValueError(
            "loss must be bounded below, or rise along most directions, got one that falls to "
            f"{np.nanmedian(means[-1]):.3g} as theta grows along {share:.0%} of them: give minus "
            "the log likelihood"
        )


def _rows_differ(tree: Any) -> bool:
    return any(
        bool((np.asarray(part) != np.asarray(part)[:1]).any()) for part in jax.tree.leaves(tree)
    )
