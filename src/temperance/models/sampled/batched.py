r"""Ladders of a model in JAX: one compiled program draws a rung of any pair of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, batches
from temperance.models.sampled.compiled import kept_on_disk
from temperance.models.sampled.ladder import MOST_RUNGS, Ladder, Report, next_beta, too_many_rungs
from temperance.models.sampled.loss_check import refuse_other_than_losses
from temperance.models.sampled.precision import double_precision
from temperance.models.sampled.prior_check import has_edge, refuse_other_draws
from temperance.models.sampled.prior_draws import given_prior_draws, nuts_prior_draws
from temperance.models.sampled.reliability import rhat_limit_of, split_rhat
from temperance.models.sampled.smc import scalars, smc_rung
from temperance.models.sampled.target import BLOCK, Target, Tree
from temperance.plans import Pairs

MOST_PASSES = 4  # of the moves at one beta, while islands differ
TOGETHER = 2**24  # number of losses of the pairs that share their betas


@dataclass(frozen=True, eq=False)
class Programs:
    """Compiled functions of one target: draws of a rung, draws from the prior, row losses.

    Parameters
    ----------
    target : Target
    sampler : {"smc", "nuts"}
    groups, size : int
        Number of islands and particles of each, or of chains and draws of each.
    moves : int
        Transitions between rungs: of every particle, or for tuning the chains.
    cache : bool
        Whether compiled programs are kept on disk.
    """

    target: Target
    sampler: str
    groups: int
    size: int
    moves: int
    cache: bool = True

    @cached_property
    def rung(self) -> Callable[..., Any]:
        """Function from the draws of one pair at one beta to those at the next."""
        if self.sampler == "smc":
            one = smc_rung(self.target, self.moves)
        else:
            from temperance.models.sampled.nuts import nuts_rung

            one = nuts_rung(self.target, self.moves)
        return jax.jit(one)

    @cached_property
    def begin(self) -> Callable[..., Any]:
        """Function that returns draws of one pair from the prior."""
        draw = self.target.prior.draw
        if draw is not None:
            one = given_prior_draws(draw, self.groups, self.size)
        else:
            one = nuts_prior_draws(self.target, self.groups, self.size)

        def start(key: Any, weights: Any, tests: Any, X: Any, y: Any) -> Any:
            return scalars(self.target, one(key), weights, tests, X, y)

        return jax.jit(start)

    @cached_property
    def compiled_losses(self) -> Callable[..., Any]:
        """Function that returns losses of rows at flat parameters, (draws, rows)."""
        return jax.jit(jax.vmap(self.target.row_losses, in_axes=(0, None, None)))

    @cached_property
    def score_times_draw(self) -> Callable[..., Any]:
        """Function that returns theta_j d log pi / d theta_j at draws (pairs, groups, size, d)."""
        slope = jax.grad(self.target.log_density_of_prior)

        def product(flat: Any) -> Any:
            return flat * slope(flat)

        return jax.jit(jax.vmap(jax.vmap(jax.vmap(product))))

    @cached_property
    def log_densities(self) -> Callable[..., Any]:
        """Function that returns the log prior of flat parameters (points, d)."""
        return jax.jit(jax.vmap(self.target.log_density_of_prior))

    def losses(self, flat: Array, X: Tree, y: Tree) -> Array:
        """Return losses (draws, rows), computed in blocks of one shape."""
        n = len(jax.tree.leaves((X, y))[0])
        step = min(len(flat), max(1, BLOCK // max(1, n)))
        found = np.empty((len(flat), n))
        with self.settings():
            for begin in range(0, len(flat), step):
                block = flat[begin : begin + step]
                padded = np.resize(block, (step, flat.shape[1]))
                found[begin : begin + step] = self.compiled_losses(padded, X, y)[: len(block)]
        return found

    def named(self, flat: Array) -> Mapping[str, Array]:
        """Return flat parameters (groups, size, d) as arrays by name."""
        with self.settings():
            tree = jax.jit(jax.vmap(jax.vmap(self.target.theta)))(flat)
        named = {}
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            name = ".".join(_key(part) for part in path)
            named[name or "theta"] = np.asarray(leaf)
        return named

    @contextmanager
    def settings(self) -> Iterator[None]:
        """Context of double precision and of compiled programs that are kept."""
        with double_precision(), kept_on_disk(self.cache):
            yield


class BatchedLadders:
    """Ladders of all pairs of a plan, in batches that share their betas.

    Parameters
    ----------
    programs : Programs
    X, y : pytrees of arrays of n rows
    plan : Pairs
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
        X: Tree,
        y: Tree,
        plan: Pairs,
        seed: int,
        overlap: float,
        report: Report | None = None,
    ) -> None:
        self.programs = programs
        with programs.settings():
            keys = np.asarray(
                jax.random.key_data(jax.random.split(jax.random.key(seed), len(plan.test)))
            )
        w, v = plan.likelihood_weights, np.asarray(plan.test)
        each = programs.groups * programs.size * w.shape[1]
        self._batches = [
            _Batch(programs, X, y, w[part], v[part], keys[part], overlap, report)
            for part in batches(len(w), each, TOGETHER)
        ]

    @property
    def upper(self) -> float:
        """Highest beta that has draws."""
        return min(batch.betas[-1] if batch.betas else -1.0 for batch in self._batches)

    def extend(self, upper: float) -> list[Ladder]:
        """Return the ladders of all pairs, with rungs up to ``upper`` at least."""
        return [ladder for batch in self._batches for ladder in batch.extend(upper)]

    def top(self) -> Array:
        """Flat parameters of all pairs at the highest rung, (pairs, groups, size, d)."""
        return np.concatenate([batch.positions[-1] for batch in self._batches])


