r"""The thesis' alpha-tilde: where its covariance formula believes the generalisation error least.

For exact posteriors d R / d alpha = -Cov[r_n, R] over the posterior, and its zero is alpha*.  The
thesis takes the zero for variational posteriors, too, and draws R there in place of R(alpha*).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from temperance.calibration import Calibration
from temperance.datasets import Setting
from temperance.optimise import Minimum
from temperance.selection import conclude, stack
from temperance.types import Array, Data, Model, Risk
from temperance.validation import as_data

# At beta = 0 the draws are the prior's, whatever the data.
SCAN = np.array([0.02, 0.1, 0.3, 0.7, 1.2, 2.0])


@dataclass(frozen=True)
class CovarianceRule:
    r"""Choose the first beta at which :math:`-Cov[r_n, R]` turns from negative to positive.

    Parameters
    ----------
    setting : Setting
        Its population stands for the truth, which no strategy for real data knows.
    draws : int
        Draws from the posterior; the same random numbers at every beta, so the zero is sharp.
    """

    setting: Setting
    draws: int = 1000

    def select(
        self,
        model: Model,
        data: Data,
        bounds: tuple[float, float],
        rng: np.random.Generator,
        risk: Risk = "gibbs",
        optimiser: str = "deterministic",
    ) -> Calibration:
        """Return the zero of the covariance, or the bound that it points to."""
        lower, upper = bounds
        truth = as_data(*self.setting.population)
        seed = int(rng.integers(2**32))

        def slope(beta: float) -> float:
            return covariance_slope(model, data, truth, beta, self.draws, seed)

        points = np.r_[lower, SCAN[(SCAN > lower) & (SCAN < upper)], upper]
        if lower == 0:
            points = points[1:]
        slopes = np.array([slope(beta) for beta in points])
        rising = np.flatnonzero(slopes > 0)
        if not len(rising):
            minimum = Minimum(upper, at_bound=True)
        elif rising[0] == 0:
            minimum = Minimum(lower, at_bound=True)
        else:
            around = points[rising[0] - 1], points[rising[0]]
            minimum = Minimum(float(brentq(slope, *around, xtol=0.005)))
        rows, plan = stack(data, truth)
        curve = model.risk_curve(rows, plan, risk)
        return conclude(model, data, rows, self, risk, bounds, curve, minimum)


def covariance_rule(setting: Setting) -> CovarianceRule:
    """Return the rule for a setting, in the form that a comparison asks for."""
    return CovarianceRule(setting)


def covariance_slope(
    model: Model, data: Data, truth: Data, beta: float, draws: int, seed: int
) -> float:
    """Return -Cov[n r_n, R] over draws from the posterior: the thesis' slope of R in beta."""
    posterior = model.posterior(data.X, data.y, beta * data.size, data.weights)
    theta: Array = posterior.sample(draws, np.random.default_rng(seed))
    trained = model.loss(theta, data.X, data.y) @ data.weights
    tested = model.loss(theta, truth.X, truth.y) @ (truth.weights / truth.size)
    return -float((trained - trained.mean()) @ (tested - tested.mean())) / (draws - 1)
