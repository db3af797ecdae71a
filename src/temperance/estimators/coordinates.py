r"""From inputs x to the rows z of a model, and from its coefficients back to those of x.

The terms t(x) are the inputs themselves, or all monomials of the standardised inputs up to a
degree; z = (1, (t - centre) / unit).  The linear predictor z'theta is then

    theta_0 - sum_j theta_j centre_j / unit_j  +  sum_j (theta_j / unit_j) t_j(x).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, groupby
from math import comb, lgamma, log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from temperance.memory import refuse_too_large
from temperance.posteriors import StudentT
from temperance.types import Array

ENORMOUS = 10**80  # terms, whose number nobody needs to know
COPIES = 4  # of the terms of all rows, at most at a time


@dataclass(frozen=True, eq=False)
class Scale:
    """An affine change of units, column by column: (x - centre) / unit."""

    centre: Array
    unit: Array

    def __call__(self, X: Array) -> Array:
        """Return ``X`` in the new units."""
        return (X - self.centre) / self.unit


def standard_scale(X: Array, weights: Array, centred: bool = True) -> Scale:
    """Return the scale on which columns have mean 0 and variance 1, or mean square 1 about 0."""
    power, count = _power(np.maximum(X.max(axis=0), -X.min(axis=0))), _power(weights.max())
    if np.any(power != 1) or count != 1:
        found = standard_scale(X / power, weights / count, centred)
        return Scale(found.centre * power, found.unit * power)
    if centred:
        scaler = StandardScaler().fit(X, sample_weight=weights)
        return Scale(scaler.mean_, scaler.scale_)
    unit = np.sqrt(np.average(X**2, axis=0, weights=weights))
    return Scale(np.zeros(X.shape[1]), np.where(unit > 0, unit, 1.0))


def _power(size: ArrayLike) -> Array:
    """Return powers of two by which extreme sizes are divided: their squares are numbers then."""
    size = np.asarray(size)
    extreme = (size > 0) & ((size < 1e-100) | (size > 1e100))
    # Powers of two change no digit.
    return np.where(extreme, np.exp2(np.frexp(size)[1] - 1.0), 1.0)


def raw_scale(columns: int) -> Scale:
    """Return the scale that changes nothing."""
    return Scale(np.zeros(columns), np.ones(columns))


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Rows of a model from inputs, and the way back.

    Parameters
    ----------
    inputs : scale of the inputs before powers are taken
    powers : the monomials, or ``None`` for the inputs themselves
    terms : scale of the terms
    intercept : whether the rows begin with a 1
    """

    inputs: Scale
    powers: PolynomialFeatures | None
    terms: Scale
    intercept: bool

    def rows(self, X: Array) -> Array:
        """Return the rows z of the model, shape (n, p)."""
        scaled = self.terms(X if self.powers is None else _expanded(self.powers, self.inputs(X)))
        return np.column_stack([np.ones(len(X)), scaled]) if self.intercept else scaled

    def names(self, inputs: Sequence[str]) -> list[str]:
        """Return the names of the terms."""
        if self.powers is None:
            return list(inputs)
        return [
            _product(factors)
            for degree in range(1, self.powers.degree + 1)
            for factors in combinations_with_replacement(inputs, degree)
        ]

    def coefficients(self, posterior: Any, response: Scale | None = None) -> StudentT:
        """Law of the intercept and then of each term's coefficient, in units of the response."""
        unit, centre = (1.0, 0.0) if response is None else (response.unit[0], response.centre[0])
        marginals = posterior.marginals()
        constant = -self.terms.centre / self.terms.unit
        if self.intercept:
            constant = np.concatenate([[1.0], constant])
        first = posterior.combination(constant[None])
        slopes = unit / self.terms.unit
        skip = int(self.intercept)
        return StudentT(
            np.append(centre + unit * first.location, slopes * marginals.location[skip:]),
            np.append(unit * first.scale, slopes * marginals.scale[skip:]),
            marginals.dof,
        )


def coordinates_of(
    X: Array, weights: Array, degree: int, standardize: bool, intercept: bool
) -> Coordinates:
    """Choose coordinates in which all terms have the same scale, if ``standardize``."""
    if degree == 1:
        inputs, powers, terms = raw_scale(X.shape[1]), None, X
    else:
        inputs = standard_scale(X, weights, intercept) if standardize else raw_scale(X.shape[1])
        _refuse_many_terms(len(X), X.shape[1], degree)
        powers = PolynomialFeatures(degree, include_bias=False).fit(X)
        terms = _expanded(powers, inputs(X))
    columns = terms.shape[1]
    scale = standard_scale(terms, weights, intercept) if standardize else raw_scale(columns)
    return Coordinates(inputs, powers, scale, intercept)


def count_terms(columns: int, degree: int) -> int:
    """Return the number of powers and products of inputs up to a degree, or an enormous number."""
    degree = min(degree, ENORMOUS)
    logarithm = lgamma(columns + degree + 1) - lgamma(columns + 1) - lgamma(degree + 1)
    return comb(columns + degree, degree) - 1 if logarithm < log(ENORMOUS) else ENORMOUS


def _refuse_many_terms(rows: int, columns: int, degree: int) -> None:
    count = count_terms(columns, degree)
    what = f"{count:.3g} powers and products of {columns} columns in each of {rows} rows"
    try:
        refuse_too_large(what, COPIES * rows * count)
    except ValueError as error:
        raise ValueError(f"degree must be small enough to fit, got {degree!r}: {error}") from None


def _expanded(powers: PolynomialFeatures, inputs: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        terms = powers.transform(inputs)
    if not np.isfinite(terms).all():
        raise ValueError(
            f"degree must be small enough for finite powers of X, got {powers.degree!r} for "
            f"numbers up to {float(np.abs(inputs).max())!r}"
        )
    return terms


def _product(factors: Sequence[str]) -> str:
    """Name a product of inputs, like ``"x^2 z"``."""
    counted = ((name, len(list(same))) for name, same in groupby(factors))
    return " ".join(f"{name}^{power}" if power > 1 else name for name, power in counted)
