r"""Averages over beta on partitions: weights from sums of losses, their risk by one more pass.

The weights of betas depend on the sums of the losses of held-out rows and on the covariance of
these sums (:mod:`temperance.strategies.average`), which the curve of several passes has.  The loss
of a row under the average, -log sum_j w_j exp(-l_j), is no such sum: a pass adds it up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from temperance.calibration import BetaWeights
from temperance.curves import RiskCurve
from temperance.data import Array, Data, Risk
from temperance.protocols import CountsParameters
from temperance.search.minimise import Minimum
from temperance.strategies import Average
from temperance.strategies.average import HeldOutLosses
from temperance.streaming.loss_sums import LossSums, SummedCurve
from temperance.streaming.row_losses import Batch, LossesOfRows
from temperance.uncertainty.standard_errors import RowErrors


def source_of(strategy: Any) -> Any:
    """Return how a strategy holds rows out: itself, or the source of an average."""
    return strategy.source if isinstance(strategy, Average) else strategy


def refuse_other_risk(strategy: Any, risk: Risk) -> None:
    """Refuse averages under another risk than that of forecasts."""
    if isinstance(strategy, Average) and risk != "predictive":
        raise ValueError(f"risk must be 'predictive' for Average on partitions, got {risk!r}")


@dataclass(frozen=True, eq=False)
class MixedLosses:
    """Losses of rows under an average, and under Bayes.

    Parameters
    ----------
    losses : LossesOfRows
        At the betas of the average and at 1.
    average : BetaWeights
    """

    losses: LossesOfRows
    average: BetaWeights

    @property
    def beta(self) -> Array:
        """The median of the average, and 1."""
        return np.array([self.average.median, 1.0])

    def partition(self, number: int, data: Data) -> Iterator[Batch]:
        """Yield the losses of batches of rows."""
        for losses, weights, aside in self.losses.partition(number, data):
            yield Batch(self.mixed(losses), weights, aside)

    def mixed(self, losses: Array) -> Array:
        """Return the losses under the average and under Bayes, (n, 2), from all (n, g)."""
        return np.stack([self.average.mixed(losses[:, :-1].T), losses[:, -1]], axis=1)


class Averaged(NamedTuple):
    """What a calibration says about an average."""

    average: BetaWeights
    minimum: Minimum
    risk: float
    errors: RowErrors


def averaged(
    strategy: Average,
    summed: SummedCurve,
    curve: RiskCurve,
    model: CountsParameters,
    data: Data,
    bounds: tuple[float, float],
    sums_of: Callable[[BetaWeights], LossSums],
    inflate: Callable[[float], float],
) -> Averaged:
    """Return the weights of betas, and the risk of the average by one more pass.

    Parameters
    ----------
    sums_of : function
        From an average to the sums of :class:`MixedLosses`.
    inflate : function
        From the median beta to the factor on standard errors.
    """
    strategy.refuse_bounds(bounds)
    average = HeldOutLosses(curve, model, data, summed.weights, strategy.spread).average(bounds)
    sums = sums_of(average)
    few = replace(summed, sums=sums)
    paired, median = replace(curve, rows=FewRows(few).at_bayes), average.median
    errors = RowErrors(paired, median, few.weights, partial(inflate, median), few.losses[:, 0])
    risk = float(sums.plain[0] / sums.weight)
    return Averaged(average, Minimum(median, searched=False), risk, errors)


@dataclass(frozen=True, eq=False)
class FewRows:
    """A few rows with the means and covariances of :class:`MixedLosses` of all rows."""

    summed: SummedCurve

    def at_bayes(self, beta: float) -> tuple[Array, Array]:
        """Return their losses under Bayes, and the weight of each."""
        return self.summed.losses[:, 1], self.summed.weights
