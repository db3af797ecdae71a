r"""The map from inputs x to the rows z of a model, and from its coefficients to those of x.

The terms t(x) are the inputs themselves, or all monomials of the standardised inputs up to a
degree; z = (1, (t - centre) / unit).  The linear predictor z'theta is then

    theta_0 - sum_j theta_j centre_j / unit_j  +  sum_j (theta_j / unit_j) t_j(x).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from math import comb, log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import PolynomialFeatures

from temperance.checks import shown
from temperance.data import Array, refuse_too_large
from temperance.estimators.inputs import refuse_extreme_units
from temperance.forecasts import Forecast

ALIKE = 1e-10  # relative difference of sums that equal columns may have
ROUNDING = 1e-13  # deviations relative to the mean that are nothing but rounding errors
ENORMOUS = 10**80  # an upper limit on the number of terms that is reported
COPIES = 4  # copies of the terms of all rows that exist at a time, at most


@dataclass(frozen=True, eq=False)
class AffineScale:
    """An affine map of columns: (x - centre) / unit."""

    centre: Array
    unit: Array

    def __call__(self, X: Array) -> Array:
        """Return ``X`` in the new units."""
        return (X - self.centre) / self.unit


def standard_scale(X: Array, weights: Array, centred: bool = True) -> AffineScale:
    """Return the map to mean 0 and variance 1, or to mean square 1 about 0 if not centred.

    The unit of a column whose deviations are rounding errors is 1.
    """
    share = weights / weights.sum()
    centre = share @ X if centred else np.zeros(X.shape[1])
    away = X - centre
    if centred:  # once more, for columns whose mean is large
        centre = centre + share @ away
        away = X - centre
    unit = np.sqrt(share @ (away * away))
    return AffineScale(centre, np.where(unit > ROUNDING * np.abs(centre), unit, 1.0))


def raw_scale(columns: int) -> AffineScale:
    """Return the identity map."""
    return AffineScale(np.zeros(columns), np.ones(columns))


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The map from inputs to rows of a model, and from its coefficients back.

    Parameters
    ----------
    inputs : scale of the inputs before powers are taken
    powers : the monomials, or ``None`` for the inputs themselves
    terms : scale of the terms
    intercept : whether the rows begin with a 1
    columns : array of shape (terms,)
        The column of the model that a term has, after the intercept; -1 for terms that are
        constant, which take no part.  Equal terms share a column and its coefficient.
    kept : array of shape (columns,)
        The first term of each column of the model.
    share : array of shape (terms,)
        The part of its column's coefficient that each term has.
    """

    inputs: AffineScale
    powers: PolynomialFeatures | None
    terms: AffineScale
    intercept: bool
    columns: NDArray[np.intp]
    kept: NDArray[np.intp] = field(init=False)
    share: Array = field(init=False)

    def __post_init__(self) -> None:
        """Find the columns of the model."""
        used = np.flatnonzero(self.columns >= 0)
        kept = used[np.unique(self.columns[used], return_index=True)[1]]
        copies = np.bincount(self.columns + 1, minlength=2)
        share = np.where(self.columns < 0, 0.0, 1 / copies[self.columns + 1])
        object.__setattr__(self, "kept", kept)
        object.__setattr__(self, "share", share)

    def rows(self, X: Array) -> Array:
        """Return the rows z of the model, shape (n, p)."""
        terms = X if self.powers is None else powers_of(self.powers, self.inputs(X))
        first, kept = int(self.intercept), self.kept
        if len(kept) < terms.shape[1]:
            terms = terms[:, kept]
        rows = np.empty((len(X), first + terms.shape[1]))
        rows[:, :first] = 1.0
        np.subtract(terms, self.terms.centre[kept], out=rows[:, first:])
        rows[:, first:] /= self.terms.unit[kept]
        return rows

    def names(self, inputs: Sequence[str]) -> list[str]:
        """Return the names of the terms."""
        degree = 1 if self.powers is None else self.powers.degree
        return [
            " ".join(f"{inputs[j]}^{power}" if power > 1 else inputs[j] for j, power in counts)
            for size in range(1, degree + 1)
            for term in combinations_with_replacement(range(len(inputs)), size)
            for counts in [Counter(term).items()]
        ]

    def means(self, posterior: Any, response: AffineScale | None = None) -> Array:
        """Return the means of intercept and coefficients of the terms, in units of the response."""
        unit, centre = (1.0, 0.0) if response is None else (response.unit[0], response.centre[0])
        skip = int(self.intercept)
        slopes = self._slopes(posterior.mean[skip:])
        level = float(posterior.mean[0]) if self.intercept else 0.0
        return np.append(centre + unit * (level - slopes @ self.terms.centre), unit * slopes)

    def coefficients(self, posterior: Any, response: AffineScale | None = None) -> Forecast:
        """Return the distribution of intercept and coefficients, in units of the response.

        A constant term takes no part: its coefficient is 0.
        """
        unit, centre = (1.0, 0.0) if response is None else (response.unit[0], response.centre[0])
        marginals = posterior.marginals()
        constant = -self.terms.centre[self.kept] / self.terms.unit[self.kept]
        if self.intercept:
            constant = np.concatenate([[1.0], constant])
        first = posterior.combination(constant[None])
        skip = int(self.intercept)
        location = unit * self._slopes(marginals.location[..., skip:])
        scale = unit * self._slopes(marginals.scale[..., skip:])
        return replace(
            marginals,
            location=np.concatenate([centre + unit * first.location, location], axis=-1),
            scale=np.concatenate([unit * first.scale, scale], axis=-1),
        )

    def _slopes(self, slopes: Array) -> Array:
        """Return numbers for the terms, per unit of each, from those for the model's columns."""
        if not slopes.shape[-1]:
            return np.zeros((*slopes.shape[:-1], len(self.columns)))
        return slopes[..., self.columns] * (self.share / self.terms.unit)


