r"""Mixtures of posteriors at several betas, from one ladder of draws.

With the weights W(beta) of multistate reweighting over the draws of all rungs, the mixture with
shares s_k of the posteriors at beta_k has the weights sum_k s_k W(beta_k).  Draws are resampled by
these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.curves import CurveTable, GivesCurve, table_of
from temperance.data import Array, Data, Risk, batches
from temperance.messages import DrawsWarning, warn
from temperance.models.sampled.curve import BLOCK, FromDraws, SampledRiskCurve
from temperance.models.sampled.draws import Draws
from temperance.models.sampled.ladder import Ladder
from temperance.models.sampled.leave_one_out import LeftOutDraws
from temperance.plans import AnyPlan, Pairs, number_rows
from temperance.rules import BetaWeights
from temperance.table import HeldOut

LEAST_EFFECTIVE = 100  # independent draws that a mixture must be worth


class MixesDraws(GivesCurve):
    """Base of sampled models: mixtures of their posteriors at several betas."""

    def held_out(
        self, data: Data, plan: AnyPlan, score: Risk, bounds: tuple[float, float]
    ) -> HeldOut:
        """Return the table of the rows, or of the pieces of rows, that the plan holds out."""
        return table_of(self.risk_curve(data, plan, score), data, plan, score, bounds)

    def shape_of_posterior(self) -> tuple[int, int]:
        """Return the number of chains and of draws of each."""
        raise NotImplementedError(f"{type(self).__name__} must say how many draws it gives")

    def as_posterior(self, drawn: Draws, data: Data, beta: float, method: str) -> Any:
        """Return draws as an ArviZ object."""
        raise NotImplementedError(f"{type(self).__name__} must have a posterior")

    def mixture(self, data: Data, weights: BetaWeights, table: HeldOut | None) -> Any:
        """Return draws of the mixture of the posteriors over beta, as an ArviZ object.

        Parameters
        ----------
        data : Data
        weights : BetaWeights
        table : HeldOut, optional
            Held-out losses of these data; if one row is left out at a time, their draws are used.
        """
        drawn, rows = self._drawn(data, table)
        kept = weights.without_negligible()
        mixed = mixture_of_draws(drawn, kept, self.shape_of_posterior(), rows)
        method = str(drawn.reliability(weights.median))
        posterior = self.as_posterior(mixed, data, weights.median, method)
        about = {"betas": kept.betas.tolist(), "weights": kept.weights.tolist()}
        for part in (posterior, posterior["posterior"]):
            part.attrs.update(about)
        return posterior

    def _drawn(self, data: Data, table: HeldOut | None) -> tuple[FromDraws, NDArray[np.intp]]:
        """Return draws of the posterior of all rows, and the number of each row there."""
        curve = table.curve if isinstance(table, CurveTable) else None
        if isinstance(curve, SampledRiskCurve) and isinstance(curve.draws, LeftOutDraws):
            joined = len(curve.draws.plan.weights) < len(data)  # equal rows are one row
            return curve.draws, number_rows(data) if joined else np.arange(len(data))
        every = Pairs(data.weights[None], data.weights[None], data.size)
        curve = self.risk_curve(data, every)
        assert isinstance(curve, SampledRiskCurve)
        return curve.draws, np.arange(len(data))


def mixture_of_draws(
    drawn: FromDraws, over: BetaWeights, shape: tuple[int, int], rows: NDArray[np.intp]
) -> Draws:
    """Return draws of a mixture over betas, resampled from the first ladder, with losses of rows.

    Rows are numbers of those of the ladder, which may occur several times.
    """
    drawn.cover(float(over.betas.max()))
    ladder, state = drawn.ladders[0], drawn.states[0]
    weights = over.weights @ state.weights(over.betas)
    effective = float(1 / (weights @ weights))
    if effective < LEAST_EFFECTIVE:
        warn(
            f"the draws of the mixture over beta are worth {effective:.0f} independent ones, less "
            f"than {LEAST_EFFECTIVE}; use more draws",
            DrawsWarning,
        )
    if ladder.theta is None:
        raise ValueError("the ladder must have kept its parameters to give a posterior")
    chosen = systematic(weights, shape[0] * shape[1], np.random.default_rng(0)).reshape(shape)
    losses = _losses(ladder, chosen, int(rows.max()) + 1)[..., rows]
    return Draws(ladder.theta(chosen), losses, int(np.sum(ladder.divergent)))


def systematic(weights: Array, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return shuffled indices; one of weight w occurs floor(size w) or ceil(size w) times."""
    steps = (rng.random() + np.arange(size)) / size
    ends = np.cumsum(weights)
    return rng.permutation(np.searchsorted(ends / ends[-1], steps, side="right"))


def _losses(ladder: Ladder, chosen: NDArray[np.intp], rows: int) -> Array:
    """Return losses of all rows at draws by index, shape (*chosen.shape, rows)."""
    losses = np.empty((*chosen.shape, rows))
    for part in batches(ladder.trained.size, rows, BLOCK):
        inside = (chosen >= part.start) & (chosen < part.stop)
        if inside.any():
            losses[inside] = ladder.losses(part, np.arange(rows))[chosen[inside] - part.start]
    return losses
