r"""From a plan to a choice of beta: what strategies that hold rows out share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from temperance.calibration import Calibration, known_noise_variance
from temperance.data import Array, Data, Risk
from temperance.messages import BoundWarning, FlatCurveWarning, warn
from temperance.plans import AnyPlan, Pairs
from temperance.protocols import Model
from temperance.rules import Choice, minimum
from temperance.table import HeldOut


class PlanStrategy:
    """Base of strategies that choose beta by held-out rows; a subclass defines its plan."""

    holds_rows_out: ClassVar[bool] = True

    def plan(self, data: Data, rng: np.random.Generator) -> AnyPlan:
        """Return the pairs of train and test weights."""
        raise NotImplementedError(f"{type(self).__name__} must write its plan")

    def planned(self, data: Data, rng: np.random.Generator) -> tuple[Data, AnyPlan]:
        """Return the rows that the plan refers to, and the plan; by default the data's own rows."""
        return data, self.plan(data, rng)

    def score(self, model: Model, risk: Risk) -> Any:
        """Return the score of held-out rows; by default that of the risk."""
        return risk

    def rule(self, table: HeldOut, bounds: tuple[float, float]) -> Choice:
        """Return the choice from a table; by default the beta of smallest mean loss."""
        return minimum(table, bounds)

    def select(
        self,
        model: Model,
        data: Data,
        bounds: tuple[float, float],
        rng: np.random.Generator,
        risk: Risk = "predictive",
    ) -> Calibration:
        """Return the calibration with beta within ``bounds``: plan, table, rule."""
        rows, plan = self.planned(data, rng)
        table = model.held_out(rows, plan, self.score(model, risk), bounds)
        table = with_groups(table, self)
        choice = self.rule(table, bounds)
        calibration = Calibration(model, data, self, risk, bounds, choice, table)
        warn_of_choice(calibration)
        return calibration


def with_groups(table: HeldOut, strategy: Any) -> HeldOut:
    """Return the table with the labels of rows that a strategy holds out together."""
    groups = getattr(strategy, "groups", None)
    return table if groups is None else replace(table, groups=np.asarray(groups))


def stacked_data(train: Data, test: Data) -> tuple[Data, Pairs]:
    """Return two data sets stacked, with the plan that trains on one and tests on the other."""
    both = Data(
        np.concatenate([train.X, test.X]),
        np.concatenate([train.y, test.y]),
        np.concatenate([train.weights, test.weights]),
    )
    zero_train, zero_test = np.zeros(len(train)), np.zeros(len(test))
    train_weights: Array = np.concatenate([train.weights, zero_test])
    test_weights: Array = np.concatenate([zero_train, test.weights])
    return both, Pairs(train_weights[None], test_weights[None], train.size)


def warn_of_choice(calibration: Calibration) -> None:
    """Warn of a minimum at a bound, a flat curve, or a minimum at beta = 0."""
    if calibration.table is not None:
        calibration.table.warn(calibration.beta, lambda: calibration.standard_error)
    lower, upper = calibration.bounds
    if calibration.flat:
        warn(
            "the estimated risk does not depend on beta; the data say nothing about it, "
            f"{'keep Bayes (beta = 1) or ' if calibration.likelihood else ''}use more data",
            FlatCurveWarning,
        )
    elif calibration.at_bound and calibration.beta == upper:
        # The Gibbs risk favours narrow posteriors and usually decreases: no warning at its bound.
        if calibration.kind == "predictive":
            warn(
                f"the estimated predictive risk is smallest at the upper bound beta = {upper:g}; "
                "widen bounds to see whether it falls further, or check whether "
                f"{suspects(calibration.model)}",
                BoundWarning,
            )
    elif calibration.at_bound and lower > 0:
        warn(
            f"the estimated risk is smallest at the lower bound beta = {lower:g}; widen bounds to "
            "see whether it falls further",
            BoundWarning,
        )
    elif calibration.at_bound:
        warn(
            "the estimated risk is smallest at beta = 0: the prior predicts better than anything "
            "learnt from the data; check the model and its prior",
            BoundWarning,
        )


def suspects(model: Model) -> str:
    """Return possible reasons for a minimum at the upper bound."""
    if known_noise_variance(model) is not None:
        return "the noise variance is too large or the prior too tight"
    return "the prior is too tight"
