"""Risk as a function of beta from networks at a grid of betas, which grows as betas are asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from temperance.calibration import with_error
from temperance.curves import RiskCurve
from temperance.data import Array
from temperance.messages import (
    BoundWarning,
    ConvergenceWarning,
    DrawsWarning,
    MixingWarning,
    warn,
)
from temperance.models.neural.method import Method
from temperance.models.neural.smooth_curve import SmoothCurve
from temperance.plans import Pairs

LEAST_KNOTS = 8  # with fewer, a spline cannot tell errors from bends
MANY = 0.05  # share of networks that may not have settled
LARGE_RHAT = 1.2


class Found(NamedTuple):
    """Losses of networks at some betas.

    Parameters
    ----------
    losses : losses of the tested rows under each pair and beta, (betas, pairs, rows)
    influence : sums over the tested rows of a pair, of each draw, (betas, pairs, draws)
    settled : whether the training of each network ended by itself, (betas, pairs, members)
    """

    losses: Array
    influence: Array
    settled: NDArray[np.bool_]


class Fits(Protocol):
    """Trains the networks of a plan at some betas."""

    @property
    def method(self) -> Method:
        """The kind of posterior."""
        ...

    def __call__(self, betas: Array) -> Found:
        """Return their losses."""
        ...


class Grid:
    """Losses at betas on a logarithmic grid, and at 0 if a beta below the grid was asked for."""

    def __init__(self, fits: Fits, plan: Pairs, lowest: float, per_decade: int) -> None:
        self.fits, self.lowest, self.per_decade = fits, lowest, per_decade
        self.index, self.test = plan.tested_rows()
        self.share = plan.test.sum(axis=0)
        self.found: dict[float, Found] = {}

    @property
    def betas(self) -> Array:
        """The betas at which networks were trained, ascending."""
        return np.array(sorted(self.found))

    def cover(self, beta: Array) -> None:
        """Train networks so that the grid covers some betas, and 1."""
        if self.found and self.betas[0] <= beta.min() and beta.max() <= self.betas[-1]:
            return
        wanted = np.append(np.maximum([beta.min(), beta.max()], self.lowest), 1.0)
        places = self.per_decade * np.log10(wanted)
        low, high = int(np.floor(places.min() + 1e-9)), int(np.ceil(places.max() - 1e-9))
        while high - low + 1 < LEAST_KNOTS:
            low, high = low - 1, high + 1
        grid = 10.0 ** (np.arange(low, high + 1) / self.per_decade)
        if beta.min() < grid[0]:
            grid = np.append(0.0, grid)
        new = np.array([each for each in grid if each not in self.found])
        found = self.fits(new)
        for j, each in enumerate(new.tolist()):
            self.found[each] = Found(*(part[j] for part in found))
        self.__dict__.pop("_curve", None)

    def counts(self) -> tuple[int, int]:
        """Return the number of networks, and of those that had not settled."""
        settled = [each.settled for each in self.found.values()]
        count = sum(each.size for each in settled)
        return count, count - sum(int(each.sum()) for each in settled)

    def rows(self) -> Array:
        """Return the losses of each row, averaged over the pairs that test it, (betas, n)."""
        summed = np.zeros((len(self.found), len(self.share)))
        for into, beta in zip(summed, self.betas.tolist(), strict=True):
            np.add.at(into, self.index, self.test * self.found[beta].losses)
        return summed / np.where(self.share > 0, self.share, 1.0)

    def curve(self) -> tuple[SmoothCurve, Array, Array]:
        """Return the smoothed curve, the losses of rows, and Monte Carlo errors at the betas."""
        if "_curve" not in self.__dict__:
            rows, total = self.rows(), self.share.sum()
            influence = np.array([self.found[b].influence.sum(axis=0) for b in self.betas.tolist()])
            groups = self.fits.method.replicates(influence.shape[1])
            size = influence.shape[1] // groups
            means = influence[:, : groups * size].reshape(-1, groups, size).mean(axis=2)
            # Draws of all pairs and betas have the same random numbers, other groups have others.
            spread = means.std(axis=1, ddof=1) if groups > 1 else np.full(len(means), np.nan)
            error = spread / np.sqrt(groups) / total
            self._curve = SmoothCurve(self.betas, rows @ self.share / total), rows, error
        return self._curve


class NeuralRiskCurve(RiskCurve):
    """Risk as a function of beta from trained networks, smoothed between betas.

    Examples
    --------
    See docs/neural-networks.md.
    """

    grid: Grid

    def __init__(self, grid: Grid) -> None:
        # A frozen dataclass; ``method`` is a property because the grid still grows.
        for name, value in (
            ("grid", grid),
            ("evaluate", self._evaluate),
            ("rows", self._rows),
            ("error", self._error),
            ("lowest", grid.lowest),
        ):
            object.__setattr__(self, name, value)

    def prepare(self, betas: Array) -> None:
        """Train the networks of several betas side by side."""
        self.grid.cover(betas)

    @property
    def betas(self) -> Array:
        """The betas at which networks were trained."""
        return self.grid.betas

    @property
    def values(self) -> Array:
        """The risks at these betas, before they are smoothed."""
        return self.grid.curve()[0].values

    def _evaluate(self, beta: Array) -> tuple[Array, Array]:
        self.grid.cover(beta)
        return self.grid.curve()[0](beta)

    def _rows(self, beta: float) -> tuple[Array, Array]:
        at = np.array([beta])
        self.grid.cover(at)
        curve, rows, _ = self.grid.curve()
        return (curve.weights(at)[0] @ rows)[0], self.grid.share

    def _error(self, beta: Array) -> Array:
        self.grid.cover(beta)
        curve, _, error = self.grid.curve()
        sampling = np.interp(np.log(np.maximum(beta, self.grid.lowest)), _logs(curve.betas), error)
        return np.sqrt(curve.error(beta) ** 2 + np.nan_to_num(sampling) ** 2)

    @property
    def method(self) -> str:
        """How the numbers were obtained, as a phrase."""
        return self.method_at(1.0)

    def method_at(self, beta: float) -> str:
        """How the risk at ``beta`` was obtained, as a phrase."""
        error = float(self._error(np.array([beta]))[0])
        method, (count, still) = self.grid.fits.method, self.grid.counts()
        parts = [
            f"{count} {method.words} networks at {len(self.betas)} betas",
            f"smoothed in log beta, standard error {with_error(error)}",
        ]
        rhat = self.rhat(beta)
        if np.isfinite(rhat):
            parts.append(f"R-hat {rhat:.3f}")
        if still:
            parts.append(f"{still} {method.unsettled}")
        return "; ".join(parts)

    def rhat(self, beta: float) -> float:
        """Return the largest R-hat of the risk of a pair at the nearest beta; nan without chains.

        Of m chains of k draws it is sqrt(1 - 1/k + B/W), with the variance B of the chains' means
        and the mean W of their variances.
        """
        nearest = self.betas[int(np.argmin(np.abs(_logs(self.betas) - np.log(max(beta, 1e-9)))))]
        influence = self.grid.found[float(nearest)].influence
        groups = self.grid.fits.method.replicates(influence.shape[1])
        chains = influence.reshape(len(influence), groups, -1)
        length = chains.shape[2]
        if length < 3:  # opposite pairs and single members are no chains
            return float("nan")
        within = np.maximum(chains.var(axis=2, ddof=1).mean(axis=1), np.finfo(float).tiny)
        between = chains.mean(axis=2).var(axis=1, ddof=1)
        return float(np.sqrt(1 - 1 / length + between / within).max())

    def warn(self, beta: float, standard_error: Callable[[], float]) -> None:
        """Warn of networks that had not learnt all, and of a curve that is too rough."""
        (count, still), method = self.grid.counts(), self.grid.fits.method
        if still > MANY * count:
            warn(
                f"{still} of {count} networks {method.unsettled}; train longer, with "
                "training=Training(steps=...), or with another learning_rate",
                ConvergenceWarning,
            )
        if 0 < beta < self.grid.lowest:
            warn(
                f"beta = {beta:.3g} lies below lowest_beta = {self.grid.lowest:g}, the least at "
                "which networks are trained: lower lowest_beta, which is in units of the loss",
                BoundWarning,
            )
        rhat = self.rhat(beta)
        if rhat > LARGE_RHAT:
            warn(
                f"chains disagree near beta = {beta:.3g}: R-hat {rhat:.2f}; use more moves, in "
                "posterior=HMC(warmup=..., moves=...)",
                MixingWarning,
            )
        error, over_rows = float(self._error(np.array([beta]))[0]), standard_error()
        if np.isfinite(over_rows) and error > over_rows > 0:
            warn(
                f"the error of the smoothed curve is {error:.2g}, more than the standard error "
                f"over rows, {over_rows:.2g}; use more draws, more steps or more betas_per_decade",
                DrawsWarning,
            )


def _logs(betas: Array) -> Any:
    """Return log beta, with 0 a little below the others."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(betas), np.log(betas[betas > 0][0]) - 1.0)
