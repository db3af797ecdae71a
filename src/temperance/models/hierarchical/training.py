r"""Training sets, centred and decomposed, and the rows that each tests.

With weights w and N = sum w, means xbar and ybar, and the singular value decomposition
sqrt(w) (x - xbar) = U s V', a training set enters through s, c = U'sqrt(w)(y - ybar), the remaining
squares of y, N and ybar.  A tested row x enters through z = V'(x - xbar), the squared length of
x - xbar outside the span, and y - ybar.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, batches
from temperance.models.linear.singular import outside, singular_values
from temperance.plans import AnyPlan, LeaveOneOutPlan, PrefixPlan


class TrainingSets(NamedTuple):
    """Statistics of p training sets, in their own r directions; lower ranks are padded with 0."""

    singular: Array  # (p, r)
    response: Array  # (p, r): c
    rest: Array  # (p,): squares of y - ybar outside the span
    exposure: Array  # (p,): N
    mean: Array  # (p,): ybar


class TestedRows(NamedTuple):
    """Tested rows of p training sets, e each; padded with weight 0."""

    along: Array  # (p, e, r): z
    across: Array  # (p, e): squares outside the span
    response: Array  # (p, e): y - ybar
    weight: Array  # (p, e)
    rows: NDArray[np.intp]  # (p, e)


class DecomposedRows(NamedTuple):
    """One training set with its directions."""

    centre: Array  # (d,)
    directions: Array  # (d, r): V
    training: TrainingSets  # p = 1
    left: Array  # (n, r): U


def decompose(X: Array, y: Array, weights: Array, centred: bool) -> DecomposedRows:
    """Decompose the rows of positive weight, centred at their mean or, if not, at 0."""
    share = weights / weights.sum() if centred else np.zeros(len(weights))
    (centre, away), (mean, deviations) = _about_mean(share, X), _about_mean(share, y)
    roots = np.sqrt(weights)
    deviations = roots * deviations
    left, singular, right = singular_values(roots[:, None] * away)
    kept = singular > 0
    left, singular, right = left[:, kept], singular[kept], right[kept]
    response = left.T @ deviations
    residual = deviations - left @ response
    parts = (singular, response, residual @ residual, weights.sum(), mean)
    return DecomposedRows(
        centre, right.T, TrainingSets(*(np.asarray(part)[None] for part in parts)), left
    )


def _about_mean(share: Array, values: Array) -> tuple[Array, Array]:
    """Return the mean of rows and their deviations, of which a heavy row has only tiny ones."""
    mean = share @ values
    away = values - mean
    rounding = share @ away
    return mean + rounding, away - rounding


def trained_and_tested(
    X: Array, y: Array, plan: AnyPlan, centred: bool
) -> Iterator[tuple[TrainingSets, TestedRows]]:
    """Yield decomposed training sets of a plan and their tested rows, in batches."""
    pairs = list(_pairs(plan))
    widest = max(len(tested) for _, _, tested, _ in pairs)
    for part in batches(len(pairs), widest * (min(X.shape) + 1), budget=2**20):
        yield _stacked([_one(X, y, *pair, centred) for pair in pairs[part]])


def _pairs(
    plan: AnyPlan,
) -> Iterator[tuple[NDArray[np.intp], Array, NDArray[np.intp], Array]]:
    """Yield training rows, their exponents per unit of beta, tested rows and their weights."""
    if isinstance(plan, PrefixPlan):
        yield from _prefixes(plan)
        return
    if isinstance(plan, LeaveOneOutPlan):
        every = np.arange(len(plan.weights))
        for i, exponent in enumerate(plan.exponents):
            others = np.delete(every, i)
            yield others, exponent * plan.weights[others], every[i : i + 1], plan.weights[i : i + 1]
        return
    pairs = plan.pairs()
    for train, test in zip(pairs.likelihood_weights, pairs.test, strict=True):
        trained, tested = np.flatnonzero(train), np.flatnonzero(test)
        yield trained, train[trained], tested, test[tested]


def _prefixes(
    plan: PrefixPlan,
) -> Iterator[tuple[NDArray[np.intp], Array, NDArray[np.intp], Array]]:
    ends = plan.ends
    for order in plan.orders:
        exponents = plan.exponents_of(order)
        for end, following in zip(ends, np.append(ends[1:], len(order)), strict=True):
            trained, tested = order[:end], order[end:following]
            exponent = exponents[end - plan.start]
            yield trained, exponent * plan.weights[trained], tested, plan.weights[tested]


def _one(
    X: Array,
    y: Array,
    trained: NDArray[np.intp],
    exponents: Array,
    tested: NDArray[np.intp],
    weight: Array,
    centred: bool,
) -> tuple[TrainingSets, TestedRows]:
    known = decompose(X[trained], y[trained], exponents, centred)
    away = X[tested] - known.centre
    along = away @ known.directions
    across = (outside(known.directions, away, along) ** 2).sum(axis=1)
    response = y[tested] - known.training.mean
    tests = TestedRows(along[None], across[None], response[None], weight[None], tested[None])
    return known.training, tests


def _stacked(parts: list[tuple[TrainingSets, TestedRows]]) -> tuple[TrainingSets, TestedRows]:
    trainings, tests = zip(*parts, strict=True)
    return (
        TrainingSets(*(_padded(field) for field in zip(*trainings, strict=True))),
        TestedRows(*(_padded(field) for field in zip(*tests, strict=True))),
    )


def _padded(parts: tuple[Any, ...]) -> Any:
    """Join arrays of shape (1, ...), with zeros where one is smaller than others."""
    if parts[0].ndim == 1:
        return np.concatenate(parts)
    shape = np.max([part.shape[1:] for part in parts], axis=0)
    stacked = np.zeros((len(parts), *shape), dtype=parts[0].dtype)
    for place, part in zip(stacked, parts, strict=True):
        place[tuple(map(slice, part.shape[1:]))] = part[0]
    return stacked
