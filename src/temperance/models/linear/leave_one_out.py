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

from temperance.models.linear.moments import Moments, Sums, summed
from temperance.models.linear.pairs import PairMoments
from temperance.models.linear.rows import CACHED, Rows
from temperance.models.linear.spectrum import spectrum_of_grams
from temperance.types import Array, LeaveOneOutPlan, Plan, batches

ALONE = 1e-4


class Decomposition(NamedTuple):
    """Left factor of all rows, and what it leaves."""

    left: Array  # (n, rank): A
    sigma: Array  # (rank,)
    projection: Array  # (rank,): g
    outside: Array  # (n,): o
    slack: Array  # (n,): 1 - sum_j A_ij^2

    @property
    def square(self) -> bool:
        """Whether the rows span everything."""
        return self.left.shape[0] == self.left.shape[1]


@dataclass(frozen=True, eq=False)
class LeaveOneOutMoments:
    """Moments of whitened rows [Z r] of k columns and a response."""

    rows: Rows
    plan: LeaveOneOutPlan

    def moments(self, beta: Array) -> Iterator[Moments]:
        """Yield the moments of batches of rows; rows that stand alone are deleted for real."""
        weights, exponents = self.plan.weights, self.plan.exponents
        shared = bool(np.ptp(exponents) == 0)
        alone = self._alone
        together = np.flatnonzero(~alone) if alone.any() else None
        count, k = len(weights) - int(alone.sum()), self.rows.width
        for part in batches(count, k + len(beta) * (6 if shared else 6 + 3 * k), CACHED):
            rows = np.arange(part.start, part.stop) if together is None else together[part]
            unit = weights[rows, None]
            error, variance, misfit, d_error, d_variance, d_misfit = self._deleted(
                part if together is None else rows, beta, exponents[:1] if shared else exponents[rows]
            )
            root = np.sqrt(unit)
            yield Moments(
                error=(error / root)[:, None],
                variance=(variance / unit)[:, None],
                misfit=misfit,
                d_error=(d_error / root)[:, None],
                d_variance=(d_variance / unit)[:, None],
                d_misfit=d_misfit,
                exposure=exponents[rows] * (self.plan.size - weights[rows]),
                weight=unit,
                tested=weights[rows],
                rows=rows[:, None],
            )
        if alone.any():
            yield from self._deletions.moments(beta)

    def sums(self, beta: Array) -> Iterator[Sums]:
        """Yield the sums, of one row each."""
        return map(summed, self.moments(beta))

    def _deleted(
        self, part: slice | NDArray[np.intp], beta: Array, exponents: Array
    ) -> tuple[Array, ...]:
        """Error, variance and misfit of the scaled rows and their derivatives, (rows, g) each."""
        parts = self._decomposition
        g, lam = parts.projection, (parts.sigma**2)[:, None]
        # c and s have one row for all tested rows when these share their exponent.
        c = np.multiply.outer(exponents, beta)
        s = 1.0 / (1.0 + c[:, None, :] * lam)
        ds = -exponents[:, None, None] * lam * s**2
        a = parts.left[part]
        squares = a**2

        def total(coefficients: Array, factor: Array) -> Array:
            if len(factor) == 1:
                return coefficients @ factor[0]
            return (coefficients[:, None, :] @ factor)[:, 0]

        weighted = g[:, None]
        residual = parts.outside[part, None] + total(a, weighted * s)
        leverage = total(squares, lam * s)
        d_residual, d_leverage = total(a, weighted * ds), total(squares, lam * ds)
        kappa = total(squares, s) if parts.square else 1.0 - c * leverage
        d_kappa = -(exponents[:, None] * leverage + c * d_leverage)

        error, variance = residual / kappa, leverage / kappa
        remainder = (parts.outside**2).sum()
        drop = c * residual * error
        d_drop = (
            exponents[:, None] * residual + 2 * c * d_residual - c * error * d_kappa
        ) * error
        return (
            error,
            variance,
            np.maximum(c * (remainder + g**2 @ s) - drop, 0.0),
            (d_residual - error * d_kappa) / kappa,
            (d_leverage - variance * d_kappa) / kappa,
            exponents[:, None] * (remainder + g**2 @ s**2) - d_drop,
        )

    @cached_property
    def _alone(self) -> NDArray[np.bool_]:
        """Rows that determine a direction alone."""
        parts = self._decomposition
        return np.zeros(len(parts.left), dtype=bool) if parts.square else parts.slack < ALONE

    @cached_property
    def _deletions(self) -> PairMoments:
        rows = np.flatnonzero(self._alone)
        test = np.zeros((len(rows), len(self.rows)))
        test[np.arange(len(rows)), rows] = self.plan.weights[rows]
        plan = Plan(self.plan.weights - test, test, self.plan.size, self.plan.transfer)
        return PairMoments(self.rows, plan)

    @cached_property
    def _decomposition(self) -> Decomposition:
        weights = None if np.all(self.plan.weights == 1.0) else self.plan.weights
        left, sigma, g, response = self._from_gram(weights) or self._from_rows(weights)
        if left.shape[0] == left.shape[1]:
            # The rows span everything: exact zeros, where differences would leave rounding noise.
            return Decomposition(left, sigma, g, np.zeros_like(response), np.zeros_like(response))
        slack = np.maximum(1.0 - np.einsum("ij,ij->i", left, left), 0.0)
        return Decomposition(left, sigma, g, response - left @ g, slack)

    def _from_gram(self, weights: Array | None) -> tuple[Array, ...] | None:
        """A = Z U / sigma, where the Gram matrix tells U and sigma."""
        rows = self.rows
        if len(rows) <= rows.width:
            return None
        spectrum, safe = spectrum_of_grams(rows.gram(weights=weights)[None], np.array([len(rows)]))
        if not safe[0]:
            return None
        sigma = spectrum.sigma[0]
        left = rows.inputs @ (rows.scale[:, None] * spectrum.vectors[0] / sigma)
        if weights is None:
            return left, sigma, spectrum.projection[0], rows.response
        root = np.sqrt(weights)
        left *= root[:, None]
        return left, sigma, spectrum.projection[0], rows.response * root

    def _from_rows(self, weights: Array | None) -> tuple[Array, ...]:
        scaled = self.rows.take(slice(None), weights)
        left, sigma, _ = np.linalg.svd(scaled[:, :-1], full_matrices=False)
        kept = sigma > np.finfo(float).eps * max(scaled.shape) * sigma.max(initial=0.0)
        left, sigma = left[:, kept], sigma[kept]
        return left, sigma, left.T @ scaled[:, -1], scaled[:, -1]
