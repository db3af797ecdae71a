r"""Prediction of every row from all the others, from one decomposition.

Removing row i of weight w changes the centre: N' = N - w, x_i - xbar' = (N/N') (x_i - xbar).  It
subtracts omega = w N/N' times the products of its deviations from the centred products.  With
h = kappa z'diag(q) z and e = y_i - ybar - z'm from all rows, and o = 1 - beta omega h,

    error  (N/N') e / o,    variance  (N/N')^2 h / o,    Q' = Q - beta omega e^2 / o,

and the determinant is multiplied by o.  Rows that make up nearly the whole misfit or the whole
weight, or that alone determine a direction, are left out by a fit without them: there Q', N' or o
would lose digits by cancellation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, batches
from temperance.models.hierarchical.moments import Predictions, as_moments, level_at, predictions
from temperance.models.hierarchical.training import (
    DecomposedRows,
    TestedRows,
    TrainingSets,
    decompose,
    trained_and_tested,
)
from temperance.models.linear.noise import NoiseModel
from temperance.plans import LeaveOneOutPlan, Plan

LEAST_LEFT = 1e-3  # share of the misfit, and of the weight, that must remain without a row
LEAST_FACTOR = 1e-9  # smallest o that is used; its rounding error is 1e-16
NEGLIGIBLE = 40.0  # difference in log weight beyond which a scale is negligible
PRODUCTS = 25  # values of beta * kappa at which the misfit is checked


class _Fit(NamedTuple):
    misfit: Array
    d_misfit: Array
    exposure: Array


@dataclass(frozen=True, eq=False)
class LeaveOneOutPredictions:
    """Predictions of each row from the others, with equal exponents on all rows."""

    X: Array
    y: Array
    plan: LeaveOneOutPlan
    centred: bool

    @cached_property
    def decomposition(self) -> DecomposedRows:
        """Decomposition of all rows."""
        return decompose(self.X, self.y, self.plan.weights, self.centred)

    @property
    def training(self) -> TrainingSets:
        """Statistics of all rows as a training set."""
        return self.decomposition.training

    @property
    def training_sets(self) -> list[TrainingSets]:
        """One of all rows, which holds all that leave one out."""
        return [self.training]

    def at(
        self, beta: float, scales: Array, prior_level: float, noise: NoiseModel
    ) -> Iterator[Predictions]:
        """Yield the predictions of all rows at ``beta``, under scales of non-negligible weight."""
        cancelling = np.minimum(self._misfit_left, 1 / self._growth) <= LEAST_LEFT
        cancelling |= self._cancelling(beta, scales)
        for training, tests in self._without(np.flatnonzero(cancelling)):
            yield predictions(training, tests, beta, scales, prior_level)
        safe = np.flatnonzero(~cancelling)
        for part in batches(len(safe), len(scales), budget=2**18):
            rows = safe[part]
            likely = self._likely(rows, beta, scales, noise)
            yield self._downdated(rows, beta, scales[likely], prior_level)

    def _cancelling(self, beta: float, scales: Array) -> NDArray[np.bool_]:
        """Return the rows whose o loses digits under the widest prior."""
        if self._full:
            return np.zeros(len(self.y), dtype=bool)
        left = 1 / (1 + beta * scales.max() * self.training.singular**2)
        return self._errors(left, slice(None))[1][0] < LEAST_FACTOR

    @cached_property
    def _refitted(self) -> dict[bytes, list[tuple[TrainingSets, TestedRows]]]:
        return {}

    def _without(self, rows: NDArray[np.intp]) -> list[tuple[TrainingSets, TestedRows]]:
        """Return the fits without each of some rows."""
        if not len(rows):
            return []
        key = rows.tobytes()
        if key in self._refitted:
            return self._refitted[key]
        test = np.zeros((len(rows), len(self.y)))
        test[np.arange(len(rows)), rows] = self.plan.weights[rows]
        plan = Plan(np.where(test > 0, 0.0, self.plan.weights), test, self.plan.size)
        self._refitted[key] = list(trained_and_tested(self.X, self.y, plan, self.centred))
        return self._refitted[key]

    @cached_property
    def _misfit_left(self) -> Array:
        """Least share of Q that remains without each row, (n,); it depends on beta * kappa only."""
        square = self.training.singular[0] ** 2
        least, most = (square.min(), square.max()) if len(square) else (1.0, 1.0)
        left = np.ones(len(self.y))
        for product in np.geomspace(1e-3 / most, 1e3 / least, PRODUCTS):
            left_over = 1 / (1 + product * square)
            error, kept = self._errors(left_over[None], slice(None))
            whole = self.training.rest[0] + self.training.response[0] ** 2 @ left_over
            taken = self._omega(slice(None)) * error[0] ** 2 / kept[0]
            with np.errstate(invalid="ignore", divide="ignore"):
                left = np.minimum(left, np.nan_to_num(1 - taken / whole))
        return left

    def _omega(self, rows: NDArray[np.intp] | slice) -> Array:
        """Return omega of some rows."""
        return self.plan.weights[rows] * self._growth[rows]

    @cached_property
    def _growth(self) -> Array:
        """N / N'; 1 if rows are not centred."""
        total = self.training.exposure[0]
        weights = self.plan.weights
        return total / (total - weights) if self.centred else np.ones(len(weights))

    @cached_property
    def _unexplained(self) -> Array:
        """1 - omega h of each row for an infinitely wide prior."""
        if self._full:
            return np.zeros(len(self.y))
        inside = (self.decomposition.left**2).sum(axis=1)
        return np.maximum(1 - self._growth * inside, 0.0)

    @cached_property
    def _full(self) -> bool:
        """Whether there are as many directions as rows."""
        return len(self.training.singular[0]) >= len(self.y) - int(self.centred)

    def _errors(self, left: Array, rows: NDArray[np.intp] | slice) -> tuple[Array, Array]:
        """Return e and o (k, rows) at the shrinkages ``left`` (k, r)."""
        U = self.decomposition.left[rows]
        response = self.training.response[0]
        # The part of the fit that shrinkage removes: the difference y - z'm would lose digits.
        shrunk = (response * left) @ U.T / np.sqrt(self.plan.weights[rows])
        kept = self._unexplained[rows] + self._growth[rows] * (left @ (U**2).T)
        return self._residuals[rows] + shrunk, kept

    @cached_property
    def _residuals(self) -> Array:
        """Errors e for an infinitely wide prior."""
        if self._full:
            return np.zeros(len(self.y))
        explained = self.decomposition.left @ self.training.response[0] / np.sqrt(self.plan.weights)
        return self.y - self.training.mean[0] - explained

    def _likely(
        self, rows: NDArray[np.intp], beta: float, scales: Array, noise: NoiseModel
    ) -> NDArray[np.bool_]:
        """Return the scales whose weight is not negligible for some row."""
        training, k = self.training, len(scales)
        left = 1 / (1 + beta * scales[:, None] * training.singular**2)
        error, kept = self._errors(left, rows)
        whole = training.rest + (training.response**2 * left).sum(axis=1)
        misfit = beta * (whole[:, None] - self._omega(rows) * error**2 / kept)
        exposure = np.repeat(training.exposure - self.plan.weights[rows], k)
        fit = _Fit(misfit.T.reshape(-1, 1), np.zeros(1), exposure)
        evidence, _ = noise.log_evidence(np.array([beta]), fit)
        log_weight = evidence.reshape(-1, k) - 0.5 * (np.log(kept).T - np.log(left).sum(axis=1))
        return (log_weight >= log_weight.max(axis=1, keepdims=True) - NEGLIGIBLE).any(axis=0)

    def _downdated(
        self, rows: NDArray[np.intp], beta: float, scales: Array, prior_level: float
    ) -> Predictions:
        training = self.training
        singular, response = training.singular[0], training.response[0]
        square, scale = singular**2, scales[:, None]
        left = 1 / (1 + beta * scale * square)  # (k, r)
        weights, growth, omega = self.plan.weights[rows], self._growth[rows], self._omega(rows)
        U = self.decomposition.left[rows]
        squares = (U**2 * square).T / weights  # of z, (r, rows)
        share = scale * left  # multiplied first: squares may be huge
        height = share @ squares
        d_height = -(share**2 * square) @ squares
        error, kept = self._errors(left, rows)
        d_error = -(scale * square * response * left**2) @ U.T / np.sqrt(weights)
        d_kept = -omega * ((share * left) @ squares)
        taken = omega * error**2 / kept
        d_taken = omega * error * (2 * d_error - error * d_kept / kept) / kept
        whole = training.rest + (response**2 * left).sum(axis=1)
        d_whole = training.rest + (response**2 * left**2).sum(axis=1)
        exposure = training.exposure[0] - weights
        deviation = self.y[rows] - training.mean[0]
        mean = training.mean[0] - weights * deviation / exposure if self.centred else 0 * exposure
        level = level_at(beta, exposure, mean, prior_level)
        log_determinant = -np.log(left).sum(axis=1)[:, None] + np.log(kept)
        d_log_determinant = (scale * square * left).sum(axis=1)[:, None] + d_kept / kept
        return Predictions(
            as_moments(
                error=(growth * error / kept + level.error).T[:, :, None],
                variance=(growth**2 * height / kept + level.variance).T[:, :, None],
                misfit=(beta * (whole[:, None] - taken) + level.misfit).T,
                d_error=(growth * (d_error - error * d_kept / kept) / kept + level.d_error).T[
                    :, :, None
                ],
                d_variance=(
                    growth**2 * (d_height - height * d_kept / kept) / kept + level.d_variance
                ).T[:, :, None],
                d_misfit=(d_whole[:, None] - taken - beta * d_taken + level.d_misfit).T,
                exposure=exposure,
                weight=weights[:, None],
                rows=rows[:, None],
            ),
            log_determinant.T,
            d_log_determinant.T,
        )
