r"""Finite mixtures of Student-t or Gaussian distributions, and of posteriors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from temperance.checks import open_units
from temperance.data import Array
from temperance.posteriors.student import StudentT, central_interval

STEPS = 100  # of the search for a quantile, at most
PRECISION = 1e-10  # of a quantile, relative to the widest component or the distance from the mean
ROUNDING = 16  # units of the last digit, within which sums of many terms are right


@dataclass(frozen=True, eq=False)
class StudentMixture:
    r"""Distributions of n numbers, each sum_k weights_k StudentT(location_k, scale_k, dof_k).

    Parameters
    ----------
    weights : array of shape (parts,), positive with sum 1
    location, scale : arrays of shape (parts, n)
    dof : array of shape (parts,)
        Degrees of freedom; infinite for Gaussian parts.

    Examples
    --------
    >>> import numpy as np
    >>> location = np.array([[-1.0], [1.0]])
    >>> law = StudentMixture(np.full(2, 0.5), location, np.ones((2, 1)), np.full(2, np.inf))
    >>> print(law.mean, law.std.round(3), law.interval(0.95).round(3))
    [0.] [1.414] [[-2.646  2.646]]
    """

    weights: Array
    location: Array
    scale: Array
    dof: Array

    @property
    def mean(self) -> Array:
        """Mean of each number."""
        return self.weights @ self.location

    @property
    def std(self) -> Array:
        """Standard deviation; infinite if a component has two degrees of freedom or fewer."""
        spread = np.array([law.std for law in self._laws])
        return np.sqrt(self.weights @ (spread**2 + (self.location - self.mean) ** 2))

    def cdf(self, value: ArrayLike) -> Array:
        """Return the probability of at most ``value``."""
        return sum(w * law.cdf(value) for w, law in zip(self.weights, self._laws, strict=True))

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log density at ``value``."""
        parts = np.array([law.log_density(value) for law in self._laws])
        return special.logsumexp(parts.T + np.log(self.weights), axis=-1).T

    def quantile(self, q: ArrayLike) -> Array:
        """Return the quantiles of order q: (n,), or (levels, n) for several q.

        By Newton's method, with bisection where it leaves the bracket; the quantiles of the
        components are the first bracket.
        """
        at = open_units("q", q)
        laws = list(zip(self.weights, self._laws, strict=True))
        parts = np.array([law.quantile(at) for _, law in laws])
        low, high = parts.min(axis=0), parts.max(axis=0)
        found, goal = np.tensordot(self.weights, parts, 1), at[..., None]
        # With few degrees of freedom a quantile is many scales away; rounding is relative to it.
        unit = np.maximum(self.scale.max(axis=0), np.abs(found - self.mean))

        def density(value: Array) -> Array:
            return sum(w * np.exp(law.log_density(value)) for w, law in laws)

        return invert(self.cdf, density, goal, (low, high), found, unit)

    def interval(self, level: ArrayLike = 0.95) -> Array:
        """Return the ends of central intervals: (n, 2), or (levels, n, 2) for several levels."""
        return central_interval(self, level)

    @property
    def _laws(self) -> list[StudentT]:
        parts = zip(self.location, self.scale, self.dof, strict=True)
        return [StudentT(location, scale, float(dof)) for location, scale, dof in parts]


def invert(
    cdf: Callable[[Array], Array],
    density: Callable[[Array], Array],
    goal: Array,
    bracket: tuple[Array, Array],
    start: Array,
    unit: Array | float,
) -> Array:
    """Return where distribution functions reach the goal, by Newton's method within a bracket.

    It solves for the log odds, which are nearly straight: F itself is flat in the tails.
    """
    (low, high), found = bracket, start
    for _ in range(STEPS):
        # Numbers of scale 0 are known: their bracket is a point.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            reached = cdf(found)
            missing = special.logit(goal) - special.logit(reached)
            newton = found + missing * reached * (1 - reached) / density(found)
        below = reached < goal
        low, high = np.where(below, found, low), np.where(below, high, found)
        following = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
        near = np.abs(following - found) <= np.maximum(
            PRECISION * unit, ROUNDING * np.spacing(np.abs(found))
        )
        near |= np.abs(goal - reached) <= ROUNDING * np.spacing(goal)
        found = following
        if near.all():
            break
    return found


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

    def marginals(self) -> StudentMixture:
        """Return the distribution of each coefficient."""
        return mixture_of_laws(self.weights, [part.marginals() for part in self.parts])

    def combination(self, directions: Array) -> StudentMixture:
        """Return the distribution of each row of ``directions`` (k, d) times theta."""
        return mixture_of_laws(self.weights, [p.combination(directions) for p in self.parts])

    def predictive(self, X: ArrayLike) -> Any:
        """Return the distribution of a new response at each row of ``X``, for regressions."""
        return mixture_of_laws(self.weights, [part.predictive(X) for part in self.parts])

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


def mixture_of_laws(weights: Array, laws: Sequence[Any]) -> Any:
    """Return the mixture of distributions of the same numbers."""
    if hasattr(laws[0], "mixed"):
        return laws[0].mixed(weights, laws[1:])
    parts = [_as_mixture(law) for law in laws]
    inner = [w * part.weights for w, part in zip(weights, parts, strict=True)]
    return StudentMixture(
        np.concatenate(inner),
        np.concatenate([part.location for part in parts]),
        np.concatenate([part.scale for part in parts]),
        np.concatenate([part.dof for part in parts]),
    )


def _as_mixture(law: StudentT | StudentMixture) -> StudentMixture:
    if isinstance(law, StudentMixture):
        return law
    return StudentMixture(np.ones(1), law.location[None], law.scale[None], np.array([law.dof]))


def mixed(weights: Array, posteriors: Sequence[Any]) -> Any:
    """Return the mixture of posteriors, by their method ``mixed`` if they have one."""
    if len(posteriors) == 1:
        return posteriors[0]
    first, *others = posteriors
    if hasattr(first, "mixed"):
        return first.mixed(weights, others)
    return MixturePosterior(weights, tuple(posteriors))
