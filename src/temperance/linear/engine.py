r"""Linear regression at every exponent and every scale of the prior, from one decomposition.

    y = z'theta + noise of variance s2,    theta | s2 ~ N(mu_0, s2 kappa S_0),

with s2 known or inverse gamma (a_0, b_0), and on request a level of flat prior.  In whitened
coordinates, S_0 = C C', t = C'z, r = y - z'mu_0, rows of weights w have the decomposition
diag(sqrt w) (t - mean t) = L diag(s) U', c = L' sqrt(w) (r - mean r).  Only lam = beta kappa enters
a fit: with g = 1 / (1 + lam s^2),

    error of a row     r - mean r - (t - mean t)'U (lam s c g),
    variance           h / beta = (t - mean t)'U diag(kappa g) U'(t - mean t) + 1 / (beta W),
    misfit             Q = rest + sum g c^2,
    log determinant    sum log(1 + lam s^2),
    noise              a = a_0 + beta W / 2 (with a level W - 1),   b = b_0 + beta Q / 2,

the variance in units of s2 and 1 / (beta W) for a level only.  With scales unknown, each kappa of a
grid is weighted by its evidence.

Deleting the weight v of a row, with sqrt-weighted error e and H = v h:

    error e / (1 - H),    variance h / (1 - H) / beta,    misfit Q - e^2 v / w / (1 - H),
    determinant times 1 - H.

All of it is analytic in beta: a table's slopes come from complex betas.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from temperance.data import Array, Data, batches
from temperance.forecasts import log_gamma_half_step
from temperance.models.linear_predictor import GaussianPrior, row_space
from temperance.plans import AnyPlan, Folds, LeaveOneOut, Pairs
from temperance.posteriors.hierarchical import Parts
from temperance.table import LEAST, HeldOut, scanned

LEVEL_LEAST = 1e-8  # beta, instead of 0, where the level has a flat prior
NEGLIGIBLE = 1e-3  # evidence of a scale, relative to the largest, below which it is left out
NEGLIGIBLE_PART = 1e-9  # weight of a component of a posterior
FEW = 2**16  # losses under single scales up to which none is left out
SHARE, CONDITION = 1e-6, 1e8  # of residuals, and of eigenvalues: beyond them rows are decomposed
CANCELS = 1e-9  # share of a leverage's or a misfit's rest that is lost in rounding
VOTES = 2.0  # for Bayes in a stack, beside those for the parameters
EXACT = 1e-24  # share of squares that is rounding
LEAST_FREE = 0.02  # share of rows that parameters leave free, at least
TALL = 2  # rows for each column from which on Gram matrices are decomposed
BUDGET = 2**16  # elements of a batch, which fit into the cache
NEXT_TO_PRIOR, LOWEST = 0.03, 1e-12  # lam s^2 at the lowest beta of a scan; its least value


class Noise(NamedTuple):
    """Known variance of the noise, or, if it is None, the inverse gamma prior (a, b) of it."""

    variance: float | None = None
    a: float = 1.0
    b: float = 1.0


@dataclass(frozen=True, eq=False)
class LinearRows:
    """Rows in whitened coordinates, and what their model assumes.

    Parameters
    ----------
    inputs : T, array of shape (n, r)
    response : r, array of shape (n,)
    level : whether there is a level with a flat prior
    noise : Noise
    scales : kappa, array of shape (k,)
    basis : array of shape (d, r) that spans the rows if they are fewer than their columns
    """

    inputs: Array
    response: Array
    level: bool
    noise: Noise
    scales: Array
    basis: Array | None = None


def linear_rows(
    Z: Array, y: Array, prior: GaussianPrior, noise: Noise, scales: Array, level: bool
) -> LinearRows:
    """Return the whitened rows, in the coordinates of their own span if they are few."""
    response = y - Z @ prior.mean if prior.mean.any() else y
    inputs, basis = row_space(prior.whiten(Z))
    return LinearRows(inputs, response, level, noise, scales, basis)


class Fits(NamedTuple):
    """Decompositions of p training sets."""

    singular: Array  # s, (p, r)
    directions: Array  # U, (p, r, r)
    response: Array  # c, (p, r)
    rest: Array  # squares of the response outside the span, (p,)
    size: Array  # W, (p,)
    centre: Array  # mean t, (p, r)
    mean: Array  # mean r, (p,)


def decompose(rows: LinearRows, weights: Array) -> tuple[Fits, Array | None]:
    """Return the decomposition of all rows with these weights, and L if rows were decomposed."""
    size = weights.sum()
    inputs, response, centre, mean = _centred(rows, weights)
    root = np.sqrt(weights)
    if not np.all(root == 1):
        inputs, response = root[:, None] * inputs, root * response
    n, r = inputs.shape
    if n > TALL * r:
        values, directions = np.linalg.eigh(inputs.T @ inputs)
        squares = np.maximum(values, 0.0)
        singular = np.sqrt(squares)
        if not r or squares[-1] < CONDITION * squares[0]:
            c = directions.T @ (response @ inputs) / singular
            total = response @ response
            rest = total - c @ c
            if rest > SHARE * total or not r:
                parts = (singular, directions, c, rest, size, centre, mean)
                return Fits(*(np.asarray(part)[None] for part in parts)), None
    left, singular, right = np.linalg.svd(inputs, full_matrices=n < r)
    singular = np.where(singular > singular.max(initial=0.0) * max(n, r) * 1e-16, singular, 0.0)
    left = left[:, : len(singular)]
    c = left.T @ response
    outside = response - left @ c
    c += left.T @ outside  # once more, against rounding
    outside = response - left @ c
    if n < r:
        singular, c = (np.concatenate([part, np.zeros(r - n)]) for part in (singular, c))
        left = np.concatenate([left, np.zeros((n, r - n))], axis=1)
    # A direction that no column reaches explains nothing; about the mean the constant is one.
    c, left = np.where(singular > 0, c, 0.0), np.where(singular > 0, left, 0.0)
    outside = response - left @ c
    parts = (singular, right.T, c, outside @ outside, size, centre, mean)
    return Fits(*(np.asarray(part)[None] for part in parts)), left


def _centred(rows: LinearRows, weights: Array) -> tuple[Array, Array, Array, Any]:
    """Return inputs and responses about their weighted means if there is a level, and the means."""
    inputs, response = rows.inputs, rows.response
    if not rows.level:
        return inputs, response, np.zeros(inputs.shape[1]), 0.0
    share = weights / weights.sum()
    centre, mean = share @ inputs, share @ response
    inputs, response = inputs - centre, response - mean
    # Once more: beside a heavy row the others have lost digits.
    again, mean_again = share @ inputs, share @ response
    return inputs - again, response - mean_again, centre + again, mean + mean_again


def decompose_moments(moments: Array, level: bool) -> tuple[Fits, NDArray[np.bool_]]:
    r"""Return decompositions from sums w [1 t r]'[1 t r], (p, r + 2, r + 2).

    Also whether rounding errors of the sums do not matter to each.
    """
    size = moments[:, 0, 0]
    gram, projected, square = moments[:, 1:-1, 1:-1], moments[:, 1:-1, -1], moments[:, -1, -1]
    centre, mean, total = np.zeros(projected.shape), np.zeros(len(size)), square
    longest = np.trace(gram, axis1=1, axis2=2)
    if level:
        centre, mean = moments[:, 0, 1:-1] / size[:, None], moments[:, 0, -1] / size
        gram = gram - size[:, None, None] * centre[:, :, None] * centre[:, None]
        projected = projected - (size * mean)[:, None] * centre
        square = square - size * mean**2
    values, directions = np.linalg.eigh(gram)
    largest = values[:, -1:] if values.shape[1] else np.zeros((len(size), 1))
    lost = values <= largest * values.shape[1] * 1e-15
    singular = np.sqrt(np.where(lost, 0.0, values))
    along = (directions.swapaxes(1, 2) @ projected[..., None])[..., 0]
    c = np.divide(along, singular, out=np.zeros(along.shape), where=~lost)
    rest = square - (c**2).sum(axis=1)
    # Of sums about another centre, what is left about the mean may be rounding.
    safe = (rest > SHARE * total) | (total == 0)
    safe &= ~lost.any(axis=1) & (longest < CONDITION * values.min(axis=1, initial=np.inf))
    return Fits(singular, directions, c, np.maximum(rest, 0.0), size, centre, mean), safe


class Points(NamedTuple):
    """Pairs of beta and scale, in groups of equal beta; first: place of each group's first."""

    beta: Array  # (m,)
    scale: Array  # (m,)
    first: NDArray[np.intp]


