r"""Draws that were recorded at one beta, reweighted to others.

Draws from pi_b0 ∝ exp(-b0 sum_j l_j) pi_0 stand for the posterior at beta, with and without row i,
by the weights

    log w(theta)    =  -(beta - b0) sum_j l_j(theta),
    log w_i(theta)  =  -(beta - b0) sum_j l_j(theta) + beta l_i(theta).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from temperance.curves import RiskCurve
from temperance.sampling.pareto import reliable_k, smooth
from temperance.sampling.reliability import relative_efficiency
from temperance.types import AnyPlan, Array, Data, LeaveOneOutPlan, Risk, batches
from temperance.validation import non_negative

LEAST_EFFECTIVE = 100  # draws; fewer give no mean that is worth having


class RowLosses(NamedTuple):
    """Loss of each row without that row (n,), its k (n,), and the Monte Carlo error of the mean."""

    loss: Array
    k: Array
    error: float


@dataclass(frozen=True, eq=False)
class ReweightedDraws:
    """Recorded draws that stand for the posterior at another beta.

    Parameters
    ----------
    beta : exponent on each observation's likelihood
    weights : smoothed weight of each draw, in the shape of the draws; they sum to 1
    pareto_k : shape of the tail of the weights; beyond about .7 do not trust them
    effective_size : number of independent draws that the weighted ones are worth
    source : the ArviZ object that the draws came in, if they did
    """

    beta: float
    weights: Array
    pareto_k: float
    effective_size: float
    source: Any = None

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> Any:
        """Draw numbers of recorded draws, counted along the flattened shape, (size, 1)."""
        # Systematic: a draw of weight w comes floor(size w) or ceil(size w) times.
        rng = np.random.default_rng(seed)
        steps = (rng.random() + np.arange(size)) / size
        ends = np.cumsum(self.weights.ravel())
        chosen = np.searchsorted(ends / ends[-1], steps, side="right")
        return rng.permutation(chosen)[:, None]

    def log_prob(self, theta: Any) -> Any:
        """Log weight of recorded draws by their numbers, of shape (..., 1)."""
        return np.log(self.weights.ravel()[np.asarray(theta, dtype=int)[..., 0]])

    def predict(self, X: Any) -> Any:
        """Refuse: recorded losses say nothing about new inputs."""
        raise ValueError("recorded draws cannot predict; predict with the draws of to_arviz()")

    def to_arviz(self, seed: int = 0) -> Any:
        """Resample as many draws, by weight, as ArviZ with the temperature in ``attrs``."""
        from temperance.sampling.arviz_tree import resampled

        if self.source is None:
            raise ValueError("to_arviz needs draws that came as an ArviZ object, got an array")
        chosen = self.sample(self.weights.size, seed).reshape(self.weights.shape)
        return resampled(
            self.source,
            chosen,
            {"beta": self.beta, "pareto_k": self.pareto_k, "effective_size": self.effective_size},
        )


@dataclass(frozen=True, eq=False)
class RecordedDraws:
    """Losses (chains, size, n) of draws from the posterior at ``beta_of_draws``.

    As a model its parameters are the numbers of the draws.
    """

    losses: Array
    beta_of_draws: float = 1.0
    source: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        """Chains and draws per chain."""
        return self.losses.shape[0], self.losses.shape[1]

    @cached_property
    def by_row(self) -> Array:
        """Losses of all draws, (n, draws)."""
        return np.ascontiguousarray(self.losses.reshape(-1, self.losses.shape[2]).T)

    @cached_property
    def total(self) -> Array:
        """Loss of all rows together at each draw, (draws,)."""
        return self.losses.sum(axis=2).ravel()

    @cached_property
    def efficiency(self) -> float:
        """What one draw is worth, by the autocorrelation of the total loss."""
        return relative_efficiency(self.total.reshape(self.shape))

    @property
    def reliable_k(self) -> float:
        """Largest k at which weights of so many draws can be trusted."""
        return reliable_k(self.total.size)

    def at(self, beta: float) -> ReweightedDraws:
        """Weigh the draws for the posterior at ``beta`` on all rows."""
        log_weights, k = smooth(-(beta - self.beta_of_draws) * self.total[None], self.efficiency)
        weights = np.exp(log_weights[0])
        size = self.efficiency / float(weights @ weights)
        return ReweightedDraws(beta, weights.reshape(self.shape), float(k[0]), size, self.source)

    def leave_one_out(self, beta: float, risk: Risk) -> RowLosses:
        r"""Loss of every row under the posterior at ``beta`` of all the others.

        The loss is ``sum_s w_is l_is``, or ``-log sum_s w_is exp(-l_is)`` for the predictive risk.
        """
        n, draws = self.by_row.shape
        loss, k, influence = np.empty(n), np.empty(n), np.zeros(draws)
        tempering = -(beta - self.beta_of_draws) * self.total
        for part in batches(n, 4 * draws):
            losses = self.by_row[part]
            log_weights, k[part] = smooth(tempering + beta * losses, self.efficiency)
            weights = np.exp(log_weights)
            if risk == "gibbs":
                loss[part] = (weights * losses).sum(axis=1)
                change = losses - loss[part, None]
            else:
                loss[part] = -logsumexp(log_weights - losses, axis=1)
                change = 1 - np.exp(loss[part, None] - losses)
            # The rows share their draws: what one draw does to all of them adds up.
            influence += (weights * change).sum(axis=0) / n
        return RowLosses(loss, k, float(np.sqrt(influence @ influence / self.efficiency)))

    def supports(self, beta: float) -> bool:
        """Whether the weights of all rows together can be trusted at ``beta``."""
        drawn = self.at(beta)
        return drawn.pareto_k <= self.reliable_k and drawn.effective_size >= LEAST_EFFECTIVE

    def reach(
        self, bounds: tuple[float, float], steps: int = 24, halvings: int = 8
    ) -> tuple[float, float]:
        """Walk from the draws' own beta to the bounds, as far as the weights can be trusted."""
        lower, upper = (self._walk(end, steps, halvings) for end in bounds)
        return lower, upper

    def _walk(self, end: float, steps: int, halvings: int) -> float:
        good = self.beta_of_draws
        for beta in np.linspace(good, end, steps + 1)[1:]:
            if self.supports(float(beta)):
                good = float(beta)
                continue
            bad = float(beta)
            for _ in range(halvings):
                middle = 0.5 * (good + bad)
                good, bad = (middle, bad) if self.supports(middle) else (good, middle)
            break
        return good

    def posterior(self, X: Any, y: Any, alpha: float, weights: Any = None) -> ReweightedDraws:
        """Weigh the draws for the posterior at ``alpha`` on all rows."""
        return self.at(non_negative("alpha", alpha) / len(self.by_row))

    def risk_curve(self, data: Data, plan: AnyPlan, risk: Risk = "gibbs") -> RiskCurve:
        """Return the leave-one-out curve; no other plan can be had from one posterior's draws."""
        from temperance.sampling.reweighted_curve import ReweightedCurve

        if not isinstance(plan, LeaveOneOutPlan) or plan.transfer != "beta":
            raise ValueError("plan must be that of LeaveOneOut() for recorded draws")
        return ReweightedCurve(self, (0.0, 3.0), risk).as_risk_curve()

    def loss(self, theta: Array, X: Any, y: Any) -> Array:
        """Losses (size, n) of recorded draws by their numbers (size, 1)."""
        return self.by_row[:, np.asarray(theta, dtype=int)[:, 0]].T
