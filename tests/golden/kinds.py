"""Kinds of problems, and what is recorded of each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

import temperance
from temperance import Calibration, calibrate, calibrate_from_draws
from temperance.messages import TemperanceWarning

from .rows import Array, Rows

BETAS = (0.01, 0.1, 0.3, 1.0, 1.5, 2.0, 3.0)
LEVEL, FORECAST_LEVEL = 0.95, 0.9


class Solution(NamedTuple):
    """A calibration with what its posterior says; None for what it does not."""

    calibration: Calibration
    mean: Any = None
    intervals: Any = None  # of the coefficients
    forecasts: Any = None  # intervals of responses, or probabilities


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """A calibration whose numbers are recorded.

    Parameters
    ----------
    strategy, risk, bounds, seed : as for ``calibrate``; none is left to a default
    betas : where the curve is recorded
    rtol : tolerance of the curve, relative to the larger of its size and 1, and a tenth of that of
        means and intervals, relative to their size
    beta_rtol, range_rtol : relative tolerances of the choice and of the ends of its range
    noise_variance : a known variance, if the curve leaves out log(2 pi s2) / 2
    constant : added to the curve on purpose since the numbers were written
    """

    strategy: Any
    risk: Literal["gibbs", "predictive"]
    bounds: tuple[float, float] = (0.0, 3.0)
    seed: int = 0
    betas: tuple[float, ...] = BETAS
    rtol: float = 1e-8
    beta_rtol: float = 1e-4
    range_rtol: float = 1e-3
    noise_variance: float | None = None
    constant: float = 0.0

    def solved(self) -> Solution:
        """Return the calibration and what its posterior says."""
        raise NotImplementedError(f"{type(self).__name__} must say what it calibrates")


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelProblem(Problem):
    """A model, calibrated on rows."""

    model: Any
    rows: Rows

    def solved(self) -> Solution:
        """Return the calibration and what its posterior says."""
        X, y, weights = self.rows
        calibration = calibrate(
            self.model,
            X,
            y,
            self.strategy,
            bounds=self.bounds,
            risk=self.risk,
            weights=weights,
            seed=self.seed,
        )
        posterior, new = calibration.posterior, self.rows.new
        responds = hasattr(posterior, "predictive")
        return Solution(
            calibration,
            posterior.mean,
            posterior.marginals().interval(LEVEL),
            posterior.predictive(new).interval(FORECAST_LEVEL)
            if responds
            else posterior.predict(new),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class EstimatorProblem(Problem):
    """An estimator of scikit-learn's kind, fitted to rows; ``risk`` is that of its target."""

    name: Literal["GibbsRegressor", "GibbsClassifier"]
    rows: Rows
    options: dict[str, Any] = field(default_factory=dict)

    def solved(self) -> Solution:
        """Return the calibration and what the estimator says."""
        X, y, weights = self.rows
        estimator = getattr(temperance, self.name)(
            strategy=self.strategy, bounds=self.bounds, random_state=self.seed, **self.options
        ).fit(X, y, weights)
        if estimator.calibration_.kind != self.risk:
            raise ValueError(f"the risk is {estimator.calibration_.kind!r}, not {self.risk!r}")
        slopes = np.atleast_2d(estimator.coef_)
        classifies = self.name == "GibbsClassifier"
        return Solution(
            estimator.calibration_,
            np.column_stack([np.atleast_1d(estimator.intercept_), slopes]),
            [estimator.coefficients(k).interval(LEVEL) for k in range(len(slopes))]
            if classifies
            else estimator.coefficients().interval(LEVEL),
            estimator.predict_proba(self.rows.new)
            if classifies
            else estimator.predict_interval(self.rows.new, level=FORECAST_LEVEL),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class DrawsProblem(Problem):
    """Log likelihoods of draws at beta = 1; the strategy may be None, for leave-one-out."""

    log_likelihood: Callable[[], Array]

    def solved(self) -> Solution:
        """Return the calibration; a posterior of unknown parameters says nothing."""
        return Solution(
            calibrate_from_draws(
                self.log_likelihood(),
                strategy=self.strategy,
                bounds=self.bounds,
                risk=self.risk,
                seed=self.seed,
            )
        )


def quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function, and ignore this library's warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TemperanceWarning)
        return function(*arguments)


def recorded(problem: Problem) -> dict[str, Any]:
    """Compute the numbers of a problem, as ``numbers.json`` holds them."""
    return quietly(lambda: numbers_of(problem, problem.solved()))


def numbers_of(problem: Problem, found: Solution) -> dict[str, Any]:
    """Return what is recorded of a calibration; None for what it does not have."""
    calibration = found.calibration
    curve = None if calibration.table is None else calibration.curve
    return {
        "beta": plain(calibration.beta),
        "beta_range": plain(calibration.beta_range),
        "curve": None if curve is None else plain(curve(np.array(problem.betas))),
        "forecasts": plain(found.forecasts),
        "gain_standard_error": plain(calibration.gain_standard_error),
        "intervals": plain(found.intervals),
        "mean": plain(found.mean),
        "risk": plain(calibration.risk),
    }


def plain(values: Any) -> Any:
    """Return a number or nested lists of numbers; None for None and for a missing number."""
    if values is None:
        return None
    array = np.asarray(values, dtype=float)
    return None if array.ndim == 0 and np.isnan(array) else array.tolist()
