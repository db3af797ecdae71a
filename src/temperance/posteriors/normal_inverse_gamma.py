r"""The normal-inverse-gamma posterior: theta | s2 ~ N(m, s2 S), s2 ~ InverseGamma(a, b)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from temperance.data import Array
from temperance.forecasts import Forecast
from temperance.posteriors.covariance_root import CovarianceRoot


@dataclass(frozen=True, eq=False)
class NormalInverseGammaPosterior:
    r"""Joint posterior of coefficients and noise variance.

    Parameters
    ----------
    mean : array of shape (d,)
    root : the square root A of the scale matrix S = A A'
    a, b : shape and scale of the inverse gamma
    design : maps inputs to the rows z of the linear predictor
    """

    mean: Array
    root: CovarianceRoot
    a: float
    b: float
    design: Callable[[ArrayLike], Array]

    @cached_property
    def scale(self) -> Array:
        """The matrix S, shape (d, d): the covariance of theta in units of the noise variance.

        An error is raised if it does not fit into memory.
        """
        return self.root.product()

    @property
    def cov(self) -> Array:
        r"""Marginal covariance of theta, S b / (a - 1).

        For a <= 1 it is infinite, with the signs of S, and 0 where S is 0.
        """
        if self.a > 1:
            return self.scale * (self.b / (self.a - 1))
        signs = np.sign(self.scale)
        return np.multiply(signs, np.inf, out=np.zeros(signs.shape), where=signs != 0)

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> Array:
        """Return draws of (theta, s2), shape (size, d + 1): the noise variance is last."""
        rng = np.random.default_rng(seed)
        variance = self.b / rng.gamma(self.a, size=size)
        standard = rng.standard_normal((size, len(self.mean)))
        theta = self.mean + np.sqrt(variance)[:, None] * self.root.transform(standard)
        return np.column_stack([theta, variance])

    def log_prob(self, theta: ArrayLike) -> Any:
        """Return the log density at (theta, s2), of shape (d + 1,) or (..., d + 1)."""
        point = np.asarray(theta, dtype=float)
        deviation, variance = point[..., :-1] - self.mean, point[..., -1]
        d = len(self.mean)
        quadratic = self.root.squared_distances(deviation.reshape(-1, d)).reshape(variance.shape)
        log_scale = self.root.log_determinant
        log_variance = np.log(variance)
        normal = -0.5 * (quadratic / variance + d * (np.log(2 * np.pi) + log_variance)) - log_scale
        gamma = (
            self.a * np.log(self.b)
            - special.gammaln(self.a)
            - (self.a + 1) * log_variance
            - self.b / variance
        )
        return (normal + gamma)[()]

    def linear_predictor(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return mean of z'theta and its variance in units of the noise variance."""
        Z = self.design(X)
        if Z.shape[1] != len(self.mean):
            raise ValueError(f"X must have {len(self.mean)} columns, got {Z.shape[1]}")
        return Z @ self.mean, self.root.squared_lengths(Z)

    def marginals(self) -> Forecast:
        """Return the distribution of each coefficient, with 2a degrees of freedom."""
        scale = np.sqrt(self.b / self.a * self.root.variances())
        return Forecast.single(self.mean, scale, 2 * self.a)

    def combination(self, directions: Array) -> Forecast:
        """Return the distribution of ``directions`` (k, d) times theta, 2a degrees of freedom."""
        scale = np.sqrt(self.b / self.a * self.root.squared_lengths(directions))
        return Forecast.single(directions @ self.mean, scale, 2 * self.a)

    def predictive(self, X: ArrayLike) -> Forecast:
        r"""Return the distribution of a response: Student-t, 2a degrees, (b/a)(1 + z'Sz)."""
        mean, variance = self.linear_predictor(X)
        return Forecast.single(mean, np.sqrt(self.b / self.a * (1.0 + variance)), 2 * self.a)

    def predict(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return mean and standard deviation of a new response; infinite deviation if a <= 1."""
        forecast = self.predictive(X)
        return forecast.mean, forecast.std

    def sample_response(
        self, X: ArrayLike, size: int, seed: int | np.random.Generator | None = None
    ) -> Array:
        """Return draws of responses at ``X``, (size, n); each draw has one theta and s2."""
        rng = np.random.default_rng(seed)
        draws = self.sample(size, rng)
        return rng.normal(draws[:, :-1] @ self.design(X).T, np.sqrt(draws[:, -1:]))