def proper(betas: Array, level: bool) -> Array:
    """Return the betas; with a level of flat prior those below the least as the least."""
    return np.where(betas.real < LEVEL_LEAST, LEVEL_LEAST, betas) if level else betas


def log_evidence(
    rows: LinearRows, size: Any, beta: Array, misfit: Array, determinant: Array
) -> Array:
    """Return the logarithm of the evidence, without terms that all scales share."""
    noise = rows.noise
    if noise.variance is not None:
        return -beta * misfit / (2 * noise.variance) - determinant / 2
    a = noise.a + beta * _freedom(rows, size) / 2
    return -a * np.log(noise.b + beta * misfit / 2) - determinant / 2


def _freedom(rows: LinearRows, size: Any) -> Any:
    return np.maximum(size - 1.0, 0.0) if rows.level else size


def losses_of(
    rows: LinearRows,
    score: Any,
    beta: Array,
    error: Array,
    variance: Array,
    misfit: Array,
    size: Any,
) -> Array:
    r"""Return the losses of rows with these errors, variances (units of s2) and misfits.

    Known variance: Student-t becomes Gaussian; with V = 1 + variance

        predictive   [e^2 / (s2 V) + log(2 pi s2 V)] / 2,
        gibbs        [e^2 / s2 + variance + log(2 pi s2)] / 2;

    inverse gamma:

        predictive   -log Student-t(e; 2a degrees, squared scale (b / a) V),
        gibbs        [(a / b) e^2 + variance + log b - digamma(a) + log 2 pi] / 2.

    Other scores are those of :class:`temperance.strategies.SafeBayes`: squared error of a draw, and
    both losses at the posterior means of the coefficients and of the noise variance.
    """
    known, a_0, b_0 = rows.noise
    if known is not None:
        if score == "predictive":
            total = 1 + variance
            return 0.5 * (error**2 / (known * total) + np.log(2 * np.pi * known * total))
        if score == "gibbs":
            return 0.5 * (error**2 / known + variance + np.log(2 * np.pi * known))
        mean_variance = known
    else:
        a, b = a_0 + beta * _freedom(rows, size) / 2, b_0 + beta * misfit / 2
        if score == "predictive":
            ratio = error**2 / (2 * b * (1 + variance))
            constant = 0.5 * np.log(2 * np.pi) - log_gamma_half_step(a)
            return constant + 0.5 * np.log(b * (1 + variance)) + (a + 0.5) * np.log1p(ratio)
        if score == "gibbs":
            constant = np.log(2 * np.pi * b) - special.digamma(a)
            return 0.5 * (a / b * error**2 + variance + constant)
        mean_variance = b / (a - 1)
    if score == "square":
        return error**2 + mean_variance * variance
    if score == "square of the mean":
        return error**2 + 0 * mean_variance
    return 0.5 * (error**2 / mean_variance + np.log(2 * np.pi * mean_variance))


