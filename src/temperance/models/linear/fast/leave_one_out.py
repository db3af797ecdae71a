r"""Moments of leave-one-out: deleting a row is a rank-one downdate of one decomposition.

With B = A diag(sigma) U' the rows scaled by the square roots of their weights, c_i the exponent of
the training set of row i and s = 1/(1 + c_i sigma^2), the fit to all rows has

    residual  e_i = r_i - sum_j A_ij g_j (1 - s_j) = o_i + sum_j A_ij g_j s_j,    o = r - A g,
    leverage  h_i = sum_j A_ij^2 sigma_j^2 s_j,    kappa_i = 1 - c_i h_i.

The first form of the residual keeps the digits of r_i where beta is small.  Without row i the
error is d_i = e_i / kappa_i, the variance h_i / kappa_i and the misfit Q - c_i e_i^2 / kappa_i.
Where that difference cancels digits of the misfit, a sum of squares is used instead.  The fit to
the other rows does not change if r_i is replaced by their prediction r_i - d_i, so that with
t_i = 1 - sum_j A_ij^2

    Q_-i = c_i (R_i + t_i (d_i - o_i / t_i)^2 + sum_j (g_j - A_ij d_i)^2 s_j),
    R_i  = |o|^2 - o_i^2 / t_i,

and the derivative in c_i has s_j^2 for s_j, and no factor.  A row is deleted explicitly (a
decomposition without it) where these would lose digits as well:

* kappa_i, if t_i, its least value, is below ``LEAST_SLACK``; unless the rows have full rank n: then
  kappa_i = sum_j A_ij^2 s_j, without a difference, and so is its derivative;
* R_i, or r without row i: rounding errors are about eps |r| |o|, and must not be ``OUTLIER`` times
  those of the rows without row i, which are about eps |r_-i| R_i^(1/2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, all_ones, batches
from temperance.models.linear.eigenbasis import Misfits, positive_range, shrinkage, union
from temperance.models.linear.fast.decomposition import (
    MODERATE,
    Decomposition,
    Leverages,
    from_gram,
    from_rows,
)
from temperance.models.linear.fast.deletion_sums import DeletionSums
from temperance.models.linear.fast.pairs import PairMoments
from temperance.models.linear.fast.sums import summed
from temperance.models.linear.moments import PredictionMoments, Sums
from temperance.models.linear.rows import CACHED, MANY_ELEMENTS, WhitenedRows
from temperance.plans import LeaveOneOutPlan, Plan

LEAST_SLACK = 1e-4
OUTLIER = 1e2
CANCELLATION = 1e-2  # share of the misfit below which the difference loses too many digits


class Deletion(NamedTuple):
    """Fit to all rows at g betas, and its changes by deleting each row; (rows, g) each."""

    c: Array  # (rows or 1, g)
    exponent: Array  # (rows or 1, 1)
    residual: Array
    d_residual: Array
    leverage: Array
    d_leverage: Array
    kappa: Array
    d_kappa: Array
    quadratic: Array  # (rows or 1, g): Q / c of all rows
    d_misfit: Array  # (rows or 1, g): dQ / dc of all rows

    @property
    def predictions(self) -> tuple[Array, Array, Array, Array]:
        """Error and variance of the deleted rows' predictions, and their derivatives."""
        error, variance = self.residual / self.kappa, self.leverage / self.kappa
        d_error = (self.d_residual - error * self.d_kappa) / self.kappa
        return error, variance, d_error, (self.d_leverage - variance * self.d_kappa) / self.kappa

    def misfit_without(self, error: Array) -> tuple[Array, Array]:
        """Return the misfit of the other rows and its derivative, as a difference."""
        drop = self.c * self.residual * error
        d_drop = error * (
            self.exponent * self.residual
            + 2 * self.c * self.d_residual
            - self.c * error * self.d_kappa
        )
        return self.c * self.quadratic - drop, self.exponent * self.d_misfit - d_drop

    def cancels(self, misfit: Array) -> NDArray[np.bool_]:
        """Return for which rows the difference loses digits of the misfit."""
        return np.any(misfit < CANCELLATION * self.c * self.quadratic, axis=1)


