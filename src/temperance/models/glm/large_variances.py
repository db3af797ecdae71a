r"""Steps of means that follow their deviations, where predictors have large variances.

There a loss that grows linearly is a ramp, which has no scale: means and deviations grow and shrink
together.  With covariances A A', a step that changes the root to A exp(-X/2) leaves u in its units,
A^-1 u, as it is; so far as the variances that an axis of X gives predictors are large, a step du
goes from u = A eta to

    A exp(-X/2) (eta + A^-1 du + X eta / 2),

which to first order is u + du.
"""

from __future__ import annotations

import numpy as np

from temperance.data import Array
from temperance.models.glm.gaussians import eigen

LARGE = 1e4  # variance of a predictor
MOST = 10.0  # change of a logarithm in one step


def following(eta: Array, change: Array, logarithm: Array, variance: Array) -> Array:
    """Return the change of means in units of deviations, after the first-order change.

    Parameters
    ----------
    eta, change : arrays of one shape
        Means and their first-order changes, in units of deviations.
    logarithm : array
        Changes of the deviations' logarithms.
    variance : array
        Largest variance of predictors that each deviation makes.
    """
    follow = np.clip(logarithm * variance / (LARGE + variance), -MOST, MOST)
    return (eta + change - eta * follow) * np.exp(follow) - eta


def following_root(Z: Array, root: Array, eta: Array, change: Array, logarithm: Array) -> Array:
    """Return the change of A^-1 u for roots A (m, k, k) that become A exp(-X/2).

    Here eta = A^-1 u and its first-order change are (m, k), X is ``logarithm``, (m, k, k).
    """
    values, axes = eigen(logarithm)
    variance = ((Z @ (root @ axes)) ** 2).max(axis=1)
    along, d_along = (np.einsum("mji,mj->mi", axes, each) for each in (eta, change))
    moved = following(along, d_along, -values / 2, variance)
    return np.einsum("mij,mj->mi", axes, moved)
