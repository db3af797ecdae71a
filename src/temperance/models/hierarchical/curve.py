r"""Risk of a posterior that is averaged over the scales of its prior.

A training set weights scale k by its evidence, w_k ∝ Z_k(beta).  With l_k the loss of a tested row
under that scale, the Gibbs risk is sum_k w_k l_k and the predictive risk -log sum_k w_k e^-l_k.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from temperance.curves import RiskCurve
from temperance.data import Array, Risk
from temperance.models.hierarchical.leave_one_out import LeaveOneOutPredictions
from temperance.models.hierarchical.moments import Predictions, predictions
from temperance.models.hierarchical.training import TestedRows, TrainingSets, trained_and_tested
from temperance.models.linear.eigenbasis import Misfits, positive_range
from temperance.models.linear.noise import NoiseModel, gibbs_rows
from temperance.plans import AnyPlan, LeaveOneOutPlan
from temperance.search.log_scale import Scale

NONE = (0.0, 0.0)  # a range without numbers


class Source(Protocol):
    """Predictions of all rows that a plan tests."""

    def at(
        self, beta: float, scales: Array, prior_level: float, noise: NoiseModel
    ) -> Iterator[Predictions]:
        """Yield them at ``beta`` under each scale of non-negligible weight."""
        ...

    @property
    def training_sets(self) -> list[TrainingSets]:
        """All training sets, or one that holds every other."""
        ...


@dataclass(frozen=True, eq=False)
class PlannedPredictions:
    """Predictions from the training sets of any plan, each decomposed."""

    X: Array
    y: Array
    plan: AnyPlan
    centred: bool

    @cached_property
    def _parts(self) -> list[tuple[TrainingSets, TestedRows]]:
        return list(trained_and_tested(self.X, self.y, self.plan, self.centred))

    @property
    def training_sets(self) -> list[TrainingSets]:
        """All training sets, in batches."""
        return [training for training, _ in self._parts]

    def at(
        self, beta: float, scales: Array, prior_level: float, noise: NoiseModel
    ) -> Iterator[Predictions]:
        """Yield the predictions at ``beta`` under each scale."""
        for training, tests in self._parts:
            yield predictions(training, tests, beta, scales, prior_level)


class TestedLosses(NamedTuple):
    """Losses of the tested rows of p training sets, (p, e) each."""

    value: Array
    slope: Array
    weight: Array
    rows: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class AveragedLosses:
    """Losses of n rows under the average over scales."""

    source: Source
    noise: NoiseModel
    risk: Risk
    scales: Array
    prior_level: float
    n: int

    def evaluate(self, beta: Array) -> tuple[Array, Array]:
        """Return the risk at betas (g,) and its derivative."""
        value, slope = np.zeros(len(beta)), np.zeros(len(beta))
        for j, at in enumerate(beta):
            total = 0.0
            for part in self._losses(float(at)):
                value[j] += (part.weight * part.value).sum()
                slope[j] += (part.weight * part.slope).sum()
                total += float(part.weight.sum())
            value[j] /= total
            slope[j] /= total
        return value, slope

    def rows(self, beta: float) -> tuple[Array, Array]:
        """Return the loss of each row and its weight."""
        total, weight = np.zeros(self.n), np.zeros(self.n)
        for part in self._losses(beta):
            np.add.at(total, part.rows, part.weight * part.value)
            np.add.at(weight, part.rows, part.weight)
        return total / np.where(weight > 0, weight, 1.0), weight

    def scale(self) -> Scale:
        """Return the beta from which on the curve changes.

        Coefficients, the level and the noise are learnt; and evidences, in which the squares of the
        responses are multiplied by beta, begin to weigh the scales.
        """
        rates, betas = [1.0], []
        for each in self.source.training_sets:
            squares = each.rest + (each.response**2).sum(axis=1) + each.exposure * each.mean**2
            information = self.scales.max() * each.singular.max(initial=0.0) ** 2
            level = self.prior_level * each.exposure.max()
            rates += [float(information), float(level), float(squares.max())]
            exposures = positive_range(each.exposure)
            betas += self.noise.changing(Misfits(exposures, positive_range(squares), NONE, NONE))
        return Scale(min([1 / max(rates), *betas]))

    def _losses(self, beta: float) -> Iterator[TestedLosses]:
        for found in self.source.at(beta, self.scales, self.prior_level, self.noise):
            yield averaged(found, beta, self.noise, self.risk)


def averaged(found: Predictions, beta: float, noise: NoiseModel, risk: Risk) -> TestedLosses:
    """Return the losses averaged over scales, with the evidence as weights."""
    moments, at = found.moments, np.array([beta])
    p, k = found.log_determinant.shape
    e = moments.error.shape[1]
    fit, d_fit = (part.reshape(p, k) for part in noise.log_evidence(at, moments))
    log_weight = fit - 0.5 * found.log_determinant
    log_weight -= log_weight.max(axis=1, keepdims=True)  # subtracted first, without rounding
    log_weight -= special.logsumexp(log_weight, axis=1, keepdims=True)
    weight = np.exp(log_weight)
    drift = d_fit - 0.5 * found.d_log_determinant
    drift -= (weight * drift).sum(axis=1, keepdims=True)
    if risk == "predictive":
        loss, d_loss = (part.reshape(p, k, e) for part in noise.predictive(at, moments))
        log_density = log_weight[:, :, None] - loss
        value = -special.logsumexp(log_density, axis=1)
        share = np.exp(log_density + value[:, None])
        slope = (share * (d_loss - drift[:, :, None])).sum(axis=1)
    else:
        found_losses = gibbs_rows(noise.gibbs(at, moments), moments)
        loss, d_loss = (part.reshape(p, k, e) for part in found_losses)
        value = (weight[:, :, None] * loss).sum(axis=1)
        slope = (weight[:, :, None] * (d_loss + drift[:, :, None] * loss)).sum(axis=1)
    return TestedLosses(value, slope, moments.weight[::k], moments.rows[::k])


def averaged_curve(
    X: Array,
    y: Array,
    plan: AnyPlan,
    centred: bool,
    noise: NoiseModel,
    risk: Risk,
    scales: Array,
    prior_level: float,
) -> RiskCurve:
    """Return the curve of a plan, in closed form."""
    source: Source
    if isinstance(plan, LeaveOneOutPlan) and plan.transfer == "beta":
        source = LeaveOneOutPredictions(X, y, plan, centred)
    else:
        source = PlannedPredictions(X, y, plan, centred)
    losses = AveragedLosses(source, noise, risk, scales, prior_level, len(y))
    return RiskCurve(losses.evaluate, losses.rows, "closed form", costly=True, scale=losses.scale)
