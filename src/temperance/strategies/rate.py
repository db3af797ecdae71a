r"""Rules that give beta without a risk curve: what they share."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from temperance.calibration import Calibration, Rate, has_likelihood, preferences_of
from temperance.data import Array, Data, Risk
from temperance.messages import BoundWarning, PriorWarning, warn
from temperance.plans import joined_rows
from temperance.protocols import HasInformation, Information, Model, NoMinimiserError
from temperance.rules import Choice
from temperance.strategies.k_fold import KFold
from temperance.uncertainty.information import Correction, Units, as_groups, rates_by_direction

BLOCKS = 20  # of units that are left out in turn for the range of beta
ERRORS = 2.0  # standard errors of log beta in the range
FARTHEST = 1.0  # from the minimiser to the posterior mean, in standard errors, under a weak prior
NARROWEST = 0.5  # standard deviation under a weak prior, relative to that under a flat one


class RateStrategy:
    """Base of rules without a risk curve; a subclass writes ``rate``.

    Identical rows are joined and rows sorted first, so that neither copies nor order matter, nor
    the sign of the responses.
    """

    groups: ArrayLike | None = None

    def rate(
        self, model: Model, units: Units, bounds: tuple[float, float], rng: np.random.Generator
    ) -> Rate:
        """Return the rule's beta for independent units, inside the bounds or not."""
        raise NotImplementedError(f"{type(self).__name__} must write its rate")

    def select(
        self,
        model: Model,
        data: Data,
        bounds: tuple[float, float],
        rng: np.random.Generator,
        risk: Risk = "predictive",
    ) -> Calibration:
        """Return the calibration with beta within ``bounds``, without a curve."""
        if risk == "predictive" and not has_likelihood(model):
            raise ValueError(
                f"risk must be 'gibbs' for {type(model).__name__} with a loss that is no "
                f"likelihood, got {risk!r}"
            )
        groups = as_groups(self.groups, len(data))
        units = Units(by_size(joined_rows(data))) if groups is None else Units(data, groups)
        rate = self.rate(model, units, bounds, rng)
        lower, upper = bounds
        name = type(self).__name__
        if rate.value in bounds:
            warn(
                f"{name} finds no beta inside the bounds [{lower:g}, {upper:g}] and takes "
                f"{rate.value:g}, the nearer one",
                BoundWarning,
            )
        elif not lower < rate.value < upper:
            warn(
                f"{name} gives beta = {rate.value:.3g}, which is not inside the "
                f"bounds [{lower:g}, {upper:g}]; widen bounds to use it",
                BoundWarning,
            )
        beta = float(np.clip(rate.value, lower, upper))
        return Calibration(
            model=model,
            data=data,
            strategy=self,
            kind=risk,
            bounds=bounds,
            choice=Choice(beta, at_bound=not lower < rate.value < upper, searched=False),
            table=None,
            rate=rate,
        )


def assessed(calibration: Calibration) -> Calibration:
    """Return the same choice with the table of ten folds, if it has none."""
    if calibration.table is not None:
        return calibration
    data = calibration.data
    rows, plan = KFold().feasible(data).planned(data, np.random.default_rng(0))
    bounds = calibration.bounds
    table = calibration.model.held_out(rows, plan, calibration.kind, bounds)
    return replace(calibration, table=table)


def by_size(rows: Data) -> Data:
    """Return the rows in order of the size of their responses, which resamples then follow.

    The sign of the responses does not matter to it.
    """
    order = np.argsort(np.abs(rows.y), kind="stable")
    return Data(rows.X[order], rows.y[order], rows.weights[order])


