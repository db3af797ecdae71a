"""The constant of the likelihood, which the thesis leaves out where the variance is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from temperance.calibration import known_noise_variance
from temperance_studies.settings import Setting


def without_constant(setting: Setting, risk: Any) -> Any:
    r"""Return Gibbs risks as in the thesis: without log(2 pi s2) / 2 of a known noise variance.

    Examples
    --------
    >>> from temperance_studies.settings import GaussianNoise, MeanSetting, least_risk
    >>> setting = MeanSetting(40, GaussianNoise(4.0), 4.0)
    >>> round(float(without_constant(setting, least_risk(setting))), 9)
    0.5
    """
    variance = known_noise_variance(setting.model)
    return risk if variance is None else risk - np.log(2 * np.pi * variance) / 2
