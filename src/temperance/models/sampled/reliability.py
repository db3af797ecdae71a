r"""Diagnostics of draws: long-run variance, R-hat, overlap, Pareto k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from temperance.data import Array
from temperance.messages import (
    DivergenceWarning,
    MixingWarning,
    OverlapWarning,
    ParetoWarning,
    warn,
)
from temperance.models.sampled.ladder import Ladder

LARGEST_RHAT = 1.05
LEAST_OVERLAP = (
    0.03  # smaller values make free energies unreliable (Klimovich, Shirts and Mobley, 2015)
)
LARGEST_PARETO_K = 0.7
MIDDLE = (5, 95)  # percentiles that are 3.29 standard deviations apart for a normal distribution
DIVERGENT_SHARE = 0.01


@dataclass(frozen=True)
class Reliability:
    """Diagnostics of the draws of a curve, each the worst over pairs and rungs.

    Parameters
    ----------
    rungs : largest number of rungs of a pair
    draws : draws of a pair at each rung
    effective : number of independent draws of a pair's posterior that would give the same error of
        the curve at the given beta
    rhat : rank-normalised split R-hat of the training risk
    overlap : probability that a draw is assigned to a neighbouring rung
    divergent : total number of divergent transitions
    pareto_k : largest Pareto k of the leave-one-out weights; nan if there are none
    refits : number of rows left out by their own ladder
    rhat_limit : limit for the largest R-hat of this many if all chains agree
    """

    rungs: int
    draws: int
    effective: float
    rhat: float
    overlap: float
    divergent: int
    pareto_k: float = float("nan")
    refits: int = 0
    rhat_limit: float = LARGEST_RHAT

    def __str__(self) -> str:
        """Return the diagnostics as one line."""
        line = (
            f"{self.rungs} rungs of {self.draws} draws, effective sample size "
            f"{self.effective:.0f}, R-hat {self.rhat:.3f}"
        )
        if self.divergent:
            line += f", {self.divergent} divergent"
        if np.isfinite(self.pareto_k):
            line += f", Pareto k {self.pareto_k:.2f}"
        if self.refits:
            line += f", {self.refits} {'row' if self.refits == 1 else 'rows'} refitted"
        return line


def error_of_sum(influence: Array, replicates: bool) -> float:
    r"""Return the standard error of a sum of influence values of shape (rungs, groups, size).

    For independent groups, from the scatter of their sums,
    :math:`G / (G - 1) \sum_g (S_g - \bar S)^2`.  For chains, the sum over the rungs of their
    long-run variances.
    """
    if replicates:
        sums = influence.sum(axis=(0, 2))
        return float(np.sqrt(len(sums) * sums.var(ddof=1)))
    return float(np.sqrt(long_run_variance(influence).sum()))


def long_run_variance(values: Array) -> Array:
    r"""Return the variance of the sum of all draws of chains, shape (..., chains, size) to (...).

    .. math:: Var = N \hat\sigma^2 \tau
    """
    variance, time = autocorrelation_time(values)
    count = values.shape[-2] * values.shape[-1]
    return count * variance * np.maximum(time, 1 / np.log10(max(count, 10)))


def largest_spread(values: Array) -> float:
    """Return the largest standard deviation of rows (rows, draws), from percentiles.

    Outliers have no effect.  If most draws of a row are equal, it is the row's range.
    """
    low, high = np.percentile(values, MIDDLE, axis=1)
    return float((high - low).max()) / 3.29 or float(np.ptp(values, axis=1).max())


def relative_efficiency(chains: Array) -> float:
    r"""Return the effective share of draws of a scalar, (chains, size): :math:`1 / \tau <= 1`."""
    _, time = autocorrelation_time(chains)
    return float(1 / np.maximum(time, 1.0))


def autocorrelation_time(values: Array) -> tuple[Array, Array]:
    r"""Return variance and autocorrelation time of chains (..., chains, size), each (...).

    With autocorrelations :math:`\rho_t` combined over chains and cut off by Geyer's initial
    monotone sequence,

    .. math:: \tau = -1 + 2 \sum_{t} (\rho_{2t} + \rho_{2t+1})

    References
    ----------
    .. [1] A. Vehtari et al., Rank-normalization, folding, and localization: an improved R-hat,
       Bayesian Analysis 16, 2021, section 3.2.
    """
    chains, size = values.shape[-2:]
    if size == 1:
        variance = values[..., 0].var(axis=-1)
        return variance, np.ones_like(variance)
    mean = values.mean(axis=-1, keepdims=True)
    padded = np.fft.rfft(values - mean, 2 * size, axis=-1)
    autocovariance = np.fft.irfft(np.abs(padded) ** 2, axis=-1)[..., :size].mean(axis=-2) / size
    within = autocovariance[..., :1] * size / (size - 1)
    between = mean[..., 0].var(axis=-1, ddof=1)[..., None] if chains > 1 else 0.0
    total = autocovariance[..., :1] + between
    safe = np.where(total > 0, total, 1.0)
    rho = 1 - (within - autocovariance * size / (size - 1)) / safe
    rho[..., 0] = 1.0
    pairs = rho[..., : size // 2 * 2].reshape(*rho.shape[:-1], -1, 2).sum(axis=-1)
    positive = np.cumprod(pairs > 0, axis=-1).astype(bool)
    monotone = np.minimum.accumulate(pairs, axis=-1)
    time = -1 + 2 * np.where(positive, monotone, 0.0).sum(axis=-1)
    return total[..., 0], np.where(total[..., 0] > 0, time, 1.0)


def split_rhat(values: Array) -> float:
    r"""Return R-hat of chains (chains, size), by ranks: the larger of location and of scale.

    With variances B between and W within half chains of N draws,

    .. math:: \hat R^2 = (N - 1 + B / W) / N.

    References
    ----------
    .. [1] A. Vehtari et al., Rank-normalization, folding, and localization: an improved R-hat,
       Bayesian Analysis 16, 2021, section 4.
    """
    size = values.shape[1] // 2
    halves = np.concatenate([values[:, :size], values[:, -size:]])
    if size < 2 or not np.ptp(halves) > 0:
        return 1.0
    return max(_ratio(halves), _ratio(np.abs(halves - np.median(halves))))


def _ratio(values: Array) -> float:
    # Equal values have the mean of their ranks.
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - 0.5 * (count - 1))[place].reshape(values.shape)
    z = special.ndtri((ranks - 0.375) / (values.size + 0.25))
    N, within = values.shape[1], z.var(axis=1, ddof=1).mean()
    if not within > 0:
        return float("inf") if np.ptp(z) > 0 else 1.0
    return float(np.sqrt((N - 1 + N * z.mean(axis=1).var(ddof=1) / within) / N))


def worst_rhat(ladders: Sequence[Ladder]) -> float:
    """Return the largest R-hat of the training risk over pairs and rungs."""
    worst = 1.0
    for ladder in ladders:
        for rung in ladder.trained:
            finite = np.where(
                np.isfinite(rung), rung, np.nanmax(rung, where=np.isfinite(rung), initial=0.0)
            )
            worst = max(worst, split_rhat(finite))
    return worst


def rhat_limit(ladders: Sequence[Ladder]) -> float:
    """Return the limit for the largest R-hat of these ladders if all chains agree."""
    count = sum(len(ladder.trained) for ladder in ladders)
    return rhat_limit_of(ladders[0].trained[0].shape, count, ladders[0].replicates)


def rhat_limit_of(shape: tuple[int, ...], count: int, islands: bool) -> float:
    r"""Return the limit for the largest R-hat of several rungs of (chains, size) if chains agree.

    With m half chains of N draws, R-hat squared is (N - 1 + F) / N, where F has the distribution
    F(m - 1, m (N - 1)) for independent draws.  The largest of c such values exceeds the quantile
    1 - 1 / (200 c) with probability 1 / 200.  An island has a few draws in a row of each of its
    chains: they may have an autocorrelation time of 3, which multiplies F.
    """
    groups, size = shape
    m, N = 2 * groups, size // 2
    if N < 2:
        return LARGEST_RHAT
    largest = special.fdtri(m - 1, m * (N - 1), 1 - 0.005 / count) * (3 if islands else 1)
    return max(LARGEST_RHAT, float(np.sqrt((N - 1 + largest) / N)))


def warn_of(reliability: Reliability, draws_in_all: int) -> None:
    """Warn of each bad diagnostic, with a remedy."""
    if reliability.rhat > reliability.rhat_limit:
        warn(
            f"R-hat of the training risk is {reliability.rhat:.3f}, more than "
            f"{reliability.rhat_limit:.3g}: the chains disagree; raise the sampler's moves or "
            "draws, or reparametrise the model",
            MixingWarning,
        )
    if reliability.divergent > DIVERGENT_SHARE * draws_in_all:
        warn(
            f"{reliability.divergent} transitions diverged: the posterior has regions of high "
            "curvature that are not explored; reparametrise the model or use a tighter prior",
            DivergenceWarning,
        )
    if reliability.overlap < LEAST_OVERLAP:
        warn(
            f"neighbouring rungs overlap by {reliability.overlap:.2g}, less than {LEAST_OVERLAP}: "
            "betas between them are poorly covered; raise overlap or draws",
            OverlapWarning,
        )


def warn_of_pareto(k: Array, most_refits: int) -> None:
    """Warn of rows that cannot be left out by reweighting."""
    bad = np.flatnonzero(~(k <= LARGEST_PARETO_K))
    if len(bad):
        worst = bad[np.argmax(np.where(np.isnan(k[bad]), np.inf, k[bad]))]
        warn(
            f"Pareto k is above {LARGEST_PARETO_K} in {len(bad)} of {len(k)} rows (row {worst}: "
            f"{k[worst]:.2f}), more than the {most_refits} that would be refitted: leaving them "
            "out changes the posterior too much to reweight, their losses are too small and the "
            "choice is wrong; use strategies.KFold, which refits",
            ParetoWarning,
        )
