r"""The true risk of a posterior in a setting, and the beta that minimises it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize, minimize_scalar
from temperance.search.log_scale import Ruler

from temperance.calibrate import expected_risk
from temperance.calibration import BetaWeights
from temperance.checks import as_bounds, as_data, as_non_negative, one_of
from temperance.data import Array, Data, Risk
from temperance.models import NormalInverseGammaLinear
from temperance.resources import threads_for
from temperance.strategies.selection import minimum_of, stack
from temperance_studies.settings.settings import Rows, Setting, frozen

FRESH = 4096  # test rows used where moments are not sufficient
OFFSET = 1e-5  # share of the bounds' width below which posteriors equal the prior


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
    0.513
    """
    one_of("risk", risk, ("gibbs", "predictive"))
    if not _has_formula(setting, risk):
        return expected_risk(
            setting.model, (X, y), representative_rows(setting, risk), alpha, risk=risk
        )
    at = as_non_negative("alpha", alpha)
    data = as_data(X, y)
    with threads_for(data.X.size):
        risk_at = _formula(setting, data)
        values = [risk_at(float(each)) for each in at.ravel()]
    return np.reshape(values, at.shape)[()]


def true_risk_of_average(
    setting: Setting, X: ArrayLike | None, y: ArrayLike, average: BetaWeights
) -> float:
    r"""Return the predictive risk, under the true distribution, of forecasts averaged over beta.

    .. math:: -E_{(z, y)} \log \sum_k w_k\, p_{\beta_k}(y \mid z)

    It is estimated on the rows that :func:`true_risk` uses for the predictive risk.
    """
    data = as_data(X, y)
    with threads_for(data.X.size):
        rows, plan = stack(data, as_data(*representative_rows(setting, "predictive")))
        curve = setting.model.risk_curve(rows, plan, "predictive")
        found = [curve.rows(float(beta)) for beta in average.betas]
    share = found[0][1]
    losses = average.mixed(np.array([each for each, _ in found]))
    return float(share @ losses / share.sum())


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
        if not _has_formula(setting, risk):
            rows, plan = stack(data, as_data(*representative_rows(setting, risk)))
            return minimum_of(setting.model.risk_curve(rows, plan, risk), limits).beta
        risk_at = _formula(setting, data)
        return _least(lambda beta: risk_at(beta * len(data)), limits)


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
    if isinstance(model, NormalInverseGammaLinear):
        return 0.5 + 0.5 * float(np.log(2 * np.pi * variance))
    return variance / (2 * model.noise_variance)


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


def _has_formula(setting: Setting, risk: Risk) -> bool:
    return risk == "gibbs" and hasattr(setting, "gibbs_risk")


def _formula(setting: Any, data: Data) -> Callable[[float], float]:
    """Return the function from alpha to the true Gibbs risk of the posterior."""
    posterior = setting.model.posteriors(data.X, data.y)

    def risk(alpha: float) -> float:
        law = posterior(alpha)
        return float(setting.gibbs_risk(law.mean, law.cov))

    return risk


def _least(risk: Any, bounds: tuple[float, float]) -> float:
    """Return the minimiser of a smooth curve, by a scan and then Brent's method."""
    lower, upper = bounds
    points = Ruler(lower, upper, OFFSET * (upper - lower)).scan(9, 1.3)
    values = np.array([risk(float(beta)) for beta in points])
    least = int(np.argmin(values))
    around = points[max(least - 1, 0)], points[min(least + 1, len(points) - 1)]
    inside = minimize_scalar(
        risk, bounds=around, method="bounded", options={"xatol": 1e-7 * (upper - lower)}
    )
    return float(inside.x) if inside.fun < values[least] else float(points[least])