def mixed_over_scales(losses: Array, log_weight: Array, first: Any, score: Any, axis: int) -> Array:
    """Return losses under the average over scales: of densities, or of the losses themselves."""
    top = np.maximum.reduceat(log_weight.real, first, axis=axis)
    count = np.diff(np.append(first, log_weight.shape[axis]))
    log_weight = log_weight - np.repeat(
        top, count, axis=axis
    )  # beside large ones losses lose digits
    total = _log_sum(log_weight, first, axis)
    if score == "predictive":
        return total - _log_sum(log_weight - losses, first, axis)
    weight = np.exp(log_weight - np.repeat(total, count, axis=axis))
    return np.add.reduceat(weight * losses, first, axis=axis)


def _log_sum(values: Array, first: Any, axis: int) -> Array:
    """Return log sum exp over the groups that begin at ``first``."""
    top = np.maximum.reduceat(values.real, first, axis=axis)
    count = np.diff(np.append(first, values.shape[axis]))
    parts = np.exp(values - np.repeat(top, count, axis=axis))
    return top + np.log(np.add.reduceat(parts, first, axis=axis))


class Beside(NamedTuple):
    """Rows beside the decomposition of a training set, times the roots of their weights."""

    left: Array  # (t - mean t)'U / s, (m, r)
    lengths: Array  # squares of it, (r, m)
    outside: Array  # responses outside the span, (m,)
    free: Any  # squares of (t - mean t)'U along directions that no row trains, (m,)
    weights: Array  # (m,)
    deleted: Array  # weight that the training set loses where a row is tested, (m,)


