r"""Risks of logistic models by an independent solver, in coordinates where the prior is N(0, I).

The objectives of Laplace and of both variational families are strongly convex with modulus 1 in
the mean and in the root C of the covariance (lower triangular or diagonal), so that the norm of
the gradient bounds the distance to the solution: Newton's method proves its own answer.  Jaakkola's
equations are iterated as they stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from temperance import models
from temperance.data import Data, Risk
from temperance.plans import Pairs

Array = NDArray[np.float64]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)
FAR = 40.0  # beyond it the logistic function is a step, to the last digit
MOST_STEPS = 200  # and halvings of them, in all


class NotSolvedError(Exception):
    """The plain solver cannot prove its answer: nothing can be said."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Mean and root of the covariance in whitened coordinates, and how far off they may be."""

    mean: Array
    root: Array
    distance: float


def _panels(mean: float, deviation: float) -> tuple[Array, Array]:
    """Points x and weights, density of N(mean, deviation^2) included, over |x| <= 40."""
    low = max(-FAR, mean - 13 * deviation)
    high = min(FAR, mean + (13 + deviation) * deviation)
    if low >= high:
        return np.zeros(0), np.zeros(0)
    count = int(np.ceil((high - low) / min(1.0, deviation)))
    edges = np.unique(np.append(np.linspace(low, high, count + 1), 0.0 if low < 0 < high else low))
    half = np.diff(edges)[:, None] / 2
    x = (edges[:-1, None] + half * (1 + NODES)).ravel()
    weight = (half * WEIGHTS).ravel()
    density = np.exp(-0.5 * ((x - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))
    return x, weight * density


def expectations(mean: Array, variance: Array) -> Array:
    """Return E softplus, E sigma and E of its first three derivatives, shape (5, n)."""
    found = np.empty((5, len(mean)))
    for i, (mu, v) in enumerate(zip(mean, variance, strict=True)):
        s = float(np.sqrt(v))
        if s < 1e-7 * max(1.0, abs(mu)):  # a point: the curvature adds v/2 times the second
            x, weight = np.array([mu]), np.ones(1)
            step = 0.0
            found[:, i] = _local(x) @ weight + np.array([max(mu, 0.0), float(mu > 0), 0, 0, 0])
            found[0, i] += found[2, i] * v / 2
            continue
        x, weight = _panels(float(mu), s)
        step = special.ndtr(mu / s)
        ramp = mu * step + s * np.exp(-0.5 * (mu / s) ** 2) / np.sqrt(2 * np.pi)
        found[:, i] = _local(x) @ weight + np.array([ramp, step, 0.0, 0.0, 0.0])
    return found


def _local(x: Array) -> Array:
    """Softplus less max(x, 0), sigma less its step, and derivatives of sigma, shape (5, g)."""
    small = special.expit(-np.abs(x))
    p = special.expit(x)
    slope = small * (1 - small)
    return np.stack(
        [
            np.log1p(np.exp(-np.abs(x))),
            np.where(x > 0, -small, small),
            slope,
            slope * (1 - 2 * p),
            slope * (1 - 6 * slope),
        ]
    )


def minus_log_probability(mean: float, variance: float) -> float:
    """Return -log E sigma(x), with the logarithm's own accuracy."""
    s = float(np.sqrt(variance))
    if s < 1e-7 * max(1.0, abs(mean)):
        return float(np.logaddexp(0.0, -mean))
    if s < 3:  # e^x times the density, wherever it lies
        low, high = mean - 13 * s, mean + s * s + 13 * s
        edges = np.linspace(low, high, int(np.ceil((high - low) / min(1.0, s))) + 1)
        half = np.diff(edges)[:, None] / 2
        x = (edges[:-1, None] + half * (1 + NODES)).ravel()
        logs = np.log((half * WEIGHTS).ravel()) - 0.5 * ((x - mean) / s) ** 2
        logs = logs - np.log(s * np.sqrt(2 * np.pi)) - np.logaddexp(0.0, -x)
        total = special.logsumexp(logs)
        if total > -0.1:  # the other side is the smaller
            return float(-np.log1p(-np.exp(-minus_log_probability(-mean, variance))))
        return float(-total)
    if mean / s > 5:
        return float(-np.log1p(-np.exp(-minus_log_probability(-mean, variance))))
    if mean / s < -30:
        raise NotSolvedError
    edges = np.linspace(-FAR, FAR, 81)
    x = (edges[:-1, None] + 0.5 * (1 + NODES)).ravel()
    logs = np.log(0.5 * np.tile(WEIGHTS, 80)) - 0.5 * ((x - mean) / s) ** 2
    logs = logs - np.log(s * np.sqrt(2 * np.pi)) - np.logaddexp(0.0, -x)
    # A step above, e^x below.
    above = special.log_ndtr((mean - FAR) / s)
    below = mean + variance / 2 + special.log_ndtr((-FAR - mean - variance) / s)
    return float(-special.logsumexp([*logs, above, below]))


def plain_risk(
    model: Any, data: Data, plan: Pairs, beta: float, risk: Risk, rng: Any = None
) -> tuple[float, float, float]:
    """Return the risk, the mean of its terms' sizes, and how far off it may be.

    With ``rng`` all numbers are moved by about one unit of rounding before.
    """
    Z, offset = _whitened(model, data, rng)
    total = size = doubt = 0.0
    for weights, test in zip(plan.likelihood_weights, plan.test, strict=True):
        fit = _fit(model, Z, offset, data.y, beta * weights)
        rows = np.flatnonzero(test)
        mean = offset[rows] + Z[rows] @ fit.mean
        variance = ((Z[rows] @ fit.root) ** 2).sum(axis=1)
        sign = 2 * data.y[rows] - 1
        if risk == "gibbs":
            losses = expectations(-sign * mean, variance)[0]
        else:
            losses = np.array(
                [minus_log_probability(*each) for each in zip(sign * mean, variance, strict=True)]
            )
        total += float(test[rows] @ losses)
        size += float(test[rows] @ np.abs(losses))
        # Losses have slopes of at most 1 in the mean and 1 in the deviation.
        reach = np.linalg.norm(Z[rows], axis=1)
        doubt += float(test[rows] @ (2 * reach * fit.distance))
    tested = float(plan.test.sum())
    return total / tested, size / tested, doubt / tested


def _whitened(model: Any, data: Data, rng: Any) -> tuple[Array, Array]:
    Z = np.asarray(data.X, dtype=float)
    d = Z.shape[1]
    cov = np.asarray(model.prior_cov, dtype=float)
    mean = np.full(d, np.asarray(model.prior_mean, dtype=float))
    if rng is not None:
        Z = Z * (1 + 2.2e-16 * rng.choice([-1, 0, 1], Z.shape))
        mean = mean * (1 + 2.2e-16 * rng.choice([-1, 0, 1], d))
    root = np.linalg.cholesky(cov) if cov.ndim == 2 else np.diag(np.sqrt(np.full(d, cov)))
    return Z @ root, Z @ mean


def _fit(model: Any, Z: Array, offset: Array, y: Array, weights: Array) -> Fit:
    used = weights > 0
    Z, offset, y, weights = Z[used], offset[used], y[used], weights[used]
    if not used.any():
        return Fit(np.zeros(Z.shape[1]), np.eye(Z.shape[1]), 0.0)
    if isinstance(model, models.LaplaceLogistic):
        return _laplace(Z, offset, y, weights)
    if isinstance(model, models.JaakkolaLogistic):
        return _jaakkola(Z, offset, y, weights)
    return _variational(Z, offset, y, weights, isinstance(model, models.MeanFieldLogistic))


def _laplace(Z: Array, offset: Array, y: Array, w: Array) -> Fit:
    d = Z.shape[1]

    def objective(u: Array) -> tuple[float, Array, Array]:
        x = offset + Z @ u
        p = special.expit(x)
        value = w @ (np.logaddexp(0.0, x) - y * x) + u @ u / 2
        gap = np.where(y == 1, -special.expit(-x), p)
        slope = p * special.expit(-x)
        return value, u + Z.T @ (w * gap), np.eye(d) + (Z.T * (w * slope)) @ Z

    u, distance = _newton(objective, np.zeros(d))
    _, _, precision = objective(u)
    root = np.linalg.inv(np.linalg.cholesky(precision)).T
    # The covariance follows the mean: its own error is of the same size, relative.
    return Fit(u, root, distance * (1 + np.linalg.norm(Z, axis=1).max()))


def _variational(Z: Array, offset: Array, y: Array, w: Array, diagonal: bool) -> Fit:
    n, d = Z.shape
    rows, columns = np.diag_indices(d) if diagonal else np.tril_indices(d)
    on_diagonal = np.flatnonzero(rows == columns)

    def root_of(x: Array) -> Array:
        root = np.zeros((d, d))
        root[rows, columns] = x[d:]
        return root

    def objective(x: Array) -> tuple[float, Array, Array]:
        m, C = x[:d], root_of(x)
        if np.any(np.diag(C) <= 0):
            return np.inf, x, np.eye(len(x))
        projected = Z @ C
        mean, variance = offset + Z @ m, (projected**2).sum(axis=1)
        plus, sigma, first, second, third = expectations(mean, variance)
        value = w @ (plus - y * mean)
        value += (x @ x) / 2 - np.log(np.diag(C)).sum()
        # Derivatives in mean and variance: L_v = L_mm / 2, and so on.
        d_mean, d_variance = w * (sigma - y), w * first / 2
        dv = 2 * Z[:, rows] * projected[:, columns]
        gradient = x + np.concatenate([Z.T @ d_mean, dv.T @ d_variance])
        gradient[d + on_diagonal] -= 1 / np.diag(C)
        cross = (Z.T * (w * second / 2)) @ dv
        bend = (dv.T * (w * third / 4)) @ dv
        pairs = (Z.T * (2 * d_variance)) @ Z
        bend += pairs[np.ix_(rows, rows)] * (columns[:, None] == columns)
        hessian = np.eye(len(x))
        hessian[:d, :d] += (Z.T * (w * first)) @ Z
        hessian[:d, d:] += cross
        hessian[d:, :d] += cross.T
        hessian[d:, d:] += bend
        hessian[d + on_diagonal, d + on_diagonal] += 1 / np.diag(C) ** 2
        return value, gradient, hessian

    start = np.zeros(d + len(rows))
    # A first guess of the spread: that of the curvature at the prior's mean.
    start[d + on_diagonal] = 1 / np.sqrt(1 + w @ (Z**2) / 4)
    x, distance = _newton(objective, start)
    return Fit(x[:d], root_of(x), distance)


def _newton(objective: Any, x: Array) -> tuple[Array, float]:
    """Minimise by damped steps; return the point and the norm of the gradient."""
    value, gradient, hessian = objective(x)
    best = x, float(np.linalg.norm(gradient))
    left = MOST_STEPS
    while left > 0:
        if not np.all(np.isfinite(hessian)) or np.diag(hessian).min() <= 0:
            raise NotSolvedError
        sides = 1 / np.sqrt(np.diag(hessian))
        scaled = hessian * np.outer(sides, sides)
        step = -sides * np.linalg.lstsq(scaled, sides * gradient, rcond=None)[0]
        decrement = -float(gradient @ step)
        if not np.isfinite(decrement):
            raise NotSolvedError
        length = 1.0
        while True:
            there = objective(x + length * step)
            left -= 1
            if there[0] <= value - 1e-4 * length * decrement + 1e-13 * abs(value):
                break
            length /= 2
            if length < 1e-14 or left <= 0:
                return best
        x = x + length * step
        value, gradient, hessian = there
        norm = float(np.linalg.norm(gradient))
        if norm < best[1]:
            best = x, norm
        elif length == 1 and decrement < 1e-12 * max(1.0, abs(value)):
            return best
        if norm == 0:
            return best
    return best


def _jaakkola(Z: Array, offset: Array, y: Array, w: Array) -> Fit:
    d = Z.shape[1]
    u, S, v = np.zeros(d), np.eye(d), np.zeros(len(Z))
    for _ in range(1000):
        last = v
        v = np.sqrt(np.maximum((offset + Z @ u) ** 2 + np.einsum("ij,jk,ik->i", Z, S, Z), 1e-300))
        lam = np.where(v > 1e-4, np.tanh(v / 2) / (4 * np.maximum(v, 1e-4)), 1 / 8 - v**2 / 96)
        precision = np.eye(d) + 2 * (Z.T * (w * lam)) @ Z
        # The offset is part of the predictor: the bound is quadratic in it, too.
        S = np.linalg.inv(precision)
        new = S @ (Z.T @ (w * (y - 0.5 - 2 * lam * offset)))
        # By symmetry the mean may stay where it is while the covariance moves.
        moved = float(np.abs(new - u).max() * (1 + np.linalg.norm(Z, axis=1).max()))
        moved = max(moved, float(np.abs(v - last).max()))
        u = new
        if moved < 1e-14 * (1 + np.abs(offset + Z @ u).max() + v.max()):
            # Where curvatures have fallen like 1 / v, steps say nothing of the distance.
            if v[w > 0].max() > 1e3:
                raise NotSolvedError
            return Fit(u, np.linalg.cholesky(S), max(1e-13, _lost(Z, w, v, S)))
    raise NotSolvedError


def _lost(Z: Array, w: Array, v: Array, S: Array) -> float:
    """Return how far rounding of forces, of up to w each, may move the mean of Jaakkola's bound.

    The bound's second derivative in the predictor is 2 lam K / v^2 + sigma'(v) (1 - K / v^2).
    """
    share = np.einsum("ij,jk,ik->i", Z, S, Z) / v**2
    small = special.expit(-v)
    bend = np.tanh(v / 2) / (2 * v) * share + small * (1 - small) * (1 - share)
    hessian = np.eye(Z.shape[1]) + (Z.T * (w * bend)) @ Z
    forces = 2.2e-16 * w @ np.abs(Z)
    return float(np.linalg.norm(np.abs(np.linalg.inv(hessian)) @ forces))