class InformationStrategy(RateStrategy):
    """Base of rules that are formulae of a model's information; a subclass writes ``formula``."""

    by_direction: ClassVar[bool] = False  # whether the rates by direction are reported
    correction: Correction = "HC0"

    def formula(self, model: Model, units: Units, information: Information) -> float:
        """Return the rule's beta."""
        raise NotImplementedError(f"{type(self).__name__} must write its formula")

    @property
    def rule(self) -> str:
        """What the rule matches, as a phrase."""
        raise NotImplementedError(f"{type(self).__name__} must say what it matches")

    def value(self, model: Model, units: Units) -> float:
        """Return the rule's beta for independent units."""
        return self.formula(model, units, information_of(model, units.rows, self))

    def rate(
        self, model: Model, units: Units, bounds: tuple[float, float], rng: np.random.Generator
    ) -> Rate:
        """Return the rule's beta and, when asked, its range."""
        information = information_of(model, units.rows, self)
        found = self.formula(model, units, information)
        if not np.isfinite(found):
            raise NoMinimiserError(
                f"{type(self).__name__} needs scores that vary in all directions, got a rate of "
                f"{found:g}: y is fitted exactly, or X has too many columns for its rows or groups"
            )
        strong = where_prior_is_strong(information, units, found)
        if strong is not None:
            warn(
                f"the prior is not weak at beta = {found:.3g}: it moves or narrows coefficient "
                f"{strong}, which {type(self).__name__} does not allow for; take a larger "
                "prior_cov (prior_scale in the estimators), or standardise the columns of X, and y",
                PriorWarning,
            )
        # Of a model that is sampled each part of the rows would need draws of its own.
        sampled = preferences_of(model).only_curves
        return Rate(
            found,
            self.rule if strong is None else f"{self.rule}; but the prior is not weak",
            None if sampled else partial(jackknife_range, self, model, units),
            "two standard errors, jackknife",
            rates_by_direction(information, units, self.correction) if self.by_direction else None,
        )


def information_of(model: Model, rows: Data, strategy: RateStrategy) -> Information:
    """Return the model's information; refuse models without it, and rows without a minimiser."""
    if not isinstance(model, HasInformation):
        raise ValueError(
            f"{type(strategy).__name__} needs a model with information(data), as linear and "
            f"logistic models have, got {type(model).__name__}"
        )
    return model.information(rows)


def prior_root_of(information: Information, model: Model, strategy: Any) -> Array:
    """Return the root of the prior covariance (p, p); refuse models without a fixed one."""
    if information.prior_root is None:
        raise ValueError(
            f"{type(strategy).__name__} needs a model whose prior has a fixed covariance, got "
            f"{type(model).__name__}; give prior_scale a number, or use Sandwich()"
        )
    root = information.prior_root
    return np.diag(root) if root.ndim == 1 else root


def where_prior_is_strong(information: Information, units: Units, beta: float) -> int | None:
    """Return a coefficient whose Gaussian posterior at beta depends on the prior, or None.

    With the precisions K of the prior and L = beta W J of the rows, the prior moves the mean from
    the minimiser by (K + L)^-1 K (mu - theta_hat) and the covariance from L^-1 to (K + L)^-1.  It
    is weak if every coefficient moves by less than a standard error of the sandwich, and keeps
    more than half of its standard deviation.
    """
    root, mean = information.prior_root, information.prior_mean
    if root is None or mean is None:
        return None
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        rows = units.rows.size * information.curvature
        try:
            prior = np.diag(root**-2.0) if root.ndim == 1 else scaled_inverse(root @ root.T)
            flat, posterior = scaled_inverse(rows), scaled_inverse(prior + beta * rows)
        except np.linalg.LinAlgError:
            return None
        moved = posterior @ (prior @ (mean - information.minimiser))
        errors = np.linalg.norm(units.scores(information) @ flat, axis=0)
        kept = np.sqrt(beta * np.diagonal(posterior) / np.diagonal(flat))
        strong = (np.abs(moved) > FARTHEST * errors) | (kept < NARROWEST)
        return int(np.argmin(kept - strong)) if strong.any() else None


def scaled_inverse(matrix: Array) -> Array:
    """Return the inverse of a covariance or a precision whose units may be extreme."""
    size = np.sqrt(np.diagonal(matrix))
    return np.asarray(np.linalg.inv(matrix / size[:, None] / size)) / size[:, None] / size


def jackknife_range(
    strategy: InformationStrategy, model: Model, units: Units
) -> tuple[float, float] | None:
    """Return beta times exp(+-2 standard errors of its logarithm), by leaving out blocks of units.

    With the logarithms t_b of the rate without block b of m, the squared error is
    (m - 1)/m sum_b (t_b - mean t)^2.  None if a block leaves no minimiser.
    """
    try:
        rates = [strategy.value(model, part) for part in units.without_blocks(BLOCKS)]
    except ValueError:
        return None
    logs, m = np.log(rates), len(rates)
    if not np.isfinite(logs).all():
        return None
    error = np.sqrt((m - 1) / m * ((logs - logs.mean()) ** 2).sum())
    centre = strategy.value(model, units)
    return float(centre * np.exp(-ERRORS * error)), float(centre * np.exp(ERRORS * error))
