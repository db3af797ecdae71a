"""Risk curves of models that do not give a table themselves, and the table of such a curve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.checks import as_non_negative
from temperance.data import Array, Data, Risk
from temperance.plans import AnyPlan, Folds, LeaveOneOut, Pairs
from temperance.table import LEAST, HeldOut, half_decades, scanned

Losses = Callable[[float], tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class RiskCurve:
    """Estimated risk as a function of beta.

    Parameters
    ----------
    evaluate : function
        From betas of shape (g,) to the risk and its derivative in beta, each (g,).
    rows : function
        From one beta to the loss of each row (n,), averaged over the pairs that test it, and the
        row's total test weight (n,).
    method : str
        How the numbers were obtained, as a phrase.
    error : function, optional
        From betas of shape (g,) to the Monte Carlo standard error of the risk, if the curve comes
        from draws.
    lowest : float
        Smallest beta above 0 that is worth a look.
    """

    evaluate: Callable[[Array], tuple[Array, Array]]
    rows: Callable[[float], tuple[Array, Array]]
    method: str
    error: Callable[[Array], Array] | None = None
    lowest: float = LEAST

    def __call__(self, beta: ArrayLike, derivative: bool = False) -> Any:
        """Return the risk at ``beta``, scalar or array; with ``derivative``, (risk, slope)."""
        at = as_non_negative("beta", beta)
        parts = self.evaluate(at.ravel()) if at.size else (at, at)
        value, slope = (part.reshape(at.shape)[()] for part in parts)
        return (value, slope) if derivative else value

    def prepare(self, betas: Array) -> None:
        """Do for several betas together what takes longer one by one."""

    def method_at(self, beta: float) -> str:
        """Return how the risk at ``beta`` was obtained, as a phrase."""
        return self.method

    def warn(self, beta: float, standard_error: Callable[[], float]) -> None:
        """Warn if the numbers are unreliable at ``beta``; exact ones never are."""


@dataclass(frozen=True, eq=False)
class RowsOfCurve:
    """The losses of rows of a curve, each beta computed once."""

    curve: RiskCurve
    known: dict[float, Array] = field(default_factory=dict)

    def __call__(self, betas: Array) -> Array:
        """Return the losses at betas (g,), shape (g, rows)."""
        new = sorted(set(betas.tolist()) - set(self.known))
        if new:
            self.curve.prepare(np.array(new))
        for beta in new:
            self.known[beta] = self.curve.rows(beta)[0]
        return np.array([self.known[beta] for beta in betas.tolist()])


@dataclass(frozen=True, eq=False, kw_only=True)
class CurveTable(HeldOut):
    """The table of a risk curve: what curve and rows say, beta for beta."""

    curve: RiskCurve

    def __call__(self, beta: ArrayLike, derivative: bool = False) -> Any:
        """Return the curve at ``beta``, scalar or array; with ``derivative``, (risk, slope)."""
        return self.curve(beta, derivative)

    def risk(self, betas: Array) -> Array:
        """Return the curve's values."""
        return self.curve.evaluate(betas)[0]

    def slope(self, betas: Array) -> Array:
        """Return the curve's slopes."""
        return self.curve.evaluate(betas)[1]

    @property
    def error(self) -> Callable[[Array], Array] | None:
        """The curve's Monte Carlo standard error."""
        return self.curve.error

    def method_at(self, beta: float) -> str:
        """Return how the curve's value was obtained, as a phrase."""
        return self.curve.method_at(beta)

    def warn(self, beta: float, standard_error: Callable[[], float]) -> None:
        """Warn if the curve is unreliable at ``beta``."""
        self.curve.warn(beta, standard_error)

    def kept(self) -> HeldOut:
        """Return the table without the curve."""
        return replace(super().kept(), method=self.curve.method)


