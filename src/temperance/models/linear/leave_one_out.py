r"""Moments of leave-one-out: each row's deletion is a rank-one downdate of one decomposition.

With B = A diag(sigma) U' the rows scaled by the roots of their weights, c_i the exponent of the
training set of row i and s = 1/(1 + c_i sigma^2), the fit to all rows has

    residual  e_i = o_i + sum_j A_ij g_j s_j,      o = r - A g,
    leverage  h_i = sum_j A_ij^2 sigma_j^2 s_j,    kappa_i = 1 - c_i h_i,

and without row i the error is e_i / kappa_i, the variance h_i / kappa_i and the misfit Q - c_i
e_i^2 / kappa_i.  A row is deleted for real when kappa may be a difference of near-equals, that is
when 1 - sum_j A_ij^2, its least value, is below ``ALONE``; unless the rows span everything: then
kappa_i = sum_j A_ij^2 s_j, without a difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.models.linear.decomposition import Decomposition, from_gram, from_rows
from temperance.models.linear.deletion_sums import DeletionSums
from temperance.models.linear.leverage import Leverages
from temperance.models.linear.moments import Moments, Sums, summed
from temperance.models.linear.pairs import PairMoments
from temperance.models.linear.rows import CACHED, Rows
from temperance.types import Array, LeaveOneOutPlan, Plan, all_ones, batches

ALONE = 1e-4


class Deletion(NamedTuple):
    """Fit to all rows at g betas, and what it says of each row's deletion; (rows, g) each."""

    c: Array  # (rows or 1, g)
    exponent: Array  # (rows or 1, 1)
    residual: Array
    d_residual: Array
    leverage: Array
    d_leverage: Array
    kappa: Array
    quadratic: Array  # (rows or 1, g): Q / c of all rows
    d_misfit: Array  # (rows or 1, g): dQ / dc of all rows

    @property
    def d_kappa(self) -> Array:
        """Derivative of kappa."""
        return -(self.exponent * self.leverage + self.c * self.d_leverage)

    @property
    def predictions(self) -> tuple[Array, Array, Array, Array]:
        """Error and variance of the deleted rows, and their derivatives."""
        d_kappa = self.d_kappa
        error, variance = self.residual / self.kappa, self.leverage / self.kappa
        d_error = (self.d_residual - error * d_kappa) / self.kappa
        return error, variance, d_error, (self.d_leverage - variance * d_kappa) / self.kappa

    def misfit(self) -> tuple[Array, Array]:
        """Misfit of the other rows and its derivative."""
        error = self.residual / self.kappa
        drop = self.c * self.residual * error
        d_drop = error * (
            self.exponent * self.residual
            + 2 * self.c * self.d_residual
            - self.c * error * self.d_kappa
        )
        total = np.maximum(self.c * self.quadratic - drop, 0.0)
        return total, self.exponent * self.d_misfit - d_drop


