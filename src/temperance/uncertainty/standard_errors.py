"""Standard errors of a risk and of a gain, over rows or over groups of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from temperance.curves import RiskCurve
from temperance.data import Array, Data
from temperance.protocols import CountsParameters

LEAST_FREE = 0.02  # smallest value used for 1 - p/n


class StandardErrors(Protocol):
    """Standard errors of the estimated risk at the choice and of its gain over Bayes."""

    @property
    def risk(self) -> float:
        """Standard error of the risk."""
        ...

    @property
    def gain(self) -> float:
        """Standard error of the gain."""
        ...


@dataclass(frozen=True)
class KnownErrors:
    """Standard errors given as numbers; nan if unknown."""

    risk: float = float("nan")
    gain: float = float("nan")


def error_inflation(model: object, data: Data, beta: float) -> float:
    r"""Return (1 - p/n)^(-3/2), with p the effective number of parameters of the posterior.

    Losses of held-out rows are not independent: each row trains the posteriors that predict the
    others, and beta is chosen on the same rows.  The effect grows with the number of parameters.
    """
    if not isinstance(model, CountsParameters):
        return 1.0
    used = float(model.parameters_used(data, np.array([max(beta, 1.0)]))[0])
    return max(1 - used / data.size, LEAST_FREE) ** -1.5


@dataclass(frozen=True, eq=False)
class RowErrors:
    """Standard errors over the tested rows, from their losses at beta and at Bayes."""

    curve: RiskCurve
    beta: float
    multiplicity: Array
    inflate: Callable[[], float] = lambda: 1.0
    losses: Array | None = None  # if they differ from those of the curve at beta
    groups: Array | None = None  # labels of rows that depend on each other

    @cached_property
    def inflation(self) -> float:
        """Factor on standard errors over rows."""
        return self.inflate()

    @cached_property
    def risk(self) -> float:
        """Standard error of the risk."""
        return self.inflation * mean_and_error(*self._rows, self.multiplicity, self.groups)[1]

    @cached_property
    def gain(self) -> float:
        """Standard error of the gain over Bayes, paired over the rows."""
        loss, share = self._rows
        bayes, _ = self.curve.rows(1.0)
        gains = bayes - loss
        return self.inflation * mean_and_error(gains, share, self.multiplicity, self.groups)[1]

    @cached_property
    def _rows(self) -> tuple[Array, Array]:
        loss, share = self.curve.rows(self.beta)
        return (loss if self.losses is None else self.losses), share


def pooled(losses: Array, share: Array, groups: Array) -> tuple[Array, Array]:
    """Return the weighted mean losses of groups of tested rows, (..., groups), and their shares."""
    tested = np.flatnonzero(share > 0)
    order = tested[np.argsort(groups[tested], kind="stable")]
    first = np.flatnonzero(np.r_[True, groups[order][1:] != groups[order][:-1]])
    sums: Array = np.add.reduceat(share[order], first)
    return np.add.reduceat(losses[..., order] * share[order], first, axis=-1) / sums, sums


def mean_and_error(
    loss: Array, share: Array, multiplicity: Array, groups: Array | None = None
) -> tuple[float, float]:
    """Return the weighted mean of row losses and its standard error.

    ``share`` weights the rows in the mean; ``multiplicity`` counts the observations that a row
    represents.  Where rows of a group depend on each other, the groups are the observations.
    """
    if groups is not None:
        loss, share = pooled(loss, share, groups)
        multiplicity = np.ones(len(share))
    tested = share > 0
    share, loss = share[tested] / share.sum(), loss[tested]
    # Effective number of observations, 1 / sum of squared shares; it may be infinite.
    with np.errstate(over="ignore"):
        count = 1 / (share**2 / multiplicity[tested]).sum()
    mean = float(share @ loss)
    if count <= 1:
        return mean, float("nan")
    largest = (
        float(np.abs(loss - mean).max()) or 1.0
    )  # scaled first, so that squares do not overflow
    return mean, largest * float(np.sqrt(share @ ((loss - mean) / largest) ** 2 / (count - 1)))
