r"""Fitted coverage: the calibration of qgam, for bands of fitted values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from temperance.data import Array
from temperance.protocols import HasDesign, Information, Model
from temperance.strategies.rate import InformationStrategy, prior_root_of
from temperance.uncertainty.information import Units

FAR = 1e4  # from the rate of the traces to the ends of the search
POINTS = 81


@dataclass(frozen=True)
class FittedCoverage(InformationStrategy):
    r"""Match variances of fitted values between the posterior and the sandwich.

    .. math::

        \beta = \arg\min_\beta \frac1n \sum_i \sqrt{ \frac{V^{sand}_i}{V^{post}_i}
        + \log \frac{V^{post}_i}{V^{sand}_i} },

    where V are the variances of z_i'theta under N(., P^-1), P = beta n J + S_0^-1, and under the
    sandwich beta^2 n P^-1 I P^-1 of the penalised minimiser.

    Parameters
    ----------
    groups : array of shape (n,), optional
        Labels of rows that depend on each other; their scores are summed.

    References
    ----------
    .. [1] M. Fasiolo, S. Wood, M. Zaffran, R. Nedellec, Y. Goude, Fast calibrated additive
       quantile regression, Journal of the American Statistical Association 116, 2021.
    """

    groups: ArrayLike | None = field(default=None, repr=False, compare=False)

    def formula(self, model: Model, units: Units, information: Information) -> float:
        """Return the minimiser over beta, by a scan and a refinement."""
        loss, centre = divergence(self, model, units, information)
        if not np.isfinite(centre):
            return centre
        logs = np.log(centre) + np.linspace(-np.log(FAR), np.log(FAR), POINTS)
        values = [loss(float(np.exp(each))) for each in logs]
        best = int(np.argmin(values))
        ends = logs[max(best - 1, 0)], logs[min(best + 1, POINTS - 1)]
        found = optimize.minimize_scalar(
            lambda each: loss(float(np.exp(each))),
            bounds=ends,
            method="bounded",
            options={"xatol": 1e-9},
        )
        return float(np.exp(found.x))

    @property
    def rule(self) -> str:
        """What the rule matches, as a phrase."""
        return "variances of fitted values matched to the sandwich's"


def divergence(
    strategy: FittedCoverage, model: Model, units: Units, information: Information
) -> tuple[Callable[[float], float], float]:
    """Return the mean over rows as a function of beta, and a beta near its minimum."""
    if not isinstance(model, HasDesign):
        raise ValueError(f"FittedCoverage needs a model with design(X), got {type(model).__name__}")
    C, n = prior_root_of(information, model, strategy), units.rows.size
    # Along the principal axes U of C'JC the precision P is 1 + beta g.
    g, U = np.linalg.eigh(n * C.T @ information.curvature @ C)
    scores = units.scores(information) @ C @ U
    rows = model.design(units.rows.X) @ C @ U
    share = units.rows.weights / n
    used = (rows != 0).any(axis=1)  # rows of zeros have no variance
    rows, share = rows[used], share[used] / share[used].sum()
    F = scores.T @ scores  # n I

    def loss(beta: float) -> float:
        s = 1 / (1 + beta * np.maximum(g, 0.0))
        posterior: Array = rows**2 @ s
        along = rows * s
        sandwich = beta**2 * np.einsum("ij,jk,ik->i", along, F, along)
        with np.errstate(divide="ignore"):
            ratio = sandwich / posterior
            return float(share @ np.sqrt(ratio - np.log(ratio)))

    total = np.trace(np.linalg.solve(n * C.T @ information.curvature @ C, U @ F @ U.T))
    with np.errstate(divide="ignore"):
        return loss, float(np.divide(len(g), total))