class GivesCurve:
    """Base of models that give a risk curve for any plan, and with it the table."""

    def risk_curve(self, data: Data, plan: AnyPlan, risk: Risk = "gibbs") -> RiskCurve:
        """Return the curve that the plan estimates."""
        raise NotImplementedError(f"{type(self).__name__} must have a risk curve")

    def held_out(
        self, data: Data, plan: AnyPlan, score: Risk, bounds: tuple[float, float]
    ) -> HeldOut:
        """Return the table of the curve, which leaves out whole rows and tests all of them."""
        if isinstance(plan, LeaveOneOut):
            plan = plan.pairs() if plan.pieces is not None else replace(plan, places=None)
        return table_of(self.risk_curve(data, plan, score), data, plan, score, bounds)


def table_of(
    curve: RiskCurve, data: Data, plan: AnyPlan, score: Risk, bounds: tuple[float, float]
) -> CurveTable:
    """Return the table of a curve."""
    if isinstance(plan, Pairs):
        weights = plan.test.sum(axis=0)
    elif isinstance(plan, Folds):
        weights = np.where(plan.fold >= plan.start, plan.weights, 0.0)
    else:
        weights = plan.tested
    return CurveTable(
        scanned(bounds, curve.lowest)
        if curve.lowest <= LEAST
        else half_decades(bounds, curve.lowest),
        RowsOfCurve(curve),
        weights,
        data.weights,
        score,
        # Curves from draws say it by a property, for which they draw.
        method=vars(curve).get("method", "draws"),
        curve=curve,
    )


def curve_of_losses(
    plan: Pairs, losses: Losses, method: str, index: NDArray[np.intp] | None = None
) -> RiskCurve:
    r"""Return the curve of losses averaged over the pairs and tested rows of a plan.

    .. math:: R(\beta) = \sum_p \sum_i v_{pi} \, l_{pi}(\beta) / \sum_p \sum_i v_{pi}

    Parameters
    ----------
    plan : Pairs
        Explicit pairs, whose test weights are the v.
    losses : function of one beta
        Expected loss of the rows under each pair's posterior, and its derivative in beta, both of
        shape (pairs, n).
    method : str
        How the numbers were obtained, as a phrase.
    index : array of shape (pairs, rows), optional
        Rows to which ``losses`` refers, if not all; see
        :meth:`temperance.plans.Pairs.tested_rows`.
    """
    n = plan.test.shape[1]
    rows = np.broadcast_to(np.arange(n), plan.test.shape) if index is None else index
    return curve_of_tested(losses, rows, np.take_along_axis(plan.test, rows, axis=1), n, method)


def curve_of_tested(
    losses: Losses, index: NDArray[np.intp], weight: Array, n: int, method: str
) -> RiskCurve:
    """Return the curve of losses of the rows ``index`` out of n, with weights of this shape."""
    averages = _Averages(losses, index, weight, n)
    return RiskCurve(averages.evaluate, averages.rows, method)


def coarse_to_fine(count: int) -> NDArray[np.intp]:
    """Return ``range(count)`` with the last first, then the first, then middles of larger gaps.

    Examples
    --------
    >>> coarse_to_fine(5)
    array([4, 0, 2, 1, 3])
    """
    levels = [np.array([count - 1, 0][:count])]
    step = 1 << max(0, count - 2).bit_length()
    while step > 1:
        levels.append(np.arange(step // 2, count - 1, step))
        step //= 2
    return np.concatenate(levels)


@dataclass(frozen=True, eq=False)
class _Averages:
    losses: Losses
    index: NDArray[np.intp]
    weight: Array
    n: int

    def evaluate(self, beta: Array) -> tuple[Array, Array]:
        sums = np.empty((len(beta), 2))
        # Coarse to fine, for models that start from the solutions at neighbouring betas.
        for j in np.argsort(beta)[coarse_to_fine(len(beta))]:
            sums[j] = [(self.weight * part).sum() for part in self.losses(float(beta[j]))]
        total = self.weight.sum()
        return sums[:, 0] / total, sums[:, 1] / total

    def rows(self, beta: float) -> tuple[Array, Array]:
        value, _ = self.losses(beta)
        summed, share = np.zeros(self.n), np.zeros(self.n)
        np.add.at(summed, self.index, self.weight * value)
        np.add.at(share, self.index, self.weight)
        return summed / np.where(share > 0, share, 1.0), share
