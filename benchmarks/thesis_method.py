r"""The thesis' way to calibrate, written as its pseudocode says, in vectorised numpy.

L. Perrotta, Practical calibration of the temperature parameter in Gibbs posteriors, 2020,
arXiv:2004.10522.  At each of 300 steps of stochastic gradient descent the posterior of every pair
of train and test rows is fitted at the current alpha, sampled, and

    dR/dalpha  is estimated by  -Cov[r_train(theta), r_test(theta)]

over the draws.  Where the risk is a closed form (linear models, all but the bootstrap) the thesis
hands it to scipy.optimize instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import special
from scipy.optimize import minimize_scalar

STEPS = 300  # of the descent in alpha
DRAWS = 2000  # per estimate of the slope, as in the thesis' figure of the curves
RESAMPLES = 1000
BACKPROP_STEPS = 200
EM_STEPS = 10  # the published code took 5 to 30

Rows = tuple[np.ndarray, np.ndarray]
Pair = tuple[Rows, Rows]


@dataclass(frozen=True)
class KnownVariance:
    """Linear regression with unit noise; prior N(0, I)."""

    def fit(self, X: np.ndarray, y: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and covariance."""
        cov = np.linalg.inv(np.eye(X.shape[1]) + alpha / len(y) * X.T @ X)
        return cov @ X.T @ y * (alpha / len(y)), cov

    def draw(self, X: np.ndarray, y: np.ndarray, alpha: float, rng: np.random.Generator):
        """Sample the posterior."""
        mean, cov = self.fit(X, y, alpha)
        root = np.linalg.cholesky(cov)
        return mean + rng.standard_normal((DRAWS, len(mean))) @ root.T

    def risk(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the mean loss of each draw."""
        return 0.5 * ((y - theta @ X.T) ** 2).mean(axis=1)

    def expected_risk(self, train: Rows, test: Rows, alpha: float) -> float:
        """Return the closed form."""
        mean, cov = self.fit(*train, alpha)
        X, y = test
        return float(0.5 * ((y - X @ mean) ** 2 + ((X @ cov) * X).sum(axis=1)).mean())


@dataclass(frozen=True)
class UnknownVariance:
    """Linear regression whose variance is inverse gamma (2, 2)."""

    a: float = 2.0
    b: float = 2.0

    def fit(self, X: np.ndarray, y: np.ndarray, alpha: float):
        """Return mean, covariance in units of the variance, shape and scale."""
        precision = np.eye(X.shape[1]) + alpha / len(y) * X.T @ X
        cov = np.linalg.inv(precision)
        mean = cov @ X.T @ y * (alpha / len(y))
        quadratic = alpha * (y @ y) / len(y) - mean @ precision @ mean
        return mean, cov, self.a + alpha / 2, self.b + quadratic / 2

    def draw(self, X: np.ndarray, y: np.ndarray, alpha: float, rng: np.random.Generator):
        """Sample coefficients and, in the last column, the variance."""
        mean, cov, a, b = self.fit(X, y, alpha)
        variance = b / rng.gamma(a, size=(DRAWS, 1))
        root = np.linalg.cholesky(cov)
        noise = rng.standard_normal((DRAWS, len(mean))) @ root.T
        return np.hstack([mean + np.sqrt(variance) * noise, variance])

    def risk(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the mean loss of each draw."""
        variance = theta[:, -1]
        square = ((y - theta[:, :-1] @ X.T) ** 2).mean(axis=1)
        return 0.5 * (square / variance + np.log(2 * np.pi * variance))

    def expected_risk(self, train: Rows, test: Rows, alpha: float) -> float:
        """Return the closed form, with the thesis' moments put right."""
        mean, cov, a, b = self.fit(*train, alpha)
        X, y = test
        square, spread = (y - X @ mean) ** 2, ((X @ cov) * X).sum(axis=1)
        constant = np.log(2 * np.pi * b) - special.digamma(a)
        return float(0.5 * ((a / b * square + spread).mean() + constant))


class Logistic:
    """What both logistic models share."""

    def fit(self, X: np.ndarray, y: np.ndarray, alpha: float, rng: np.random.Generator):
        """Return the mean and a root of the covariance."""
        raise NotImplementedError

    def draw(self, X: np.ndarray, y: np.ndarray, alpha: float, rng: np.random.Generator):
        """Sample the Gaussian posterior."""
        mean, root = self.fit(X, y, alpha, rng)
        noise = rng.standard_normal((DRAWS, len(mean)))
        return mean + (noise * root if root.ndim == 1 else noise @ root.T)

    def risk(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the mean loss of each draw."""
        odds = theta @ X.T
        return (np.logaddexp(0.0, odds) - y * odds).mean(axis=1)


class Jaakkola(Logistic):
    """A bound on the likelihood, by expectation-maximisation."""

    def fit(self, X: np.ndarray, y: np.ndarray, alpha: float, rng: np.random.Generator):
        """Iterate between the posterior and the variational parameters."""
        weight = alpha / len(y)
        v = np.ones(len(y))
        for _ in range(EM_STEPS):
            lam = (special.expit(v) - 0.5) / (2 * v)
            cov = np.linalg.inv(np.eye(X.shape[1]) + 2 * weight * (X.T * lam) @ X)
            mean = cov @ (X.T @ (y - 0.5)) * weight
            v = np.sqrt(((X @ (cov + np.outer(mean, mean))) * X).sum(axis=1))
        return mean, np.linalg.cholesky(cov)


class Backprop(Logistic):
    """Bayes by Backprop: stochastic gradients of the evidence bound, with gradients by hand."""

    def fit(self, X: np.ndarray, y: np.ndarray, alpha: float, rng: np.random.Generator):
        """Descend with an inverse-square-root rate."""
        mean, rho = np.zeros(X.shape[1]), np.full(X.shape[1], -1.0)
        for step in range(1, BACKPROP_STEPS + 1):
            noise = rng.standard_normal(len(mean))
            deviation = np.logaddexp(0.0, rho)
            theta = mean + deviation * noise
            slope = alpha / len(y) * X.T @ (special.expit(X @ theta) - y) + theta
            rate = 0.01 / np.sqrt(step)
            mean = mean - rate * slope
            rho = rho - rate * (slope * noise - 1 / deviation) * special.expit(rho)
        return mean, np.logaddexp(0.0, rho)


def pairs(strategy: str, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Iterator[Pair]:
    """Yield the train and test rows of one step."""
    n = len(y)
    if strategy == "naive":
        yield (X, y), (X, y)
    elif strategy == "sample splitting":
        yield (X[: n // 2], y[: n // 2]), (X[n // 2 :], y[n // 2 :])
    elif strategy == "SafeBayes":
        for t in range(1, n):
            yield (X[:t], y[:t]), (X[t : t + 1], y[t : t + 1])
    else:
        for _ in range(RESAMPLES):
            rows = rng.integers(n, size=n)
            yield (X[rows], y[rows]), (X, y)


def slope(model, train: Rows, test: Rows, alpha: float, rng: np.random.Generator) -> float:
    """Estimate the slope of one pair's risk."""
    theta = model.draw(*train, alpha, rng)
    known = model.risk(theta, *train)
    new = known if test[0] is train[0] else model.risk(theta, *test)
    return float(known.mean() * new.mean() - (known * new).mean())


def descend(
    model, strategy: str, X: np.ndarray, y: np.ndarray, rng: np.random.Generator, steps: int = STEPS
) -> float:
    """Calibrate by stochastic gradient descent; return alpha."""
    n = len(y)
    alpha = float(n)
    for step in range(1, steps + 1):
        slopes = [slope(model, *pair, alpha, rng) for pair in pairs(strategy, X, y, rng)]
        alpha = float(np.clip(alpha - n / np.sqrt(step) * np.mean(slopes) * n, 1e-3, 3 * n))
    return alpha


def optimise(model, strategy: str, X: np.ndarray, y: np.ndarray) -> float:
    """Calibrate a closed form by scipy.optimize; return alpha."""
    every = list(pairs(strategy, X, y, np.random.default_rng(0)))

    def risk(alpha: float) -> float:
        return sum(model.expected_risk(*pair, alpha) for pair in every)

    return float(minimize_scalar(risk, bounds=(0.0, 3.0 * len(y)), method="bounded").x)


def time_of_descent(
    model, strategy: str, X: np.ndarray, y: np.ndarray, clock: Callable, sample: int = 6
) -> float:
    """Carry the time of some pairs, spread over all, to 300 steps of all pairs."""
    rng = np.random.default_rng(0)
    count = {"naive": 1, "sample splitting": 1, "SafeBayes": len(y) - 1}.get(strategy, RESAMPLES)
    wanted = set(np.linspace(0, count - 1, min(sample, count)).astype(int).tolist())
    chosen = [pair for at, pair in enumerate(pairs(strategy, X, y, rng)) if at in wanted]
    repeats = -(-sample // len(chosen))

    def some() -> None:
        for _ in range(repeats):
            for pair in chosen:
                slope(model, *pair, float(len(y)), rng)

    some()
    return min(clock(some) for _ in range(2)) / (repeats * len(chosen)) * count * STEPS
