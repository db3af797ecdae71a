r"""A curve through values at a grid of betas: a smoothing spline in log beta.

The spline minimises

    sum_j ((r_j - s(t_j)) / h_j)^2 + penalty int s''(t)^2 dt,     t = log beta,

averaged over penalties with weights by the restricted likelihood of the model in which s is an
integrated Wiener process and the errors of the r_j are independent with variances s2 h_j^2.  The
heights h_j are 1 at the least r_j, 3/2 at the median and at most 6: where a curve falls steeply, it
may bend abruptly, which should not hide how smooth it is near its minimum.  Penalties so small that
the spline would follow every error are left out.  Losses of rows are smoothed with the same weights
as their mean.  Below the least positive beta the curve is the parabola in beta that meets the value
at 0, and value and slope of the spline.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import CubicSpline

from temperance.data import Array

PENALTIES = np.logspace(-6, 6, 121)
MOST_ABOVE = 10.0  # times the median, where a curve counts as high; heights are at most 6
LEAST_KEPT_BACK = 0.5  # degrees of freedom by which a spline must fall short of interpolation


@dataclass(frozen=True, eq=False)
class SmoothCurve:
    """The smoothing spline of values at betas, of which the first may be 0.

    Parameters
    ----------
    betas, values : arrays of shape (g,), ascending betas; five or more are positive
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
    def _fit(self) -> tuple[Array, Array]:
        """Return the matrix from values to smoothed values, and the covariance of their errors."""
        t = self._basis.x
        bend, width = self._basis(t, 2), np.diff(t)
        # Second derivatives are linear between knots: int s''^2 = s'' M s'' with M tridiagonal.
        mass = np.diag(np.append(width, 0.0) + np.append(0.0, width)) / 3
        mass += (np.diag(width, 1) + np.diag(width, -1)) / 6
        values = self.values[self.zero :]
        above = values - values.min()
        middle = max(float(np.median(above)), float(above.max()) / MOST_ABOVE)
        height = 1 + 0.5 * above / max(middle, np.finfo(float).tiny)
        # In units of the height errors have one variance.
        rough, axes = np.linalg.eigh(height[:, None] * (bend.T @ mass @ bend) * height)
        rough = rough[2:]  # straight lines are not penalised
        seen = axes.T @ (values / height)
        kept = 1 / (1 + np.outer(PENALTIES, rough))  # shares of the axes, (penalties, axes)
        kept = kept[kept.sum(axis=1) <= len(rough) - LEAST_KEPT_BACK]
        # Along an axis the values have the variance s2 (1 + 1 / (penalty rough)), s2 of an error.
        squares = (1 - kept) * seen[2:] ** 2
        variance = np.maximum(squares.mean(axis=1), np.finfo(float).tiny)
        likelihood = 0.5 * (np.log(1 - kept).sum(axis=1) - len(rough) * np.log(variance))
        weight = np.exp(likelihood - likelihood.max())
        weight /= weight.sum()
        shares = np.append([1.0, 1.0], weight @ kept)
        spread = np.append(np.full(2, weight @ variance), (weight * variance) @ kept)
        moved = (kept - shares[2:]) * seen[2:]  # from penalty to penalty
        across = np.zeros((len(t), len(t)))
        across[2:, 2:] = moved.T @ (weight[:, None] * moved)
        smoother = (axes * shares) @ axes.T
        covariance = (axes * spread) @ axes.T + axes @ across @ axes.T
        smoother = height[:, None] * smoother / height
        # Errors may grow with the height, or be as large everywhere: variances add up both.
        residuals = values - smoother @ values
        even = residuals @ residuals / (len(t) - np.trace(smoother)) / (weight @ variance)
        # That s2 is estimated from these axes makes the errors those of a t distribution.
        freedom = len(rough) / (len(rough) - 2)
        outwards = np.sqrt(freedom * (height**2 + even))
        return smoother, outwards[:, None] * covariance * outwards

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
        """Return the standard error of the smoothed curve, bias included, rather too large."""
        at = self._basis(np.log(np.maximum(beta, self.betas[self.zero])))
        return np.sqrt(np.einsum("mi,ij,mj->m", at, self._fit[1], at))