def beside(
    rows: LinearRows, fits: Fits, weights: Array, deleted: Array, left: Array | None = None
) -> Beside:
    """Return rows beside one decomposition, also of other rows; their L, if it is known."""
    root, inputs, response = np.sqrt(weights), rows.inputs, rows.response
    if rows.level:
        inputs, response = inputs - fits.centre[0], response - fits.mean[0]
    if not np.all(root == 1):
        inputs, response = root[:, None] * inputs if left is None else inputs, root * response
    free: Any = 0.0
    if left is None:
        singular, directions = fits.singular[0], fits.directions[0]
        trained = singular > 0
        if not trained.all():
            free = ((inputs @ directions[:, ~trained]) ** 2).sum(axis=1)
        left = inputs @ (directions * np.where(trained, 1 / np.where(trained, singular, 1.0), 0.0))
    outside = response - left @ fits.response[0]
    return Beside(left, left.T**2, outside, free, weights, deleted)


def losses_beside(
    rows: LinearRows, fits: Fits, tested: Beside, score: Any, points: Points
) -> tuple[Array, NDArray[np.bool_]]:
    """Return the losses (g, m) of rows beside a decomposition, each without what is deleted of it.

    Also which of the rows cancel: without them the training set must be decomposed anew.
    """
    left, lengths, outside, free, weights, deleted = tested
    share, first = deleted / weights, points.first
    beta, scale = points.beta[:, None], points.scale[:, None]
    square, c = fits.singular[0] ** 2, fits.response[0]
    g = 1 / (1 + beta * scale * square)
    error = outside + (g * c) @ left.T
    variance = (scale * square * g) @ lengths + scale * free
    if rows.level:
        variance = variance + weights / (beta * fits.size[0])
    slack = 1 - share * (beta * variance)
    if slack.real.min(initial=1.0) < 0.1:  # as a sum of positive terms
        within = 1 - lengths.sum(axis=0)
        if rows.level:
            within = within - weights / fits.size[0]
        slack = 1 - share + share * (np.maximum(within, 0.0) + g @ lengths)
    misfit = (fits.rest[0] + (g @ c**2))[:, None]
    left_over = misfit - share * error**2 / slack
    cancelled = (slack.real < CANCELS) | (left_over.real < CANCELS * misfit.real)
    with np.errstate(divide="ignore", invalid="ignore"):
        error, variance = error / (slack * np.sqrt(weights)), variance / (slack * weights)
    size = fits.size[0] - deleted
    if np.all(size == size[:1]):
        size = size[:1]
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = losses_of(rows, score, beta, error, variance, left_over, size)
        if len(first) < len(beta):
            lam = beta * scale * square
            determinant = np.log1p(lam).sum(axis=1, keepdims=True) + np.log(slack)
            evidence = log_evidence(rows, size, beta, left_over, determinant)
            losses = mixed_over_scales(losses, evidence, first, score, 0)
    return losses, cancelled.any(axis=0)


