r"""Finite mixtures of Student-t or Gaussian laws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from temperance.posteriors.student import StudentT, central_interval
from temperance.types import Array
from temperance.validation import open_units

STEPS = 100  # at most, to a quantile
PRECISION = 1e-12  # of a quantile, in units of the widest part


@dataclass(frozen=True, eq=False)
class StudentMixture:
    r"""Laws of n numbers, each a mixture: sum_k weights_k StudentT(location_k, scale_k, dof_k).

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
    [0.] [1.414] [[-2.608  2.608]]
    """

    weights: Array
    location: Array
    scale: Array
    dof: Array

    @property
    def mean(self) -> Array:
        """The mean of each number."""
        return self.weights @ self.location

    @property
    def std(self) -> Array:
        """Standard deviation; infinite where a part has two degrees of freedom or fewer."""
        spread = np.array([law.std for law in self._laws])
        return np.sqrt(self.weights @ (spread**2 + (self.location - self.mean) ** 2))

    def cdf(self, value: ArrayLike) -> Array:
        """Probability of at most ``value``."""
        return sum(w * law.cdf(value) for w, law in zip(self.weights, self._laws, strict=True))

    def log_density(self, value: ArrayLike) -> Array:
        """Logarithm of the density at ``value``."""
        parts = np.array([law.log_density(value) for law in self._laws])
        return special.logsumexp(parts.T + np.log(self.weights), axis=-1).T

    def quantile(self, q: ArrayLike) -> Array:
        """Return what is exceeded with probability 1 - q: (n,), or (levels, n) for several q.

        Newton's steps, or halves of the bracket where they leave it; the parts' quantiles are the
        first bracket.
        """
        at = open_units("q", q)
        parts = np.array([law.quantile(at) for law in self._laws])
        low, high = parts.min(axis=0), parts.max(axis=0)
        found, goal = (low + high) / 2, at[..., None]
        smallest = PRECISION * self.scale.max(axis=0)
        for _ in range(STEPS):
            missing = goal - self.cdf(found)
            low, high = np.where(missing > 0, found, low), np.where(missing > 0, high, found)
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                newton = found + missing / np.exp(self.log_density(found))
            following = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
            done = np.all(np.abs(following - found) <= smallest)
            found = following
            if done:
                break
        return found

    def interval(self, level: ArrayLike = 0.95) -> Array:
        """Return the ends of central intervals: (n, 2), or (levels, n, 2) for several levels."""
        return central_interval(self, level)

    @property
    def _laws(self) -> list[StudentT]:
        parts = zip(self.location, self.scale, self.dof, strict=True)
        return [StudentT(location, scale, float(dof)) for location, scale, dof in parts]
