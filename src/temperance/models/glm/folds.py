r"""K-fold cross-validation of many rows: each fold solved exactly, from a sketch of all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import cast

import numpy as np

from temperance.curves import RiskCurve, curve_of_tested
from temperance.models.glm.continuation import Path
from temperance.models.glm.curve import QUADRATURE, Approximation, predictor_loss
from temperance.models.glm.fold_rows import FoldRows, fold_rows
from temperance.models.glm.fold_sketch import FoldGuide, FoldSketch
from temperance.models.glm.system import Law, PortableSystem, Rows, few_rows
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
    """Curve of whitened rows of one weighting, the plan's."""
    losses = FoldLosses(fold_rows(rows, plan), approximation, risk)
    order = losses.rows.order
    sketch = partial(losses, rough=True)
    return curve_of_tested(losses, order, plan.weights[order], len(order), QUADRATURE, sketch)


@dataclass(frozen=True, eq=False)
class FoldLosses:
    """Losses of rows in the order of their folds, each under the approximation without its fold."""

    rows: FoldRows
    approximation: Approximation
    risk: Risk

    def __call__(self, beta: float, rough: bool = False) -> tuple[Array, Array]:
        """Return the losses and their slopes, (n,)."""
        rows, laws = self.rows.once, self._sketched(beta) if rough else self._solved(beta)
        losses = []
        for tested, law in zip(self.rows.folds, laws, strict=True):
            predictor = law.predictor(rows.Z[None, tested], rows.offset[None, tested])
            losses.append(predictor_loss(predictor, rows.y[None, tested], self.risk, rough))
        value, slope = np.concatenate(losses, axis=2)[:, 0]
        return value, slope

    def _sketched(self, beta: float) -> Iterable[Law]:
        return (self._sketch.law(fold, beta) for fold in range(len(self.rows.folds)))

    def _solved(self, beta: float) -> Iterable[Law]:
        for path in self._paths:
            found = path.at(beta)
            yield path.system.law(found.x, found.tangent, found.beta)

    @cached_property
    def _sketch(self) -> FoldSketch:
        # Under the predictive risk what mean and variance do to the slope all but cancels.
        return FoldSketch(self.rows, self.approximation, good_slopes=self.risk == "predictive")

    @cached_property
    def _paths(self) -> list[Path]:
        return [self._path(fold) for fold in range(len(self.rows.folds))]

    def _path(self, fold: int) -> Path:
        # The equations of many rows are about coefficients.
        system = cast(PortableSystem, self.approximation.system(self.rows.outside(fold)))
        return Path(system, FoldGuide(self._sketch, fold, system), among=len(self.rows.folds))
