r"""Multistate reweighting (MBAR): expectations at every beta from draws at a few betas.

The posteriors of one pair are an exponential family in beta whose statistic is the weighted sum of
the training losses, u(theta).  From N_k draws at each of the betas b_k, pooled to N draws u_n,

    D_n = sum_k N_k exp(f_k - b_k u_n),      f_k = -log sum_n exp(-b_k u_n) / D_n,
    E_beta[r] = sum_n W_n(beta) r_n,         W_n(beta) ∝ exp(-beta u_n) / D_n.

References
----------
.. [1] M. Shirts and J. Chodera, Statistically optimal analysis of samples from multiple equilibrium
   states, J. Chem. Phys. 129, 2008.
.. [2] Z. Tan, On a likelihood approach for Monte Carlo integration, JASA 99, 2004.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from temperance.data import Array

TOLERANCE = 1e-10
MOST_STEPS = 200


@dataclass(frozen=True, eq=False)
class MultiState:
    """Draws of one exponential family, reweighted to any beta within their range.

    Parameters
    ----------
    betas : array of shape (rungs,), increasing
    energy : array of shape (draws,)
        The statistic u at every draw of all rungs; infinite if a loss is.
    counts : array of shape (rungs,)
        Number of draws at each beta.
    free : array of shape (rungs,)
        The solution f.
    log_mixture : array of shape (draws,)
        log D at every draw.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> betas = np.array([0.5, 1.0, 2.0])
    >>> u = rng.exponential(1 / betas[:, None], (3, 4000))  # exp(-beta u): the mean is 1 / beta
    >>> state = solve(betas, u)
    >>> print((state.weights(np.array([1.5])) @ u.ravel()).round(1))  # 1 / 1.5
    [0.7]
    """

    betas: Array
    energy: Array
    counts: Array
    free: Array
    log_mixture: Array

    def log_weights(self, beta: Array) -> Array:
        """Return log W, normalised, shape (betas, draws)."""
        beta = np.asarray(beta, dtype=float)
        self.refuse_uncovered(beta)
        log_weight = -tilt(self.energy, beta) - self.log_mixture
        return log_weight - logsumexp(log_weight, axis=1, keepdims=True)

    def weights(self, beta: Array) -> Array:
        """Return W, shape (betas, draws)."""
        return np.exp(self.log_weights(beta))

    def refuse_uncovered(self, beta: Array) -> None:
        """Refuse betas outside the range of the rungs: nothing is extrapolated."""
        outside = beta[(beta < self.betas[0]) | (beta > self.betas[-1] * (1 + 1e-12))]
        if len(outside):
            raise ValueError(
                f"beta must lie within the draws' [{self.betas[0]:g}, {self.betas[-1]:g}], got "
                f"{float(outside[0])!r}"
            )

    @cached_property
    def responsibilities(self) -> Array:
        """Probability that a draw came from each rung, given its energy, (draws, rungs)."""
        return np.exp(
            self.free
            + np.log(self.counts)
            - tilt(self.energy, self.betas).T
            - self.log_mixture[:, None]
        )

    @property
    def overlap(self) -> Array:
        """Overlap matrix: probability that a draw of rung k is assigned to rung l."""
        P = self.responsibilities
        return P.T @ P / self.counts[:, None]

    def influence(self, weights: Array, residuals: Array) -> Array:
        r"""Return the first-order effect of each draw on the error of the mean of ``residuals``.

        .. math:: \phi_n = W_n (r_n - \bar r) + b' H^+ P_n, \qquad
                  b = \sum_n W_n (r_n - \bar r) P_n, \qquad H = diag(\sum_n P_n) - \sum_n P_n P_n'

        with P the responsibilities: the second term is the effect of a draw on the mean through f.

        Parameters
        ----------
        weights, residuals : arrays of shape (draws,)
            W at one beta, and r minus its mean.
        """
        return self.with_free_energies(self.product(weights, residuals))

    def with_free_energies(self, direct: Array) -> Array:
        """Return the direct effects W (r - mean) of each draw plus their effects through f."""
        P = self.responsibilities
        b = P.T @ direct
        H = np.diag(P.sum(axis=0)) - P.T @ P
        # H is singular along constants, and b sums to zero: fix the first f.
        through = np.zeros(len(b))
        if len(b) > 1:
            through[1:] = np.linalg.lstsq(H[1:, 1:], b[1:], rcond=1e-12)[0]
        return direct + P @ through

    @staticmethod
    def product(weights: Array, residuals: Array) -> Array:
        """Return W r; a draw without weight contributes 0 even if r is infinite."""
        return np.where(weights > 0, weights * np.where(weights > 0, residuals, 0.0), 0.0)


def tilt(energy: Array, beta: Array) -> Array:
    """Return beta u, shape (betas, draws); at beta = 0 it is 0 even if u is infinite."""
    finite = np.where(np.isfinite(energy), energy, 0.0)
    tilted = np.multiply.outer(beta, finite)
    infinite = np.flatnonzero(~np.isfinite(energy))
    tilted[np.ix_(beta > 0, infinite)] = np.inf
    return tilted


def solve(betas: Array, trained: Array) -> MultiState:
    """Return the solution of the self-consistent equations by Newton's method, to 1e-10.

    Parameters
    ----------
    betas : array of shape (rungs,), increasing
    trained : array of shape (rungs, ...)
        The statistic u of the draws at each beta.
    """
    betas = np.asarray(betas, dtype=float)
    by_rung = np.asarray(trained, dtype=float).reshape(len(betas), -1)
    if np.any(np.diff(betas) <= 0):
        raise ValueError(f"betas must rise, got {betas.tolist()}")
    if np.isnan(by_rung).any():
        raise ValueError("trained must not be nan")
    counts = np.full(len(betas), float(by_rung.shape[1]))
    energy = by_rung.ravel()
    # A shift of u changes only f; values close to zero have the smallest rounding errors.
    shift = float(np.median(by_rung[-1]))
    centred = energy - shift
    tilted = tilt(centred, betas)
    free = _newton(_first_guess(betas, by_rung - shift), np.log(counts), tilted, counts)
    log_mixture = _log_mixture(free, np.log(counts), tilted)
    return MultiState(betas, centred, counts, free, log_mixture)


def _first_guess(betas: Array, by_rung: Array) -> Array:
    """Return free energies estimated from each rung to the next."""
    steps = [
        np.log(by_rung.shape[1]) - logsumexp(-tilt(u, np.array([step]))[0])
        for u, step in zip(by_rung[:-1], np.diff(betas), strict=True)
    ]
    return np.concatenate([[0.0], np.cumsum(steps)])


def _log_mixture(free: Array, log_counts: Array, tilted: Array) -> Array:
    return logsumexp((free + log_counts)[:, None] - tilted, axis=0)


def _newton(free: Array, log_counts: Array, tilted: Array, counts: Array) -> Array:
    """Return the minimiser of the convex sum_n log D_n - sum_k N_k f_k, with the first f zero."""

    def at(f: Array) -> tuple[float, Array, Array]:
        exponent = (f + log_counts)[:, None] - tilted
        top = exponent.max(axis=0)
        P = np.exp(exponent - top)
        total = P.sum(axis=0)
        P /= total
        return float((top + np.log(total)).sum() - counts @ f), P.sum(axis=1) - counts, P

    objective, gradient, P = at(free)
    for _ in range(MOST_STEPS):
        if np.abs(gradient / counts).max() <= TOLERANCE:
            return free
        H = np.diag(P.sum(axis=1)) - P @ P.T
        step = np.zeros_like(free)
        step[1:] = np.linalg.lstsq(H[1:, 1:], -gradient[1:], rcond=None)[0]
        scale, slope = 1.0, float(gradient @ step)
        while True:
            trial = free + scale * step
            new, gradient_there, P_there = at(trial)
            rounding = 1e-13 * (abs(new) + abs(objective))
            if new <= objective + 1e-4 * scale * slope + rounding or scale < 1e-6:
                break
            scale /= 2
        free, objective, gradient, P = trial, new, gradient_there, P_there
    raise ValueError(
        "the rungs of the ladder do not overlap: neighbouring betas share no draws; add rungs"
    )
