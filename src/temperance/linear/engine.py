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

the variance in units of s2, and 1 / (beta W) for a level only.  With scales unknown, each kappa of
a grid is weighted by its evidence.  Deleting the weight v of a row, with H = v h:

    error e / (1 - H),    variance h / (1 - H) / beta,    misfit Q - v e^2 / (1 - H),
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
from temperance.plans import AnyPlan, Folds, LeaveOneOut, Pairs
from temperance.posteriors.hierarchical import Parts
from temperance.table import LEAST, HeldOut, scanned

LEVEL_LEAST = 1e-8  # beta, instead of 0, where the level has a flat prior
NEGLIGIBLE, FEW = 1e-3, 2**16  # evidence of a scale that is left out; losses up to which none is
NEGLIGIBLE_PART = 1e-9  # weight of a component of a posterior
SHARE, CONDITION = 1e-6, 1e8  # of residuals, and of eigenvalues: beyond them rows are decomposed
CANCELS, EXACT = 1e-9, 1e-24  # shares of leverages and misfits, and of squares, that are rounding
VOTES, LEAST_FREE = 2.0, 0.02  # for Bayes beside parameters'; share of rows these leave free
TALL = 2  # rows for each column from which on Gram matrices are decomposed
BUDGET = 2**16  # elements of a batch, which fit into the cache
NEXT_TO_PRIOR, LOWEST = 0.03, 1e-12  # lam s^2 at the lowest beta of a scan; its least value


class Noise(NamedTuple):
    """Known variance of the noise, or, if it is None, the inverse gamma prior (a, b) of it."""

    variance: float | None = None
    a: float = 1.0
    b: float = 1.0

    def at(self, beta: Any, misfit: Any, size: Any) -> tuple[Any, Any]:
        """Return a and b of training sets of a size, without the level's observation."""
        return self.a + beta * size / 2, self.b + beta * misfit / 2


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


class Fits(NamedTuple):
    """Decompositions of p training sets."""

    singular: Array  # s, (p, r)
    directions: Array  # U, (p, r, r)
    response: Array  # c, (p, r)
    rest: Array  # squares of the response outside the span, (p,)
    size: Array  # W, (p,)
    centre: Array  # mean t, (p, r)
    mean: Array  # mean r, (p,)


class Tested(NamedTuple):
    """Tested rows of p training sets, e each.

    Rows of the training set itself come along L, times the roots of their weights: their errors,
    ``base`` + L g c with base the response outside the span, are then sums without cancellation.
    """

    along: Array  # L, or (t - mean t)'U, (p, e, r)
    base: Array  # response outside the span, or r - mean r, (p, e)
    weights: Array | None = None  # (p, e); None for rows that come as they are
    deleted: Array | None = None  # weight that training sets lose where a row is tested, (p, e)


class Points(NamedTuple):
    """Pairs of beta and scale, in groups of equal beta; first: place of each group's first."""

    beta: Array  # (m,)
    scale: Array  # (m,)
    first: NDArray[np.intp]


def every_scale(rows: LinearRows, betas: Array) -> Points:
    """Return all pairs of beta and scale; with a level no beta is below the least."""
    k = len(rows.scales)
    if rows.level:
        betas = np.where(betas.real < LEVEL_LEAST, LEVEL_LEAST, betas)
    return Points(np.repeat(betas, k), np.tile(rows.scales, len(betas)), np.arange(len(betas)) * k)


def row_space(rows: Array) -> tuple[Array, Array | None]:
    r"""Return coordinates of the rows in their own span if they are fewer than their dimension.

    Returns ``(coordinates, basis)`` with ``rows = coordinates @ basis.T``; the basis is ``None``
    when the rows are kept as they are.  Orthogonal to the span a posterior is the prior.
    """
    if rows.shape[1] <= rows.shape[0]:
        return rows, None
    basis, triangle = np.linalg.qr(rows.T)
    return triangle.T, basis


