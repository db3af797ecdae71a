r"""The map from inputs x to the rows z of a model, and from its coefficients to those of x.

The terms t(x) are the inputs themselves, or all monomials of the standardised inputs up to a
degree; z = (1, (t - centre) / unit).  The linear predictor z'theta is then

    theta_0 - sum_j theta_j centre_j / unit_j  +  sum_j (theta_j / unit_j) t_j(x).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import comb, log
from typing import Any

import numpy as np
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from temperance.checks import shown
from temperance.data import Array
from temperance.estimators.inputs import refuse_extreme_units
from temperance.posteriors import StudentMixture, StudentT
from temperance.resources import refuse_too_large

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
    """Return the map to mean 0 and variance 1, or to mean square 1 about 0 if not centred."""
    if centred:
        scaler = StandardScaler().fit(X, sample_weight=weights)
        return AffineScale(scaler.mean_, scaler.scale_)
    unit = np.sqrt(np.average(X**2, axis=0, weights=weights))
    return AffineScale(np.zeros(X.shape[1]), np.where(unit > 0, unit, 1.0))


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
    """

    inputs: AffineScale
    powers: PolynomialFeatures | None
    terms: AffineScale
    intercept: bool

    def rows(self, X: Array) -> Array:
        """Return the rows z of the model, shape (n, p)."""
        terms = X if self.powers is None else powers_of(self.powers, self.inputs(X))
        first = int(self.intercept)
        rows = np.ones((len(X), first + terms.shape[1]))
        np.subtract(terms, self.terms.centre, out=rows[:, first:])
        rows[:, first:] /= self.terms.unit
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
        slopes = posterior.mean[skip:] / self.terms.unit
        level = float(posterior.mean[0]) if self.intercept else 0.0
        return np.append(centre + unit * (level - slopes @ self.terms.centre), unit * slopes)

    def coefficients(
        self, posterior: Any, response: AffineScale | None = None
    ) -> StudentT | StudentMixture:
        """Return the distribution of intercept and coefficients, in units of the response."""
        unit, centre = (1.0, 0.0) if response is None else (response.unit[0], response.centre[0])
        marginals = posterior.marginals()
        constant = -self.terms.centre / self.terms.unit
        if self.intercept:
            constant = np.concatenate([[1.0], constant])
        first = posterior.combination(constant[None])
        slopes = unit / self.terms.unit
        skip = int(self.intercept)
        return replace(
            marginals,
            location=np.concatenate(
                [centre + unit * first.location, slopes * marginals.location[..., skip:]], axis=-1
            ),
            scale=np.concatenate(
                [unit * first.scale, slopes * marginals.scale[..., skip:]], axis=-1
            ),
        )


def coordinates_of(
    X: Array, weights: Array, degree: int, standardize: bool, intercept: bool
) -> Coordinates:
    """Return coordinates; with ``standardize`` all terms have the same scale."""
    if degree == 1:
        inputs, powers, terms = raw_scale(X.shape[1]), None, X
    else:
        inputs = standard_scale(X, weights, intercept) if standardize else raw_scale(X.shape[1])
        _refuse_many_terms(len(X), X.shape[1], degree)
        powers = PolynomialFeatures(degree, include_bias=False).fit(X)
        terms = powers_of(powers, inputs(X))
        refuse_extreme_units(f"terms of degree {degree}", terms)
    columns = terms.shape[1]
    scale = standard_scale(terms, weights, intercept) if standardize else raw_scale(columns)
    return Coordinates(inputs, powers, scale, intercept)


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
