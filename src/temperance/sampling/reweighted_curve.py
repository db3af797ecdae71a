r"""The leave-one-out risk of recorded draws along beta, as far as these support it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from temperance.curves import RiskCurve
from temperance.diagnostics import ParetoWarning, warn
from temperance.sampling.recorded import RecordedDraws
from temperance.types import Array, Risk

NODES = 33
STEP = 1e-3  # of the central difference beyond the support


class Reliability(NamedTuple):
    """What the weights are worth along beta, each of shape (nodes,).

    ``tempering_k`` and ``effective_size`` are those of the posterior on all rows, ``worst_k`` is
    the largest k of a row, ``rows_in_doubt`` counts the rows whose k is too large.
    """

    beta: Array
    tempering_k: Array
    effective_size: Array
    worst_k: Array
    rows_in_doubt: Array
    monte_carlo_error: Array


class ReweightedCurve:
    """The curve over the supported range, a cubic spline through the smoothed estimates.

    Smoothed weights go by rank, so the estimates jump, by less than their Monte Carlo error,
    wherever two draws swap places as beta moves: they have no slope, the spline has.
    """

    def __init__(self, recorded: RecordedDraws, asked: tuple[float, float], risk: Risk) -> None:
        from scipy.interpolate import CubicSpline

        self.recorded, self.risk = recorded, risk
        origin = recorded.beta_of_draws
        reach = recorded.reach((min(asked[0], origin), max(asked[1], origin)))
        lower, upper = max(asked[0], reach[0]), min(asked[1], reach[1])
        if not lower < upper:
            raise ValueError(
                f"bounds must overlap the range that the draws support, [{reach[0]:.3g}, "
                f"{reach[1]:.3g}], got {asked}: draw again at a beta within the bounds"
            )
        # Nodes crowd towards the lower bound, where curves are steep.
        nodes = lower + (upper - lower) * np.linspace(0.0, 1.0, NODES) ** 2
        if lower < origin < upper:
            nodes = np.union1d(nodes, origin)
        found = [recorded.leave_one_out(float(beta), risk) for beta in nodes]
        doubt = np.array([np.sum(~(each.k <= recorded.reliable_k)) for each in found])
        start = int(np.argmin(np.abs(nodes - origin)))
        kept = _around(doubt <= doubt[start], start)
        if kept.stop - kept.start < 4:
            raise ValueError(
                f"the draws support no beta but {origin:g}: too many rows change the posterior too "
                "much when they are left out; draw more, or calibrate the model itself"
            )
        drawn = [recorded.at(float(beta)) for beta in nodes]
        table = Reliability(
            nodes,
            np.array([each.pareto_k for each in drawn]),
            np.array([each.effective_size for each in drawn]),
            np.array([np.nanmax(each.k) for each in found]),
            doubt,
            np.array([each.error for each in found]),
        )
        self.reliability = Reliability(*(column[kept] for column in table))
        nodes = nodes[kept]
        self.supported = (float(nodes[0]), float(nodes[-1]))
        self.losses = CubicSpline(nodes, np.stack([each.loss for each in found[kept]]))
        self.slopes = self.losses.derivative()
        self.method = f"{recorded.total.size} recorded draws, reweighted with Pareto smoothing"

    def as_risk_curve(self) -> RiskCurve:
        """Return the curve as strategies know it."""
        return RiskCurve(self.evaluate, self.rows, self.method, error=self.error)

    def evaluate(self, beta: Array) -> tuple[Array, Array]:
        """Return the risk at betas (g,) and its slope."""
        lower, upper = self.supported
        value, slope = self.losses(beta).mean(axis=1), self.slopes(beta).mean(axis=1)
        beyond = (beta < lower) | (beta > upper)
        if beyond.any():
            warn_beyond(beta[beyond], self.supported)
            for i in np.flatnonzero(beyond):
                around = [max(0.0, beta[i] - STEP), beta[i] + STEP]
                ends = [self._beyond(at).mean() for at in around]
                value[i] = self._beyond(beta[i]).mean()
                slope[i] = (ends[1] - ends[0]) / (around[1] - around[0])
        return value, slope

    def error(self, beta: Array) -> Array:
        """Return the Monte Carlo error of the risk, rows with too large a k not told apart."""
        lower, upper = self.supported
        at = np.asarray(beta, dtype=float)
        error = np.interp(at, self.reliability.beta, self.reliability.monte_carlo_error)
        for i in np.flatnonzero((at < lower) | (at > upper)):
            error[i] = self.recorded.leave_one_out(float(at[i]), self.risk).error
        return error

    def rows(self, beta: float) -> tuple[Array, Array]:
        """Return the loss of each row and its weight."""
        lower, upper = self.supported
        if lower <= beta <= upper:
            loss = self.losses(beta)
        else:
            warn_beyond(np.array([beta]), self.supported)
            loss = self._beyond(beta)
        return loss, np.ones(len(loss))

    def _beyond(self, beta: float) -> Array:
        return self.recorded.leave_one_out(float(beta), self.risk).loss


def _around(good: Any, start: int) -> slice:
    """Slice of the run of good entries around ``start``, which counts as good."""
    bad = np.flatnonzero(~good)
    return slice(
        int(max(bad[bad < start], default=-1)) + 1, int(min(bad[bad > start], default=len(good)))
    )


def warn_beyond(beta: Array, supported: tuple[float, float]) -> None:
    """Warn of betas to which the draws do not reach."""
    lower, upper = supported
    outside = beta[(beta < lower) | (beta > upper)]
    if len(outside):
        warn(
            f"beta = {float(outside[0]):.3g} lies beyond [{lower:.3g}, {upper:.3g}], what the "
            "draws support: the estimate is unreliable; draw again at a beta closer by",
            ParetoWarning,
        )
