r"""Shortcuts for the risk curves of several classes.

Pairs are followed along beta.  Leave-one-out of many rows is one fit of all of them, and a Newton
step that takes each row out.

With the fit's precision H, c = beta w, V_i = (I (x) z_i)'H^-1 (I (x) z_i) the covariance of the
contrasts of a row's logits, W_i their curvature and r_i = C'(p_i - e_{y_i}), a Newton step without
row i moves mean and covariance of its contrasts to

    mu_i + V (c r),        V = V_i (I - c W_i V_i)^-1.

What the step does to the curvatures of the others is left out: like its own error it is of the
order 1/n^2.  The few rows that move far are refitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from temperance.curves import RiskCurve, curve_of_tested
from temperance.data import Array, Risk
from temperance.models.glm.fast import many_rows
from temperance.models.glm.fast.leave_one_out import MOST_REFITS, NewtonLeaveOneOut
from temperance.models.glm.fast.pairs import Part, Path, pairs_risk_curve
from temperance.models.glm.softmax.quadrature import Logits, contrasts, expected_losses
from temperance.models.glm.softmax.system import (
    ClassRows,
    SoftmaxLaplace,
    SoftmaxLoss,
    SoftmaxSystem,
    class_rows,
    curvatures,
    row_covariances,
    square_places,
)
from temperance.plans import AnyPlan, LeaveOneOut


def choose(
    rows: ClassRows, plan: AnyPlan, risk: Risk, approximation: SoftmaxLaplace
) -> RiskCurve | None:
    """Return a curve that costs less than the plain one, if there is one."""
    if isinstance(plan, LeaveOneOut) and many_rows(*rows.Z.shape):
        return left_out_risk_curve(rows, plan, risk)
    return pairs_risk_curve(rows, plan, risk, approximation)


def left_out_risk_curve(rows: ClassRows, plan: LeaveOneOut, risk: Risk) -> RiskCurve:
    """Curve of whitened rows under the plan's weights."""
    weighted = class_rows(rows.Z, rows.y, plan.weights[None], rows.n_classes)
    losses = SoftmaxLeftOutLosses(plan.exponents, risk, weighted)
    method = f"{SoftmaxLoss.method}, rows left out by one Newton step"
    return curve_of_tested(losses, np.arange(len(rows.y)), plan.weights, len(rows.y), method)


@dataclass(frozen=True, eq=False)
class SoftmaxLeftOutLosses(NewtonLeaveOneOut):
    """Losses of rows with one contrast of logits for each class but one."""

    rows: ClassRows

    @cached_property
    def path(self) -> Path:
        """The fits of all rows along beta."""
        return Path(SoftmaxSystem(self.rows))

    def moved(self, x: Array, beta: float) -> Array:
        """Return how far leaving it out moves each row's logits, (n,), from the fit x."""
        mean, _ = self.moments(x, beta)
        before = self.rows.Z @ x.reshape(mean.shape[1], -1).T
        return np.ptp((mean - before) @ contrasts(self.rows.n_classes).T, axis=1)

    def without(self, row: int) -> Part:
        """Return the fits of all other rows along beta, and the row that they test."""
        rows = self.rows
        weights = rows.weights.copy()
        weights[:, row] = 0.0
        system = SoftmaxSystem(class_rows(rows.Z, rows.y, weights, rows.n_classes))
        return Part(Path(system, MOST_REFITS), rows, slice(row, row + 1), system.loss)

    def moments(self, x: Array, beta: float) -> tuple[Array, Array]:
        """Return mean and covariance of each row's contrasts, without that row."""
        return left_out(SoftmaxSystem(self.rows), x, beta)

    def losses(self, moments: tuple[Array, Array], rises: Sequence[Array]) -> tuple[Array, Array]:
        """Return losses and slopes, (n,), from moments and their derivatives in beta."""
        logits = Logits(*moments, *rises)
        return expected_losses(logits, self.rows.labels, self.rows.n_classes, self.risk)


def left_out(system: SoftmaxSystem, x: Array, beta: float) -> tuple[Array, Array]:
    """Return mean (n, c) and covariance (n, c, c) of each row's contrasts, without that row."""
    rows, c = system.rows, system.dimension
    found = system.probabilities(x)
    _, roots = system.gaussian(x, beta)
    V = row_covariances(rows.Z, roots[0].reshape(c, -1, roots.shape[2]))
    triangles = curvatures(system.products(found)[0], rows.n_classes)
    W = beta * triangles[:, square_places(triangles.shape[1])]
    # V (I - W V)^-1 = (I - V W)^-1 V, symmetric.
    without = np.linalg.solve(np.eye(c) - V @ W, V)
    without = (without + without.swapaxes(1, 2)) / 2
    slopes = (rows.weights[0][:, None] * found.residual[0]) @ contrasts(rows.n_classes)
    mean = rows.Z @ x.reshape(c, -1).T
    return mean + beta * (without @ slopes[..., None])[..., 0], without
