r"""Scores and curvature of losses of a linear predictor u = z'theta, at their minimiser.

    theta_hat = argmin sum_i w_i l(z_i'theta, y_i),
    s_i = l'(u_i) z_i,      J = sum_i w_i l''(u_i) z_i z_i' / sum_i w_i.

No prior enters.  Newton's method works on an orthonormal basis of the weighted columns, so that
neither their units nor their correlations matter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from temperance.data import Array
from temperance.protocols import Information, NoMinimiserError

MOST_STEPS, MOST_HALVINGS = 60, 30
CONVERGED = 1e-9  # of a step, relative to the size of the predictors
DEPENDENT = 1e-6  # part of a column, in its own units, that the others do not explain

FLAT = 1e-12  # curvature, relative to the largest, that is lost in rounding
EXACT = 1e-12  # residuals, relative to the responses, that are nothing but rounding

Value = Callable[[Array], Array]
Derivatives = Callable[[Array], tuple[Array, Array]]


def linear_predictor_information(
    Z: Array,
    weights: Array,
    value: Value,
    derivatives: Derivatives,
    prior_root: Array | None = None,
    centre: Array | None = None,
) -> Information:
    """Return the information of a loss of the linear predictor.

    Parameters
    ----------
    Z : array of shape (n, p)
    weights : array of shape (n,)
    value : function from predictors (n,) to losses (n,)
    derivatives : function from predictors (n,) to l' and l'', (n,) each
    prior_root : root of the prior covariance of theta
    centre : predictors (n,) near each row's smallest loss, to start from; by default 0
    """
    Q, R, scale = orthonormal(Z, weights)
    share = weights / weights.sum()
    near = np.zeros(len(Z)) if centre is None else centre
    g, u = _minimise(Q, share, value, derivatives, near)
    first, second = derivatives(u)
    theta = np.linalg.solve(R, g) / scale
    curvature = (Z.T * (share * second)) @ Z
    roots = np.sqrt(np.maximum(second, 0.0))[:, None] * Z  # the loss may be concave at a row
    return Information(theta, first[:, None] * Z, curvature, prior_root, roots)


def squared_information(
    Z: Array,
    y: Array,
    weights: Array,
    noise_variance: float | None,
    prior_root: Array | None = None,
) -> Information:
    """Return the information of (y - z'theta)^2 / (2 s2).

    A variance of None is that of the residuals, and the prior's root is in units of its root.
    """
    Q, R, scale = orthonormal(Z, weights)
    share = weights / weights.sum()
    # Responses relative to their size: squares of extreme units stay finite.
    size = float(np.abs(y).max(initial=0.0)) or 1.0
    g = Q.T @ (share * (y / size))
    g = g + Q.T @ (share * (y / size - Q @ g))  # the second time removes rounding errors
    residual = size * (y / size - Q @ g)
    if np.abs(residual).max() <= EXACT * size:
        residual = np.zeros(len(y))
    variance = fitted_variance(residual, share) if noise_variance is None else noise_variance
    theta = np.linalg.solve(R, size * g) / scale
    if noise_variance is None and prior_root is not None:
        prior_root = np.sqrt(variance) * prior_root
    scores, roots = -(residual / variance)[:, None] * Z, Z / np.sqrt(variance)
    return Information(theta, scores, (Z.T * (share / variance)) @ Z, prior_root, roots)


def fitted_variance(residual: Array, share: Array) -> float:
    """Return the mean squared residual; refuse a fit without residuals."""
    variance = float(share @ residual**2)
    if not variance > 0:
        raise NoMinimiserError(
            "y must not be fitted exactly by X: the noise variance has no minimiser without a prior"
        )
    return variance


def orthonormal(Z: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return Q, R and column scales with Z = Q R diag(scale), where Q' diag(share) Q = I."""
    n, p = Z.shape
    if p >= n:
        raise NoMinimiserError(
            f"X must have fewer columns than rows for a minimiser without the prior, got {p} "
            f"columns and {n} rows; use Coverage(), which keeps the prior"
        )
    root = np.sqrt(weights / weights.sum())
    scale = np.abs(Z).max(axis=0)
    if (scale > 0).all():
        Q, R = np.linalg.qr(root[:, None] * (Z / scale))
        left = np.abs(np.diagonal(R)) / np.linalg.norm(R, axis=0)
        if left.min() > DEPENDENT:
            return Q / root[:, None], R, scale
    else:
        left = scale
    raise NoMinimiserError(
        "X must have linearly independent columns for a minimiser without the prior, got column "
        f"{int(np.argmin(left))} that depends on those before it; use Coverage(), which keeps the "
        "prior"
    )


def _minimise(
    Q: Array, share: Array, value: Value, derivatives: Derivatives, centre: Array
) -> tuple[Array, Array]:
    """Return coefficients along Q, and predictors, of smallest mean loss, by damped Newton steps.

    Where there is no minimum, predictors of some rows grow at every step, and the curvature along
    some direction vanishes.
    """
    g = Q.T @ (share * centre)
    u = Q @ g
    for _ in range(MOST_STEPS):
        first, second = derivatives(u)
        hessian = (Q.T * (share * second)) @ Q
        curvatures = np.linalg.eigvalsh(hessian)
        curved = curvatures[0] > FLAT * curvatures[-1]
        if not curved:
            hessian = (Q.T * (share * _secant(u - centre, first, second))) @ Q
            curvatures = np.linalg.eigvalsh(hessian)
            if not curvatures[0] > FLAT * curvatures[-1]:
                break
        step = -np.linalg.solve(hessian, Q.T @ (share * first))
        change = Q @ step
        if curved and np.abs(change).max() <= CONVERGED * (1.0 + np.abs(u).max()):
            return g + step, u + change
        length = _length(u, change, share, value)
        g, u = g + length * step, u + length * change
    raise NoMinimiserError(
        "y must have a minimiser of its mean loss without the prior, got none: X separates the "
        "classes, or the loss has no curvature; use Coverage(), which keeps the prior"
    )


def _secant(distance: Array, first: Array, second: Array) -> Array:
    """Return l'' where it is positive, elsewhere l' / (u - centre), as in reweighted squares."""
    slope = np.divide(first, distance, out=np.zeros(len(first)), where=distance != 0)
    return np.where(second > 0, second, np.maximum(slope, 0.0))


def _length(u: Array, change: Array, share: Array, value: Value) -> float:
    """Return the largest of 1, 1/2, 1/4 ... times the step that does not raise the loss."""
    with np.errstate(over="ignore", invalid="ignore"):
        before = share @ value(u)
        length = 1.0
        for _ in range(MOST_HALVINGS):
            if share @ value(u + length * change) <= before + 1e-12 * abs(before):
                break
            length /= 2
    return length
