r"""The leave-one-out risk of recorded draws as a function of beta, in the supported range."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from temperance.curves import RiskCurve
from temperance.data import Array, Risk
from temperance.messages import ParetoWarning, warn
from temperance.models.sampled.recorded import RecordedDraws
from temperance.models.sampled.support import node_at, supported_nodes
from temperance.rules import ROUNDING, Choice

STEP = 1e-3  # of t, for the central difference outside the supported range
AT_END = 1e-8  # of t: a minimum closer to an end of the range counts as being there


class BetaReliability(NamedTuple):
    """Reliability of the weights as a function of beta, each of shape (nodes,).

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
    """The curve over the supported range, a cubic spline in t through the smoothed estimates.

    Smoothed weights depend on ranks, so the estimates jump, by less than their Monte Carlo error,
    where two draws change order as beta changes.  They have no slope; the spline has.
    """

    def __init__(self, recorded: RecordedDraws, requested: tuple[float, float], risk: Risk) -> None:
        from scipy.interpolate import CubicSpline

        self.recorded, self.risk = recorded, risk
        nodes = supported_nodes(recorded, requested, risk)
        first, last = nodes[0].beta, nodes[-1].beta
        if not first < last:
            raise ValueError(
                f"the draws support no beta but {recorded.beta_of_draws:g}: leaving a row out, or "
                "another beta, changes the posterior too much; draw more, or calibrate the model "
                "itself"
            )
        lower, upper = max(requested[0], first), min(requested[1], last)
        if not lower < upper:
            raise ValueError(
                f"bounds must overlap the range that the draws support, [{first:.3g}, {last:.3g}], "
                f"got {requested}: draw again at a beta within the bounds"
            )
        self.supported = (lower, upper)
        t = np.array([node.t for node in nodes])
        losses = np.stack([node.rows.loss for node in nodes])
        # Differences from the first node, relative to the largest, to keep their digits.
        self.base = losses[0]
        self.unit = float(np.abs(losses - self.base).max()) or 1.0
        scaled = (losses - self.base) / self.unit
        self.row_spline, self.spline = CubicSpline(t, scaled), CubicSpline(t, scaled.mean(axis=1))
        self.slope_spline = self.spline.derivative()
        known = {node.beta: node for node in nodes}
        ends = [known.get(end) or node_at(recorded, end, risk) for end in (lower, upper)]
        shown = [ends[0], *(node for node in nodes if lower < node.beta < upper), ends[1]]
        self.reliability = BetaReliability(
            np.array([node.beta for node in shown]),
            np.array([node.drawn.pareto_k for node in shown]),
            np.array([node.drawn.effective_size for node in shown]),
            np.array([largest_k(node.rows.k) for node in shown]),
            np.array([node.unreliable for node in shown]),
            np.array([node.rows.error for node in shown]),
        )
        self.method = f"{recorded.size} recorded draws, reweighted with Pareto smoothing"

    def as_risk_curve(self) -> RiskCurve:
        """Return the curve in the form that strategies use."""
        return RiskCurve(self.evaluate, self.rows, self.method, error=self.error)

    def minimum(self) -> Choice:
        """Return the minimum of the spline over the supported range.

        If the curve is flat, it is the point closest to 1, which is Bayes.
        """
        lower, upper = self.supported
        values, _ = self.evaluate(self.reliability.beta)
        if np.ptp(values) <= ROUNDING * np.abs(values).max():
            return Choice(float(np.clip(1.0, lower, upper)), flat=True)
        begin, end = (float(self.recorded.place(beta)) for beta in self.supported)
        turns = self.slope_spline.roots(extrapolate=False)
        turns = turns[(turns > begin + AT_END) & (turns < end - AT_END)]
        # The ends come last, so that one is chosen only if it is strictly lower.
        places = np.array([*turns, begin, end])
        betas = np.array([*np.clip(self.recorded.beta(turns), lower, upper), lower, upper])
        best = int(self.spline(places).argmin())
        return Choice(float(betas[best]), at_bound=best >= len(turns))

    def evaluate(self, beta: Array) -> tuple[Array, Array]:
        """Return the risk at betas (g,) and its slope."""
        lower, upper = self.supported
        t = self.recorded.place(beta)
        rate = self.recorded.unit * np.cosh(t)  # dbeta/dt
        value = self.base.mean() + self.unit * self.spline(t)
        with np.errstate(over="ignore"):
            slope = self.slope_spline(t) * (self.unit / rate)
        for i in np.flatnonzero((beta < lower) | (beta > upper)):
            warn_beyond(beta[i : i + 1], self.supported)
            step = max(STEP * rate[i], 1e-6 * beta[i])
            around = np.maximum(beta[i] + step * np.array([-1.0, 1.0]), 0.0)
            value[i] = self._outside_support(beta[i]).mean()
            rise = self._outside_support(around[1]).mean() - self._outside_support(around[0]).mean()
            slope[i] = rise / (around[1] - around[0])
        return value, slope

    def error(self, beta: Array) -> Array:
        """Return the Monte Carlo error of the risk; infinite if a row's weights have no mean."""
        found = [self.recorded.leave_one_out(float(at), self.risk) for at in np.ravel(beta)]
        return np.array([each.error for each in found])

    def rows(self, beta: float) -> tuple[Array, Array]:
        """Return the loss of each row and its weight."""
        lower, upper = self.supported
        if lower <= beta <= upper:
            loss = self.base + self.unit * self.row_spline(self.recorded.place(beta))
        else:
            warn_beyond(np.array([beta]), self.supported)
            loss = self._outside_support(beta)
        return loss, np.ones(len(loss))

    def _outside_support(self, beta: float) -> Array:
        return self.recorded.leave_one_out(float(beta), self.risk).loss


def largest_k(k: Array) -> float:
    """Return the largest k; infinite if a row has none."""
    return float(np.where(np.isnan(k), np.inf, k).max())


def warn_beyond(beta: Array, supported: tuple[float, float]) -> None:
    """Warn of betas outside the supported range."""
    lower, upper = supported
    outside = beta[(beta < lower) | (beta > upper)]
    if len(outside):
        warn(
            f"beta = {float(outside[0]):.3g} lies beyond [{lower:.3g}, {upper:.3g}], what the "
            "draws support: the estimate is unreliable; draw again at a beta closer by",
            ParetoWarning,
        )
