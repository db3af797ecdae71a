r"""Rules: from a table of held-out losses to one beta, or to weights of betas.

``minimum`` takes the beta of smallest mean loss.  ``stack`` mixes the forecasts at all betas, with
the weights that maximise

    sum_i v_i log sum_k w_k exp(-L_ki)  +  c log w_1,

where the held-out rows i vote, and c more votes are for Bayes.  What is said about a choice, its
gain over Bayes and the betas that the rows do not tell apart from it, is computed here as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from temperance.data import Array
from temperance.table import HeldOut, mean_and_error, pooled

FINER = 6  # intervals of a scan that are halved
NODES = 12  # of the polynomial in log beta through a curve next to its smallest value
ROUNDING = 64 * float(np.finfo(float).eps)  # relative differences that may be rounding errors
AT_BOUND = 1e-6  # relative distance at which a minimum counts as being at a bound
ERRORS = 2.0  # standard errors by which the mean loss of a beta must be larger to be excluded
HALVINGS = 10  # of half a decade, to the end of a range
FALL, STEPS, SETTLED, TO_THE_WALL = 0.15, 60, 1e-10, 0.95  # of the barrier in a stack
TENTHS = 10
NEGLIGIBLE = 1e-6  # weight of a beta that is left out of a stack
WORTH = 0.005  # nats a row that a temperature must gain, less one standard error
FEWEST = 5  # tested rows, with fewer of which a gain has no standard error
FEW_ROWS, LARGE_PART = 0.02, 1 / 3

Verdict = Literal["keep", "temper"]


@dataclass(frozen=True, eq=False)
class BetaWeights:
    """Weights of betas.

    Parameters
    ----------
    betas, weights : arrays of shape (k,), increasing, and with sum 1
    """

    betas: Array
    weights: Array

    @property
    def median(self) -> float:
        """The beta with half of the weight on either side, by interpolation in log beta."""
        return self.quantile(0.5)

    def without_negligible(self) -> BetaWeights:
        """Return the betas that have weight, and their weights."""
        kept = self.weights > 0
        return BetaWeights(self.betas[kept], self.weights[kept] / self.weights[kept].sum())

    def mixed(self, losses: Array) -> Array:
        """Return -log of the average of exp(-losses), which are (k, n), shape (n,)."""
        return mixed_losses(losses, self.weights)

    def quantile(self, q: float) -> float:
        """Return the beta below which the share ``q`` of the weight lies."""
        some = self.weights > 0
        weights, betas = self.weights[some], self.betas[some]
        middle = np.cumsum(weights) - weights / 2
        found = np.exp(np.interp(q, middle, np.log(betas)))
        return float(np.clip(found, betas[0], betas[-1]))


class Choice(NamedTuple):
    """The beta of a rule.

    Parameters
    ----------
    beta : a single number; the median, if betas are weighted
    at_bound : whether it lies at a bound
    flat : whether the curve does not depend on beta
    searched : whether the beta is the minimum of a curve
    least : the beta at the minimum, if the rule keeps away from it
    weights : the weights of betas, if several are mixed
    """

    beta: float
    at_bound: bool = False
    flat: bool = False
    searched: bool = True
    least: float | None = None
    weights: BetaWeights | None = None


class Gain(NamedTuple):
    """Mean gain over Bayes in nats a row, its standard error, and whether few rows decide."""

    mean: float
    error: float
    few_rows: bool = False


def minimum(table: HeldOut, bounds: tuple[float, float]) -> Choice:
    """Return the beta of smallest mean loss within bounds.

    The table's betas are scanned, and twice as finely where the curve is low.  Next to the smallest
    values it is a polynomial in log beta, through nodes of Chebyshev.
    """
    lower, upper = bounds
    inside = table.betas[(table.betas > lower) & (table.betas < upper)]
    betas = np.concatenate([[lower], inside, [upper]])
    values = finite(table.risk(betas), betas)
    if np.ptp(values) <= ROUNDING * np.abs(values).max():
        return Choice(float(np.clip(1.0, lower, upper)), flat=True)
    lowest = np.argsort(np.minimum(values[:-1], values[1:]), kind="stable")[:FINER]
    middles = np.sqrt(np.maximum(betas[:-1], betas[1:] / 100) * betas[1:])[np.sort(lowest)]
    betas, values = np.append(betas, middles), np.append(values, table.risk(middles))
    betas, values = betas[np.argsort(betas)], finite(values, betas)[np.argsort(betas)]
    # Of equal ones the last: where 0 is not allowed, curves are constant next to it.
    best = int(np.flatnonzero(values == values.min())[-1])
    found = [(values[best], float(betas[best]))]
    for place in lowest_places(values):
        ends = betas[max(place - 1, 0)], betas[min(place + 1, len(betas) - 1)]
        found.append(between(table, *ends))
    # The betas of the scan come first: others are chosen only if they are lower.
    beta = min(found, key=lambda point: point[0])[1]
    for bound in bounds:
        if abs(beta - bound) <= AT_BOUND * min(bound or betas[1], upper - lower):
            return Choice(bound, at_bound=True)
    return Choice(beta)


def finite(values: Array, betas: Array) -> Array:
    """Return the values; refuse a curve that is not finite."""
    bad = ~np.isfinite(values)
    if bad.any():
        raise ValueError(f"the risk curve is not finite at beta = {float(betas[bad][0]):g}")
    return values


def lowest_places(values: Array) -> Any:
    """Return the places of the two lowest local minima."""
    padded = np.concatenate([[np.inf], values, [np.inf]])
    low = np.flatnonzero((values <= padded[:-2]) & (values <= padded[2:]))
    return low[np.argsort(values[low], kind="stable")][:2]


def between(table: HeldOut, left: float, right: float) -> tuple[float, float]:
    """Return the smallest value of the curve between two betas, and its place."""
    low, high = np.log(max(left, right / 100)), np.log(right)
    nodes = chebyshev.chebpts1(NODES)
    betas = np.exp(low + (high - low) * (nodes + 1) / 2)
    values = finite(table.risk(betas), betas)
    fitted = chebyshev.chebfit(nodes, values - values.min(), NODES - 1)
    turns = chebyshev.chebroots(chebyshev.chebder(fitted))
    turns = turns.real[(np.abs(turns.imag) < 1e-9) & (np.abs(turns.real) < 1)]
    if not len(turns):
        return np.inf, left
    least = int(chebyshev.chebval(turns, fitted).argmin())
    beta = float(np.exp(low + (high - low) * (turns[least] + 1) / 2))
    # The polynomial may be a poor one, so that the curve itself says how low it is.
    return float(table.risk(np.array([beta]))[0]), beta


def stack(table: HeldOut, betas: Array) -> BetaWeights:
    """Return the weights of betas that forecast the held-out rows best."""
    losses = table.at(betas)
    bad = ~np.isfinite(losses).all(axis=1)
    if bad.any():
        raise ValueError(
            "losses of held-out rows must be finite to be stacked, got "
            f"{losses[bad][0][~np.isfinite(losses[bad][0])][0]} at beta = {betas[bad][0]:.3g}"
        )
    weights = best_weights(losses, votes_of_rows(table), table.votes, nearest_to_bayes(betas))
    weights = np.where(weights > NEGLIGIBLE, weights, 0.0)
    return BetaWeights(betas, weights / weights.sum())


def votes_of_rows(table: HeldOut) -> Array:
    """Return the votes of the rows: in all as many as there are observations tested."""
    return table.share * table.counts[table.weights > 0].sum()


def nearest_to_bayes(betas: Array) -> int:
    """Return the place of the beta closest to 1."""
    return int(np.argmin(np.abs(np.log(np.maximum(betas, 1e-300)))))


def best_weights(losses: Array, votes: Array, bayes_votes: float, bayes: int) -> Array:
    r"""Return the weights w that maximise sum_i v_i log sum_k w_k exp(-L_ki) + c log w_bayes.

    Multiplied by a number, weights change the sum by V log of it, V the number of all votes.  So
    the maximum of the sum minus V sum_k w_k has weights of sum 1, and only their signs need care:
    an interior-point method, whose slacks s_k = V - gradient_k satisfy w_k s_k = mu with mu
    falling to zero.

    Parameters
    ----------
    losses : array of shape (k, rows)
    votes : array of shape (rows,)
    bayes_votes : c
    bayes : place of Bayes among the k
    """
    if len(losses) == 1 or np.isinf(bayes_votes):
        return (np.arange(len(losses)) == bayes).astype(float)
    voting = votes > 0
    if not voting.all():
        losses, votes = losses[:, voting], votes[voting]
    total = votes.sum() + bayes_votes
    share, own = votes / total, bayes_votes / total
    densities = np.exp(losses.min(axis=0) - losses)
    k = len(losses)
    weights = np.full(k, 1 / k)
    slack, mu = np.full(k, 1.0), 1 / k
    diagonal = np.arange(k)
    for _ in range(STEPS):
        ratio = densities / (weights @ densities)
        weighted = ratio * share
        gradient = weighted.sum(axis=1)
        hessian = weighted @ ratio.T
        gradient[bayes] += own / weights[bayes]
        hessian[bayes, bayes] += own / weights[bayes] ** 2
        hessian[diagonal, diagonal] += slack / weights
        step = np.linalg.solve(hessian, gradient - 1 + mu / weights)
        d_slack = (mu - slack * step) / weights - slack
        weights = weights + _length(weights, step) * step
        slack = slack + _length(slack, d_slack) * d_slack
        if mu < SETTLED and weights @ slack < 2 * k * SETTLED:
            break
        mu = max(FALL * min(mu, float(weights @ slack) / k), SETTLED / 10)
    return weights / weights.sum()


def _length(values: Array, step: Array) -> float:
    """Return the part of a step, at most 1, after which positive values are still positive."""
    shrinking = float((-step / values).max())
    return min(1.0, TO_THE_WALL / shrinking) if shrinking > 0 else 1.0


def mixed_losses(losses: Array, weights: Array) -> Array:
    """Return -log of sum_k weights_k exp(-losses_k), for losses (k, rows)."""
    used = weights > 0
    if not used.all():
        losses, weights = losses[used], weights[used]
    least = losses.min(axis=0)
    return least - np.log(weights @ np.exp(least - losses))


def cross_fitted(table: HeldOut, betas: Array) -> Array:
    """Return the losses of rows under a stack whose weights are from the other nine tenths.

    Tenths are of rows, or of groups, in order of their losses under Bayes.
    """
    losses, bayes = table.at(betas), nearest_to_bayes(betas)
    votes, order = votes_of_rows(table), losses[bayes]
    if table.groups is not None:
        _, order = np.unique(table.groups, return_inverse=True)
    tested = np.flatnonzero(votes > 0)
    tenth = np.full(losses.shape[1], -1)
    tenth[tested] = np.unique(order[tested], return_inverse=True)[1] % TENTHS
    found = mixed_losses(losses, best_weights(losses, votes, table.votes, bayes))
    for part in range(min(TENTHS, int(tenth.max()) + 1)):
        left_out = tenth == part
        rest = np.where(left_out, 0.0, votes)
        if rest.any():
            weights = best_weights(losses, rest, table.votes, bayes)
            found[left_out] = mixed_losses(losses[:, left_out], weights)
    return found


def gain_of(table: HeldOut, losses: Array) -> Gain:
    """Return the mean gain over Bayes of rows with other losses, paired over rows or groups."""
    gains = table.at(np.ones(1))[0] - losses
    mean, error = mean_and_error(gains, table.share, table.counts, table.groups)
    if np.count_nonzero(table.share) < FEWEST:
        error = float("nan")
    parts = gains * table.share
    if table.groups is not None:
        means, shares = pooled(gains, table.share, table.groups)
        parts = means * shares
    few = max(1, round(FEW_ROWS * len(parts)))
    largest = np.sort(parts)[-few:].sum() if len(parts) > 1 / FEW_ROWS else 0.0
    return Gain(mean, error, bool(mean > 0 and largest > LARGE_PART * mean))


def verdict_of(gain: Gain) -> Verdict:
    """Return "temper" where the gain less one standard error is worth it, or "keep" Bayes."""
    return "temper" if gain.mean - gain.error > WORTH else "keep"


def not_told_apart(
    table: HeldOut, beta: float, bounds: tuple[float, float], errors: float = ERRORS
) -> tuple[float, float]:
    """Return the lowest and the highest beta that the rows do not tell apart from ``beta``."""
    accepted = not_worse(table, beta, errors)

    def end(bound: float) -> float:
        between = table.betas[(table.betas > min(beta, bound)) & (table.betas < max(beta, bound))]
        path = np.concatenate([[beta], between if bound > beta else between[::-1], [bound]])
        if bound == beta:
            return bound
        inside = [True, *accepted(path[1:])]
        if all(inside):
            return bound
        first = inside.index(False)
        return edge(accepted, float(path[first - 1]), float(path[first]))

    return end(bounds[0]), end(bounds[1])


def not_worse(table: HeldOut, beta: float, errors: float) -> Callable[[Array], list[bool]]:
    """Return the function that says which betas have no clearly larger mean loss than ``beta``.

    It is clearly larger if the difference exceeds ``errors`` standard errors, paired over rows or
    groups.
    """
    smallest = table.at(np.array([beta]))[0]

    def accepted(betas: Array) -> list[bool]:
        rows = table.at(betas) - smallest
        pairs = [mean_and_error(row, table.share, table.counts, table.groups) for row in rows]
        each = zip(betas, pairs, strict=True)  # nan rules nothing out
        return [at == beta or not mean > errors * error for at, (mean, error) in each]

    return accepted


def edge(accepted: Any, inside: float, outside: float, halvings: int = HALVINGS) -> float:
    """Return the accepted end after bisecting between an accepted beta and a rejected one."""
    for _ in range(halvings):
        least = max(min(inside, outside), max(inside, outside) * 1e-3)
        middle = float(np.sqrt(least * max(inside, outside)))
        if accepted(np.array([middle]))[0]:
            inside = middle
        else:
            outside = middle
    return inside
