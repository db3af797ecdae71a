r"""Losses l(u, y) of a linear predictor u = z'theta, and their expectations under a Gaussian.

    L(mu, v) = E l(u, y), u ~ N(mu, v);      dL/dmu = E l',  dL/dv = E l''/2     (Price's theorem)

Everything that the approximations know about a loss they ask here; :class:`Logistic` is the one
that there is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol, Self

import numpy as np

from temperance.quadrature import log_expected_sigmoid, softplus_expectations
from temperance.types import Array, Risk


class Predictor(NamedTuple):
    """Mean and variance of rows' linear predictors and their derivatives in beta, (m, e)."""

    mean: Array
    variance: Array
    d_mean: Array
    d_variance: Array


class Partials(NamedTuple):
    """First and second partial derivatives of L in the mean and the variance."""

    mean: Array
    variance: Array
    mean_mean: Array
    mean_variance: Array
    variance_variance: Array


class Forces(NamedTuple):
    """What a row adds to the equations of a Gaussian: dL/dmu, d2L/dmu2 and 2 dL/dv."""

    pull: Array
    hessian: Array
    curvature: Array


class Curved(Protocol):
    """A loss that is not more curved than a bound."""

    @property
    def curvature(self) -> float:
        """Largest second derivative: the scale of beta, and where Newton's method starts."""
        ...


class ExpectedLoss(Curved, Protocol):
    """The expectation L(mu, v) of a loss, or a bound of it, for rows with responses y."""

    def expected(self, mean: Array, variance: Array, y: Array) -> Array:
        """Return L."""
        ...

    def partials(self, mean: Array, variance: Array, y: Array) -> Partials:
        """Differentiate L twice."""
        ...

    def forces(self, mean: Array, variance: Array, y: Array) -> Forces:
        """Differentiate L as far as a Newton step for the mean needs."""
        ...


class TestedLoss(Protocol):
    """What a risk curve asks of a loss."""

    @property
    def method(self) -> str:
        """How risks are computed, in words."""
        ...

    def risk(self, predictor: Predictor, y: Array, risk: Risk) -> tuple[Array, Array]:
        """Return E l, or -log E exp(-l) for the predictive risk, and its slope in beta."""
        ...


class Loss(ExpectedLoss, TestedLoss, Protocol):
    """A loss of the linear predictor."""

    def value(self, u: Array, y: Array) -> Array:
        """Return l."""
        ...

    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return the first three derivatives of l in u."""
        ...

    def check(self, y: Array) -> None:
        """Refuse responses that the loss does not take."""
        ...

    def roughly(self) -> Self:
        """Return the loss with errors up to 1e-6 in its expectations, which take less time."""
        ...


@dataclass(frozen=True)
class Logistic:
    r"""Loss log(1 + exp(u)) - y u of labels y in {0, 1}.

    It is softplus(s u) with the sign s = 1 - 2 y.  By that no derivative is a difference from 1,
    and those of rows far on the right side keep their digits.

    Parameters
    ----------
    rough : bool
        Whether expectations may have errors up to 1e-6, which takes less time.
    """

    rough: bool = False
    curvature: ClassVar[float] = 0.25
    method: ClassVar[str] = "Gaussian approximation, losses by quadrature"

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

    def risk(self, predictor: Predictor, y: Array, risk: Risk) -> tuple[Array, Array]:
        r"""Return E softplus(s u) or -log E sigmoid(-s u) of each row, and its slope in beta."""
        sign = _sign(y)
        mean, variance, d_mean, d_variance = predictor
        if risk == "gibbs":
            loss, first, second = softplus_expectations(sign * mean, variance, 2, rough=self.rough)
            return loss, sign * first * d_mean + 0.5 * second * d_variance
        log, by_mean, by_variance = log_expected_sigmoid(-sign * mean, variance, derivatives=True)
        return -log, sign * by_mean * d_mean - by_variance * d_variance

    def check(self, y: Array) -> None:
        """Refuse labels other than 0 and 1."""
        strange = y[(y != 0) & (y != 1)]
        if len(strange):
            raise ValueError(f"y must hold the labels 0 and 1, got {float(strange[0])!r}")

    def roughly(self) -> Self:
        """Return the loss whose expectations are rough."""
        return replace(self, rough=True)


def _sign(y: Array) -> Array:
    return 1.0 - 2.0 * y
