r"""Moments of leave-one-out: each row's deletion is a rank-one downdate of one decomposition.

With B = A diag(sigma) U' the rows scaled by the roots of their weights, c_i the exponent of the
training set of row i and s = 1/(1 + c_i sigma^2), the fit to all rows has

    residual  e_i = o_i + sum_j A_ij g_j s_j,      o = r - A g,
    1 - c_i h_i = kappa_i = 1 - sum_j A_ij^2 + sum_j A_ij^2 s_j,    h_i = sum_j A_ij^2 sigma_j^2
    s_j,

and without row i the error is e_i / kappa_i, the variance h_i / kappa_i and the misfit Q - c_i
e_i^2 / kappa_i.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from temperance.models.linear.moments import Moments
from temperance.models.linear.pairs import PairMoments
from temperance.types import Array, LeaveOneOutPlan, Plan, batches

ALONE = 1e-4


@dataclass(frozen=True, eq=False)
class LeaveOneOutMoments:
    """Moments of the rows [Z r] (n, k + 1), whitened and in units of the noise."""

    rows: Array
    plan: LeaveOneOutPlan

    def moments(self, beta: Array, condensed: bool) -> Iterator[Moments]:
        """Yield the moments of batches of rows; rows that stand alone are deleted for real."""
        weights, exponents = self.plan.weights, self.plan.exponents
        shared = bool(np.ptp(exponents) == 0)
        k = self.rows.shape[1] - 1
        alone = self._alone
        together = np.flatnonzero(~alone)
        for part in batches(len(together), len(beta) * (6 if shared else 6 + 3 * k)):
            rows = together[part]
            unit = weights[rows, None]
            error, variance, misfit, d_error, d_variance, d_misfit = self._deleted(
                rows, beta, exponents[:1] if shared else exponents[rows]
            )
            yield Moments(
                error=(error / np.sqrt(unit))[:, None],
                variance=(variance / unit)[:, None],
                misfit=misfit,
                d_error=(d_error / np.sqrt(unit))[:, None],
                d_variance=(d_variance / unit)[:, None],
                d_misfit=d_misfit,
                exposure=exponents[rows] * (self.plan.size - weights[rows]),
                weight=unit,
                tested=weights[rows],
                rows=rows[:, None],
            )
        if alone.any():
            yield from self._deletions.moments(beta, condensed=False)

    def _deleted(self, part: NDArray[np.intp], beta: Array, exponents: Array) -> tuple[Array, ...]:
        """Error, variance and misfit of the scaled rows and their derivatives, (rows, g) each."""
        left, sigma, g, outside_response, outside_row = self._decomposition
        lam = (sigma**2)[:, None]
        # c and s have one row for all tested rows when these share their exponent.
        c = np.multiply.outer(exponents, beta)
        s = 1.0 / (1.0 + c[:, None, :] * lam)
        ds = -exponents[:, None, None] * lam * s**2
        a = left[part]

        def total(coefficients: Array, factor: Array) -> Array:
            return (
                (coefficients[:, None, :] @ factor)[:, 0]
                if len(factor) > 1
                else (coefficients @ factor[0])
            )

        residual = outside_response[part, None] + total(a * g, s)
        kappa = outside_row[part, None] + total(a**2, s)
        leverage = total(a**2, lam * s)
        d_residual, d_kappa, d_leverage = total(a * g, ds), total(a**2, ds), total(a**2, lam * ds)

        remainder = (outside_response**2).sum()
        drop = c * residual**2 / kappa
        d_drop = (
            exponents[:, None] * residual**2 + 2 * c * residual * d_residual - drop * d_kappa
        ) / kappa
        error, variance = residual / kappa, leverage / kappa
        return (
            error,
            variance,
            np.maximum(c * (remainder + g**2 @ s) - drop, 0.0),
            (d_residual - error * d_kappa) / kappa,
            (d_leverage - variance * d_kappa) / kappa,
            exponents[:, None] * (remainder + g**2 @ s**2) - d_drop,
        )

    @property
    def _alone(self) -> NDArray[np.bool_]:
        """Rows that determine a direction alone, where kappa is a difference of near-equals."""
        left, _, _, _, outside_row = self._decomposition
        square = left.shape[0] == left.shape[1]
        return np.zeros(len(left), dtype=bool) if square else outside_row < ALONE

    @cached_property
    def _deletions(self) -> PairMoments:
        rows = np.flatnonzero(self._alone)
        test = np.zeros((len(rows), len(self.rows)))
        test[np.arange(len(rows)), rows] = self.plan.weights[rows]
        plan = Plan(self.plan.weights - test, test, self.plan.size, self.plan.transfer)
        return PairMoments(self.rows, plan)

    @cached_property
    def _decomposition(self) -> tuple[Array, ...]:
        scaled = np.sqrt(self.plan.weights)[:, None] * self.rows
        left, sigma, _ = np.linalg.svd(scaled[:, :-1], full_matrices=False)
        kept = sigma > np.finfo(float).eps * max(scaled.shape) * sigma.max(initial=0.0)
        left, sigma = left[:, kept], sigma[kept]
        response = scaled[:, -1]
        g = left.T @ response
        if left.shape[0] == left.shape[1]:
            # The rows span everything: exact zeros, where differences would leave rounding noise.
            return left, sigma, g, np.zeros_like(response), np.zeros_like(response)
        outside_row = np.maximum(1.0 - (left**2).sum(axis=1), 0.0)
        return left, sigma, g, response - left @ g, outside_row
