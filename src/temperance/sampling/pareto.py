r"""Pareto-smoothed importance weights, many rows at once.

The largest M of S weights are replaced by the order statistics that a generalised Pareto law fitted
to them expects; its shape k says how heavy the tail is.  Up to k = .7 the smoothed mean is reliable
in practice; with fewer than 2200 draws the limit is 1 - 1 / log10(S).

References
----------
A. Vehtari, D. Simpson, A. Gelman, Y. Yao, J. Gabry, Pareto smoothed importance sampling, 2024,
arXiv:1507.02646; the fit is that of J. Zhang and M. Stephens, Technometrics 51, 2009.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from temperance.types import Array, batches

LEAST_TAIL = 5
GUESSES = 30  # of the scale, and the root of the tail's length besides
PRIOR_DRAWS = 10  # that k = .5 is worth
ROUNDING = 1e-12  # weights closer than this, relatively, are equal


class Smoothed(NamedTuple):
    """Normalised log weights (rows, S) and the shape k of each row's tail (rows,)."""

    log_weights: Array
    k: Array


def reliable_k(draws: int) -> float:
    """Largest k at which the mean of this many draws can be trusted."""
    return float(min(0.7, 1 - 1 / np.log10(draws)))


def tail_length(draws: int, efficiency: float = 1.0) -> int:
    """Say how many weights are smoothed: more of chains whose draws count for less."""
    return int(min(draws / 5, 3 * np.sqrt(draws / efficiency)))


def smooth(log_weights: Array, efficiency: float = 1.0) -> Smoothed:
    r"""Smooth and normalise each row of log weights of shape (rows, S).

    A tail of equal weights has nothing to smooth, k = -inf; one whose quarter is ties has no k; too
    few draws to have a tail are left as they are, k = inf.

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
    k = np.full(rows, np.inf)
    if length < LEAST_TAIL:
        return Smoothed(smoothed - logsumexp(smoothed, axis=1, keepdims=True), k)
    for part in batches(rows, (GUESSES + int(length**0.5)) * length):
        smoothed[part], k[part] = _smooth(smoothed[part], length)
    return Smoothed(smoothed - logsumexp(smoothed, axis=1, keepdims=True), k)


def _smooth(log_weights: Array, length: int) -> tuple[Array, Array]:
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
    # Quantiles of the fitted law at the middles of M equal steps, and never above the largest.
    beyond = -np.log1p(-(np.arange(length) + 0.5) / length)
    growth = np.expm1(shape[:, None] * beyond) / shape[:, None]
    quantile = np.minimum(cutoff[fitted] + scale[:, None] * growth, 1.0)
    result = log_weights.copy()
    usable = np.isfinite(quantile).all(axis=1)
    chosen = np.flatnonzero(fitted)[usable]
    result[chosen[:, None], place[chosen]] = np.log(quantile[usable])
    return result, k


def generalised_pareto(excess: Array) -> tuple[Array, Array]:
    r"""Fit shape and scale to each row of sorted excesses (rows, M).

    .. math:: P(X > x) = (1 + k x / \sigma)^{-1/k}

    The empirical Bayes estimate of Zhang and Stephens, with a weak prior at k = 1/2.
    """
    length = excess.shape[1]
    guesses = GUESSES + int(length**0.5)
    quartile = excess[:, int(length / 4 + 0.5) - 1, None]
    steps = 1 - np.sqrt(guesses / (np.arange(1, guesses + 1) - 0.5))
    b = steps / (3 * quartile) + 1 / excess[:, -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        shape = np.log1p(-b[:, :, None] * excess[:, None, :]).mean(axis=2)
        profile = length * (np.log(-b / shape) - shape - 1)
        weight = np.exp(profile - logsumexp(profile, axis=1, keepdims=True))
        weight[weight < 10 * np.finfo(float).eps] = 0.0
        b = (b * weight).sum(axis=1) / weight.sum(axis=1)
        k = np.log1p(-b[:, None] * excess).mean(axis=1)
        sigma = -k / b
    return (length * k + PRIOR_DRAWS * 0.5) / (length + PRIOR_DRAWS), sigma
