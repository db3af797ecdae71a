r"""Priors whose scale is learnt from the data, and a weak prior of the noise variance.

Regressions for forecasts average over the scale, weighted by its evidence
(:class:`temperance.models.HierarchicalLinear`); for draws the scale of largest evidence is used.
Classifications and other losses use the scale that forecasts best in ten folds: at beta = 1, or at
the better of 2 and 16 if the posterior at beta = 1 may be far from Bayes (Laplace posteriors).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from temperance.calibration import preferences_of
from temperance.data import Array, Data
from temperance.linear.engine import LinearRows, Noise, decompose, row_space
from temperance.linear.models import (
    SCALES,
    GaussianLinear,
    HierarchicalLinear,
    NormalInverseGammaLinear,
)
from temperance.rules import BetaWeights
from temperance.strategies.k_fold import KFold

SHAPE = 0.1  # of the prior of a noise variance, which weighs a fifth of an observation
LEAST_FREEDOM = 5
LEARNT_SCALES = (0.03, 10.0)  # smallest and largest scale of coefficients of standardised terms
WEAK_SCALE = 10.0  # with which coefficients are hardly shrunk
PRIOR_LEVEL = 1e4  # prior variance of a regression's intercept, in units of the noise variance
CLASS_LEVEL = 100.0  # prior variance of an intercept
FAR_BETAS = (2.0, 16.0)  # for posteriors that are far from Bayes at beta = 1
CLOSE = 0.3  # accuracy of the search, in the logarithm of the scale
STEP = 0.25  # between the scales of regressions, in log10


def averaged_scales(y: Array, weights: Array, noise: float) -> Array:
    """Return scales in units of the noise's, up to ten times the size of y, or to 100."""
    size = float(np.sqrt(weights @ y**2 / weights.sum() / noise))
    highest = max(np.log10(SCALES[-1]), np.log10(10 * size) if size > 0 else 0.0)
    return np.array(10 ** np.arange(np.log10(SCALES[0]), highest + STEP, STEP))


def prior_variances(scale: float, level: float, columns: int, intercept: bool) -> Array:
    """Return the prior variances: of the intercept, if there is one, and of the coefficients."""
    variances = np.full(columns, scale**2)
    if intercept:
        variances[0] = level
    return variances


def most_evident_regression(
    model: HierarchicalLinear, rows: Array, y: Array, weights: Array
) -> GaussianLinear | NormalInverseGammaLinear:
    """Return the model with the prior scale of largest evidence."""
    data = Data(rows, y, weights)
    bayes = BetaWeights(np.ones(1), np.ones(1))
    scales, evidence = model.mixture(data, bayes).scale_weights
    scale = float(scales[np.argmax(evidence)])
    variances = prior_variances(scale, PRIOR_LEVEL, rows.shape[1], model.intercept)
    if model.noise_variance is None:
        return NormalInverseGammaLinear(a=model.a, b=model.b, prior_cov=variances)
    return GaussianLinear(model.noise_variance, prior_cov=model.noise_variance * variances)


def most_predictive_classes(
    kind: type, rows: Array, codes: Array, weights: Array, intercept: bool
) -> Any:
    """Return the model of classes whose prior scale forecasts best in ten folds.

    The evidence is not used: if classes are separable, approximate posteriors under wide priors
    are far from the true ones, and their evidence does not show it.
    """

    def model_of(scale: float) -> Any:
        return kind(prior_cov=prior_variances(scale, CLASS_LEVEL, rows.shape[1], intercept))

    return most_predictive(model_of, Data(rows, codes, weights))


def most_predictive(model_of: Callable[[float], Any], data: Data) -> Any:
    """Return the model of the prior scale that forecasts best in ten folds."""
    folds, plan = KFold().feasible(data).planned(data, np.random.default_rng(0))

    def best_risk(model: Any) -> float:
        betas = np.array(FAR_BETAS if preferences_of(model).wide else [1.0])
        return float(model.held_out(folds, plan, "predictive", (0.0, 3.0)).risk(betas).min())

    found = optimize.minimize_scalar(
        lambda log_scale: best_risk(model_of(float(np.exp(log_scale)))),
        bounds=np.log(LEARNT_SCALES),
        method="bounded",
        options={"xatol": CLOSE},
    )
    return model_of(float(np.exp(found.x)))


def weak_noise_model(
    rows: Array, y: Array, weights: Array, prior_variance: float
) -> NormalInverseGammaLinear:
    r"""Return a model whose coefficients have about this prior variance for any noise variance.

    The conjugate prior, theta | s2 ~ N(0, s2 S_0), is in units of the noise.  With S_0 =
    prior_variance / s2_hat it has the requested variance if s2 is near s2_hat, a first estimate
    from the data.  Otherwise a strong signal would be shrunk, and the noise overestimated.
    """
    noise = guessed_noise_variance(rows, y, weights)
    return NormalInverseGammaLinear(a=SHAPE, b=SHAPE * noise, prior_cov=prior_variance / noise)


def guessed_noise_variance(rows: Array, y: Array, weights: Array) -> float:
    r"""Return the residual variance of least squares; for few rows half the mean square of y."""
    spread = float(weights @ y**2 / weights.sum()) or 1.0
    used = slice(None) if weights.all() else weights > 0
    inputs, _ = row_space(rows[used])
    whole = LinearRows(inputs, y[used], False, Noise(), np.ones(1))
    fits, _ = decompose(whole, weights[used])
    freedom = float(weights.sum()) - np.count_nonzero(fits.singular)
    if freedom < LEAST_FREEDOM:
        return spread / 2
    # If the fit is perfect, the residual is rounding error.
    return max(float(fits.rest[0]) / freedom, 1e-12 * spread)
