r"""Pareto-smoothed importance weights, for many rows at once.

The largest M of S weights are replaced by the expected order statistics of a generalised Pareto
distribution fitted to them; its shape k measures how heavy the tail is.  Up to k = .7 the smoothed
mean is reliable in practice; with fewer than 2200 draws the limit is 1 - 1 / log10(S).  No weight
is made larger than the largest, so the share of the fitted distribution beyond it is missing from
the mean.

References
----------
A. Vehtari, D. Simpson, A. Gelman, Y. Yao, J. Gabry, Pareto smoothed importance sampling, 2024,
arXiv:1507.02646; the fit is that of J. Zhang and M. Stephens, Technometrics 51, 2009.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from temperance.data import Array, Risk, batches

LEAST_TAIL = 5
NEAREST = 5  # number of draws with the largest weights that represent what lies beyond
GUESSES = 30  # of the scale, plus the square root of the tail's length
PRIOR_DRAWS = 10  # weight of the prior at k = .5, in draws
ROUNDING = 1e-12  # weights closer than this, relatively, are equal


class Smoothed(NamedTuple):
    """Normalised log weights (rows, S) and statistics of each row's tail, each (rows,).

    Parameters
    ----------
    log_weights : smoothed and normalised
    k : shape of the tail
    beyond : share of the weight that the fit expects beyond the draws; 1 if it has no mean
    """

    log_weights: Array
    k: Array
    beyond: Array

    @property
    def effective_size(self) -> Array:
        """Effective sample size, 1 / sum of squared weights."""
        return np.exp(-logsumexp(2 * self.log_weights, axis=1))

    def missing(self, losses: Array, mean: Array, risk: Risk) -> Array:
        r"""Return the loss (rows,) that may be missing from the means of losses (rows, S).

        .. math:: q_i \max_s (l_{is} - \bar l_i)^+, \qquad q_i \max_s (1 - e^{\bar l_i - l_{is}})^+

        with q the share beyond the draws, assuming that all of it has the largest loss among the
        draws of largest weight.  The second form is for the predictive risk,
        ``-log sum_s w_s exp(-l_s)``.
        """
        count = min(NEAREST, losses.shape[1])
        nearest = np.argpartition(-self.log_weights, count - 1, axis=1)[:, :count]
        largest = np.take_along_axis(losses, nearest, axis=1).max(axis=1)
        rise = np.maximum(largest - mean, 0.0)
        return self.beyond * (rise if risk == "gibbs" else -np.expm1(-rise))


def reliable_k(draws: int) -> float:
    """Return the largest k at which the mean of this many draws is reliable."""
    return float(min(0.7, 1 - 1 / np.log10(draws)))


def tail_length(draws: int, efficiency: float = 1.0) -> int:
    """Return the number of weights to smooth: more for autocorrelated draws."""
    return int(min(draws / 5, 3 * np.sqrt(draws / efficiency)))


def mean_excess(values: Array, efficiency: float = 1.0) -> float:
    """Return the mean excess of the largest values (S,), as many as are smoothed."""
    largest = np.sort(values)[-tail_length(len(values), efficiency) - 1 :]
    return float((largest[1:] - largest[0]).mean())


def smooth(log_weights: Array, efficiency: float = 1.0) -> Smoothed:
    r"""Return smoothed and normalised log weights, for each row of shape (rows, S).

    A tail of equal weights needs no smoothing, k = -inf.  A tail whose first quarter are ties has
    no k.  Too few draws for a tail are left unchanged, k = inf.  Without k the share beyond the
    draws is unknown and set to 1.

    Examples
    --------
    >>> import numpy as np
    >>> weights = np.random.default_rng(0).pareto(4.0, size=(1, 100_000))  # a tail with k = 1/4
    >>> smooth(np.log(weights)).k.round(2)
    array([0.26])
    """
    rows, draws = log_weights.shape
    length = tail_length(draws, efficiency)
    smoothed = log_weights - log_weights.max(axis=1, keepdims=True)
    k, missing = np.full(rows, np.inf), np.full(rows, np.inf)
    if length >= LEAST_TAIL:
        for part in batches(rows, (GUESSES + int(length**0.5)) * length):
            smoothed[part], k[part], missing[part] = _smooth(smoothed[part], length)
    log_total = logsumexp(smoothed, axis=1)
    # The largest weight is 1, so the total is at least 1.
    with np.errstate(over="ignore"):
        beyond = 1 - 1 / (1 + missing / np.exp(log_total))
    return Smoothed(smoothed - log_total[:, None], k, beyond)


def _smooth(log_weights: Array, length: int) -> tuple[Array, Array, Array]:
    """Return weights whose largest is 1 after smoothing, k, and the share beyond the draws."""
    draws = log_weights.shape[1]
    largest = np.argpartition(log_weights, draws - length - 1, axis=1)[:, draws - length - 1 :]
    order = np.argsort(np.take_along_axis(log_weights, largest, axis=1), axis=1, kind="stable")
    place = np.take_along_axis(largest, order, axis=1)
    tail = np.exp(np.take_along_axis(log_weights, place, axis=1))
    cutoff, place, tail = tail[:, :1], place[:, 1:], tail[:, 1:]
    constant = tail[:, -1] - tail[:, 0] <= ROUNDING * tail[:, -1]
    quartile = (tail - cutoff)[:, int(length / 4 + 0.5) - 1]
    fitted = ~constant & (quartile > (tail - cutoff)[:, 0])
    k = np.where(constant, -np.inf, np.nan)
    shape, scale = generalised_pareto((tail - cutoff)[fitted])
    k[fitted] = shape
    # Quantiles of the fit at the midpoints of M equal steps, never above the largest weight.
    steps = -np.log1p(-(np.arange(length) + 0.5) / length)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        growth = np.expm1(shape[:, None] * steps) / shape[:, None]
        quantile = np.minimum(cutoff[fitted] + scale[:, None] * growth, 1.0)
        expected = cutoff[fitted, 0] + np.where(shape < 1, scale / (1 - shape), np.inf)
    usable = np.isfinite(quantile).all(axis=1)
    chosen = np.flatnonzero(fitted)[usable]
    result = log_weights.copy()
    result[chosen[:, None], place[chosen]] = np.log(quantile[usable])
    missing = np.where(constant, 0.0, np.inf)
    missing[chosen] = np.maximum(length * expected[usable] - quantile[usable].sum(axis=1), 0.0)
    return result, k, missing


def generalised_pareto(excess: Array) -> tuple[Array, Array]:
    r"""Return shape and scale fitted to each row of sorted excesses (rows, M).

    .. math:: P(X > x) = (1 + k x / \sigma)^{-1/k}

    The empirical Bayes estimate of Zhang and Stephens, with a weak prior at k = 1/2.
    """
    length = excess.shape[1]
    guesses = GUESSES + int(length**0.5)
    quartile = excess[:, int(length / 4 + 0.5) - 1, None]
    steps = 1 - np.sqrt(guesses / (np.arange(1, guesses + 1) - 0.5))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        b = steps / (3 * quartile) + 1 / excess[:, -1:]
        shape = np.log1p(-b[:, :, None] * excess[:, None, :]).mean(axis=2)
        profile = length * (np.log(-b / shape) - shape - 1)
        weight = np.exp(profile - logsumexp(profile, axis=1, keepdims=True))
        weight[weight < 10 * np.finfo(float).eps] = 0.0
        b = (b * weight).sum(axis=1) / weight.sum(axis=1)
        k = np.log1p(-b[:, None] * excess).mean(axis=1)
        sigma = -k / b
    return (length * k + PRIOR_DRAWS * 0.5) / (length + PRIOR_DRAWS), sigma
