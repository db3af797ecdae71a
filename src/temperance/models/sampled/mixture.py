r"""Mixtures of posteriors at several betas, from one ladder of draws.

With the weights W(beta) of multistate reweighting over the draws of all rungs, the mixture with
shares s_k of the posteriors at beta_k has the weights sum_k s_k W(beta_k).  Draws are resampled by
these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from temperance.curves import RiskCurve
from temperance.data import Array, Data, batches
from temperance.messages import DrawsWarning, warn
from temperance.models.sampled.curve import BLOCK, FromDraws, SampledRiskCurve
from temperance.models.sampled.draws import Draws
from temperance.models.sampled.ladder import Ladder
from temperance.models.sampled.leave_one_out import LeftOutDraws
from temperance.plans import AnyPlan, Pairs

if TYPE_CHECKING:
    from temperance.calibration import BetaWeights

LEAST_EFFECTIVE = 100  # independent draws that a mixture must be worth


class MixesDraws:
    """Base of sampled models: mixtures of their posteriors at several betas."""

    def risk_curve(self, data: Data, plan: AnyPlan) -> Any:
        """Return the curve of a plan."""
        raise NotImplementedError(f"{type(self).__name__} must have a risk curve")

    def shape_of_posterior(self) -> tuple[int, int]:
        """Return the number of chains and of draws of each."""
        raise NotImplementedError(f"{type(self).__name__} must say how many draws it gives")

    def as_posterior(self, drawn: Draws, data: Data, beta: float, method: str) -> Any:
        """Return draws as an ArviZ object."""
        raise NotImplementedError(f"{type(self).__name__} must have a posterior")

    def mixture(self, data: Data, average: BetaWeights, curve: RiskCurve | None) -> Any:
        """Return draws of the average of the posteriors over beta, as an ArviZ object.

        Parameters
        ----------
        data : Data
        average : BetaWeights
        curve : RiskCurve, optional
            A curve of these data; if it is of leave-one-out, its draws of all rows are used.
        """
        drawn = curve.draws if isinstance(curve, SampledRiskCurve) else None
        if not isinstance(drawn, LeftOutDraws):
            every = Pairs(data.weights[None], data.weights[None], data.size)
            drawn = self.risk_curve(data, every).draws
        mixed = mixture_of_draws(
            drawn, average.betas, average.weights, self.shape_of_posterior(), len(data)
        )
        method = str(drawn.reliability(average.median))
        posterior = self.as_posterior(mixed, data, average.median, method)
        about = {"betas": average.betas.tolist(), "weights": average.weights.tolist()}
        for part in (posterior, posterior["posterior"]):
            part.attrs.update(about)
        return posterior


def mixture_of_draws(
    drawn: FromDraws, betas: Array, shares: Array, shape: tuple[int, int], rows: int
) -> Draws:
    """Return draws of a mixture over betas, resampled from the first ladder, and their losses."""
    drawn.cover(float(betas.max()))
    ladder, state = drawn.ladders[0], drawn.states[0]
    weights = shares @ state.weights(betas)
    effective = float(1 / (weights @ weights))
    if effective < LEAST_EFFECTIVE:
        warn(
            f"the draws of the average over beta are worth {effective:.0f} independent ones, less "
            f"than {LEAST_EFFECTIVE}; use more draws",
            DrawsWarning,
        )
    if ladder.theta is None:
        raise ValueError("the ladder must have kept its parameters to give a posterior")
    chosen = systematic(weights, shape[0] * shape[1], np.random.default_rng(0)).reshape(shape)
    return Draws(ladder.theta(chosen), _losses(ladder, chosen, rows), int(np.sum(ladder.divergent)))


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
