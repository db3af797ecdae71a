r"""Gaussian linear regression with known noise variance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import ArrayLike

from temperance.checks import as_data, non_negative, positive
from temperance.curves import ReferenceCurve, RiskCurve
from temperance.data import Array, Data, Risk
from temperance.models.credible import gaussian_levels
from temperance.models.information import squared_information
from temperance.models.linear import limits
from temperance.models.linear.credible import credible_levels
from temperance.models.linear.fast import choose
from temperance.models.linear.noise import KnownVariance
from temperance.models.linear.other_losses import KnownVarianceLoss
from temperance.models.linear.plain import plain_curve
from temperance.models.linear.posterior import linear_posterior, parameters_used
from temperance.models.linear.rows import WhitenedRows, whitened_rows
from temperance.models.linear_predictor import GaussianPrior, Regression
from temperance.models.prior_information import gaussian_prior_information
from temperance.plans import AnyPlan
from temperance.posteriors import GaussianRegressionPosterior
from temperance.protocols import Information, LossName, Preferences
from temperance.strategies.reference.linear import reference_risk_curve
from temperance.strategies.reference.scales import AroundKnownVariance
from temperance.strategies.reference.seen import observed_rows


class KnownVarianceRegression(Regression):
    """Base of regressions with known noise variance; a subclass may define ``features``."""

    noise_variance: float
    preferences: ClassVar[Preferences] = Preferences(reference=True, leave_one_out=True)

    def __post_init__(self) -> None:
        """Refuse a noise variance that is not positive."""
        positive("noise_variance", self.noise_variance)

    def posterior(
        self, X: ArrayLike, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> GaussianRegressionPosterior:
        """Return the Gaussian posterior at ``alpha``; ``alpha = n`` is Bayes."""
        data = as_data(X, y, weights)
        weight = non_negative("alpha", alpha)
        rows, basis, prior = self._rows(data)
        fit = linear_posterior(rows, basis, data.weights, weight, prior)
        return GaussianRegressionPosterior(fit.mean, fit.root, self.design, self.noise_variance)

    def parameters_used(self, data: Data, betas: Array) -> Array:
        """Return the effective number of parameters at each beta."""
        rows, _, _ = self._rows(data)
        return parameters_used(rows, data.weights, betas)

    def loss(self, theta: Array, X: Array, y: Array) -> Array:
        r"""Return (y - z'theta)^2 / (2 s2) of each draw at each observation."""
        return (y - theta @ self.design(X).T) ** 2 / (2 * self.noise_variance)

    def risk_curve(self, data: Data, plan: AnyPlan, risk: Risk = "gibbs") -> RiskCurve:
        """Return the curve that the plan estimates, in closed form."""
        rows, _, _ = self._rows(data)
        noise = KnownVariance()
        return choose(rows, plan, noise, risk) or plain_curve(rows, plan, noise, risk)

    def reference_curve(self, data: Data, counts: Array, risk: Risk = "gibbs") -> ReferenceCurve:
        """Return the risk expected by a reference model with unknown scales, in closed form."""
        limits.refuse_weights(data.weights)
        Z = self.features(data.X)
        observed = observed_rows(Z, data.y, counts, self.prior(Z.shape[1]), self.noise_variance)
        limits.refuse_rounding(observed.rows.response)
        scale_prior, noise = AroundKnownVariance(), KnownVariance()
        return reference_risk_curve(observed, data.weights, scale_prior, noise, risk)

    def other_curve(self, data: Data, plan: AnyPlan, loss: LossName, in_model: bool) -> RiskCurve:
        """Return the curve of squared errors, or of the posterior mean's losses."""
        rows, _, _ = self._rows(data)
        noise = KnownVarianceLoss(self.noise_variance, loss, in_model)
        return choose(rows, plan, noise, "predictive") or plain_curve(
            rows, plan, noise, "predictive"
        )

    def information(self, data: Data) -> Information:
        """Return scores and curvature at the least-squares coefficients."""
        Z = self.features(data.X)
        prior = self.prior(Z.shape[1])
        found = squared_information(Z, data.y, data.weights, self.noise_variance, prior.root)
        return found._replace(prior_mean=prior.mean)

    def prior_information(self, data: Data) -> tuple[Array, Array]:
        """Return squared scores averaged over the prior, as expected and as observed."""
        Z, theta = self.features(data.X), self.information(data).minimiser
        prior = self.prior(Z.shape[1])
        return gaussian_prior_information(Z, data.y, prior, self.noise_variance, theta)

    def credible_levels(
        self, data: Data, weights: Array, theta: Array | None
    ) -> Callable[[float], Array]:
        """Return the levels of the ellipsoids that ``theta`` is on, in closed form."""
        rows, basis, prior = self._rows(data)

        def levels(distances: Array, misfit: Array, alpha: Array) -> Array:
            return gaussian_levels(distances, len(prior.mean))

        return credible_levels(rows, basis, prior, data.weights, weights, theta, levels)

    def _rows(self, data: Data) -> tuple[WhitenedRows, Array | None, GaussianPrior]:
        limits.refuse_weights(data.weights)
        Z = self.features(data.X)
        prior = self.prior(Z.shape[1]).graded(Z)
        rows, basis = whitened_rows(Z, data.y, prior, self.noise_variance)
        limits.refuse_rounding(rows.response)
        return rows, basis, prior


@dataclass(frozen=True, eq=False)
class GaussianLinear(KnownVarianceRegression):
    r"""Linear regression with known noise variance s2.

    .. math:: l(\theta, (z, y)) = (y - z'\theta)^2 / (2 s_2), \qquad \theta \sim N(\mu_0, S_0).

    The constant ``log(2 pi s2) / 2`` is left out of both risks.  With G and h the weighted means of
    ``zz'/s2`` and ``zy/s2`` the posterior has precision ``S_0^-1 + alpha G`` and mean
    ``(S_0^-1 + alpha G)^-1 (S_0^-1 mu_0 + alpha h)``.

    Parameters
    ----------
    noise_variance : float
        Known variance of the noise.
    prior_mean : float or array of shape (d,)
    prior_cov : float, variances of shape (d,), or matrix of shape (d, d)

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0], [1.0]]), np.array([2.0, 4.0])
    >>> posterior = GaussianLinear(noise_variance=1.0).posterior(X, y, alpha=2.0)
    >>> posterior.mean, posterior.cov
    (array([2.]), array([[0.33333333]]))
    """

    noise_variance: float = 1.0
    prior_mean: ArrayLike = 0.0
    prior_cov: ArrayLike = 1.0