def decompose(rows: LinearRows, weights: Array) -> tuple[Fits, Array | None]:
    """Return the decomposition of all rows with these weights, and L if rows were decomposed."""
    inputs, response, size = rows.inputs, rows.response, weights.sum()
    centre, mean = np.zeros(inputs.shape[1]), 0.0
    if rows.level:
        for _ in range(2):  # once more: beside a heavy row the others have lost digits
            step = weights @ inputs / size, weights @ response / size
            inputs, response = inputs - step[0], response - step[1]
            centre, mean = centre + step[0], mean + step[1]
    if not np.all(weights == 1):
        root = np.sqrt(weights)
        inputs, response = root[:, None] * inputs, root * response
    n, r = inputs.shape
    left = None
    if n > TALL * r:
        values, directions = np.linalg.eigh(inputs.T @ inputs)
        singular = np.sqrt(np.maximum(values, 0.0))
        total = response @ response
        if not r or values[-1] < CONDITION * values[0]:
            c = directions.T @ (response @ inputs) / singular
            rest = total - c @ c
            if rest > SHARE * total or not r:
                return _alone(singular, directions, c, rest, size, centre, mean), None
    left, singular, right = np.linalg.svd(inputs, full_matrices=n < r)
    singular[singular <= singular.max(initial=0.0) * max(n, r) * 1e-16] = 0.0
    if n < r:
        singular = np.concatenate([singular, np.zeros(r - n)])
        left = np.concatenate([left, np.zeros((n, r - n))], axis=1)
    # A direction that no column reaches explains nothing; about the mean the constant is one.
    left = np.where(singular > 0, left, 0.0)
    c = left.T @ response
    c = c + left.T @ (response - left @ c)  # twice, against rounding
    outside = response - left @ c
    return _alone(singular, right.T, c, outside @ outside, size, centre, mean), left


def _alone(*parts: Any) -> Fits:
    """Return the decomposition of a single training set."""
    return Fits(*[np.asarray(part)[None] for part in parts])


def decompose_sets(rows: LinearRows, weights: Array, moments: Array) -> Fits:
    """Return the decompositions of training sets (p, n), from rows where moments are not enough."""
    size, gram = moments[:, 0, 0], moments[:, 1:-1, 1:-1]
    projected, square = moments[:, 1:-1, -1], moments[:, -1, -1]
    centre, mean = np.zeros(projected.shape), np.zeros(len(size))
    far: Any = False
    if rows.level:
        squares = np.diagonal(moments, axis1=1, axis2=2)[:, 1:]
        about = squares - moments[:, 0, 1:] ** 2 / size[:, None]
        far = (about < SHARE * squares).any(axis=1)
        centre, mean = moments[:, 0, 1:-1] / size[:, None], moments[:, 0, -1] / size
        gram = gram - size[:, None, None] * centre[:, :, None] * centre[:, None]
        projected = projected - (size * mean)[:, None] * centre
        square = square - size * mean**2
        centre, mean = centre + rows.inputs.mean(axis=0), mean + rows.response.mean()
    values, directions = np.linalg.eigh(gram)
    largest = values.max(axis=1, initial=0.0)
    lost = values <= largest[:, None] * values.shape[1] * 1e-15
    singular = np.sqrt(np.where(lost, 0.0, values))
    along = (directions.swapaxes(1, 2) @ projected[..., None])[..., 0]
    c = np.divide(along, singular, out=np.zeros(along.shape), where=~lost)
    rest = square - (c**2).sum(axis=1)
    safe = ~lost.any(axis=1) & (largest < CONDITION * values.min(axis=1, initial=np.inf))
    safe = ~far & ((safe & (rest > SHARE * square)) | (square == 0))
    fits = Fits(singular, directions, c, np.maximum(rest, 0.0), size, centre, mean)
    for pair in np.flatnonzero(~safe):
        used = weights[pair] > 0
        some = replace(rows, inputs=rows.inputs[used], response=rows.response[used])
        for field, value in zip(fits, decompose(some, weights[pair, used])[0], strict=True):
            field[pair] = value[0]
    return fits


