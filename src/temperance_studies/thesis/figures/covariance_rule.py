r"""The thesis' alpha-tilde: the zero of its covariance formula.

For exact posteriors d R / d alpha = -Cov[r_n, R] over the posterior, and its zero is alpha*.  The
thesis uses the zero for variational posteriors as well, and draws R there in place of R(alpha*).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from temperance.calibration import Calibration
from temperance.data import Data, Risk
from temperance.protocols import Model
from temperance.rules import Choice
from temperance_studies.settings import Setting, risk_of_draws
from temperance_studies.settings.truth import true_risks

STORED_AS = "temperance_thesis.figures.covariance_rule"  # module path that studies store

# At beta = 0 the draws are those of the prior.
SCAN = np.array([0.02, 0.1, 0.3, 0.7, 1.2, 2.0])


@dataclass(frozen=True)
class CovarianceRule:
    r"""Choose the first beta at which :math:`-Cov[r_n, R]` turns from negative to positive.

    Parameters
    ----------
    setting : Setting
        It provides the true risk, which is unknown for real data.
    draws : int
        Number of posterior draws; common random numbers at all betas make the zero sharp.
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
    ) -> Calibration:
        """Return the zero of the covariance, or the bound in whose direction it lies."""
        seed = int(rng.integers(2**32))
        choice = covariance_zero(self.setting, data, bounds, self.draws, seed)
        table = true_risks(self.setting, data, risk, bounds)
        return Calibration(model, data, self, risk, bounds, choice, table)


def covariance_rule(setting: Setting) -> CovarianceRule:
    """Return the rule for a setting, as a comparison needs it."""
    return CovarianceRule(setting)


def covariance_zero(
    setting: Any, data: Data, bounds: tuple[float, float], draws: int, seed: int
) -> Choice:
    """Return the first zero of the covariance within the bounds, or the bound next to it."""
    model = setting.model

    def slope(beta: float) -> float:
        theta = model.posterior(data.X, data.y, beta * len(data)).sample(draws, seed)
        trained = model.loss(theta, data.X, data.y).mean(axis=1)
        return -float(np.cov(trained, risk_of_draws(setting, theta))[0, 1])

    lower, upper = bounds
    points = np.r_[lower, SCAN[(SCAN > lower) & (SCAN < upper)], upper]
    if lower == 0:
        points = points[1:]
    rising = np.flatnonzero(np.array([slope(beta) for beta in points]) > 0)
    if not len(rising):
        return Choice(upper, at_bound=True, searched=False)
    if rising[0] == 0:
        return Choice(lower, at_bound=True, searched=False)
    around = points[rising[0] - 1], points[rising[0]]
    return Choice(float(brentq(slope, *around, xtol=0.005)), searched=False)
