r"""Gaussian coefficients under any loss of the linear predictor, and forecasts by likelihoods.

A new response y has the law of the likelihood with the predictor u ~ N(mu, v), or a mixture of such
Gaussians:

    P(Y <= y) = E F(y | u),     p(y) = E exp(-l(u, y)).

Expectations over u are sums over evenly spaced nodes, which converge geometrically for functions as
smooth as these: with steps of h deviations s the error is about exp(y^2 / 2 - 2 pi y / h) for
functions that are analytic up to a distance y s from the real line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from temperance.checks import as_inputs, open_units
from temperance.data import Array
from temperance.forecasts import central_interval, invert
from temperance.losses.base import Loss
from temperance.posteriors.gaussian import GaussianPosterior

NODES = np.linspace(-7.2, 7.2, 97)  # deviations of a predictor
SHARES = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()
WIDE, STEP = 4.0, 4  # every fourth node suffices for laws that are smooth over four deviations
MOST_DOUBLINGS = 200


@dataclass(frozen=True, eq=False)
class PredictorPosterior(GaussianPosterior):
    """Gaussian coefficients under a loss of the linear predictor."""

    loss: Loss
    offset: Callable[[Array], Array]

    def linear_predictor(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return mean and variance of the predictor for each row of ``X``."""
        mean, variance = super().linear_predictor(X)
        return mean + self.offset(as_inputs(X)), variance

    def predict(self, X: ArrayLike) -> Any:
        """Return mean and standard deviation of the predictor at each row of ``X``."""
        mean, variance = self.linear_predictor(X)
        return mean, np.sqrt(variance)

    def sample_predictor(
        self, X: ArrayLike, size: int, seed: int | np.random.Generator | None = None
    ) -> Array:
        """Return draws of the predictors at ``X``, shape (size, n); each draw has one theta."""
        rng = np.random.default_rng(seed)
        return self.sample(size, rng) @ self.design(X).T + self.offset(as_inputs(X))


