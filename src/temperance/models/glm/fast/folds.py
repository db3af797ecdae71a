r"""K-fold cross-validation of many rows: each fold solved exactly, from a sketch of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import cast

import numpy as np

from temperance.curves import RiskCurve, curve_of_tested
from temperance.data import Array, Risk
from temperance.models.glm.fast.fold_rows import FoldRows, fold_rows
from temperance.models.glm.fast.fold_sketch import FoldSketch
from temperance.models.glm.fast.pairs import Path, cubic_between
from temperance.models.glm.gaussians import Law
from temperance.models.glm.newton import Approximation, CoefficientSystem, Solution, first_step
from temperance.models.glm.rows import Rows
from temperance.plans import FoldPlan


def fold_risk_curve(
    rows: Rows, plan: FoldPlan, risk: Risk, approximation: Approximation
) -> RiskCurve:
    """Curve of whitened rows, with the sketch beside it."""
    losses = FoldLosses(fold_rows(rows, plan), approximation, risk)
    order, method = losses.rows.order, approximation.loss.method
    sketch = partial(losses, sketched=True)
    return curve_of_tested(losses, order, plan.weights[order], len(order), method, sketch)


@dataclass(frozen=True, eq=False)
class FoldLosses:
    """Losses of rows in the order of their folds, each under the approximation without its fold."""

    rows: FoldRows
    approximation: Approximation
    risk: Risk

    def __call__(self, beta: float, sketched: bool = False) -> tuple[Array, Array]:
        """Return the losses and their slopes, (n,)."""
        rows, law_of = self.rows.once, self._sketch.law if sketched else self._solved
        loss = (self._sketch if sketched else self).approximation.loss
        losses = []
        for fold, tested in enumerate(self.rows.folds):
            predictor = law_of(fold, beta).predictor(
                rows.Z[None, tested], rows.offset[None, tested]
            )
            y = rows.y[None, tested]
            losses.append(loss.risk(predictor, y, self.risk))
        value, slope = np.concatenate(losses, axis=2)[:, 0]
        return value, slope

    def _solved(self, fold: int, beta: float) -> Law:
        found, system = self._paths[fold].at(beta), self._paths[fold].system
        return system.law(found.x, found.tangent, beta)

    @cached_property
    def _sketch(self) -> FoldSketch:
        # Under the predictive risk what mean and variance do to the slope all but cancels.
        rough = self.approximation.roughly()
        return FoldSketch(self.rows, rough, good_slopes=self.risk == "predictive")

    @cached_property
    def _paths(self) -> list[FoldPath]:
        return [self._path(fold) for fold in range(len(self.rows.folds))]

    def _path(self, fold: int) -> FoldPath:
        # The equations of many rows are about coefficients.
        system = cast(CoefficientSystem, self.approximation.system(self.rows.outside(fold)))
        return FoldPath(system, self._sketch, fold)


class FoldPath(Path):
    """Solutions without a fold; predicted is how far they are from the sketch."""

    def __init__(self, system: CoefficientSystem, sketch: FoldSketch, fold: int) -> None:
        super().__init__(system, among=len(sketch.rows.folds))
        self._sketched, self._fold, self._parameters = sketch, fold, system.parameters

    def start(self, around: list[Solution], beta: float) -> Array:
        """Add to the sketch what it lacks at the solutions on either side."""
        x, missing = self._sketch(beta).x, [self._missing(each) for each in around]
        if len(missing) < 2:
            return x + missing[0].x if missing else x
        return x + cubic_between(missing[0], missing[1], beta, first_step(self.system))

    def _missing(self, solution: Solution) -> Solution:
        sketch = self._sketch(solution.beta)
        return Solution(solution.beta, solution.x - sketch.x, solution.tangent - sketch.tangent)

    def _sketch(self, beta: float) -> Solution:
        fits, one = self._sketched.at(beta), slice(self._fold, self._fold + 1)
        x, ahead = (
            self._parameters(mean[one], curvature[one], beta + move)
            for move, (mean, curvature) in ((0.0, fits.now), (fits.step, fits.ahead))
        )
        return Solution(beta, x, (ahead - x) / fits.step)
