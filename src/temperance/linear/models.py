"""Models of Gaussian responses: presets of the engine, which say prior, noise and design."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import as_data, as_inputs, as_numbers, non_negative, one_of, positive, whole
from temperance.data import Array, Data, Risk, refuse_too_large
from temperance.linear import engine
from temperance.linear.engine import Fits, LeftOut, LinearRows, Noise, row_space
from temperance.models.credible import linear_levels
from temperance.models.information import fitted_variance, squared_information
from temperance.models.linear_predictor import GaussianPrior, Regression, gaussian_prior
from temperance.models.prior_information import gaussian_prior_information
from temperance.plans import AnyPlan
from temperance.posteriors.gaussian import GaussianRegressionPosterior
from temperance.posteriors.hierarchical import HierarchicalPosterior
from temperance.posteriors.mixture import mixed
from temperance.posteriors.normal_inverse_gamma import NormalInverseGammaPosterior
from temperance.protocols import Information, Preferences
from temperance.rules import BetaWeights
from temperance.table import HeldOut

SCALES = tuple(float(10**power) for power in np.arange(-3.0, 2.01, 0.25))
COPIES = 4  # copies of the matrix of powers that exist at a time, at most
MOST_HALVES = 1024  # number of powers of one half that are not zero in double precision


class LinearModel(Regression):
    """Base of the presets: what they share is that the engine knows their held-out losses."""

    preferences: ClassVar[Preferences] = Preferences(leave_one_out=True)

    @property
    def noise(self) -> Noise:
        """Variance of the noise, or its prior."""
        raise NotImplementedError(f"{type(self).__name__} must say what its noise is")

    def rows(self, data: Data) -> LinearRows:
        """Return the rows in whitened coordinates."""
        raise NotImplementedError(f"{type(self).__name__} must whiten its rows")

    def mixture(self, data: Data, weights: BetaWeights, table: HeldOut | None = None) -> Any:
        """Return the average of posteriors over beta, from one decomposition."""
        raise NotImplementedError(f"{type(self).__name__} must say what its posteriors are")

    def held_out(
        self, data: Data, plan: AnyPlan, score: Risk, bounds: tuple[float, float]
    ) -> HeldOut:
        """Return the table of held-out losses, in closed form."""
        return engine.held_out(self.rows(data), data, plan, score, bounds)

    def posterior(
        self, X: ArrayLike, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> Any:
        """Return the posterior at ``alpha``; ``alpha = n`` is Bayes."""
        data = as_data(X, y, weights)
        beta = non_negative("alpha", alpha) / data.size
        return self.mixture(data, BetaWeights(np.array([beta]), np.ones(1)))

    def loss(self, theta: Array, X: Array, y: Array) -> Array:
        r"""Return (y - z'theta)^2 / (2 s2) + log(2 pi s2) / 2 of each draw at each observation.

        An unknown variance is the last column of theta.
        """
        variance: Any = self.noise.variance
        if variance is None:
            theta, variance = theta[:, :-1], theta[:, -1:]
        square = (y - theta @ self.design(X).T) ** 2
        return 0.5 * (square / variance + np.log(2 * np.pi * variance))

    def information(self, data: Data) -> Information:
        """Return scores and curvature of the coefficients, at least squares.

        An unknown variance is the mean squared residual there.
        """
        return squared_information(self.features(data.X), data.y, data.weights, self.noise.variance)


class GivenPrior(LinearModel):
    """Base of the presets whose prior has a given covariance."""

    preferences: ClassVar[Preferences] = Preferences(reference=True, leave_one_out=True)

    def rows(self, data: Data) -> LinearRows:
        """Return the rows in whitened coordinates, of their own span if they are few."""
        Z = self.features(data.X)
        prior, noise = self.prior(Z.shape[1]), self.noise
        response = data.y - Z @ prior.mean if prior.mean.any() else data.y
        kappa = np.array([1.0 if noise.variance is None else 1 / noise.variance])
        inputs, basis = row_space(prior.whiten(Z))
        return LinearRows(inputs, response, False, noise, kappa, basis)

    def mixture(self, data: Data, weights: BetaWeights, table: HeldOut | None = None) -> Any:
        """Return the average of posteriors over beta, from one decomposition."""
        rows, some = self.rows(data), weights.without_negligible()
        fits, _ = engine.decompose(rows, data.weights)
        prior = self.prior(self.features(data.X[:1]).shape[1])
        laws = [self._posterior(rows, fits, prior, float(beta)) for beta in some.betas]
        return mixed(some.weights, laws)

    def _posterior(self, rows: LinearRows, fits: Fits, prior: GaussianPrior, beta: float) -> Any:
        singular, U, c = fits.singular[0], fits.directions[0], fits.response[0]
        lam = beta * float(rows.scales[0])
        g = 1 / (1 + lam * singular**2)
        along = U @ (lam * singular * c * g)
        mean = prior.mean + prior.unwhiten(along if rows.basis is None else rows.basis @ along)
        root = prior.posterior_root(U * np.sqrt(g), rows.basis)
        if rows.noise.variance is not None:
            return GaussianRegressionPosterior(mean, root, self.design, rows.noise.variance)
        a, b = rows.noise.at(beta, fits.rest[0] + g @ c**2, fits.size[0])
        return NormalInverseGammaPosterior(mean, root, float(a), float(b), self.design)

    def credible_levels(
        self, data: Data, weights: Array, theta: Array | None
    ) -> Callable[[float], Array]:
        """Return the levels of the ellipsoids that ``theta`` is on, in closed form."""
        prior = self.prior(self.features(data.X[:1]).shape[1])
        return linear_levels(self.rows(data), prior, data.weights, weights, theta)

    def information(self, data: Data) -> Information:
        """Return scores and curvature of the coefficients, at least squares, and the prior."""
        Z = self.features(data.X)
        prior, variance = self.prior(Z.shape[1]), self.noise.variance
        found = squared_information(Z, data.y, data.weights, variance, prior.root)
        return found._replace(prior_mean=prior.mean)

    def prior_information(self, data: Data) -> tuple[Array, Array]:
        """Return squared scores averaged over the prior, as expected and as observed."""
        Z, theta = self.features(data.X), self.information(data).minimiser
        prior, variance = self.prior(Z.shape[1]), self.noise.variance
        if variance is None:
            variance = fitted_variance(data.y - Z @ theta, data.weights / data.size)
            prior = GaussianPrior(prior.mean, np.sqrt(variance) * prior.root)
        return gaussian_prior_information(Z, data.y, prior, variance, theta)


class KnownVarianceRegression(GivenPrior):
    """Base of regressions with known noise variance; a subclass may define ``features``."""

    noise_variance: float

    def __post_init__(self) -> None:
        """Refuse a noise variance that is not positive."""
        positive("noise_variance", self.noise_variance)

    @property
    def noise(self) -> Noise:
        """The known variance."""
        return Noise(float(self.noise_variance))


@dataclass(frozen=True, eq=False)
class GaussianLinear(KnownVarianceRegression):
    r"""Linear regression with known noise variance s2.

    .. math::

        l(\theta, (z, y)) = \frac{(y - z'\theta)^2}{2 s_2} + \frac{\log 2 \pi s_2}{2}, \qquad
        \theta \sim N(\mu_0, S_0).

    With G and h the weighted means of ``zz'/s2`` and ``zy/s2`` the posterior has precision
    ``S_0^-1 + alpha G`` and mean ``(S_0^-1 + alpha G)^-1 (S_0^-1 mu_0 + alpha h)``.

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


@dataclass(frozen=True, eq=False)
class GaussianMean(KnownVarianceRegression):
    r"""The unknown mean of observations with known variance.

    It is :class:`GaussianLinear` on a column of ones.  The model has no inputs: pass ``None`` for
    ``X``.

    Examples
    --------
    >>> posterior = GaussianMean(noise_variance=1.0).posterior(None, [2.0, 4.0], alpha=2.0)
    >>> posterior.mean
    array([2.])
    """

    noise_variance: float = 1.0
    prior_mean: ArrayLike = 0.0
    prior_cov: ArrayLike = 1.0

    def design(self, X: ArrayLike | None) -> Array:
        """Return one column of ones, with a row for each row of ``X``; one row for ``None``."""
        return self.features(np.empty((1, 0)) if X is None else as_inputs(X))

    def features(self, inputs: Array) -> Array:
        """Return one column of ones."""
        return np.ones((len(inputs), 1))


@dataclass(frozen=True, eq=False)
class Polynomial(KnownVarianceRegression):
    r"""Regression on the powers 0, ..., n_powers - 1 of one input.

    .. math:: z = (1, x, ..., x^{p - 1}), \qquad \theta_k \sim N(0, 2^{-k}).

    Parameters
    ----------
    n_powers : int
        Number of columns p; the degree is ``n_powers - 1``.
    noise_variance : float
    prior_mean : float or array of shape (n_powers,)
    prior_cov : float, variances, matrix, or ``None`` for the variances ``2**-k``

    Examples
    --------
    >>> Polynomial(n_powers=3).design([2.0, 3.0])
    array([[1., 2., 4.],
           [1., 3., 9.]])
    """

    n_powers: int
    noise_variance: float = 1.0
    prior_mean: ArrayLike = 0.0
    prior_cov: ArrayLike | None = None

    def __post_init__(self) -> None:
        """Refuse fewer than one power."""
        super().__post_init__()
        whole("n_powers", self.n_powers, 1)

    def features(self, inputs: Array) -> Array:
        """Return the powers of the single input as rows."""
        if inputs.shape[1] != 1:
            raise ValueError(f"X must have one column for Polynomial, got {inputs.shape[1]}")
        what = f"n_powers={self.n_powers!r} for {len(inputs)} rows"
        refuse_too_large(what, COPIES * len(inputs) * min(self.n_powers, 10**100))
        with np.errstate(over="ignore", invalid="ignore"):
            powers = np.vander(inputs[:, 0], self.n_powers, increasing=True)
        if not np.isfinite(powers).all():
            raise ValueError(
                f"X must have finite powers up to {self.n_powers - 1}, got numbers up to "
                f"{float(np.abs(inputs).max())!r}"
            )
        return powers

    def prior(self, dimension: int) -> GaussianPrior:
        """Return the prior; its variances are 2^-k unless ``prior_cov`` is given."""
        if self.prior_cov is not None:
            return gaussian_prior(self.prior_mean, self.prior_cov, dimension)
        if dimension > MOST_HALVES:
            raise ValueError(
                f"n_powers must be at most {MOST_HALVES} for the prior variances 2^-k, got "
                f"{self.n_powers!r}; give prior_cov for more"
            )
        return gaussian_prior(self.prior_mean, 0.5 ** np.arange(dimension), dimension)


@dataclass(frozen=True, eq=False)
class NormalInverseGammaLinear(GivenPrior):
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

    def __post_init__(self) -> None:
        """Refuse an improper prior of the noise variance."""
        positive("a", self.a)
        positive("b", self.b)

    @property
    def noise(self) -> Noise:
        """The inverse gamma prior."""
        return Noise(None, float(self.a), float(self.b))


@dataclass(frozen=True, eq=False)
class HierarchicalLinear(LinearModel):
    r"""Linear regression averaged over the scale of its prior.

    .. math::

        l(\theta, s_2, (z, y)) = (y - z'\theta)^2 / (2 s_2) + \log(2 \pi s_2) / 2, \qquad
        \theta_j \mid s_2, \kappa \sim N(0, s_2 \kappa^2).

    Every training set, at every beta, weights the scales by their evidence; the posterior and its
    forecasts are mixtures.  With ``intercept`` the first column of X is constant, and the mean
    response at the centre of the training rows has a flat prior.

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
    [ 9.99  0.07 -0.01  0.04]
    """

    noise_variance: float | None = None
    a: float = 1.0
    b: float = 1.0
    scales: ArrayLike = SCALES
    intercept: bool = True

    def __post_init__(self) -> None:
        """Refuse an improper prior."""
        if self.noise_variance is not None:
            positive("noise_variance", self.noise_variance)
        positive("a", self.a)
        positive("b", self.b)
        one_of("intercept", self.intercept, (False, True))
        scales = as_numbers("scales", self.scales)
        if scales.ndim != 1 or not scales.size or not np.all((scales > 1e-50) & (scales < 1e50)):
            raise ValueError(
                f"scales must be positive numbers between 1e-50 and 1e50, got {self.scales!r}"
            )

    @property
    def noise(self) -> Noise:
        """The known variance, or the inverse gamma prior."""
        return Noise(self.noise_variance, float(self.a), float(self.b))

    def features(self, inputs: Array) -> Array:
        """Return the inputs; refuse them if they lack the intercept."""
        if self.intercept and (inputs.shape[1] == 0 or np.any(inputs[:, 0] != 1)):
            raise ValueError("X must begin with a column of ones, or intercept must be False")
        return inputs

    def prior(self, dimension: int) -> GaussianPrior:
        """Return the prior of the coefficients without their scale."""
        return gaussian_prior(0.0, 1.0, dimension)

    def rows(self, data: Data) -> LinearRows:
        """Return the columns whose coefficients share the prior."""
        inputs, basis = row_space(self.features(data.X)[:, int(self.intercept) :])
        kappas = np.asarray(self.scales, dtype=float) ** 2
        return LinearRows(inputs, data.y, self.intercept, self.noise, kappas, basis)

    def mixture(self, data: Data, weights: BetaWeights, table: HeldOut | None = None) -> Any:
        """Return the average of posteriors over beta, from one decomposition."""
        if self.intercept and weights.betas[0] <= 0:
            raise ValueError("alpha must be positive for an intercept of flat prior, got 0.0")
        rows = self.rows(data)
        every = LeftOut(rows, data.weights, data.weights, "predictive")
        parts, fits = engine.parts_of(every, weights.betas, weights.weights), every.decomposed[0]
        directions, centre = fits.directions[0], fits.centre[0]
        if rows.basis is not None:
            directions, centre = rows.basis @ directions, rows.basis @ centre
        return HierarchicalPosterior(centre, directions, parts, self.intercept, self.design)