def moments_of(rows: LinearRows, plan: AnyPlan) -> Array:
    """Return sums w [1 t r]'[1 t r] of the training sets of a plan, (p, r + 2, r + 2)."""
    whole = np.column_stack([np.ones(len(rows.response)), rows.inputs, rows.response])
    if rows.level:  # about a common centre
        whole[:, 1:] -= whole[:, 1:].mean(axis=0)
    q = whole.shape[1]
    if isinstance(plan, Folds):
        folds, root = np.zeros((plan.n_folds, q, q)), np.sqrt(plan.weights)
        for fold, places in enumerate(plan.members):
            some = root[places, None] * whole[places]
            folds[fold] = some.T @ some
        sums = np.zeros_like(folds)  # over the others, without subtraction
        sums[1:] += np.cumsum(folds, axis=0)[:-1]
        sums[:-1] += np.cumsum(folds[::-1], axis=0)[::-1][1:]
        return sums[plan.start :] * plan.exponents[:, None, None]
    weights, upper = plan.pairs().likelihood_weights, np.triu_indices(q)
    flat = np.zeros((len(weights), len(upper[0])))
    for part in batches(len(whole), len(upper[0]), BUDGET):
        flat += weights[:, part] @ (whole[part][:, upper[0]] * whole[part][:, upper[1]])
    found = np.zeros((len(weights), q, q))
    found[:, upper[0], upper[1]] = found[:, upper[1], upper[0]] = flat
    return found


def tested_beside(
    rows: LinearRows, fits: Fits, weights: Array, deleted: Array, left: Array | None = None
) -> Tested:
    """Return rows of one training set, along L, which is computed if it is not known."""
    root, inputs, response = np.sqrt(weights), rows.inputs, rows.response
    if rows.level:
        inputs, response = inputs - fits.centre[0], response - fits.mean[0]
    if left is None:
        singular = fits.singular[0]
        steps = np.divide(1.0, singular, out=np.zeros(len(singular)), where=singular > 0)
        left = root[:, None] * (inputs @ (fits.directions[0] * steps))
    base = root * response - left @ fits.response[0]
    return Tested(left[None], base[None], weights[None], deleted[None])


def losses_at(
    rows: LinearRows, fits: Fits, tested: Tested, score: Any, points: Points
) -> tuple[Array, NDArray[np.bool_]]:
    """Return the losses of tested rows (p, g, e), each without what is deleted of it.

    Also which rows cancel, (p, e): without them the training set must be decomposed anew.
    """
    beta, scale = points.beta[:, None], points.scale[:, None]
    singular, c = fits.singular[:, None], fits.response[:, None]
    lam = beta * scale * singular**2
    g = 1 / (1 + lam)
    along, base, weights, deleted = tested
    if weights is None:
        effect, spread = -beta * scale * singular * c * g, scale * g
        weights = np.ones((1, 1))
    else:
        effect, spread = g * c, scale * singular**2 * g
    along = along.swapaxes(1, 2)
    lengths, weights = along**2, weights[:, None]
    error = base[:, None] + effect @ along
    variance = spread @ lengths
    size = fits.size[:, None, None]
    if rows.level:
        variance = variance + weights / (beta * size)
    misfit = (fits.rest[:, None] + (g * c**2).sum(axis=2))[..., None]
    determinant = np.log1p(lam).sum(axis=2)[..., None] if len(rows.scales) > 1 else 0.0
    cancelled = np.zeros(base.shape, dtype=bool)
    if deleted is not None:
        share = deleted[:, None] / weights
        slack = 1 - share * (beta * variance)
        if slack.real.min(initial=1.0) < 0.1:  # as a sum of positive terms
            within = 1 - lengths.sum(axis=1, keepdims=True)
            if rows.level:
                within = within - weights / size
            slack = 1 - share + share * (np.maximum(within, 0.0) + g @ lengths)
        whole, size = misfit, size - deleted[:, None]
        misfit = whole - share * error**2 / slack
        cancelled = ((slack.real < CANCELS) | (misfit.real < CANCELS * whole.real)).any(axis=1)
        if np.all(size == size[..., :1]):
            size = size[..., :1]
        with np.errstate(divide="ignore", invalid="ignore"):
            error, variance = error / slack, variance / slack
            determinant = determinant + np.log(slack) if len(rows.scales) > 1 else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        error, variance = error / np.sqrt(weights), variance / weights
        free = np.maximum(size - 1.0, 0.0) if rows.level else size
        losses = losses_of(rows.noise, score, beta, error, variance, misfit, free)
        if len(rows.scales) > 1:
            evidence = log_evidence(rows.noise, free, beta, misfit, determinant)
            losses = mixed_over_scales(losses, evidence, points.first, score)
    return losses, cancelled


