r"""A loss of a linear predictor with a Gaussian approximation of the posterior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import as_data, non_negative
from temperance.curves import GivesCurve, RiskCurve
from temperance.data import Array, Data, Risk
from temperance.losses.base import Loss, PredictorLoss
from temperance.models.credible import whitened_point
from temperance.models.glm import fast, plain
from temperance.models.glm.credible import credible_levels
from temperance.models.glm.information import loss_information
from temperance.models.glm.newton import Approximation, solve
from temperance.models.glm.rows import Rows, coordinates
from temperance.models.glm.units import in_units
from temperance.models.linear_predictor import GaussianPrior, Regression
from temperance.plans import AnyPlan
from temperance.posteriors import GaussianPosterior
from temperance.protocols import Information

LARGEST = 1e50  # of rows whose fourth powers, times weights, are numbers


class Problem(NamedTuple):
    """Whitened rows in units of the loss, and the approximation that is fitted to them."""

    rows: Rows
    approximation: Approximation
    basis: Array | None  # axes of the rows if they are others than the coefficients'
    prior: GaussianPrior


class GibbsRegression(Regression, GivesCurve):
    r"""Loss l(z'theta, y), prior N(mu_0, S_0) and a Gaussian approximation of the posterior.

    The slope of its risk curves is that of the approximation, by the implicit function theorem.
    """

    row_loss: Loss

    @property
    def likelihood(self) -> bool:
        """Whether the loss is minus a log likelihood."""
        return self.row_loss.likelihood

    def approximation(self, loss: PredictorLoss) -> Approximation:
        """Return the approximation under a loss."""
        raise NotImplementedError(f"{type(self).__name__} must have an approximation")

    def fitted_loss(self, data: Data) -> Loss:
        """Return the loss for these data: free parameters of its own are fitted to all rows."""
        return self.row_loss

    def offset(self, inputs: Array) -> Array:
        """Return what is added to the predictor of each row of valid inputs."""
        return np.zeros(len(inputs))

    def check(self, data: Data) -> None:
        """Refuse strange responses, a single class, and inputs that do not fit the prior."""
        self.row_loss.check(data.y)
        if self.row_loss.binary and np.ptp(data.y) == 0:
            raise ValueError(f"y must hold both classes 0 and 1, got only {float(data.y[0])!r}")
        super().check(data)
        self.whitened(data.X)

    def whitened(self, inputs: Array) -> tuple[Array, Array, GaussianPrior]:
        """Return rows whitened, their predictor at the prior mean, and the prior."""
        Z = self.features(inputs)
        prior = self.prior(Z.shape[1])
        rows = whitened_rows(Z, prior)
        with np.errstate(over="ignore", invalid="ignore"):
            offset = Z @ prior.mean + self.offset(inputs)
        refuse_predictors(offset, self.row_loss)
        return rows, offset, prior

    def problem(self, data: Data) -> Problem:
        """Return whitened rows along axes of their span, and what is fitted to them."""
        self.row_loss.check(data.y)
        whitened, offset, prior = self.whitened(data.X)
        loss = self.fitted_loss(data)
        unit = loss.unit(data.y)
        approximation = self.approximation(in_units(loss, unit))
        if unit != 1.0:
            whitened, offset = whitened / unit, offset / unit
        Z, basis = coordinates(whitened, data.weights, approximation.diagonal)
        rows = Rows(Z, offset, data.y, data.weights[None])
        return Problem(rows, approximation, basis, prior)

    def posterior(
        self, X: ArrayLike, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> Any:
        """Return the Gaussian approximation at ``alpha``; ``alpha = n`` is Bayes."""
        return self.posteriors(X, y, weights)(alpha)

    def posteriors(
        self, X: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None
    ) -> Callable[[float], Any]:
        """Return the function from alpha to the posterior of data, which may hold one class."""
        data = as_data(X, y, weights)
        problem = self.problem(data)
        gaussian, prior, basis = self.gaussian(problem), problem.prior, problem.basis
        loss = self.fitted_loss(data)

        def posterior(alpha: float) -> Any:
            mean, root = gaussian(non_negative("alpha", alpha) / data.size)
            if basis is not None:
                mean = basis @ mean
            coefficients = GaussianPosterior(
                prior.mean + prior.unwhiten(mean), prior.posterior_root(root, basis), self.design
            )
            return self.forecasting(coefficients, loss)

        return posterior

    def forecasting(self, coefficients: GaussianPosterior, loss: Loss) -> Any:
        """Return a posterior that can forecast, from that of the coefficients."""
        raise NotImplementedError(f"{type(self).__name__} must have a forecasting posterior")

    def parameters_used(self, data: Data, betas: Array) -> Array:
        """Return how many parameters the posterior takes from the data: d - tr(S_0^-1 S)."""
        posterior = self.posteriors(data.X, data.y, data.weights)
        root = self.prior(self.features(data.X[:1]).shape[1]).root
        alphas = (betas * data.size).tolist()
        return np.array([posterior(alpha).root.decided_by_data(root) for alpha in alphas])

    def gaussian(self, problem: Problem) -> Callable[[float], tuple[Array, Array]]:
        """Return the function from beta to mean and covariance root, for rows of one weighting.

        A diagonal root is the vector of its diagonal.
        """
        system = problem.approximation.system(problem.rows)

        def gaussian(beta: float) -> tuple[Array, Array]:
            means, roots = system.gaussian(solve(system, beta).x, beta)
            return means[0], roots[0]

        return gaussian

    def information(self, data: Data) -> Information:
        """Return scores and curvature at the minimiser of the mean loss, without the prior."""
        self.row_loss.check(data.y)
        Z = self.features(data.X)
        loss, prior = self.fitted_loss(data), self.prior(Z.shape[1])
        found = loss_information(loss, Z, self.offset(data.X), data, prior.root)
        return found._replace(prior_mean=prior.mean)

    def credible_levels(
        self, data: Data, weights: Array, theta: Array | None
    ) -> Callable[[float], Array]:
        """Return the levels of the Gaussians' ellipsoids that ``theta`` is on."""
        problem = self.problem(data)
        rows, approximation, basis, prior = problem
        mean_at = self.gaussian(problem)

        def point(beta: float) -> tuple[Array, float]:
            if theta is None:
                return mean_at(beta)[0], 0.0
            return whitened_point(theta, prior, basis)

        return credible_levels(rows, approximation, weights, point, len(prior.mean))

    def loss(self, theta: Array, X: Array, y: Array) -> Array:
        r"""Loss of each draw at each observation."""
        return self.row_loss.value(theta @ self.design(X).T + self.offset(X), y)

    def risk_curve(self, data: Data, plan: AnyPlan, risk: Risk = "gibbs") -> RiskCurve:
        """Return the curve that the plan estimates: a fit for each pair, losses by quadrature."""
        if risk == "predictive":
            refuse_without_likelihood(self.row_loss)
        rows, approximation, _, _ = self.problem(data)
        curve = fast.choose(rows, plan, risk, approximation)
        return curve or plain.risk_curve(rows, plan, risk, approximation)


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


def refuse_predictors(offset: Array, loss: Loss) -> None:
    """Refuse a prior mean from whose predictions, (n,), Newton's method may not arrive."""
    row = int(np.argmax(~(np.abs(offset) <= loss.largest_predictor)))
    if not abs(offset[row]) <= loss.largest_predictor:
        raise ValueError(
            f"prior_mean must predict {loss.predictor} of at most {loss.largest_predictor:g} in "
            f"size, got {float(offset[row]):.3g} in row {row}; standardise X"
        )


def refuse_without_likelihood(loss: Loss) -> None:
    """Refuse the predictive risk of a loss that is no likelihood."""
    if not loss.likelihood:
        raise ValueError(
            f"risk must be 'gibbs' for the {loss.name}, which is not minus a log likelihood, got "
            "'predictive'"
        )
