r"""What a logistic reference model believes of a new observation, as weighted rows.

The reference has the prior N(mu_0, t S_0) with log t ~ N(0, c^2).  For each t its posterior is a
Gaussian with an evidence, from Laplace's approximation or from Jaakkola and Jordan's bound; the
probability of a label is averaged over both.  New inputs are Gaussian, with the mean of the rows
that were seen and their covariance, shrunk to its diagonal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from temperance.models.logistic.axes import spanning_axes
from temperance.models.logistic.continuation import Path, correct
from temperance.models.logistic.jaakkola import JaakkolaSystem, Moments
from temperance.models.logistic.laplace import LaplaceSystem
from temperance.models.logistic.system import Rows
from temperance.models.reference.second_moment import shrinkage_intensity
from temperance.quadrature import log_expected_sigmoid
from temperance.types import Array, Data, Plan

Evidence = Literal["jaakkola", "laplace"]
# Nodes for log t, in prior standard deviations.
NODES = np.linspace(-3.0, 3.0, 13)
POINTS = 128  # new inputs; a power of 2 keeps a Sobol sequence balanced


class Fit(NamedTuple):
    """A Gaussian posterior of the coefficients at prior scale 1, and its log evidence."""

    evidence: float
    mean: Array
    root: Array


def label_probability(
    rows: Rows, fresh: Array, offset: Array, evidence: Evidence, spread: float
) -> Array:
    r"""Probability of label 1 at whitened rows ``fresh`` (m, k), averaged over t.

    .. math::

        P(y = 1 \mid z) = \sum_t w_t E\,\sigma(f), \qquad
        f \sim N(z'm_t, z'S_t z), \quad w_t \propto p_t(y)\,N(\log t; 0, c^2)

    Parameters
    ----------
    rows : Rows
        Of one weighting.
    fresh, offset : arrays of shape (m, k) and (m,)
        New rows and their predictor at the prior mean.
    evidence : {"jaakkola", "laplace"}
    spread : float
        Prior standard deviation c of log t.
    """
    log_t = spread * NODES
    fits = _jaakkola(rows, log_t) if evidence == "jaakkola" else _laplace(rows, log_t)
    height = np.array([fit.evidence for fit in fits]) - NODES**2 / 2
    weight = np.exp(height - height.max())
    probability = [
        np.exp(log_expected_sigmoid(offset + fresh @ fit.mean, ((fresh @ fit.root) ** 2).sum(1)))
        for fit in fits
    ]
    return weight @ np.array(probability) / weight.sum()


def _laplace(rows: Rows, log_t: Array) -> list[Fit]:
    """Follow the mode: that of prior scale t is the one at beta = t, and S_t = t S(beta = t)."""
    path, fits = Path(LaplaceSystem(rows)), []
    for t in np.exp(log_t):
        mean, roots = path.system.gaussian(path.at(float(t)).x, float(t))
        f = rows.offset + rows.Z @ mean[0]
        loss = rows.weights[0] @ (np.logaddexp(0.0, f) - rows.y * f)
        _, log_det = np.linalg.slogdet(roots[0])
        evidence = -loss - mean[0] @ mean[0] / (2 * t) + log_det
        fits.append(Fit(float(evidence), mean[0], np.sqrt(t) * roots[0]))
    return fits


def _jaakkola(rows: Rows, log_t: Array) -> list[Fit]:
    r"""Solve the equations of the bound for each t, from the smallest upwards.

    With xi the variational parameters and lam those of
    :mod:`temperance.models.logistic.jaakkola`, the bound on the log evidence is

        sum_i w_i [(y - 1/2) o - lam o^2 + lam xi^2 + log sigmoid(xi) - xi/2]
        + log|S|/2 + u'S^-1 u/2

    for predictors f = o + z'u.
    """
    fits, start = [], None
    for scale in np.exp(log_t / 2):
        scaled = replace(rows, Z=scale * rows.Z)
        x = _solved(JaakkolaSystem(scaled), start)
        start = x
        at = Moments(scaled, np.exp(x), 1.0)
        w, o, half, lam = rows.weights[0], rows.offset, rows.y - 0.5, at.lam[0]
        xi = np.exp(x[0] / 2)
        _, log_det = np.linalg.slogdet(at.root[0])
        bound = half * o - lam * o**2 + lam * xi**2 - np.logaddexp(0.0, -xi) - xi / 2
        pull = (w * (half - 2 * lam * o)) @ scaled.Z
        evidence = w @ bound + log_det + pull @ at.u[0] / 2
        fits.append(Fit(float(evidence), scale * at.u[0], scale * at.root[0]))
    return fits


def _solved(system: JaakkolaSystem, start: Array | None) -> Array:
    """Newton's method from a solution nearby, or along beta where that fails."""
    found = None if start is None else correct(system, start, 1.0)
    return (found or Path(system).at(1.0)).x


def fresh_inputs(Z: Array, counts: Array) -> Array:
    """Return Gaussian rows with the mean and the shrunk covariance of those seen."""
    from scipy.stats import qmc

    share = counts / counts.sum()
    mean = share @ Z
    centred = Z - mean
    rho = shrinkage_intensity(centred, counts)
    cov = (centred.T * share) @ centred
    cov = (1 - rho) * cov + rho * np.diag(np.diag(cov))
    values, vectors = np.linalg.eigh(cov)
    points = ndtri(qmc.Sobol(Z.shape[1], seed=0).random(POINTS))
    return mean + (points - points.mean(axis=0)) * np.sqrt(np.maximum(values, 0.0)) @ vectors.T


def reference_rows(
    model: Any, data: Data, counts: Array, evidence: Evidence, spread: float
) -> tuple[Rows, Plan]:
    """Whitened rows that train, then those of a new observation with both labels; and their plan.

    Parameters
    ----------
    model : LogisticRegression
        Its design and prior.
    data : Data
        Rows; their weights are those of the posterior that is judged.
    counts : array of shape (n,)
        How many observations each row is for the reference.
    evidence, spread
        As in :func:`label_probability`.
    """
    Z = model.design(data.X)
    fresh = fresh_inputs(Z, counts)
    m, n = len(fresh), len(Z)
    whitened, offset, _ = model.whitened(np.concatenate([Z, fresh]))
    # The reference's covariance is full: along any axes it is the same.
    train = np.concatenate([data.weights, np.zeros(m)])
    along, _ = spanning_axes(whitened, np.concatenate([counts, np.zeros(m)]))
    seen = Rows(along[:n], offset[:n], data.y, counts[None])
    # Averages of probabilities may pass 1 by rounding.
    p = np.clip(label_probability(seen, along[n:], offset[n:], evidence, spread), 0.0, 1.0)
    rows, _ = model.coordinates(whitened, train)
    both = np.concatenate([np.arange(n + m), np.arange(n, n + m)])
    test = np.concatenate([np.zeros(n), p / m, (1 - p) / m])[None]
    y = np.concatenate([data.y, np.ones(m), np.zeros(m)])
    plan = Plan(np.concatenate([train, np.zeros(m)])[None], test, data.size)
    return Rows(rows[both], offset[both], y, plan.likelihood_weights), plan
