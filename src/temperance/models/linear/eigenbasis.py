r"""The eigenbasis of weighted least squares: one decomposition serves every beta.

In whitened coordinates (prior N(0, I), unit noise) the weighted rows B = W^(1/2) Z have the
singular value decomposition B = A diag(sigma) U'.  With g = A'W^(1/2) r and s = 1/(1 + beta
sigma^2),

    Cov = U diag(s) U',    mean = U x,  x = beta g sigma s,
    Q   = min_u { beta |W^(1/2)(r - Z u)|^2 + |u|^2 } = beta (rho^2 + sum_j g_j^2 s_j),

where rho^2 is the squared part of W^(1/2) r outside the span of A.  Q is a sum of squares, so it is
never negative.

A direction with eigenvalue lambda = sigma^2 is learnt around beta = 1 / lambda.  Far below the
smallest 1 / lambda all predictions are those at beta = 0; far above the largest they are those at
infinity.  An unknown noise variance changes over a range of betas of its own
(:meth:`temperance.models.linear.noise.InverseGammaVariance.changing`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from temperance.data import Array
from temperance.models.linear.singular import outside, singular_values
from temperance.search.log_scale import Scale

if TYPE_CHECKING:
    from temperance.models.linear.moments import MomentSource
    from temperance.models.linear.noise import NoiseModel


class State(NamedTuple):
    """Posterior of each data set at each beta, in its eigenbasis, with derivatives in beta."""

    shrinkage: Array  # (m, k, g): s
    mean: Array  # (m, k, g): x
    misfit: Array  # (m, g): Q
    d_shrinkage: Array
    d_mean: Array
    d_misfit: Array


class Eigenbasis(NamedTuple):
    """Stacked decompositions of m weighted data sets of k coefficients each."""

    sigma: Array  # (m, k)
    vectors: Array  # (m, k, k), columns are the directions U
    projection: Array  # (m, k): g
    remainder: Array  # (m,): rho^2

    @classmethod
    def of(cls, rows: Array) -> Self:
        """Decompose stacked weighted rows [Z r] of shape (m, rows, k + 1)."""
        missing = max(rows.shape[2] - 1 - rows.shape[1], 0)  # rows of zeros, to span k directions
        inputs = np.pad(rows[..., :-1], ((0, 0), (0, missing), (0, 0)))
        response = np.pad(rows[..., -1], ((0, 0), (0, missing)))
        left, sigma, right = singular_values(inputs)
        left = left * (sigma > 0)[:, None, :]  # no projection on directions outside the row space
        projection = np.einsum("mij,mi->mj", left, response)
        spanning = inputs.any(axis=2)
        # Linearly independent rows have no residual: computing it would leave rounding errors.
        independent = (sigma > 0).sum(axis=1) >= spanning.sum(axis=1)
        rest = np.where(spanning, 0.0, response)
        if not independent.all():
            residual = outside(left, response, projection)
            rest = np.where(independent[:, None], rest, residual)
        remainder = (rest**2).sum(axis=1)
        return cls(sigma, right.swapaxes(1, 2), projection, remainder)

    def take(self, which: slice | NDArray[np.intp]) -> Self:
        """Return the decompositions of some of the data sets."""
        return type(self)(*(part[which] for part in self))

    def at(self, beta: Array) -> State:
        """Return the posteriors at betas (g,), or (m, g) with a row for each data set."""
        at = beta[..., None, :]
        lam, cross = (part[:, :, None] for part in (self.sigma**2, self.projection * self.sigma))
        squares, remainder = (self.projection**2)[:, None, :], self.remainder[:, None]
        s = shrinkage(lam, at)
        square, unscaled = s * s, cross * s
        return State(
            shrinkage=s,
            mean=at * unscaled,
            misfit=beta * (remainder + (squares @ s)[:, 0]),
            d_shrinkage=-lam * square,
            d_mean=unscaled * s,
            d_misfit=remainder + (squares @ square)[:, 0],
        )


def shrinkage(eigenvalues: Array, beta: Array | float) -> Array:
    """Return s = 1 / (1 + beta lambda), the share of the prior variance that is left."""
    return 1.0 / (1.0 + beta * eigenvalues)


def joined(bases: list[Eigenbasis]) -> Eigenbasis:
    """Stack decompositions."""
    if len(bases) == 1:
        return bases[0]
    return Eigenbasis(*(np.concatenate(part) for part in zip(*bases, strict=True)))


class Misfits(NamedTuple):
    """Ranges over all training sets: (smallest positive value, largest value) of each quantity.

    For small beta the misfit Q is beta times the squares of the responses.  For large beta it is
    beta times the remainder, plus the squared length of the least-squares coefficients.
    """

    exposure: tuple[float, float]
    squares: tuple[float, float]
    remainder: tuple[float, float]
    length: tuple[float, float]

    @classmethod
    def of(cls, basis: Eigenbasis, exposure: Array) -> Self:
        """Return the ranges of decomposed training sets."""
        squares = basis.projection**2
        length = np.divide(
            squares, basis.sigma**2, out=np.zeros(squares.shape), where=basis.sigma > 0
        )
        return cls(
            positive_range(exposure),
            positive_range(basis.remainder + squares.sum(axis=1)),
            positive_range(basis.remainder),
            positive_range(length.sum(axis=1)),
        )


def positive_range(*parts: Array | float) -> tuple[float, float]:
    """Return the smallest positive number and the largest; (0, 0) if no number is positive."""
    numbers = np.concatenate([np.ravel(part) for part in parts])
    numbers = numbers[(numbers > 0) & np.isfinite(numbers)]
    return (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 0.0)


def union(parts: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return the range that covers several ranges."""
    return positive_range(*(np.array(part) for part in parts))


def changing_betas(source: MomentSource, noise: NoiseModel) -> Scale:
    """Return the range of betas over which a curve changes, to within a few decades."""
    betas = [1 / eigenvalue for eigenvalue in source.eigenvalues if eigenvalue > 0]
    betas += noise.changing(source.misfits)
    return Scale(min(betas), max(betas)) if betas else Scale(1.0)