def log_evidence(noise: Noise, size: Any, beta: Any, misfit: Array, determinant: Any) -> Array:
    """Return the logarithm of the evidence, without terms that all scales share."""
    if noise.variance is not None:
        return -beta * misfit / (2 * noise.variance) - determinant / 2
    a, b = noise.at(beta, misfit, size)
    return -a * np.log(b) - determinant / 2


def losses_of(
    noise: Noise, score: Any, beta: Array, error: Array, variance: Array, misfit: Array, size: Any
) -> Array:
    r"""Return the losses of rows with these errors, variances (units of s2) and misfits.

    With V = 1 + variance, for a known variance and for an inverse gamma,

        predictive   [e^2 / (s2 V) + log(2 pi s2 V)] / 2,
                     -log Student-t(e; 2a degrees, squared scale (b / a) V),
        gibbs        [e^2 / s2 + variance + log(2 pi s2)] / 2,
                     [(a / b) e^2 + variance + log b - digamma(a) + log 2 pi] / 2.

    Other scores are those of :class:`temperance.strategies.SafeBayes`: squared error of a draw, and
    both losses at the posterior means of the coefficients and of the noise variance.
    """
    known = noise.variance
    if known is not None:
        if score == "predictive":
            total = known * (1 + variance)
            return 0.5 * (error**2 / total + np.log(2 * np.pi * total))
        if score == "gibbs":
            return 0.5 * (error**2 / known + variance + np.log(2 * np.pi * known))
        expected: Any = known
    else:
        a, b = noise.at(beta, misfit, size)
        if score == "predictive":
            ratio = error**2 / (2 * b * (1 + variance))
            constant = 0.5 * np.log(2 * np.pi) - log_gamma_half_step(a)
            return constant + 0.5 * np.log(b * (1 + variance)) + (a + 0.5) * np.log1p(ratio)
        if score == "gibbs":
            constant = np.log(2 * np.pi * b) - special.digamma(a)
            return 0.5 * (a / b * error**2 + variance + constant)
        expected = b / (a - 1)
    if score == "square":
        return error**2 + expected * variance
    if score == "square of the mean":
        return error**2
    return 0.5 * (error**2 / expected + np.log(2 * np.pi * expected))


def mixed_over_scales(losses: Array, log_weight: Array, first: Any, score: Any) -> Array:
    """Return losses (p, g, e) averaged over scales: their densities, or the losses themselves."""
    count = np.diff(np.append(first, losses.shape[1]))
    top = np.maximum.reduceat(log_weight.real, first, axis=1)
    log_weight = log_weight - np.repeat(top, count, axis=1)  # beside large ones losses lose digits
    total = log_sum(log_weight, first)
    if score == "predictive":
        return total - log_sum(log_weight - losses, first)
    weight = np.exp(log_weight - np.repeat(total, count, axis=1))
    return np.add.reduceat(weight * losses, first, axis=1)