@dataclass(frozen=True, eq=False)
class ClassPosterior(PredictorPosterior):
    """Gaussian coefficients of a binary response."""

    def log_predict(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return log probabilities of the classes 0 and 1."""
        mean, variance = self.linear_predictor(X)
        zeros = np.zeros_like(mean)
        return (
            self.loss.log_predictive(mean, variance, zeros)[0],
            self.loss.log_predictive(mean, variance, zeros + 1)[0],
        )

    def predict(self, X: ArrayLike) -> Array:
        """Return the probability of class 1 at ``X``: the posterior expectation."""
        return np.exp(self.log_predict(X)[1])


@dataclass(frozen=True, eq=False)
class ResponsePosterior(PredictorPosterior):
    """Gaussian coefficients of a response with a likelihood."""

    def predictive(self, X: ArrayLike) -> ResponseLaw:
        """Return the distribution of a new response at each row of ``X``."""
        mean, variance = self.linear_predictor(X)
        return ResponseLaw(self.loss, np.ones(1), mean[None], np.sqrt(variance)[None])

    def predict(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return mean and standard deviation of a new response at each row of ``X``."""
        law = self.predictive(X)
        return law.mean, law.std

    def sample_response(
        self, X: ArrayLike, size: int, seed: int | np.random.Generator | None = None
    ) -> Array:
        """Return draws of new responses at ``X``, shape (size, n); each draw has one theta."""
        rng = np.random.default_rng(seed)
        return self.loss.sample(self.sample_predictor(X, size, rng), rng)


@dataclass(frozen=True, eq=False)
class ResponseLaw:
    r"""Distributions of n responses whose predictors are mixtures of Gaussians.

    Parameters
    ----------
    loss : Loss
        A likelihood.
    weights : array of shape (parts,), positive with sum 1
    location, scale : arrays of shape (parts, n)
        Means and standard deviations of the predictors.
    """

    loss: Loss
    weights: Array
    location: Array
    scale: Array

    @property
    def mean(self) -> Array:
        """Mean of each response."""
        return self._expectation(self.loss.response_mean)

    @property
    def std(self) -> Array:
        """Standard deviation of each response."""
        mean = self.mean
        squares = self._expectation(
            lambda u: self.loss.response_variance(u) + (self.loss.response_mean(u) - mean) ** 2
        )
        return np.sqrt(squares)

    def cdf(self, value: ArrayLike) -> Array:
        """Return the probability of at most ``value``."""
        at = np.asarray(value, dtype=float)
        return self._expectation(lambda u: self.loss.cdf(u, at))

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log density, or probability, at ``value``."""
        at = np.broadcast_to(np.asarray(value, dtype=float), self.location.shape[1:])
        logs = [
            self.loss.log_predictive(location, scale**2, at)[0]
            for location, scale in zip(self.location, self.scale, strict=True)
        ]
        return special.logsumexp(np.array(logs).T + np.log(self.weights), axis=-1).T

    def quantile(self, q: ArrayLike) -> Array:
        """Return the quantiles of order q: (n,), or (levels, n) for several q.

        The search starts at those of the Gaussian with the same mean and variance.
        """
        goal = open_units("q", q)[..., None]
        if self.loss.discrete:
            return _first_whole(self.cdf, goal, *self._doubled(goal))

        def density(value: Array) -> Array:
            return self._expectation(lambda u: np.exp(-self.loss.value(u, value)))

        mean, std, odds = self.mean, self.std, goal / (1 - goal)
        # Cantelli's inequality.
        bracket: tuple[Array, Array] = mean - std / np.sqrt(odds), mean + std * np.sqrt(odds)
        if not np.isfinite(std).all():
            bracket = self._doubled(goal)
        start = np.clip(mean + self._width() * special.ndtri(goal), *bracket)
        unit = np.maximum(self.loss.unit(np.zeros(1)), np.abs(start - mean))
        return invert(self.cdf, density, goal, bracket, start, unit)

    def interval(self, level: ArrayLike = 0.95) -> Array:
        """Return the ends of central intervals: (n, 2), or (levels, n, 2) for several levels."""
        return central_interval(self, level)

    def mixed(self, weights: Array, others: Sequence[ResponseLaw]) -> ResponseLaw:
        """Return the mixture of this law and others."""
        laws = [self, *others]
        return ResponseLaw(
            self.loss,
            np.concatenate([w * law.weights for w, law in zip(weights, laws, strict=True)]),
            np.concatenate([law.location for law in laws]),
            np.concatenate([law.scale for law in laws]),
        )

    def _doubled(self, goal: Array) -> tuple[Array, Array]:
        """Return values below and above the quantiles, by doubling steps from the mean."""
        step = np.full(np.broadcast_shapes(goal.shape, self.location.shape[1:]), 1.0)
        step *= self._width()
        low = np.broadcast_to(self.mean, step.shape) - step
        high = low + 2 * step
        for _ in range(MOST_DOUBLINGS):
            lower, higher = self.cdf(low) >= goal, self.cdf(high) < goal
            if not lower.any() and not higher.any():
                break
            step *= 2
            low, high = np.where(lower, low - step, low), np.where(higher, high + step, high)
        return low, high

    def _width(self) -> Array:
        """Return a standard deviation, or the unit of the loss where there is none."""
        std = self.std
        return np.where(np.isfinite(std), std, self.loss.unit(np.zeros(1))) + 1e-300

    def _expectation(self, function: Callable[[Array], Array]) -> Array:
        """Return the expectation of a function of the predictors."""
        return sum(
            weight * share * function(location + node * scale)
            for weight, location, scale in zip(self.weights, self.location, self.scale, strict=True)
            for node, share in self._nodes(scale)
        )

    def _nodes(self, scale: Array) -> Iterable[tuple[float, float]]:
        """Return nodes and shares: a quarter of them where the law is much wider than the scale."""
        known = self.loss.location and type(self.loss).bends is not Loss.bends
        if known and np.all(WIDE * scale <= self.loss.bends(np.zeros(1))[1]):
            return zip(NODES[::STEP], SHARES[::STEP] / SHARES[::STEP].sum(), strict=True)
        return zip(NODES, SHARES, strict=True)


def _first_whole(cdf: Callable[[Array], Array], goal: Array, low: Array, high: Array) -> Array:
    """Return the smallest whole numbers at which a distribution function reaches the goal."""
    low, high = np.floor(low), np.ceil(high)
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        reached = cdf(middle) >= goal
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high
