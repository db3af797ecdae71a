r"""Linear regression averaged over scales of its prior: a mixture with common directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from temperance.data import Array
from temperance.forecasts import Forecast
from temperance.posteriors.covariance_root import squares_across

NEGLIGIBLE = 1e-10  # weight below which a scale is left out
NEGLIGIBLE_PART = 1e-4  # weight below which a component is left out of an average over betas


@dataclass(frozen=True, eq=False)
class Parts:
    r"""k normal-inverse-gamma distributions of (level at a centre, slopes).

    Component k with noise variance s2 has slopes N(V m, s2 kappa (I - V diag(1 - q) V')) and,
    independent of them, the level N(l, s2 g).

    Parameters
    ----------
    weights : array of shape (k,), sum 1
    dof : array of shape (k,): 1 / s2 is gamma with shape dof / 2; infinite if s2 is known
    noise : array of shape (k,): 1 divided by the mean of 1 / s2
    scale : kappa, array of shape (k,)
    left : q, array of shape (k, r)
    mean : m, array of shape (k, r)
    level, level_variance : l and g, arrays of shape (k,)
    """

    weights: Array
    dof: Array
    noise: Array
    scale: Array
    left: Array
    mean: Array
    level: Array
    level_variance: Array

    def take(self, kept: Any) -> Parts:
        """Return some of the components, with weights normalised to sum 1."""
        some = Parts(*(getattr(self, name)[kept] for name in self.__dataclass_fields__))
        return replace(some, weights=some.weights / some.weights.sum())


def joined(weights: Array, parts: Sequence[Parts]) -> Parts:
    """Return a mixture of mixtures."""
    parts_of_all = Parts(
        *(np.concatenate([getattr(p, name) for p in parts]) for name in Parts.__dataclass_fields__)
    )
    outer = np.concatenate(
        [np.full(len(p.weights), w) for w, p in zip(weights, parts, strict=True)]
    )
    parts_of_all = replace(parts_of_all, weights=parts_of_all.weights * outer)
    return parts_of_all.take(parts_of_all.weights > NEGLIGIBLE_PART * parts_of_all.weights.max())


@dataclass(frozen=True, eq=False)
class HierarchicalPosterior:
    r"""Joint posterior of coefficients and noise variance, averaged over scales of the prior.

    Parameters
    ----------
    centre : array of shape (d,), at which the level is independent of the slopes
    directions : V, array of shape (d, r) with orthonormal columns
    parts : the components of the mixture
    intercept : whether rows begin with a 1; its coefficient is the level at 0
    design : maps inputs to the rows z of the linear predictor
    """

    centre: Array
    directions: Array
    parts: Parts
    intercept: bool
    design: Callable[[ArrayLike], Array]

    def mixed(self, weights: Array, others: Sequence[HierarchicalPosterior]) -> Any:
        """Return the mixture of this posterior and others of the same rows."""
        parts = [self.parts, *(other.parts for other in others)]
        return replace(self, parts=joined(weights, parts))

    @property
    def mean(self) -> Array:
        """Mean of the coefficients."""
        slopes = self.directions @ (self.parts.weights @ self.parts.mean)
        if not self.intercept:
            return slopes
        return np.append(self.parts.weights @ self.parts.level - slopes @ self.centre, slopes)

    @property
    def scale_weights(self) -> tuple[Array, Array]:
        """Prior standard deviations, in units of the noise's, and their weights."""
        scales, where = np.unique(self.parts.scale, return_inverse=True)
        return np.sqrt(scales), np.bincount(where, self.parts.weights).astype(float)

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> Array:
        """Return draws of the coefficients, (size, d); an unknown noise variance is last."""
        rng = np.random.default_rng(seed)
        theta, variance = self._draw(size, rng)
        return theta if self._known else np.column_stack([theta, variance])

    def log_prob(self, theta: ArrayLike) -> Any:
        """Return the log density at the coefficients, and the noise variance if unknown."""
        point = np.asarray(theta, dtype=float)
        flat = np.atleast_2d(point)
        parts = self.parts
        if self._known:
            slopes, log_variance = flat, np.log(parts.noise)[:, None]
            log_noise = 0.0
        else:
            slopes, log_variance = flat[:, :-1], np.log(flat[:, -1])[None]
            a = parts.dof[:, None] / 2
            b = a * parts.noise[:, None]
            log_noise = (
                a * np.log(b)
                - special.gammaln(a)
                - (a + 1) * log_variance
                - b / np.exp(log_variance)
            )
        level, slopes = self._level_and_slopes(slopes)
        along = slopes @ self.directions
        across = ((slopes - along @ self.directions.T) ** 2).sum(axis=1)
        d, scale = slopes.shape[1], parts.scale[:, None]
        inside = ((along[None] - parts.mean[:, None]) ** 2 / parts.left[:, None]).sum(axis=2)
        quadratic = (inside + across) / scale
        log_scale = 0.5 * (d * np.log(scale) + np.log(parts.left).sum(axis=1)[:, None])
        if self.intercept:
            quadratic = (
                quadratic + (level - parts.level[:, None]) ** 2 / parts.level_variance[:, None]
            )
            log_scale = log_scale + 0.5 * np.log(parts.level_variance)[:, None]
            d += 1
        normal = (
            -0.5 * (quadratic / np.exp(log_variance) + d * (np.log(2 * np.pi) + log_variance))
            - log_scale
        )
        total = special.logsumexp(normal + log_noise + np.log(parts.weights)[:, None], axis=0)
        return total.reshape(point.shape[:-1])[()]

    def linear_predictor(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return mean of z'theta and its variance in units of the noise variance, (parts, n)."""
        return self._combined(self._rows(X))

    def marginals(self) -> Forecast:
        """Return the distribution of each coefficient."""
        parts = self.parts
        inside = parts.left @ (self.directions**2).T
        variance = parts.scale[:, None] * (inside + squares_across(self.directions))
        if self.intercept:
            first = np.eye(1, 1 + len(self.centre))
            variance = np.hstack([self._combined(first)[1], variance])
        return self._law(self._means(), variance)

    def combination(self, directions: Array) -> Forecast:
        """Return the distribution of each row of ``directions`` (m, d) times theta."""
        return self._law(*self._combined(directions))

    def predictive(self, X: ArrayLike) -> Forecast:
        """Return the distribution of a new response at each row of ``X``."""
        mean, variance = self.linear_predictor(X)
        return self._law(mean, 1 + variance)

    def predict(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return mean and standard deviation of a new response."""
        forecast = self.predictive(X)
        return forecast.mean, forecast.std

    def sample_response(
        self, X: ArrayLike, size: int, seed: int | np.random.Generator | None = None
    ) -> Array:
        """Return draws of responses at ``X``, (size, n); each draw has one theta and s2."""
        rng = np.random.default_rng(seed)
        theta, variance = self._draw(size, rng)
        return rng.normal(theta @ self._rows(X).T, np.sqrt(variance)[:, None])

    @property
    def _known(self) -> bool:
        return bool(np.isinf(self.parts.dof[0]))

    def _rows(self, X: ArrayLike) -> Array:
        Z, width = self.design(X), len(self.centre) + int(self.intercept)
        if Z.shape[1] != width:
            raise ValueError(f"X must have {width} columns, got {Z.shape[1]}")
        return Z

    def _level_and_slopes(self, theta: Array) -> tuple[Array, Array]:
        """Return the level at the centre and the slopes of coefficients (m, d)."""
        if not self.intercept:
            return np.zeros(len(theta)), theta
        return theta[:, 0] + theta[:, 1:] @ self.centre, theta[:, 1:]

    def _means(self) -> Array:
        """Return the means of the coefficients, (parts, d)."""
        slopes = self.parts.mean @ self.directions.T
        if not self.intercept:
            return slopes
        return np.column_stack([self.parts.level - slopes @ self.centre, slopes])

    def _combined(self, Z: Array) -> tuple[Array, Array]:
        """Return mean and variance of z'theta, (parts, rows) each."""
        parts = self.parts
        constant = Z[:, 0] if self.intercept else np.zeros(len(Z))
        away = Z[:, 1:] - np.outer(constant, self.centre) if self.intercept else Z
        along = away @ self.directions
        across = ((away - along @ self.directions.T) ** 2).sum(axis=1)
        mean = np.outer(parts.level, constant) + parts.mean @ along.T
        inside = parts.left @ (along**2).T + across
        level = np.outer(parts.level_variance, constant**2)
        return mean, parts.scale[:, None] * inside + level

    def _law(self, mean: Array, variance: Array) -> Forecast:
        parts = self.parts
        scale = np.sqrt(parts.noise[:, None] * variance)
        return Forecast(mean, scale, parts.dof, parts.weights)

    def _draw(self, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        parts = self.parts
        which = rng.choice(len(parts.weights), size, p=parts.weights)
        variance = parts.noise[which]
        if not self._known:
            half = parts.dof[which] / 2
            variance = variance * half / rng.gamma(half)
        standard = rng.standard_normal((size, len(self.centre)))
        along = standard @ self.directions
        shrunk = standard + (along * (np.sqrt(parts.left[which]) - 1)) @ self.directions.T
        deviation = np.sqrt(variance * parts.scale[which])[:, None] * shrunk
        slopes = parts.mean[which] @ self.directions.T + deviation
        if not self.intercept:
            return slopes, variance
        spread = np.sqrt(variance * parts.level_variance[which])
        level = parts.level[which] + spread * rng.standard_normal(size)
        return np.column_stack([level - slopes @ self.centre, slopes]), variance
