r"""Logistic regression: the logistic loss with each of the Gaussian approximations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import as_data, non_negative, one_of, positive, whole
from temperance.curves import RiskCurve
from temperance.data import Array, Data, Risk
from temperance.losses.base import Loss, PredictorLoss
from temperance.losses.logistic import Logistic
from temperance.models.glm.backprop import Schedule, backprop, backprop_risk_curve
from temperance.models.glm.full_covariance import FullCovariance
from temperance.models.glm.jaakkola import Jaakkola
from temperance.models.glm.laplace import Laplace
from temperance.models.glm.mean_field import MeanField, diagonal_prior
from temperance.models.glm.model import GibbsRegression, Problem
from temperance.models.glm.newton import Approximation
from temperance.models.linear_predictor import GaussianPrior
from temperance.models.prior_information import logistic_prior_information
from temperance.plans import AnyPlan
from temperance.posteriors import GaussianPosterior, LogisticPosterior
from temperance.protocols import Preferences


class LogisticRegression(GibbsRegression):
    """Loss softplus(z'theta) - y z'theta; a subclass names the approximation."""

    row_loss = Logistic()

    def prior_information(self, data: Data) -> tuple[Array, Array]:
        """Return squared scores averaged over the prior, as expected and as observed."""
        Z, theta = self.features(data.X), self.information(data).minimiser
        return logistic_prior_information(Z, data.y, self.prior(Z.shape[1]), theta)

    def forecasting(self, coefficients: GaussianPosterior, loss: Loss) -> LogisticPosterior:
        """Return the posterior with probabilities of the classes."""
        return LogisticPosterior(coefficients.mean, coefficients.root, coefficients.design)


@dataclass(frozen=True, eq=False)
class LaplaceLogistic(LogisticRegression):
    r"""Logistic regression: Gaussian at the mode of the alpha-posterior with the curvature there.

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
    preferences: ClassVar[Preferences] = Preferences(wide=True)

    def approximation(self, loss: PredictorLoss) -> Approximation:
        """Return the approximation under a loss."""
        return Laplace(loss)


@dataclass(frozen=True, eq=False)
class MeanFieldLogistic(LogisticRegression):
    r"""Logistic regression: the best Gaussian approximation of diagonal covariance.

    Bayes by Backprop converges to it.

    .. math:: \min_{m, \sigma} \; \alpha E_{N(m, \mathrm{diag}\,\sigma^2)}[r_n]
              + KL(N(m, \mathrm{diag}\,\sigma^2) \,|\, \pi_0)

    Parameters
    ----------
    prior_mean : float or array of shape (d,)
    prior_cov : float, variances of shape (d,), or a diagonal matrix
    method : {"deterministic", "sgd"}
        Newton's method on the quadrature, or Bayes by Backprop, the stochastic algorithm of the
        thesis.
    steps, rate, seed : int, float, int
        Number of steps, learning rate and random numbers of ``method="sgd"``.

    Examples
    --------
    >>> posterior = MeanFieldLogistic().posterior([[1.0], [-1.0]], [1, 0], alpha=2.0)
    >>> posterior.mean.round(4)
    array([0.7039])
    """

    prior_mean: ArrayLike = 0.0
    prior_cov: ArrayLike = 1.0
    method: Literal["deterministic", "sgd"] = "deterministic"
    steps: int = 200
    rate: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse an unknown method and a schedule without steps."""
        one_of("method", self.method, ("deterministic", "sgd"))
        whole("steps", self.steps, 1)
        positive("rate", self.rate)
        whole("seed", self.seed, 0)

    def approximation(self, loss: PredictorLoss) -> Approximation:
        """Return the approximation under a loss."""
        return MeanField(loss)

    @property
    def schedule(self) -> Schedule:
        """Steps, rate and random numbers of the stochastic method."""
        return Schedule(self.steps, self.rate, self.seed)

    def prior(self, dimension: int) -> GaussianPrior:
        """Return the prior, which must be diagonal."""
        return diagonal_prior(self.prior_mean, self.prior_cov, dimension)

    def gaussian(self, problem: Problem) -> Callable[[float], tuple[Array, Array]]:
        """Return the function from beta to mean and covariance root, for rows of one weighting."""
        if self.method == "deterministic":
            return super().gaussian(problem)

        def stochastic(beta: float) -> tuple[Array, Array]:
            fit = backprop(problem.rows, np.array([[beta]]), self.schedule)
            return fit.mean[0, 0], fit.deviation[0, 0]

        return stochastic

    def trajectory(
        self, X: ArrayLike, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> Array:
        """Means after each step of Bayes by Backprop, shape (steps + 1, d)."""
        data = as_data(X, y, weights)
        rows, _, _, prior = self.problem(data)
        trace: list[Array] = []
        beta = non_negative("alpha", alpha) / data.size
        backprop(rows, np.array([[beta]]), self.schedule, trace)
        return prior.mean + np.stack(trace)[:, 0, 0] * prior.root

    def risk_curve(self, data: Data, plan: AnyPlan, risk: Risk = "gibbs") -> RiskCurve:
        """Return the curve that the plan estimates, by quadrature."""
        if self.method == "deterministic":
            return super().risk_curve(data, plan, risk)
        rows = self.problem(data).rows
        return backprop_risk_curve(rows, plan.pairs(), risk, self.schedule)


@dataclass(frozen=True, eq=False)
class FullCovarianceLogistic(LogisticRegression):
    r"""Logistic regression: the best Gaussian approximation, with expectations by quadrature.

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

    def approximation(self, loss: PredictorLoss) -> Approximation:
        """Return the approximation under a loss."""
        return FullCovariance(loss)


@dataclass(frozen=True, eq=False)
class JaakkolaLogistic(LogisticRegression):
    r"""Logistic regression: Gaussian approximation from a quadratic bound on the loss.

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

    def approximation(self, loss: PredictorLoss) -> Approximation:
        """Return the approximation under the logistic loss."""
        return Jaakkola(loss)
