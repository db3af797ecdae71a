r"""Risk curve of softmax regression: moments of the logits, losses at fixed nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from temperance.curves import RiskCurve, curve_of_losses
from temperance.models.glm.continuation import Path
from temperance.models.glm.softmax.quadrature import Logits, expected_losses
from temperance.models.glm.softmax.system import ClassRows, SoftmaxLaw, SoftmaxSystem, class_rows
from temperance.models.glm.system import System
from temperance.types import Array, Plan, Risk, batches

METHOD = "Laplace approximation, losses by quasi-Monte Carlo"
MOST_ELEMENTS = 2**23  # of matrices and probabilities of pairs that are followed together


@dataclass(frozen=True, eq=False)
class Part:
    """Pairs that are followed together, and the rows that each tests, (pairs, widest)."""

    system: SoftmaxSystem
    path: Path
    rows: ClassRows
    tested: NDArray[np.intp]

    def losses(self, beta: float, risk: Risk) -> tuple[Array, Array]:
        """Return the losses of the tested rows and their slopes, (pairs, widest)."""
        found = self.path.at(beta)
        law = self.system.law(found.x, found.tangent, found.beta)
        return tested_losses(law, self.rows, self.tested, risk)


def path_of(system: SoftmaxSystem, guide: Path | None = None, among: int = 1) -> Path:
    """Follow the modes along beta; a path asks for the equations, and not for the law."""
    return Path(cast(System, system), guide, among)


def tested_losses(
    law: SoftmaxLaw, rows: ClassRows, tested: NDArray[np.intp], risk: Risk
) -> tuple[Array, Array]:
    """Return losses and slopes of rows under each Gaussian of a law, (pairs, widest)."""
    logits = law.logits(rows.Z[tested])
    flat = Logits(*(each.reshape(tested.size, *each.shape[2:]) for each in logits))
    value, slope = expected_losses(flat, rows.labels[tested].ravel(), rows.n_classes, risk)
    return value.reshape(tested.shape), slope.reshape(tested.shape)


@dataclass(frozen=True, eq=False)
class PairLosses:
    """Losses of the tested rows, (pairs, widest), under approximations followed in parts."""

    parts: list[Part]
    risk: Risk

    def __call__(self, beta: float) -> tuple[Array, Array]:
        """Return the losses and their slopes, (pairs, widest)."""
        values, slopes = zip(*(part.losses(beta, self.risk) for part in self.parts), strict=True)
        return np.concatenate(values), np.concatenate(slopes)


def softmax_risk_curve(rows: ClassRows, plan: Plan, risk: Risk) -> RiskCurve:
    """Curve of whitened rows under the plan's weights."""
    index, _ = plan.tested_rows()
    weights = plan.likelihood_weights
    n, k = rows.Z.shape
    each = ((rows.n_classes - 1) * k) ** 2 + n * rows.n_classes**2
    parts = []
    for pairs in batches(len(weights), each, budget=MOST_ELEMENTS):
        used = np.any(weights[pairs] > 0, axis=0)
        trained = class_rows(rows.Z[used], rows.y[used], weights[pairs][:, used], rows.n_classes)
        system = SoftmaxSystem(trained)
        parts.append(Part(system, path_of(system), rows, index[pairs]))
    return curve_of_losses(plan, PairLosses(parts, risk), METHOD, index)
