r"""The risk curve as it is written: each pair of the plan is fitted by itself, at each beta.

With the weights w of a pair, in whitened coordinates (prior N(0, I), u = offset + Z theta),

    q_beta  approximates  exp(-beta sum_i w_i l(u_i, y_i) - |theta|^2 / 2),
    R(beta) = sum over pairs and tested rows i of  v_i E_{q_beta} l(u_i, y_i) / sum of the v_i,

or -log E exp(-l) for the predictive risk.  Under q_beta the predictor u_i is N(mu_i, s_i), and its
moments move with the solution of the approximation's equations, by the implicit function theorem:

    dR_i/dbeta = dL/dmu dmu_i/dbeta + dL/dv ds_i/dbeta.

What :mod:`temperance.models.glm.fast` does instead has to agree with this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temperance.curves import RiskCurve, curve_of_losses
from temperance.data import Array, Risk
from temperance.models.glm.newton import Fit, solve
from temperance.models.glm.rows import Rows
from temperance.plans import AnyPlan, Pairs


def risk_curve(rows: Rows, plan: AnyPlan, risk: Risk, approximation: Fit) -> RiskCurve:
    """Return the curve that a plan estimates for whitened rows."""
    pairs = plan.pairs()
    index, _ = pairs.tested_rows()
    losses = PairLosses(rows, pairs, index, risk, approximation)
    return curve_of_losses(pairs, losses, approximation.loss.method, index)


@dataclass(frozen=True, eq=False)
class PairLosses:
    """Losses of the rows that each pair tests, (pairs, widest), as a function of beta."""

    rows: Rows
    plan: Pairs
    index: NDArray[np.intp]
    risk: Risk
    approximation: Fit

    def __call__(self, beta: float) -> tuple[Array, Array]:
        """Return the losses and their slopes."""
        value, slope = np.empty((2, *self.index.shape))
        for pair, weights in enumerate(self.plan.likelihood_weights):
            value[pair], slope[pair] = self.tested(weights, self.index[pair], beta)
        return value, slope

    def tested(self, weights: Array, index: NDArray[np.intp], beta: float) -> tuple[Array, Array]:
        """Return losses and slopes of the rows ``index`` after a fit to weighted rows."""
        rows, approximation = self.rows, self.approximation
        trained = weights > 0
        system = approximation.system(rows.subset(trained, weights[None, trained]))
        found = solve(system, beta)
        law = system.law(found.x, found.tangent, beta)
        predictor = law.predictor(rows.Z[None, index], rows.offset[None, index])
        value, slope = approximation.loss.risk(predictor, rows.y[None, index], self.risk)
        return value[0], slope[0]
