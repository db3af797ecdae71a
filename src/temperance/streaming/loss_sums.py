r"""Sums over rows of their losses at some betas: a risk curve and its standard errors.

With l_ij the loss of row i at beta_j and m_j its mean, the sums

    sum_i w_i,    sum_i w_i l_ij,    sum_i w_i (l_ij - m_j)(l_ik - m_k)

determine the mean of the losses and the variance of their difference between any two betas.  All
but one loss of a row enter as differences to that one: they are small, and squares of all losses
would hide them.  Parts p with weights W_p and means m_p add up to the third sum of all by

    sum_p C_p + sum_p W_p (m_p - m)(m_p - m)'.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.linalg import helmert

from temperance.curves import RiskCurve
from temperance.data import Array, Data
from temperance.search.log_scale import Scale
from temperance.streaming.panels import Panels

LARGE = 1e3  # ratio of risks up to which differences keep enough digits


@dataclass(frozen=True, eq=False)
class LossSums:
    """Sums of losses at g betas.

    Parameters
    ----------
    base : int
        Column of the loss that the others are differences to.
    weight : float
    plain : array of shape (g,)
        Sums of losses.
    total, cross : arrays of shape (g,) and (g, g)
        Sums of differences, and of products of these less their means.
    """

    base: int
    weight: float
    plain: Array
    total: Array
    cross: Array

    @classmethod
    def of(cls, losses: Array, weights: Array, base: int) -> Self:
        """Return the sums of losses (n, g) of rows with weights (n,)."""
        differences = losses - losses[:, base : base + 1]
        differences[:, base] = losses[:, base]
        plain, total, weight = weights @ losses, weights @ differences, float(weights.sum())
        differences -= _mean(total, weight)
        return cls(base, weight, plain, total, (weights[:, None] * differences).T @ differences)

    @property
    def means(self) -> Array:
        """Means of the differences, and of the loss that they are differences to."""
        return _mean(self.total, self.weight)

    @property
    def better_base(self) -> int | None:
        """Another base, if the losses at this one are so large that differences lose digits."""
        best = int(np.argmin(np.abs(self.plain)))
        least = abs(self.plain[best])
        return best if abs(self.plain[self.base]) - least > LARGE * least else None

    def merge(self, *others: Self) -> Self:
        """Return the sums over the rows of all."""
        parts = (self, *others)
        weight = sum(each.weight for each in parts)
        total = np.sum([each.total for each in parts], axis=0)
        apart = np.array([each.means for each in parts]) - _mean(total, weight)
        between = (np.array([each.weight for each in parts])[:, None] * apart).T @ apart
        return type(self)(
            self.base,
            weight,
            np.sum([each.plain for each in parts], axis=0),
            total,
            np.sum([each.cross for each in parts], axis=0) + between,
        )


def _mean(total: Array, weight: float) -> Array:
    return total / weight if weight > 0 else np.zeros_like(total)


@dataclass(frozen=True, eq=False)
class SummedCurve:
    """The mean of losses as a function of beta, and a few rows with the same covariances."""

    sums: LossSums
    panels: Panels
    scale: Scale

    def curve(self, method: str) -> RiskCurve:
        """Return the risk curve."""
        return RiskCurve(self.evaluate, self.rows, method, scale=self._scale)

    def _scale(self) -> Scale:
        return self.scale

    def evaluate(self, beta: Array) -> tuple[Array, Array]:
        """Return the risk at betas (g,) and its derivative."""
        base = self.sums.base
        differences = np.where(np.arange(len(self._means)) == base, 0.0, self._means)
        value, slope = (weights @ differences for weights in self.panels.weights(beta))
        return self._means[base] + value, slope

    def rows(self, beta: float) -> tuple[Array, Array]:
        """Return losses of a few rows, and the weight of each."""
        value, _ = self.panels.weights(np.array([beta]))
        return self.losses @ value[0], self.weights

    @property
    def weights(self) -> Array:
        """Weights of these rows, equal and with the sum of all."""
        count = len(self._means) + 1
        return np.full(count, self.sums.weight / count)

    @property
    def tested(self) -> Data:
        """These rows, without inputs."""
        return Data(np.empty((len(self.weights), 0)), np.zeros(len(self.weights)), self.weights)

    @property
    def _means(self) -> Array:
        return self.sums.means

    @cached_property
    def losses(self) -> Array:
        """Losses of the few rows at the nodes, with the means and covariances of all rows."""
        means, count = self._means, len(self._means) + 1
        covariance = self.sums.cross / self.sums.weight
        # Correlations: losses far from the minimum may be larger by many powers of ten.
        deviation = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
        unit = np.where(deviation > 0, deviation, 1.0)
        squares, vectors = np.linalg.eigh(covariance / unit / unit[:, None])
        root = np.sqrt(np.maximum(squares, 0.0))[:, None] * vectors.T * deviation
        # Columns orthogonal to ones: they change covariances and leave the means.
        rows = means + np.sqrt(count) * helmert(count).T @ root
        base = rows[:, self.sums.base].copy()
        rows[:, self.sums.base] = 0.0
        return rows + base[:, None]
