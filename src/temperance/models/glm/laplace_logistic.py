r"""Logistic regression with the Laplace approximation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from temperance.models.glm.expected_loss import Forces, expected_forces
from temperance.models.glm.laplace import LaplaceSystem
from temperance.models.glm.model import LogisticRegression
from temperance.models.glm.system import Rows, System
from temperance.types import Array, Preferences


@dataclass(frozen=True, eq=False)
class LaplaceLogistic(LogisticRegression):
    r"""Gaussian at the mode of the alpha-posterior with the curvature there.

    .. math:: S^{-1} = S_0^{-1} + \tfrac{\alpha}{W} \sum_i w_i \sigma'(z_i'm) z_i z_i'

    Parameters
    ----------
    prior_mean : float or array of shape (d,)
    prior_cov : float, variances of shape (d,), or matrix of shape (d, d)

    Examples
    --------
    >>> posterior = LaplaceLogistic().posterior([[1.0], [-1.0]], [1, 0], alpha=2.0)
    >>> posterior.mean.round(4)
    array([0.6748])
    """

    prior_mean: ArrayLike = 0.0
    prior_cov: ArrayLike = 1.0
    preferences: ClassVar[Preferences] = Preferences(spread_of_beta=2.0)

    def system(self, rows: Rows, rough: bool = False) -> System:
        """Return the equations of the mode."""
        return LaplaceSystem(rows)

    def forces(self, mean: Array, variance: Array, rough: bool = False) -> Forces:
        """Differentiate the loss at the mode, whatever the variance."""
        return expected_forces(mean, np.zeros_like(variance))
