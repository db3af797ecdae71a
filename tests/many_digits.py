"""Held-out losses of linear models with many digits, every posterior fitted by itself."""

from __future__ import annotations

import mpmath as mp
import numpy as np

from temperance import models


def many_digits(model, data, plan, score, beta, digits=60):
    r"""Mean losses of all rows, (n,), over the pairs that test them, by the textbook formulae.

    With the precision P of the prior in units of 1 / s2, zero for an intercept,

        A = P + beta Z'WZ,  m = A^-1 (P mu + beta Z'W y),  Q = beta |y - Z m|_W^2 + |m - mu|_P^2.
    """
    with mp.workdps(digits):
        return _losses(model, data, plan.pairs(), score, mp.mpf(beta))


def _losses(model, data, pairs, score, beta):
    design = model.features(data.X)
    Z, y, test = _exact(design), _exact(data.y[:, None]), pairs.test
    level, priors = int(getattr(model, "intercept", False)), _priors(model, Z.cols)
    total, weight = [mp.mpf(0)] * len(data.y), [mp.mpf(0)] * len(data.y)
    for train, tested in zip(pairs.train, test, strict=True):
        w = [mp.mpf(float(each)) for each in train]
        if pairs.transfer == "alpha":
            w = [each * mp.mpf(float(pairs.size)) / mp.fsum(w) for each in w]
        fits = [_fit(Z, y, [beta * each for each in w], P, mean) for P, mean in priors]
        size = max(mp.fsum(w) - level, mp.mpf(0))
        logs, losses = zip(*(_of(model, fit, beta * size, level) for fit in fits), strict=True)
        for i in np.flatnonzero(tested):
            z = Z[int(i), :]
            each = [
                loss(y[int(i)] - (z * m)[0], (z * mp.lu_solve(A, z.T))[0], score)
                for (A, m, _, _), loss in zip(fits, losses, strict=True)
            ]
            share = mp.mpf(float(tested[i]))
            total[i] += share * _mixed(logs, each, score)
            weight[i] += share
    return np.array([float(t / w) if w else 0.0 for t, w in zip(total, weight, strict=True)])


def _priors(model, d):
    """Return (precision in units of the noise, mean) of each scale."""
    if isinstance(model, models.HierarchicalLinear):
        level = int(model.intercept)
        found = []
        for scale in np.asarray(model.scales, dtype=float):
            P = mp.zeros(d)
            for j in range(level, d):
                P[j, j] = 1 / mp.mpf(float(scale)) ** 2
            found.append((P, mp.zeros(d, 1)))
        return found
    given = model.prior_cov
    if given is None:
        given = 0.5 ** np.arange(d)
    given = np.asarray(given, dtype=float)
    cov = (
        _exact(given)
        if given.ndim == 2
        else mp.diag([mp.mpf(float(value)) for value in np.broadcast_to(given, d)])
    )
    unit = mp.mpf(float(getattr(model, "noise_variance", 1.0)))
    mean = _exact(np.broadcast_to(np.asarray(model.prior_mean, dtype=float), d)[:, None])
    return [(unit * mp.inverse(cov), mean)]


def _fit(Z, y, w, P, mean):
    WZ = mp.matrix([[w[i] * Z[i, j] for j in range(Z.cols)] for i in range(Z.rows)])
    A = P + Z.T * WZ
    m = mp.lu_solve(A, P * mean + WZ.T * y)
    error, away = y - Z * m, m - mean
    Q = mp.fsum(w[i] * error[i] ** 2 for i in range(Z.rows)) + (away.T * P * away)[0]
    return A, m, Q, P


def _of(model, fit, size, level):
    """Return the logarithm of the evidence, and the loss of an error and a variance."""
    A, _, Q, P = fit
    kept = P[level:, level:] if level else P
    determinant = mp.log(mp.det(A)) - (mp.log(mp.det(kept)) if kept.rows else 0)
    known = getattr(model, "noise_variance", None)
    if known is not None:
        s2 = mp.mpf(float(known))
        return -Q / (2 * s2) - determinant / 2, lambda e, v, score: _known(e, v, s2, score)
    a, b = mp.mpf(model.a) + size / 2, mp.mpf(model.b) + Q / 2
    return -a * mp.log(b) - determinant / 2, lambda e, v, score: _unknown(e, v, a, b, score)


def _mixed(logs, losses, score):
    top = max(logs)
    weights = [mp.exp(each - top) for each in logs]
    if score == "gibbs":
        return mp.fdot(weights, losses) / mp.fsum(weights)
    densities = [mp.exp(-each) for each in losses]
    return mp.log(mp.fsum(weights)) - mp.log(mp.fdot(weights, densities))


def _known(error, variance, s2, score):
    if score == "gibbs":
        return (error**2 / s2 + variance + mp.log(2 * mp.pi * s2)) / 2
    total = s2 * (1 + variance)
    return (error**2 / total + mp.log(2 * mp.pi * total)) / 2


def _unknown(error, variance, a, b, score):
    if score == "gibbs":
        return (a / b * error**2 + variance + mp.log(2 * mp.pi * b) - mp.digamma(a)) / 2
    ratio = error**2 / (2 * b * (1 + variance))
    step = mp.loggamma(a + mp.mpf(1) / 2) - mp.loggamma(a)
    return (
        (a + mp.mpf(1) / 2) * mp.log(1 + ratio) + mp.log(2 * mp.pi * b * (1 + variance)) / 2 - step
    )


def _exact(array):
    return mp.matrix([[mp.mpf(float(value)) for value in row] for row in np.asarray(array)])
