"""The least Gibbs risk that any parameter of a setting has."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize


def least_logistic_risk(setting: Any) -> float:
    r"""Return :math:`\min_\theta R(\theta)`.

    Where the labels are of the logistic model it is the risk of the true coefficients; otherwise
    the minimum is found numerically.
    """
    certain = np.zeros((setting.d, setting.d))
    if hasattr(setting, "theta"):
        return float(setting.gibbs_risk(setting.theta, certain))
    return float(minimize(setting.gibbs_risk, np.zeros(setting.d), args=(certain,)).fun)


def least_linear_risk(setting: Any) -> float:
    r"""Return the risk of the true coefficients, the noise over twice the model's variance."""
    return float(setting.noise.variance / (2 * setting.variance))
