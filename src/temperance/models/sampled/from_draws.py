r"""Calibrate from existing posterior draws, without a refit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from temperance import plans
from temperance.calibration import Calibration
from temperance.checks import (
    as_bounds,
    as_numbers,
    non_negative,
    one_of,
    refuse_non_finite,
    shown,
    whole,
)
from temperance.curves import table_of
from temperance.data import Array, Data, Risk
from temperance.messages import BoundWarning, ParetoWarning, warn
from temperance.models.sampled.recorded import (
    LEAST_EFFECTIVE,
    RecordedDraws,
    ReweightedDraws,
    RowLosses,
)
from temperance.models.sampled.reweighted_curve import BetaReliability, ReweightedCurve, warn_beyond
from temperance.strategies import (
    Coverage,
    LeaveOneOut,
    RateStrategy,
    Sandwich,
    Stacking,
    strategy_named,
)
from temperance.strategies.selection import warn_of_choice

MOST_ROUNDS = 30  # of draws at other betas
CUT_OFF = 0.1  # weight at an end of the supported range, relative to the largest, worth a warning
SKEWED = 4.0  # standard errors of a skewness that shows the wrong sign


@dataclass(frozen=True, eq=False, repr=False)
class DrawsCalibration(Calibration):
    """A choice of beta from recorded draws; ``bounds`` are the range that was searched.

    Parameters
    ----------
    supported : range of beta, within the given bounds, in which the draws can be reweighted
    reliability : k, effective size and Monte Carlo error along beta
    rows : loss, Pareto k and effective size of each row's leave-one-out weights at the choice
    pareto_k : k of each row, shape (n,)
    monte_carlo_error : Monte Carlo error of ``risk``; infinite if the weights of a row have no mean
        or too few effective draws to estimate it; ``standard_error`` is over the rows
    posterior : the draws, weighted for the posterior at ``beta``
    """

    model: RecordedDraws
    requested: tuple[float, float]
    reliability: BetaReliability
    rows: RowLosses

    @property
    def pareto_k(self) -> Array:
        """Pareto k of each row's leave-one-out weights at the choice, (n,)."""
        return self.rows.k

    @property
    def monte_carlo_error(self) -> float:
        """Monte Carlo error of ``risk``."""
        return self.rows.error

    @property
    def supported(self) -> tuple[float, float]:
        """Range of beta, within the given bounds, that the draws support."""
        return self.bounds

    def posterior_at(self, beta: float) -> ReweightedDraws:
        """Return the draws weighted for the posterior at another beta."""
        at = non_negative("beta", beta)
        warn_beyond(np.array([at]), self.supported)
        return self.model.at(at)

    @property
    def limited(self) -> bool:
        """Whether the choice lies at an end of the supported range that is inside the bounds."""
        return self.at_bound and self.beta not in self.requested

    @property
    def where(self) -> str:
        """Location of the minimum, as a phrase."""
        if self.limited:
            end = "upper" if self.beta == self.bounds[1] else "lower"
            return (
                f"at the {end} end of what the draws support: the risk may be lower beyond it, "
                f"draw again at beta = {self.beta:.3g}"
            )
        return super().where

    def summary(self) -> str:
        """Return what is printed, one line per quantity."""
        lower, upper = self.supported
        limit = self.model.reliable_k
        worst = int(np.argmax(self.pareto_k))  # nan counts as the largest
        unreliable = int(np.sum(~(self.pareto_k <= limit)))
        return "\n".join(
            [
                super().summary(),
                f"  draws     {self.model.size} at beta = {self.model.beta_of_draws:g}, worth "
                f"{self.posterior.effective_size:.0f} at the choice, where they add "
                f"{self.monte_carlo_error:.2g} to the error; they support beta in "
                f"[{lower:.3g}, {upper:.3g}]",
                f"  Pareto k  at most {self.pareto_k[worst]:.2g} (row {worst}); above {limit:.2g} "
                f"in {unreliable} of {len(self.pareto_k)} rows",
            ]
        )


