r"""The true risk of a posterior in a setting, and the beta that minimises it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from temperance.calibration import known_noise_variance
from temperance.checks import as_bounds, as_data, as_non_negative, one_of
from temperance.data import Array, Data, Risk, threads_for
from temperance.rules import BetaWeights, minimum
from temperance.strategies.selection import stacked_data
from temperance.table import HeldOut, half_decades
from temperance_studies.settings.settings import Rows, Setting, frozen

FRESH = 4096  # test rows used where moments are not sufficient


def true_risk(
    setting: Setting, X: ArrayLike | None, y: ArrayLike, alpha: ArrayLike, risk: Risk = "gibbs"
) -> Any:
    r"""Return the risk, under the true distribution, of the alpha-posterior of (X, y).

    .. math:: R(\alpha) = E_{\theta \sim \pi_\alpha} E_{(z, y)}[l(\theta, (z, y))]

    The Gibbs risk is exact: from the population's moments, or from the setting's own formula
    (``gibbs_risk``) if it has one.  The predictive risk is estimated on 4,096 fixed test rows, or
    on the population if that consists of real points.

    Parameters
    ----------
    setting : Setting
    X, y : arrays
        Training data.
    alpha : float or array
        Weight of the mean training risk; the number of rows is Bayes.
    risk : {"gibbs", "predictive"}

    Examples
    --------
    >>> from temperance_studies.settings import GaussianNoise, MeanSetting
    >>> setting = MeanSetting(40, GaussianNoise(4.0), 4.0)
    >>> X, y = setting.draw(np.random.default_rng(0))
    >>> round(true_risk(setting, X, y, alpha=40.0), 3)
    2.125
    """
    one_of("risk", risk, ("gibbs", "predictive"))
    data = as_data(X, y)
    beta = as_non_negative("alpha", alpha) / data.size
    with threads_for(data.X.size):
        found = true_risks(setting, data, risk, (0.0, float(np.max(beta, initial=1.0))))(beta)
    return found if np.ndim(found) else float(found)


def true_risk_of_mixture(
    setting: Setting, X: ArrayLike | None, y: ArrayLike, weights: BetaWeights
) -> float:
    r"""Return the predictive risk, under the true distribution, of a mixture over beta.

    .. math:: -E_{(z, y)} \log \sum_k w_k\, p_{\beta_k}(y \mid z)

    It is estimated on the rows that :func:`true_risk` uses for the predictive risk.
    """
    data, betas = as_data(X, y), weights.betas
    with threads_for(data.X.size):
        table = true_risks(setting, data, "predictive", (betas[0], betas[-1]))
        return float(weights.mixed(table.at(betas)) @ table.share)


def best_beta(
    setting: Setting,
    X: ArrayLike | None,
    y: ArrayLike,
    bounds: tuple[float, float] = (0.0, 3.0),
    risk: Risk = "gibbs",
) -> float:
    """Return the beta within ``bounds`` whose posterior has the smallest true risk."""
    one_of("risk", risk, ("gibbs", "predictive"))
    limits, data = as_bounds(bounds), as_data(X, y)
    with threads_for(data.X.size):
        return minimum(true_risks(setting, data, risk, limits), limits).beta


def true_risks(setting: Any, data: Data, risk: Risk, bounds: tuple[float, float]) -> HeldOut:
    """Return the table of the true risk: of one row by formula, or of representative rows."""
    model = setting.model
    if risk == "gibbs" and hasattr(setting, "gibbs_risk"):

        def by_formula(betas: Array) -> Array:
            laws = [model.posterior(data.X, data.y, float(beta) * data.size) for beta in betas]
            return np.array([[setting.gibbs_risk(law.mean, law.cov)] for law in laws])

        return HeldOut(half_decades(bounds), by_formula, np.ones(1), np.ones(1), risk)
    rows, plan = stacked_data(data, as_data(*representative_rows(setting, risk)))
    return model.held_out(rows, plan, risk, bounds)


def least_risk(setting: Any) -> float:
    r"""Return the smallest Gibbs risk of any parameter, the thesis' minimal prediction error.

    .. math:: \min_\theta R(\theta)

    No posterior can have a smaller one, since R(alpha) averages R(theta).  With unknown variance
    the minimum is over the variance as well.
    """
    model = setting.model
    if not setting.exact:
        certain = np.zeros((setting.d, setting.d))
        if hasattr(setting, "theta"):  # for labels of a logistic model theta is optimal
            return float(setting.gibbs_risk(setting.theta, certain))
        return float(minimize(setting.gibbs_risk, np.zeros(setting.d), args=(certain,)).fun)
    data = as_data(*setting.population)
    Z, share = model.design(data.X), data.weights / data.weights.sum()
    root = np.sqrt(share)
    best = np.linalg.lstsq(root[:, None] * Z, root * data.y, rcond=None)[0]
    variance = float(share @ (data.y - Z @ best) ** 2)
    assumed = known_noise_variance(model) or variance
    return (variance / assumed + float(np.log(2 * np.pi * assumed))) / 2


def risk_of_draws(setting: Any, theta: Array) -> Array:
    """Return the true risk R(theta) of each row of parameters, by formula or on the population."""
    if hasattr(setting, "risk_of_draws"):
        return setting.risk_of_draws(theta)
    X, y, weights = setting.population
    return setting.model.loss(theta, X, y) @ (weights / weights.sum())


def representative_rows(setting: Setting, risk: Risk) -> Rows:
    """Return weighted rows whose risk of this kind is the true one, or an estimate of it."""
    if risk == "gibbs" or not setting.exact:
        return setting.population
    return _fresh(setting)


def drawing_tests(setting: Setting) -> Callable[[np.random.Generator], tuple[Array | None, Array]]:
    """Return the function that draws test data: ``draw_test`` if it exists, or ``draw``."""
    found: Callable[..., Any] = getattr(setting, "draw_test", setting.draw)
    return found


@cache
def _fresh(setting: Setting) -> Rows:
    rng, draw = np.random.default_rng(FRESH), drawing_tests(setting)
    drawn = [draw(rng)]
    while sum(len(y) for _, y in drawn) < FRESH:
        drawn.append(draw(rng))
    y = np.concatenate([y for _, y in drawn])
    inputs = [X for X, _ in drawn if X is not None]
    frozen(y)
    return np.concatenate(inputs) if inputs else None, y, np.ones(len(y))
