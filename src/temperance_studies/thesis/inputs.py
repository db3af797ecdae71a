r"""Inputs of regressions: random rows, and the second moments of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from temperance.data import Array

STORED_AS = "temperance.datasets.inputs"  # module path that studies store


class Inputs(Protocol):
    """Distribution of rows z of d columns."""

    def draw(self, rng: np.random.Generator, n: int, d: int) -> Array:
        """Return n independent rows."""
        ...

    def second_moment(self, d: int) -> Array:
        """Return E zz'."""
        ...


@dataclass(frozen=True)
class GaussianRows:
    r"""A constant, and Gaussian columns whose correlation decreases with their distance.

    .. math:: z = (1, s\,N(0, \Sigma)), \qquad \Sigma_{jk} = c^{|j - k|}

    Parameters
    ----------
    scale : float
        Standard deviation s.
    correlation : float
        Correlation c of neighbouring columns.

    Examples
    --------
    >>> GaussianRows(2.0, 0.5).second_moment(3)
    array([[1., 0., 0.],
           [0., 4., 2.],
           [0., 2., 4.]])
    """

    scale: float = 1.0
    correlation: float = 0.0

    def draw(self, rng: np.random.Generator, n: int, d: int) -> Array:
        """Return n independent rows."""
        root = np.linalg.cholesky(self.second_moment(d)[1:, 1:])
        return np.column_stack([np.ones(n), rng.standard_normal((n, d - 1)) @ root.T])

    def second_moment(self, d: int) -> Array:
        """Return E zz'."""
        place = np.arange(d - 1)
        moment = np.eye(d)
        moment[1:, 1:] = self.scale**2 * self.correlation ** np.abs(place[:, None] - place)
        return moment


@dataclass(frozen=True)
class HeavyRows:
    """A constant, and Student-t columns of variance 1 with a common scale in each row.

    Parameters
    ----------
    dof : float
        Degrees of freedom, more than 2.
    """

    dof: float = 4.0

    def draw(self, rng: np.random.Generator, n: int, d: int) -> Array:
        """Return n independent rows."""
        size = np.sqrt((self.dof - 2) / rng.chisquare(self.dof, n))
        return np.column_stack([np.ones(n), size[:, None] * rng.standard_normal((n, d - 1))])

    def second_moment(self, d: int) -> Array:
        """Return E zz'."""
        return np.eye(d)


@dataclass(frozen=True)
class BinaryRows:
    """A constant, and columns that are 0 or 1 with probability 1/2."""

    def draw(self, rng: np.random.Generator, n: int, d: int) -> Array:
        """Return n independent rows."""
        return np.column_stack([np.ones(n), rng.integers(0, 2, (n, d - 1))])

    def second_moment(self, d: int) -> Array:
        """Return E zz'."""
        moment = np.full((d, d), 0.25)
        moment[0] = moment[:, 0] = 0.5
        np.fill_diagonal(moment, 0.5)
        moment[0, 0] = 1.0
        return moment