@overload
def calibrate_from_draws(
    log_likelihood: Any = None,
    beta_of_draws: float = 1.0,
    *,
    sample: Callable[[float], Any] | None = None,
    strategy: None = None,
    variable: str | None = None,
    bounds: tuple[float, float] = (0.0, 3.0),
    risk: Risk = "predictive",
    dimension: int | None = None,
    seed: int = 0,
) -> DrawsCalibration: ...
@overload
def calibrate_from_draws(
    log_likelihood: Any = None,
    beta_of_draws: float = 1.0,
    *,
    sample: Callable[[float], Any] | None = None,
    strategy: Stacking | RateStrategy | str,
    variable: str | None = None,
    bounds: tuple[float, float] = (0.0, 3.0),
    risk: Risk = "predictive",
    dimension: int | None = None,
    seed: int = 0,
) -> Calibration: ...
def calibrate_from_draws(
    log_likelihood: Any = None,
    beta_of_draws: float = 1.0,
    *,
    sample: Callable[[float], Any] | None = None,
    strategy: Stacking | RateStrategy | str | None = None,
    variable: str | None = None,
    bounds: tuple[float, float] = (0.0, 3.0),
    risk: Risk = "predictive",
    dimension: int | None = None,
    seed: int = 0,
) -> Calibration:
    r"""Choose beta by leave-one-out from draws of one posterior, without a refit.

    .. math::

        \hat R(\beta) = \frac1n \sum_i \sum_s w_{is} l_i(\theta_s), \qquad
        \log w_{is} = -(\beta - \beta_0) \sum_j l_j(\theta_s) + \beta l_i(\theta_s) + const,

    with ``l_i = -log p(y_i | theta)``, the weights Pareto-smoothed and normalised, and
    ``-log sum_s w_is p(y_i | theta_s)`` per row for the predictive risk.  The search is restricted
    to the betas that the draws support.  There the tempering weights of all rows have a Pareto k of
    at most .35 (less for few draws) and an effective size of at least 100, and no more rows than at
    ``beta_of_draws`` have a k above .7 or fewer than 100 effective draws.

    Parameters
    ----------
    log_likelihood : array of shape (chains, draws, n) or (draws, n), or an ArviZ object
        Log likelihood of each row at each draw, untempered; of an ArviZ object the group
        ``log_likelihood``.  It may be left out beside ``sample``.
    beta_of_draws : float
        The exponent of the posterior from which the draws come; an ordinary posterior has 1.
    sample : function beta -> log_likelihood, optional
        Draws again, of the posterior at another beta.  As long as the minimum lies where the
        support of the draws ends, short of the bounds, new draws are taken there.
    strategy : {"sandwich", "coverage", "stacking"}, Sandwich, Coverage or Stacking, optional
        A rule that makes credible sets cover, instead of leave-one-out; docs/rates.md.  Or a
        mixture over the betas that the draws support, for forecasts.
    variable : str, optional
        Observed variable of an ArviZ object to temper, if there are several.
    bounds : (float, float)
        Range allowed for beta, as far as the draws support it.
    risk : {"gibbs", "predictive"}
        Expected loss of a draw, or loss of the posterior predictive.
    dimension : int, optional
        Number of parameters, for a rate; by default it is estimated from the draws.
    seed : int
        Seed of the resamples of ``Coverage``.

    Returns
    -------
    Calibration with a strategy, otherwise DrawsCalibration
        A :class:`temperance.Calibration` with the supported range, Pareto k and Monte Carlo error;
        its ``posterior`` holds the weights of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from temperance import calibrate_from_draws
    >>> rng = np.random.default_rng(4)
    >>> y = rng.normal(1.0, 1.0, size=50)
    >>> theta = rng.normal(y.sum() / 52, 26**-0.5, size=(4, 500, 1))  # the posterior at 1/2
    >>> log_likelihood = -0.5 * (y - theta) ** 2
    >>> calibration = calibrate_from_draws(log_likelihood, 0.5, risk="predictive")
    >>> lower, upper = calibration.supported
    >>> lower < 0.5 < upper
    True
    """
    one_of("risk", risk, ("gibbs", "predictive"))
    requested = as_bounds(bounds)
    beta = non_negative("beta_of_draws", beta_of_draws)
    if log_likelihood is None:
        log_likelihood = _drawn(sample, beta)
    recorded, y = _recorded(log_likelihood, beta, variable)
    if strategy is not None:
        if sample is not None:
            raise ValueError("sample must be left out beside strategy, which needs draws once")
        given = None if dimension is None else whole("dimension", dimension, 1)
        recorded = replace(recorded, dimension=given)
        return _by_strategy(recorded, y, strategy, requested, risk, seed)
    calibration = _chosen(recorded, y, requested, risk)
    seen = [recorded.beta_of_draws]
    while sample is not None and calibration.limited and len(seen) < MOST_ROUNDS:
        beta = calibration.beta
        if beta in seen:
            break
        seen.append(beta)
        recorded, y = _recorded(_drawn(sample, beta), beta, variable)
        calibration = _chosen(recorded, y, requested, risk)
    _warn(calibration)
    return calibration


