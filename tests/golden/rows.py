"""Rows for the problems: the settings of the thesis, and others that are hard in some way.

They are drawn here, by numpy alone, so that nothing but the calibrations themselves can change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Array]


class Rows(NamedTuple):
    """Inputs, responses and weights."""

    X: Array | None
    y: Array
    weights: Array | None = None

    def with_weights(self, weights: Array) -> Rows:
        """Return the same rows with weights."""
        return self._replace(weights=np.asarray(weights, dtype=float))

    def repeated(self, counts: Array) -> Rows:
        """Return the rows, each as many times as it counts."""
        return Rows(np.repeat(self.X, counts, axis=0), np.repeat(self.y, counts))

    def in_units(self, columns: Array, response: float) -> Rows:
        """Return the rows with columns and response in other units."""
        return Rows(self.X * columns, self.y * response)

    @property
    def new(self) -> Array | None:
        """Two rows to forecast: the middle of the first two, and the last."""
        return None if self.X is None else np.array([(self.X[0] + self.X[1]) / 2, self.X[-1]])


def normal(variance: float) -> Noise:
    """Return normal noise."""
    return lambda rng, n: np.sqrt(variance) * rng.standard_normal(n)


def mixture(rng: np.random.Generator, n: int) -> Array:
    """Draw noise whose variance is 0.1 in about half of the rows, and 12 in the others."""
    chosen = np.where(rng.random(n) < 0.5, 0.1, 12.0)
    return np.sqrt(chosen) * rng.standard_normal(n)


def uniform(rng: np.random.Generator, n: int) -> Array:
    """Draw uniform noise."""
    return rng.uniform(-4.5, 4.5, n)


def heavy(scale: float) -> Noise:
    """Return noise with heavy tails."""
    return lambda rng, n: scale * rng.standard_t(3.0, n)


def in_groups(groups: int) -> Noise:
    """Return noise of consecutive rows that share most of it."""

    def noise(rng: np.random.Generator, n: int) -> Array:
        shared = rng.standard_normal(groups).repeat(n // groups)
        return shared + 0.5 * rng.standard_normal(n)

    return noise


def linear(n: int, d: int, noise: Noise, scale: float = 1.0, seed: int = 0) -> Rows:
    """Draw rows z = (1, scale N(0, I)) and y = z'theta + noise, with theta ~ N(0, I)."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), scale * rng.standard_normal((n, d - 1))])
    return Rows(X, X @ coefficients(d) + noise(rng, n))


def coefficients(d: int) -> Array:
    """Return theta, which is the same for all rows of d columns."""
    return np.random.default_rng(0).standard_normal(d)


def around_a_mean(n: int, variance: float, seed: int = 0) -> Rows:
    """Draw responses around one mean, without inputs."""
    rng = np.random.default_rng(seed)
    return Rows(None, coefficients(1)[0] + np.sqrt(variance) * rng.standard_normal(n))


def parabola(n: int, variance: float, seed: int = 0) -> Rows:
    """Draw y = x^2 + 5 + noise at x uniform on [-1, 1]."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, n)
    return Rows(x[:, None], x**2 + 5 + np.sqrt(variance) * rng.standard_normal(n))


def labels(n: int, d: int, scale: float = 0.5, seed: int = 0, flipped: float = 0.0) -> Rows:
    """Draw labels 0 and 1 of a logistic model, and flip a share of them."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), scale * rng.standard_normal((n, d - 1))])
    y = rng.random(n) < 1 / (1 + np.exp(-X @ coefficients(d)))
    return Rows(X, (y ^ (rng.random(n) < flipped)).astype(float))


def classes(n: int, d: int, count: int, seed: int = 0) -> Rows:
    """Draw several classes of a softmax model."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.standard_normal((n, d - 1))])
    logits = X @ coefficients(d * count).reshape(d, count) + rng.gumbel(size=(n, count))
    return Rows(X, logits.argmax(axis=1).astype(float))


def counts(n: int, d: int, seed: int = 0) -> Rows:
    """Draw counts with a log link; the last column is the logarithm of an exposure."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), 0.4 * rng.standard_normal((n, d - 2)), rng.uniform(0, 2, n)])
    # Of variance larger than a Poisson's.
    rate = np.exp(X[:, :-1] @ (0.5 * coefficients(d - 1)) + X[:, -1]) * rng.gamma(2.0, 0.5, n)
    return Rows(X, rng.poisson(rate).astype(float))


def few_values(n: int, seed: int = 0) -> Rows:
    """Draw inputs and responses of a few values: equal rows are different observations."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.integers(0, 3, n)])
    return Rows(X, np.round(X[:, 1] + rng.standard_normal(n)))


def log_likelihood(n: int, draws: int, variance: float, seed: int = 0) -> Array:
    """Return log likelihoods (4 chains, draws, n) of draws of one mean, under noise variance 1."""
    rng = np.random.default_rng(seed)
    y = 1.0 + np.sqrt(variance) * rng.standard_normal(n)
    theta = rng.normal(y.sum() / (n + 1), (n + 1) ** -0.5, size=(4, draws, 1))
    return -0.5 * (y - theta) ** 2 - 0.5 * np.log(2 * np.pi)


class GroupsApart:
    """A splitter like those of scikit-learn: the groups k, k + parts, ... are tested together."""

    def __init__(self, parts: int) -> None:
        self.parts = parts

    def split(self, X: Any, y: Any, groups: Any) -> Iterator[tuple[Any, Any]]:
        """Return indices of training and test rows."""
        part = np.asarray(groups) % self.parts
        for k in range(self.parts):
            yield np.flatnonzero(part != k), np.flatnonzero(part == k)
