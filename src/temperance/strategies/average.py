r"""Average the forecasts over beta, by what rows held out say of each.

With L_i(beta) the loss of row i when it is held out, and p(beta) the number of parameters that the
posterior takes from the data,

    w(beta)  ∝  E exp(-f [S(beta) - S(1)]) exp(-(log beta)^2 / (2 tau^2 f)),
    f  =  min(1 - p(beta)/n, 1 - p(1)/n)^3,

where S is the sum of the losses, and the expectation over N(S, covariance of S) stands for rows
that might have been drawn instead (the Bayesian bootstrap of pseudo-BMA+, in the normal limit).
Losses of posteriors that use as many parameters as there are rows say nothing: f is 0 and only
beta = 1 is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy import special

from temperance.calibration import BetaWeights, Calibration, RowErrors, error_inflation
from temperance.curves import RiskCurve
from temperance.search.minimise import Minimum
from temperance.strategies.leave_one_out import LeaveOneOut
from temperance.strategies.selection import CurveStrategy
from temperance.types import AnyPlan, Array, CountsParameters, Data, Model, Risk
from temperance.validation import positive

LEAST = 1e-4  # beta, below which there is no forecast to average
STEP = 0.5  # on the way to these ends, in log beta
POINTS = 11  # between the ends of the weight
NEGLIGIBLE = 1e-3  # weight of a beta that is left out
LEAST_FREE = 0.02  # share of the rows, in place of 0
REPLICATES = 500  # of the sums, and as many mirrored


@dataclass(frozen=True)
class Average(CurveStrategy):
    r"""Average forecasts over beta instead of choosing one.

    The weights come from the losses of rows that were held out, and from a prior of log beta around
    Bayes, N(0, spread^2): where the data do not tell betas apart, Bayes remains.  The posterior is
    the mixture, and its ``beta`` the weights' median.

    Parameters
    ----------
    source : CurveStrategy
        How rows are held out.
    spread : float
        Prior standard deviation of log beta.

    Notes
    -----
    With :math:`S` the sum of the losses, :math:`p(\beta)` the number of parameters that the
    posterior takes from the data, and :math:`f = \min(1 - p(\beta)/n, 1 - p(1)/n)^3`,

    .. math::

        w(\beta) \propto E_{S' \sim N(S, \mathrm{Cov}\, S)} e^{-f (S'(\beta) - S'(1))}
        \; e^{-(\log \beta)^2 / (2 f \, \mathrm{spread}^2)}.

    References
    ----------
    .. [1] Y. Yao, A. Vehtari, D. Simpson, A. Gelman, Using stacking to average Bayesian predictive
       distributions, Bayesian Analysis 13, 2018.
    """

    source: CurveStrategy = field(default_factory=LeaveOneOut)
    spread: float = 0.5

    def __post_init__(self) -> None:
        """Refuse a source without a plan or that holds no rows out, and a spread that is none."""
        if not isinstance(self.source, CurveStrategy) or not self.source.holds_rows_out:
            raise ValueError(
                f"source must hold rows out, as LeaveOneOut() does, got {self.source!r}"
            )
        positive("spread", self.spread)

    def plan(self, data: Data, rng: np.random.Generator) -> AnyPlan:
        """Return the pairs of the source."""
        return self.source.plan(data, rng)

    def planned(self, data: Data, rng: np.random.Generator) -> tuple[Data, AnyPlan]:
        """Return the rows and the plan of the source."""
        return self.source.planned(data, rng)

    def select(
        self,
        model: Model,
        data: Data,
        bounds: tuple[float, float],
        rng: np.random.Generator,
        risk: Risk = "predictive",
        optimiser: str = "deterministic",
    ) -> Calibration:
        """Weigh betas within ``bounds``."""
        if risk != "predictive" or optimiser != "deterministic":
            raise ValueError(
                "Average is for forecasts: risk must be 'predictive' and optimiser "
                f"'deterministic', got {risk!r} and {optimiser!r}"
            )
        if bounds[1] < LEAST:
            raise ValueError(f"bounds must reach beyond {LEAST:g} to average, got {bounds!r}")
        if not isinstance(model, CountsParameters):
            raise ValueError(
                "Average needs a model that has parameters_used(data, beta), got "
                f"{type(model).__name__}"
            )
        rows, plan = self.planned(data, rng)
        held_out = model.risk_curve(rows, plan, risk)
        found = _Losses(held_out, model, data, rows.weights, self.spread)
        betas = found.support(_grid(bounds))
        weights = found.weights(betas)
        kept = weights > NEGLIGIBLE * weights.max()
        average = BetaWeights(betas[kept], weights[kept] / weights[kept].sum())
        parts, share = found.rows(average.betas)
        losses = average.mixed(parts)
        inflate = partial(error_inflation, model, data, average.median)
        return Calibration(
            model=model,
            data=data,
            strategy=self,
            kind=risk,
            bounds=bounds,
            minimum=Minimum(average.median, searched=False),
            risk=float(share @ losses / share.sum()),
            errors=RowErrors(held_out, average.median, rows.weights, inflate, losses),
            curve=held_out,
            average=average,
        )


def _grid(bounds: tuple[float, float]) -> Array:
    """Return betas that are even in log beta, 1 among them if it may be."""
    low, high = np.log(max(bounds[0], LEAST)), np.log(bounds[1])
    inside = STEP * np.arange(np.ceil(low / STEP), np.floor(high / STEP) + 1)
    return np.exp(np.unique(np.concatenate([[low], inside, [high]])))


@dataclass(frozen=True, eq=False)
class _Losses:
    """Losses of rows held out, and what a model uses of its data."""

    held_out: RiskCurve
    model: CountsParameters
    data: Data
    multiplicity: Array
    spread: float
    known: dict[float, tuple[Array, Array]] = field(default_factory=dict)
    counted: dict[float, float] = field(default_factory=dict)

    def weights(self, betas: Array) -> Array:
        """Return the weights of betas that are even in log beta."""
        at = np.append(betas, 1.0)  # the last is what the others are compared with
        losses, share = self.rows(at)
        share = share / share.sum()
        free = np.clip(1 - self.used(at) / self.data.size, LEAST_FREE, 1.0)
        trust = np.minimum(free[:-1], free[-1]) ** 3
        differences = (losses[:-1] - losses[-1]) * self.data.size
        total = differences @ share
        deviations = (differences - total[:, None]) * (share / np.sqrt(self.multiplicity))
        sums = total + _replicates(deviations @ deviations.T)
        prior = np.log(betas) ** 2 / (2 * self.spread**2 * trust)
        shares = special.softmax(-trust * sums - prior, axis=1)
        return shares.mean(axis=0)

    def support(self, grid: Array) -> Array:
        """Return betas, even in log beta, from one end of the weight to the other.

        Looks from Bayes outwards, on either side until the weight has gone and the risk rises.
        """
        start = int(np.argmin(np.abs(np.log(grid))))
        first, last = max(start - 1, 0), min(start + 1, len(grid) - 1)
        while True:
            betas = grid[first : last + 1]
            weights = self.weights(betas)
            risk = self.mean_losses(betas)
            gone = weights < NEGLIGIBLE * weights.max()
            lower = first > 0 and not (gone[0] and risk[0] >= risk[1])
            higher = last < len(grid) - 1 and not (gone[-1] and risk[-1] >= risk[-2])
            if not lower and not higher:
                break
            first, last = first - int(lower), last + int(higher)
        near = np.flatnonzero(~gone)
        low, high = (betas[i] for i in (max(near[0] - 1, 0), min(near[-1] + 1, len(betas) - 1)))
        return np.geomspace(low, high, POINTS) if high > low else betas[:1]

    def mean_losses(self, betas: Array) -> Array:
        """Return the estimated risk at betas."""
        losses, share = self.rows(betas)
        return losses @ share / share.sum()

    def used(self, betas: Array) -> Array:
        """Return how many parameters the posteriors at betas use."""
        new = np.array([beta for beta in np.unique(betas) if beta not in self.counted])
        if len(new):
            counts = self.model.parameters_used(self.data, new)
            self.counted.update(zip(new.tolist(), counts.tolist(), strict=True))
        return np.array([self.counted[beta] for beta in betas.tolist()])

    def rows(self, betas: Array) -> tuple[Array, Array]:
        """Return the losses of rows held out, (betas, n), and their weights."""
        for beta in betas.tolist():
            if beta not in self.known:
                self.known[beta] = self.held_out.rows(beta)
        return np.array([self.known[beta][0] for beta in betas.tolist()]), self.known[betas[0]][1]


def _replicates(covariance: Array) -> Array:
    """Draw from N(0, covariance), always the same: by its symmetric root, which is unique."""
    values, axes = np.linalg.eigh(covariance)
    root = (axes * np.sqrt(np.maximum(values, 0.0))) @ axes.T
    standard = np.random.default_rng(0).standard_normal((REPLICATES, len(values)))
    return np.concatenate([standard, -standard]) @ root
