"""Risk curves of linear models with many digits, every posterior fitted by itself."""

from __future__ import annotations

import mpmath as mp
import numpy as np

from temperance import models


def many_digits(model, data, plan, risk, beta, digits=90):
    r"""Average loss over all tested rows of all pairs, by the textbook formulae.

    In units of the noise K = Z S_0 Z' / s2 and, for a training set with exponents beta w,
    M = I + beta W^1/2 K W^1/2: a row k has the error r - k'W^1/2 M^-1 W^1/2 r, and so on.
    """
    with mp.workdps(digits):
        return float(_curve(model, data, plan.pairs(), risk, mp.mpf(beta)))


def _curve(model, data, plan, risk, beta):
    Z = model.features(data.X)
    prior = model.prior(Z.shape[1])
    known = not isinstance(model, models.NormalInverseGammaLinear)
    unit = mp.mpf(model.noise_variance) if known else mp.mpf(1)
    Z, mean = _exact(Z), _exact(prior.mean[:, None])
    cov = _exact(np.diag(np.ones(Z.cols)))
    given = np.asarray(model.prior_cov, dtype=float)
    cov = _exact(given) if given.ndim == 2 else cov * 0
    if given.ndim < 2:
        for j, value in enumerate(np.broadcast_to(given, Z.cols)):
            cov[j, j] = mp.mpf(float(value))
    r = (_exact(data.y[:, None]) - Z * mean) / mp.sqrt(unit)
    K = Z * cov * Z.T / unit
    total, weight = mp.mpf(0), mp.mpf(0)
    for train, test in zip(plan.train, plan.test, strict=True):
        rows = np.flatnonzero(train)
        w = [mp.mpf(float(train[i])) for i in rows]
        if plan.transfer == "alpha":
            w = [each * mp.mpf(float(plan.size)) / mp.fsum(w) for each in w]
        root = [mp.sqrt(beta * each) for each in w]
        M = mp.matrix(len(rows), len(rows))
        for p, i in enumerate(rows):
            for q, j in enumerate(rows):
                M[p, q] = root[p] * root[q] * K[int(i), int(j)] + (p == q)
        L = mp.cholesky(M)
        u = _forward(L, [root[p] * r[int(i)] for p, i in enumerate(rows)])
        misfit, exposure = mp.fsum(each**2 for each in u), mp.fsum(w)
        for i in np.flatnonzero(test):
            k = _forward(L, [root[p] * K[int(j), int(i)] for p, j in enumerate(rows)])
            error = r[int(i)] - mp.fsum(a * b for a, b in zip(k, u, strict=True))
            variance = K[int(i), int(i)] - mp.fsum(each**2 for each in k)
            share = mp.mpf(float(test[i]))
            if known:
                loss = _known(error, variance, risk)
            else:
                a, b = model.a + beta * exposure / 2, model.b + misfit / 2
                loss = _unknown(error, variance, a, b, risk)
            total, weight = total + share * loss, weight + share
    return total / weight


def _known(error, variance, risk):
    if risk == "gibbs":
        return (error**2 + variance) / 2
    return (error**2 / (1 + variance) + mp.log(1 + variance)) / 2


def _unknown(error, variance, a, b, risk):
    if risk == "gibbs":
        return (a / b * error**2 + variance + mp.log(2 * mp.pi * b) - mp.digamma(a)) / 2
    ratio = error**2 / (2 * b * (1 + variance))
    step = mp.loggamma(a + mp.mpf(1) / 2) - mp.loggamma(a)
    return (
        (a + mp.mpf(1) / 2) * mp.log(1 + ratio) + mp.log(2 * mp.pi * b * (1 + variance)) / 2 - step
    )


def _exact(array):
    return mp.matrix([[mp.mpf(float(value)) for value in row] for row in array])


def _forward(L, right):
    found = []
    for p, value in enumerate(right):
        found.append((value - mp.fsum(L[p, q] * found[q] for q in range(p))) / L[p, p])
    return found