def every_scale(scales: Array, betas: Array) -> Points:
    """Return all pairs of beta and scale."""
    k = len(scales)
    return Points(np.repeat(betas, k), np.tile(scales, len(betas)), np.arange(len(betas)) * k)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Losses of rows that are left out one at a time, from the decomposition of all.

    Parameters
    ----------
    rows : LinearRows
    weights : weights of all rows (n,)
    deleted : weight that is taken away from each tested row, (m,)
    score : Risk
    tested : places of the tested rows, (m,)
    """

    rows: LinearRows
    weights: Array
    deleted: Array
    score: Any
    tested: NDArray[np.intp] | slice

    @cached_property
    def fits(self) -> Fits:
        """The decomposition of all rows."""
        return self._decomposed[0]

    @cached_property
    def _decomposed(self) -> tuple[Fits, Beside]:
        """Fits, and the tested rows beside them."""
        fits, left = decompose(self.rows, self.weights)
        rows, tested = self.rows, self.tested
        some = replace(rows, inputs=rows.inputs[tested], response=rows.response[tested])
        left = None if left is None else left[tested]
        return fits, beside(some, fits, self.weights[tested], self.deleted, left)

    def points(self, betas: Array, count: int | None = None) -> Points:
        """Return pairs of beta and scale, without scales of negligible evidence.

        With few rows, ``count`` or those tested, all scales are kept.
        """
        found, k = every_scale(self.rows.scales, betas), len(self.rows.scales)
        if k == 1 or k * len(betas) * (len(self.deleted) if count is None else count) <= FEW:
            return found
        beta, scale = found.beta, found.scale
        evidence = self._evidence(beta.real, scale).reshape(-1, k)
        kept = evidence >= evidence.max(axis=1, keepdims=True) + np.log(NEGLIGIBLE)
        first = np.concatenate([[0], np.cumsum(kept.sum(axis=1))[:-1]])
        return Points(beta[kept.ravel()], scale[kept.ravel()], first)

    def _evidence(self, beta: Array, scale: Array) -> Array:
        fits = self.fits
        lam = (beta * scale)[:, None] * fits.singular[0] ** 2
        misfit = fits.rest[0] + (1 / (1 + lam)) @ fits.response[0] ** 2
        determinant = np.log1p(lam).sum(axis=1)
        return log_evidence(self.rows, fits.size[0], beta, misfit, determinant)

    def __call__(self, betas: Array) -> Array:
        """Return the losses at betas (g,), shape (g, m)."""
        points = self.points(proper(betas, self.rows.level))
        losses, cancelled = losses_beside(self.rows, *self._decomposed, self.score, points)
        if cancelled.any():
            some = np.flatnonzero(cancelled)
            losses[:, some] = self._refitted(some)(betas)
        return losses

    def _refitted(self, some: NDArray[np.intp]) -> Any:
        """Return the losses of some tested rows from decompositions without them."""
        places = np.arange(len(self.weights))[self.tested][some]
        train = np.repeat(self.weights[None], len(some), axis=0)
        pair = np.arange(len(some))
        train[pair, places] = np.maximum(train[pair, places] - self.deleted[some], 0.0)
        test = np.zeros(train.shape)
        test[pair, places] = 1.0
        pairs = PairLosses.of(self.rows, Pairs(train, test, train[0].sum()), self.score)
        return lambda betas: pairs(betas)[:, places]


@dataclass(frozen=True, eq=False)
class PairLosses:
    """Losses of rows tested by training sets of any weights, averaged over the pairs.

    Parameters
    ----------
    rows : LinearRows
    fits : Fits of the training sets
    tested, test : places and weights of the tested rows, (p, e), padded by weight 0
    score : Risk
    """

    rows: LinearRows
    fits: Fits
    tested: NDArray[np.intp]
    test: Array
    score: Any

    @classmethod
    def of(cls, rows: LinearRows, plan: AnyPlan, score: Any) -> PairLosses:
        """Return the losses of a plan."""
        pairs = plan.pairs()
        fits = decompose_sets(rows, pairs.likelihood_weights, moments_of(rows, plan))
        return cls(rows, fits, *pairs.tested_rows(), score)

    @property
    def weights(self) -> Array:
        """The test weight of each row, (n,)."""
        total = np.bincount(self.tested.ravel(), self.test.ravel(), len(self.rows.response))
        return total.astype(float)

    def __call__(self, betas: Array) -> Array:
        """Return the mean losses of all rows at betas (g,), shape (g, n)."""
        n, g = len(self.rows.response), len(betas)
        betas = proper(betas, self.rows.level)
        total = np.zeros((g, n), dtype=betas.dtype)
        (p, e), k = self.test.shape, len(self.rows.scales)
        for part in batches(p, max(e, self.rows.inputs.shape[1]) * (g * k + 1), BUDGET):
            losses = self._losses(betas, part)  # (b, e, g)
            if self._every:
                total += np.einsum("beg,be->ge", losses, self.test[part])
            else:
                np.add.at(total.T, self.tested[part], losses * self.test[part][..., None])
        weights = self.weights
        return total / np.where(weights > 0, weights, 1.0)

    @cached_property
    def _every(self) -> bool:
        """Whether all pairs test all rows in order."""
        n = len(self.rows.response)
        return self.tested.shape[1] == n and bool(np.all(self.tested == np.arange(n)))

    def _losses(self, betas: Array, part: slice) -> Array:
        fits = Fits(*(field[part] for field in self.fits))
        tested, scales = self.tested[part], self.rows.scales
        b, e = tested.shape
        beta = np.repeat(betas, len(scales))  # (m,)
        scale = np.tile(scales, len(betas))
        inputs, response = self.rows.inputs[None], self.rows.response[None]
        if not self._every:
            inputs, response = inputs[0, tested], response[0, tested]
        if self.rows.level:
            inputs, response = inputs - fits.centre[:, None], response - fits.mean[:, None]
        along = inputs @ fits.directions  # (b, e, r)
        lam = beta * scale * fits.singular[..., None] ** 2  # (b, r, m)
        g = 1 / (1 + lam)
        error = response[..., None] - along @ (
            beta * scale * (fits.singular * fits.response)[..., None] * g
        )
        variance = along**2 @ (scale * g)
        size = fits.size[:, None]
        if self.rows.level:
            variance = variance + (1 / (beta * size))[:, None]
        misfit = fits.rest[:, None] + (fits.response[:, None] ** 2 @ g)[:, 0]  # (b, m)
        losses = losses_of(
            self.rows, self.score, beta, error, variance, misfit[:, None], size[:, None]
        )
        if len(scales) == 1:
            return losses
        determinant = np.log1p(lam).sum(axis=1)
        evidence = log_evidence(self.rows, size, beta, misfit, determinant)
        first = np.arange(0, len(beta), len(scales))
        return mixed_over_scales(losses, evidence[:, None], first, self.score, 2)


def moments_of(rows: LinearRows, plan: AnyPlan) -> Array:
    """Return sums w [1 t r]'[1 t r] of the training sets of a plan, (p, r + 2, r + 2)."""
    whole = np.column_stack([np.ones(len(rows.response)), rows.inputs, rows.response])
    if rows.level:  # about a common centre, which the decomposition takes back
        whole[:, 1:] -= whole[:, 1:].mean(axis=0)
    q = whole.shape[1]
    if isinstance(plan, Folds):
        root = np.sqrt(plan.weights)
        folds = np.zeros((plan.n_folds, q, q))
        for fold, places in enumerate(plan.members):
            some = root[places, None] * whole[places]
            folds[fold] = some.T @ some
        # Sums over the others, without subtraction.
        before = np.cumsum(folds, axis=0) - 0.0
        after = np.cumsum(folds[::-1], axis=0)[::-1]
        sums = np.zeros_like(folds)
        sums[1:] += before[:-1]
        sums[:-1] += after[1:]
        return sums[plan.start :] * plan.exponents[:, None, None]
    weights = plan.pairs().likelihood_weights
    upper = np.triu_indices(q)
    sums = np.zeros((len(weights), len(upper[0])))
    for part in batches(len(whole), len(upper[0]), BUDGET):
        sums += weights[:, part] @ (whole[part][:, upper[0]] * whole[part][:, upper[1]])
    found = np.zeros((len(weights), q, q))
    found[:, upper[0], upper[1]] = sums
    found[:, upper[1], upper[0]] = sums
    return found


