r"""Risk curve of a Gaussian approximation: moments of the predictor, losses by quadrature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temperance.curves import RiskCurve, curve_of_losses
from temperance.models.logistic.continuation import follow, prior_anchor
from temperance.models.logistic.system import Predictor, Rows, System
from temperance.quadrature import log_expected_sigmoid, softplus_expectations
from temperance.types import Array, Plan, Risk, batches

SystemOf = Callable[[Rows], System]


class Path:
    """Approximations followed along beta; remembers where it was last."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._origin = prior_anchor(system)
        self._last = self._origin

    def predictor(self, beta: float) -> Predictor:
        """Return the predictor's moments, from the nearer of the last solution and the prior."""
        start = self._last if beta >= 0.5 * self._last.beta else self._origin
        self._last = follow(self.system, start, beta)
        return self.system.predictor(self._last.x, self._last.tangent, self._last.beta)


@dataclass(frozen=True, eq=False)
class PathLosses:
    """Losses of the tested rows ``index`` (pairs, widest) under approximations in batches."""

    paths: list[Path]
    parts: list[slice]
    index: NDArray[np.intp]
    y: Array
    risk: Risk

    def __call__(self, beta: float) -> tuple[Array, Array]:
        """Return the losses and their slopes, (pairs, widest)."""
        value, slope = np.empty((2, *self.index.shape))
        for part, path in zip(self.parts, self.paths, strict=True):
            value[part], slope[part] = tested_losses(
                path.predictor(beta), self.index[part], self.y, self.risk
            )
        return value, slope


def logistic_risk_curve(
    Z: Array,
    offset: Array,
    y: Array,
    plan: Plan,
    risk: Risk,
    system_of: SystemOf,
    unknowns: int,
) -> RiskCurve:
    """Curve of whitened rows Z; ``unknowns`` is the size of one pair's largest matrix."""
    index, _ = plan.tested()
    weights = plan.likelihood_weights
    parts = list(batches(len(weights), unknowns))
    paths = [Path(system_of(Rows(Z, offset, y, weights[part]))) for part in parts]
    losses = PathLosses(paths, parts, index, y, risk)
    return curve_of_losses(plan, losses, "Gaussian approximation, losses by quadrature", index)


def tested_losses(
    predictor: Predictor, index: NDArray[np.intp], y: Array, risk: Risk
) -> tuple[Array, Array]:
    """Losses of the rows ``index`` (pairs, widest) and their slopes in beta."""
    tested = Predictor(*(np.take_along_axis(part, index, axis=1) for part in predictor))
    return predictor_loss(tested, y[index], risk)


def predictor_loss(predictor: Predictor, y: Array, risk: Risk) -> tuple[Array, Array]:
    r"""Loss of each row, E softplus(f) - y mu or -log E sigmoid(+-f), and its slope in beta."""
    if risk == "gibbs":
        loss, first, second = softplus_expectations(predictor.mean, predictor.variance, 2)
        value = loss - y * predictor.mean
        slope = (first - y) * predictor.d_mean + 0.5 * second * predictor.d_variance
        return value, slope
    sign = 2 * y - 1
    log, d_mean, d_variance = log_expected_sigmoid(
        sign * predictor.mean, predictor.variance, derivatives=True
    )
    return -log, -(sign * d_mean * predictor.d_mean + d_variance * predictor.d_variance)
