r"""Scratch."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, ndtri

from temperance.models.logistic.continuation import Path
from temperance.models.logistic.jaakkola import JaakkolaSystem, Moments
from temperance.models.logistic.laplace import LaplaceSystem
from temperance.models.logistic.system import Rows
from temperance.models.reference.second_moment import shrinkage_intensity
from temperance.quadrature import log_expected_sigmoid
from temperance.types import Array, Plan


def log_sigmoid(x):
    return -np.logaddexp(0.0, -x)


def jaakkola_fit(rows: Rows):
    system = JaakkolaSystem(rows)
    x = Path(system).at(1.0).x
    at = Moments(rows, np.exp(x), 1.0)
    xi = np.exp(x[0] / 2)
    w, o, lam = rows.weights[0], rows.offset, at.lam[0]
    b = rows.y - 0.5
    root, u = at.root[0], at.u[0]
    _, ld = np.linalg.slogdet(root)
    pull = (w * (b - 2 * lam * o)) @ rows.Z
    ev = w @ (b * o - lam * o**2 + lam * xi**2 + log_sigmoid(xi) - xi / 2) + ld + 0.5 * pull @ u
    return ev, u, root


def laplace_fit(rows: Rows):
    system = LaplaceSystem(rows)
    x = Path(system).at(1.0).x
    u, root = (part[0] for part in system.gaussian(x, 1.0))
    f = rows.offset + rows.Z @ u
    _, ld = np.linalg.slogdet(root)
    ev = -rows.weights[0] @ (np.logaddexp(0, f) - rows.y * f) - 0.5 * u @ u + ld
    return ev, u, root


def reference_probability(Z, offset, y, weights, fresh, fresh_offset, kind, sd):
    """Z, fresh whitened."""
    fit = {"jaakkola": jaakkola_fit, "laplace": laplace_fit}[kind]
    grid = np.linspace(-3 * sd, 3 * sd, 19)
    evs, ps = [], []
    for lt in grid:
        sc = np.exp(lt / 2)
        ev, u, root = fit(Rows(Z * sc, offset, y, weights[None]))
        mean = fresh_offset + sc * fresh @ u
        var = sc**2 * ((fresh @ root) ** 2).sum(axis=1)
        ps.append(np.exp(log_expected_sigmoid(mean, var)))
        evs.append(ev - lt**2 / (2 * sd**2))
    w = np.exp(np.array(evs) - max(evs))
    w /= w.sum()
    return w @ np.array(ps), (grid, w)


def fresh_rows(Z: Array, weights: Array, points: int = 256) -> Array:
    from scipy.stats import qmc

    share = weights / weights.sum()
    mean = share @ Z
    centred = Z - mean
    rho = shrinkage_intensity(centred, weights)
    cov = (centred.T * share) @ centred
    cov = (1 - rho) * cov + rho * np.diag(np.diag(cov))
    lam, U = np.linalg.eigh(cov)
    standard = ndtri(qmc.Sobol(Z.shape[1], seed=0).random(points))
    standard = standard - standard.mean(axis=0)
    return mean + standard * np.sqrt(np.maximum(lam, 0)) @ U.T
