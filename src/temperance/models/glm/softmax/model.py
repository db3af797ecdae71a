r"""Logistic regression of several classes at once, with the Laplace approximation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import as_data, non_negative, whole
from temperance.curves import GivesCurve, RiskCurve
from temperance.data import Array, Data, Risk, refuse_too_large
from temperance.models.glm import plain
from temperance.models.glm.model import whitened_rows
from temperance.models.glm.newton import solve
from temperance.models.glm.rows import spanning_axes
from temperance.models.glm.softmax import fast
from temperance.models.glm.softmax.quadrature import (
    Logits,
    expected_losses,
    losses_and_shares,
)
from temperance.models.glm.softmax.system import (
    ClassRows,
    SoftmaxLaplace,
    SoftmaxLoss,
    SoftmaxSystem,
    class_rows,
    row_covariances,
)
from temperance.models.linear_predictor import GaussianPrior, Regression, gaussian_prior
from temperance.plans import AnyPlan
from temperance.posteriors.softmax import ContrastLaw, SoftmaxPosterior
from temperance.protocols import Preferences


@dataclass(frozen=True, eq=False)
class SoftmaxLogistic(Regression, GivesCurve):
    r"""Softmax regression for several classes, with one joint Laplace posterior.

    .. math::

        l(\theta, (z, y)) = \log \sum_k e^{z'\theta_k} - z'\theta_y, \qquad
        \theta_k \sim N(0, S_0) \text{ for every class,}

    for the classes y = 0, ..., K - 1; the posterior is a Gaussian at its mode with the curvature
    there.  Every class has coefficients, so the order of the classes does not matter; the loss does
    not depend on the mean over the classes, along which the posterior equals the prior.  With two
    classes it is :class:`LaplaceLogistic` with the prior covariance 2 S_0.

    Parameters
    ----------
    prior_cov : float, variances of shape (d,), or matrix of shape (d, d)
        Prior covariance of the coefficients of one class.
    n_classes : int, optional
        Number of classes; by default the largest label plus one.

    Notes
    -----
    Losses of rows are sums over fixed nodes (:mod:`temperance.models.glm.softmax.quadrature`): a
    lattice for two or three classes, 1024 Sobol points for more.

    Examples
    --------
    >>> X, y = [[1.0], [0.0], [-1.0]], [2, 1, 0]
    >>> posterior = SoftmaxLogistic().posterior(X, y, alpha=3.0)
    >>> posterior.coefficients.round(3)[[0, 2]]
    array([[-0.614],
           [ 0.614]])
    """

    prior_cov: ArrayLike = 1.0
    n_classes: int | None = None
    preferences: ClassVar[Preferences] = Preferences(wide=True)

    def __post_init__(self) -> None:
        """Refuse fewer than two classes."""
        if self.n_classes is not None:
            whole("n_classes", self.n_classes, 2)

    def prior(self, dimension: int) -> GaussianPrior:
        """Return the prior of the coefficients of one class."""
        return gaussian_prior(0.0, self.prior_cov, dimension)

    def check(self, data: Data) -> None:
        """Refuse labels other than 0, ..., K - 1, classes without rows, and unsuitable inputs."""
        K, present = self._count_classes(data.y), np.unique(data.y)
        if len(present) < 2:
            raise ValueError(f"y must hold at least two classes, got only {float(data.y[0])!r}")
        if self.n_classes is None and len(present) < K:
            missing = int(np.argmin(present == np.arange(len(present))))
            raise ValueError(
                f"y must hold every label from 0 to {K - 1}, got none of {missing}; give n_classes "
                "if there is such a class"
            )
        super().check(data)
        self._rows(data.X, data.y, data.weights[None])

    def posterior(
        self, X: ArrayLike, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> SoftmaxPosterior:
        """Return the Gaussian approximation at ``alpha``; ``alpha = n`` is Bayes."""
        return self.posteriors(X, y, weights)(alpha)

    def posteriors(
        self, X: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None
    ) -> Callable[[float], SoftmaxPosterior]:
        """Return the function from alpha to the posterior."""
        data = as_data(X, y, weights)
        rows, basis, prior = self._rows(data.X, data.y, data.weights[None])
        system = SoftmaxSystem(rows)

        def posterior(alpha: float) -> SoftmaxPosterior:
            found = solve(system, non_negative("alpha", alpha) / data.size)
            modes, roots = system.gaussian(found.x, found.beta)
            mean = modes[0].reshape(system.dimension, -1)
            law = ContrastLaw(mean, roots[0], prior, basis).mixed()
            return SoftmaxPosterior(
                law.coefficients.ravel(), law.covariance_root(), self.design, law
            )

        return posterior

    def log_evidence(self, data: Data, beta: float = 1.0) -> float:
        r"""Return log of the integral of exp(-beta sum_i w_i l_i) over the prior, by Laplace.

        .. math:: -\beta \sum_i w_i l_i(m) - \tfrac12 |m|^2 - \tfrac12 \log\det S^{-1}

        at the mode m, in coordinates where the prior is N(0, I).  Where classes can be told apart
        it favours priors so wide that the Gaussian does not resemble the posterior; there
        :meth:`evidence_bound` is the better judge of a prior.
        """
        system, mode, root = self._fit(data, beta)
        return float(np.linalg.slogdet(root)[1] - system.objective(mode, beta)[0])

    def evidence_bound(self, data: Data, beta: float = 1.0) -> float:
        r"""Return a lower bound of the log evidence, from the Gaussian posterior q.

        .. math:: -\beta \sum_i w_i E_q l_i - KL(q \,|\, \pi_0)
        """
        system, mode, root = self._fit(data, beta)
        rows = system.rows
        blocks = mode.reshape(system.dimension, -1)
        cov = row_covariances(rows.Z, root.reshape(*blocks.shape, -1))
        mean = rows.Z @ blocks.T
        logits = Logits(mean, cov, np.zeros_like(mean), np.zeros_like(cov))
        losses, _ = expected_losses(logits, rows.labels, rows.n_classes, "gibbs")
        apart = 0.5 * ((root**2).sum() + (mode**2).sum() - len(root))
        return float(np.linalg.slogdet(root)[1] - apart - beta * (rows.weights[0] @ losses))

    def parameters_used(self, data: Data, betas: Array) -> Array:
        """Return the effective number of parameters at each beta."""
        rows, _, _ = self._rows(data.X, data.y, data.weights[None])
        system = SoftmaxSystem(rows)
        used = np.empty(len(betas))
        for j, beta in enumerate(betas.tolist()):
            root = system.gaussian(solve(system, beta).x, beta)[1][0]
            used[j] = len(root) - (root**2).sum()
        return used

    def _fit(self, data: Data, beta: float) -> tuple[SoftmaxSystem, Array, Array]:
        """Return the equations of all rows, the mode (1, c k) and the covariance root."""
        rows, _, _ = self._rows(data.X, data.y, data.weights[None])
        system = SoftmaxSystem(rows)
        found = solve(system, non_negative("beta", beta))
        return system, found.x, system.gaussian(found.x, found.beta)[1][0]

    def loss(self, theta: Array, X: Array, y: Array) -> Array:
        r"""Loss of each draw, of shape (draws, K d), at each observation."""
        Z = self.design(X)
        logits = theta.reshape(len(theta), -1, Z.shape[1]) @ Z.T  # (draws, K, n)
        own = y.astype(np.intp), np.arange(len(y))
        against = logits - logits[:, None, *own]
        against[:, *own] = -np.inf
        return losses_and_shares(against)[0]

    def risk_curve(self, data: Data, plan: AnyPlan, risk: Risk = "gibbs") -> RiskCurve:
        """Return the curve that the plan estimates, by quasi-Monte Carlo."""
        rows, _, _ = self._rows(data.X, data.y, data.weights[None])
        approximation = SoftmaxLaplace(SoftmaxLoss(rows.n_classes))
        curve = fast.choose(rows, plan, risk, approximation)
        return curve or plain.risk_curve(rows, plan, risk, approximation)

    def _rows(
        self, X: ArrayLike, y: Array, weights: Array
    ) -> tuple[ClassRows, Array | None, GaussianPrior]:
        """Return whitened rows along axes of their span, those axes, and the prior."""
        K = self._count_classes(y)
        Z = self.design(X)
        prior = self.prior(Z.shape[1])
        coordinates, basis = spanning_axes(whitened_rows(Z, prior), weights[0])
        size = (K - 1) * coordinates.shape[1]
        what = f"X with {Z.shape[1]} columns and {K} classes: a matrix of {size} coefficients"
        refuse_too_large(what, 4.0 * size * size)
        return class_rows(coordinates, y, weights, K), basis, prior

    def _count_classes(self, y: Array) -> int:
        strange = y[~((y >= 0) & (y == np.floor(y)))]
        if len(strange):
            raise ValueError(f"y must hold labels 0, 1, 2 ..., got {float(strange[0])!r}")
        largest = int(y.max())
        if self.n_classes is None:
            return max(largest + 1, 2)
        if largest >= self.n_classes:
            raise ValueError(
                f"y must hold labels below n_classes = {self.n_classes}, got {largest}"
            )
        return self.n_classes
