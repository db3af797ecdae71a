r"""K-fold cross-validation of many rows: each fold solved exactly, from a sketch of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import cast

import numpy as np

from temperance.curves import RiskCurve, curve_of_tested
from temperance.models.glm.fast.fold_rows import FoldRows, fold_rows
from temperance.models.glm.fast.fold_sketch import FoldSketch
from temperance.models.glm.gaussians import Law
from temperance.models.glm.mean_and_curvature import few_rows
from temperance.models.glm.newton import Approximation, CoefficientSystem, newton, solve
from temperance.models.glm.rows import Rows
from temperance.types import Array, FoldPlan, Risk

FEW_FOLDS = 2  # up to which one fit of all rows spares nothing
# Numbers in all, and rows of a fold, below which several folds at a time take less than one by one.
MANY_NUMBERS, MANY_ROWS = 50_000, 100


def many_in_folds(plan: FoldPlan, columns: int) -> bool:
    """Tell whether it pays to sketch the folds by a Newton step from one fit of all rows."""
    n = len(plan.fold)
    trained = n - int(plan.counts.max())
    return (
        plan.start == 0
        and plan.n_folds > FEW_FOLDS
        and n >= MANY_ROWS * plan.n_folds
        and n * columns >= MANY_NUMBERS
        and not few_rows(trained, columns)
    )


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
        losses = []
        for fold, tested in enumerate(self.rows.folds):
            predictor = law_of(fold, beta).predictor(
                rows.Z[None, tested], rows.offset[None, tested]
            )
            y = rows.y[None, tested]
            losses.append(self.approximation.loss.risk(predictor, y, self.risk, sketched))
        value, slope = np.concatenate(losses, axis=2)[:, 0]
        return value, slope

    def _solved(self, fold: int, beta: float) -> Law:
        """Solve the equations without a fold, from the sketch."""
        system, fits = self._systems[fold], self._sketch.at(beta).now
        mean, curvature = (part[fold : fold + 1] for part in fits)
        found = newton(system, system.parameters(mean, curvature, beta), beta)
        if found is None:
            found = solve(system, beta)
        return system.law(found.x, found.tangent, beta)

    @cached_property
    def _sketch(self) -> FoldSketch:
        # Under the predictive risk what mean and variance do to the slope all but cancels.
        return FoldSketch(self.rows, self.approximation, good_slopes=self.risk == "predictive")

    @cached_property
    def _systems(self) -> list[CoefficientSystem]:
        # The equations of many rows are about coefficients.
        folds = range(len(self.rows.folds))
        systems = (self.approximation.system(self.rows.outside(fold)) for fold in folds)
        return [cast(CoefficientSystem, system) for system in systems]
