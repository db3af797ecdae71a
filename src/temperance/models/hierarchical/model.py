r"""Linear regression that learns the scale of the coefficients' prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from temperance.checks import as_data, as_inputs, as_numbers, non_negative, one_of, positive
from temperance.curves import RiskCurve
from temperance.data import Array, Data, Risk
from temperance.models.hierarchical.curve import averaged_curve
from temperance.models.hierarchical.moments import level_at
from temperance.models.hierarchical.training import DecomposedRows, TrainingSets, decompose
from temperance.models.information import squared_information
from temperance.models.linear import limits
from temperance.models.linear.noise import InverseGammaVariance, KnownVariance, NoiseModel
from temperance.plans import AnyPlan
from temperance.posteriors.hierarchical import NEGLIGIBLE, HierarchicalPosterior, Parts
from temperance.protocols import Information, Preferences

SCALES = tuple(float(10**power) for power in np.arange(-3.0, 2.01, 0.25))
PRIOR_LEVEL = 1e4  # of the mean response at the centre of the rows, in units of the noise variance


@dataclass(frozen=True, eq=False)
class HierarchicalLinear:
    r"""Linear regression averaged over the scale of its prior.

    .. math::

        l(\theta, s_2, (z, y)) = (y - z'\theta)^2 / (2 s_2) + \log(2 \pi s_2) / 2, \qquad
        \theta_j \mid s_2, \kappa \sim N(0, s_2 \kappa^2),

    Every training set, at every beta, weights the scales by their evidence; the posterior and its
    forecasts are mixtures.  With ``intercept`` the first column of X is constant, and the mean
    response at the centre of the training rows has a prior variance of 10,000 s2.

    Parameters
    ----------
    noise_variance : float or None
        Known variance of the noise; ``None`` to infer it.
    a, b : float
        Shape and scale of the inverse gamma prior of an unknown variance.
    scales : sequence of floats
        Prior standard deviations of the coefficients in units of the noise's, equally likely.
    intercept : bool

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([np.ones(50), rng.standard_normal((50, 3))])
    >>> y = 10 + 0.1 * X.sum(axis=1) + rng.standard_normal(50)
    >>> posterior = HierarchicalLinear().posterior(X, y, alpha=50)
    >>> print(posterior.mean.round(2))
    [ 9.99  0.08 -0.01  0.04]
    """

    noise_variance: float | None = None
    a: float = 1.0
    b: float = 1.0
    scales: ArrayLike = SCALES
    intercept: bool = True
    preferences: ClassVar[Preferences] = Preferences(leave_one_out=True)

    def __post_init__(self) -> None:
        """Refuse an improper prior."""
        if self.noise_variance is not None:
            positive("noise_variance", self.noise_variance)
        positive("a", self.a)
        limits.refuse_variance("b", positive("b", self.b))
        one_of("intercept", self.intercept, (False, True))
        scales = as_numbers("scales", self.scales)
        if scales.ndim != 1 or not scales.size or not np.all((scales > 1e-50) & (scales < 1e50)):
            raise ValueError(
                f"scales must be positive numbers between 1e-50 and 1e50, got {self.scales!r}"
            )

    def design(self, X: ArrayLike) -> Array:
        """Return checked inputs as rows."""
        rows = as_inputs(X)
        if self.intercept and (rows.shape[1] == 0 or np.any(rows[:, 0] != 1)):
            raise ValueError("X must begin with a column of ones, or intercept must be False")
        return rows

    def check(self, data: Data) -> None:
        """Refuse inputs that do not fit the design."""
        self.design(data.X)

    def posterior(
        self, X: ArrayLike, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> HierarchicalPosterior:
        """Return the posterior at ``alpha``; ``alpha = n`` is Bayes."""
        data = as_data(X, y, weights)
        beta = non_negative("alpha", alpha) / data.size
        known = self._decomposed(data)
        parts = self._components(known.training, beta)
        parts = parts.take(parts.weights > NEGLIGIBLE * parts.weights.max())
        return HierarchicalPosterior(
            known.centre, known.directions, parts, self.intercept, self.design
        )

    def _decomposed(self, data: Data) -> DecomposedRows:
        return decompose(self._inputs(data), data.y / self._unit, data.weights, self.intercept)

    def _components(self, training: TrainingSets, beta: float) -> Parts:
        """Return the posterior under each scale, weighted by its evidence."""
        variances, unit = self._variances, self._unit
        singular, c = training.singular[0], training.response[0]
        left = 1 / (1 + beta * variances[:, None] * singular**2)
        level = level_at(beta, training.exposure, training.mean, self._prior_level)
        misfit = beta * (training.rest + left @ c**2) + level.misfit
        log_weight = 0.5 * np.log(left).sum(axis=1)
        k = len(variances)
        if self.noise_variance is None:
            a, b = self.a + beta * training.exposure[0] / 2, self.b + misfit / 2
            noise, dof = b / a, np.full(k, 2 * a)
            log_weight -= a * np.log(b)
        else:
            noise, dof = np.ones(k), np.full(k, np.inf)
            log_weight -= misfit / 2
        return Parts(
            weights=special.softmax(log_weight),
            dof=dof,
            noise=unit**2 * noise,
            scale=variances,
            left=left,
            mean=unit * beta * variances[:, None] * singular * c * left,
            level=np.repeat(unit * (training.mean - level.error), k),
            level_variance=np.repeat(level.variance, k),
        )

    def parameters_used(self, data: Data, betas: Array) -> Array:
        """Return the effective number of parameters, averaged over scales, at each beta."""
        training = self._decomposed(data).training
        parts = (self._components(training, beta) for beta in betas.tolist())
        slopes = [part.weights @ (1 - part.left).sum(axis=1) for part in parts]
        return int(self.intercept) + np.array(slopes)

    def information(self, data: Data) -> Information:
        """Return scores and curvature of the coefficients, at the known or fitted variance.

        The prior has no fixed covariance, so that rules which need one refuse the model.
        """
        return squared_information(self.design(data.X), data.y, data.weights, self.noise_variance)

    def loss(self, theta: Array, X: Array, y: Array) -> Array:
        """Return the loss of each draw at each observation, up to a constant for known variance."""
        if self.noise_variance is not None:
            return (y - theta @ self.design(X).T) ** 2 / (2 * self.noise_variance)
        coefficients, variance = theta[:, :-1], theta[:, -1:]
        square = (y - coefficients @ self.design(X).T) ** 2
        return 0.5 * (square / variance + np.log(2 * np.pi * variance))

    def risk_curve(self, data: Data, plan: AnyPlan, risk: Risk = "gibbs") -> RiskCurve:
        """Return the curve that the plan estimates, in closed form."""
        noise: NoiseModel = KnownVariance()
        if self.noise_variance is None:
            noise = InverseGammaVariance(self.a, self.b)
        return averaged_curve(
            self._inputs(data),
            data.y / self._unit,
            plan,
            self.intercept,
            noise,
            risk,
            self._variances,
            self._prior_level,
        )

    def _inputs(self, data: Data) -> Array:
        """Return the columns whose coefficients share the prior."""
        limits.refuse_weights(data.weights)
        with np.errstate(over="ignore"):
            limits.refuse_responses(data.y / self._unit, "the noise's standard deviation")
        X = self.design(data.X)[:, int(self.intercept) :]
        limits.refuse_inputs(X, np.max(self.scales, keepdims=True))
        return X

    @property
    def _unit(self) -> float:
        return 1.0 if self.noise_variance is None else float(np.sqrt(self.noise_variance))

    @property
    def _variances(self) -> Array:
        return np.asarray(self.scales, dtype=float) ** 2

    @property
    def _prior_level(self) -> float:
        return PRIOR_LEVEL if self.intercept else 0.0
