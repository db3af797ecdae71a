r"""Inputs of regressions: how to draw their rows, and the second moments of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from temperance.types import Array

STORED_AS = "temperance.datasets.inputs"  # where studies know these classes


class Inputs(Protocol):
    """Rows z of d columns."""

    def draw(self, rng: np.random.Generator, n: int, d: int) -> Array:
        """Draw n rows, independent of each other."""
        ...

    def second_moment(self, d: int) -> Array:
        """Return E zz'."""
        ...


@dataclass(frozen=True)
class GaussianRows:
    r"""A constant, and Gaussian columns whose correlation falls with their distance.

    .. math:: z = (1, s\,N(0, \Sigma)), \qquad \Sigma_{jk} = c^{|j - k|}

    Parameters
    ----------
    scale : float
        Standard deviation s.
    correlation : float
        Correlation c of neighbours.

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
        """Draw n rows."""
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
    """A constant, and columns of variance 1 from a Student-t that all columns of a row share.

    Parameters
    ----------
    dof : float
        Degrees of freedom, more than 2.
    """

    dof: float = 4.0

    def draw(self, rng: np.random.Generator, n: int, d: int) -> Array:
        """Draw n rows."""
        size = np.sqrt((self.dof - 2) / rng.chisquare(self.dof, n))
        return np.column_stack([np.ones(n), size[:, None] * rng.standard_normal((n, d - 1))])

    def second_moment(self, d: int) -> Array:
        """Return E zz'."""
        return np.eye(d)


@dataclass(frozen=True)
class BinaryRows:
    """A constant, and columns that are 0 or 1 with the same probability."""

    def draw(self, rng: np.random.Generator, n: int, d: int) -> Array:
        """Draw n rows."""
        return np.column_stack([np.ones(n), rng.integers(0, 2, (n, d - 1))])

    def second_moment(self, d: int) -> Array:
        """Return E zz'."""
        moment = np.full((d, d), 0.25)
        moment[0] = moment[:, 0] = 0.5
        np.fill_diagonal(moment, 0.5)
        moment[0, 0] = 1.0
        return moment
