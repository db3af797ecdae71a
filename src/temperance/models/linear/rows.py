r"""Rows in the coordinates in which the prior is N(0, I) and the noise has unit variance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array, Labels, batches
from temperance.duplicates import members_of
from temperance.models.linear import limits
from temperance.models.linear.singular import by_length, short_rows_are_lost
from temperance.models.linear_predictor import GaussianPrior, row_space

CACHED = 2**17  # elements of a batch that fits into a processor's cache
MANY_ELEMENTS = 2**12  # of rows: from here on Gram matrices and interpolation are faster
MANY_TRAINED = 2**15  # elements of the training rows of all pairs: from here on Grams are faster
LARGE_PROBLEM = 2**17  # elements of rows whose losses take longer than the search itself

LONG = 1e10  # row norm beyond which rows of norm 1 may be lost to rounding

Index = NDArray[np.intp] | slice


@dataclass(frozen=True, eq=False)
class WhitenedRows:
    r"""Rows [Z r] with Z = inputs diag(scale); the inputs are not copied."""

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
        """Return some rows [Z r]; with weights, each times the square root of its weight."""
        inputs = _some(self.inputs, which)
        found = np.empty((len(inputs), self.width + 1))
        np.multiply(inputs, self.scale, out=found[:, :-1])
        found[:, -1] = _some(self.response, which)
        if weights is not None:
            found *= np.sqrt(_some(weights, which))[:, None]
        return found

    @cached_property
    def second_moments(self) -> Array:
        """Unweighted second moments of all rows, shape (k + 1, k + 1)."""
        return self.gram()

    def gram(self, which: Index = slice(None), weights: Array | None = None) -> Array:
        """Return sum_i w_i [z r]'[z r] over some rows, or all, shape (k + 1, k + 1)."""
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
        total[:-1, :-1] *= self.scale[:, None]  # one factor at a time: the square may overflow
        total[:-1, -1] = total[-1, :-1]
        return total

    def grams(
        self, labels: Labels, count: int, weights: Array | None = None
    ) -> tuple[Array, NDArray[np.intp]]:
        """Return the second moments of the rows of each label below ``count``, and their number.

        Their shapes are (count, k + 1, k + 1) and (count,).
        """
        members = members_of(labels, count)
        grams = np.stack([self.gram(each, weights) for each in members])
        return grams, np.array([len(each) for each in members])


def _some(array: Array, which: Index) -> Array:
    """Return some rows; ``take`` is faster, but copies arrays that are not contiguous."""
    if isinstance(which, slice) or not array.flags.c_contiguous:
        return array[which]
    return array.take(which, axis=0)


def rows_of(whole: Array) -> WhitenedRows:
    """Return whitened rows [Z r], shape (n, k + 1), with unit column scales."""
    return WhitenedRows(whole[:, :-1], whole[:, -1], np.ones(whole.shape[1] - 1))


def whitened_rows(
    Z: Array,
    y: Array,
    prior: GaussianPrior,
    noise_variance: float = 1.0,
    expected_variance: float | None = None,
) -> tuple[WhitenedRows, Array | None]:
    r"""Return the rows [Z C, y - Z mu_0] / s in coordinates of their span, and a basis of the span.

    An expected noise variance, where the variance is unknown, sets the tolerance for rounding.

    See :func:`temperance.models.linear_predictor.row_space`.  With more rows than columns and a
    diagonal C the inputs are not copied: the column scales contain C.
    """
    Z, prior = rescaled(Z, prior)
    deviation = float(np.sqrt(noise_variance))
    expected = deviation if expected_variance is None else float(np.sqrt(expected_variance))
    response = _response(Z, y, prior.mean, deviation, expected)
    if prior.root.ndim == 1 and Z.shape[0] >= Z.shape[1]:
        scale = prior.root / deviation
        bound = limits.refuse_inputs(Z, scale)
        return _refuse_lost_rows(WhitenedRows(Z, response, scale), bound), None
    with np.errstate(over="ignore", invalid="ignore"):
        whitened = prior.whiten(Z)
    bound = limits.refuse_inputs(whitened, np.full(Z.shape[1], 1.0 / deviation))
    coordinates, basis = _row_space(whitened)
    rows = WhitenedRows(coordinates, response, np.full(coordinates.shape[1], 1.0 / deviation))
    return _refuse_lost_rows(rows, bound), basis


def _refuse_lost_rows(rows: WhitenedRows, bound: float) -> WhitenedRows:
    """Return the rows; refuse them if short rows are lost in the rounding error of long ones."""
    if bound > LONG and short_rows_are_lost(rows.inputs * rows.scale):
        raise ValueError(
            f"X must have rows that are not lost in the rounding of others, got one of length "
            f"{bound:.2g} in units of the prior's and the noise's standard deviations"
        )
    return rows


def _row_space(rows: Array) -> tuple[Array, Array | None]:
    """Return coordinates of the rows in their span, accurate in every column, and its basis."""
    order = by_length(rows.T) if rows.shape[0] < rows.shape[1] else None
    if order is None:
        return row_space(rows)
    coordinates, basis = row_space(rows[:, order])
    return coordinates, None if basis is None else basis[np.argsort(order)]


def rescaled(Z: Array, prior: GaussianPrior) -> tuple[Array, GaussianPrior]:
    """Return an equivalent model with columns whose squares neither overflow nor vanish."""
    if limits.squares_are_safe(Z):
        return Z, prior
    powers = np.frexp(np.abs(Z).max(axis=0, initial=0.0))[1]  # of two: the factors are exact
    with np.errstate(over="ignore"):
        mean, root = np.ldexp(prior.mean, powers), np.ldexp(prior.root.T, powers).T
    return np.ldexp(Z, -powers), GaussianPrior(mean, root)


def _response(Z: Array, y: Array, mean: Array, deviation: float, expected: float) -> Array:
    """Return (y - Z mu_0) / s; the difference is computed in extended precision."""
    if mean.any():
        with np.errstate(over="ignore", invalid="ignore"):
            predicted = Z.astype(np.longdouble) @ mean.astype(np.longdouble)
        limits.refuse_far_predictions(predicted, y, expected)
        y = (y - predicted).astype(float)
    with np.errstate(over="ignore"):
        response = y / deviation if deviation != 1.0 else y
    limits.refuse_responses(response, "the noise's standard deviation")
    return response
