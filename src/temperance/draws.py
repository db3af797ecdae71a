r"""Risk from posterior draws, for models that can do no more than sample.

For an exact posterior the slope of the curve is minus a covariance (thesis, Proposition 1),

    d/dbeta E_{pi_p}[r_test] = -Cov_{pi_p}[ sum_i w_pi l_i, r_test ].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from temperance.curves import RiskCurve
from temperance.types import Array, Data, Plan


def pair_draws(
    model: Any, data: Data, weights: Array, beta: float, size: int, rng: np.random.Generator
) -> Array:
    """Losses (size, n) of draws from the posterior of one pair."""
    posterior = model.posterior(data.X, data.y, beta * weights.sum(), weights)
    return model.loss(posterior.sample(size, rng), data.X, data.y)


def covariance_slope(
    model: Any, data: Data, plan: Plan, beta: float, size: int, rng: np.random.Generator
) -> float:
    """Estimate the slope of the curve at ``beta`` by the covariance."""
    total = 0.0
    for weights, test in zip(plan.likelihood_weights, plan.test, strict=True):
        losses = pair_draws(model, data, weights, beta, size, rng)
        trained, tested = losses @ weights, losses @ test
        total += float((trained - trained.mean()) @ (tested - tested.mean())) / (size - 1)
    return -total / float(plan.test.sum())


def sampled_risk_curve(
    model: Any, data: Data, plan: Plan, size: int = 1000, seed: int = 0
) -> RiskCurve:
    """Curve from ``size`` draws per pair, the same random numbers at every beta."""

    def row_losses(beta: float) -> tuple[Array, Array]:
        rng = np.random.default_rng(seed)
        total = np.zeros(len(data))
        for weights, test in zip(plan.likelihood_weights, plan.test, strict=True):
            total += test * pair_draws(model, data, weights, beta, size, rng).mean(axis=0)
        weight = plan.test.sum(axis=0)
        return total / np.where(weight > 0, weight, 1.0), weight

    def evaluate(beta: Array) -> tuple[Array, Array]:
        values, slopes = np.empty(len(beta)), np.empty(len(beta))
        for i, at in enumerate(beta):
            loss, weight = row_losses(at)
            values[i] = loss @ weight / weight.sum()
            slopes[i] = covariance_slope(model, data, plan, at, size, np.random.default_rng(seed))
        return values, slopes

    return RiskCurve(evaluate, row_losses, f"{size} posterior draws per pair")
