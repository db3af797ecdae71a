r"""Logistic regression with a Gaussian approximation of the posterior: what the four share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from temperance.curves import RiskCurve
from temperance.losses.logistic import Logistic
from temperance.models.credible import whitened_point
from temperance.models.glm import fast, plain
from temperance.models.glm.credible import credible_levels
from temperance.models.glm.newton import Approximation, solve
from temperance.models.glm.rows import Rows, coordinates
from temperance.models.glm.scale import plan_scale
from temperance.models.information import linear_predictor_information
from temperance.models.linear_predictor import GaussianPrior, Regression
from temperance.models.prior_information import logistic_prior_information
from temperance.posteriors import LogisticPosterior
from temperance.types import AnyPlan, Array, Data, Information, Risk
from temperance.validation import as_data, non_negative

LARGEST = 1e50  # of rows whose fourth powers, times weights, are numbers
MOST_LOG_ODDS = 1e3  # of the prior mean: from farther off Newton's method is not sure to arrive


class LogisticRegression(Regression):
    r"""Loss softplus(z'theta) - y z'theta, prior N(mu_0, S_0); a subclass names its approximation.

    The slope of its risk curves is that of the approximation, by the implicit function theorem.
    """

    approximation: ClassVar[Approximation]

    def check(self, data: Data) -> None:
        """Refuse strange labels, a single class, and inputs that do not fit the prior."""
        self.approximation.loss.check(data.y)
        if np.ptp(data.y) == 0:
            raise ValueError(f"y must hold both classes 0 and 1, got only {float(data.y[0])!r}")
        super().check(data)
        self.whitened(data.X)

    def whitened(self, X: ArrayLike) -> tuple[Array, Array, GaussianPrior]:
        """Return rows whitened, their predictor at the prior mean, and the prior."""
        Z = self.design(X)
        prior = self.prior(Z.shape[1])
        rows = whitened_rows(Z, prior)
        with np.errstate(over="ignore", invalid="ignore"):
            offset = Z @ prior.mean
        refuse_log_odds(offset)
        return rows, offset, prior

    def rows(self, data: Data) -> tuple[Rows, Array | None, GaussianPrior]:
        """Return whitened rows along axes of their span, those axes if others, and the prior."""
        self.approximation.loss.check(data.y)
        whitened, offset, prior = self.whitened(data.X)
        Z, basis = coordinates(whitened, data.weights, self.approximation.diagonal)
        return Rows(Z, offset, data.y, data.weights[None]), basis, prior

    def posterior(
        self, X: ArrayLike, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> LogisticPosterior:
        """Return the Gaussian approximation at ``alpha``; ``alpha = n`` is Bayes."""
        return self.posteriors(X, y, weights)(alpha)

    def posteriors(
        self, X: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None
    ) -> Callable[[float], LogisticPosterior]:
        """Return the function from alpha to the posterior of data, which may hold one class."""
        data = as_data(X, y, weights)
        rows, basis, prior = self.rows(data)
        gaussian = self.gaussian(rows)

        def posterior(alpha: float) -> LogisticPosterior:
            mean, root = gaussian(non_negative("alpha", alpha) / data.size)
            if basis is not None:
                mean = basis @ mean
            return LogisticPosterior(
                prior.mean + prior.unwhiten(mean), prior.posterior_root(root, basis), self.design
            )

        return posterior

    def parameters_used(self, data: Data, betas: Array) -> Array:
        """Return how many parameters the posterior takes from the data: d - tr(S_0^-1 S)."""
        posterior = self.posteriors(data.X, data.y, data.weights)
        root = self.prior(self.features(data.X[:1]).shape[1]).root
        alphas = (betas * data.size).tolist()
        return np.array([posterior(alpha).root.decided_by_data(root) for alpha in alphas])

    def gaussian(self, rows: Rows) -> Callable[[float], tuple[Array, Array]]:
        """Return the function from beta to mean and covariance root, for rows of one weighting.

        A diagonal root is the vector of its diagonal.
        """
        system = self.approximation.system(rows)

        def gaussian(beta: float) -> tuple[Array, Array]:
            means, roots = system.gaussian(solve(system, beta).x, beta)
            return means[0], roots[0]

        return gaussian

    def information(self, data: Data) -> Information:
        """Return scores and curvature at the minimiser of the mean loss, without the prior."""
        loss, Z = self.approximation.loss, self.design(data.X)
        loss.check(data.y)
        return linear_predictor_information(
            Z,
            data.weights,
            lambda u: loss.value(u, data.y),
            lambda u: loss.derivatives(u, data.y)[:2],
            self.prior(Z.shape[1]).root,
        )

    def prior_information(self, data: Data) -> tuple[Array, Array]:
        """Return squared scores averaged over the prior, as expected and as observed."""
        if not isinstance(self.approximation.loss, Logistic):
            name = type(self.approximation.loss).__name__
            raise ValueError(f"PriorInformation needs the logistic loss here, got {name}")
        Z, theta = self.design(data.X), self.information(data).minimiser
        return logistic_prior_information(Z, data.y, self.prior(Z.shape[1]), theta)

    def credible_levels(
        self, data: Data, weights: Array, theta: Array | None
    ) -> Callable[[float], Array]:
        """Return the levels of the Gaussians' ellipsoids that ``theta`` is on."""
        rows, basis, prior = self.rows(data)
        mean_at = self.gaussian(rows)

        def point(beta: float) -> tuple[Array, float]:
            if theta is None:
                return mean_at(beta)[0], 0.0
            return whitened_point(theta, prior, basis)

        return credible_levels(rows, self.approximation, weights, point, len(prior.mean))

    def loss(self, theta: Array, X: Array, y: Array) -> Array:
        r"""Loss softplus((1 - 2 y) z'theta) of each draw at each observation."""
        return self.approximation.loss.value(theta @ self.design(X).T, y)

    def risk_curve(self, data: Data, plan: AnyPlan, risk: Risk = "gibbs") -> RiskCurve:
        """Return the curve that the plan estimates: a fit for each pair, losses by quadrature."""
        rows, _, _ = self.rows(data)
        curve = fast.choose(rows, plan, risk, self.approximation)
        if curve is None:
            curve = plain.risk_curve(rows, plan, risk, self.approximation)
        return replace(curve, scale=partial(plan_scale, rows, plan, self.approximation))


def whitened_rows(Z: Array, prior: GaussianPrior) -> Array:
    """Return rows whose coefficients are standard normal under the prior; refuse large ones."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = prior.whiten(Z)
    refuse_large(rows)
    return rows


def refuse_large(rows: Array) -> None:
    """Refuse whitened rows (n, k) that cannot be computed with."""
    if max(rows.max(initial=0.0), -rows.min(initial=0.0)) <= LARGEST:
        return
    row, column = np.argwhere(~(np.abs(rows) <= LARGEST))[0]
    raise ValueError(
        f"X times the prior's standard deviation must be at most {LARGEST:.0e} in size, got "
        f"{float(rows[row, column])!r} in row {row}, column {column}"
    )


def refuse_log_odds(offset: Array) -> None:
    """Refuse a prior mean from whose predictions, (n,), Newton's method may not arrive."""
    row = int(np.argmax(~(np.abs(offset) <= MOST_LOG_ODDS)))
    if not abs(offset[row]) <= MOST_LOG_ODDS:
        raise ValueError(
            f"prior_mean must predict log odds of at most {MOST_LOG_ODDS:g} in size, got "
            f"{float(offset[row]):.3g} in row {row}; standardise X"
        )
