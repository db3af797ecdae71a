r"""Bayes by Backprop: the mean-field Gaussian by stochastic gradients, as in the thesis.

One draw theta = m + s eps per step, s = softplus(rho), descends the negative ELBO

    f(theta) = beta sum_i w_i l_i(theta) + |theta|^2/2 - sum_j log s_j     (whitened coordinates)

at the rate eta_t = rate / (L sqrt(t)), where L = 1 + beta lam_max(Z' diag(w) Z)/4 bounds the
curvature.  The random numbers are the same for every beta, so the result is a smooth function of
beta and its derivative is carried along, step by step.

References: C. Blundell et al., Weight uncertainty in neural networks, ICML 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from temperance.curves import RiskCurve, curve_of_losses
from temperance.data import Array, Risk, batches
from temperance.losses.logistic import Logistic
from temperance.models.glm.gaussians import DiagonalLaw
from temperance.models.glm.rows import Rows
from temperance.plans import Pairs

START = float(np.log(np.expm1(1.0)))  # softplus(START) = 1: the prior


class Schedule(NamedTuple):
    """How long, how fast and with which random numbers to descend."""

    steps: int
    rate: float
    seed: int


class BackpropFit(NamedTuple):
    """Means and standard deviations (m, g, k) and their derivatives in beta."""

    mean: Array
    deviation: Array
    d_mean: Array
    d_deviation: Array


def backprop(
    rows: Rows, beta: Array, schedule: Schedule, trace: list[Array] | None = None
) -> BackpropFit:
    """Fit m weightings at betas of shape (m, g) or (1, g); ``trace`` collects the means."""
    Z, weights = rows.Z, rows.weights[:, None, :]
    rng = np.random.default_rng(schedule.seed)
    k = Z.shape[1]
    largest = _largest_eigenvalues(rows) / 4
    curvature = 1 + beta * largest[:, None]
    shape = (len(rows.weights), beta.shape[1], k)
    m, dm, drho = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    rho = np.full(shape, START)
    at = beta[..., None]
    for t in range(1, schedule.steps + 1):
        if trace is not None:
            trace.append(m.copy())
        noise = rng.standard_normal(k)
        s, s_slope = np.logaddexp(0.0, rho), expit(rho)
        ds = s_slope * drho
        theta, d_theta = m + s * noise, dm + ds * noise
        p = expit(rows.offset + theta @ Z.T)
        pull = (weights * (p - rows.y)) @ Z
        gradient = at * pull + theta
        d_gradient = pull + at * ((weights * p * (1 - p) * (d_theta @ Z.T)) @ Z) + d_theta
        to_rho = gradient * noise - 1 / s
        d_to_rho = d_gradient * noise + ds / s**2
        eta = (schedule.rate / np.sqrt(t) / curvature)[..., None]
        # d eta / d beta = -eta lam_max / 4 L
        d_eta = -eta * (largest[:, None] / curvature)[..., None]
        dm = dm - eta * d_gradient - d_eta * gradient
        drho = (
            drho
            - eta * (d_to_rho * s_slope + to_rho * s_slope * (1 - s_slope) * drho)
            - d_eta * to_rho * s_slope
        )
        m, rho = m - eta * gradient, rho - eta * to_rho * s_slope
    if trace is not None:
        trace.append(m.copy())
    return BackpropFit(m, np.logaddexp(0.0, rho), dm, expit(rho) * drho)


def _largest_eigenvalues(rows: Rows) -> Array:
    """Return lam_max of Z' diag(w) Z for each weighting, (m,), from the smaller product."""
    Z, weights = rows.Z, rows.weights
    if len(Z) < Z.shape[1]:
        root = np.sqrt(weights)
        return np.linalg.eigvalsh(root[:, :, None] * rows.kernel * root[:, None, :])[:, -1]
    return np.linalg.eigvalsh((Z.T * weights[:, None, :]) @ Z)[:, -1]


@dataclass(frozen=True, eq=False)
class BackpropLosses:
    """Losses of the tested rows ``index`` (pairs, widest) under stochastic fits."""

    rows: Rows
    index: NDArray[np.intp]
    risk: Risk
    schedule: Schedule

    def __call__(self, beta: float) -> tuple[Array, Array]:
        """Return the losses and their slopes, (pairs, widest)."""
        value, slope = np.empty((2, *self.index.shape))
        for part in batches(len(self.index), self.rows.Z.size):
            index = self.index[part]
            rows = self.rows.weighted(self.rows.weights[part])
            fit = backprop(rows, np.array([[beta]]), self.schedule)
            m, s, dm, ds = (field[:, 0] for field in fit)
            predictor = DiagonalLaw(m, s**2, dm, 2 * s * ds).predictor(
                rows.Z[index], rows.offset[index]
            )
            value[part], slope[part] = Logistic().risk(predictor, rows.y[index], self.risk)
        return value, slope


def backprop_risk_curve(rows: Rows, plan: Pairs, risk: Risk, schedule: Schedule) -> RiskCurve:
    """Curve of the stochastic fits, losses by quadrature."""
    index, _ = plan.tested_rows()
    losses = BackpropLosses(rows.weighted(plan.likelihood_weights), index, risk, schedule)
    return curve_of_losses(plan, losses, "Bayes by Backprop, losses by quadrature", index)
