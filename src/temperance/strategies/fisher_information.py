r"""Fisher information: Lyddon, Holmes and Walker's rate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from temperance.protocols import Information, Model
from temperance.strategies.rate import InformationStrategy, prior_root_of
from temperance.uncertainty.information import Units


@dataclass(frozen=True)
class FisherInformation(InformationStrategy):
    r"""Match the Fisher information of the posterior to that of the loss-likelihood bootstrap.

    .. math:: \beta = \frac{\mathrm{tr}(J I^{-1} J')}{\mathrm{tr}\, J},

    with the curvature J of the mean loss and the covariance I of its scores.  The ratio changes
    with the units of the parameters, so it is computed in the coordinates in which the prior is
    N(mu, I): the prior says which units are alike.

    Parameters
    ----------
    groups : array of shape (n,), optional
        Labels of rows that depend on each other; their scores are summed.

    References
    ----------
    .. [1] S. Lyddon, C. Holmes, S. Walker, General Bayesian updating and the loss-likelihood
       bootstrap, Biometrika 106, 2019.
    """

    by_direction: ClassVar[bool] = True
    groups: ArrayLike | None = field(default=None, repr=False, compare=False)

    def formula(self, model: Model, units: Units, information: Information) -> float:
        """Return tr(J I^-1 J') / tr J with J and I in the prior's coordinates."""
        C = prior_root_of(information, model, self)
        scores = units.scores(information) @ C / np.sqrt(units.rows.size)
        J = C.T @ information.curvature @ C
        # I = R'R, so that tr(J I^-1 J) = |R^-T J|^2, in units in which R has columns of length 1.
        R = np.linalg.qr(scores, mode="r")
        size = np.linalg.norm(R, axis=0)
        if len(R) < len(J) or not np.all(size > 0):
            return np.inf
        try:
            root = np.linalg.solve((R / size).T, J / size[:, None])
        except np.linalg.LinAlgError:
            return np.inf
        return float((root**2).sum() / np.trace(J))

    @property
    def rule(self) -> str:
        """What the rule matches, as a phrase."""
        return "Fisher information matched, in the prior's coordinates"
