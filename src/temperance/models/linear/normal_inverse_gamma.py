r"""Gaussian linear regression with unknown noise variance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import as_data, non_negative, positive
from temperance.curves import ReferenceCurve, RiskCurve
from temperance.data import Array, Data, Risk
from temperance.models.credible import student_levels
from temperance.models.information import fitted_variance, squared_information
from temperance.models.linear import limits
from temperance.models.linear.credible import credible_levels
from temperance.models.linear.fast import choose
from temperance.models.linear.noise import InverseGammaVariance
from temperance.models.linear.other_losses import InverseGammaLoss
from temperance.models.linear.plain import plain_curve
from temperance.models.linear.posterior import linear_posterior, parameters_used
from temperance.models.linear.rows import WhitenedRows, whitened_rows
from temperance.models.linear_predictor import GaussianPrior, Regression
from temperance.models.prior_information import gaussian_prior_information
from temperance.plans import AnyPlan
from temperance.posteriors import NormalInverseGammaPosterior
from temperance.protocols import Information, LossName, Preferences
from temperance.strategies.reference.linear import reference_risk_curve
from temperance.strategies.reference.scales import UnknownVariance
from temperance.strategies.reference.seen import observed_rows


@dataclass(frozen=True, eq=False)
class NormalInverseGammaLinear(Regression):
    r"""Linear regression whose noise variance s2 is a parameter.

    .. math::

        l(\theta, s_2, (z, y)) = (y - z'\theta)^2 / (2 s_2) + \log(2 \pi s_2) / 2, \qquad
        \theta \mid s_2 \sim N(\mu_0, s_2 S_0), \quad s_2 \sim \mathrm{InverseGamma}(a, b).

    At alpha the posterior is of the same family with shape ``a + alpha/2`` and scale
    ``b + Q/2``, where Q is the smallest value of
    ``alpha * mean (y - z'theta)^2 + (theta - mu_0)'S_0^-1(theta - mu_0)``; the Gibbs risk is

    .. math::

        \tfrac12 \left[ \tfrac{a}{b} \overline{(y - z'm)^2} + \overline{z'Sz} + \log b
        - \psi(a) + \log 2\pi \right].

    Parameters
    ----------
    a, b : float
        Shape and scale of the inverse gamma prior.
    prior_mean : float or array of shape (d,)
    prior_cov : float, variances of shape (d,), or matrix of shape (d, d), in units of s2

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0], [1.0]]), np.array([2.0, 4.0])
    >>> posterior = NormalInverseGammaLinear().posterior(X, y, alpha=2.0)
    >>> posterior.a, round(posterior.b, 6)
    (3.0, 6.0)
    """

    a: float = 2.0
    b: float = 2.0
    prior_mean: ArrayLike = 0.0
    prior_cov: ArrayLike = 1.0
    preferences: ClassVar[Preferences] = Preferences(reference=True, leave_one_out=True)

    def __post_init__(self) -> None:
        """Refuse an improper prior of the noise variance."""
        positive("a", self.a)
        limits.refuse_variance("b", positive("b", self.b))

    def posterior(
        self, X: ArrayLike, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> NormalInverseGammaPosterior:
        """Return the posterior at ``alpha``; ``alpha = n`` is Bayes."""
        data = as_data(X, y, weights)
        weight = non_negative("alpha", alpha)
        rows, basis, prior = self._rows(data)
        fit = linear_posterior(rows, basis, data.weights, weight, prior)
        return NormalInverseGammaPosterior(
            fit.mean, fit.root, self.a + weight / 2, self.b + fit.misfit / 2, self.design
        )

    def parameters_used(self, data: Data, betas: Array) -> Array:
        """Return the effective number of parameters at each beta."""
        rows, _, _ = self._rows(data)
        return parameters_used(rows, data.weights, betas)

    def loss(self, theta: Array, X: Array, y: Array) -> Array:
        r"""Return (y - z'theta)^2 / (2 s2) + log(2 pi s2) / 2; s2 is the last column."""
        coefficients, variance = theta[:, :-1], theta[:, -1:]
        square = (y - coefficients @ self.design(X).T) ** 2
        return 0.5 * (square / variance + np.log(2 * np.pi * variance))

    def risk_curve(self, data: Data, plan: AnyPlan, risk: Risk = "gibbs") -> RiskCurve:
        """Return the curve that the plan estimates, in closed form."""
        rows, _, _ = self._rows(data)
        noise = InverseGammaVariance(self.a, self.b)
        return choose(rows, plan, noise, risk) or plain_curve(rows, plan, noise, risk)

    def reference_curve(self, data: Data, counts: Array, risk: Risk = "gibbs") -> ReferenceCurve:
        """Return the risk expected by a reference model with unknown scales, in closed form."""
        limits.refuse_weights(data.weights)
        Z = self.features(data.X)
        prior, expected = self.prior(Z.shape[1]), self.b / self.a
        observed = observed_rows(Z, data.y, counts, prior, expected_variance=expected)
        noise = InverseGammaVariance(self.a, self.b)
        return reference_risk_curve(observed, data.weights, UnknownVariance(), noise, risk)

    def other_curve(self, data: Data, plan: AnyPlan, loss: LossName, in_model: bool) -> RiskCurve:
        """Return the curve of squared errors, or of the posterior mean's losses."""
        rows, _, _ = self._rows(data)
        noise = InverseGammaLoss(self.a, self.b, loss, in_model)
        return choose(rows, plan, noise, "predictive") or plain_curve(
            rows, plan, noise, "predictive"
        )

    def information(self, data: Data) -> Information:
        """Return scores and curvature of the coefficients alone, at the fitted noise variance.

        That is the mean squared residual of least squares; the parameters are those of
        :class:`GaussianLinear`.
        """
        Z = self.features(data.X)
        prior = self.prior(Z.shape[1])
        found = squared_information(Z, data.y, data.weights, None, prior.root)
        return found._replace(prior_mean=prior.mean)

    def prior_information(self, data: Data) -> tuple[Array, Array]:
        """Return squared scores of the coefficients, at the fitted noise variance."""
        Z, theta = self.features(data.X), self.information(data).minimiser
        prior, share = self.prior(Z.shape[1]), data.weights / data.size
        variance = fitted_variance(data.y - Z @ theta, share)
        given = GaussianPrior(prior.mean, np.sqrt(variance) * prior.root)
        return gaussian_prior_information(Z, data.y, given, variance, theta)

    def credible_levels(
        self, data: Data, weights: Array, theta: Array | None
    ) -> Callable[[float], Array]:
        """Return the levels of the Student-t's ellipsoids that ``theta`` is on."""
        rows, basis, prior = self._rows(data)

        def levels(distances: Array, misfit: Array, alpha: Array) -> Array:
            a, b = self.a + alpha / 2, self.b + misfit / 2
            return student_levels(distances, len(prior.mean), a, b)

        return credible_levels(rows, basis, prior, data.weights, weights, theta, levels)

    def _rows(self, data: Data) -> tuple[WhitenedRows, Array | None, GaussianPrior]:
        limits.refuse_weights(data.weights)
        Z = self.features(data.X)
        prior = self.prior(Z.shape[1]).graded(Z)
        expected = self.b / self.a
        return *whitened_rows(Z, data.y, prior, expected_variance=expected), prior
