r"""Coverage: credible sets of resamples cover the minimiser as often as they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from temperance.calibration import Rate
from temperance.information import Units
from temperance.strategies.rate import RateStrategy
from temperance.types import (
    Array,
    HasCredibleLevels,
    HasInformation,
    Model,
    NoMinimiserError,
    preferences_of,
)
from temperance.validation import open_unit, whole

HALVINGS = 8  # of the interval of log beta, log 2 wide: to 0.3 % of beta
MOST_STEPS = 50  # by factors of 2, from the upper bound downwards


@dataclass(frozen=True)
class Coverage(RateStrategy):
    r"""Choose the beta whose credible sets have their nominal coverage in resamples of the rows.

    .. math::

        \frac1B \sum_b 1\{\hat\theta \in C_{level}(\pi^{(b)}_\beta)\} = level

    where :math:`\pi^{(b)}_\beta` is the posterior of resample b of the rows, C the region of
    highest density, and theta_hat the minimiser of the risk on all rows; if that does not exist,
    the posterior mean of all rows at the same beta.  The resamples are the same for every beta, so
    the largest such beta is found by bisection, without stochastic approximation.

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
            raise ValueError(
                "Coverage needs a model with credible_levels(data, weights, theta), as linear and "
                f"logistic models of a given prior have, got {type(model).__name__}; give "
                "prior_scale a number, or use Sandwich()"
            )
        weights = resampled(units, self.n_draws, rng)
        theta = minimiser_of(model, units)
        levels = model.credible_levels(units.rows, weights, theta)
        beta = largest_covering(levels, self.level, bounds)
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


def largest_covering(
    levels: Callable[[float], Array], level: float, bounds: tuple[float, float]
) -> float:
    """Return the largest beta within bounds at which the share of levels up to ``level`` is so."""

    def covers(beta: float) -> bool:
        return bool(np.mean(levels(beta) <= level) >= level)

    lower, upper = bounds
    if covers(upper):
        return upper
    inside = upper
    for _ in range(MOST_STEPS):
        outside, inside = inside, max(inside / 2, lower)
        if covers(inside):
            break
        if inside == lower:
            inside = 0.0
            break
    if inside == 0.0 or not covers(inside):
        raise ValueError(
            f"bounds must hold a beta whose credible sets cover the minimiser in {level:.0%} of "
            f"the resamples, got none in {bounds!r}: the prior excludes it; use a wider prior_cov"
        )
    for _ in range(HALVINGS):
        middle = float(np.sqrt(inside * outside))
        inside, outside = (middle, outside) if covers(middle) else (inside, middle)
    return inside


def resampling_range(
    found: Array, level: float, beta: float, dimension: int
) -> tuple[float, float]:
    """Return the betas between which the number of resamples leaves the choice.

    Squared distances d_b grow about like beta, so resample b covers up to beta q / d_b, where q is
    the distance of the level.  The range has the quantiles of these betas at the shares of 1 -
    level plus and minus two binomial standard errors.

    Parameters
    ----------
    found : levels of the resamples at beta, shape (n_draws,)
    """
    missed = np.clip(1 - found, 1e-15, 1.0)
    with np.errstate(divide="ignore"):
        reach = beta * special.chdtri(dimension, 1 - level) / special.chdtri(dimension, missed)
    error = 2 * np.sqrt(level * (1 - level) / len(found))
    low = np.quantile(reach, max(1 - level - error, 0.0), method="lower")
    high = np.quantile(reach, min(1 - level + error, 1.0), method="higher")
    return float(low), float(high)
