r"""Average the forecasts over beta, with weights from the losses of held-out rows.

With L_i(beta) the loss of row i when it is held out, and p(beta) the effective number of parameters
of the posterior,

    w(beta)  =  E [a(beta) / sum of all a],
    a(beta)  =  exp(-f [S'(beta) - S'(1)]) q(log beta / (tau sqrt f)),
    f  =  min(1 - (p(beta)/n)^2, 1 - (p(1)/n)^2),
    q(x)  =  1 / (1 + x^2)  for x < 0,   exp(-x^2)  for x > 0,

where S is the sum of the losses and n counts copies of a row once.  S' is the sum over as many new
rows, of which S is a sample: S' ~ N(S, 2 Cov S), the normal limit of a Bayesian bootstrap for the
mean and another draw of the rows.  If a posterior uses as many parameters as there are rows,
held-out losses carry no information: f is 0 and only beta = 1 remains.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy import special

from temperance.calibration import BetaWeights, Calibration
from temperance.checks import positive
from temperance.curves import RiskCurve
from temperance.data import Array, Data, Risk
from temperance.duplicates import joined_rows
from temperance.plans import AnyPlan
from temperance.protocols import CountsParameters, Model, counts_parameters
from temperance.search.minimise import Minimum
from temperance.strategies.leave_one_out import LeaveOneOut
from temperance.strategies.selection import CurveStrategy, groups_of
from temperance.uncertainty.standard_errors import RowErrors, error_inflation, pooled

LEAST_FREE = 1e-6  # smallest value used for 1 - (p/n)^2
LEAST = 1e-4  # smallest beta whose forecast is averaged
STEP = 0.5  # of arsinh(log beta / spread) in the search for the ends of the weights
AROUND = 4  # points on each side of Bayes with which it begins
POINTS = 13  # between these ends
MANY = 400  # betas from which quantiles of the weights are taken
NEGLIGIBLE = 1e-3  # weight, relative to the largest, below which a beta is left out
REPLICATES = 500  # draws of the sums; their mirror images are used as well


@dataclass(frozen=True)
class Average(CurveStrategy):
    r"""Average forecasts over beta instead of choosing one.

    The weights come from the losses of held-out rows and from a prior of log beta around Bayes.
    Where the losses do not distinguish betas, the weights stay near Bayes.  To trust the likelihood
    less than Bayes the losses must outweigh the tail of a Cauchy distribution; to trust it more,
    that of a normal one.  The
    posterior is the mixture, and ``beta`` is the median of the weights.

    Parameters
    ----------
    source : CurveStrategy
        How rows are held out.
    spread : float
        Scale of the prior of log beta.

    Notes
    -----
    With :math:`S` the sum of the losses, :math:`p(\beta)` the effective number of parameters of the
    posterior, and :math:`f = \min(1 - (p(\beta)/n)^2, 1 - (p(1)/n)^2)`,

    .. math::

        w(\beta) = E_{S' \sim N(S, 2\, \mathrm{Cov}\, S)} \frac{a(\beta)}{\int a}, \qquad
        a(\beta) = e^{-f (S'(\beta) - S'(1))}
        \; q\Bigl(\frac{\log \beta}{\mathrm{spread} \sqrt f}\Bigr),

    .. math::

        q(x) = \begin{cases} 1 / (1 + x^2) & x < 0 \\ e^{-x^2} & x \ge 0 \end{cases}.

    References
    ----------
    .. [1] Y. Yao, A. Vehtari, D. Simpson, A. Gelman, Using stacking to average Bayesian predictive
       distributions, Bayesian Analysis 13, 2018.
    """

    source: CurveStrategy = field(default_factory=LeaveOneOut)
    spread: float = 0.1

    def __post_init__(self) -> None:
        """Refuse a source without held-out rows, and a spread that is not positive."""
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
        """Return the weighted betas within ``bounds``."""
        if risk != "predictive" or optimiser != "deterministic":
            raise ValueError(
                "Average is for forecasts: risk must be 'predictive' and optimiser "
                f"'deterministic', got {risk!r} and {optimiser!r}"
            )
        self.refuse_bounds(bounds)
        if not counts_parameters(model):
            raise ValueError(
                "Average needs a model that has parameters_used(data, betas), got "
                f"{type(model).__name__}"
            )
        rows, plan = self.planned(data, rng)
        held_out = model.risk_curve(rows, plan, risk)
        counter = model if isinstance(model, CountsParameters) else held_out
        assert isinstance(counter, CountsParameters)
        groups = groups_of(self.source)
        # Copies of rows do not free parameters.
        distinct = min(data.size, float(len(joined_rows(data))))
        found = HeldOutLosses(held_out, counter, data, rows.weights, self.spread, groups, distinct)
        average = found.average(bounds)
        parts, share = found.rows(average.betas)
        losses = average.mixed(parts)
        inflate = partial(error_inflation, counter, data, average.median)
        calibration = Calibration(
            model=model,
            data=data,
            strategy=self,
            kind=risk,
            bounds=bounds,
            minimum=Minimum(average.median, searched=False),
            risk=float(share @ losses / share.sum()),
            errors=RowErrors(held_out, average.median, rows.weights, inflate, losses, groups),
            curve=held_out,
            average=average,
        )
        held_out.warn(average.median, lambda: calibration.standard_error)
        return calibration

    def refuse_bounds(self, bounds: tuple[float, float]) -> None:
        """Refuse bounds without betas to average over."""
        if bounds[1] < LEAST:
            raise ValueError(f"bounds must reach beyond {LEAST:g} to average, got {bounds!r}")


def _log_prior(x: Array) -> Array:
    """Return log q: Cauchy's tail below 0, a normal one above, with the same curvature at 0."""
    return -np.where(x < 0, np.log1p(x**2), x**2)


@dataclass(frozen=True)
class _Axis:
    """The axis t = arsinh(log beta / spread), on which the prior and its tails are equally wide."""

    spread: float

    def place(self, betas: Array) -> Array:
        """Return t."""
        return np.arcsinh(np.log(betas) / self.spread)

    def betas(self, places: Array) -> Array:
        """Return beta."""
        return np.exp(self.spread * np.sinh(places))

    def log_stretch(self, betas: Array) -> Array:
        """Return log(d log beta / dt)."""
        return np.log(np.hypot(self.spread, np.log(betas)))

    def grid(self, bounds: tuple[float, float]) -> Array:
        """Return betas evenly spaced on the axis, with 1 among them if bounds allow."""
        ends = np.array([max(bounds[0], LEAST), bounds[1]])
        low, high = self.place(ends)
        inside = self.betas(STEP * np.arange(np.floor(low / STEP) + 1, np.ceil(high / STEP)))
        return np.unique(np.concatenate([ends[:1], inside, ends[1:]]))

    def widths(self, betas: Array) -> Array:
        """Return the width on the axis that each of these betas stands for: half of both gaps."""
        gaps = np.diff(self.place(betas)) if len(betas) > 1 else np.ones(1)
        return (np.append(gaps, 0.0) + np.append(0.0, gaps))[: len(betas)] / 2

    def refined(self, betas: Array, weights: Array) -> Array:
        """Return betas between the first and the last, close together where weights are large.

        Half of them follow the weights, the others are evenly spaced on the axis.
        """
        places = self.place(betas)
        middles = (weights[1:] + weights[:-1]) / 2 * np.diff(places)
        share = np.concatenate([[0.0], np.cumsum(middles)])
        even = (places - places[0]) / (places[-1] - places[0])
        inside = np.interp(np.linspace(0, 1, POINTS)[1:-1], (share / share[-1] + even) / 2, places)
        return np.concatenate([betas[:1], self.betas(inside), betas[-1:]])


@dataclass(frozen=True, eq=False)
class HeldOutLosses:
    """Losses of held-out rows, and the number of parameters used."""

    held_out: RiskCurve
    counter: CountsParameters
    data: Data
    multiplicity: Array
    spread: float
    groups: Array | None = None  # labels of rows that depend on each other
    distinct: float | None = None  # number of observations without copies, if it is known
    row_losses: dict[float, tuple[Array, Array]] = field(default_factory=dict)
    parameters: dict[float, float] = field(default_factory=dict)

    def average(self, bounds: tuple[float, float]) -> BetaWeights:
        """Return the betas within bounds whose weights are not negligible, and their weights."""
        betas = self.support(_Axis(self.spread).grid(bounds))
        weights = self.weights(betas)
        kept = weights > NEGLIGIBLE * weights.max()
        return BetaWeights(betas[kept], weights[kept] / weights[kept].sum(), self.finer(betas))

    def finer(self, betas: Array) -> BetaWeights:
        """Return weights of many betas between these, from all whose losses are known.

        Between them the logarithm of the density is linear in the axis.
        """
        if len(betas) == 1:
            return BetaWeights(betas, np.ones(1))
        axis, known = _Axis(self.spread), np.sort([*self.row_losses])
        known = known[(betas[0] <= known) & (known <= betas[-1])]
        density = np.maximum(self.weights(known) / axis.widths(known), np.finfo(float).tiny)
        at = axis.place(known)
        places = np.linspace(at[0], at[-1], MANY)
        fine = np.exp(np.interp(places, at, np.log(density)))
        return BetaWeights(axis.betas(places), fine / fine.sum())

    def weights(self, betas: Array) -> Array:
        """Return the weights of betas in ascending order, each for its part of the axis."""
        at = np.append(betas, 1.0)  # the others are compared with Bayes
        losses, share = self.rows(at)
        share = share / share.sum()
        rows = self.data.size if self.distinct is None else self.distinct
        free = np.clip(1 - (self.used(at) / rows) ** 2, LEAST_FREE, 1.0)
        tempering = np.minimum(free[:-1], free[-1])
        differences = (losses[:-1] - losses[-1]) * self.data.size
        total = differences @ share
        if not np.isfinite(total).all():
            raise ValueError(
                "losses of held-out rows must be finite to average over beta, got "
                f"{losses[~np.isfinite(losses)][0]} at beta = "
                f"{at[~np.isfinite(losses).all(axis=1)][0]:.3g}"
            )
        deviations = self.deviations(differences - total[:, None], share)
        sums = total + _replicates(2 * deviations @ deviations.T)
        prior = _log_prior(np.log(betas) / (self.spread * np.sqrt(tempering)))
        axis = _Axis(self.spread)
        prior += axis.log_stretch(betas) + np.log(axis.widths(betas))
        shares = special.softmax(prior - tempering * sums, axis=1)
        return shares.mean(axis=0)

    def deviations(self, differences: Array, share: Array) -> Array:
        """Return the parts of the sums that are independent: those of rows, or of groups."""
        if self.groups is None:
            return differences * (share / np.sqrt(self.multiplicity))
        means, shares = pooled(differences, share, self.groups)
        return means * shares

    def support(self, grid: Array) -> Array:
        """Return the betas of an average, which cover those of non-negligible weight.

        The search goes from Bayes outwards, on each side until the weight is negligible and the
        risk increases.
        """
        start = int(np.argmin(np.abs(np.log(grid))))
        first, last = max(start - AROUND, 0), min(start + AROUND, len(grid) - 1)
        while True:
            betas = grid[first : last + 1]
            weights = self.weights(betas)
            risk = self.mean_losses(betas)
            negligible = weights < NEGLIGIBLE * weights.max()
            lower = first > 0 and not (negligible[0] and risk[0] >= risk[1])
            higher = last < len(grid) - 1 and not (negligible[-1] and risk[-1] >= risk[-2])
            if not lower and not higher:
                break
            first, last = first - int(lower), last + int(higher)
        near = np.flatnonzero(~negligible)
        kept = slice(max(near[0] - 1, 0), near[-1] + 2)
        betas, density = betas[kept], weights[kept] / _Axis(self.spread).widths(betas)[kept]
        return _Axis(self.spread).refined(betas, density) if len(betas) > 1 else betas

    def mean_losses(self, betas: Array) -> Array:
        """Return the estimated risk at betas."""
        losses, share = self.rows(betas)
        return losses @ share / share.sum()

    def used(self, betas: Array) -> Array:
        """Return the effective numbers of parameters of the posteriors at betas."""
        new = np.array([beta for beta in np.unique(betas) if beta not in self.parameters])
        if len(new):
            counts = self.counter.parameters_used(self.data, new)
            self.parameters.update(zip(new.tolist(), counts.tolist(), strict=True))
        return np.array([self.parameters[beta] for beta in betas.tolist()])

    def rows(self, betas: Array) -> tuple[Array, Array]:
        """Return the losses of held-out rows, (betas, n), and their weights."""
        for beta in betas.tolist():
            if beta not in self.row_losses:
                self.row_losses[beta] = self.held_out.rows(beta)
        return np.array([self.row_losses[beta][0] for beta in betas.tolist()]), self.row_losses[
            betas[0]
        ][1]


def _replicates(covariance: Array) -> Array:
    """Return fixed draws from N(0, covariance), by its symmetric root, which is unique."""
    values, axes = np.linalg.eigh(covariance)
    root = (axes * np.sqrt(np.maximum(values, 0.0))) @ axes.T
    standard = np.random.default_rng(0).standard_normal((REPLICATES, len(values)))
    return np.concatenate([standard, -standard]) @ root
