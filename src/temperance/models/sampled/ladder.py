r"""Ladders: draws at increasing betas (rungs), where neighbouring rungs overlap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array
from temperance.models.sampled.draws import Sampler
from temperance.plans import Pairs

MOST_RUNGS = 400

Report = Callable[[float, float, int], None]


@dataclass(frozen=True, eq=False)
class Ladder:
    """Draws of one pair's posteriors at increasing betas.

    Parameters
    ----------
    betas : array of shape (rungs,), from 0 on
    trained, tested : arrays of shape (rungs, groups, size)
        Sums over the rows of w_i l_i and of v_i l_i at every draw.
    losses : function (draws, rows) -> array
        Losses at a slice of the draws, in the order of ``trained.ravel()``, of the rows with
        these indices.
    replicates : bool
        Whether groups are independent of each other over the whole ladder (islands), or are
        chains, whose draws at one rung are independent of those at the others.
    divergent : int
        Number of divergent transitions.
    theta : function (draws) -> arrays by name
        Parameters of the draws with these indices, of any shape; None if they were not kept.
    """

    betas: Array
    trained: Array
    tested: Array
    losses: Callable[[slice, NDArray[np.intp]], Array]
    replicates: bool
    divergent: int
    theta: Callable[[NDArray[np.intp]], Mapping[str, Array]] | None = None


class Ladders(Protocol):
    """The ladders of all pairs of a plan; they are extended when higher betas are needed."""

    @property
    def upper(self) -> float:
        """Highest beta that has draws."""
        ...

    def extend(self, upper: float) -> Sequence[Ladder]:
        """Return the ladders of all pairs, with rungs up to ``upper`` at least."""
        ...


def next_beta(trained: Array, beta: float, upper: float, overlap: float) -> float:
    r"""Return the highest beta, at most ``upper``, with this share of effective draws.

    .. math:: (\sum_n \omega_n)^2 / (N \sum_n \omega_n^2) \ge overlap, \qquad
              \omega_n = e^{-(\beta' - \beta) u_n}

    Parameters
    ----------
    trained : array of shape (pairs, draws)
        The pair with the smallest step determines the result.
    beta, upper : float
    overlap : float
    """
    if _share(trained, upper - beta) >= overlap:
        return upper
    # Betas grow by factors: bisect the step on a logarithmic scale.
    low, high = np.log(1e-12 * upper), np.log(upper - beta)
    while low > -690 and _share(trained, float(np.exp(low))) < overlap:
        low, high = low - 14, low
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _share(trained, float(np.exp(middle))) >= overlap:
            low = middle
        else:
            high = middle
        if high - low < 1e-3:
            break
    return beta + float(np.exp(low))


def _share(trained: Array, advance: float) -> float:
    """Return the effective share of the draws, the smallest of all pairs."""
    finite = np.where(np.isfinite(trained), trained, np.inf)
    least = finite.min(axis=1, keepdims=True)
    weight = np.exp(-advance * (finite - np.where(np.isfinite(least), least, 0.0)))
    square = (weight**2).sum(axis=1)
    share = weight.sum(axis=1) ** 2 / np.where(square > 0, square, 1.0)
    return float(share.min()) / trained.shape[1]


class SampledLadders:
    """Ladders from any :class:`Sampler`, one pair and one rung at a time.

    Parameters
    ----------
    sampler : Sampler
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
        sampler: Sampler,
        plan: Pairs,
        seed: int = 0,
        overlap: float = 0.5,
        report: Report | None = None,
    ) -> None:
        # Parameters are many in some models: they are kept for posteriors, which are one pair.
        keep = len(plan.test) == 1
        self._pairs = [
            _OnePair(sampler, w, v, [seed, p], overlap, report, keep)
            for p, (w, v) in enumerate(zip(plan.likelihood_weights, plan.test, strict=True))
        ]

    @property
    def upper(self) -> float:
        """Highest beta that has draws."""
        return min(pair.betas[-1] if pair.betas else -1.0 for pair in self._pairs)

    def extend(self, upper: float) -> list[Ladder]:
        """Return the ladders of all pairs, with rungs up to ``upper`` at least."""
        return [pair.extend(upper) for pair in self._pairs]


class _OnePair:
    def __init__(
        self,
        sampler: Sampler,
        weights: Array,
        tests: Array,
        seeds: list[int],
        overlap: float,
        report: Report | None,
        keep: bool,
    ) -> None:
        self.sampler, self.weights, self.tests = sampler, weights, tests
        self.seeds, self.overlap, self.report, self.keep = seeds, overlap, report, keep
        self.betas: list[float] = []
        self.trained: list[Array] = []
        self.tested: list[Array] = []
        self.rows = np.flatnonzero(tests)
        self.kept: list[Array] = []
        self.theta: list[Mapping[str, Array]] = []
        self.divergent = 0
        self.end = None

    def extend(self, upper: float) -> Ladder:
        while not self.betas or self.betas[-1] < upper:
            if len(self.betas) >= MOST_RUNGS:
                raise ValueError(too_many_rungs(self.betas[-1], upper))
            beta = 0.0
            if self.betas:
                last = self.trained[-1].reshape(1, -1)
                beta = next_beta(last, self.betas[-1], upper, self.overlap)
            self._draw(beta)
            if self.report:
                self.report(beta, upper, len(self.betas))
        rows, kept = self.rows, np.concatenate(self.kept)

        def losses(draws: slice, requested: NDArray[np.intp]) -> Array:
            return kept[draws][:, np.searchsorted(rows, requested)]

        theta = tuple(self.theta)

        def parameters(draws: NDArray[np.intp]) -> Mapping[str, Array]:
            return {name: _by_index([rung[name] for rung in theta], draws) for name in theta[0]}

        return Ladder(
            np.array(self.betas),
            np.array(self.trained),
            np.array(self.tested),
            losses,
            False,
            self.divergent,
            parameters if self.keep else None,
        )

    def _draw(self, beta: float) -> None:
        # The seed depends on the rung alone, so that a draw that was interrupted is repeated.
        seeds = np.random.SeedSequence(self.seeds, spawn_key=(len(self.betas),))
        seed = int(seeds.generate_state(1)[0])
        draws = self.sampler.draw(beta * self.weights, seed, self.end)
        self.betas.append(beta)
        self.trained.append(_sum(draws.losses, self.weights))
        self.tested.append(_sum(draws.losses, self.tests))
        self.kept.append(draws.losses[..., self.rows].reshape(-1, len(self.rows)))
        if self.keep:
            self.theta.append(draws.theta)
        self.divergent += draws.divergent
        self.end = draws.end


def too_many_rungs(reached: float, upper: float) -> str:
    """Return the message for a ladder that needs too many rungs."""
    return (
        f"bounds must be narrower: {MOST_RUNGS} rungs reach beta = {reached:.3g}, not {upper:.3g}; "
        "or use a tighter prior"
    )


def _by_index(rungs: Sequence[Array], draws: NDArray[np.intp]) -> Array:
    """Return draws by flat index from arrays (chains, size, ...) of all rungs."""
    flat = np.concatenate([rung.reshape(-1, *rung.shape[2:]) for rung in rungs])
    return flat[draws]


def _sum(losses: Array, weights: Array) -> Array:
    used = weights > 0
    return losses[..., used] @ weights[used]
