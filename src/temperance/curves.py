"""Risk as a function of beta, and its computation from the losses of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.checks import as_non_negative
from temperance.data import Array
from temperance.plans import Plan
from temperance.search.log_scale import Ruler, Scale
from temperance.search.minimise import THOROUGH, THRIFTY, Search, ruler_for

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
    costly : bool
        Whether each point takes a fit, so that a search should evaluate few points.
    error : function, optional
        From betas of shape (g,) to the Monte Carlo standard error of the risk, if the curve comes
        from draws.
    sketch : function, optional
        As `evaluate`, but cheaper and accurate to a few digits; it guides the search.
    floor : function, optional
        As `evaluate`, but a cheaper lower bound; see :mod:`temperance.search.with_floor`.
    scale : function, optional
        The range of betas over which the curve changes, if the model provides it.
    steep : bool
        Whether the risk of the prior may be larger by orders of magnitude.
    """

    evaluate: Callable[[Array], tuple[Array, Array]]
    rows: Callable[[float], tuple[Array, Array]]
    method: str
    costly: bool = False
    error: Callable[[Array], Array] | None = None
    sketch: Callable[[Array], tuple[Array, Array]] | None = None
    floor: Callable[[Array], tuple[Array, Array]] | None = None
    scale: Callable[[], Scale] | None = None
    steep: bool = False

    def __call__(self, beta: ArrayLike, derivative: bool = False) -> Any:
        """Return the risk at ``beta``, scalar or array; with ``derivative``, (risk, slope)."""
        at = as_non_negative("beta", beta)
        parts = self.evaluate(at.ravel()) if at.size else (at, at)
        value, slope = (part.reshape(at.shape)[()] for part in parts)
        return (value, slope) if derivative else value

    @property
    def search(self) -> Search:
        """Effort of the search for the minimum."""
        return THRIFTY if self.costly else THOROUGH

    def ruler(self, bounds: tuple[float, float]) -> Ruler:
        """Return the search scale within ``bounds``, from the range where the curve changes."""
        if self.scale is None:
            return ruler_for(self.sketch or self.evaluate, bounds)
        return Ruler.of_scale(bounds, self.scale())

    def method_at(self, beta: float) -> str:
        """Return how the risk at ``beta`` was obtained, as a phrase."""
        return self.method

    def warn(self, beta: float, standard_error: Callable[[], float]) -> None:
        """Warn if the numbers are unreliable at ``beta``; exact ones never are."""


@dataclass(frozen=True, eq=False)
class ReferenceCurve(RiskCurve):
    """Risk expected by a reference, and the leave-one-out curve of the rows if sums are shared.

    In leave-one-out each row has its weight, as in the posterior whose risk is estimated.
    """

    left_out: RiskCurve | None = None


def curve_of_losses(
    plan: Plan,
    losses: Losses,
    method: str,
    index: NDArray[np.intp] | None = None,
    sketch: Losses | None = None,
) -> RiskCurve:
    r"""Return the curve of losses averaged over the pairs and tested rows of a plan.

    .. math:: R(\beta) = \sum_p \sum_i v_{pi} \, l_{pi}(\beta) / \sum_p \sum_i v_{pi}

    Parameters
    ----------
    plan : Plan
        Explicit pairs, whose test weights are the v.
    losses : function of one beta
        Expected loss of the rows under each pair's posterior, and its derivative in beta, both of
        shape (pairs, n).
    method : str
        How the numbers were obtained, as a phrase.
    index : array of shape (pairs, rows), optional
        Rows to which ``losses`` refers, if not all; see
        :meth:`temperance.plans.Plan.tested_rows`.
    sketch : function of one beta, optional
        As ``losses``, but cheaper and accurate to a few digits; see :class:`RiskCurve`.
    """
    n = plan.test.shape[1]
    rows = np.broadcast_to(np.arange(n), plan.test.shape) if index is None else index
    weight = np.take_along_axis(plan.test, rows, axis=1)
    return curve_of_tested(losses, rows, weight, n, method, sketch)


def curve_of_tested(
    losses: Losses,
    index: NDArray[np.intp],
    weight: Array,
    n: int,
    method: str,
    sketch: Losses | None = None,
) -> RiskCurve:
    """Return the curve of losses of the rows ``index`` out of n, with weights of this shape."""
    averages = _Averages(losses, index, weight, n)
    sketched = None if sketch is None else replace(averages, losses=sketch).evaluate
    return RiskCurve(averages.evaluate, averages.rows, method, costly=True, sketch=sketched)


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
