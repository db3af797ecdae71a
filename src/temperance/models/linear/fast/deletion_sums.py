r"""Sums over the deletions of all rows, with one exponent for all: see leave-one-out.

With c the exponent of all training sets, s = 1/(1 + c sigma^2) and A = B U / sigma computed from
the rows as needed and stored by columns, so that each operation runs over many rows,

    e_i = r_i - sum_j A_ij g_j (1 - s_j),    c h_i = sum_j A_ij^2 (1 - s_j),    kappa_i = 1 - c h_i,

and the sums are those of (e_i / kappa_i)^2 and h_i / kappa_i.  The weights cancel, since A contains
their square roots.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from temperance.data import Array, batches
from temperance.models.linear.eigenbasis import shrinkage
from temperance.models.linear.fast.decomposition import MODERATE, Leverages
from temperance.models.linear.fast.interpolant import LARGEST_START, Variable
from temperance.models.linear.fast.interpolated_sums import (
    InterpolatedSums,
    interpolate_sums,
    sums_of,
)
from temperance.models.linear.moments import Sums
from temperance.models.linear.rows import CACHED, LARGE_PROBLEM
from temperance.plans import LeaveOneOutPlan

SAMPLED_ROWS = 2**12  # rows whose norms are used to guess the largest leverage
SMALL_LEVERAGE = 0.02  # guesses above it would take more interpolation nodes than necessary
MOST_ROWS = 2**13  # in a batch: with few columns BLAS multiplies these twice as fast
TINY = float(np.finfo(float).tiny)
SCAN = np.geomspace(1e-6, 1.0, 49)
MARGIN = 0.5  # relative error allowed in the expected increase of the risk by deletion


@dataclass(frozen=True, eq=False)
class DeletionSums:
    """Sums over all rows, if no row has a leverage close to one."""

    plan: LeaveOneOutPlan
    leverages: Leverages

    def sums(self, beta: Array) -> Iterator[Sums]:
        """Yield the sums, interpolated where possible."""
        if self.interpolated is not None:
            return iter([self.interpolated.at(beta, self.direct)])
        return self.direct(beta)

    def undeleted(self, beta: Array) -> Iterator[Sums]:
        """Yield the sums without deletion, kappa = 1, which are smaller."""
        parts, (_, s, ds) = self.leverages.decomposition, self._shrinkage(beta)
        squares = parts.projection**2
        value = parts.remainder + s**2 @ squares, s @ self._squares
        slope = 2 * (s * ds) @ squares, ds @ self._squares
        yield sums_of(np.array([value, slope]), self.exposure, self.plan.size)

    @cached_property
    def lowest_interpolated(self) -> float:
        """Smallest beta covered by the interpolant, or a lower bound on it."""
        variable = Variable.upwards(*self._eigenvalues, lowest=self._lowest_needed)
        return np.inf if variable is None else variable.lowest

    def variable_from(self, lowest: float) -> Variable | None:
        """Return a variable that interpolates the sums from about ``lowest`` on, or None."""
        largest = self.leverages.largest
        return (
            self._variable_for(largest, min(lowest, self._lowest_needed))
            if largest <= MODERATE
            else None
        )

    def fitted(self, beta: Array) -> Iterator[tuple[Array, Array]]:
        """Yield e and c h of batches of rows, (g, rows) each; the caller may overwrite them."""
        weight = (self._exponent * beta)[:, None] * self._squares
        weight /= 1.0 + weight  # 1 - s
        residual = -weight * self.leverages.decomposition.projection
        return self._products(np.column_stack([residual, np.ones(len(beta))]), weight)

    @cached_property
    def _exponent(self) -> float:
        return float(self.plan.exponents[0])

    @property
    def exposure(self) -> float:
        """Total weight of all training sets."""
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
    def _lowest_needed(self) -> float:
        """Smallest beta at which the sums are needed: below it the lower bound is sufficient.

        The sums without deletion decrease with beta.  Below this beta they exceed the minimum that
        generalised cross-validation predicts, which has the same kappa for all rows.
        """
        if self.leverages.rows.inputs.size <= LARGE_PROBLEM:
            return 0.0
        (undeleted,) = self.undeleted(SCAN)
        (square,), (spread,) = undeleted.square, undeleted.spread
        kappa = 1.0 - self._exponent * SCAN * spread / len(self.plan.weights)
        expected, floor = square / kappa**2 + spread / kappa, square + spread
        best = int(np.argmin(expected))
        least = expected[best] + MARGIN * (expected[best] - floor[best])
        below = np.count_nonzero(floor > least)
        return min(float(SCAN[below - 1]), LARGEST_START) if below else 0.0

    def _variable_for(self, leverage: float, lowest: float) -> Variable | None:
        """Return a variable that is valid if no row has a larger leverage."""
        low, high = self._eigenvalues
        return Variable.upwards(low * _least_share(leverage), high, self._contrast(lowest), lowest)

    @cached_property
    def _eigenvalues(self) -> tuple[float, float]:
        """Smallest and largest eigenvalue, times the exponent."""
        lam = self._exponent * self._squares
        return float(lam.min()), float(lam.max())

    def _contrast(self, lowest: float) -> float:
        """Return a bound on the ratio of the largest to the smallest sum, without deletion."""
        parts, lam = self.leverages.decomposition, self._squares
        s = shrinkage(lam, self._exponent * lowest)
        largest, least = s @ (parts.projection**2 * s + lam), max(parts.remainder, TINY)
        return 1.0 + float(largest) / least

    @cached_property
    def interpolated(self) -> InterpolatedSums | None:
        """Interpolated sums; None if too many nodes are needed or a leverage is near one.

        The number of nodes depends on the largest leverage, which is known only after a pass over
        all rows.  The norms of some rows give a first guess; a second pass follows if it was low.
        """
        if self.lowest_interpolated > LARGEST_START:
            return None
        every = len(self.plan.weights) // SAMPLED_ROWS
        if every > 1:
            # If leverages have a finite second moment, the largest grows no faster than this.
            expected = np.sqrt(every) * self.leverages.largest_of(
                slice(None, None, every), SMALL_LEVERAGE
            )
            variable = (
                self._variable_for(expected, self.lowest_interpolated)
                if expected < SMALL_LEVERAGE
                else None
            )
            if variable is not None:
                found, largest = self._through(variable)
                least = self._eigenvalues[0] * _least_share(largest)
                if largest <= MODERATE and variable.size_with(least) <= variable.size:
                    return found
        variable = self.variable_from(self.lowest_interpolated)
        return None if variable is None else self._through(variable)[0]

    def _through(self, variable: Variable) -> tuple[InterpolatedSums | None, float]:
        """Return the interpolated sums, None if not resolved, and a bound on the leverages."""
        values, largest = self._values(variable.nodes)
        if values is None:
            return None, largest
        return interpolate_sums(variable, values, self.exposure, self.plan.size), largest

    def _values(self, beta: Array) -> tuple[Array | None, float]:
        """Return sums of squares and variances (2, g), None if a leverage is large, and its bound.

        The bound on sum_j A_ij^2 is c h_i at the last beta divided by the least 1 - s_j.
        """
        total, largest = np.zeros((2, len(beta))), 0.0
        for error, leverage in self.fitted(beta):
            largest = max(largest, float(leverage[-1].max()))
            if largest > MODERATE:
                return None, largest
            kappa = 1.0 - leverage
            error /= kappa
            leverage /= kappa
            total += np.einsum("gi,gi->g", error, error), leverage.sum(axis=1)
        total[1] /= self._exponent * beta
        least = float(beta[-1]) * self._eigenvalues[0]
        return total, largest * (1.0 + least) / least

    def direct(self, beta: Array) -> Iterator[Sums]:
        """Yield the sums, computed from every row at every beta."""
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
        """Yield residual [A r]' and weight (A^2)' of batches of rows; both may be overwritten."""
        rows, weights, parts = (
            self.leverages.rows,
            self.leverages.weights,
            self.leverages.decomposition,
        )
        rank = len(parts.sigma)
        # A column stride that is a power of two would cause cache conflicts.
        height = min(2 * CACHED // (rank + 3 * len(weight)), MOST_ROWS) | 8
        for part in batches(len(rows), 1, height):
            columns = np.empty((rank + 1, part.stop - part.start))  # A' and r': rows in memory
            a, columns[-1] = columns[:-1], parts.response[part]
            np.matmul(parts.factor.T, rows.inputs[part].T, out=a)
            if weights is not None:
                a *= np.sqrt(weights[part])
            error = residual @ columns
            a *= a
            yield error, weight @ a


def _least_share(leverage: float) -> float:
    """Return a bound on the share of the least eigenvalue that remains without such a row."""
    return 1.0 - min(leverage, 1.0)