def log_sum(values: Array, first: Any) -> Array:
    """Return log sum exp over the groups of the second axis that begin at ``first``."""
    top = np.maximum.reduceat(values.real, first, axis=1)
    count = np.diff(np.append(first, values.shape[1]))
    parts = np.exp(values - np.repeat(top, count, axis=1))
    return top + np.log(np.add.reduceat(parts, first, axis=1))


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Losses of rows that are left out one at a time, from the decomposition of all.

    Parameters
    ----------
    rows : LinearRows
    weights : weights of all rows (n,)
    deleted : weight that is taken away from each tested row, (m,)
    score : Risk
    places : of the tested rows, (m,); by default all
    factor : on beta, of the exponents of the others
    """

    rows: LinearRows
    weights: Array
    deleted: Array
    score: Any
    places: NDArray[np.intp] | None = None
    factor: float = 1.0

    @cached_property
    def decomposed(self) -> tuple[Fits, Tested]:
        """The decomposition of all rows, and the tested ones."""
        fits, left = decompose(self.rows, self.weights)
        rows, weights, places = self.rows, self.weights, self.places
        if places is not None:
            rows = replace(rows, inputs=rows.inputs[places], response=rows.response[places])
            weights, left = weights[places], None if left is None else left[places]
        return fits, tested_beside(rows, fits, weights, self.deleted, left)

    def points(self, betas: Array, count: int | None = None) -> tuple[Points, Array]:
        """Return pairs of beta and scale, and the logarithms of their weights, (m,).

        Scales of negligible evidence are left out, unless rows, ``count`` or the tested, are few.
        """
        fits, _ = self.decomposed
        points, k = every_scale(self.rows, betas), len(self.rows.scales)
        if k == 1:
            return points, np.zeros(len(betas))
        beta, lam = points.beta.real, (points.beta.real * points.scale)[:, None]
        lam = lam * fits.singular[0] ** 2
        misfit = fits.rest[0] + (1 / (1 + lam)) @ fits.response[0] ** 2
        size = max(float(fits.size[0]) - 1, 0.0) if self.rows.level else fits.size[0]
        evidence = log_evidence(self.rows.noise, size, beta, misfit, np.log1p(lam).sum(axis=1))
        evidence = evidence.reshape(-1, k)
        evidence -= special.logsumexp(evidence, axis=1, keepdims=True)
        if k * len(betas) * (len(self.deleted) if count is None else count) <= FEW:
            return points, evidence.ravel()
        kept = evidence >= evidence.max(axis=1, keepdims=True) + np.log(NEGLIGIBLE)
        first = np.concatenate([[0], np.cumsum(kept.sum(axis=1))[:-1]])
        some = kept.ravel()
        return Points(points.beta[some], points.scale[some], first), evidence[kept]

    def __call__(self, betas: Array) -> Array:
        """Return the losses at betas (g,), shape (g, m)."""
        points, _ = self.points(self.factor * betas)
        fits, tested = self.decomposed
        count = len(self.deleted)
        losses = np.empty((len(betas), count), dtype=np.result_type(betas, 1.0))
        cancelled = np.empty(count, dtype=bool)
        for part in batches(count, len(points.beta), BUDGET // 2):
            rows = Tested(*[each[:, part] for each in tested if each is not None])
            found, lost = losses_at(self.rows, fits, rows, self.score, points)
            losses[:, part], cancelled[part] = found[0], lost[0]
        if cancelled.any():
            some = np.flatnonzero(cancelled)
            places = some if self.places is None else self.places[some]
            train = np.repeat(self.weights[None], len(some), axis=0)
            pair, test = np.arange(len(some)), np.zeros(train.shape)
            train[pair, places] = np.maximum(train[pair, places] - self.deleted[some], 0.0)
            test[pair, places] = 1.0
            refitted = PairLosses.of(self.rows, Pairs(train, test, 1.0), self.score)
            losses[:, some] = refitted(self.factor * betas)[:, places]
        return losses


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
        rows, n = self.rows, len(self.rows.response)
        points = every_scale(rows, betas)
        total = np.zeros((len(betas), n), dtype=np.result_type(betas, 1.0))
        every = self.tested.shape[1] == n and bool(np.all(self.tested == np.arange(n)))
        size = max(self.test.shape[1], rows.inputs.shape[1]) * (len(points.beta) + 1)
        for part in batches(len(self.test), size, BUDGET):
            fits, inputs, response = Fits(*[f[part] for f in self.fits]), rows.inputs, rows.response
            if not every:
                inputs, response = inputs[self.tested[part]], response[self.tested[part]]
            if rows.level:
                inputs, response = inputs - fits.centre[:, None], response - fits.mean[:, None]
            tested = Tested(inputs @ fits.directions, np.atleast_2d(response))
            losses, _ = losses_at(rows, fits, tested, self.score, points)
            if every:
                total += np.einsum("bge,be->ge", losses, self.test[part])
            else:
                weighted = losses * self.test[part][:, None]
                np.add.at(total.T, self.tested[part], weighted.swapaxes(1, 2))
        weights = self.weights
        return total / np.where(weights > 0, weights, 1.0)


def held_out(
    rows: LinearRows, data: Data, plan: AnyPlan, score: Any, bounds: tuple[float, float]
) -> HeldOut:
    """Return the table of a plan's held-out rows."""
    at: Any = None
    places, weights, every = None, data.weights, LeftOut(rows, data.weights, data.weights, score)
    if isinstance(plan, LeaveOneOut):
        factor = 1.0 if plan.transfer == "beta" else float(plan.exponents[0])
        if factor == 1 or (np.all(plan.exponents == factor) and not rows.level):
            places, deleted = plan.places, plan.deleted
            if places is not None:
                weights, deleted = weights[places], deleted[places]
            at = every = LeftOut(rows, data.weights, deleted, score, places, factor)
    if at is None:
        at = PairLosses.of(rows, plan, score)
        weights = at.weights
    fits, _ = every.decomposed
    least = LEVEL_LEAST if rows.level else LOWEST * min(bounds[1], 1.0)
    largest = np.sqrt(rows.scales.max()) * fits.singular.max(initial=0.0)
    with np.errstate(over="ignore", divide="ignore"):
        lowest = float(np.clip(NEXT_TO_PRIOR / largest / largest, least, LEAST))
    return HeldOut(
        scanned(bounds, lowest),
        at,
        weights,
        data.weights if places is None else weights,
        score,
        votes=votes_for_bayes(every),
        analytic=True,
        rows=places,
    )


