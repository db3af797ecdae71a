r"""The effective number of parameters of a posterior, from its draws.

Near its mean a posterior at beta is Gaussian, with covariance S, and the sum u of the losses has a
Hessian A.  A Gaussian prior of covariance S_0 gives S^-1 = S_0^-1 + beta A, so that the number of
parameters that the data determine is

    p  =  d - tr(S_0^-1 S)  =  beta tr(A S)  =  beta Cov(u, z'z),

where z are the coordinates of the draws with mean 0 and covariance 1: for a standard normal z,
Cov(z'Hz / 2, z'z) = tr(H) and Cov(b'z, z'z) = 0.  The prior does not enter, and coordinates that
have no effect on the losses add nothing.
"""

from __future__ import annotations

import numpy as np

from temperance.data import Array

DRAWS_PER_COORDINATE = 5  # effective draws for each coordinate, at least
SINGULAR = 1e-10  # share of the largest eigenvalue below which a direction is constant


def parameters_used(energy: Array, coordinates: Array, weights: Array, beta: float) -> float:
    """Return the effective number of parameters, from 0 to the number of coordinates.

    Parameters
    ----------
    energy : array of shape (draws,)
        Weighted sum of the training losses at every draw.
    coordinates : array of shape (draws, d)
        Parameters, unbounded if possible.
    weights : array of shape (draws,)
        Weights of the draws for the posterior at ``beta``, with sum 1.
    beta : float

    Examples
    --------
    >>> import numpy as np
    >>> theta = np.random.default_rng(0).standard_normal((20_000, 3)) / np.sqrt(1 + 4.0)
    >>> u = 0.5 * (theta**2).sum(axis=1)  # prior N(0, 1) and A = 1: p = 3 beta / (1 + beta)
    >>> print(round(parameters_used(u, theta, np.full(20_000, 1 / 20_000), beta=4.0), 1))
    2.4
    """
    used = weights > 0
    u, theta, weights = energy[used], coordinates[used], weights[used]
    theta = theta - weights @ theta
    # In units of the spreads, so that no coordinate is lost in the rounding of another.
    spread = np.sqrt(weights @ theta**2)
    theta = theta[:, spread > 0] / spread[spread > 0]
    values, axes = np.linalg.eigh((theta.T * weights) @ theta)
    kept = values > SINGULAR * max(values.max(initial=0.0), np.finfo(float).tiny)
    d, effective = int(kept.sum()), float(1 / (weights @ weights))
    if effective < DRAWS_PER_COORDINATE * d:
        raise ValueError(
            f"draws must be worth at least {DRAWS_PER_COORDINATE * d} independent ones to count "
            f"{d} parameters, got {effective:.0f} at beta = {beta:.3g}: draw more"
        )
    z = theta @ (axes[:, kept] / np.sqrt(values[kept]))
    covariance = float((weights * (u - weights @ u)) @ (z**2).sum(axis=1))
    # The covariance matrix of the same draws takes the share d / draws off Cov(u, z'z).
    return float(np.clip(beta * covariance / (1 - d / effective), 0.0, d))
