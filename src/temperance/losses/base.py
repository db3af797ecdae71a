r"""Losses l(u, y) of a linear predictor u = z'theta, and their expectations under a Gaussian.

    L(mu, v) = E l(u, y), u ~ N(mu, v);      dL/dmu = E l',  dL/dv = E l''/2     (Price's theorem)

Everything that the approximations know about a loss they ask here.  A new loss is a subclass of
:class:`Loss` with ``value``, ``derivatives`` and ``bends``; the expectations are then quadrature,
and a closed form overrides them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from temperance.data import Array, Risk
from temperance.losses.predictive import log_predictive
from temperance.losses.quadrature import expectations


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
    """Quadratics curvature (u - centre)^2 / 2 that resemble the losses of rows, (n,) each."""

    centre: Array
    curvature: Array


class Resembling(Protocol):
    """A loss that resembles a quadratic."""

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return quadratics to start Newton's method from; they give beta its scale."""
        ...


@runtime_checkable
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


class PredictorLoss(ExpectedLoss, TestedLoss, Protocol):
    """What approximations ask of a loss."""

    def value(self, u: Array, y: Array) -> Array:
        """Return l."""
        ...

    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return the first three derivatives of l in u."""
        ...

    def roughly(self) -> Self:
        """Return the loss with errors up to 1e-6 in its expectations, if that takes less time."""
        ...


class Loss(ABC):
    """A loss l(u, y) of a linear predictor u and a response y.

    A subclass must define ``value``, ``derivatives`` and, unless it has closed forms for
    ``expected``, ``partials`` and (likelihoods only) ``log_predictive``, also ``bends``.  Means and
    variances of predictors are (m, n) or (n,), responses (n,) or (m, n); a variance may be 0.

    Attributes
    ----------
    name : str
        The loss in words.
    convex : bool
        Whether l is convex in u for every y.
    smooth : bool
        Whether l'' exists everywhere: not at kinks.  Laplace's approximation needs it.
    likelihood : bool
        Whether l is minus a log likelihood, with its constant.
    discrete : bool
        For a likelihood: whether responses are whole numbers.
    method : str
        How risks are computed, in words.
    binary : bool
        Whether responses are the labels 0 and 1.
    location : bool
        Whether the predictor is in the units of the response.
    steep : bool
        Whether the loss grows exponentially with the predictor.
    predictor : str
        What the linear predictor is, in words.
    largest_predictor : float
        Largest absolute value of a predictor in computations.
    """

    name: ClassVar[str] = "loss"
    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = True
    likelihood: ClassVar[bool] = False
    discrete: ClassVar[bool] = False
    method: ClassVar[str] = "Gaussian approximation, losses by quadrature"
    binary: ClassVar[bool] = False
    location: ClassVar[bool] = False
    steep: ClassVar[bool] = False
    predictor: ClassVar[str] = "predictors"
    largest_predictor: ClassVar[float] = np.inf

    @abstractmethod
    def value(self, u: Array, y: Array) -> Array:
        """Return l."""

    @abstractmethod
    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return the first three derivatives of l in u, of the smooth parts where l has kinks."""

    def to_second_order(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return l and its first two derivatives in u."""
        first, second, _ = self.derivatives(u, y)
        return self.value(u, y), first, second

    def bends(self, y: Array) -> tuple[Array, Array]:
        """Return the places of the bends of l and their widths, (n,) each, or (k, n) for k bends.

        At a distance r from its nearest bend, of width w, l is as smooth as a power of
        sqrt(w^2 + r^2): an analytic function without singularities nearer than about that.  The
        width is 0 at a kink, where l or its derivatives jump.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define bends(y), or closed forms of its expectations"
        )

    def check(self, y: Array) -> None:
        """Refuse unsuitable responses; by default all are accepted."""
        return

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return a quadratic that resembles the loss of each row: where Newton's method starts.

        By default that of the last bend's centre, with the second derivative there.
        """
        centre = np.atleast_2d(self.bends(y)[0])[-1]
        second = self.derivatives(centre, y)[1]
        return Quadratic(centre, np.where(second > 0, second, self.unit(y) ** -2.0))

    def unit(self, y: Array) -> float:
        """Return the size of a change of the predictor that matters."""
        return 1.0

    def roughly(self) -> Self:
        """Return the loss with errors up to 1e-6 in its expectations, if that takes less time."""
        return self

    def expected(self, mean: Array, variance: Array, y: Array) -> Array:
        """Return L, by default by quadrature."""
        return expectations(self, mean, variance, y, range(1))[0]

    def partials(self, mean: Array, variance: Array, y: Array) -> Partials:
        """Differentiate L twice, by default by quadrature."""
        if not np.isfinite(variance).all():
            raise np.linalg.LinAlgError("the variances of the predictors are not finite")
        first, second, third, fourth = expectations(self, mean, variance, y, range(1, 5))
        return Partials(first, second / 2, second, third / 2, fourth / 4)

    def forces(self, mean: Array, variance: Array, y: Array) -> Forces:
        """Differentiate L as far as a Newton step for the mean needs."""
        psi = self.partials(mean, variance, y)
        return Forces(psi.mean, psi.mean_mean, 2 * psi.variance)

    def log_predictive(self, mean: Array, variance: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return log E exp(-l) and its derivatives in mean and variance, for likelihoods."""
        if not self.likelihood:
            raise ValueError(
                f"risk must be 'gibbs' for the {self.name}, which is no likelihood, "
                "got risk='predictive'"
            )
        return log_predictive(self, mean, variance, y)

    def risk(self, predictor: Predictor, y: Array, risk: Risk) -> tuple[Array, Array]:
        """Return E l, or -log E exp(-l) for the predictive risk, and its slope in beta."""
        mean, variance, d_mean, d_variance = predictor
        if risk == "gibbs":
            psi = self.partials(mean, variance, y)
            slope = psi.mean * d_mean + psi.variance * d_variance
            return self.expected(mean, variance, y), slope
        log, by_mean, by_variance = self.log_predictive(mean, variance, y)
        return -log, -(by_mean * d_mean + by_variance * d_variance)

    def response_mean(self, u: Array) -> Array:
        """Return E[Y | u], for a likelihood."""
        raise self._no_likelihood("response_mean(u)")

    def response_variance(self, u: Array) -> Array:
        """Return Var[Y | u], for a likelihood; it may be infinite."""
        raise self._no_likelihood("response_variance(u)")

    def sample(self, u: Array, rng: np.random.Generator) -> Array:
        """Draw a response for each predictor, for a likelihood."""
        raise self._no_likelihood("sample(u, rng)")

    def cdf(self, u: Array, y: Array) -> Array:
        """Return P(Y <= y | u), for a likelihood."""
        raise self._no_likelihood("cdf(u, y)")

    @property
    def free(self) -> bool:
        """Whether a parameter of the loss is still to be fitted, by ``fitted``."""
        return False

    def fitted(self, u: Array, y: Array, weights: Array) -> Self:
        """Return the loss with its free parameter fitted to responses at given predictors."""
        return self

    def _no_likelihood(self, asked: str) -> Exception:
        """Say that only likelihoods have what was asked for."""
        if self.likelihood:
            return NotImplementedError(f"{type(self).__name__} must define {asked}")
        return ValueError(f"{asked} is for likelihoods, which the {self.name} is not")
