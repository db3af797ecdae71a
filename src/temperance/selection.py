r"""From a risk curve to a choice: what all strategies that estimate risk share."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from temperance.calibration import Calibration, mean_and_error
from temperance.diagnostics import BoundWarning, ConvergenceWarning, FlatCurveWarning
from temperance.draws import covariance_slope, sampled_risk_curve
from temperance.optimise import Minimum, minimise, stochastic_minimise
from temperance.types import AnyPlan, Data, Model, Plan, Risk, RiskCurve, Strategy

PAIRS_PER_STEP = 8
DRAWS_PER_PAIR = 200


def stack(train: Data, test: Data) -> tuple[Data, Plan]:
    """Stack two data sets, with the plan that trains on one and tests on the other."""
    both = Data(
        np.concatenate([train.X, test.X]),
        np.concatenate([train.y, test.y]),
        np.concatenate([train.weights, test.weights]),
    )
    zero_train, zero_test = np.zeros(len(train)), np.zeros(len(test))
    return both, Plan(
        np.concatenate([train.weights, zero_test])[None],
        np.concatenate([zero_train, test.weights])[None],
        train.size,
    )


class CurveStrategy:
    """A strategy that minimises a curve: it writes its plan, the rest is shared."""

    def plan(self, data: Data, rng: np.random.Generator) -> AnyPlan:
        """Return the pairs of train and test weights."""
        raise NotImplementedError

    def planned(self, data: Data, rng: np.random.Generator) -> tuple[Data, AnyPlan]:
        """Return the rows that the plan is about and the plan; by default the data's own rows."""
        return data, self.plan(data, rng)

    def locate(self, curve: RiskCurve, bounds: tuple[float, float]) -> Minimum:
        """Choose a point on the curve; by default its minimum."""
        return minimise(curve.evaluate, bounds)

    def select(
        self,
        model: Model,
        data: Data,
        bounds: tuple[float, float],
        rng: np.random.Generator,
        risk: Risk = "gibbs",
        optimiser: str = "deterministic",
    ) -> Calibration:
        """Choose beta within ``bounds``."""
        rows, plan = self.planned(data, rng)
        if optimiser == "stochastic":
            curve, minimum = _stochastic(model, rows, plan, bounds, rng)
        else:
            curve = model.risk_curve(rows, plan, risk)
            minimum = self.locate(curve, bounds)
        calibration = _conclude(model, data, rows, self, risk, bounds, curve, minimum)
        _warn(calibration)
        return calibration


def _stochastic(
    model: Any,
    rows: Data,
    plan: AnyPlan,
    bounds: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[RiskCurve, Minimum]:
    """Descend noisy slopes of a few pairs at a time; the curve is from draws, too."""
    pairs = plan.pairs()
    share = pairs.test.sum(axis=1) / pairs.test.sum()
    few = min(len(share), PAIRS_PER_STEP)

    def slope(beta: float) -> float:
        chosen = (
            np.arange(len(share)) if few == len(share) else rng.choice(len(share), few, p=share)
        )
        # Pairs drawn in proportion to their test weight count the same.
        test = pairs.test[chosen]
        if few < len(share):
            test = test / test.sum(axis=1, keepdims=True)
        part = Plan(pairs.train[chosen], test, pairs.size, pairs.transfer)
        return covariance_slope(model, rows, part, beta, DRAWS_PER_PAIR, rng)

    beta, converged = stochastic_minimise(slope, bounds)
    if not converged:
        warnings.warn(
            f"the stochastic optimiser did not settle (beta = {beta:.3g}); use "
            'optimiser="deterministic" if the model has a risk curve, or narrower bounds',
            ConvergenceWarning,
            stacklevel=4,
        )
    near = 0.01 * (bounds[1] - bounds[0])
    if min(beta - bounds[0], bounds[1] - beta) < near:
        beta = bounds[0] if beta - bounds[0] < near else bounds[1]
    return sampled_risk_curve(model, rows, pairs), Minimum(beta, beta in bounds, flat=False)


def _conclude(
    model: Model,
    data: Data,
    rows: Data,
    strategy: Strategy,
    risk: Risk,
    bounds: tuple[float, float],
    curve: RiskCurve,
    minimum: Minimum,
) -> Calibration:
    loss, share = curve.rows(minimum.beta)
    bayes, _ = curve.rows(1.0)
    estimate, error = mean_and_error(loss, share, rows.weights)
    difference, paired_error = mean_and_error(bayes - loss, share, rows.weights)
    return Calibration(
        model=model,
        data=data,
        strategy=strategy,
        kind=risk,
        bounds=bounds,
        beta=minimum.beta,
        risk=estimate,
        standard_error=error,
        at_bound=minimum.at_bound,
        flat=minimum.flat,
        bayes_risk=estimate + difference,
        gain_standard_error=paired_error,
        curve=curve,
    )


def _warn(calibration: Calibration) -> None:
    lower, upper = calibration.bounds
    if calibration.flat:
        warnings.warn(
            "the estimated risk does not depend on beta; the data say nothing about it, keep Bayes "
            "(beta = 1) or use more data",
            FlatCurveWarning,
            stacklevel=4,
        )
    elif calibration.at_bound and calibration.beta == upper:
        warnings.warn(
            f"the estimated risk is smallest at the upper bound beta = {upper:g}; widen bounds to "
            "see whether it falls further, or check whether the prior is too tight",
            BoundWarning,
            stacklevel=4,
        )
    elif calibration.at_bound and lower > 0:
        warnings.warn(
            f"the estimated risk is smallest at the lower bound beta = {lower:g}; widen bounds to "
            "see whether it falls further",
            BoundWarning,
            stacklevel=4,
        )
    elif calibration.at_bound:
        warnings.warn(
            "the estimated risk is smallest at beta = 0: the prior predicts better than anything "
            "learnt from the data; check the model and its prior",
            BoundWarning,
            stacklevel=4,
        )
