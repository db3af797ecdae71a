r"""Leave-one-out without refits: importance weights on the ladder of all rows.

The posterior without row i has, against the multistate mixture D of all rungs, the weights

    W_n^(i)(beta) ∝ exp(-c_i beta (u_n - w_i l_in)) / D_n,

with c_i the factor that the transfer puts on beta.  They are Pareto smoothed.

References
----------
.. [1] A. Vehtari, D. Simpson, A. Gelman, Y. Yao and J. Gabry, Pareto smoothed importance sampling,
   JMLR 25, 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.sampling.curve import BLOCK, KEPT, FromDraws, Uncertainty
from temperance.sampling.ladder import Ladders
from temperance.sampling.pareto import smooth
from temperance.sampling.reliability import error_of_sum, warn_of_pareto
from temperance.types import Array, LeaveOneOutPlan, Risk, batches

LEAST_LOG_WEIGHT = -20.0  # a draw that weighs less beside the largest, for all rows, is left out


class _Rows(NamedTuple):
    """A block of rows: their numbers, the draws that count, losses (rows, draws) and weights."""

    number: NDArray[np.intp]
    draws: NDArray[np.intp]
    losses: Array
    weights: Array
    k: Array


class LeftOutDraws(FromDraws):
    """The curve of leave-one-out from one ladder."""

    def __init__(self, ladders: Ladders, plan: LeaveOneOutPlan, risk: Risk) -> None:
        super().__init__(ladders, risk)
        self.plan = plan
        self.factors = plan.exponents
        self.kept: Array | None = None
        self.known: dict[float, tuple[Array, Array, Array]] = {}

    def reach(self, beta: float) -> None:
        """Climb until ``beta`` is covered in the posterior without any row."""
        super().reach(beta * float(self.factors.max()))

    def forget(self) -> None:
        """Forget the losses of the draws of before."""
        self.kept = None
        self.known.clear()

    def evaluate(self, beta: Array) -> tuple[Array, Array]:
        """Return the risk and its slope in beta."""
        self.reach(float(beta.max()))
        value, slope = np.empty(len(beta)), np.empty(len(beta))
        for j, at in enumerate(beta):
            loss, rise, _ = self._all_rows(float(at))
            value[j], slope[j] = self.plan.weights @ loss, self.plan.weights @ rise
        return value / self.plan.size, slope / self.plan.size

    def rows(self, beta: float) -> tuple[Array, Array]:
        """Return the loss of each row and its weight."""
        self.reach(beta)
        return self._all_rows(beta)[0], self.plan.weights

    def pareto_k(self, beta: float) -> Array:
        """Return the tail index of each row's weights."""
        return self._all_rows(beta)[2]

    def warn_of_rows(self, beta: float) -> None:
        """Warn of rows that the draws cannot leave out."""
        self.reach(beta)
        warn_of_pareto(self.pareto_k(beta), beta)

    def uncertainty(self, beta: float) -> Uncertainty:
        """Return the variance of the risk that is due to the draws, which all rows share."""
        state, ladder = self.states[0], self.ladders[0]
        direct, one_draw = np.zeros(len(state.energy)), 0.0
        for block in self._blocks(beta):
            if self.risk == "gibbs":
                residuals = block.losses - _mean(block.weights, block.losses)[:, None]
            else:
                chance, mean, _ = _chances(block)
                residuals = 1 - chance / mean[:, None]
            v = self.plan.weights[block.number] / self.plan.size
            direct[block.draws] += v @ state.product(block.weights, residuals)
            one_draw += float(v**2 @ state.product(block.weights, residuals**2).sum(axis=1))
        influence = state.with_free_energies(direct).reshape(ladder.trained.shape)
        return Uncertainty(error_of_sum(influence, ladder.replicates) ** 2, one_draw)

    def _all_rows(self, beta: float) -> tuple[Array, Array, Array]:
        """Loss, slope and tail index of every row."""
        if beta in self.known:
            return self.known[beta]
        n = len(self.plan.weights)
        loss, slope, k = np.empty(n), np.empty(n), np.empty(n)
        u = np.where(np.isfinite(self.states[0].energy), self.states[0].energy, 0.0)
        for block in self._blocks(beta):
            i = block.number
            k[i] = block.k
            finite = np.where(np.isfinite(block.losses), block.losses, 0.0)
            others = u[block.draws] - self.plan.weights[i, None] * finite
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
        """Weights that leave rows out, a block of rows at a time."""
        state, n = self.states[0], len(self.plan.weights)
        for part in batches(n, len(state.energy), BLOCK):
            index = np.arange(n)[part]
            losses = self._losses(index)
            exponents = beta * self.factors[index]
            back = (exponents * self.plan.weights[index])[:, None] * losses
            # The exponents are few: one if all rows weigh the same.
            distinct, which = np.unique(exponents, return_inverse=True)
            log_weight = state.log_weights(distinct)[which]
            possible = np.isfinite(log_weight) & np.isfinite(back)
            log_weight = np.where(possible, log_weight + np.where(possible, back, 0.0), -np.inf)
            log_weight -= log_weight.max(axis=1, keepdims=True)
            draws = np.flatnonzero(log_weight.max(axis=0) > LEAST_LOG_WEIGHT)
            smoothed, k = smooth(log_weight[:, draws])
            yield _Rows(index, draws, losses[:, draws], np.exp(smoothed), k)

    def _losses(self, index: NDArray[np.intp]) -> Array:
        """Losses (rows, draws), kept while they are few."""
        ladder = self.ladders[0]
        draws = slice(0, ladder.trained.size)
        n = len(self.plan.weights)
        if n * ladder.trained.size > KEPT:
            return np.ascontiguousarray(ladder.losses(draws, index).T)
        if self.kept is None:
            self.kept = np.ascontiguousarray(ladder.losses(draws, np.arange(n)).T)
        return self.kept[index]


def _mean(weights: Array, values: Array) -> Array:
    """Row by row, sum of weights times values; no weight, no part."""
    return np.where(weights > 0, weights * np.where(weights > 0, values, 0.0), 0.0).sum(axis=1)


def _chances(block: _Rows) -> tuple[Array, Array, Array]:
    """Likelihoods up to a factor per row, their means, and -log of the means themselves."""
    least = block.losses.min(axis=1)
    chance = np.exp(least[:, None] - block.losses)
    mean = (block.weights * chance).sum(axis=1)
    return chance, mean, least - np.log(mean)
