r"""From a risk curve to a choice of beta: common code of strategies that estimate risk."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import ClassVar, cast

import numpy as np

from temperance.calibration import Calibration
from temperance.curves import RiskCurve
from temperance.data import Array, Data, Risk
from temperance.messages import BoundWarning, ConvergenceWarning, FlatCurveWarning, warn
from temperance.models.sampled.risk_of_draws import (
    covariance_slope,
    prior_scale,
    sampled_risk_curve,
)
from temperance.plans import AnyPlan, Plan
from temperance.protocols import Model, SamplingModel, Strategy, known_noise_variance
from temperance.search.compressed import compressed
from temperance.search.log_scale import Ruler
from temperance.search.minimise import Minimum, minimise, stochastic_minimise
from temperance.search.with_floor import minimise_above_floor
from temperance.search.with_sketch import minimise_by_sketch
from temperance.uncertainty.standard_errors import RowErrors, error_inflation

PAIRS_PER_STEP = 8
DRAWS_PER_PAIR = 200
NEAR_BOUND = 0.02  # share of the range, in the search variable, that counts as near a bound
SLOPES_AT_BOUND = 30  # noisy slopes averaged to decide whether the risk decreases to a bound


def stack(train: Data, test: Data) -> tuple[Data, Plan]:
    """Return two data sets stacked, with the plan that trains on one and tests on the other."""
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
    """Base of strategies that minimise a risk curve; a subclass defines its plan."""

    holds_rows_out: ClassVar[bool] = True

    def plan(self, data: Data, rng: np.random.Generator) -> AnyPlan:
        """Return the pairs of train and test weights."""
        raise NotImplementedError(f"{type(self).__name__} must write its plan")

    def planned(self, data: Data, rng: np.random.Generator) -> tuple[Data, AnyPlan]:
        """Return the rows that the plan refers to, and the plan; by default the data's own rows."""
        return data, self.plan(data, rng)

    def locate(self, curve: RiskCurve, bounds: tuple[float, float]) -> Minimum:
        """Return a point on the curve; by default its minimum."""
        return minimum_of(curve, bounds)

    def curve(self, model: Model, rows: Data, plan: AnyPlan, risk: Risk) -> RiskCurve:
        """Return the curve that the plan estimates; by default that of the risk."""
        return model.risk_curve(rows, plan, risk)

    def select(
        self,
        model: Model,
        data: Data,
        bounds: tuple[float, float],
        rng: np.random.Generator,
        risk: Risk = "gibbs",
        optimiser: str = "deterministic",
    ) -> Calibration:
        """Return the calibration with beta within ``bounds``."""
        rows, plan = self.planned(data, rng)
        if optimiser == "deterministic":
            curve = self.curve(model, rows, plan, risk)
            minimum = self.locate(curve, bounds)
        else:
            pairs, sampled = plan.pairs(), cast(SamplingModel, model)  # calibrate refuses others
            curve = sampled_risk_curve(sampled, rows, pairs, seed=int(rng.integers(2**32)))
            # A strategy with its own rule gets the curve estimated from draws.
            own_rule = type(self).locate is not CurveStrategy.locate
            minimum = (
                self.locate(curve, bounds)
                if own_rule
                else _descend(sampled, rows, pairs, bounds, rng)
            )
        calibration = conclude(model, data, rows, self, risk, bounds, curve, minimum)
        warn_of_minimum(calibration)
        return calibration


def minimum_of(curve: RiskCurve, bounds: tuple[float, float]) -> Minimum:
    """Return the minimum of a curve, by the cheapest search that the curve supports."""
    ruler = curve.ruler(bounds)
    if curve.steep:
        level = float((curve.sketch or curve.evaluate)(np.array([bounds[1]]))[0][0])
        sketch = None if curve.sketch is None else compressed(curve.sketch, level)
        curve = replace(
            curve, evaluate=compressed(curve.evaluate, level), sketch=sketch, steep=False
        )
    if curve.sketch is not None:
        return minimise_by_sketch(curve.evaluate, curve.sketch, ruler, search=curve.search)
    if curve.floor is not None:
        return minimise_above_floor(curve.evaluate, curve.floor, ruler, search=curve.search)
    return minimise(curve.evaluate, ruler, search=curve.search)


def groups_of(strategy: Strategy) -> Array | None:
    """Return the labels of rows that a strategy holds out together, or None."""
    groups = getattr(strategy, "groups", None)
    return None if groups is None else np.asarray(groups)


def conclude(
    model: Model,
    data: Data,
    rows: Data,
    strategy: Strategy,
    risk: Risk,
    bounds: tuple[float, float],
    curve: RiskCurve,
    minimum: Minimum,
) -> Calibration:
    """Return the calibration at a point of a curve that was estimated on ``rows``."""
    inflate = partial(error_inflation, model, data, minimum.beta)
    groups = groups_of(strategy)
    errors = RowErrors(curve, minimum.beta, rows.weights, inflate, groups=groups)
    value = minimum.value
    return Calibration(
        model=model,
        data=data,
        strategy=strategy,
        kind=risk,
        bounds=bounds,
        minimum=minimum,
        risk=float(curve(minimum.beta)) if value is None else value,
        errors=errors,
        curve=curve,
    )


def _descend(
    model: SamplingModel,
    rows: Data,
    pairs: Plan,
    bounds: tuple[float, float],
    rng: np.random.Generator,
) -> Minimum:
    """Return the minimum found by stochastic approximation, with slopes of a few pairs."""

    def slope(beta: float) -> float:
        part = few_pairs(pairs, rng) if len(pairs.test) > PAIRS_PER_STEP else pairs
        return covariance_slope(model, rows, part, beta, DRAWS_PER_PAIR, rng)

    ruler = Ruler.of_scale(bounds, prior_scale(model, rows, pairs, DRAWS_PER_PAIR, rng))
    beta, converged = stochastic_minimise(slope, ruler)
    if not converged:
        warn(
            f"the stochastic optimiser did not settle (beta = {beta:.3g}); use "
            'optimiser="deterministic" if the model has a risk curve, or narrower bounds',
            ConvergenceWarning,
        )
    # Averaged iterates come close to a bound but never reach it: test the slope there.
    for bound, outwards in zip(bounds, (-1.0, 1.0), strict=True):
        if abs(ruler.t(beta) - ruler.t(bound)) < NEAR_BOUND * ruler.t(ruler.upper):
            there = [outwards * slope(bound) for _ in range(SLOPES_AT_BOUND)]
            if np.mean(there) < 0:
                return Minimum(bound, at_bound=True)
    return Minimum(beta)


def few_pairs(pairs: Plan, rng: np.random.Generator) -> Plan:
    """Return pairs drawn in proportion to their test weight, so that each draw counts equally."""
    tested = pairs.test.sum(axis=1)
    chosen = rng.choice(len(tested), PAIRS_PER_STEP, p=tested / tested.sum())
    test = pairs.test[chosen] / tested[chosen, None]
    return Plan(pairs.train[chosen], test, pairs.size, pairs.transfer)


def warn_of_minimum(calibration: Calibration) -> None:
    """Warn of a minimum at a bound, a flat curve, or a minimum at beta = 0."""
    if calibration.curve is not None:
        calibration.curve.warn(calibration.beta, lambda: calibration.standard_error)
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
