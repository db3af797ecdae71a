r"""Losses of the estimators by their names, and models of them in the units of the response.

Terms are standardised, the response is left as it is.  With the level of the response (its mean, or
the logarithm of a mean count) as the prior mean of the intercept, coefficients have the prior
standard deviation

    prior_scale times the standard deviation of y,

or ``prior_scale`` if the predictor is a log rate or log odds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from temperance.checks import shown
from temperance.data import Data
from temperance.estimators.prior_scale import WEAK_SCALE, most_predictive, prior_variances
from temperance.losses import (
    Hinge,
    Huber,
    Loss,
    NegativeBinomial,
    Pinball,
    Poisson,
    Probit,
    StudentT,
)
from temperance.models import GibbsLinear
from temperance.models.glm.nuisance import fitted_to_rows, minimising_predictor

LEAST_MEAN = 1e-3  # of counts that are all 0
DOF = 4.0  # degrees of freedom of loss="student-t"
LEVEL = 10.0  # prior standard deviation of an intercept, in units of the response's

FAR = 100.0  # upper bound of beta, in units of 1 / loss
LEAST = 0.05  # share of the loss at the prior mean that counts as left at the minimiser

REGRESSIONS: dict[str, Callable[[float], Loss]] = {
    "quantile": Pinball,
    "huber": lambda _: Huber("auto"),
    "student-t": lambda _: StudentT(DOF, "auto"),
    "poisson": lambda _: Poisson(),
    "negative-binomial": lambda _: NegativeBinomial("auto"),
}
CLASSIFICATIONS: dict[str, Loss] = {"probit": Probit(), "hinge": Hinge()}


def regression_loss(loss: str | Loss, quantile: float) -> Loss | None:
    """Return the loss of this name, or None for the squared loss."""
    if isinstance(loss, str) and loss == "squared":
        return None
    if isinstance(loss, str) and loss in REGRESSIONS:
        return REGRESSIONS[loss](quantile)
    if isinstance(loss, Loss) and not loss.binary:
        return loss
    names = ", ".join(repr(name) for name in ("squared", *REGRESSIONS))
    raise ValueError(
        f"loss must be {names} or a loss of responses from temperance.losses, got {shown(loss)}"
    )


def classification_loss(loss: str | Loss) -> Loss | None:
    """Return the loss of this name, or None for the logistic loss."""
    if isinstance(loss, str) and loss == "logistic":
        return None
    if isinstance(loss, str) and loss in CLASSIFICATIONS:
        return CLASSIFICATIONS[loss]
    if isinstance(loss, Loss) and loss.binary:
        return loss
    names = ", ".join(repr(name) for name in ("logistic", *CLASSIFICATIONS))
    raise ValueError(
        f"loss must be {names} or a loss of labels from temperance.losses, got {shown(loss)}"
    )


def loss_model(
    loss: Loss,
    posterior: Any,
    data: Data,
    intercept: bool,
    prior_scale: float | None,
    forecasts: bool,
) -> GibbsLinear:
    """Return the model of a loss whose rows are standardised.

    A prior scale of ``None`` is learnt: that which forecasts best in ten folds.  Without forecasts,
    or for a loss that is no likelihood, the prior is weak instead.
    """
    fitted = loss
    if loss.free:
        fitted = fitted_to_rows(loss, data.X, np.zeros(len(data)), data)
    columns, unit = data.X.shape[1], response_unit(fitted, data)
    mean = np.zeros(columns)
    if intercept:
        mean[0] = level_of(fitted, data)

    def model_of(scale: float) -> GibbsLinear:
        variances = prior_variances(scale, LEVEL**2, columns, intercept) * unit**2
        return GibbsLinear(fitted, posterior, mean, variances)

    if prior_scale is not None:
        return model_of(prior_scale)
    if not (forecasts and fitted.likelihood):
        return model_of(WEAK_SCALE)
    return most_predictive(model_of, data)


def bounds_of_loss(model: Any, data: Data) -> tuple[float, float]:
    """Return (0, 100 / mean loss at its minimiser), as beta has the units of 1 / loss.

    Where nearly no loss is left there, a twentieth of that at the prior mean takes its place.
    """
    Z, loss, none = model.design(data.X), model.row_loss, np.zeros(len(data))
    predictors = Z @ model.prior_mean, minimising_predictor(loss, Z, none, data)
    first, least = (np.average(loss.value(u, data.y), weights=data.weights) for u in predictors)
    return 0.0, FAR / (max(float(least), LEAST * float(first)) or 1.0)


def response_unit(loss: Loss, data: Data) -> float:
    """Return the standard deviation of y where the predictor is in its units, or 1."""
    if not loss.location:
        return 1.0
    mean = np.average(data.y, weights=data.weights)
    return float(np.sqrt(np.average((data.y - mean) ** 2, weights=data.weights))) or 1.0


def level_of(loss: Loss, data: Data) -> float:
    """Return the predictor of the mean response, or where quadratics that resemble losses meet."""
    if loss.discrete and not loss.binary:
        return float(np.log(max(float(np.average(data.y, weights=data.weights)), LEAST_MEAN)))
    centre, curvature = loss.typical(data.y, np.zeros(len(data)))
    return float(np.average(centre, weights=data.weights * curvature))
