r"""The logistic loss of binary labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit

from temperance.data import Array, Risk
from temperance.losses.base import Forces, Loss, Partials, Predictor, Quadratic
from temperance.losses.responses import check_labels
from temperance.quadrature import log_expected_sigmoid, softplus_expectations


@dataclass(frozen=True)
class Logistic(Loss):
    r"""Loss log(1 + exp(u)) - y u of labels y in {0, 1}.

    It is softplus(s u) with the sign s = 1 - 2 y.  So no derivative is a difference from 1,
    and those of rows far on the right side remain accurate.

    Parameters
    ----------
    rough : bool
        Whether expectations may have errors up to 1e-6, which takes less time.
    """

    rough: bool = False
    name: ClassVar[str] = "logistic loss"
    likelihood: ClassVar[bool] = True
    discrete: ClassVar[bool] = True
    binary: ClassVar[bool] = True
    predictor: ClassVar[str] = "log odds"
    largest_predictor: ClassVar[float] = 1e3

    def value(self, u: Array, y: Array) -> Array:
        """Return softplus(s u)."""
        return np.logaddexp(0.0, _sign(y) * u)

    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return s p, p (1 - p) and s p (1 - p) (1 - 2 p) for p = sigmoid(s u)."""
        sign = _sign(y)
        x = sign * u
        odds = np.exp(-np.abs(x))
        larger = 1 / (1 + odds)
        smaller = odds * larger
        p, slope = np.where(x < 0, smaller, larger), larger * smaller
        return sign * p, slope, sign * slope * (1 - 2 * p)

    def to_second_order(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return the loss, s p and p (1 - p), from one exponential."""
        sign = _sign(y)
        x = sign * u
        odds = np.exp(-np.abs(x))
        larger = 1 / (1 + odds)
        p = np.where(x < 0, odds, 1.0)
        p *= larger
        value = np.log1p(odds)
        value += np.maximum(x, 0.0)
        odds *= larger
        odds *= larger
        p *= sign
        return value, p, odds

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return the largest curvature, at the predictor 0."""
        return Quadratic(np.asarray(offset), np.full(np.shape(offset), 0.25))

    def expected(self, mean: Array, variance: Array, y: Array) -> Array:
        """Return E softplus(s u), by quadrature."""
        return softplus_expectations(_sign(y) * mean, variance)[0]

    def partials(self, mean: Array, variance: Array, y: Array) -> Partials:
        """Differentiate: d/dmu raises the order of softplus by one, d/dv by two with a half."""
        if not np.isfinite(variance).all():
            raise np.linalg.LinAlgError("the variances of the predictors are not finite")
        sign = _sign(y)
        first, second, third, fourth = softplus_expectations(
            sign * mean, variance, derivatives=4, first=1, rough=self.rough
        )
        return Partials(sign * first, second / 2, second, sign * third / 2, fourth / 4)

    def forces(self, mean: Array, variance: Array, y: Array) -> Forces:
        """Differentiate as far as a Newton step for the mean needs; 2 dL/dv is d2L/dmu2."""
        sign = _sign(y)
        first, second = softplus_expectations(
            sign * mean, variance, derivatives=2, first=1, rough=self.rough
        )
        return Forces(sign * first, second, second)

    def log_predictive(self, mean: Array, variance: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return log E sigmoid(-s u) and its derivatives."""
        sign = _sign(y)
        log, by_mean, by_variance = log_expected_sigmoid(-sign * mean, variance, derivatives=True)
        return log, -sign * by_mean, by_variance

    def risk(self, predictor: Predictor, y: Array, risk: Risk) -> tuple[Array, Array]:
        r"""Return E softplus(s u) or -log E sigmoid(-s u) of each row, and its slope in beta."""
        if risk != "gibbs":
            return super().risk(predictor, y, risk)
        sign = _sign(y)
        mean, variance, d_mean, d_variance = predictor
        loss, first, second = softplus_expectations(sign * mean, variance, 2, rough=self.rough)
        return loss, sign * first * d_mean + 0.5 * second * d_variance

    def response_mean(self, u: Array) -> Array:
        """Return the probability of label 1."""
        return expit(u)

    def sample(self, u: Array, rng: np.random.Generator) -> Array:
        """Draw labels."""
        return (rng.random(np.shape(u)) < expit(u)).astype(float)

    def cdf(self, u: Array, y: Array) -> Array:
        """Return 0 below the label 0, the probability of it below 1, and then 1."""
        return np.where(y < 0, 0.0, np.where(y < 1, expit(-np.asarray(u)), 1.0))

    def check(self, y: Array) -> None:
        """Refuse labels other than 0 and 1."""
        check_labels(y)

    def roughly(self) -> Self:
        """Return the loss whose expectations are rough."""
        return replace(self, rough=True)


def _sign(y: Array) -> Array:
    return 1.0 - 2.0 * y
