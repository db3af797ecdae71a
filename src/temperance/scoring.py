"""Scores of forecasts for scikit-learn's ``scoring=``: larger is better."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import open_unit, shown
from temperance.forecasts import forecast


def log_score(model: Any, X: Any, y: ArrayLike) -> float:
    """Return the mean log density, or log probability of the class, of new responses.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> from temperance import GibbsRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> print(cross_val_score(GibbsRegressor(), X, y, scoring=log_score, cv=3).round(2))
    [-5.43 -5.46 -5.39]
    """
    if hasattr(model, "classes_"):
        unknown = ~np.isin(y, model.classes_)
        if unknown.any():
            raise ValueError(
                f"y must hold the classes of the fit, {shown(model.classes_)}, got "
                f"{shown(np.asarray(y)[unknown][0])}"
            )
        places = np.searchsorted(model.classes_, np.asarray(y))
        return float(np.mean(model.predict_log_proba(X)[np.arange(len(places)), places]))
    return float(np.mean(forecast(model, X).log_density(np.asarray(y, dtype=float))))


def crps_score(model: Any, X: Any, y: ArrayLike) -> float:
    """Return minus the mean continuous ranked probability score, in units of y.

    It is infinite if a forecast has a part with half a degree of freedom or fewer, as mixtures of
    few rows may have.
    """
    return -float(np.mean(forecast(model, X).crps(np.asarray(y, dtype=float))))


class interval_score:  # noqa: N801 - it is used like a function
    r"""Minus the mean interval score of central intervals.

    .. math:: (u - l) + \frac{2}{\alpha} (l - y)_+ + \frac{2}{\alpha} (y - u)_+,
              \qquad \alpha = 1 - level.

    Parameters
    ----------
    level : float
    """

    def __init__(self, level: float = 0.95) -> None:
        self.level = open_unit("level", level)

    def __call__(self, model: Any, X: Any, y: ArrayLike) -> float:
        """Return the score, in units of y."""
        low, high = forecast(model, X).interval(self.level).T
        outside = np.maximum(low - y, 0) + np.maximum(np.asarray(y) - high, 0)
        return -float(np.mean(high - low + 2 / (1 - self.level) * outside))