@dataclass(frozen=True, eq=False)
class LeaveOneOutMoments:
    """Moments of whitened rows [Z r] of k columns and a response."""

    rows: Rows
    plan: LeaveOneOutPlan

    def moments(self, beta: Array) -> Iterator[Moments]:
        """Yield the moments of batches of rows; rows that stand alone are deleted for real."""
        return self._moments(beta, misfit=True)

    def _moments(self, beta: Array, misfit: bool) -> Iterator[Moments]:
        weights, exponents, size = self.plan.weights, self.plan.exponents, self.plan.size
        shared, uniform = self._shared, self._weights is None
        none = np.empty((0, len(beta)))
        alone = self._alone
        together = np.flatnonzero(~alone) if alone.any() else None
        count, k = len(weights) - int(alone.sum()), self.rows.width
        for part in batches(count, k + len(beta) * (6 if shared else 6 + 3 * k), CACHED):
            rows = np.arange(part.start, part.stop) if together is None else together[part]
            which = part if together is None else rows
            tested = weights[which]
            unit = tested[:, None]
            found = self._deleted(which, beta, exponents[:1] if shared else exponents[which])
            error, variance, d_error, d_variance = found.predictions
            if not uniform:
                root = np.sqrt(unit)
                error, variance = error / root, variance / unit
                d_error, d_variance = d_error / root, d_variance / unit
            total, d_total = found.misfit() if misfit else (none, none)
            yield Moments(
                error=error[:, None],
                variance=variance[:, None],
                misfit=total,
                d_error=d_error[:, None],
                d_variance=d_variance[:, None],
                d_misfit=d_total,
                exposure=exponents[which] * (size - tested),
                weight=unit,
                tested=tested,
                rows=rows[:, None],
            )
        if alone.any():
            yield from self._deletions.moments(beta)

    def sums(self, beta: Array, pairwise: bool) -> Iterator[Sums]:
        """Yield the sums of single rows, or of several."""
        together = None if pairwise else self.together
        if together is not None and (together.interpolated or not self._alone.any()):
            return together.sums(beta)
        return (summed(moments, pairwise) for moments in self._moments(beta, misfit=pairwise))

    def floor(self, beta: Array) -> Iterator[Sums]:
        """Yield sums over all rows that are nowhere larger and cost no more."""
        together = self.together
        if together is None or together.interpolated is None:
            return self.sums(beta, pairwise=False)
        return iter([together.interpolated.at(beta, together.kept)])

    @property
    def reach(self) -> float:
        """Beta, or a little less, from which on few others determine the sums."""
        return np.inf if self.together is None else self.together.reach

    @cached_property
    def together(self) -> DeletionSums | None:
        """Sums of rows that share an exponent, where a Gram matrix tells their decomposition."""
        if not self._shared or self.from_gram is None:
            return None
        return DeletionSums(self.plan, self._leverages)

    def _deleted(self, part: slice | NDArray[np.intp], beta: Array, exponents: Array) -> Deletion:
        """Delete each of some rows that have these exponents, or one for all of them."""
        parts = self._decomposition
        g, lam = parts.projection[:, None], (parts.sigma**2)[:, None]
        # c and s have one row for all tested rows when these share their exponent.
        c = np.multiply.outer(exponents, beta)
        s = 1.0 / (1.0 + c[:, None, :] * lam)
        ds = -exponents[:, None, None] * lam * s**2
        a = self._leverages.left(part)
        squares = a**2

        def total(coefficients: Array, factor: Array) -> Array:
            if len(factor) == 1:
                # Columns in memory: what follows is then done for many rows at a time, not for the
                # few betas of one row.
                return (factor[0].T @ coefficients.T).T
            return (coefficients[:, None, :] @ factor)[:, 0]

        def halves(values: Array) -> tuple[Array, Array]:
            return values[:, : len(beta)], values[:, len(beta) :]

        both = np.concatenate([s, ds], axis=2)  # one product gives a value and its derivative
        leverage, d_leverage = halves(total(squares, lam * both))
        residual, d_residual = halves(total(a, g * both))
        if not parts.square:
            residual += (parts.response[part] - a @ parts.projection)[:, None]
        return Deletion(
            c,
            exponents[:, None],
            residual,
            d_residual,
            leverage,
            d_leverage,
            total(squares, s) if parts.square else 1.0 - c * leverage,
            parts.remainder + (parts.projection**2 @ s),
            parts.remainder + (parts.projection**2 @ s**2),
        )

    @cached_property
    def _weights(self) -> Array | None:
        return None if all_ones(self.plan.weights) else self.plan.weights

    @cached_property
    def _shared(self) -> bool:
        """Whether all training sets have one exponent."""
        return self.plan.transfer == "beta" or bool(np.ptp(self.plan.weights) == 0)

    @cached_property
    def _leverages(self) -> Leverages:
        return Leverages(self.rows, self._weights, self._decomposition)

    @cached_property
    def _alone(self) -> NDArray[np.bool_]:
        """Rows that determine a direction alone."""
        if self._decomposition.square or self._leverages.most < 1 - ALONE:
            return np.zeros(len(self.rows), dtype=bool)
        return self._leverages.slack < ALONE

    @cached_property
    def _deletions(self) -> PairMoments:
        rows = np.flatnonzero(self._alone)
        test = np.zeros((len(rows), len(self.rows)))
        test[np.arange(len(rows)), rows] = self.plan.weights[rows]
        plan = Plan(self.plan.weights - test, test, self.plan.size, self.plan.transfer)
        return PairMoments(self.rows, plan)

    @cached_property
    def from_gram(self) -> Decomposition | None:
        """Decomposition of all rows, where their Gram matrix tells it."""
        return from_gram(self.rows, self._weights)

    @cached_property
    def _decomposition(self) -> Decomposition:
        return self.from_gram or from_rows(self.rows, self._weights)
