r"""Coverage: credible sets of resamples cover the minimiser as often as they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from temperance.calibration import Rate, preferences_of
from temperance.checks import open_unit, whole
from temperance.data import Array
from temperance.protocols import (
    HasCredibleLevels,
    HasInformation,
    Model,
    NoCurvatureError,
    NoMinimiserError,
)
from temperance.strategies.rate import RateStrategy
from temperance.uncertainty.information import Units

HALVINGS = 12  # of the interval of log beta, log 2 wide: to 2e-4 of beta
MOST_SCALINGS, SETTLED = 10, 1e-5  # scalings of beta, and the last one's logarithm
MOST_STEPS = 50  # by factors of 2, downwards


@dataclass(frozen=True)
class Coverage(RateStrategy):
    r"""Choose the beta whose credible sets have their nominal coverage in resamples of the rows.

    .. math::

        \frac1B \sum_b 1\{\hat\theta \in C_{level}(\pi^{(b)}_\beta)\} = level

    where :math:`\pi^{(b)}_\beta` is the posterior of resample b of the rows, C the region of
    highest density, and theta_hat the minimiser of the risk on all rows.  If the minimiser does not
    exist, or the prior excludes it at every beta, theta_hat is the posterior mean of all rows at
    the same beta.  The resamples are the same for every beta, so that no stochastic approximation
    is needed: the largest such beta is found by scaling beta, or by bisection.

    Parameters
    ----------
    level : float
    n_draws : int
        Number of resamples.
    groups : array of shape (n,), optional
        Labels of rows that are resampled together.

    References
    ----------
    .. [1] N. Syring, R. Martin, Calibrating general posterior credible regions, Biometrika 106,
       2019.
    """

    level: float = 0.95
    n_draws: int = 400
    groups: ArrayLike | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse an impossible level and too few resamples for it."""
        open_unit("level", self.level)
        whole("n_draws", self.n_draws, 50)

    def rate(
        self, model: Model, units: Units, bounds: tuple[float, float], rng: np.random.Generator
    ) -> Rate:
        """Return the largest beta of nominal coverage within the bounds."""
        if not isinstance(model, HasCredibleLevels):
            hint = "; give prior_scale a number, or use Sandwich()"
            raise ValueError(
                "Coverage needs a model with credible_levels(data, weights, theta), as linear and "
                f"logistic models of a given prior have, got {type(model).__name__}"
                f"{hint if isinstance(model, HasInformation) else ''}"
            )
        weights = resampled(units, self.n_draws, rng)
        theta = minimiser_of(model, units)
        levels = model.credible_levels(units.rows, weights, theta)
        beta = None
        if theta is not None:
            beta = by_scaling(levels, self.level, bounds, len(theta))
        if beta is None:
            beta = largest_covering(levels, self.level, bounds)
        if beta is None and theta is not None:  # the prior excludes the minimiser
            theta = None
            levels = model.credible_levels(units.rows, weights, theta)
            beta = largest_covering(levels, self.level, bounds)
        if beta is None:
            raise ValueError(
                f"bounds must hold a beta whose credible sets cover in {self.level:.0%} of the "
                f"resamples, got none in {bounds!r}"
            )
        what = "minimiser" if theta is not None else "posterior mean"
        share = f"{100 * self.level:g} %"
        rule = f"{share} sets of {self.n_draws} resamples cover the {what} in {share} of them"
        if theta is None or beta == bounds[1]:
            return Rate(beta, rule)
        interval = partial(resampling_range, levels(beta), self.level, beta, len(theta))
        return Rate(beta, rule, interval, "two standard errors of the resampling")


def minimiser_of(model: Model, units: Units) -> Array | None:
    """Return the minimiser of the risk; None if there is none, or draws would be needed for it."""
    if not isinstance(model, HasInformation) or preferences_of(model).only_curves:
        return None
    try:
        return model.information(units.rows).minimiser
    except NoCurvatureError as error:
        return error.minimiser
    except NoMinimiserError:
        return None


