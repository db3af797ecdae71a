r"""Losses of single rows under posteriors that follow from second moments of all rows.

The first pass gives the eigenbases of the training sets.  In a second one each row z with response
r, whitened, has along U the coordinates a = U'z, and a posterior with mean U x and covariance
U diag(s) U' (:mod:`temperance.models.linear.eigenbasis`) predicts it with

    error  e = r - a'x,    variance  v = sum_j a_j^2 s_j.

To leave out the row itself, of weight w, at exponent c, with kappa = 1 - c w v:

    error  e / kappa,    variance  v / kappa,    misfit  Q - c w e^2 / kappa.

Rows for which these lose digits, kappa near zero or nearly all of the misfit, are few.  They are
set aside, and deleted from the triangle of all other rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, Data, Risk, batches
from temperance.models.linear.eigenbasis import Eigenbasis
from temperance.models.linear.fast.leave_one_out import CANCELLATION, LEAST_SLACK
from temperance.models.linear.moments import PredictionMoments
from temperance.models.linear.noise import NoiseModel
from temperance.models.linear_predictor import GaussianPrior
from temperance.streaming.accumulate import FoldMoments, partition_moments, validated
from temperance.streaming.folds import partition_folds
from temperance.streaming.loss_sums import LossSums

BATCH = 2**20  # elements of the temporaries of a batch of rows
UNUSED = np.zeros((1, 1, 1))  # derivatives: those of the curve come from its interpolation
NO_ROWS = np.empty((0, 0), dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Whitening:
    """From rows to those in units of the prior and of the noise."""

    prior: GaussianPrior
    deviation: float

    def rows(self, X: Array, y: Array) -> tuple[Array, Array]:
        """Return Z (n, d) and the responses (n,)."""
        if self.prior.mean.any():
            predicted = X.astype(np.longdouble) @ self.prior.mean.astype(np.longdouble)
            y = (y - predicted).astype(float)
        return self.prior.whiten(X) / self.deviation, y / self.deviation


class Batch(NamedTuple):
    """Losses (n, g) of some rows, their weights, and which of them must be set aside."""

    losses: Array
    weights: Array
    aside: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Losses:
    """What both kinds of losses need: betas, the noise and the risk."""

    whitening: Whitening
    noise: NoiseModel
    risk: Risk
    beta: Array

    def of(self, error: Array, variance: Array, misfit: Array, exposure: Array) -> Array:
        """Return the losses (m, e, g) of e tested rows of m training sets."""
        moments = PredictionMoments(
            error, variance, misfit, UNUSED, UNUSED, UNUSED[0], exposure, UNUSED, UNUSED, NO_ROWS
        )
        return self.noise.loss(self.beta, moments, self.risk)[0]


@dataclass(frozen=True, eq=False)
class HeldOut(Losses):
    """Losses of the rows of each fold under the posterior of others.

    Parameters
    ----------
    bases : Eigenbasis
        Of m training sets.
    exposure : array of shape (m,)
        Their weights.
    tested_by : array of shape (folds,)
        Training set that tests each fold; -1 for none.
    seed : int
    """

    bases: Eigenbasis
    exposure: Array
    tested_by: NDArray[np.intp]
    seed: int

    def partition(self, number: int, data: Data) -> Iterator[Batch]:
        """Yield the losses of batches of rows, in their order."""
        fold = partition_folds(len(self.tested_by), self.seed, number).take(len(data))
        for part in batches(len(data), data.X.shape[1] + 6 * len(self.beta), BATCH):
            Z, r = self.whitening.rows(data.X[part], data.y[part])
            pair = self.tested_by[fold[part]]
            losses = np.zeros((len(r), len(self.beta)))
            for each in np.unique(pair[pair >= 0]):
                basis, chosen = self.bases.take(slice(each, each + 1)), pair == each
                state = basis.at(self.beta)
                along = Z[chosen] @ basis.vectors[0]
                losses[chosen] = self.of(
                    (r[chosen, None] - along @ state.mean[0])[None],
                    (along**2 @ state.shrinkage[0])[None],
                    state.misfit,
                    self.exposure[each : each + 1],
                )[0]
            weights = np.where(pair >= 0, data.weights[part], 0.0)
            yield Batch(losses, weights, np.zeros(len(r), dtype=bool))


@dataclass(frozen=True, eq=False)
class LeftOut(Losses):
    """Losses of rows under the posterior of all others.

    Parameters
    ----------
    basis : Eigenbasis
        Of all rows.
    size : float
        Weight of all rows.
    exponent : float
        Factor on beta in every training set.
    most_pieces : int
        A row of weight w counts as that many rows, ceil(w) at most, of which one is left out; 1 to
        leave out the whole row.
    """

    basis: Eigenbasis
    size: float
    exponent: float = 1.0
    most_pieces: int = 1

    def deleted(self, weights: Array) -> Array:
        """Return the weights that are left out at once."""
        return weights / np.clip(np.ceil(weights), 1, self.most_pieces)

    def _refuse_unequal(self, weights: Array) -> None:
        """Refuse unequal weights where training sets of equal size have other exponents."""
        own = self.size * (1 - 1 / self.exponent)
        if self.exponent != 1 and np.any(np.abs(weights - own) > 1e-6 * own):
            raise ValueError(
                "weights must be equal for LeaveOneOut(transfer='alpha') on partitions, got from "
                f"{weights.min():g} to {weights.max():g}"
            )

    def partition(self, number: int, data: Data) -> Iterator[Batch]:
        """Yield the losses of batches of rows, in their order."""
        c, state = self.exponent * self.beta, self.basis.at(self.exponent * self.beta)
        for part in batches(len(data), data.X.shape[1] + 8 * len(self.beta), BATCH):
            Z, r = self.whitening.rows(data.X[part], data.y[part])
            weights = data.weights[part]
            self._refuse_unequal(weights)
            removed = self.deleted(weights)
            along = Z @ self.basis.vectors[0]
            residual = r[:, None] - along @ state.mean[0]
            variance = along**2 @ state.shrinkage[0]
            kappa = 1 - (c * removed[:, None]) * variance
            aside = kappa.min(axis=1) < LEAST_SLACK
            kappa[aside] = 1.0  # their losses are not used
            error = residual / kappa
            misfit = state.misfit
            if self.noise.pairwise:
                misfit = misfit - (c * removed[:, None]) * residual * error
                lost = np.any(misfit < CANCELLATION * state.misfit, axis=1)
                misfit[lost], aside = state.misfit, aside | lost
            losses = self.of(
                error[:, None],
                (variance / kappa)[:, None],
                misfit,
                self.exponent * (self.size - removed),
            )[:, 0]
            yield Batch(losses, weights, aside)


@dataclass(frozen=True, eq=False)
class Gathered:
    """Sums of losses, rows set aside as (X, y, weights), and other sums over rows."""

    sums: LossSums
    aside: Data
    others: Array

    def merge(self, *others: Self) -> Self:
        """Return the same of the rows of all; of rows of zero columns there is none."""
        parts = (self, *others)
        kept = [each.aside for each in parts if len(each.aside)] or [self.aside]
        return type(self)(
            self.sums.merge(*(each.sums for each in others)),
            Data(*(np.concatenate(part) for part in zip(*map(_parts, kept), strict=True))),
            np.sum([each.others for each in parts], axis=0),
        )


def _parts(data: Data) -> tuple[Array, Array, Array]:
    return data.X, data.y, data.weights


class Other:
    """Other sums over rows, none by default."""

    def __call__(self, data: Data) -> Array:
        """Return the sums of some rows."""
        return np.zeros(0)


class LossesOfRows(Protocol):
    """Losses of the rows of a partition at some betas."""

    @property
    def beta(self) -> Array:
        """The betas."""
        ...

    def partition(self, number: int, data: Data) -> Iterator[Batch]:
        """Yield the losses of batches of rows, in their order."""
        ...


@dataclass(frozen=True, eq=False)
class GatherLosses:
    """The statistic of a second pass."""

    losses: LossesOfRows
    other: Other
    columns: int | None  # of X; None if none of the rows is set aside
    base: int

    def __call__(self, partition: int, block: Any) -> Gathered:
        """Return the sums of a partition (X, y) or (X, y, weights)."""
        base, count = self.base, len(self.losses.beta)
        found = LossSums.of(np.empty((0, count)), np.empty(0), base)
        aside = Data(np.empty((0, self.columns or 0)), np.empty(0), np.empty(0))
        others = self.other(aside)
        for data in checked(partition, block, self.columns):
            others = self.other(data)
            left = []
            for losses, weights, away in self.losses.partition(partition, data):
                left.append(away)
                if away.any():
                    losses, weights = losses[~away], weights[~away]
                found = found.merge(LossSums.of(losses, weights, base))
            which = np.concatenate(left)
            aside = Data(data.X[which], data.y[which], data.weights[which])
        return Gathered(found, aside, others)


@dataclass(frozen=True, eq=False)
class WithoutAside:
    """The moments of all rows but those that a second pass sets aside."""

    losses: LeftOut
    columns: int

    def __call__(self, partition: int, block: Any) -> FoldMoments:
        """Return the moments of a partition (X, y) or (X, y, weights)."""
        for data in checked(partition, block, self.columns):
            kept = ~np.concatenate(
                [batch.aside for batch in self.losses.partition(partition, data)]
            )
            X, y, weights = (part[kept] for part in _parts(data))
            return partition_moments(X, y, weights, n_folds=1, partition=partition)
        return FoldMoments(1, self.columns, partition)


def checked(partition: int, block: Any, columns: int | None) -> Iterator[Data]:
    """Yield the rows of a partition, if there are any."""
    for name, data in validated([block], "partition", partition):
        if columns is not None and data.X.shape[1] != columns:
            raise ValueError(
                f"X must have {columns} columns in every partition, got {data.X.shape[1]} in {name}"
            )
        yield data
