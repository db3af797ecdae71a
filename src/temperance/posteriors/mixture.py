r"""Finite mixtures of posteriors of one kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from temperance.data import Array
from temperance.forecasts import Forecast


@dataclass(frozen=True, eq=False)
class MixturePosterior:
    """A mixture of posteriors of one kind.

    Parameters
    ----------
    weights : array of shape (parts,), positive with sum 1
    parts : the posteriors
    """

    weights: Array
    parts: Sequence[Any]

    @property
    def mean(self) -> Array:
        """Mean of the coefficients."""
        return self.weights @ np.array([part.mean for part in self.parts])

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> Array:
        """Return ``size`` draws of the parameters, shuffled."""
        rng = np.random.default_rng(seed)
        return rng.permutation(
            np.concatenate(self._draws(size, rng, lambda p, k: p.sample(k, rng)))
        )

    def log_prob(self, theta: ArrayLike) -> Any:
        """Return the log density at ``theta``."""
        parts = np.array([part.log_prob(theta) for part in self.parts])
        return special.logsumexp(parts.T + np.log(self.weights), axis=-1).T[()]

    def marginals(self) -> Forecast:
        """Return the distribution of each coefficient."""
        return _mixed_laws(self.weights, [part.marginals() for part in self.parts])

    def combination(self, directions: Array) -> Forecast:
        """Return the distribution of each row of ``directions`` (k, d) times theta."""
        return _mixed_laws(self.weights, [p.combination(directions) for p in self.parts])

    def predictive(self, X: ArrayLike) -> Any:
        """Return the distribution of a new response at each row of ``X``, for regressions."""
        return _mixed_laws(self.weights, [part.predictive(X) for part in self.parts])

    def log_predict(self, X: ArrayLike) -> tuple[Array, ...]:
        """Return log probabilities of the classes, for classifications."""
        parts = np.array([part.log_predict(X) for part in self.parts])  # (parts, classes, n)
        log_weights = np.log(self.weights)[:, None, None]
        return tuple(special.logsumexp(parts + log_weights, axis=0))

    def predict(self, X: ArrayLike) -> Any:
        """Return mean and deviation of a response, or the mean of the parts' predictions."""
        if hasattr(self.parts[0], "predictive"):
            law = self.predictive(X)
            return law.mean, law.std
        found = [part.predict(X) for part in self.parts]
        if not isinstance(found[0], tuple):
            return sum(w * each for w, each in zip(self.weights, found, strict=True))
        means, stds = (np.array(each) for each in zip(*found, strict=True))
        mean = np.tensordot(self.weights, means, 1)
        return mean, np.sqrt(np.tensordot(self.weights, stds**2 + (means - mean) ** 2, 1))

    def sample_response(
        self, X: ArrayLike, size: int, seed: int | np.random.Generator | None = None
    ) -> Array:
        """Return draws of new responses at the rows of ``X``, shape (size, n), for regressions."""
        rng = np.random.default_rng(seed)
        draws = self._draws(size, rng, lambda part, k: part.sample_response(X, k, rng))
        return rng.permutation(np.concatenate(draws))

    def _draws(
        self, size: int, rng: np.random.Generator, draw: Callable[[Any, int], Array]
    ) -> list[Array]:
        counts = rng.multinomial(size, self.weights)
        return [draw(part, int(k)) for part, k in zip(self.parts, counts, strict=True) if k]


def _mixed_laws(weights: Array, laws: Sequence[Any]) -> Any:
    return laws[0].mixed(weights, laws[1:])


def mixed(weights: Array, posteriors: Sequence[Any]) -> Any:
    """Return the mixture of posteriors, by their method ``mixed`` if they have one."""
    if len(posteriors) == 1:
        return posteriors[0]
    first, *others = posteriors
    if hasattr(first, "mixed"):
        return first.mixed(weights, others)
    return MixturePosterior(weights, tuple(posteriors))
