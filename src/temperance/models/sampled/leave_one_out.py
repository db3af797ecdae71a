r"""Leave-one-out with few refits: importance weights on the draws of all rows.

The posterior without row i has, relative to the multistate mixture D of all rungs, the weights

    W_n^(i)(beta) ∝ exp(-c_i beta (u_n - d_i l_in)) / D_n,

where d_i is the weight that is left out, and c_i the factor on beta from the transfer.  They are
Pareto smoothed.  Rows whose weights have too heavy a tail at any rung get their own ladder.

References
----------
.. [1] A. Vehtari, D. Simpson, A. Gelman, Y. Yao and J. Gabry, Pareto smoothed importance sampling,
   JMLR 25, 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, Risk, batches
from temperance.models.sampled.curve import BLOCK, KEPT, FromDraws, PairedDraws, Uncertainty
from temperance.models.sampled.ladder import Ladders
from temperance.models.sampled.pareto import Smoothed, smooth
from temperance.models.sampled.reliability import (
    LARGEST_PARETO_K,
    Reliability,
    error_of_sum,
    warn_of_pareto,
)
from temperance.plans import LeaveOneOut, Pairs

FINITE_VARIANCE = 0.5  # Pareto k below which weights have a finite variance
LEAST_LOG_WEIGHT = -20.0  # relative to the largest: draws below it for all rows are left out


class _Rows(NamedTuple):
    """A block of rows: their indices, the draws used, losses (rows, draws) and weights."""

    number: NDArray[np.intp]
    draws: NDArray[np.intp]
    losses: Array
    weights: Array
    smoothed: Smoothed


class LeftOutDraws(FromDraws):
    """Leave-one-out curve from one ladder of all rows, with own ladders for influential rows.

    Parameters
    ----------
    ladders : function of a plan
    plan : LeaveOneOut
    risk : Risk
    most_refits : int
        If more rows would need their own ladder, none gets one, and a warning is given.
    """

    def __init__(
        self,
        ladders: Callable[[Pairs], Ladders],
        plan: LeaveOneOut,
        risk: Risk,
        most_refits: int,
    ) -> None:
        super().__init__(ladders(Pairs(plan.weights[None], plan.weights[None], plan.size)), risk)
        self.new_ladders, self.plan, self.most_refits = ladders, plan, most_refits
        self.factors, self.tested = plan.exponents, plan.tested
        self.total = float(plan.tested.sum())
        self.kept: Array | None = None
        self.known: dict[float, tuple[Array, Array, Array]] = {}
        self.worst_k = np.full(len(plan.weights), -np.inf)
        self.checked = 0.0  # the highest rung whose tails are in worst_k
        self.refitted = np.empty(0, dtype=np.intp)
        self.refits: PairedDraws | None = None
        self.reweighted = self.tested  # 0 for rows with their own ladder

    def cover(self, beta: float) -> None:
        """Sample until ``beta`` is covered in the posteriors without each row."""
        super().cover(beta * float(self.factors.max()))
        if self.checked < self.ladders[0].betas[-1]:
            self._check_tails()

    def clear_cache(self) -> None:
        """Clear what was cached from earlier draws."""
        self.kept = None
        self.known.clear()

    def _check_tails(self) -> None:
        """Find the rows that cannot be left out by weights, at every new rung but the prior."""
        betas = self.ladders[0].betas
        new = betas[betas > self.checked] / self.factors.max()
        self.worst_k = np.max([self.worst_k, *(self._all_rows(float(b))[2] for b in new)], axis=0)
        self.checked = float(betas[-1])
        heavy = rows_to_refit(self.worst_k, self.most_refits)
        if np.array_equal(heavy, self.refitted):
            return
        self.refitted, self.refits, self.reweighted = heavy, None, self.tested
        if len(heavy):
            own = replace(self.plan, places=heavy).pairs()
            self.refits = PairedDraws(self.new_ladders(own), own, self.risk)
            self.reweighted = self.tested.copy()
            self.reweighted[heavy] = 0.0

    def evaluate(self, beta: Array) -> tuple[Array, Array]:
        """Return the risk and its slope in beta."""
        self.cover(float(beta.max()))
        value, slope = np.empty(len(beta)), np.empty(len(beta))
        for j, at in enumerate(beta):
            loss, rise, _ = self._all_rows(float(at))
            value[j], slope[j] = self.reweighted @ loss, self.reweighted @ rise
        if self.refits:
            own_value, own_slope = self.refits.evaluate(beta)
            value, slope = (
                value + self.refits.total * own_value,
                slope + self.refits.total * own_slope,
            )
        return value / self.total, slope / self.total

    def rows(self, beta: float) -> tuple[Array, Array]:
        """Return the loss of each row and its weight."""
        self.cover(beta)
        loss = self._all_rows(beta)[0]
        if self.refits:
            loss = np.where(self.reweighted > 0, loss, self.refits.rows(beta)[0])
        return loss, self.tested

    def pareto_k(self, beta: float) -> Array:
        """Return the Pareto k of each row's weights; nan for rows with their own ladder."""
        return np.where(self.reweighted > 0, self._all_rows(beta)[2], np.nan)

    def warn_of_rows(self, beta: float) -> None:
        """Warn of rows that cannot be left out by reweighting, at ``beta`` or any lower rung."""
        self.cover(beta)
        if not self.refits:
            warn_of_pareto(self.worst_k, self.most_refits)

    def reliability(self, beta: float) -> Reliability:
        """Return the diagnostics of the draws, including those of the refits."""
        known = super().reliability(beta)
        if not self.refits:
            return known
        own = self.refits.reliability(beta)
        return replace(
            known,
            rungs=max(known.rungs, own.rungs),
            rhat=max(known.rhat, own.rhat),
            rhat_limit=max(known.rhat_limit, own.rhat_limit),
            overlap=min(known.overlap, own.overlap),
            divergent=known.divergent + own.divergent,
            refits=len(self.refits.ladders),
        )

    def uncertainty(self, beta: float) -> Uncertainty:
        """Return the Monte Carlo variance of the risk; all rows share the draws.

        The squared loss that the fitted tails expect beyond the draws is added to the variance.
        """
        state, ladder = self.states[0], self.ladders[0]
        direct, one_draw, missing = np.zeros(len(state.energy)), 0.0, 0.0
        for block in self._blocks(beta):
            if self.risk == "gibbs":
                loss = _mean(block.weights, block.losses)
                residuals = block.losses - loss[:, None]
            else:
                chance, mean, loss = _chances(block)
                residuals = 1 - chance / mean[:, None]
            v = self.reweighted[block.number] / self.total
            beyond = block.smoothed.missing(block.losses, loss, self.risk)
            missing += float(v @ beyond)
            direct[block.draws] += v @ state.product(block.weights, residuals)
            one_draw += float(v**2 @ state.product(block.weights, residuals**2).sum(axis=1))
        influence = state.with_free_energies(direct).reshape(ladder.trained.shape)
        variance = error_of_sum(influence, ladder.replicates) ** 2 + missing**2
        if self.refits:
            self.refits.cover(beta)
            share = (self.refits.total / self.total) ** 2
            own = self.refits.uncertainty(beta)
            variance, one_draw = variance + share * own.variance, one_draw + share * own.one_draw
        return Uncertainty(variance, one_draw)

    def _all_rows(self, beta: float) -> tuple[Array, Array, Array]:
        """Return loss, slope and Pareto k of every tested row, by weights; 0, 0, -inf of others."""
        if beta in self.known:
            return self.known[beta]
        n = len(self.tested)
        loss, slope, k = np.zeros(n), np.zeros(n), np.full(n, -np.inf)
        u = np.where(np.isfinite(self.states[0].energy), self.states[0].energy, 0.0)
        for block in self._blocks(beta):
            i = block.number
            k[i] = block.smoothed.k
            finite = np.where(np.isfinite(block.losses), block.losses, 0.0)
            others = u[block.draws] - self.plan.deleted[i, None] * finite
            centred = others - (block.weights * others).sum(axis=1, keepdims=True)
            tilted = block.weights * centred
            if self.risk == "gibbs":
                loss[i] = _mean(block.weights, block.losses)
                slope[i] = -self.factors[i] * (tilted * finite).sum(axis=1)
            else:
                chance, mean, loss[i] = _chances(block)
                slope[i] = self.factors[i] * (tilted * chance).sum(axis=1) / mean
        self.known[beta] = loss, slope, k
        return loss, slope, k

    def _blocks(self, beta: float) -> Iterator[_Rows]:
        """Yield the weights that leave rows out, in blocks of rows."""
        state, places = self.states[0], np.flatnonzero(self.tested)
        for part in batches(len(places), len(state.energy), BLOCK):
            index = places[part]
            losses = self._losses(index)
            exponents = beta * self.factors[index]
            back = (exponents * self.plan.deleted[index])[:, None] * losses
            # There are few distinct exponents: one if all rows have equal weights.
            distinct, which = np.unique(exponents, return_inverse=True)
            log_weight = state.log_weights(distinct)[which]
            possible = np.isfinite(log_weight) & np.isfinite(back)
            log_weight = np.where(possible, log_weight + np.where(possible, back, 0.0), -np.inf)
            log_weight -= log_weight.max(axis=1, keepdims=True)
            draws = np.flatnonzero(log_weight.max(axis=0) > LEAST_LOG_WEIGHT)
            smoothed = smooth(log_weight[:, draws])
            yield _Rows(index, draws, losses[:, draws], np.exp(smoothed.log_weights), smoothed)

    def _losses(self, index: NDArray[np.intp]) -> Array:
        """Return losses (rows, draws); cached if they are few."""
        ladder = self.ladders[0]
        draws = slice(0, ladder.trained.size)
        n = len(self.plan.weights)
        if n * ladder.trained.size > KEPT:
            return np.ascontiguousarray(ladder.losses(draws, index).T)
        if self.kept is None:
            self.kept = np.ascontiguousarray(ladder.losses(draws, np.arange(n)).T)
        return self.kept[index]


def rows_to_refit(k: Array, most: int) -> NDArray[np.intp]:
    """Return the rows of largest Pareto k, at most ``most``; none if a bad row would remain.

    Weights with k above 1/2 have no variance, so their error cannot be estimated.
    """
    if np.sum(~(k <= LARGEST_PARETO_K)) > most:
        return np.empty(0, dtype=np.intp)
    worst = np.argsort(np.where(np.isnan(k), -np.inf, -k), kind="stable")[:most]
    return np.sort(worst[~(k[worst] <= FINITE_VARIANCE)])


def _mean(weights: Array, values: Array) -> Array:
    """Return row sums of weights times values; a zero weight contributes nothing."""
    return np.where(weights > 0, weights * np.where(weights > 0, values, 0.0), 0.0).sum(axis=1)


def _chances(block: _Rows) -> tuple[Array, Array, Array]:
    """Return likelihoods up to a factor per row, their means, and -log of the true means."""
    least = block.losses.min(axis=1)
    chance = np.exp(least[:, None] - block.losses)
    mean = (block.weights * chance).sum(axis=1)
    return chance, mean, least - np.log(mean)
