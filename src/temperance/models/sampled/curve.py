r"""The risk curve of a plan from the ladders of its pairs.

Under the weights W of multistate reweighting, with u the sum of the training losses,

    Gibbs:       R = E_W[r],            dR/dbeta = -Cov_W[u, r],
    predictive:  R_i = -log E_W[p_i],   dR_i/dbeta = Cov_W[u, p_i] / E_W[p_i],   p_i = exp(-l_i).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import as_non_negative
from temperance.curves import RiskCurve
from temperance.data import Array, Risk, batches
from temperance.messages import DrawsWarning, warn
from temperance.models.sampled.ladder import Ladder, Ladders
from temperance.models.sampled.multistate import MultiState, solve
from temperance.models.sampled.reliability import (
    Reliability,
    error_of_sum,
    largest_spread,
    rhat_limit,
    warn_of,
    worst_rhat,
)
from temperance.plans import AnyPlan, LeaveOneOut, Pairs
from temperance.table import LEAST

BLOCK = 2**22  # losses in memory at a time
KEPT = 2**24  # losses cached for the next beta
CHECKED_PAIRS = 50  # pairs whose diagnostics are computed, at most
MOST_REFITS = 10  # of leave-one-out: as many as ten folds need


class Uncertainty(NamedTuple):
    """Monte Carlo variance of the risk, and that of one independent draw of every pair."""

    variance: float
    one_draw: float


class FromDraws(ABC):
    """Base of curves from draws: ladders that grow on demand, errors and diagnostics."""

    def __init__(self, ladders: Ladders, risk: Risk) -> None:
        self.source, self.risk = ladders, risk
        self.ladders: Sequence[Ladder] = ()
        self.states: list[MultiState] = []

    def cover(self, beta: float) -> None:
        """Sample at higher betas until ``beta`` is covered by draws."""
        if not self.states or self.source.upper < beta:
            self.ladders = self.source.extend(beta)
            self.states = [solve(ladder.betas, ladder.trained) for ladder in self.ladders]
            self.clear_cache()

    def clear_cache(self) -> None:  # noqa: B027 - nothing is cached by default
        """Clear what was cached from earlier draws."""

    @property
    def lowest(self) -> float:
        """The smallest beta from which the curve changes.

        A posterior differs from the prior if beta times the spread of the losses there exceeds 1.
        """
        self.cover(0.0)
        prior = [ladder.trained[:1].reshape(1, -1) for ladder in self.ladders]
        spreads = [largest_spread(u[:, np.isfinite(u[0])]) for u in prior if np.isfinite(u).any()]
        widest = max(spreads, default=0.0)
        return min(1 / widest, 1.0) if widest > 0 else 1.0

    @abstractmethod
    def evaluate(self, beta: Array) -> tuple[Array, Array]:
        """Return the risk and its slope in beta."""

    @abstractmethod
    def rows(self, beta: float) -> tuple[Array, Array]:
        """Return the loss of each row and its weight."""

    @abstractmethod
    def uncertainty(self, beta: float) -> Uncertainty:
        """Return the Monte Carlo variance of the risk."""

    def pareto_k(self, beta: float) -> Array:
        """Return the Pareto k of weights that leave rows out, if there are any."""
        return np.empty(0)

    def warn_of_rows(self, beta: float) -> None:  # noqa: B027 - only leave-one-out has such rows
        """Warn of rows that cannot be left out by reweighting."""

    def error(self, beta: Array) -> Array:
        """Return the Monte Carlo standard error of the risk."""
        beta = np.asarray(beta, dtype=float)
        self.cover(float(beta.max(initial=0.0)))
        return np.array([np.sqrt(self.uncertainty(float(at)).variance) for at in beta])

    def effective(self, beta: float) -> float:
        """Return the number of independent draws of every pair that would give the same error."""
        self.cover(beta)
        uncertainty = self.uncertainty(beta)
        if uncertainty.variance == 0:
            return float(self.ladders[0].trained.size)
        return uncertainty.one_draw / uncertainty.variance

    def reliability(self, beta: float) -> Reliability:
        """Return the diagnostics of the draws, effective sample size and Pareto k at ``beta``."""
        self.cover(beta)
        some = np.unique(np.linspace(0, len(self.ladders) - 1, CHECKED_PAIRS).astype(int))
        k = self.pareto_k(beta)
        return Reliability(
            rungs=max(len(ladder.betas) for ladder in self.ladders),
            draws=self.ladders[0].trained[0].size,
            effective=self.effective(beta),
            rhat=worst_rhat([self.ladders[p] for p in some]),
            rhat_limit=rhat_limit([self.ladders[p] for p in some]),
            overlap=min(_least_overlap(self.states[p]) for p in some),
            divergent=sum(int(ladder.divergent) for ladder in self.ladders),
            pareto_k=float(np.fmax.reduce(k, initial=np.nan)),
        )


class PairedDraws(FromDraws):
    """Risk curve of explicit pairs; each pair has its own ladder."""

    def __init__(self, ladders: Ladders, plan: Pairs, risk: Risk) -> None:
        super().__init__(ladders, risk)
        self.plan = plan
        self.total = float(plan.test.sum())
        self.tested = [np.flatnonzero(test) for test in plan.test]
        self.kept: dict[int, Array] = {}

    def clear_cache(self) -> None:
        """Clear the losses of earlier draws."""
        self.kept.clear()

    def evaluate(self, beta: Array) -> tuple[Array, Array]:
        """Return the risk and its slope in beta."""
        self.cover(float(beta.max()))
        value, slope = np.zeros(len(beta)), np.zeros(len(beta))
        for p, state in enumerate(self.states):
            for part in batches(len(beta), len(state.energy), BLOCK):
                weights = state.weights(beta[part])
                if self.risk == "gibbs":
                    tested = self.ladders[p].tested.ravel()[:, None]
                    mean, tilted = _expectations(weights, state.energy, tested)
                    value[part] += mean[:, 0]
                    slope[part] -= tilted[:, 0]
                else:
                    v = self.plan.test[p, self.tested[p]]
                    loss, rise = self._predictive(p, weights)
                    value[part] += loss @ v
                    slope[part] += rise @ v
        return value / self.total, slope / self.total

    def rows(self, beta: float) -> tuple[Array, Array]:
        """Return the loss of each row and its weight."""
        self.cover(beta)
        summed = np.zeros(self.plan.test.shape[1])
        for p, state in enumerate(self.states):
            weights = state.weights(np.array([beta]))
            if self.risk == "gibbs":
                loss = sum(_mean(weights[:, part], losses) for part, losses in self._blocks(p))
            else:
                loss = self._predictive(p, weights)[0]
            summed[self.tested[p]] += self.plan.test[p, self.tested[p]] * np.asarray(loss)[0]
        share = self.plan.test.sum(axis=0)
        return summed / np.where(share > 0, share, 1.0), share

    def uncertainty(self, beta: float) -> Uncertainty:
        """Return the Monte Carlo variance of the risk; pairs are independent."""
        variance = one_draw = 0.0
        for p, state in enumerate(self.states):
            weights = state.weights(np.array([beta]))[0]
            residuals = self._residuals(p, weights)
            ladder = self.ladders[p]
            influence = state.influence(weights, residuals).reshape(ladder.trained.shape)
            variance += error_of_sum(influence, ladder.replicates) ** 2
            one_draw += float(state.product(weights, residuals**2).sum())
        return Uncertainty(variance / self.total**2, one_draw / self.total**2)

    def _residuals(self, p: int, weights: Array) -> Array:
        """Return the linearised risk of the pair at every draw, minus its mean."""
        if self.risk == "gibbs":
            tested = self.ladders[p].tested.ravel()
            return tested - float(_mean(weights[None], tested[:, None])[0, 0])
        # The derivative of -log E[p] in a draw's weight is -p / E[p].
        loss, _ = self._predictive(p, weights[None])
        v = self.plan.test[p, self.tested[p]]
        ratio = np.empty(len(weights))
        for part, losses in self._blocks(p):
            ratio[part] = np.exp(loss - losses) @ v
        return v.sum() - ratio

    def _predictive(self, p: int, weights: Array) -> tuple[Array, Array]:
        """Return -log E[p_i] and its slope, shape (betas, tested rows)."""
        u = self.states[p].energy
        shift = self._least(p)
        mean = np.zeros((len(weights), len(shift)))
        tilted = np.zeros_like(mean)
        centre = _mean(weights, u[:, None])
        for part, losses in self._blocks(p):
            chance = np.exp(shift - losses)
            mean += weights[:, part] @ chance
            finite = np.where(np.isfinite(u[part]), u[part], 0.0)
            tilted += (weights[:, part] * finite) @ chance
        return shift - np.log(mean), tilted / mean - centre

    def _least(self, p: int) -> Array:
        """Return the least loss of each tested row over the draws."""
        least = np.full(len(self.tested[p]), np.inf)
        for _, losses in self._blocks(p):
            least = np.minimum(least, losses.min(axis=0))
        return least

    def _blocks(self, p: int) -> Iterator[tuple[slice, Array]]:
        """Yield losses of the tested rows in blocks of draws; cached if they are few."""
        rows, draws = self.tested[p], len(self.states[p].energy)
        whole = slice(0, draws)
        if p not in self.kept:
            held = sum(losses.size for losses in self.kept.values())
            if held + draws * len(rows) <= KEPT:
                self.kept[p] = self.ladders[p].losses(whole, rows)
        if p in self.kept:
            yield whole, self.kept[p]
            return
        for part in batches(draws, len(rows), BLOCK):
            yield part, self.ladders[p].losses(part, rows)


class SampledRiskCurve(RiskCurve):
    """Risk as a function of beta from draws, with its Monte Carlo error and diagnostics.

    For a beta above the draws so far more rungs are sampled; nothing is extrapolated.

    Examples
    --------
    See docs/any-model.md.
    """

    def __init__(self, draws: FromDraws) -> None:
        # A frozen dataclass; ``method`` is a property because the ladder still grows.
        object.__setattr__(self, "draws", draws)
        object.__setattr__(self, "evaluate", draws.evaluate)
        object.__setattr__(self, "rows", draws.rows)
        object.__setattr__(self, "error", draws.error)

    draws: FromDraws

    @property
    def lowest(self) -> float:
        """Smallest beta above 0 that is worth a look: less than .001 for large losses."""
        return min(LEAST, self.draws.lowest)

    def prepare(self, betas: Array) -> None:
        """Sample up to the largest of several betas."""
        self.draws.cover(float(betas.max()))

    @property
    def method(self) -> str:
        """How the numbers were obtained, as a phrase, at the highest beta that has draws."""
        return self.method_at(self.draws.source.upper) if self.draws.states else "draws, none yet"

    def method_at(self, beta: float) -> str:
        """How the risk at ``beta`` was obtained, as a phrase."""
        return str(self.draws.reliability(beta))

    def effective(self, beta: ArrayLike) -> Array:
        """Return the number of independent draws of every pair that would give the same error."""
        at = as_non_negative("beta", beta)
        self.draws.cover(float(at.max(initial=0.0)))
        return np.array([self.draws.effective(float(b)) for b in at.ravel()]).reshape(at.shape)

    def reliability(self, beta: float) -> Reliability:
        """Return the diagnostics of the draws used at ``beta``."""
        return self.draws.reliability(beta)

    def pareto_k(self, beta: float) -> Array:
        """Return the Pareto k of each row's leave-one-out weights, if there are any."""
        self.draws.cover(beta)
        return self.draws.pareto_k(beta)

    def warn(self, beta: float, standard_error: Callable[[], float]) -> None:
        """Warn of bad diagnostics, and of too few draws for the choice of ``beta``."""
        self.draws.warn_of_rows(beta)
        reliability = self.draws.reliability(beta)
        warn_of(reliability, sum(ladder.trained.size for ladder in self.draws.ladders))
        error = float(self.draws.error(np.array([beta]))[0])
        over_rows = standard_error()
        if not error <= max(0.5 * over_rows, 0.0) and np.isfinite(over_rows):
            warn(
                f"the Monte Carlo error of the risk is {error:.2g}, more than half its standard "
                f"error over rows, {over_rows:.2g}; use more draws",
                DrawsWarning,
            )


