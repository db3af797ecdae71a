r"""Sums over the deletions of all rows, which share an exponent: see leave-one-out.

With c the exponent of all training sets, s = 1/(1 + c sigma^2) and A = B U / sigma made of the rows
as needed, in columns: what is done to each row is then done to many at a time,

    e_i = r_i - sum_j A_ij g_j (1 - s_j),    c h_i = sum_j A_ij^2 (1 - s_j),    kappa_i = 1 - c h_i,

and the sums are those of (e_i / kappa_i)^2 and h_i / kappa_i.  Weights cancel: A has their roots.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from temperance.models.linear.eigenbasis import shrinkage
from temperance.models.linear.fast.decomposition import CLEAR, Leverages
from temperance.models.linear.fast.interpolant import FAR, Variable
from temperance.models.linear.fast.interpolated_sums import (
    InterpolatedSums,
    interpolate_sums,
    sums_of,
)
from temperance.models.linear.moments import Sums
from temperance.models.linear.rows import CACHED, LARGE_PROBLEM
from temperance.types import Array, LeaveOneOutPlan, batches

# How many rows are asked for their lengths, and how much leverage they may make expect, lest it
# take more betas than need be.
SOME, LITTLE = 2**12, 0.02
TALLEST = 2**13  # rows of few columns whose rotation BLAS does as they lie, twice as fast
TINY = float(np.finfo(float).tiny)
SCAN = np.geomspace(1e-6, 1.0, 49)
DOUBT = 0.5  # share of what deletions are expected to add, by which they may add more


@dataclass(frozen=True, eq=False)
class DeletionSums:
    """Sums of all rows, none of which determines a direction alone."""

    plan: LeaveOneOutPlan
    leverages: Leverages

    def sums(self, beta: Array) -> Iterator[Sums]:
        """Yield the sums."""
        if self.interpolated is not None:
            return iter([self.interpolated.at(beta, self.direct)])
        return self.direct(beta)

    def kept(self, beta: Array) -> Iterator[Sums]:
        """Yield the sums of rows that are not deleted, kappa = 1, which are smaller."""
        parts, (_, s, ds) = self.leverages.decomposition, self._shrinkage(beta)
        squares = parts.projection**2
        value = parts.remainder + s**2 @ squares, s @ self._squares
        slope = 2 * (s * ds) @ squares, ds @ self._squares
        yield sums_of(np.array([value, slope]), self.exposure, self.plan.size)

    @cached_property
    def reach(self) -> float:
        """Beta, or a little less, from which on few others determine the sums."""
        variable = Variable.upwards(*self._eigenvalues, lowest=self._wanted)
        return np.inf if variable is None else variable.lowest

    def reaching(self, lowest: float) -> Variable | None:
        """Choose a variable in which few betas determine the sums from the lowest on, or so."""
        most = self.leverages.most
        return self._supposing(most, min(lowest, self._wanted)) if most <= CLEAR else None

    def fitted(self, beta: Array) -> Iterator[tuple[Array, Array]]:
        """Yield e and c h of parts of the rows, (g, rows) each, free to be changed."""
        weight = (self._exponent * beta)[:, None] * self._squares
        weight /= 1.0 + weight  # 1 - s
        residual = -weight * self.leverages.decomposition.projection
        return self._products(np.column_stack([residual, np.ones(len(beta))]), weight)

    @cached_property
    def _exponent(self) -> float:
        return float(self.plan.exponents[0])

    @property
    def exposure(self) -> float:
        """Weight of all training sets together."""
        return self._exponent * (len(self.plan.weights) - 1) * self.plan.size

    @cached_property
    def _squares(self) -> Array:
        return self.leverages.decomposition.sigma**2

    def _shrinkage(self, beta: Array) -> tuple[Array, Array, Array]:
        """Return c (g, 1), and s and its derivative in beta, (g, rank)."""
        c = self._exponent * beta[:, None]
        s = shrinkage(self._squares, c)
        return c, s, -self._exponent * self._squares * s**2

    @cached_property
    def _wanted(self) -> float:
        """Beta from which on the sums are worth knowing: below, rows that are kept say enough.

        Their sums fall with beta; so it is where these are larger than the minimum that
        generalised cross-validation, with the same kappa for all rows, makes expect.
        """
        if self.leverages.rows.inputs.size <= LARGE_PROBLEM:
            return 0.0
        (kept,) = self.kept(SCAN)
        (square,), (spread,) = kept.square, kept.spread
        kappa = 1.0 - self._exponent * SCAN * spread / len(self.plan.weights)
        expected, floor = square / kappa**2 + spread / kappa, square + spread
        best = int(np.argmin(expected))
        least = expected[best] + DOUBT * (expected[best] - floor[best])
        below = np.count_nonzero(floor > least)
        return min(float(SCAN[below - 1]), FAR) if below else 0.0

    def _supposing(self, leverage: float, lowest: float) -> Variable | None:
        """Choose a variable as if no row had more leverage."""
        low, high = self._eigenvalues
        return Variable.upwards(low * _least_share(leverage), high, self._contrast(lowest), lowest)

    @cached_property
    def _eigenvalues(self) -> tuple[float, float]:
        """The least and the largest."""
        lam = self._exponent * self._squares
        return float(lam.min()), float(lam.max())

    def _contrast(self, lowest: float) -> float:
        """How much larger sums may be than elsewhere, as those of rows that are kept say."""
        parts, lam = self.leverages.decomposition, self._squares
        s = shrinkage(lam, self._exponent * lowest)
        most, least = s @ (parts.projection**2 * s + lam), max(parts.remainder, TINY)
        return 1.0 + float(most) / least

    @cached_property
    def interpolated(self) -> InterpolatedSums | None:
        """The sums from few betas, where these determine them; no row is then alone.

        How many do depends on the largest leverage, which a look at all rows tells beside their
        sums: the lengths of some say what to expect, and all are looked at again if it takes more.
        """
        if self.reach > FAR:
            return None
        every = len(self.plan.weights) // SOME
        if every > 1:
            # The largest of many grows no faster than this where leverages have two moments.
            expected = np.sqrt(every) * self.leverages.most_of(slice(None, None, every), LITTLE)
            variable = self._supposing(expected, self.reach) if expected < LITTLE else None
            if variable is not None:
                found, most = self._through(variable)
                least = self._eigenvalues[0] * _least_share(most)
                if most <= CLEAR and variable.size_with(least) <= variable.size:
                    return found
        variable = self.reaching(self.reach)
        return None if variable is None else self._through(variable)[0]

    def _through(self, variable: Variable) -> tuple[InterpolatedSums | None, float]:
        """Interpolate the sums in a variable, if it resolves them, and bound the leverages."""
        values, most = self._values(variable.nodes)
        if values is None:
            return None, most
        return interpolate_sums(variable, values, self.exposure, self.plan.size), most

    def _values(self, beta: Array) -> tuple[Array | None, float]:
        """Sum up squares and variances (2, g), and bound sum_j A_ij^2; no sums if it is large.

        The bound is c h_i at the last beta, over the least 1 - s_j.
        """
        total, most = np.zeros((2, len(beta))), 0.0
        for error, leverage in self.fitted(beta):
            most = max(most, float(leverage[-1].max()))
            if most > CLEAR:
                return None, most
            kappa = 1.0 - leverage
            error /= kappa
            leverage /= kappa
            total += np.einsum("gi,gi->g", error, error), leverage.sum(axis=1)
        total[1] /= self._exponent * beta
        least = float(beta[-1]) * self._eigenvalues[0]
        return total, most * (1.0 + least) / least

    def direct(self, beta: Array) -> Iterator[Sums]:
        """Yield the sums from every row at every beta."""
        lam, exponent = self._squares, self._exponent
        c, s, ds = self._shrinkage(beta)
        g = self.leverages.decomposition.projection
        response = np.repeat([1.0, 0.0], len(beta))
        residual = np.column_stack([np.concatenate([-c * lam * s * g, ds * g]), response])
        total = np.zeros((2, 2, len(beta)))
        for errors, variances in self._products(residual, np.concatenate([lam * s, lam * ds])):
            (error, d_error), (variance, d_variance) = (
                np.split(part, 2) for part in (errors, variances)
            )
            kappa = 1.0 - c * variance
            d_kappa = -(exponent * variance + c * d_variance)
            error /= kappa
            variance /= kappa
            d_error -= error * d_kappa
            d_error /= kappa
            d_variance -= variance * d_kappa
            d_variance /= kappa
            total[0] += np.einsum("gi,gi->g", error, error), variance.sum(axis=1)
            total[1] += 2 * np.einsum("gi,gi->g", error, d_error), d_variance.sum(axis=1)
        yield sums_of(total, self.exposure, self.plan.size)

    def _products(self, residual: Array, weight: Array) -> Iterator[tuple[Array, Array]]:
        """Yield residual [A r]' and weight (A^2)' of parts of the rows, free to be changed."""
        rows, weights, parts = (
            self.leverages.rows,
            self.leverages.weights,
            self.leverages.decomposition,
        )
        rank = len(parts.sigma)
        # Columns that are a power of two apart would shut each other out of a cache.
        height = min(2 * CACHED // (rank + 3 * len(weight)), TALLEST) | 8
        for part in batches(len(rows), 1, height):
            known = np.empty((rank + 1, part.stop - part.start))  # A' and r': rows in memory
            a, known[-1] = known[:-1], parts.response[part]
            np.matmul(parts.factor.T, rows.inputs[part].T, out=a)
            if weights is not None:
                a *= np.sqrt(weights[part])
            error = residual @ known
            a *= a
            yield error, weight @ a


def _least_share(leverage: float) -> float:
    """Return what the least eigenvalue keeps at least without a row of such leverage."""
    return 1.0 - min(leverage, 1.0)
