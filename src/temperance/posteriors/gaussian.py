r"""The Gaussian posterior N(m, S), for real and for binary responses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temperance.data import Array
from temperance.forecasts import Forecast
from temperance.posteriors.covariance_root import CovarianceRoot
from temperance.quadrature import log_expected_sigmoid


@dataclass(frozen=True, eq=False)
class GaussianPosterior:
    r"""N(mean, A A').

    Parameters
    ----------
    mean : array of shape (d,)
    root : the square root A of the covariance
    design : maps inputs to the rows z of the linear predictor z'theta

    Examples
    --------
    >>> import numpy as np
    >>> root = CovarianceRoot(np.array([1.0, 2.0]))
    >>> posterior = GaussianPosterior(np.zeros(2), root, np.asarray)
    >>> posterior.cov
    array([[1., 0.],
           [0., 4.]])
    """

    mean: Array
    root: CovarianceRoot
    design: Callable[[ArrayLike], Array]

    @cached_property
    def cov(self) -> Array:
        """Covariance, shape (d, d); an error if it does not fit into memory."""
        return self.root.product()

    @property
    def std(self) -> Array:
        """Standard deviation of each coefficient, shape (d,)."""
        return np.sqrt(self.root.variances())

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> Array:
        """Return ``size`` draws of the coefficients, shape (size, d)."""
        rng = np.random.default_rng(seed)
        return self.mean + self.root.transform(rng.standard_normal((size, len(self.mean))))

    def log_prob(self, theta: ArrayLike) -> Any:
        """Return the log density at ``theta``, of shape (d,) or (..., d)."""
        deviation = np.asarray(theta, dtype=float) - self.mean
        squares = self.root.squared_distances(deviation.reshape(-1, len(self.mean)))
        quadratic = squares.reshape(deviation.shape[:-1])
        constant = 0.5 * len(self.mean) * np.log(2 * np.pi) + self.root.log_determinant
        return (-0.5 * quadratic - constant)[()]

    def marginals(self) -> Forecast:
        """Return the distribution of each coefficient: Gaussian."""
        return Forecast.single(self.mean, self.std)

    def combination(self, directions: Array) -> Forecast:
        """Return the distribution of each row of ``directions`` (k, d) times theta."""
        return Forecast.single(
            directions @ self.mean, np.sqrt(self.root.squared_lengths(directions))
        )

    def linear_predictor(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return mean and variance of z'theta for each row of ``X``."""
        Z = self.design(X)
        if Z.shape[1] != len(self.mean):
            raise ValueError(f"X must have {len(self.mean)} columns, got {Z.shape[1]}")
        return Z @ self.mean, self.root.squared_lengths(Z)


@dataclass(frozen=True, eq=False)
class GaussianRegressionPosterior(GaussianPosterior):
    """Gaussian coefficients of a response with known noise variance."""

    noise_variance: float = 1.0

    def predictive(self, X: ArrayLike) -> Forecast:
        """Return the distribution of a new response at each row of ``X``: Gaussian."""
        mean, variance = self.linear_predictor(X)
        return Forecast.single(mean, np.sqrt(self.noise_variance + variance))

    def predict(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return mean and standard deviation of a new response at each row of ``X``."""
        forecast = self.predictive(X)
        return forecast.mean, forecast.std

    def sample_response(
        self, X: ArrayLike, size: int, seed: int | np.random.Generator | None = None
    ) -> Array:
        """Return draws of new responses at ``X``, shape (size, n); each draw has one theta."""
        rng = np.random.default_rng(seed)
        noise_free = self.sample(size, rng) @ self.design(X).T
        return rng.normal(noise_free, np.sqrt(self.noise_variance))


@dataclass(frozen=True, eq=False)
class LogisticPosterior(GaussianPosterior):
    """Gaussian coefficients of a binary response."""

    def log_predict(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return log probabilities of the classes 0 and 1, accurate where ``predict`` rounds."""
        mean, variance = self.linear_predictor(X)
        return log_expected_sigmoid(-mean, variance), log_expected_sigmoid(mean, variance)

    def predict(self, X: ArrayLike) -> Array:
        """Return the probability of class 1 at ``X``: the posterior expectation, by quadrature."""
        return np.exp(log_expected_sigmoid(*self.linear_predictor(X)))