def _drawn(sample: Callable[[float], Any] | None, beta: float) -> Any:
    if not callable(sample):
        raise ValueError(
            "log_likelihood must be given, or sample a function of beta that returns it, got "
            f"{shown(sample)}"
        )
    return sample(beta)


def _chosen(
    recorded: RecordedDraws, y: Array, requested: tuple[float, float], risk: Risk
) -> DrawsCalibration:
    """Return the choice from draws at one beta, without warnings."""
    curve = ReweightedCurve(recorded, requested, risk)
    choice = curve.minimum()
    n = len(y)
    rows = Data(np.empty((n, 0)), y, np.ones(n))
    plan = plans.LeaveOneOut(rows.weights)
    return DrawsCalibration(
        recorded,
        rows,
        LeaveOneOut(),
        risk,
        curve.supported,
        choice,
        table_of(curve.as_risk_curve(), rows, plan, risk, curve.supported),
        requested=requested,
        reliability=curve.reliability,
        rows=recorded.leave_one_out(choice.beta, risk),
    )


def _by_strategy(
    recorded: RecordedDraws,
    y: Array,
    strategy: Stacking | RateStrategy | str,
    bounds: tuple[float, float],
    risk: Risk,
    seed: int,
) -> Calibration:
    """Return the choice of a rule that needs the losses of draws, or the parameters too."""
    rule = strategy_named(strategy) if isinstance(strategy, str) else strategy
    n = len(y)
    data = Data(np.arange(float(n))[:, None], y, np.ones(n))
    if isinstance(rule, Stacking):
        return _stacked(recorded, data, rule, bounds, risk, seed)
    if not isinstance(rule, Sandwich | Coverage):
        raise ValueError(
            "strategy must be 'sandwich', 'coverage', 'stacking', Sandwich, Coverage or Stacking "
            f"for draws, got {shown(strategy)}"
        )
    if not recorded.beta_of_draws > 0:
        raise ValueError("beta_of_draws must be positive for a strategy, got 0.0")
    calibration = rule.select(recorded, data, bounds, np.random.default_rng(seed), risk)
    if not recorded.supports(calibration.beta):
        warn(
            f"the draws at beta = {recorded.beta_of_draws:g} do not support the posterior at "
            f"beta = {calibration.beta:.3g} (Pareto k {calibration.posterior.pareto_k:.2g}, worth "
            f"{calibration.posterior.effective_size:.0f} draws); draw again there",
            ParetoWarning,
        )
    return calibration


def _stacked(
    recorded: RecordedDraws,
    data: Data,
    rule: Stacking,
    requested: tuple[float, float],
    risk: Risk,
    seed: int,
) -> Calibration:
    """Return the mixture over the betas that the draws support."""
    lower, upper = recorded.curve("predictive").supported
    bounds = max(lower, requested[0]), min(upper, requested[1])
    if not bounds[0] < 1 < bounds[1]:
        raise ValueError(
            "stacking needs draws that support beta = 1 and bounds around it, got draws for "
            f"[{lower:.3g}, {upper:.3g}] and bounds {requested}"
        )
    calibration = rule.select(recorded, data, bounds, np.random.default_rng(seed), risk)
    weights = calibration.weights
    assert weights is not None
    for place, outside in ((0, requested[0] < lower), (-1, upper < requested[1])):
        at_end = weights.betas[place] in bounds
        if outside and at_end and weights.weights[place] > CUT_OFF * weights.weights.max():
            warn(
                f"the mixture has the weight {weights.weights[place]:.2g} at beta = "
                f"{bounds[place]:.3g}, where the support of the draws, [{lower:.3g}, {upper:.3g}], "
                "ends; draw again at that beta, or calibrate the model itself",
                ParetoWarning,
            )
    return calibration


