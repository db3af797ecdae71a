r"""Logistic regression with a Gaussian approximation of the posterior: what the four share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from temperance.curves import RiskCurve
from temperance.models.glm.axes import spanning_axes
from temperance.models.glm.continuation import Path
from temperance.models.glm.curve import QUADRATURE, logistic_risk_curve
from temperance.models.glm.expected_loss import Forces, expected_forces
from temperance.models.glm.folds import fold_risk_curve, many_in_folds
from temperance.models.glm.information import plan_scale
from temperance.models.glm.leave_one_out import left_out_risk_curve, many_rows
from temperance.models.glm.prefixes import SHORT, method_of, prefix_risk_curve
from temperance.models.glm.system import Rows, System
from temperance.models.linear_predictor import GaussianPrior, Regression
from temperance.posteriors import LogisticPosterior
from temperance.types import (
    AnyPlan,
    Array,
    Data,
    FoldPlan,
    LeaveOneOutPlan,
    Plan,
    PrefixPlan,
    Risk,
)
from temperance.validation import as_data, non_negative

LARGEST = 1e50  # of rows whose fourth powers, times weights, are numbers
MOST_LOG_ODDS = 1e3  # of the prior mean: from farther off Newton's method is not sure to arrive


class LogisticRegression(Regression):
    r"""Loss softplus(z'theta) - y z'theta, prior N(mu_0, S_0); a subclass writes its equations.

    The slope of its risk curves is that of the approximation, by the implicit function theorem.
    """

    diagonal: ClassVar[bool] = False

    def system(self, rows: Rows, rough: bool = False) -> System:
        """Return the equations of the approximation."""
        raise NotImplementedError

    def coordinates(self, whitened: Array, weights: Array) -> tuple[Array, Array | None]:
        """Return whitened rows along axes of their span, where the approximations allow it."""
        return spanning_axes(whitened, weights)

    def largest_matrix(self, n: int, k: int) -> int:
        """Return the number of elements of the largest temporary of one pair."""
        return n * k

    def forces(self, mean: Array, variance: Array, rough: bool = False) -> Forces:
        """Return what rows do to the approximation, by its equations."""
        return expected_forces(mean, variance, rough)

    def check(self, data: Data) -> None:
        """Refuse strange labels, a single class, and inputs that do not fit the prior."""
        check_labels(data.y)
        if np.ptp(data.y) == 0:
            raise ValueError(f"y must hold both classes 0 and 1, got only {float(data.y[0])!r}")
        super().check(data)
        self.whitened(self.design(data.X))

    def whitened(self, Z: Array) -> tuple[Array, Array, GaussianPrior]:
        """Return rows whitened, their predictor at the prior mean, and the prior."""
        prior = self.prior(Z.shape[1])
        rows = whitened_rows(Z, prior)
        with np.errstate(over="ignore", invalid="ignore"):
            offset = Z @ prior.mean
        refuse_log_odds(offset)
        return rows, offset, prior

    def labelled(self, X: ArrayLike, y: ArrayLike, weights: ArrayLike | None) -> Data:
        """Validate observations with labels 0 and 1; a part of the data may hold one class."""
        data = as_data(X, y, weights)
        check_labels(data.y)
        return data

    def posterior(
        self, X: ArrayLike, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> LogisticPosterior:
        """Return the Gaussian approximation at ``alpha``; ``alpha = n`` is Bayes."""
        return self.posteriors(X, y, weights)(alpha)

    def posteriors(
        self, X: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None
    ) -> Callable[[float], LogisticPosterior]:
        """Return the function from alpha to the posterior; each start is from those before."""
        data = self.labelled(X, y, weights)
        whitened, offset, prior = self.whitened(self.design(data.X))
        coordinates, basis = self.coordinates(whitened, data.weights)
        approximation = self.approximation(Rows(coordinates, offset, data.y, data.weights[None]))

        def posterior(alpha: float) -> LogisticPosterior:
            mean, root = approximation(non_negative("alpha", alpha) / data.size)
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
        used = np.empty(len(betas))
        for j in np.argsort(betas):
            used[j] = posterior(float(betas[j]) * data.size).root.decided_by_data(root)
        return used

    def approximation(self, rows: Rows) -> Callable[[float], tuple[Array, Array]]:
        """Return the function from beta to mean and covariance root, for rows of one weighting.

        A diagonal root is the vector of its diagonal.
        """
        path = Path(self.system(rows))

        def gaussian(beta: float) -> tuple[Array, Array]:
            found = path.at(beta)
            means, roots = path.system.gaussian(found.x, found.beta)
            return means[0], roots[0]

        return gaussian

    def loss(self, theta: Array, X: Array, y: Array) -> Array:
        r"""Loss softplus((1 - 2 y) z'theta) of each draw at each observation."""
        return np.logaddexp(0.0, (1 - 2 * y) * (theta @ self.design(X).T))

    def risk_curve(self, data: Data, plan: AnyPlan, risk: Risk = "gibbs") -> RiskCurve:
        """Return the curve that the plan estimates, by quadrature."""
        check_labels(data.y)
        whitened, offset, _ = self.whitened(self.design(data.X))
        coordinates, _ = self.coordinates(whitened, data.weights)
        rows = Rows(coordinates, offset, data.y, data.weights[None])
        scale = partial(plan_scale, rows, plan, self.forces)
        return replace(self._curve(rows, plan, risk), scale=scale)

    def _curve(self, rows: Rows, plan: AnyPlan, risk: Risk) -> RiskCurve:
        """Curve of rows under the plan's own weights."""
        n, k = rows.Z.shape
        if not isinstance(plan, Plan):
            rows = replace(rows, weights=plan.weights[None])
        if isinstance(plan, LeaveOneOutPlan) and many_rows(n, k):
            return left_out_risk_curve(rows, plan, risk, self)
        if isinstance(plan, PrefixPlan) and plan.ends[-1] > SHORT:
            return prefix_risk_curve(rows, plan, risk, self)
        if isinstance(plan, FoldPlan) and many_in_folds(plan, k):
            return fold_risk_curve(rows, plan, risk, self)
        pairs = plan.pairs()
        method = method_of(plan) if isinstance(plan, PrefixPlan) else QUADRATURE
        paired = replace(rows, weights=pairs.likelihood_weights)
        return logistic_risk_curve(paired, pairs, risk, self, method)


def whitened_rows(Z: Array, prior: GaussianPrior) -> Array:
    """Return rows whose coefficients are standard normal under the prior; refuse large ones."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = prior.whiten(Z)
    refuse_large(rows)
    return rows


def check_labels(y: Array) -> None:
    """Refuse labels other than 0 and 1."""
    strange = y[(y != 0) & (y != 1)]
    if len(strange):
        raise ValueError(f"y must hold the labels 0 and 1, got {float(strange[0])!r}")


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
    """Refuse a prior mean beside whose predictions, (n,), all that data say is a kink far off."""
    row = int(np.argmax(~(np.abs(offset) <= MOST_LOG_ODDS)))
    if not abs(offset[row]) <= MOST_LOG_ODDS:
        raise ValueError(
            f"prior_mean must predict log odds of at most {MOST_LOG_ODDS:g} in size, got "
            f"{float(offset[row]):.3g} in row {row}; standardise X"
        )