def risk_curve_from(
    ladders: Callable[[Pairs], Ladders], plan: AnyPlan, risk: Risk, most_refits: int = MOST_REFITS
) -> SampledRiskCurve:
    """Return the curve of a plan; leave-one-out uses one ladder of all rows, and few others."""
    if isinstance(plan, LeaveOneOut):
        from temperance.models.sampled.leave_one_out import LeftOutDraws

        return SampledRiskCurve(LeftOutDraws(ladders, plan, risk, most_refits))
    pairs = plan.pairs()
    return SampledRiskCurve(PairedDraws(ladders(pairs), pairs, risk))


def _mean(weights: Array, values: Array) -> Array:
    """Return weighted sums (betas, columns) of values (draws, columns); may be infinite."""
    finite = np.isfinite(values)
    if finite.all():
        return weights @ values
    mean = weights @ np.where(finite, values, 0.0)
    mean[(weights > 0).astype(float) @ ~finite > 0] = np.inf
    return mean


def _expectations(weights: Array, energy: Array, values: Array) -> tuple[Array, Array]:
    """Return means of values (draws, columns) and their covariances with the energy."""
    mean, centre = _mean(weights, values), _mean(weights, energy[:, None])
    with np.errstate(invalid="ignore"):
        product = _mean(weights, energy[:, None] * values)
        return mean, product - centre * mean


def _least_overlap(state: MultiState) -> float:
    if len(state.betas) < 2:
        return 1.0
    return float(np.diag(state.overlap, 1).min())
