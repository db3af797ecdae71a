r"""Credible levels of a point under the posteriors of many weightings of the same rows.

One decomposition for each weighting gives mean U x and covariance U diag(s) U' at every beta
(:mod:`temperance.models.linear.eigenbasis`), so that

    d = sum_j (U'u - x)_j^2 / s_j,

plus the squared length of u outside the span of the rows, where the posterior is the prior.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from temperance.data import Array, batches
from temperance.models.credible import whitened_point
from temperance.models.linear.eigenbasis import Eigenbasis, joined
from temperance.models.linear.grams import guarded_eigenbasis, triangle
from temperance.models.linear.rows import WhitenedRows
from temperance.models.linear_predictor import GaussianPrior

Levels = Callable[[Array, Array, Array], Array]  # of distances, misfits and alphas, (m,) each


def credible_levels(
    rows: WhitenedRows,
    basis: Array | None,
    prior: GaussianPrior,
    own: Array,
    weights: Array,
    theta: Array | None,
    levels: Levels,
) -> Callable[[float], Array]:
    """Return the function from beta to levels; see :class:`temperance.protocols.HasCredibleLevels`.

    Parameters
    ----------
    own : weights of the data (n,), whose posterior mean is the point if ``theta`` is None
    levels : from squared distances, misfits and alphas to probabilities
    """
    trained = decompositions(rows, weights)
    exposure = weights.sum(axis=1)
    whole = None if theta is not None else decompositions(rows, own[None])

    def at(beta: float) -> Array:
        grid = np.array([beta])
        state = trained.at(grid)
        if theta is not None:
            point, outside = whitened_point(theta, prior, basis)
        else:
            assert whole is not None
            point, outside = whole.vectors[0] @ whole.at(grid).mean[0, :, 0], 0.0
        along = np.einsum("mjk,j->mk", trained.vectors, point) - state.mean[..., 0]
        distances = (along**2 / state.shrinkage[..., 0]).sum(axis=1) + outside
        return levels(distances, state.misfit[:, 0], beta * exposure)

    return at


def decompositions(rows: WhitenedRows, weights: Array) -> Eigenbasis:
    """Return the eigenbasis of every weighting (m, n)."""
    k, whole = rows.width, rows.whole
    grams = np.zeros((len(weights), (k + 1) ** 2))
    for part in batches(len(rows), (k + 1) ** 2):
        squares = whole[part, :, None] * whole[part, None, :]
        grams += weights[:, part] @ squares.reshape(-1, (k + 1) ** 2)
    found = []
    for part in batches(len(weights), (k + 1) ** 2):
        some = weights[part]
        counts = (some > 0).sum(axis=1)
        stacked = grams[part].reshape(-1, k + 1, k + 1)

        def factor(pair: int, some: Array = some) -> Array:
            return triangle(np.sqrt(some[pair])[:, None] * whole)

        found.append(guarded_eigenbasis(stacked, counts, factor))
    return joined(found)
