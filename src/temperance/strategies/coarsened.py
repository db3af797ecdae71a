r"""Coarsened posterior: Miller and Dunson's power."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.calibration import Rate
from temperance.checks import positive
from temperance.protocols import Model
from temperance.strategies.rate import RateStrategy
from temperance.uncertainty.information import Units


@dataclass(frozen=True)
class Coarsened(RateStrategy):
    r"""Condition on data near the observed ones, in relative entropy, instead of on the data.

    .. math:: \beta = \frac{\alpha}{\alpha + n}

    for a distance with an exponential prior of rate alpha.  However large n is, the data count for
    at most alpha observations.

    Parameters
    ----------
    alpha : float
        The number of observations at which the errors of the model begin to show.

    References
    ----------
    .. [1] J. Miller, D. Dunson, Robust Bayesian inference via coarsening, Journal of the American
       Statistical Association 114, 2019.

    Examples
    --------
    >>> from temperance import calibrate, models
    >>> calibrate(models.GaussianMean(), None, [1.0, 2.0, 3.0], Coarsened(alpha=3)).beta
    0.5
    """

    alpha: float

    def __post_init__(self) -> None:
        """Refuse an alpha that is not positive."""
        positive("alpha", self.alpha)

    def rate(
        self, model: Model, units: Units, bounds: tuple[float, float], rng: np.random.Generator
    ) -> Rate:
        """Return alpha / (alpha + n)."""
        return Rate(self.alpha / (self.alpha + units.rows.size), "coarsened: alpha / (alpha + n)")
