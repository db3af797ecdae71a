r"""Sandwich: the posterior's covariance as close as a scalar can bring it to the sandwich's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import one_of
from temperance.protocols import Information, Model
from temperance.strategies.rate import InformationStrategy
from temperance.uncertainty.information import (
    CORRECTIONS,
    Correction,
    Units,
    rates_by_direction,
    whitened_scores,
)


@dataclass(frozen=True)
class Sandwich(InformationStrategy):
    r"""Match the posterior's covariance to that of the minimiser of the risk.

    .. math:: \beta = \frac{p}{\mathrm{tr}(J^{-1} I)} \quad\text{or}\quad
              \Bigl(\frac{\det J}{\det I}\Bigr)^{1/p},

    with the curvature J of the mean loss and the covariance I of its scores.  Both are invariant to
    units and to linear maps of the parameters.  The first is the beta whose posterior
    N(minimiser, J^-1 / (beta n)) has the smallest Kullback-Leibler divergence from the sandwich
    N(minimiser, J^-1 I J^-1 / n); the second gives both the same volume.

    Parameters
    ----------
    kind : {"trace", "determinant"}
    groups : array of shape (n,), optional
        Labels of rows that depend on each other; their scores are summed.
    correction : {"HC0", "HC3"}
        Scores as they are at the minimiser, or divided by 1 - h_i with the leverages h_i of rows
        (or groups): with few rows for each parameter the first are too small.

    References
    ----------
    .. [1] J. G. MacKinnon, H. White, Some heteroskedasticity-consistent covariance matrix
       estimators with improved finite sample properties, Journal of Econometrics 29, 1985.

    Examples
    --------
    >>> import numpy as np
    >>> from temperance import calibrate, models
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 2))
    >>> y = X[:, 0] + 2 * rng.standard_normal(400)  # the model's noise variance is 1, not 4
    >>> calibration = calibrate(models.GaussianLinear(), X, y, Sandwich())
    >>> round(calibration.beta, 2)
    0.32
    """

    kind: Literal["trace", "determinant"] = "trace"
    by_direction: ClassVar[bool] = True
    groups: ArrayLike | None = field(default=None, repr=False, compare=False)
    # Stored studies of before there was a correction have none in its identity.
    correction: Correction = field(default="HC0", metadata={"stored_unless": "HC0"})

    def __post_init__(self) -> None:
        """Refuse other kinds and corrections."""
        one_of("kind", self.kind, ("trace", "determinant"))
        one_of("correction", self.correction, CORRECTIONS)

    def formula(self, model: Model, units: Units, information: Information) -> float:
        """Return the harmonic or geometric mean of the rates by direction."""
        if self.kind == "trace":
            with np.errstate(divide="ignore"):
                total = (whitened_scores(information, units, self.correction) ** 2).sum()
                return float(np.divide(len(information.minimiser), total))
        return float(np.exp(np.log(rates_by_direction(information, units, self.correction)).mean()))

    @property
    def rule(self) -> str:
        """What the rule matches, as a phrase."""
        what = "Kullback-Leibler divergence" if self.kind == "trace" else "volume"
        return f"covariance of the posterior matched to the sandwich's, by {what}"
