r"""A loss of the predictor in units of its own.

With u = s u' a loss of u is one of u': derivatives in the mean get a factor s, those in the
variance s^2.  In units in which a loss bends over about one, the solvers' steps and tolerances mean
the same for dollars and for log odds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from temperance.data import Array, Risk
from temperance.losses.base import Forces, Partials, Predictor, PredictorLoss, Quadratic


def in_units(loss: PredictorLoss, unit: float) -> PredictorLoss:
    """Return the loss of u / unit."""
    return loss if unit == 1.0 else InUnits(loss, unit)


@dataclass(frozen=True)
class InUnits:
    """A loss of the predictor divided by a unit."""

    loss: PredictorLoss
    unit: float

    @property
    def convex(self) -> bool:
        """Whether the loss is convex."""
        return self.loss.convex

    @property
    def method(self) -> str:
        """How risks are computed, in words."""
        return self.loss.method

    def typical(self, y: Array, offset: Array) -> Quadratic:
        """Return the quadratics that the loss resembles."""
        found = self.loss.typical(y, self.unit * offset)
        return Quadratic(found.centre / self.unit, found.curvature * self.unit**2)

    def value(self, u: Array, y: Array) -> Array:
        """Return l."""
        return self.loss.value(self.unit * u, y)

    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return the first three derivatives of l."""
        s, (first, second, third) = self.unit, self.loss.derivatives(self.unit * u, y)
        return s * first, s**2 * second, s**3 * third

    def expected(self, mean: Array, variance: Array, y: Array) -> Array:
        """Return L."""
        return self.loss.expected(self.unit * mean, self.unit**2 * variance, y)

    def partials(self, mean: Array, variance: Array, y: Array) -> Partials:
        """Differentiate L twice."""
        s = self.unit
        psi = self.loss.partials(s * mean, s**2 * variance, y)
        return Partials(
            s * psi.mean,
            s**2 * psi.variance,
            s**2 * psi.mean_mean,
            s**3 * psi.mean_variance,
            s**4 * psi.variance_variance,
        )

    def forces(self, mean: Array, variance: Array, y: Array) -> Forces:
        """Differentiate L as far as a Newton step for the mean needs."""
        s = self.unit
        pull, hessian, curvature = self.loss.forces(s * mean, s**2 * variance, y)
        if curvature is hessian:
            return Forces(s * pull, same := s**2 * hessian, same)
        return Forces(s * pull, s**2 * hessian, s**2 * curvature)

    def risk(self, predictor: Predictor, y: Array, risk: Risk) -> tuple[Array, Array]:
        """Return the risk of each row and its slope in beta."""
        s, (mean, variance, d_mean, d_variance) = self.unit, predictor
        scaled = Predictor(s * mean, s**2 * variance, s * d_mean, s**2 * d_variance)
        return self.loss.risk(scaled, y, risk)

    def roughly(self) -> Self:
        """Return the loss whose expectations are rough."""
        return replace(self, loss=self.loss.roughly())
