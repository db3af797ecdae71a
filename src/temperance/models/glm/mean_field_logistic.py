r"""Logistic regression with the mean-field Gaussian approximation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from temperance.curves import RiskCurve
from temperance.models.glm.backprop import Schedule, backprop, backprop_risk_curve
from temperance.models.glm.diagonal_covariance import DiagonalCovarianceSystem
from temperance.models.glm.expected_loss import expected_loss, rough_loss
from temperance.models.glm.model import LogisticRegression, check_labels
from temperance.models.glm.system import Rows, System
from temperance.models.linear_predictor import GaussianPrior, gaussian_prior
from temperance.types import AnyPlan, Array, Data, Risk
from temperance.validation import as_numbers, non_negative, one_of, positive, whole


@dataclass(frozen=True, eq=False)
class MeanFieldLogistic(LogisticRegression):
    r"""Gaussian approximation with a diagonal covariance: what Bayes by Backprop converges to.

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
    diagonal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse an unknown method and a schedule without steps."""
        one_of("method", self.method, ("deterministic", "sgd"))
        whole("steps", self.steps, 1)
        positive("rate", self.rate)
        whole("seed", self.seed, 0)

    @property
    def schedule(self) -> Schedule:
        """Steps, rate and random numbers of the stochastic method."""
        return Schedule(self.steps, self.rate, self.seed)

    def prior(self, dimension: int) -> GaussianPrior:
        """Return the prior, which must be diagonal."""
        cov = as_numbers("prior_cov", self.prior_cov)
        if cov.shape == (dimension, dimension) and np.all(np.isfinite(cov)):
            off = cov - np.diag(np.diag(cov))
            if np.any(off):
                largest = float(np.abs(off).max())
                raise ValueError(
                    "prior_cov must be diagonal for MeanFieldLogistic, got an off-diagonal "
                    f"element {largest!r}"
                )
            cov = np.diag(cov)
        return gaussian_prior(self.prior_mean, cov, dimension)

    def system(self, rows: Rows, rough: bool = False) -> System:
        """Return the stationarity equations of the variational objective."""
        return DiagonalCovarianceSystem(rows, rough_loss if rough else expected_loss)

    def coordinates(self, whitened: Array, weights: Array) -> tuple[Array, None]:
        """Keep the coordinates: a diagonal covariance is one in these only."""
        return whitened, None

    def largest_matrix(self, n: int, k: int) -> int:
        """Weighted rows and one Jacobian of means and deviations, or one over fewer rows."""
        return n * k + 4 * min(n, k) ** 2

    def approximation(self, rows: Rows) -> Callable[[float], tuple[Array, Array]]:
        """Return the function from beta to mean and covariance root, for rows of one weighting."""
        if self.method == "deterministic":
            return super().approximation(rows)

        def stochastic(beta: float) -> tuple[Array, Array]:
            fit = backprop(rows, np.array([[beta]]), self.schedule)
            return fit.mean[0, 0], fit.deviation[0, 0]

        return stochastic

    def trajectory(
        self, X: ArrayLike, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> Array:
        """Means after each step of Bayes by Backprop, shape (steps + 1, d)."""
        data = self.labelled(X, y, weights)
        whitened, offset, prior = self.whitened(self.design(data.X))
        rows = Rows(whitened, offset, data.y, data.weights[None])
        trace: list[Array] = []
        beta = non_negative("alpha", alpha) / data.size
        backprop(rows, np.array([[beta]]), self.schedule, trace)
        return prior.mean + np.stack(trace)[:, 0, 0] * prior.root

    def risk_curve(self, data: Data, plan: AnyPlan, risk: Risk = "gibbs") -> RiskCurve:
        """Return the curve that the plan estimates, by quadrature."""
        if self.method == "deterministic":
            return super().risk_curve(data, plan, risk)
        check_labels(data.y)
        whitened, offset, _ = self.whitened(self.design(data.X))
        rows = Rows(whitened, offset, data.y, plan.pairs().likelihood_weights)
        return backprop_risk_curve(rows, plan.pairs(), risk, self.schedule)
