r"""Pairs of a plan followed along beta, several at a time.

At each beta the solution is sought from those that were found on either side.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from temperance.curves import RiskCurve, curve_of_losses
from temperance.data import Array, Risk, batches
from temperance.losses.base import TestedLoss
from temperance.models.glm.fast.shared_rows import shared_rows
from temperance.models.glm.gaussians import few_rows
from temperance.models.glm.newton import (
    TOLERANCE,
    Fit,
    Solution,
    System,
    at_prior,
    climb,
    first_step,
    from_guess,
    newton,
)
from temperance.models.glm.rows import Rows, coordinates
from temperance.plans import AnyPlan

FAR_APART = 1e8  # ratio of betas between which a cubic says nothing
MOST_REMEMBERED = 2**24  # elements of solutions and tangents
CACHED = 2**17  # elements of a temporary that fit into the cache


class Path:
    """Solutions of a system along beta, which are remembered.

    One of several paths remembers its share of what may be.
    """

    def __init__(self, system: System, among: int = 1, tolerance: float = TOLERANCE) -> None:
        self.system = system
        self.tolerance = tolerance
        self._known: list[Solution] = []
        self._most = max(3, MOST_REMEMBERED // max(1, 2 * system.start().size * among))

    def at(self, beta: float) -> Solution:
        """Return the solution at ``beta``."""
        place = bisect_left(self._known, beta, key=_beta)
        below, above = self._known[:place][-1:], self._known[place : place + 1]
        if above and above[0].beta == beta:
            return above[0]
        if beta == 0:
            return self._remember(at_prior(self.system))
        found = newton(self.system, self.start(below + above, beta), beta, self.tolerance)
        if found is None and (self._known or not self.system.convex):
            found = from_guess(self.system, beta, self.tolerance)
        if found is not None:
            return self._remember(found)
        steps = climb(self.system, below[0] if below else at_prior(self.system), beta)
        return [self._remember(each) for each in steps[1:]][-1]

    def start(self, around: list[Solution], beta: float) -> Array:
        """Predict the solution from those on either side."""
        first = first_step(self.system)
        if len(around) < 2 or around[1].beta + first > FAR_APART * (around[0].beta + first):
            return self.system.guess(beta)
        return cubic_between(around[0], around[1], beta, first)

    def _remember(self, solution: Solution) -> Solution:
        insort(self._known, solution, key=_beta)
        if len(self._known) > self._most:
            del self._known[1]  # a search ends at larger betas than it begins
        return solution


def _beta(solution: Solution) -> float:
    return solution.beta


def cubic_between(before: Solution, after: Solution, beta: float, first: float) -> Array:
    """Cubic in log(beta + first) through two solutions and their tangents."""
    low, high = before.beta + first, after.beta + first
    width = np.log1p((after.beta - before.beta) / low)
    if width == 0:  # betas that differ by less than rounding errors
        return before.x
    t = np.log1p((beta - before.beta) / low) / width
    # dx/dt = dx/dbeta (beta + first) width
    rise = after.x - before.x
    start, stop = low * width * before.tangent - rise, rise - high * width * after.tangent
    return before.x + t * rise + t * (1 - t) * ((1 - t) * start + t * stop)


@dataclass(frozen=True, eq=False)
class Part:
    """Pairs that are followed together, and the rows that they test."""

    path: Path
    rows: Rows  # all rows, in the coordinates of the path
    tested: NDArray[np.intp] | slice  # (pairs, widest), or one row or slice when all test the same
    loss: TestedLoss

    def losses(self, beta: float, risk: Risk) -> tuple[Array, Array]:
        """Return the losses of the tested rows and their slopes, (pairs, widest)."""
        found = self.path.at(beta)
        law = self.path.system.law(found.x, found.tangent, found.beta)
        which = (None, self.tested) if isinstance(self.tested, slice) else self.tested
        Z, offset, y = (part[which] for part in (self.rows.Z, self.rows.offset, self.rows.y))
        return self.loss.risk(law.predictor(Z, offset), y, risk)


@dataclass(frozen=True, eq=False)
class PartLosses:
    """Losses of the tested rows, (pairs, widest), under approximations followed in parts."""

    parts: list[Part]
    shape: tuple[int, ...]
    risk: Risk

    def __call__(self, beta: float) -> tuple[Array, Array]:
        """Return the losses and their slopes, (pairs, widest)."""
        value, slope = np.empty((2, *self.shape))
        begin = 0
        for part in self.parts:
            end = begin + len(part.path.system.rows.weights)
            value[begin:end], slope[begin:end] = part.losses(beta, self.risk)
            begin = end
        return value, slope


def pairs_risk_curve(rows: Rows, plan: AnyPlan, risk: Risk, approximation: Fit) -> RiskCurve:
    """Curve of whitened rows under the weights of the plan's pairs."""
    pairs = plan.pairs()
    index, _ = pairs.tested_rows()
    parts = parts_of_pairs(rows.weighted(pairs.likelihood_weights), index, approximation)
    losses = PartLosses(parts, index.shape, risk)
    return curve_of_losses(pairs, losses, approximation.loss.method, index)


def parts_of_pairs(rows: Rows, index: NDArray[np.intp], approximation: Fit) -> list[Part]:
    """Split the pairs of weights into parts; each pair tests the rows in its row of ``index``."""
    size = largest_matrix(*rows.Z.shape)
    parts = batches(len(rows.weights), size, budget=CACHED)
    return [_part(rows, pairs, index[pairs], approximation) for pairs in parts]


def largest_matrix(n: int, k: int) -> int:
    """Return the elements of the largest temporary of a pair: of the rows, or of a Jacobian."""
    return n * max(n, k) if few_rows(n, k) else n * k + 4 * k * k


def _part(rows: Rows, pairs: slice, index: NDArray[np.intp], approximation: Fit) -> Part:
    weights = rows.weights[pairs]
    trained = np.any(weights > 0, axis=0)
    if len(index) > 1 and np.all(index == index[0]):
        index = index[:1]
    if rows.Z.shape[0] < rows.Z.shape[1]:
        # Columns are many, and held once for all parts.
        system = approximation.system(shared_rows(rows, slice(None), weights))
        return Part(Path(system, len(rows.weights)), rows, index, approximation.loss)
    used = trained.copy()
    used[index] = True
    if used.sum() < rows.Z.shape[1]:
        reduced, _ = coordinates(rows.Z[used], weights.max(axis=0)[used], approximation.diagonal)
        Z = np.zeros((len(used), reduced.shape[1]))
        Z[used] = reduced
        rows = replace(rows, Z=Z)
    system = approximation.system(rows.subset(trained, weights[:, trained]))
    return Part(Path(system, 1), rows, index, approximation.loss)