def coordinates_of(
    X: Array, weights: Array, degree: int, standardize: bool, intercept: bool
) -> Coordinates:
    """Return coordinates; with ``standardize`` all terms have the same scale."""
    inputs, powers, terms = raw_scale(X.shape[1]), None, X
    if degree > 1:
        if standardize:
            inputs = standard_scale(X, weights, intercept)
        _refuse_many_terms(len(X), X.shape[1], degree)
        powers = PolynomialFeatures(degree, include_bias=False).fit(X)
        terms = powers_of(powers, inputs(X))
        refuse_extreme_units(f"terms of degree {degree}", terms)
    scale = standard_scale(terms, weights, intercept) if standardize else raw_scale(terms.shape[1])
    return Coordinates(
        inputs, powers, scale, intercept, distinct_columns(terms, weights, intercept)
    )


def distinct_columns(X: Array, weights: Array, intercept: bool) -> NDArray[np.intp]:
    """Return the number of each column among the distinct ones that are not constant, or -1.

    Without an intercept only columns of zeros are constant.  If all are, the first is kept.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0, 2.0, 0.0], [1.0, 3.0, 1.0, 3.0]])
    >>> distinct_columns(X, np.ones(2), intercept=True)
    array([-1,  0,  1,  0])
    """
    if not weights.all():
        X = X[weights > 0]
    constant = np.all(X == (X[:1] if intercept else 0.0), axis=0)
    if constant.all():
        constant[0] = False
    columns = np.full(X.shape[1], -1)
    used = np.flatnonzero(~constant)
    columns[used] = np.arange(len(used))
    # Equal columns have equal sums but for rounding errors.
    places = np.arange(1.0, len(X) + 1)
    sums, sizes = places @ X[:, used], places @ np.abs(X[:, used])
    order = np.argsort(sums, kind="stable")
    alike = np.diff(sums[order]) <= ALIKE * np.maximum(sizes[order][1:], sizes[order][:-1])
    if not alike.any():
        return columns
    first: dict[bytes, int] = {}
    near = np.zeros(len(used), dtype=bool)
    near[order[1:]] |= alike
    near[order[:-1]] |= alike
    for j in used[near]:
        columns[j] = columns[first.setdefault((X[:, j] + 0.0).tobytes(), int(j))]
    columns[used] = np.unique(columns[used], return_inverse=True)[1]
    return columns


def powers_of(powers: PolynomialFeatures, X: Array) -> Array:
    """Return the monomials of inputs; overflow gives infinity."""
    with np.errstate(over="ignore"):
        return powers.transform(X)


def count_terms(columns: int, degree: int) -> int:
    """Return the number of powers and products of inputs up to a degree, at most ENORMOUS."""
    degree = min(degree, ENORMOUS)
    total, fewer = columns + degree, min(columns, degree)
    # comb(total, fewer) >= (total / fewer)^fewer.
    enormous = fewer * log(total / fewer) > log(ENORMOUS)
    return ENORMOUS if enormous else comb(total, fewer) - 1


def _refuse_many_terms(rows: int, columns: int, degree: int) -> None:
    count = count_terms(columns, degree)
    what = f"{count:.3g} powers and products of {columns} columns in each of {rows} rows"
    try:
        refuse_too_large(what, COPIES * rows * count)
    except ValueError as error:
        raise ValueError(
            f"degree must be small enough to fit, got {shown(degree)}: {error}"
        ) from None
