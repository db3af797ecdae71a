r"""The table of held-out losses: what every model gives, and every rule for beta reads.

A table holds the loss of each held-out row at some betas.  Closed forms answer at any beta, other
tables are interpolated in log beta.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.checks import as_non_negative
from temperance.data import Array, Risk

STEP = 1e-100  # of a derivative along the imaginary axis, which has no rounding error
DECADE = 10.0
LEAST = 1e-3  # smallest beta of a scan and of a stack


@dataclass(frozen=True, eq=False)
class HeldOut:
    r"""Losses of held-out rows as functions of beta.

    .. math:: R(\beta) = \sum_i w_i l_i(\beta) / \sum_i w_i

    Parameters
    ----------
    betas : array of shape (g,)
        The betas of the table, ascending.
    at : function
        From betas (g,) to losses (g, rows), averaged over the pairs that test a row.
    weights : array of shape (rows,)
        Weight of each row in the mean; 0 for rows that are never tested.
    counts : array of shape (rows,)
        Number of observations that each row stands for.
    score : {"predictive", "gibbs"}
    groups : array of shape (rows,), optional
        Labels of rows that depend on each other.
    votes : float
        Number of votes for beta = 1 against those of the rows, in a stack.
    method : str
        How the losses were obtained, as a phrase.
    analytic : bool
        Whether ``at`` accepts complex betas, which give slopes.
    rows : array of shape (rows,), optional
        Which rows of the data these are, if not all.
    """

    betas: Array
    at: Callable[[Any], Array]
    weights: Array
    counts: Array
    score: Risk
    groups: Array | None = None
    votes: float = 1.0
    method: str = "closed form"
    analytic: bool = False
    rows: NDArray[np.intp] | None = None

    @cached_property
    def losses(self) -> Array:
        """The table itself, shape (g, rows)."""
        return self.at(self.betas)

    @cached_property
    def share(self) -> Array:
        """Weights with sum 1."""
        return self.weights / self.weights.sum()

    def risk(self, betas: Array) -> Array:
        """Return the mean loss at betas (g,)."""
        return self.at(betas) @ self.share

    def slope(self, betas: Array) -> Array:
        """Return the derivative of the mean loss at betas (g,)."""
        if self.analytic:
            return self.at(betas + 1j * STEP).imag @ self.share / STEP
        step = 1e-5 * np.maximum(betas, 1e-5)
        forwards, backwards = self.risk(betas + step), self.risk(np.maximum(betas - step, 0.0))
        return (forwards - backwards) / (step + np.minimum(step, betas))

    def __call__(self, beta: ArrayLike, derivative: bool = False) -> Any:
        """Return the risk at ``beta``, scalar or array; with ``derivative``, (risk, slope)."""
        at = as_non_negative("beta", beta)
        value = self.risk(at.ravel()).reshape(at.shape)[()] if at.size else at
        if not derivative:
            return value
        return value, self.slope(at.ravel()).reshape(at.shape)[()] if at.size else at

    @property
    def error(self) -> Callable[[Array], Array] | None:
        """Function from betas to the Monte Carlo standard error of the risk, if there is one."""
        return None

    def method_at(self, beta: float) -> str:
        """Return how the risk at ``beta`` was obtained, as a phrase."""
        return self.method

    def warn(self, beta: float, standard_error: Callable[[], float]) -> None:
        """Warn if the numbers are unreliable at ``beta``; exact ones never are."""

    def kept(self) -> HeldOut:
        """Return a table of the mean losses alone, which needs no data."""
        means = self.risk(self.betas)[:, None]
        table = held_out_losses(self.betas, means, score=self.score)
        return replace(table, votes=self.votes, method=self.method)


def held_out_losses(
    betas: Array,
    losses: Array,
    weights: Array | None = None,
    counts: Array | None = None,
    score: Risk = "predictive",
) -> HeldOut:
    """Return a table of losses (g, rows) at given betas."""
    betas, losses = np.asarray(betas, dtype=float), np.asarray(losses, dtype=float)
    bad = np.argwhere(~np.isfinite(losses))
    if len(bad):
        k, row = bad[0]
        raise ValueError(
            f"losses must be finite, got {losses[k, row]} at beta = {betas[k]:.3g} in row {row}"
        )
    ones = np.ones(losses.shape[1])
    table = HeldOut(
        betas,
        Interpolated(np.asarray(betas, dtype=float), np.asarray(losses, dtype=float)),
        ones if weights is None else weights,
        ones if counts is None else counts,
        score,
    )
    return table


@dataclass(frozen=True, eq=False)
class Interpolated:
    """Losses that are cubic in log beta between the betas of a table, and constant beyond."""

    betas: Array
    losses: Array

    def __call__(self, betas: Array) -> Array:
        """Return the losses at betas (g,), shape (g, rows)."""
        at = np.clip(betas, self.betas[0], self.betas[-1])
        if len(self.betas) == 1:
            return np.repeat(self.losses, len(at), axis=0)
        first = int(self.betas[0] == 0)  # from 0 to the next beta a straight line
        places = np.log(self.betas[first:])
        cubic = self._cubic(places, self.losses[first:])
        found = cubic(np.log(np.maximum(at, self.betas[first])))
        if first:
            inside = at < self.betas[1]
            part = (at[inside] / self.betas[1])[:, None]
            found[inside] = (1 - part) * self.losses[0] + part * self.losses[1]
        return found

    @staticmethod
    def _cubic(places: Array, losses: Array) -> Callable[[Array], Array]:
        if len(places) == 1:
            return lambda at: np.repeat(losses, len(at), axis=0)
        from scipy.interpolate import CubicSpline

        return CubicSpline(places, losses)


def half_decades(bounds: tuple[float, float], least: float = LEAST) -> Array:
    """Return betas half a decade apart, with 1 among them, from ``least`` on, and the bounds.

    They are over a decade at least, if the bounds are.

    Examples
    --------
    >>> half_decades((0.0, 3.0)).round(4)
    array([1.000e-03, 3.200e-03, 1.000e-02, 3.160e-02, 1.000e-01, 3.162e-01,
           1.000e+00, 3.000e+00])
    """
    lower, upper = max(bounds[0], min(least, bounds[1] / 10)), bounds[1]
    first, last = np.ceil(2 * np.log10(lower) - 1e-9), np.floor(2 * np.log10(upper) + 1e-9)
    inside = DECADE ** (np.arange(first, last + 1) / 2)
    return np.unique(np.clip(np.concatenate([[lower], inside, [upper]]), lower, upper))


def scanned(bounds: tuple[float, float], least: float = LEAST) -> Array:
    """Return betas half a decade apart, over at least three decades below the upper bound."""
    return half_decades(bounds, min(least, LEAST * bounds[1]))


def mean_and_error(
    loss: Array, share: Array, counts: Array, groups: Array | None = None
) -> tuple[float, float]:
    """Return the weighted mean of row losses and its standard error.

    ``share`` weights the rows in the mean; ``counts`` are the observations that a row stands for.
    Where rows of a group depend on each other, the groups are the observations.
    """
    if groups is not None:
        loss, share = pooled(loss, share, groups)
        counts = np.ones(len(share))
    tested = share > 0
    share, loss = share[tested] / share.sum(), loss[tested]
    # Effective number of observations, 1 / sum of squared shares; it may be infinite.
    with np.errstate(over="ignore"):
        count = 1 / (share**2 / counts[tested]).sum()
    mean = float(share @ loss)
    if count <= 1:
        return mean, float("nan")
    # Scaled first, so that squares do not overflow.
    largest = float(np.abs(loss - mean).max()) or 1.0
    return mean, largest * float(np.sqrt(share @ ((loss - mean) / largest) ** 2 / (count - 1)))


def pooled(losses: Array, share: Array, groups: Array) -> tuple[Array, Array]:
    """Return the weighted mean losses of groups of tested rows, (..., groups), and their shares."""
    tested = np.flatnonzero(share > 0)
    order = tested[np.argsort(groups[tested], kind="stable")]
    first = np.flatnonzero(np.r_[True, groups[order][1:] != groups[order][:-1]])
    sums: Array = np.add.reduceat(share[order], first)
    return np.add.reduceat(losses[..., order] * share[order], first, axis=-1) / sums, sums