class _Batch:
    def __init__(
        self,
        programs: Programs,
        X: Tree,
        y: Tree,
        weights: Array,
        tests: Array,
        keys: NDArray[Any],
        overlap: float,
        report: Report | None,
    ) -> None:
        self.programs, self.X, self.y = programs, X, y
        self.weights, self.tests, self.keys = weights, tests, keys
        self.overlap, self.report = overlap, report
        self.betas: list[float] = []
        self.positions: list[Array] = []
        self.trained: list[Array] = []
        self.tested: list[Array] = []
        self.divergent = np.zeros(len(weights), dtype=int)
        self.step: Any = None

    def extend(self, upper: float) -> list[Ladder]:
        with self.programs.settings():
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
            Ladder(
                betas,
                trained[p],
                tested[p],
                self._losses_of(p),
                replicates,
                self.divergent[p],
                self._theta_of(p),
            )
            for p in range(len(self.weights))
        ]

    def _draw(self, upper: float) -> None:
        keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(
            jax.random.wrap_key_data(jnp.asarray(self.keys)), len(self.betas)
        )
        if not self.betas:
            beta = 0.0
            positions, trained, tested = self._all_pairs(self.programs.begin, keys)
            self.step = np.full(len(self.weights), positions.shape[-1] ** -0.25)
            self._check(positions)
        else:
            pairs = self.trained[-1].reshape(len(self.weights), -1)
            beta = next_beta(pairs, self.betas[-1], upper, self.overlap)
            at = np.full(len(self.weights), self.betas[-1]), np.full(len(self.weights), beta)
            positions, trained, tested, self.step, divergent = self._all_pairs(
                self.programs.rung, keys, self.positions[-1], self.trained[-1], self.step, *at
            )
            self.divergent = self.divergent + divergent
            if self.programs.sampler == "smc":
                self._until_islands_agree(keys, beta, positions, trained, tested)
        self._refuse_nan(positions, trained + tested)
        self.betas.append(beta)
        self.positions.append(positions)
        self.trained.append(trained)
        self.tested.append(tested)

    def _until_islands_agree(
        self, keys: Any, beta: float, positions: Array, trained: Array, tested: Array
    ) -> None:
        """Move the particles of pairs again, at the same beta, while their islands differ."""
        for again in range(1, MOST_PASSES):
            apart = [p for p, u in enumerate(trained) if _differ(u)]
            if not apart:
                return
            for p in apart:
                state = positions[p], trained[p], self.step[p], np.float64(beta), np.float64(beta)
                moved = self.programs.rung(
                    jax.random.fold_in(keys[p], again),
                    *state,
                    self.weights[p],
                    self.tests[p],
                    self.X,
                    self.y,
                )
                positions[p], trained[p], tested[p], self.step[p], divergent = map(
                    np.asarray, moved
                )
                self.divergent[p] += divergent

    def _all_pairs(self, program: Callable[..., Any], *states: Any) -> tuple[Array, ...]:
        """Return the results of a program for every pair, each stacked."""
        results = [
            program(*each, self.X, self.y)
            for each in zip(*states, self.weights, self.tests, strict=True)
        ]
        return tuple(
            np.stack([np.asarray(part) for part in parts]) for parts in zip(*results, strict=True)
        )

    def _check(self, positions: Array) -> None:
        """Refuse a prior whose draws have another density, and a loss that is not one."""
        drawn = self.programs.target.prior.draw is not None
        products = np.asarray(self.programs.score_times_draw(positions))
        flat = positions[0].reshape(-1, positions.shape[-1])
        without_edge = ~has_edge(flat, self.programs.log_densities)
        refuse_other_draws(positions, products, drawn, without_edge)
        refuse_other_than_losses(self.programs.losses, flat, self.X, self.y)

    def _refuse_nan(self, positions: Array, sums: Array) -> None:
        invalid = np.argwhere(np.isnan(sums))
        if len(invalid):
            flat = positions[tuple(invalid[0])]
            losses = self.programs.losses(flat[None], self.X, self.y)[0]
            self.programs.target.refuse_invalid(losses, flat, self.X, self.y, infinite=False)

    def _flat_of(self, pair: int) -> Callable[[], Array]:
        """Return a function for the flat parameters of all draws so far."""
        positions = tuple(self.positions)
        return lambda: np.concatenate(
            [rung[pair].reshape(-1, rung.shape[-1]) for rung in positions]
        )

    def _theta_of(self, pair: int) -> Callable[[NDArray[np.intp]], Mapping[str, Array]]:
        flat = self._flat_of(pair)
        return lambda draws: self.programs.named(flat()[draws])

    def _losses_of(self, pair: int) -> Callable[[slice, NDArray[np.intp]], Array]:
        flat = self._flat_of(pair)

        def losses(draws: slice, rows: NDArray[np.intp]) -> Array:
            X, y = jax.tree.map(lambda part: part[rows], (self.X, self.y))
            return self.programs.losses(flat()[draws], X, y)

        return losses


def _differ(trained: Array) -> bool:
    """Return whether the training risk of islands (groups, size) differs more than by chance."""
    if not np.isfinite(trained).all():
        return False
    return split_rhat(trained) > rhat_limit_of(trained.shape, 1, islands=True)


def _key(part: Any) -> str:
    for attribute in ("key", "name", "idx"):
        if hasattr(part, attribute):
            return str(getattr(part, attribute))
    return str(part)
