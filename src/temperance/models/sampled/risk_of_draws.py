r"""The slope of the Gibbs risk from posterior draws (thesis, Proposition 1).

For an exact posterior it is minus a covariance,

    d/dbeta E_{pi_p}[r_test] = -Cov_{pi_p}[ sum_i w_pi l_i, r_test ].
"""

from __future__ import annotations

import numpy as np

from temperance.data import Data
from temperance.plans import Pairs
from temperance.protocols import SamplingModel


def covariance_slope(
    model: SamplingModel, data: Data, plan: Pairs, beta: float, size: int, rng: np.random.Generator
) -> float:
    """Return an estimate of the slope of the curve at ``beta`` by the covariance."""
    total = 0.0
    for weights, test in zip(plan.likelihood_weights, plan.test, strict=True):
        posterior = model.posterior(data.X, data.y, float(beta * weights.sum()), weights)
        losses = model.loss(posterior.sample(size, rng), data.X, data.y)
        trained, tested = losses @ weights, losses @ test
        total += float((trained - trained.mean()) @ (tested - tested.mean())) / (size - 1)
    return -total / float(plan.test.sum())