def _recorded(
    log_likelihood: Any, beta: float, variable: str | None
) -> tuple[RecordedDraws, Array]:
    """Return validated draws and observations; unknown observations are nan."""
    source, y = None, None
    if hasattr(log_likelihood, "groups"):
        from temperance.models.sampled.arviz_tree import pointwise

        source = log_likelihood
        log_likelihood, y = pointwise(source, variable)
    elif variable is not None:
        raise ValueError(f"variable is for ArviZ objects, got {variable!r} with an array")
    array = as_numbers("log_likelihood", log_likelihood)
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(
            "log_likelihood must have shape (chains, draws, n) or (draws, n), got "
            f"{np.shape(log_likelihood)}"
        )
    if array.shape[2] < 2:
        raise ValueError("log_likelihood must have at least 2 rows to leave one out, got 1")
    refuse_non_finite("log_likelihood", array, ("chain", "draw", "row"))
    with np.errstate(over="ignore"):
        if not np.isfinite(np.abs(array).sum(axis=2)).all():
            raise ValueError(
                "log_likelihood must have finite sums over the rows, got entries up to "
                f"{float(np.abs(array).max()):.3g}"
            )
    recorded = RecordedDraws(-array, beta, source)
    effective = recorded.efficiency * recorded.size
    if effective < LEAST_EFFECTIVE:
        raise ValueError(
            f"log_likelihood must hold draws worth {LEAST_EFFECTIVE} independent ones, got "
            f"{effective:.0f} ({recorded.size} draws): draw longer"
        )
    _refuse_losses(array, recorded, effective)
    return recorded, np.full(array.shape[2], np.nan) if y is None else y


def _refuse_losses(array: Array, recorded: RecordedDraws, effective: float) -> None:
    """Refuse numbers that are minus log likelihoods by all that draws tell.

    At draws of a posterior the log likelihood of all rows is its maximum minus about half a
    chi-squared variable, and so has its tail to the left.
    """
    if recorded.beta_of_draws == 0 or not (array >= 0).all():
        return
    total = -recorded.total
    if not np.ptp(total) > 0:
        return
    z = (total - total.mean()) / total.std()
    skewness = float((z**3).mean())
    if skewness > SKEWED * np.sqrt(6 / effective):
        raise ValueError(
            "log_likelihood must hold log likelihoods, got positive numbers whose sum over rows "
            f"has its tail to the right (skewness {skewness:.2g}): they look like losses, give "
            "minus these"
        )


def _warn(calibration: DrawsCalibration) -> None:
    lower, upper = calibration.supported
    if calibration.limited:
        warn(
            f"the estimated {calibration.kind} risk is smallest at beta = {calibration.beta:.3g}, "
            f"where the support of the draws, [{lower:.3g}, {upper:.3g}], ends; draw again at that "
            "beta and pass it as beta_of_draws, or calibrate the model itself",
            BoundWarning,
        )
    else:
        warn_of_choice(calibration)
    rows, model = calibration.rows, calibration.model
    unreliable = np.flatnonzero(model.unreliable(rows))
    if len(unreliable):
        worst = unreliable[np.argmax(rows.k[unreliable])]
        warn(
            f"the weights that leave a row out cannot be trusted in {len(unreliable)} of "
            f"{len(rows.k)} rows (row {worst}: Pareto k {rows.k[worst]:.2g}, worth "
            f"{rows.effective_size[worst]:.0f} draws; k may be {model.reliable_k:.2g}, the worth "
            f"{LEAST_EFFECTIVE} at least): their losses are too small, and so the choice is "
            "unreliable; use K-fold on the model itself",
            ParetoWarning,
        )