def votes_for_bayes(all_rows: LeftOut) -> float:
    """Return 2 + p / (1 - p / n)^2, with p effective parameters of n observations at beta = 1.

    Held-out losses vary more, the more parameters are fitted to the other rows: errors of
    predictions grow like 1 / (1 - p / n).  Where the responses are fitted exactly, and the variance
    of the noise is unknown, they say nothing about beta, and all votes are for Bayes.
    """
    fits, rows = all_rows.decomposed[0], all_rows.rows
    fitted, free = fits.response[0] @ fits.response[0], rows.noise.variance is None
    exact = fits.rest[0] <= EXACT * (fits.rest[0] + fitted)
    if free and exact and len(rows.response) > np.count_nonzero(fits.singular) + rows.level:
        return np.inf
    points, log_weight = all_rows.points(np.ones(1))
    lam = points.scale[:, None] * fits.singular[0] ** 2
    used = float(np.exp(log_weight) @ (lam / (1 + lam)).sum(axis=1)) + rows.level
    return VOTES + used / max(1 - used / float(fits.size[0]), LEAST_FREE) ** 2


def parts_of(all_rows: LeftOut, betas: Array, weights: Array) -> Parts:
    """Return the posterior as a mixture over betas of given weights and, by evidence, scales."""
    fits, noise = all_rows.decomposed[0], all_rows.rows.noise
    (beta, scale, first), log_weight = all_rows.points(betas)
    weight = np.exp(log_weight) * np.repeat(weights, np.diff(np.append(first, len(beta))))
    kept = weight > NEGLIGIBLE_PART * weight.max()
    beta, scale, weight = beta[kept], scale[kept], weight[kept]
    g = 1 / (1 + (beta * scale)[:, None] * fits.singular[0] ** 2)
    c, size, k = fits.response[0], float(fits.size[0]), len(beta)
    variance, dof = np.full(k, noise.variance or 0.0), np.full(k, np.inf)
    if noise.variance is None:
        free = max(size - 1, 0.0) if all_rows.rows.level else size
        a, b = noise.at(beta, fits.rest[0] + g @ c**2, free)
        variance, dof = b / a, 2 * a
    return Parts(
        weights=weight / weight.sum(),
        dof=dof,
        noise=variance,
        scale=scale,
        left=g,
        mean=(beta * scale)[:, None] * fits.singular[0] * c * g,
        level=np.full(k, fits.mean[0]),
        level_variance=1 / (beta * size) if all_rows.rows.level else np.zeros(k),
    )
