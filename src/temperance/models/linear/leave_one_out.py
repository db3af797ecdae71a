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
from temperance.models.linear.interpolant import (
    SumsInterpolant,
    count_nodes,
    interpolate_sums,
    node_betas,
)
from temperance.models.linear.moments import Moments, Sums, summed
from temperance.models.linear.pairs import PairMoments
from temperance.models.linear.rows import CACHED, Rows
from temperance.types import Array, LeaveOneOutPlan, Plan, all_ones, batches

ALONE = 1e-4
# How many rows are asked for their lengths, and how much leverage they may make expect, lest it
# take more betas than need be.
SOME, LITTLE = 2**14, 0.02


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
        if pairwise or self._interpolant is None:
            return (summed(moments, pairwise) for moments in self._moments(beta, misfit=pairwise))
        return iter([self._interpolant.at(beta)])

    @cached_property
    def eigenvalues(self) -> tuple[float, float] | None:
        """Bounds on those of all training sets, where few betas determine sums over all rows."""
        if not self._shared or not self._decomposition.rotates or self._most_leverage > 0.5:
            return None
        low, high = self._between(self._most_leverage)
        return None if count_nodes(low, high) is None else (low, high)

    def _between(self, leverage: float) -> tuple[float, float]:
        """Bound the eigenvalues of training sets without one row of no more leverage."""
        lam = self.plan.exponents[0] * self._decomposition.sigma**2
        # Without a row of leverage h the least eigenvalue is at least 1 - h of what it was.
        return float(lam.min()) * (1 - leverage), float(lam.max())

    @cached_property
    def _interpolant(self) -> SumsInterpolant | None:
        """Interpolate the sums over all rows, where few betas determine them.

        How many do depends on the largest leverage, which a look at all rows tells beside their
        sums: the lengths of some say what to expect, and all are looked at again if it takes more.
        """
        if not self._shared or not self._decomposition.rotates:
            return None
        every = len(self.rows) // SOME
        if every > 1:
            # The largest of many grows no faster than this where leverages have two moments.
            expected = np.sqrt(every) * self._leverage_by_length(slice(None, None, every))
            if expected < LITTLE:
                found, enough = self._interpolated(expected)
                if enough:
                    return found
        return self._interpolated(self._most_leverage)[0] if self._most_leverage <= 0.5 else None

    def _interpolated(self, leverage: float) -> tuple[SumsInterpolant | None, bool]:
        """Interpolate the sums as if no row had more leverage, and say whether that is enough."""
        exponent, tested = float(self.plan.exponents[0]), self.plan.size
        low, high = self._between(leverage)
        nodes = count_nodes(low, high)
        if nodes is None:
            return None, True
        square, spread, most = self._values(node_betas(low, high, nodes))
        # Poles beyond ``low`` are as far out as others beyond ``high``, about the same middle.
        least, _ = self._between(min(most, 0.5))
        needed = count_nodes(least, max(high, low * high / least))
        enough = most <= 0.5 and needed is not None and needed <= nodes
        exposure = exponent * (len(self.rows) - 1) * tested
        return interpolate_sums(low, high, square, spread, exposure, tested), enough

    def _values(self, beta: Array) -> tuple[Array, Array, float]:
        """Sum up weighted squares of errors, and variances, of all rows, which share an exponent.

        The weights cancel: A has their roots.  Returns a bound on sum_j A_ij^2 as well: c h_i at
        the last beta, over the least 1 - s_j.
        """
        square, spread = np.zeros((2, len(beta)))
        most = 0.0
        for error, leverage in self.fitted(beta):
            most = max(most, float(leverage[-1].max()))
            kappa = 1.0 - leverage
            error /= kappa
            leverage /= kappa
            square += np.einsum("gi,gi->g", error, error)
            spread += leverage.sum(axis=1)
        c = self.plan.exponents[0] * beta
        least = c[-1] * float((self._decomposition.sigma**2).min())
        return square, spread / c, most * (1.0 + least) / least

    def fitted(self, beta: Array) -> Iterator[tuple[Array, Array]]:
        """Yield e and c h of parts of the rows, (g, rows) each, free to be changed.

        For rows that share an exponent, in the coordinates of a Gram matrix.
        """
        parts, c = self._decomposition, self.plan.exponents[0] * beta[:, None]
        weight = c * parts.sigma**2
        weight /= 1.0 + weight  # 1 - s: e_i = r_i - sum_j A_ij g_j (1 - s_j)
        rank = len(parts.sigma)
        residual = np.column_stack([-weight * parts.projection, np.ones(len(beta))])
        # Columns that are a power of two apart would shut each other out of a cache.
        height = 2 * CACHED // (rank + 3 * len(beta)) | 8
        for part in batches(len(self.rows), 1, height):
            known = np.empty((rank + 1, part.stop - part.start))  # A' and r': rows in memory
            a, known[-1] = known[:-1], parts.response[part]
            np.matmul(parts.factor.T, self.rows.inputs[part].T, out=a)
            if self._weights is not None:
                a *= np.sqrt(self._weights[part])
            error = residual @ known
            a *= a
            yield error, weight @ a

    def _deleted(self, part: slice | NDArray[np.intp], beta: Array, exponents: Array) -> Deletion:
        """Delete each of some rows that have these exponents, or one for all of them."""
        parts = self._decomposition
        g, lam = parts.projection[:, None], (parts.sigma**2)[:, None]
        # c and s have one row for all tested rows when these share their exponent.
        c = np.multiply.outer(exponents, beta)
        s = 1.0 / (1.0 + c[:, None, :] * lam)
        ds = -exponents[:, None, None] * lam * s**2
        a = self._left(part)
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

    def _left(self, part: slice | NDArray[np.intp]) -> Array:
        """Rows of A."""
        found = self._decomposition.factor
        if not self._decomposition.rotates:
            return found[part]
        rotated = self.rows.inputs[part] @ found
        return rotated if self._weights is None else rotated * np.sqrt(self._weights[part])[:, None]

    @cached_property
    def _weights(self) -> Array | None:
        return None if all_ones(self.plan.weights) else self.plan.weights

    @cached_property
    def _shared(self) -> bool:
        """Whether all training sets have one exponent."""
        return self.plan.transfer == "beta" or bool(np.ptp(self.plan.weights) == 0)

    @cached_property
    def _most_leverage(self) -> float:
        """Bound on sum_j A_ij^2: by the rows' lengths if that says enough, else exact."""
        bound = self._leverage_by_length(slice(None))
        return bound if bound < 0.5 else float(1 - self._slack.min())

    def _leverage_by_length(self, which: slice) -> float:
        """Bound on sum_j A_ij^2 of some rows."""
        inputs, weights = self.rows.inputs[which], self.plan.weights[which]
        squares, longest = self.rows.scale**2, 0.0
        for part in batches(len(inputs), self.rows.width, CACHED):
            lengths = (inputs[part] ** 2 @ squares) * weights[part]
            longest = max(longest, float(lengths.max()))
        return longest / float(self._decomposition.sigma.min(initial=np.inf)) ** 2

    @cached_property
    def _slack(self) -> Array:
        """What is left of each row's length, 1 - sum_j A_ij^2."""
        slack = np.empty(len(self.rows))
        for part in batches(len(slack), self.rows.width, CACHED):
            a = self._left(part)
            slack[part] = 1.0 - np.einsum("ij,ij->i", a, a)
        return np.maximum(slack, 0.0)

    @cached_property
    def _alone(self) -> NDArray[np.bool_]:
        """Rows that determine a direction alone."""
        if self._decomposition.square or self._most_leverage < 1 - ALONE:
            return np.zeros(len(self.rows), dtype=bool)
        return self._slack < ALONE

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
