r"""A curve through values at a grid of betas: a smoothing spline in log beta.

The spline minimises

    sum_j (r_j - s(t_j))^2 + penalty int s''(t)^2 dt,     t = log beta,

with the penalty of largest restricted likelihood of the model in which s is an integrated Wiener
process and the errors of the r_j are independent with one variance.  The smoothed values are
linear in the r_j, so that losses of rows are smoothed as their mean is.  Below the least positive
beta the curve is the parabola in beta that meets the value at 0, and value and slope of the spline.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import CubicSpline

from temperance.types import Array

PENALTIES = np.logspace(-8, 6, 141)


@dataclass(frozen=True, eq=False)
class SmoothCurve:
    """The smoothing spline of values at betas, of which the first may be 0.

    Parameters
    ----------
    betas, values : arrays of shape (g,), ascending betas; three or more are positive
    """

    betas: Array
    values: Array

    @property
    def zero(self) -> int:
        """1 if the first beta is 0, else 0."""
        return int(self.betas[0] == 0)

    @cached_property
    def _basis(self) -> CubicSpline:
        """Natural cubic splines through the unit vectors."""
        positive = self.betas[self.zero :]
        return CubicSpline(np.log(positive), np.eye(len(positive)), bc_type="natural")

    @cached_property
    def _fit(self) -> tuple[Array, float]:
        """Return the matrix from values to smoothed values, and the variance of an error."""
        t = self._basis.x
        bend, width = self._basis(t, 2), np.diff(t)
        # Second derivatives are linear between knots: int s''^2 = s'' M s'' with M tridiagonal.
        mass = np.diag(np.append(width, 0.0) + np.append(0.0, width)) / 3
        mass += (np.diag(width, 1) + np.diag(width, -1)) / 6
        rough, axes = np.linalg.eigh(bend.T @ mass @ bend)
        seen = (axes.T @ self.values[self.zero :])[2:] ** 2  # straight lines are not penalised
        likelihood, variance = [], []
        for penalty in PENALTIES:
            inflation = 1 + 1 / (penalty * rough[2:])
            variance.append(float(np.mean(seen / inflation)))
            size = max(variance[-1], np.finfo(float).tiny)
            likelihood.append(-len(seen) * np.log(size) - np.log(inflation).sum())
        best = int(np.argmax(likelihood))
        shrunk = np.append([1.0, 1.0], 1 / (1 + PENALTIES[best] * rough[2:]))
        return (axes * shrunk) @ axes.T, variance[best]

    def weights(self, beta: Array) -> tuple[Array, Array]:
        """Return weights (m, g) of the values in the curve at ``beta`` (m,), and in its slope."""
        smoother, _ = self._fit
        low = self.betas[self.zero]
        inside = np.maximum(beta, low)
        value = np.zeros((len(beta), len(self.betas)))
        slope = np.zeros_like(value)
        t = np.log(inside)
        value[:, self.zero :] = self._basis(t) @ smoother
        slope[:, self.zero :] = self._basis(t, 1) @ smoother / inside[:, None]
        below = beta < low
        if below.any() and self.zero:
            # p + (2 D - d) x + (d - D) x^2, x = beta / low, with the rise D = s - p and d = low s'.
            x = (beta[below] / low)[:, None]
            start = np.eye(len(self.betas))[0]
            rise, end = value[below] - start, low * slope[below]
            value[below] = start + (2 * rise - end) * x + (end - rise) * x**2
            slope[below] = ((2 * rise - end) + 2 * (end - rise) * x) / low
        return value, slope

    def __call__(self, beta: Array) -> tuple[Array, Array]:
        """Return the curve and its slope in beta."""
        value, slope = self.weights(np.asarray(beta, dtype=float))
        return value @ self.values, slope @ self.values

    def error(self, beta: Array) -> Array:
        """Return the standard error of the smoothed curve, bias included.

        That of the model: smoothed values have the covariance variance x smoother.
        """
        smoother, variance = self._fit
        t = np.log(np.maximum(beta, self.betas[self.zero]))
        at = self._basis(t)
        return np.sqrt(variance * np.einsum("mi,ij,mj->m", at, smoother, at))