def resampled(units: Units, n_draws: int, rng: np.random.Generator) -> Array:
    """Return weights of rows in resamples of as many units, shape (n_draws, n)."""
    weights, size = units.rows.weights, units.rows.size
    if units.groups is not None:
        counts = rng.multinomial(units.count, np.full(units.count, 1 / units.count), n_draws)
        return counts[:, units.groups] * weights
    observations = round(size)
    if observations < 2:
        raise ValueError(
            f"weights must count observations, at least 2 in all to be resampled, got {size!r}"
        )
    # Weight k is k observations; other sums of weights are rounded and scaled back.
    counts = rng.multinomial(observations, weights / size, size=n_draws)
    return counts * (size / observations)


def reaches(found: Array, level: float, beta: float, dimension: int) -> Array:
    """Return the betas up to which resamples cover, from their levels at ``beta``.

    Squared distances grow about like beta, exactly so under a flat prior and a Gaussian posterior:
    up to beta q / d, where d is the distance of a resample's level and q that of ``level``.
    """
    missed = np.clip(1 - found, 1e-15, 1.0)
    with np.errstate(divide="ignore"):
        return beta * special.chdtri(dimension, 1 - level) / special.chdtri(dimension, missed)


def by_scaling(
    levels: Callable[[float], Array], level: float, bounds: tuple[float, float], dimension: int
) -> float | None:
    """Return the beta of nominal coverage by repeated scaling; None where that does not settle."""
    lower, upper = bounds
    beta = float(np.clip(1.0, lower, upper))
    before: tuple[float, float] | None = None  # log beta and the logarithm of its factor
    for _ in range(MOST_SCALINGS):
        found = levels(beta)
        # The share ``level`` of the resamples, rounded up, reaches that far.
        covered = int(np.ceil(level * len(found) - 1e-9))
        scaled = float(np.sort(reaches(found, level, beta, dimension))[len(found) - covered])
        if beta == upper and scaled >= upper:
            return upper
        if not 0 < scaled < np.inf:
            return None
        place, change = np.log(beta), np.log(scaled / beta)
        if abs(change) <= SETTLED:
            return scaled * (1 - 2 * SETTLED)  # just inside: that many resamples cover
        # Where distances do not grow like beta, the secant of the factors is the better guess.
        slope = -1.0 if before is None else (change - before[1]) / (place - before[0])
        before = place, change
        step = -change / slope if -4.0 < slope < -0.25 else change
        beta = float(np.clip(np.exp(place + step), lower, upper))
        if not beta > 0 or np.log(beta) == place:
            return None
    return None


def largest_covering(
    levels: Callable[[float], Array], level: float, bounds: tuple[float, float]
) -> float | None:
    """Return the largest beta within bounds with a share ``level`` of levels up to it, or None."""

    def covers(beta: float) -> bool:
        return bool(np.mean(levels(beta) <= level) >= level)

    lower, upper = bounds
    inside = float(np.clip(1.0, lower, upper))
    if covers(inside):  # upwards: posteriors at large betas take longest
        while inside < upper:
            outside = min(2 * inside, upper)
            if not covers(outside):
                break
            inside = outside
        else:
            return upper
    else:
        for _ in range(MOST_STEPS):
            outside, inside = inside, max(inside / 2, lower)
            if inside in (0.0, lower) or covers(inside):
                break
        if inside == 0.0 or not covers(inside):
            return None
    for _ in range(HALVINGS):
        middle = float(np.sqrt(inside * outside))
        inside, outside = (middle, outside) if covers(middle) else (inside, middle)
    return inside


def resampling_range(
    found: Array, level: float, beta: float, dimension: int
) -> tuple[float, float]:
    """Return the betas between which the number of resamples leaves the choice.

    They are quantiles of the betas up to which resamples cover, at the shares of 1 - level plus and
    minus two binomial standard errors.

    Parameters
    ----------
    found : levels of the resamples at beta, shape (n_draws,)
    """
    reach = reaches(found, level, beta, dimension)
    error = 2 * np.sqrt(level * (1 - level) / len(found))
    low = np.quantile(reach, max(1 - level - error, 0.0), method="lower")
    high = np.quantile(reach, min(1 - level + error, 1.0), method="higher")
    return float(low), float(high)
