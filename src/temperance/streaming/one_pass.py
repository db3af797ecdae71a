r"""The choice of beta by the Gibbs risk from second moments of folds, which one pass gives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.calibration import Calibration
from temperance.checks import as_bounds, refuse_overflow, shown
from temperance.curves import RiskCurve
from temperance.data import Array, Data
from temperance.models import GaussianLinear, NormalInverseGammaLinear
from temperance.plans import Folds, Pairs
from temperance.strategies import Average, Bayes, KFold, Naive, SampleSplitting, strategy_named
from temperance.strategies.selection import conclude, warn_of_minimum
from temperance.streaming.accumulate import FoldMoments, refuse_no_rows
from temperance.uncertainty.standard_errors import KnownErrors, StandardErrors, mean_and_error

Linear = GaussianLinear | NormalInverseGammaLinear
OnePass = KFold | SampleSplitting | Naive  # Bayes is a subclass of Naive
ONE_PASS = "KFold, SampleSplitting(shuffle=True), Naive or Bayes"


def from_moments(
    model: Linear, moments: FoldMoments, chosen: OnePass, limits: tuple[float, float]
) -> Calibration:
    """Return the choice by the Gibbs risk that second moments of folds determine."""
    refuse_no_rows(moments)
    refuse_empty_folds(moments, chosen)
    rows, fold = moments.as_data()
    model.check(rows)
    with refuse_overflow(rows.X, rows.y):
        curve = model.risk_curve(rows, plan_of(chosen, rows, fold))
        minimum = chosen.locate(curve, limits)
    found = conclude(model, rows, rows, chosen, "gibbs", limits, curve, minimum)
    errors: StandardErrors = KnownErrors()
    if isinstance(chosen, KFold):
        errors = FoldErrors(curve, minimum.beta, fold)
    calibration = replace(found, errors=errors)
    warn_of_minimum(calibration)
    return calibration


def refuse_empty_folds(moments: FoldMoments, strategy: Any) -> None:
    """Refuse folds without rows."""
    if moments.count.min() < 1:
        raise ValueError(
            f"X must have a row in every fold of {strategy!r}, got none in one of them out of "
            f"{int(moments.count.sum())} rows"
        )


def as_linear(model: Any) -> Linear:
    """Return the model; refuse those whose risk does not follow from sums over rows."""
    if not isinstance(model, GaussianLinear | NormalInverseGammaLinear):
        raise ValueError(
            "model must be GaussianLinear, NormalInverseGammaLinear, LaplaceLogistic or "
            f"GibbsLinear(posterior='laplace') to be calibrated on blocks, got {shown(model)}"
        )
    return model


def as_strategy(strategy: Any, bounds: tuple[float, float]) -> Any:
    """Return a strategy by its name, or one given, in which equal rows are not detected."""
    chosen = strategy_named(strategy) if isinstance(strategy, str) else strategy
    limits = as_bounds(bounds)
    if isinstance(chosen, Bayes) and not limits[0] <= 1 <= limits[1]:
        raise ValueError(f"bounds must contain beta = 1 for Bayes, got {limits!r}")
    if isinstance(chosen, KFold) and chosen.duplicates == "auto":
        chosen = replace(chosen, duplicates="apart")
    if isinstance(chosen, Average):
        chosen = replace(chosen, source=as_strategy(chosen.source, bounds))
    return chosen


@dataclass(frozen=True, eq=False)
class FoldErrors:
    """Standard errors between folds, of the risk and of the gain over Bayes."""

    curve: RiskCurve
    beta: float
    fold: NDArray[np.intp]

    @property
    def risk(self) -> float:
        """Standard error of the risk."""
        return _between(*self._losses(self.beta))

    @cached_property
    def gain(self) -> float:
        """Standard error of the gain."""
        loss, share = self._losses(self.beta)
        return _between(self._losses(1.0)[0] - loss, share)

    def _losses(self, beta: float) -> tuple[Array, Array]:
        """Return the mean loss of each fold, and its weight."""
        loss, weight = self.curve.rows(beta)
        share = np.bincount(self.fold, weight).astype(float)
        return np.bincount(self.fold, weight * loss) / share, share


def _between(losses: Array, share: Array) -> float:
    return mean_and_error(losses, share, np.ones_like(share))[1]


def folds_of(strategy: Any) -> int | None:
    """Return the number of folds of a strategy of one pass; None for others."""
    if isinstance(strategy, KFold) and strategy.duplicates != "together":
        return strategy.n_folds
    if isinstance(strategy, SampleSplitting) and strategy.shuffle and strategy.repeats == 1:
        return 2
    if isinstance(strategy, Naive):
        return 1
    return None


def plan_of(strategy: OnePass, rows: Data, fold: NDArray[np.intp]) -> Pairs | Folds:
    """Return the pairs of train and test weights of a few rows with given folds."""
    if isinstance(strategy, KFold):
        return Folds(rows.weights, fold, strategy.n_folds, strategy.transfer)
    if isinstance(strategy, Naive):
        return strategy.plan(rows, np.random.default_rng(0))
    first = (fold == 0)[None]
    train = np.concatenate([first, ~first]) if strategy.both_directions else first
    return Pairs(train * rows.weights, ~train * rows.weights, rows.size, strategy.transfer)
