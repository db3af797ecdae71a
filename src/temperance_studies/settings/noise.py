r"""Noise of mean zero: its variance and how to draw it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from temperance.data import Array

STORED_AS = "temperance.datasets.noise"  # module path that studies store


class Noise(Protocol):
    """Distribution of the noise that a setting adds to the regression function."""

    @property
    def variance(self) -> float:
        """Variance of one draw."""
        ...

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return n independent draws."""
        ...


@dataclass(frozen=True)
class GaussianNoise:
    """Normal noise.

    Examples
    --------
    >>> GaussianNoise(4.0).draw(np.random.default_rng(0), 2).round(3)
    array([ 0.251, -0.264])
    """

    variance: float

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return n independent draws."""
        return np.sqrt(self.variance) * rng.standard_normal(n)


@dataclass(frozen=True)
class MixtureNoise:
    r"""A mixture: each row has variance ``first`` with probability ``share``, else ``second``.

    .. math:: p N(0, \delta^2) + (1 - p) N(0, \sigma^2)
    """

    first: float
    second: float
    share: float = 0.5

    @property
    def variance(self) -> float:
        """Variance of one draw, p delta2 + (1 - p) sigma2."""
        return self.share * self.first + (1 - self.share) * self.second

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return n independent draws."""
        chosen = np.where(rng.random(n) < self.share, self.first, self.second)
        return np.sqrt(chosen) * rng.standard_normal(n)


@dataclass(frozen=True)
class SummedNoise:
    r"""A weighted sum of two draws, p e1 + (1 - p) e2: Gaussian, not the intended mixture."""

    first: float
    second: float
    share: float = 0.5

    @property
    def variance(self) -> float:
        """Variance of one draw, p^2 delta2 + (1 - p)^2 sigma2."""
        return self.share**2 * self.first + (1 - self.share) ** 2 * self.second

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return n independent draws."""
        one, other = rng.standard_normal((2, n))
        return (
            self.share * np.sqrt(self.first) * one + (1 - self.share) * np.sqrt(self.second) * other
        )


@dataclass(frozen=True)
class UniformNoise:
    """Uniform noise around zero."""

    half_width: float

    @property
    def variance(self) -> float:
        """Variance of one draw, a third of the squared half width."""
        return self.half_width**2 / 3

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return n independent draws."""
        return rng.uniform(-self.half_width, self.half_width, n)


@dataclass(frozen=True)
class StudentNoise:
    """Noise with heavy tails: Student-t, scaled to the given variance.

    Parameters
    ----------
    variance : float
    dof : float
        Degrees of freedom, more than 2.
    """

    variance: float
    dof: float = 3.0

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Return n independent draws."""
        return np.sqrt(self.variance * (self.dof - 2) / self.dof) * rng.standard_t(self.dof, n)
