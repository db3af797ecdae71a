r"""Logistic regression with Jaakkola and Jordan's bound."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from temperance.models.glm.expected_loss import Forces
from temperance.models.glm.jaakkola import JaakkolaSystem, bounded_loss, bounded_value
from temperance.models.glm.mean_and_curvature import MeanAndCurvatureSystem
from temperance.models.glm.model import LogisticRegression
from temperance.models.glm.system import Rows, System, few_rows, unknown_by_rows
from temperance.types import Array


@dataclass(frozen=True, eq=False)
class JaakkolaLogistic(LogisticRegression):
    r"""Gaussian approximation from a quadratic bound on the logistic loss.

    .. math::

        S^{-1} = S_0^{-1} + 2 \tfrac{\alpha}{W} \sum_i w_i \lambda(v_i) z_i z_i', \quad
        m = S \left(S_0^{-1}\mu_0 + \tfrac{\alpha}{W} \sum_i w_i (y_i - \tfrac12) z_i\right), \quad
        v_i^2 = z_i'(S + mm')z_i, \quad \lambda(v) = \frac{\sigma(v) - 1/2}{2v}.

    The equations are solved by Newton's method to convergence, not by a fixed number of EM steps.

    Parameters
    ----------
    prior_mean : float or array of shape (d,)
    prior_cov : float, variances of shape (d,), or matrix of shape (d, d)

    References
    ----------
    .. [1] T. Jaakkola, M. Jordan, Bayesian parameter estimation via variational methods,
       Statistics and Computing 10, 2000.

    Examples
    --------
    >>> posterior = JaakkolaLogistic().posterior([[1.0], [-1.0]], [1, 0], alpha=2.0)
    >>> posterior.mean.round(4)
    array([0.6865])
    """

    prior_mean: ArrayLike = 0.0
    prior_cov: ArrayLike = 1.0

    def system(self, rows: Rows, rough: bool = False) -> System:
        """Return the stationarity equations of the bound."""
        if unknown_by_rows(rows):
            return JaakkolaSystem(rows)
        return MeanAndCurvatureSystem(rows, bounded_loss, bounded_value)

    def forces(self, mean: Array, variance: Array, rough: bool = False) -> Forces:
        """Differentiate the bound."""
        psi = bounded_loss(mean, variance)
        return Forces(psi.mean, psi.mean_mean, 2 * psi.variance)

    def largest_matrix(self, n: int, k: int) -> int:
        """Return that of a matrix over few rows, or of many weighted rows."""
        return n * max(n, k) if few_rows(n, k) else n * k