def decompose_sets(rows: LinearRows, weights: Array, moments: Array) -> Fits:
    """Return the decompositions of training sets (p, n), from rows where sums are not enough."""
    fits, safe = decompose_moments(moments, rows.level)
    if rows.level:
        centre, mean = rows.inputs.mean(axis=0), rows.response.mean()
        fits = fits._replace(centre=fits.centre + centre, mean=fits.mean + mean)
    for pair in np.flatnonzero(~safe):
        used = weights[pair] > 0
        some = LinearRows(
            rows.inputs[used], rows.response[used], rows.level, rows.noise, rows.scales
        )
        exact, _ = decompose(some, weights[pair, used])
        for field, value in zip(fits, exact, strict=True):
            field[pair] = value[0]
    return fits


def held_out(
    rows: LinearRows, data: Data, plan: AnyPlan, score: Any, bounds: tuple[float, float]
) -> HeldOut:
    """Return the table of a plan's held-out rows."""
    every = LeftOut(rows, data.weights, data.weights, score, slice(None))
    places, weights = None, data.weights
    at: Any
    exponents = plan.exponents if isinstance(plan, LeaveOneOut) else np.zeros(2)
    same = np.ptp(exponents) == 0 and (exponents[0] == 1 or not rows.level)
    if isinstance(plan, LeaveOneOut) and same:
        places = plan.places
        which: Any = slice(None) if places is None else places
        every = LeftOut(rows, data.weights, plan.deleted[which], score, which)
        at, weights = every, plan.weights[which]
        if plan.exponents[0] != 1:
            at = Scaled(every, float(plan.exponents[0]))
    else:
        at = PairLosses.of(rows, plan, score)
        weights = at.weights
    counts = data.weights if places is None else weights
    return HeldOut(
        scanned(bounds, lowest_beta(every, bounds[1])),
        at,
        weights,
        counts,
        score,
        votes=votes_for_bayes(every),
        analytic=True,
        rows=places,
    )


