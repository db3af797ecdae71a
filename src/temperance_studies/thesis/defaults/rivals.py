r"""Rules that were compared with reference risk, each in the form of a strategy.

None of them is part of the library: ``docs/reference-risk.md`` has their results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from temperance.models.linear.gaussian import KnownVarianceRegression
from temperance.models.linear.noise import InverseGammaVariance, KnownVariance, NoiseModel
from temperance.search.minimise import Minimum
from temperance.strategies.reference.linear import reference_risk_curve
from temperance.strategies.reference.new_rows import plain_intensity
from temperance.strategies.reference.scales import (
    SPREAD,
    AroundKnownVariance,
    ScalePrior,
    UnknownVariance,
)
from temperance.strategies.reference.seen import observed_rows
from temperance.strategies.reference.strategy import closest_tolerated

from temperance.calibration import Calibration
from temperance.curves import ReferenceCurve, RiskCurve
from temperance.data import Array, Data, Risk
from temperance.models import NormalInverseGammaLinear
from temperance.plans import LeaveOneOut
from temperance.protocols import Model
from temperance.strategies import Bootstrap, ReferenceRisk
from temperance.strategies.selection import conclude, minimum_of

STORED_AS = "temperance.study.rivals"  # module path that studies store

GRID = 101  # betas at which curves are compared, at equal steps of log beta
LEAST = 1e-3


@dataclass(frozen=True)
class Facts:
    """Arguments of a rule: the data, the leave-one-out curve, and a random generator."""

    model: Model
    data: Data
    risk: Risk
    bounds: tuple[float, float]
    rng: np.random.Generator
    left_out: RiskCurve

    @property
    def betas(self) -> Array:
        """A grid within the bounds."""
        return np.geomspace(max(self.bounds[0], LEAST), self.bounds[1], GRID)

    def reference(self) -> RiskCurve:
        """Return the risk expected by the reference."""
        return ReferenceRisk().reference(self.model, self.data, self.data.weights, self.risk)

    def bootstrap(self) -> RiskCurve:
        """Return the bootstrap's risk."""
        plan = Bootstrap(n_draws=200).plan(self.data, self.rng)
        return self.model.risk_curve(self.data, plan, self.risk)

    def tolerated(self, choice: Minimum, errors: float) -> float:
        """Return the point closest to a choice that leave-one-out does not rule out."""
        least = minimum_of(self.left_out, self.bounds).beta
        weights = self.data.weights
        return closest_tolerated(choice, self.left_out, least, weights, self.bounds, errors).beta


class Rule(ABC):
    """A strategy that computes beta from the facts."""

    @abstractmethod
    def beta(self, facts: Facts) -> float:
        """Return the chosen beta."""

    def select(
        self,
        model: Model,
        data: Data,
        bounds: tuple[float, float],
        rng: np.random.Generator,
        risk: Risk = "gibbs",
        optimiser: str = "deterministic",
    ) -> Calibration:
        """Return the calibration with beta within ``bounds``; its risk is leave-one-out's."""
        left_out = model.risk_curve(data, LeaveOneOut(data.weights), risk)
        beta = self.beta(Facts(model, data, risk, bounds, rng, left_out))
        return conclude(model, data, data, self, risk, bounds, left_out, Minimum(beta))


@dataclass(frozen=True)
class FirstDescribed(ReferenceRisk):
    """Reference risk in its first form.

    Second moments of new rows are shrunk by Ledoit and Wolf's intensity, without a look at left-out
    rows, and for unknown variance the logarithm of kappa has the deviation of one scale.
    """

    def reference(self, model: Model, rows: Data, counts: Array, risk: Risk) -> ReferenceCurve:
        """Return the risk expected by this reference."""
        scale_prior: ScalePrior
        noise: NoiseModel
        if isinstance(model, NormalInverseGammaLinear):
            scale_prior, noise, variance = (
                UnknownVariance(SPREAD),
                InverseGammaVariance(model.a, model.b),
                1.0,
            )
        elif isinstance(model, KnownVarianceRegression):
            scale_prior, noise, variance = (
                AroundKnownVariance(),
                KnownVariance(),
                model.noise_variance,
            )
        else:
            raise ValueError(f"model must be linear, got {type(model).__name__}")
        Z = model.design(rows.X)
        observed = observed_rows(Z, rows.y, counts, model.prior(Z.shape[1]), variance)
        return reference_risk_curve(
            observed, rows.weights, scale_prior, noise, risk, plain_intensity
        )


@dataclass(frozen=True)
class AveragedPosterior(Rule):
    r"""Average posteriors over beta, by :math:`e^{-n C(\beta)} d\log\beta` with C the reference's.

    One beta is drawn: averaged over data sets its Gibbs risk is that of the average, since the
    Gibbs risk is linear in the posterior.
    """

    def beta(self, facts: Facts) -> float:
        """Return a random beta."""
        height = -facts.data.size * facts.reference()(facts.betas)
        weight = np.exp(height - height.max())
        return float(facts.rng.choice(facts.betas, p=weight / weight.sum()))


@dataclass(frozen=True)
class Bagged(Rule):
    """Average log beta over the minima of leave-one-out with random weights of the rows."""

    draws: int = 100

    def beta(self, facts: Facts) -> float:
        """Return beta with rows weighted as in the Bayesian bootstrap."""
        n = len(facts.data)
        losses = np.column_stack([facts.left_out.rows(beta)[0] for beta in facts.betas])
        least = (facts.rng.dirichlet(np.ones(n), self.draws) @ losses).argmin(axis=1)
        return float(np.exp(np.log(facts.betas[least]).mean()))


@dataclass(frozen=True)
class BothCurves(Rule):
    """Minimise the sum of the reference's risk and leave-one-out's."""

    def beta(self, facts: Facts) -> float:
        """Return the minimiser of the sum."""
        reference = facts.reference()

        def total(betas: Array) -> tuple[Array, Array]:
            (risk, slope), (more, steeper) = (
                reference.evaluate(betas),
                facts.left_out.evaluate(betas),
            )
            return risk + more, slope + steeper

        return minimum_of(RiskCurve(total, facts.left_out.rows, "sum"), facts.bounds).beta


@dataclass(frozen=True)
class VetoedBootstrap(Rule):
    """Minimise the bootstrap's risk, within what leave-one-out accepts; needs draws only."""

    errors: float = 2.0

    def beta(self, facts: Facts) -> float:
        """Return the accepted beta closest to the bootstrap's."""
        choice = minimum_of(facts.bootstrap(), facts.bounds)
        return facts.tolerated(choice, self.errors)


@dataclass(frozen=True)
class BetweenBoth(Rule):
    """The geometric mean of the choices of leave-one-out and the bootstrap: needs draws only."""

    def beta(self, facts: Facts) -> float:
        """Return the middle of both in log beta."""
        curves = facts.left_out, facts.bootstrap()
        choices = [max(minimum_of(curve, facts.bounds).beta, LEAST) for curve in curves]
        return float(np.exp(np.log(choices).mean()))


@dataclass(frozen=True)
class NearBayes(Rule):
    """The point closest to Bayes within some standard errors of leave-one-out's minimum."""

    errors: float = 1.0

    def beta(self, facts: Facts) -> float:
        """Return the accepted beta closest to Bayes."""
        return facts.tolerated(Minimum(float(np.clip(1.0, *facts.bounds))), self.errors)
