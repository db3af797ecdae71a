r"""Priors whose scale the data decide, by the evidence.

Regressions for forecasts average over the scale (:class:`temperance.models.HierarchicalLinear`).
Where one scale is needed, for draws and for classes, it is the one of largest evidence, on all rows
and at beta = 1.
"""

from __future__ import annotations

import numpy as np

from temperance.models import GaussianLinear, HierarchicalLinear, LaplaceLogistic
from temperance.models.hierarchical_linear import PRIOR_LEVEL, SCALES
from temperance.models.normal_inverse_gamma import NormalInverseGammaLinear
from temperance.types import Array

CLASS_SCALES = np.geomspace(0.01, 30.0, 29)  # of coefficients of standardised terms
STEP = 0.25  # of the scales of regressions, in log10
CLASS_LEVEL = 10.0  # prior standard deviation of an intercept


def averaged_scales(y: Array, weights: Array, noise: float) -> Array:
    """Return scales in units of the noise's, up to ten times the size of y, or to 100."""
    size = float(np.sqrt(np.average(y**2, weights=weights) / noise))
    highest = max(np.log10(SCALES[-1]), np.log10(10 * size) if size > 0 else 0.0)
    return np.array(10 ** np.arange(np.log10(SCALES[0]), highest + STEP, STEP))


def prior_variances(scale: float, level: float, columns: int, intercept: bool) -> Array:
    """Return the prior variances: of the level, if there is one, and of the coefficients."""
    variances = np.full(columns, scale**2)
    if intercept:
        variances[0] = level
    return variances


def most_evident_regression(
    model: HierarchicalLinear, rows: Array, y: Array, weights: Array
) -> GaussianLinear | NormalInverseGammaLinear:
    """Return the model of the scale that has the largest evidence."""
    scales, evidence = model.posterior(rows, y, float(weights.sum()), weights).scale_weights
    scale = float(scales[np.argmax(evidence)])
    variances = prior_variances(scale, PRIOR_LEVEL, rows.shape[1], model.intercept)
    if model.noise_variance is None:
        return NormalInverseGammaLinear(a=model.a, b=model.b, prior_cov=variances)
    return GaussianLinear(model.noise_variance, prior_cov=model.noise_variance * variances)


def most_evident_variances(rows: Array, y: Array, weights: Array, intercept: bool) -> Array:
    """Return the prior variances of largest Laplace evidence for two classes, 0 and 1."""
    found = [
        prior_variances(scale, CLASS_LEVEL**2, rows.shape[1], intercept) for scale in CLASS_SCALES
    ]
    evidence = [laplace_evidence(rows, y, weights, variances) for variances in found]
    return found[int(np.argmax(evidence))]


def laplace_evidence(rows: Array, y: Array, weights: Array, variances: Array) -> float:
    r"""Return log Z by Laplace: -sum_i w_i l_i(m) - m'S_0^-1 m / 2 + log det(S S_0^-1) / 2."""
    posterior = LaplaceLogistic(prior_cov=variances).posterior(
        rows, y, float(weights.sum()), weights
    )
    predictor = rows @ posterior.mean
    loss = weights @ (np.logaddexp(0.0, predictor) - y * predictor)
    penalty = 0.5 * posterior.mean @ (posterior.mean / variances)
    volume = posterior.root.log_determinant - 0.5 * np.log(variances).sum()
    return float(volume - loss - penalty)