@dataclass(frozen=True, eq=False)
class Scaled:
    """Losses at multiples of beta."""

    losses: Any
    factor: float

    def __call__(self, betas: Array) -> Array:
        """Return the losses at factor * betas."""
        return self.losses(self.factor * betas)


def lowest_beta(all_rows: LeftOut, upper: float) -> float:
    """Return a beta below which the posterior is next to the prior, at most .001."""
    rows = all_rows.rows
    largest = np.sqrt(rows.scales.max()) * all_rows.fits.singular.max(initial=0.0)
    with np.errstate(over="ignore", divide="ignore"):
        least = NEXT_TO_PRIOR / largest / largest
    lowest = LEVEL_LEAST if rows.level else LOWEST * min(upper, 1.0)
    return float(np.clip(least, lowest, LEAST))


def votes_for_bayes(all_rows: LeftOut) -> float:
    """Return 2 + p / (1 - p / n)^2, with p effective parameters of n observations at beta = 1.

    Held-out losses vary more, the more parameters are fitted to the other rows: errors of
    predictions grow like 1 / (1 - p / n).  Where the responses are fitted exactly, and the variance
    of the noise is unknown, they say nothing about beta, and all votes are for Bayes.
    """
    fits, free = all_rows.fits, all_rows.rows.noise.variance is None
    if free and fits.rest[0] <= EXACT * (fits.rest[0] + fits.response[0] @ fits.response[0]):
        return np.inf
    used, size = parameters_used(all_rows), float(fits.size[0])
    return VOTES + used / max(1 - used / size, LEAST_FREE) ** 2


def parameters_used(all_rows: LeftOut, beta: float = 1.0) -> float:
    """Return the effective number of parameters of the posterior of all rows, with the level."""
    betas, scale, _ = all_rows.points(np.array([beta]))
    weight = special.softmax(all_rows._evidence(betas, scale))
    lam = (betas * scale)[:, None] * all_rows.fits.singular[0] ** 2
    return float(weight @ (lam / (1 + lam)).sum(axis=1)) + all_rows.rows.level


def parts_of(all_rows: LeftOut, betas: Array, weights: Array) -> Parts:
    """Return the posterior as a mixture over betas of given weights and, by evidence, scales."""
    rows, fits = all_rows.rows, all_rows.fits
    beta, scale, first = all_rows.points(betas)
    g = 1 / (1 + (beta * scale)[:, None] * fits.singular[0] ** 2)
    c, size, k = fits.response[0], float(fits.size[0]), len(beta)
    evidence = all_rows._evidence(beta, scale)
    count = np.diff(np.append(first, k))
    weight = np.exp(evidence - np.repeat(_log_sum(evidence, first, 0), count))
    weight *= np.repeat(weights, count)
    known, a, b = rows.noise
    noise, dof = np.full(k, known or 0.0), np.full(k, np.inf)
    if known is None:
        a = a + beta * _freedom(rows, size) / 2
        b = b + beta * (fits.rest[0] + g @ c**2) / 2
        noise, dof = b / a, 2 * a
    parts = Parts(
        weights=weight,
        dof=dof,
        noise=noise,
        scale=scale,
        left=g,
        mean=(beta * scale)[:, None] * fits.singular[0] * c * g,
        level=np.full(k, fits.mean[0]),
        level_variance=1 / (beta * size),
    )
    return parts.take(weight > NEGLIGIBLE_PART * weight.max())
