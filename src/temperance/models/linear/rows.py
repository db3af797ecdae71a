r"""Rows in the coordinates in which the prior is N(0, I) and the noise has unit variance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from temperance.duplicates import members_of
from temperance.models.linear import limits
from temperance.models.linear.singular import by_length, short_rows_are_lost
from temperance.models.linear_predictor import GaussianPrior, row_space
from temperance.types import Array, Labels, batches

CACHED = 2**17  # elements of a chunk that stays in a processor's cache
MANY_ELEMENTS = 2**12  # of rows, from which on Gram matrices and interpolation pay
MANY_TRAINED = 2**15  # elements of the training rows of all pairs, from which on Gram matrices pay
LARGE_PROBLEM = 2**17  # elements of rows whose losses take longer than the search around them

LONG = 1e10  # length of a row beside which those of length 1 are short

Index = NDArray[np.intp] | slice


@dataclass(frozen=True, eq=False)
class Rows:
    r"""Rows [Z r] with Z = inputs diag(scale); the inputs are the caller's own, not copied."""

    inputs: Array  # (n, k)
    response: Array  # (n,)
    scale: Array  # (k,)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.response)

    @property
    def width(self) -> int:
        """The number of coefficients, k."""
        return self.inputs.shape[1]

    @cached_property
    def whole(self) -> Array:
        """All rows [Z r], shape (n, k + 1)."""
        return self.take(slice(None))

    def take(self, which: Index, weights: Array | None = None) -> Array:
        """Return some rows [Z r], scaled by the roots of the weights of all rows."""
        inputs = _some(self.inputs, which)
        found = np.empty((len(inputs), self.width + 1))
        np.multiply(inputs, self.scale, out=found[:, :-1])
        found[:, -1] = _some(self.response, which)
        if weights is not None:
            found *= np.sqrt(_some(weights, which))[:, None]
        return found

    @cached_property
    def second_moments(self) -> Array:
        """Second moments of all rows, each counted once, shape (k + 1, k + 1)."""
        return self.gram()

    def gram(self, which: Index = slice(None), weights: Array | None = None) -> Array:
        """Second moments sum_i w_i [z r]'[z r] of some rows, or all, shape (k + 1, k + 1)."""
        inputs, response = _some(self.inputs, which), _some(self.response, which)
        roots = None if weights is None else np.sqrt(_some(weights, which))
        total = np.zeros((self.width + 1, self.width + 1))
        for part in batches(len(inputs), self.width + 1, CACHED):
            z, r = inputs[part], response[part]
            if roots is not None:
                z, r = z * roots[part, None], r * roots[part]
            total[:-1, :-1] += z.T @ z
            total[-1, :-1] += r @ z
            total[-1, -1] += r @ r
        total[:, :-1] *= self.scale
        total[:-1, :-1] *= self.scale[:, None]  # the square of a scale may overflow
        total[:-1, -1] = total[-1, :-1]
        return total

    def grams(
        self, labels: Labels, count: int, weights: Array | None = None
    ) -> tuple[Array, NDArray[np.intp]]:
        """Second moments of the rows of each label below ``count``, and how many they are.

        Their shapes are (count, k + 1, k + 1) and (count,).
        """
        members = members_of(labels, count)
        grams = np.stack([self.gram(each, weights) for each in members])
        return grams, np.array([len(each) for each in members])


def _some(array: Array, which: Index) -> Array:
    """Return some rows, by ``take`` where that is thrice as fast: elsewhere it copies them all."""
    if isinstance(which, slice) or not array.flags.c_contiguous:
        return array[which]
    return array.take(which, axis=0)


def rows_of(whole: Array) -> Rows:
    """Take whitened rows [Z r], shape (n, k + 1), as they are."""
    return Rows(whole[:, :-1], whole[:, -1], np.ones(whole.shape[1] - 1))


def whitened_rows(
    Z: Array,
    y: Array,
    prior: GaussianPrior,
    noise_variance: float = 1.0,
    expected_variance: float | None = None,
) -> tuple[Rows, Array | None]:
    r"""Rows [Z C, y - Z mu_0] / s in their own span, and the basis of that span.

    What is expected of the variance of the noise, where it is unknown, says which digits matter.

    See :func:`temperance.models.linear_predictor.row_space`.  With more rows than columns and a
    diagonal C the inputs stay as they are: the scale of the columns carries C.
    """
    Z, prior = rescaled(Z, prior)
    deviation = float(np.sqrt(noise_variance))
    expected = deviation if expected_variance is None else float(np.sqrt(expected_variance))
    response = _response(Z, y, prior.mean, deviation, expected)
    if prior.root.ndim == 1 and Z.shape[0] >= Z.shape[1]:
        scale = prior.root / deviation
        bound = limits.refuse_inputs(Z, scale)
        return _unless_lost(Rows(Z, response, scale), bound), None
    with np.errstate(over="ignore", invalid="ignore"):
        whitened = prior.whiten(Z)
    bound = limits.refuse_inputs(whitened, np.full(Z.shape[1], 1.0 / deviation))
    coordinates, basis = _row_space(whitened)
    rows = Rows(coordinates, response, np.full(coordinates.shape[1], 1.0 / deviation))
    return _unless_lost(rows, bound), basis


def _unless_lost(rows: Rows, bound: float) -> Rows:
    """Return rows of bounded length; refuse them where some are rounding beside others."""
    if bound > LONG and short_rows_are_lost(rows.inputs * rows.scale):
        raise ValueError(
            f"X must have rows that are not lost in the rounding of others, got one of length "
            f"{bound:.2g} in units of the prior's and the noise's standard deviations"
        )
    return rows


def _row_space(rows: Array) -> tuple[Array, Array | None]:
    """Coordinates of rows in their own span, exact in every column, and the basis of that span."""
    order = by_length(rows.T) if rows.shape[0] < rows.shape[1] else None
    if order is None:
        return row_space(rows)
    coordinates, basis = row_space(rows[:, order])
    return coordinates, None if basis is None else basis[np.argsort(order)]


def rescaled(Z: Array, prior: GaussianPrior) -> tuple[Array, GaussianPrior]:
    """Return the same model of columns whose squares are neither infinite nor zero."""
    if limits.usual(Z):
        return Z, prior
    powers = np.frexp(np.abs(Z).max(axis=0, initial=0.0))[1]  # of two: the factors are exact
    with np.errstate(over="ignore"):
        mean, root = np.ldexp(prior.mean, powers), np.ldexp(prior.root.T, powers).T
    return np.ldexp(Z, -powers), GaussianPrior(mean, root)


def _response(Z: Array, y: Array, mean: Array, deviation: float, expected: float) -> Array:
    """Return (y - Z mu_0) / s, the difference in more digits than the rest."""
    if mean.any():
        with np.errstate(over="ignore", invalid="ignore"):
            predicted = Z.astype(np.longdouble) @ mean.astype(np.longdouble)
        limits.refuse_far_predictions(predicted, y, expected)
        y = (y - predicted).astype(float)
    with np.errstate(over="ignore"):
        response = y / deviation if deviation != 1.0 else y
    limits.refuse_responses(response, "the noise's standard deviation")
    return response