@dataclass(frozen=True, eq=False)
class LeaveOneOutMoments:
    """Leave-one-out moments of whitened rows [Z r]."""

    rows: WhitenedRows
    plan: LeaveOneOutPlan

    def moments(self, beta: Array) -> Iterator[PredictionMoments]:
        """Yield the moments of batches of rows; those of leverage near one come last."""
        return self._moments(beta, misfit=True)

    def _moments(self, beta: Array, misfit: bool) -> Iterator[PredictionMoments]:
        weights, exponents, size = self.plan.weights, self.plan.exponents, self.plan.size
        shared, uniform = self._shared, self._weights is None
        none = np.empty((0, len(beta)))
        # A sum of squares: the Gram matrix would give a difference.
        remainder = float(self._leverages.outside @ self._leverages.outside) if misfit else 0.0
        explicit = self._near_one | self._outliers if misfit else self._near_one
        downdated = np.flatnonzero(~explicit) if explicit.any() else None
        count, k = len(weights) - int(explicit.sum()), self.rows.width
        for part in batches(count, k + len(beta) * (6 if shared else 6 + 3 * k), CACHED):
            rows = np.arange(part.start, part.stop) if downdated is None else downdated[part]
            which = part if downdated is None else rows
            tested = weights[which]
            unit = tested[:, None]
            own = exponents[:1] if shared else exponents[which]
            found = self._deleted(which, beta, own, remainder)
            error, variance, d_error, d_variance = found.predictions
            total, d_total = self._misfit(rows, beta, found, error) if misfit else (none, none)
            if not uniform:
                root = np.sqrt(unit)
                error, variance = error / root, variance / unit
                d_error, d_variance = d_error / root, d_variance / unit
            yield PredictionMoments(
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
        if explicit.any():
            yield from self._deletions(misfit).moments(beta)

    def sums(self, beta: Array, pairwise: bool) -> Iterator[Sums]:
        """Yield the sums of single rows, or of several."""
        deletion_sums = None if pairwise else self.deletion_sums
        if deletion_sums is not None and (deletion_sums.interpolated or not self._near_one.any()):
            return deletion_sums.sums(beta)
        return (summed(moments, pairwise) for moments in self._moments(beta, misfit=pairwise))

    def floor(self, beta: Array) -> Iterator[Sums]:
        """Yield sums over all rows that are lower bounds and cost no more."""
        deletion_sums = self.deletion_sums
        if deletion_sums is None or deletion_sums.interpolated is None:
            return self.sums(beta, pairwise=False)
        return iter([deletion_sums.interpolated.at(beta, deletion_sums.undeleted)])

    @property
    def lowest_interpolated(self) -> float:
        """Smallest beta covered by the interpolant, or a lower bound on it."""
        return np.inf if self.deletion_sums is None else self.deletion_sums.lowest_interpolated

    @property
    def eigenvalues(self) -> tuple[float, float]:
        """Bounds on the smallest positive and the largest eigenvalue of all training sets."""
        low, high = positive_range(self._decomposition.sigma**2)
        slack = 1.0 if self._decomposition.square else self._least_slack
        exponents = positive_range(self.plan.exponents)
        bounds = (low * exponents[0] * slack, high * exponents[1])
        return (
            union([bounds, self._without_outliers.eigenvalues]) if self._near_one.any() else bounds
        )

    @property
    def misfits(self) -> Misfits:
        """Ranges that determine at which betas the misfits change, or bounds on them."""
        parts, o, exponents = self._decomposition, self._leverages.outside, self.plan.exponents
        undeleted = ~(self._near_one | self._outliers)
        squares = parts.response**2
        left, slack = float(o @ o), self._least_slack
        remainder = 0.0
        if len(o) > len(parts.sigma) + 1:
            remainder = max(left - float((o**2).max()) / slack, left / OUTLIER**2)
        length = float((parts.projection**2 / parts.sigma**2).sum())
        ranges = Misfits(
            positive_range((exponents * (self.plan.size - self.plan.weights))[undeleted]),
            positive_range((exponents * (squares.sum() - squares))[undeleted]),
            positive_range(remainder * exponents.min(), left * exponents.max()),
            positive_range(length, length / slack),
        )
        if undeleted.all():
            return ranges
        others = self._with_outliers.misfits
        return Misfits(*(union(pair) for pair in zip(ranges, others, strict=True)))

    @property
    def _least_slack(self) -> float:
        """Lower bound on the slack of rows that are not deleted explicitly."""
        return max(1.0 - self._leverages.largest, LEAST_SLACK)

    @cached_property
    def deletion_sums(self) -> DeletionSums | None:
        """Sums of rows that share an exponent, if the Gram matrix is well-conditioned."""
        if not self._shared or self.from_gram is None:
            return None
        return DeletionSums(self.plan, self._leverages)

    def _deleted(
        self, part: slice | NDArray[np.intp], beta: Array, exponents: Array, remainder: float
    ) -> Deletion:
        """Return the deletion of each of some rows, with their exponents or one for all.

        ``remainder``, the squared part of the responses outside the span, enters the misfit only.
        """
        parts = self._decomposition
        g, lam = parts.projection[:, None], (parts.sigma**2)[:, None]
        # c and s have one row if all tested rows share their exponent.
        c = np.multiply.outer(exponents, beta)
        s = shrinkage(lam, c[:, None, :])
        ds = -exponents[:, None, None] * lam * s**2
        a = self._leverages.left(part)
        squares = a**2

        def total(coefficients: Array, factor: Array) -> Array:
            if len(factor) == 1:
                # Column order: later operations run over many rows at a time, not over the few
                # betas of one row.
                return (factor[0].T @ coefficients.T).T
            return (coefficients[:, None, :] @ factor)[:, 0]

        def halves(values: Array) -> tuple[Array, Array]:
            return values[:, : len(beta)], values[:, len(beta) :]

        # One product gives a value and its derivative.
        leverage, d_leverage = halves(total(squares, lam * np.concatenate([s, ds], axis=2)))
        fit = -c[:, None, :] * lam * s
        response = parts.response[part][:, None]
        if parts.square:
            # Once most is learnt, sum_j A_ij g_j s_j has small terms and needs no response.
            learnt = c * lam.max() > 1
            fit, response = np.where(learnt[:, None, :], s, fit), np.where(learnt, 0.0, response)
        residual, d_residual = halves(total(a, g * np.concatenate([fit, ds], axis=2)))
        residual += response
        if parts.square:
            kappa, d_kappa = halves(total(squares, np.concatenate([s, ds], axis=2)))
        else:
            kappa = 1.0 - c * leverage
            d_kappa = -(exponents[:, None] * leverage + c * d_leverage)
        return Deletion(
            c,
            exponents[:, None],
            residual,
            d_residual,
            leverage,
            d_leverage,
            kappa,
            d_kappa,
            remainder + (parts.projection**2 @ s),
            remainder + (parts.projection**2 @ s**2),
        )

    def _misfit(
        self, rows: NDArray[np.intp], beta: Array, found: Deletion, error: Array
    ) -> tuple[Array, Array]:
        """Return the misfit without each of some rows and its derivative, (rows, g) each."""
        total, d_total = found.misfit_without(error)
        cancelled = found.cancels(total)
        if cancelled.any():
            which = np.flatnonzero(cancelled)
            exponents = (
                found.exponent[:, 0] if len(found.exponent) == 1 else found.exponent[which, 0]
            )
            total[which], d_total[which] = self._summed_misfit(
                rows[which], beta, exponents, error[which]
            )
        return total, d_total

    def _summed_misfit(
        self, rows: NDArray[np.intp], beta: Array, exponents: Array, error: Array
    ) -> tuple[Array, Array]:
        """Return the misfit without each of some rows and its derivative, as sums of squares."""
        parts, outside = self._decomposition, np.zeros(error.shape)
        if not parts.square:
            slack, o = self._leverages.slack[rows, None], self._leverages.outside[rows, None]
            outside = self._remainders[rows, None] + slack * (error - o / slack) ** 2
        c = np.multiply.outer(exponents, beta)
        s = shrinkage((parts.sigma**2)[:, None], c[:, None, :])
        a = self._leverages.left(rows)[:, :, None]
        squares = (parts.projection[:, None] - a * error[:, None, :]) ** 2 * s
        total = c * (outside + squares.sum(axis=1))
        return total, exponents[:, None] * (outside + (squares * s).sum(axis=1))

    @cached_property
    def _weights(self) -> Array | None:
        return None if all_ones(self.plan.weights) else self.plan.weights

    @cached_property
    def _shared(self) -> bool:
        """Whether all training sets have the same exponent."""
        return self.plan.transfer == "beta" or bool(np.ptp(self.plan.weights) == 0)

    @cached_property
    def _leverages(self) -> Leverages:
        return Leverages(self.rows, self._weights, self._decomposition)

    @cached_property
    def _near_one(self) -> NDArray[np.bool_]:
        """Rows of leverage near one: they alone determine a direction."""
        if self._decomposition.square or self._leverages.largest < 1 - LEAST_SLACK:
            return np.zeros(len(self.rows), dtype=bool)
        return self._leverages.slack < LEAST_SLACK

    @cached_property
    def _remainders(self) -> Array:
        """Squared remainder R of the other rows without each row, (n,)."""
        parts, o = self._decomposition, self._leverages.outside
        if len(self.rows) == len(parts.sigma) + 1:
            return np.zeros(len(o))  # the other rows have full rank
        slack = self._leverages.slack
        removed = np.divide(o**2, slack, out=np.zeros(len(o)), where=slack > 0)
        return np.maximum(o @ o - removed, 0.0)

    @cached_property
    def _outliers(self) -> NDArray[np.bool_]:
        """Rows without which the responses, or their remainder, are far smaller."""
        parts = self._decomposition
        squares = parts.response**2
        whole, others = squares.sum(), squares.sum() - squares
        if len(self.rows) <= len(parts.sigma) + 1:
            return whole > OUTLIER**2 * others
        o, most = self._leverages.outside, self._leverages.largest
        left = float(o @ o)
        if most < MODERATE:  # slack is no less than 1 - most
            least = left - o**2 / (1.0 - most)
            if (whole * left <= OUTLIER**2 * others * least).all():
                return np.zeros(len(o), dtype=bool)
        return whole * left > OUTLIER**2 * others * self._remainders

    def _deletions(self, misfit: bool) -> PairMoments:
        """Return explicit deletions: rows of leverage near one and, for the misfit, outliers."""
        return self._with_outliers if misfit else self._without_outliers

    @cached_property
    def _with_outliers(self) -> PairMoments:
        return self._delete(self._near_one | self._outliers)

    @cached_property
    def _without_outliers(self) -> PairMoments:
        return self._delete(self._near_one)

    def _delete(self, chosen: NDArray[np.bool_]) -> PairMoments:
        rows = np.flatnonzero(chosen)
        test = np.zeros((len(rows), len(self.rows)))
        test[np.arange(len(rows)), rows] = self.plan.weights[rows]
        plan = Plan(self.plan.weights - test, test, self.plan.size, self.plan.transfer)
        return PairMoments(self.rows, plan)

    @cached_property
    def from_gram(self) -> Decomposition | None:
        """Decomposition of many rows, if their Gram matrix is well-conditioned."""
        many = self.rows.inputs.size > MANY_ELEMENTS
        return from_gram(self.rows, self._weights) if many else None

    @cached_property
    def _decomposition(self) -> Decomposition:
        return self.from_gram or from_rows(self.rows, self._weights)
