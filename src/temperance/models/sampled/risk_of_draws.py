r"""Risk from posterior draws, for models that can only be sampled.

For an exact posterior the slope of the curve is minus a covariance (thesis, Proposition 1),

    d/dbeta E_{pi_p}[r_test] = -Cov_{pi_p}[ sum_i w_pi l_i, r_test ].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.curves import RiskCurve
from temperance.data import Array, Data
from temperance.plans import Pairs
from temperance.protocols import SamplingModel


def pair_draws(
    model: SamplingModel,
    data: Data,
    weights: Array,
    beta: float,
    size: int,
    rng: np.random.Generator,
) -> Array:
    """Return losses (size, n) of draws from the posterior of one pair."""
    posterior = model.posterior(data.X, data.y, float(beta * weights.sum()), weights)
    return model.loss(posterior.sample(size, rng), data.X, data.y)


def covariance_slope(
    model: SamplingModel, data: Data, plan: Pairs, beta: float, size: int, rng: np.random.Generator
) -> float:
    """Return an estimate of the slope of the curve at ``beta`` by the covariance."""
    total = 0.0
    for weights, test in zip(plan.likelihood_weights, plan.test, strict=True):
        losses = pair_draws(model, data, weights, beta, size, rng)
        trained, tested = losses @ weights, losses @ test
        total += float((trained - trained.mean()) @ (tested - tested.mean())) / (size - 1)
    return -total / float(plan.test.sum())


def sampled_risk_curve(
    model: SamplingModel, data: Data, plan: Pairs, size: int = 1000, seed: int = 0
) -> RiskCurve:
    """Return the curve from ``size`` draws per pair, with common random numbers for all betas."""
    losses = SampledLosses(model, data, plan, size, seed)
    return RiskCurve(losses.evaluate, losses.rows, f"{size} posterior draws per pair")


@dataclass(frozen=True, eq=False)
class SampledLosses:
    """Losses from posterior draws, averaged over the pairs and tested rows of a plan."""

    model: SamplingModel
    data: Data
    plan: Pairs
    size: int
    seed: int

    def evaluate(self, beta: Array) -> tuple[Array, Array]:
        """Return the risk at betas (g,) and its slope by the covariance."""
        values, slopes = np.empty(len(beta)), np.empty(len(beta))
        for i, at in enumerate(beta):
            loss, weight = self.rows(float(at))
            values[i] = loss @ weight / weight.sum()
            rng = np.random.default_rng(self.seed)
            slopes[i] = covariance_slope(
                self.model, self.data, self.plan, float(at), self.size, rng
            )
        return values, slopes

    def rows(self, beta: float) -> tuple[Array, Array]:
        """Return the loss of each row and its weight."""
        rng = np.random.default_rng(self.seed)
        total = np.zeros(len(self.data))
        for weights, test in zip(self.plan.likelihood_weights, self.plan.test, strict=True):
            losses = pair_draws(self.model, self.data, weights, beta, self.size, rng)
            total += test * losses.mean(axis=0)
        weight = self.plan.test.sum(axis=0)
        return total / np.where(weight > 0, weight, 1.0), weight
