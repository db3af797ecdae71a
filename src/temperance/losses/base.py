r"""Losses l(u, y) of a linear predictor u = z'theta, and their expectations under a Gaussian.

    L(mu, v) = E l(u, y), u ~ N(mu, v);      dL/dmu = E l',  dL/dv = E l''/2     (Price's theorem)

Everything that the approximations know about a loss they ask here.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, Self

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


class Quadratic(NamedTuple):
    """Losses curvature (u - centre)^2 / 2 of rows, (n,) each."""

    centre: Array
    curvature: Array


class Resembling(Protocol):
    """A loss that resembles a quadratic."""

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return quadratics to start Newton's method from; they give beta its scale."""
        ...


class ExpectedLoss(Resembling, Protocol):
    """The expectation L(mu, v) of a loss, or a bound of it, for rows with responses y."""

    @property
    def convex(self) -> bool:
        """Whether the loss is convex in the predictor."""
        ...

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
