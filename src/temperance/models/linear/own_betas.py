r"""Innovations at a beta of each row's own, interpolated.

When alpha is held, each prefix has its own beta.  The moments of a block are analytic in
u = log(1 + beta lam_max) with singularities on the lines |Im u| = pi only, so they are interpolated
in u by Chebyshev polynomials whose degree makes the error at most ``TOLERANCE`` of their size;
variance and misfit, sums of positive c_j / (1 + beta lam_j) without zeros off the negative axis, by
their logarithms, since they range over many orders of magnitude.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from temperance.models.linear.innovations import Blocks, Innovations
from temperance.types import Array

TOLERANCE = 1e-11


class OwnBetas(NamedTuple):
    """Chebyshev series of (error, log variance, log misfit) in u: (degree + 1, 3, n, 1)."""

    coefficients: Array
    rate: Array  # (n, 1): the lam_max of u = log(1 + beta lam_max)
    span: Array  # (n, 1): largest u

    def innovations(self, beta: Array) -> Innovations:
        """Predict every row at its own betas (n, g)."""
        position = 2 * np.log1p(beta * self.rate) / self.span - 1
        chain = 2 / self.span * self.rate / (1 + beta * self.rate)
        value, slope = (
            chebyshev.chebval(position, series, tensor=False)
            for series in (self.coefficients, chebyshev.chebder(self.coefficients))
        )
        value[1:] = np.exp(value[1:])
        slope[1:] *= value[1:]
        return Innovations(*value, *(slope * chain))


def interpolate(blocks: Blocks, top: Array) -> OwnBetas:
    """Interpolate the moments of each block for betas from 0 to ``top`` (blocks,)."""
    rate = np.where(blocks.largest > 0, blocks.largest, 1.0)
    span = np.log1p(top * rate)
    degree = _degree(float(span.max()))
    nodes = chebyshev.chebpts1(degree + 1)
    values = np.stack(
        [np.stack(blocks.innovations(np.expm1(span * (node + 1) / 2) / rate)[:3]) for node in nodes]
    )
    values[:, 1:] = np.log(np.maximum(values[:, 1:], np.finfo(float).tiny))
    # Discrete orthogonality on the Chebyshev points.
    vandermonde = chebyshev.chebvander(nodes, degree) * (2.0 / (degree + 1))
    vandermonde[:, 0] /= 2.0
    coefficients = np.tensordot(vandermonde.T, values, axes=1)
    count, size = blocks.rows.shape[:2]
    return OwnBetas(
        coefficients.reshape(degree + 1, 3, count * size, 1),
        *(np.repeat(column, size)[:, None] for column in (rate, span)),
    )


def _degree(span: float) -> int:
    """Smallest degree with error rho^-degree <= TOLERANCE, rho the largest ellipse in the strip."""
    height = 0.9 * np.pi / (span / 2)
    rho = height + np.hypot(1.0, height)
    return int(np.ceil(-np.log(TOLERANCE) / np.log(rho))) + 4
