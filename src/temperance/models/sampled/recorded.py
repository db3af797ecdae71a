r"""Draws recorded at one beta, reweighted to others.

Draws from pi_b0 ∝ exp(-b0 sum_j l_j) pi_0 represent the posterior at beta, with and without row i,
with the weights

    log w(theta)    =  -(beta - b0) sum_j l_j(theta),
    log w_i(theta)  =  -(beta - b0) sum_j l_j(theta) + beta l_i(theta).

Differences of beta from b0 are in units of 1 / (spread of the sum of losses).  Posteriors change on
that scale near b0, and on a logarithmic scale far from it, so

    beta = b0 + unit sinh(t).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import logsumexp

from temperance.checks import non_negative, shown
from temperance.curves import GivesCurve, RiskCurve
from temperance.data import Array, Data, Risk, batches
from temperance.models.sampled.information import LossesOfDraws
from temperance.models.sampled.mixture import systematic
from temperance.models.sampled.pareto import Smoothed, mean_excess, reliable_k, smooth
from temperance.models.sampled.reliability import largest_spread, relative_efficiency
from temperance.plans import AnyPlan, LeaveOneOut
from temperance.protocols import Information, Preferences
from temperance.rules import BetaWeights
from temperance.table import HeldOut

if TYPE_CHECKING:
    from temperance.models.sampled.reweighted_curve import ReweightedCurve

LEAST_EFFECTIVE = 100  # smallest number of effective draws for a usable mean
EQUAL = 1e-14  # relative difference below which losses are equal
TINY, HUGE = 1e-300, 1e150  # limits for finite inverses, and for finite products of loss and beta


class RowLosses(NamedTuple):
    """Leave-one-out estimates of each row, each (n,), and the Monte Carlo error of the mean.

    Parameters
    ----------
    loss : estimated loss
    k : shape of the tail of the weights
    effective_size : number of independent draws with the same precision
    error : Monte Carlo error of the mean of the losses
    """

    loss: Array
    k: Array
    effective_size: Array
    error: float


@dataclass(frozen=True, eq=False)
class ReweightedDraws:
    """Recorded draws with weights for the posterior at another beta.

    Parameters
    ----------
    beta : exponent on each observation's likelihood
    weights : smoothed weight of each draw, in the shape of the draws; they sum to 1
    pareto_k : shape of the tail of the weights; above about .7 they are unreliable
    effective_size : number of independent draws with the same precision
    source : the ArviZ object from which the draws come, if any
    """

    beta: float
    weights: Array
    pareto_k: float
    effective_size: float
    source: Any = None

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> Any:
        """Return indices of recorded draws, in the flattened shape, (size, 1)."""
        rng = np.random.default_rng(seed)
        return systematic(self.weights.ravel(), size, rng)[:, None]

    def log_prob(self, theta: Any) -> Any:
        """Return the log weight of recorded draws by index, of shape (..., 1)."""
        with np.errstate(divide="ignore"):
            return np.log(self.weights.ravel()[np.asarray(theta, dtype=int)[..., 0]])

    def predict(self, X: Any) -> Any:
        """Raise an error: recorded losses do not apply to new inputs."""
        raise ValueError("recorded draws cannot predict; predict with the draws of to_arviz()")

    def to_arviz(self, seed: int = 0) -> Any:
        """Return as many resampled draws as an ArviZ object, with the temperature in ``attrs``."""
        from temperance.models.sampled.arviz_tree import resampled

        if self.source is None:
            raise ValueError("to_arviz needs draws that came as an ArviZ object, got an array")
        chosen = self.sample(self.weights.size, seed).reshape(self.weights.shape)
        return resampled(
            self.source,
            chosen,
            {"beta": self.beta, "pareto_k": self.pareto_k, "effective_size": self.effective_size},
        )


@dataclass(frozen=True, eq=False)
class RecordedDraws(GivesCurve):
    """Losses (chains, size, n) of draws from the posterior at ``beta_of_draws``.

    As a model, its parameters are the indices of the draws.  ``dimension`` is the number of
    parameters that they stand for, if it is known; rates need it.
    """

    losses: Array
    beta_of_draws: float = 1.0
    source: Any = None
    dimension: int | None = None

    constants: ClassVar[str] = "constants as in log_likelihood"
    preferences: ClassVar[Preferences] = Preferences(leave_one_out=True)

    @property
    def shape(self) -> tuple[int, int]:
        """Chains and draws per chain."""
        return self.losses.shape[0], self.losses.shape[1]

    @property
    def size(self) -> int:
        """Number of draws in all chains."""
        return self.losses.shape[0] * self.losses.shape[1]

    @cached_property
    def by_row(self) -> Array:
        """Losses of all draws, (n, draws)."""
        return np.ascontiguousarray(self.losses.reshape(-1, self.losses.shape[2]).T)

    @cached_property
    def median(self) -> Array:
        """Median loss of each row, (n,)."""
        return np.median(self.by_row / self._largest, axis=1) * self._largest

    @cached_property
    def spread(self) -> float:
        """Spread of the sum of losses, or of one row's losses if those of rows cancel."""
        relative = self._deviations
        return largest_spread(np.vstack([relative, relative.sum(axis=0)])) * self._largest

    @cached_property
    def unit(self) -> float:
        """Unit of beta: 1 / spread, or the beta of the draws if the spread is zero."""
        return 1 / self.spread if self.spread > TINY else self.beta_of_draws or 1.0

    @cached_property
    def centred(self) -> Array:
        """Losses minus each row's median, times the unit of beta, (n, draws)."""
        if not self.spread > TINY:
            return np.zeros_like(self.by_row)
        relative_spread = self.spread / self._largest
        with np.errstate(over="ignore"):
            return np.clip(self._deviations / relative_spread, -HUGE, HUGE)

    @cached_property
    def total(self) -> Array:
        """Sum of the centred losses over rows at each draw, (draws,); 0 if it is rounding error."""
        total = np.clip(self.centred.sum(axis=0), -HUGE, HUGE)
        rounding = EQUAL * np.abs(self.centred).sum(axis=0).max()
        return total if np.ptp(total) > rounding else np.zeros_like(total)

    @cached_property
    def _largest(self) -> float:
        return float(max(np.abs(self.by_row).max(), np.finfo(float).tiny))

    @property
    def _deviations(self) -> Array:
        """Losses minus each row's median, relative to the largest; rounding errors set to 0."""
        relative = self.by_row / self._largest
        size = np.abs(relative).max(axis=1, keepdims=True)
        relative -= (self.median / self._largest)[:, None]
        return np.where(np.ptp(relative, axis=1, keepdims=True) > EQUAL * size, relative, 0.0)

    @cached_property
    def efficiency(self) -> float:
        """Effective share of the draws, from the autocorrelation of the total loss."""
        return relative_efficiency(self.total.reshape(self.shape))

    @property
    def reliable_k(self) -> float:
        """Largest k at which weights of this many draws are reliable."""
        return reliable_k(self.size)

    def beta(self, t: Any) -> Any:
        """Return the betas at t, at least 0."""
        return np.maximum(self.beta_of_draws + self.unit * np.sinh(t), 0.0)

    def place(self, beta: Any) -> Any:
        """Return t of betas."""
        return np.arcsinh(self._units(np.asarray(beta) - self.beta_of_draws))

    def at(self, beta: float) -> ReweightedDraws:
        """Return the draws weighted for the posterior at ``beta`` on all rows."""
        smoothed = smooth(self._tempering(beta)[None], self.efficiency)
        weights, k = np.exp(smoothed.log_weights[0]), float(smoothed.k[0])
        size = self.efficiency / float(weights @ weights)
        return ReweightedDraws(beta, weights.reshape(self.shape), k, size, self.source)

    def _tempering(self, beta: float) -> Array:
        """Return the log weights -(beta - b0) sum_j l_j."""
        return -self._units(beta - self.beta_of_draws) * self.total

    def _units(self, difference: Any) -> Any:
        """Return a difference of betas in units, limited to where weights still matter."""
        with np.errstate(over="ignore"):
            return np.clip(np.divide(difference, self.unit), -HUGE, HUGE)

    def leave_one_out(self, beta: float, risk: Risk) -> RowLosses:
        r"""Return the loss of every row under the posterior at ``beta`` of all other rows.

        The loss is ``sum_s w_is l_is``, or ``-log sum_s w_is exp(-l_is)`` for the predictive risk.
        The squared Monte Carlo error is the long-run variance of each draw's contribution to the
        mean loss, plus the squared loss that the fitted tails expect beyond the draws.  It is
        infinite if the weights of a row have no mean or too few effective draws.
        """
        n = len(self.by_row)
        loss, k, effective, missing = (np.empty(n) for _ in range(4))
        influence = np.zeros(self.size)
        tempering, exponent = self._tempering(beta), self._units(beta)
        for part in batches(n, 4 * self.size):
            smoothed = smooth(tempering + exponent * self.centred[part], self.efficiency)
            k[part], effective[part] = smoothed.k, smoothed.effective_size * self.efficiency
            loss[part], change, missing[part] = self._means(part, smoothed, risk)
            # All rows share the draws, so the contributions of one draw add up over rows.
            influence += change.sum(axis=0) / n
        efficiency = relative_efficiency(influence.reshape(self.shape))
        error = np.hypot(np.sqrt(influence @ influence / efficiency), missing.mean())
        if not (k < 1).all() or effective.min() < LEAST_EFFECTIVE:
            error = np.inf
        unit = self.spread if risk == "gibbs" and np.isfinite(error) else 1.0
        return RowLosses(loss, k, effective, float(error) * unit)

    def _means(self, part: slice, smoothed: Smoothed, risk: Risk) -> tuple[Array, Array, Array]:
        """Return losses of some rows, the contributions of each draw, and what may be missing.

        The last two are in the units of `centred` for the Gibbs risk.
        """
        log_weights, losses = smoothed.log_weights, self.centred[part]
        weights = np.exp(log_weights)
        if risk == "gibbs":
            mean = (weights * losses).sum(axis=1)
            loss = self.median[part] + mean * self.spread
            return loss, weights * (losses - mean[:, None]), smoothed.missing(losses, mean, risk)
        least = self.by_row[part].min(axis=1)
        losses = self.by_row[part] - least[:, None]
        mean = mean_of_likelihoods(weights, log_weights, losses)
        # A draw's share of the mean likelihood, w p / sum w p, is at most 1.
        rise = losses - mean[:, None]
        close = -weights * np.expm1(-np.clip(rise, -1.0, 1.0))
        part_of_mean = np.exp(np.minimum(log_weights - rise, 0.0))
        change = np.where(np.abs(rise) < 1, close, weights - part_of_mean)
        return least + mean, change, smoothed.missing(losses, mean, risk)

    def unreliable(self, rows: RowLosses) -> Any:
        """Return whether each row's weights have too heavy a tail or too few effective draws."""
        return ~((rows.k <= self.reliable_k) & (rows.effective_size >= LEAST_EFFECTIVE))

    @cached_property
    def tail(self) -> float:
        """Mean excess of the total loss over the threshold of its tail."""
        return mean_excess(self.total, self.efficiency)

    def supports(self, beta: float) -> bool:
        r"""Return whether the weights of all rows together are reliable at ``beta``.

        Errors depend on squares of weights.  If the total loss u has an exponential tail of mean
        excess m, the weights exp((b0 - beta) u) have a tail of shape k = (b0 - beta) m, and their
        squares 2 k.  That k is Hill's estimate, which varies much less than the fitted k.
        """
        drawn = self.at(beta)
        k = self._units(self.beta_of_draws - beta) * self.tail
        return bool(
            2 * k <= self.reliable_k
            and drawn.pareto_k <= self.reliable_k
            and drawn.effective_size >= LEAST_EFFECTIVE
        )

    def posterior(self, X: Any, y: Any, alpha: float, weights: Any = None) -> ReweightedDraws:
        """Return the draws weighted for the posterior at ``alpha`` on all rows."""
        return self.at(non_negative("alpha", alpha) / self.losses.shape[2])

    def mixture(self, data: Data, weights: BetaWeights, table: HeldOut | None) -> ReweightedDraws:
        """Return the draws weighted for the mixture of posteriors over beta."""
        kept = weights.without_negligible()
        parts = [self.at(float(beta)) for beta in kept.betas]
        mixed = np.tensordot(kept.weights, [part.weights for part in parts], 1)
        k = max(part.pareto_k for part in parts)
        size = self.efficiency / float((mixed**2).sum())
        return ReweightedDraws(weights.median, mixed, k, size, self.source)

    def information(self, data: Data) -> Information:
        """Return the information of the recorded rows whose indices are in ``data.X``."""
        found = self.near_minimiser.information()
        return found._replace(scores=found.scores[data.X[:, 0].astype(int)])

    def credible_levels(
        self, data: Data, weights: Array, theta: Array | None
    ) -> Callable[[float], Array]:
        """Return the levels of the minimiser of all rows, whatever ``theta`` is."""
        on_all = np.zeros((len(weights), self.losses.shape[2]))
        on_all[:, data.X[:, 0].astype(int)] = weights
        return self.near_minimiser.credible_levels(on_all)

    @cached_property
    def near_minimiser(self) -> LossesOfDraws:
        """The losses near the minimiser, as quadratics."""
        ones = np.ones(self.losses.shape[2])
        return LossesOfDraws(self.by_row, ones, self.beta_of_draws, self.dimension)

    def risk_curve(self, data: Data, plan: AnyPlan, risk: Risk = "gibbs") -> RiskCurve:
        """Return the leave-one-out curve; draws of one posterior support no other plan."""
        if not isinstance(plan, LeaveOneOut) or plan.transfer != "beta":
            raise ValueError("plan must be that of LeaveOneOut() for recorded draws")
        n = self.losses.shape[2]
        if len(plan.weights) != n or not (plan.weights == 1).all():
            raise ValueError(
                f"weights must be 1 for each of the {n} rows of recorded draws, got "
                f"{shown(plan.weights)}"
            )
        return self.curve(risk).as_risk_curve()

    def curve(self, risk: Risk) -> ReweightedCurve:
        """Return the leave-one-out curve over all betas that the draws support."""
        from temperance.models.sampled.reweighted_curve import ReweightedCurve

        if risk not in self._curves:
            self._curves[risk] = ReweightedCurve(self, (0.0, np.inf), risk)
        return self._curves[risk]

    @cached_property
    def _curves(self) -> dict[Risk, ReweightedCurve]:
        return {}

    def loss(self, theta: Array, X: Any, y: Any) -> Array:
        """Return losses (size, n) of recorded draws by their indices (size, 1)."""
        return self.by_row[:, np.asarray(theta, dtype=int)[:, 0]].T


def mean_of_likelihoods(weights: Array, log_weights: Array, losses: Array) -> Array:
    """Return -log sum_s w_s exp(-l_s) of non-negative losses (rows, draws).

    Small losses keep their digits by sum w exp(-l) = 1 + sum w expm1(-l).
    """
    less = (weights * np.expm1(-losses)).sum(axis=1)
    small = less > -0.5
    mean = -np.log1p(np.where(small, less, 0.0))
    mean[~small] = -logsumexp(log_weights[~small] - losses[~small], axis=1)
    return mean
