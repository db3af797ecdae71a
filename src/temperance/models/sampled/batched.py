r"""Ladders of a model in JAX: all pairs of a plan are sampled in parallel under ``vmap``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from temperance.models.sampled.ladder import MOST_RUNGS, Ladder, Report, next_beta, too_many_rungs
from temperance.models.sampled.prior_draws import given_prior_draws, nuts_prior_draws
from temperance.models.sampled.smc import scalars, smc_rung
from temperance.models.sampled.target import BLOCK, Target, double_precision
from temperance.types import Array, Data, Plan, batches

SIDE_BY_SIDE = 2**24  # number of losses of the pairs that are sampled in parallel


@dataclass(frozen=True, eq=False)
class Programs:
    """Compiled functions of one target: draws of a rung, draws from the prior, row losses.

    Parameters
    ----------
    target : Target
    prior_draw : function of a key, or None
        A parameter drawn from the prior.
    sampler : {"smc", "nuts"}
    groups, size : int
        Number of islands and particles of each, or of chains and draws of each.
    moves : int
        Transitions between rungs: of every particle, or for tuning the chains.
    """

    target: Target
    prior_draw: Callable[[Any], Any] | None
    sampler: str
    groups: int
    size: int
    moves: int

    @cached_property
    def rung(self) -> Callable[..., Any]:
        """Function from the draws of all pairs at one beta to those at the next."""
        if self.sampler == "smc":
            one = smc_rung(self.target, self.moves)
        else:
            from temperance.models.sampled.nuts import nuts_rung

            one = nuts_rung(self.target, self.moves)
        return jax.jit(jax.vmap(one, in_axes=(0, 0, 0, 0, None, None, 0, 0, None, None)))

    @cached_property
    def begin(self) -> Callable[..., Any]:
        """Function that returns draws of all pairs from the prior."""
        if self.prior_draw is not None:
            one = given_prior_draws(self.prior_draw, self.groups, self.size)
        else:
            one = nuts_prior_draws(self.target, self.groups, self.size)

        def start(key: Any, weights: Any, tests: Any, X: Any, y: Any) -> Any:
            return scalars(self.target, one(key), weights, tests, X, y)

        return jax.jit(jax.vmap(start, in_axes=(0, 0, 0, None, None)))

    @cached_property
    def compiled_losses(self) -> Callable[..., Any]:
        """Function that returns losses of rows at flat parameters, (draws, rows)."""
        return jax.jit(jax.vmap(self.target.row_losses, in_axes=(0, None, None)))

    def losses(self, flat: Array, X: Array, y: Array) -> Array:
        """Return losses (draws, rows), computed in blocks of one shape."""
        step = min(len(flat), max(1, BLOCK // max(1, len(y))))
        found = np.empty((len(flat), len(y)))
        with double_precision():
            for begin in range(0, len(flat), step):
                block = flat[begin : begin + step]
                padded = np.resize(block, (step, flat.shape[1]))
                found[begin : begin + step] = self.compiled_losses(padded, X, y)[: len(block)]
        return found


class BatchedLadders:
    """Ladders of all pairs of a plan, in batches that share their betas.

    Parameters
    ----------
    programs : Programs
    data : Data
    plan : Plan
        Explicit pairs.
    seed : int
    overlap : float
        Least share of effective draws from a rung to the next.
    report : function, optional
        Called with the beta reached, the beta to reach, and the number of rungs so far.
    """

    def __init__(
        self,
        programs: Programs,
        data: Data,
        plan: Plan,
        seed: int,
        overlap: float,
        report: Report | None = None,
    ) -> None:
        with double_precision():
            keys = np.asarray(
                jax.random.key_data(jax.random.split(jax.random.key(seed), len(plan.test)))
            )
        each = programs.groups * programs.size * len(data)
        w, v = plan.likelihood_weights, np.asarray(plan.test)
        self._batches = [
            _Batch(programs, data, w[part], v[part], keys[part], overlap, report)
            for part in batches(len(w), each, SIDE_BY_SIDE)
        ]

    @property
    def upper(self) -> float:
        """Highest beta that has draws."""
        return min(batch.betas[-1] if batch.betas else -1.0 for batch in self._batches)

    def extend(self, upper: float) -> list[Ladder]:
        """Return the ladders of all pairs, with rungs up to ``upper`` at least."""
        return [ladder for batch in self._batches for ladder in batch.extend(upper)]

    def top(self) -> Array:
        """Flat parameters of the first pair at the highest rung, (groups, size, d)."""
        return self._batches[0].positions[-1][0]


class _Batch:
    def __init__(
        self,
        programs: Programs,
        data: Data,
        weights: Array,
        tests: Array,
        keys: NDArray[Any],
        overlap: float,
        report: Report | None,
    ) -> None:
        self.programs, self.data = programs, data
        self.weights, self.tests, self.keys = weights, tests, keys
        self.overlap, self.report = overlap, report
        self.betas: list[float] = []
        self.positions: list[Array] = []
        self.trained: list[Array] = []
        self.tested: list[Array] = []
        self.divergent = np.zeros(len(weights), dtype=int)
        self.step: Any = None

    def extend(self, upper: float) -> list[Ladder]:
        with double_precision():
            while not self.betas or self.betas[-1] < upper:
                if len(self.betas) >= MOST_RUNGS:
                    raise ValueError(too_many_rungs(self.betas[-1], upper))
                self._draw(upper)
                if self.report:
                    self.report(self.betas[-1], upper, len(self.betas))
        betas, trained, tested = (
            np.array(self.betas),
            np.stack(self.trained, axis=1),
            np.stack(self.tested, axis=1),
        )
        replicates = self.programs.sampler == "smc"
        return [
            Ladder(betas, trained[p], tested[p], self._losses_of(p), replicates, self.divergent[p])
            for p in range(len(self.weights))
        ]

    def _draw(self, upper: float) -> None:
        arguments = (self.weights, self.tests, self.data.X, self.data.y)
        keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(
            jax.random.wrap_key_data(jnp.asarray(self.keys)), len(self.betas)
        )
        if not self.betas:
            beta = 0.0
            positions, trained, tested = self.programs.begin(keys, *arguments)
            d = positions.shape[-1]
            self.step = np.full(len(self.weights), d**-0.25)
        else:
            pairs = self.trained[-1].reshape(len(self.weights), -1)
            beta = next_beta(pairs, self.betas[-1], upper, self.overlap)
            positions, trained, tested, self.step, divergent = self.programs.rung(
                keys,
                self.positions[-1],
                self.trained[-1],
                self.step,
                self.betas[-1],
                beta,
                *arguments,
            )
            self.divergent = self.divergent + np.asarray(divergent)
        positions, trained, tested = (np.asarray(part) for part in (positions, trained, tested))
        self._refuse_nan(positions, trained + tested)
        self.betas.append(beta)
        self.positions.append(positions)
        self.trained.append(trained)
        self.tested.append(tested)

    def _refuse_nan(self, positions: Array, sums: Array) -> None:
        invalid = np.argwhere(np.isnan(sums))
        if len(invalid):
            flat = positions[tuple(invalid[0])]
            losses = self.programs.losses(flat[None], self.data.X, self.data.y)[0]
            self.programs.target.refuse_invalid(losses, flat, self.data, infinite=False)

    def _losses_of(self, pair: int) -> Callable[[slice, NDArray[np.intp]], Array]:
        positions = list(self.positions)

        def losses(draws: slice, rows: NDArray[np.intp]) -> Array:
            flat = np.concatenate([rung[pair].reshape(-1, rung.shape[-1]) for rung in positions])
            return self.programs.losses(flat[draws], self.data.X[rows], self.data.y[rows])

        return losses
