r"""Logistic regression with the best Gaussian approximation of full covariance."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from temperance.models.glm.expected_loss import expected_loss, rough_loss
from temperance.models.glm.full_covariance import FullCovarianceSystem
from temperance.models.glm.mean_and_curvature import MeanAndCurvatureSystem
from temperance.models.glm.model import LogisticRegression
from temperance.models.glm.system import Rows, System, few_rows, unknown_by_rows


@dataclass(frozen=True, eq=False)
class FullCovarianceLogistic(LogisticRegression):
    r"""Gaussian variational approximation, deterministic: the expectations are quadratures.

    .. math:: \min_{m, S} \; \alpha E_{N(m, S)}[r_n] + KL(N(m, S) \,|\, \pi_0)

    Parameters
    ----------
    prior_mean : float or array of shape (d,)
    prior_cov : float, variances of shape (d,), or matrix of shape (d, d)

    Examples
    --------
    >>> posterior = FullCovarianceLogistic().posterior([[1.0], [-1.0]], [1, 0], alpha=2.0)
    >>> posterior.mean.round(4)
    array([0.7039])
    """

    prior_mean: ArrayLike = 0.0
    prior_cov: ArrayLike = 1.0

    def system(self, rows: Rows, rough: bool = False) -> System:
        """Return the stationarity equations of the variational objective."""
        if unknown_by_rows(rows):
            return FullCovarianceSystem(rows)
        return MeanAndCurvatureSystem(rows, rough_loss if rough else expected_loss)

    def largest_matrix(self, n: int, k: int) -> int:
        """Return that of a matrix over few rows, or of many weighted rows."""
        return n * max(n, k) if few_rows(n, k) else n * k
