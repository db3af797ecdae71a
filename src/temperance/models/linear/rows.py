r"""Rows in the coordinates in which the prior is N(0, I) and the noise has unit variance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from temperance.models.prior import GaussianPrior, row_space
from temperance.types import Array, batches

CACHED = 2**17  # elements of a chunk that stays in a processor's cache

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

    def gram(self, which: NDArray[np.intp] | None = None, weights: Array | None = None) -> Array:
        """Second moments sum_i w_i [z r]'[z r] of some rows, or all, shape (k + 1, k + 1).

        ``which`` ascends.
        """
        k = self.width
        total = np.zeros((k + 1, k + 1))
        inner = total[:-1, :-1]
        count, first = (len(self), 0) if which is None else (len(which), int(which[0]))
        # Neighbours are read where they are; others are gathered.
        apart = None if which is None or which[-1] - first == count - 1 else which
        for part in batches(count, k + 1, CACHED):
            here = slice(first + part.start, first + part.stop)
            rows = here if apart is None else apart[part]
            z, r = _some(self.inputs, rows), _some(self.response, rows)
            if weights is not None:
                root = np.sqrt(_some(weights, rows))
                z, r = z * root[:, None], r * root
            inner += z.T @ z
            total[-1, :-1] += r @ z
            total[-1, -1] += r @ r
        inner *= self.scale
        inner *= self.scale[:, None]
        total[-1, :-1] *= self.scale
        total[:-1, -1] = total[-1, :-1]
        return total


def _some(array: Array, which: Index) -> Array:
    """Return some rows, by ``take`` where that is thrice as fast: elsewhere it copies them all."""
    if isinstance(which, slice) or not array.flags.c_contiguous:
        return array[which]
    return array.take(which, axis=0)


def rows_of(whole: Array) -> Rows:
    """Take whitened rows [Z r], shape (n, k + 1), as they are."""
    return Rows(whole[:, :-1], whole[:, -1], np.ones(whole.shape[1] - 1))


def whitened_rows(
    Z: Array, y: Array, prior: GaussianPrior, noise_variance: float = 1.0
) -> tuple[Rows, Array | None]:
    r"""Rows [Z C, y - Z mu_0] / s in their own span, and the basis of that span.

    See :func:`temperance.models.prior.row_space`.  With more rows than columns and a diagonal C
    the inputs stay as they are: the scale of the columns carries C.
    """
    deviation = np.sqrt(noise_variance)
    residual = y - Z @ prior.mean if prior.mean.any() else y
    response = residual / deviation if deviation != 1.0 else residual
    if prior.root.ndim == 1 and Z.shape[0] >= Z.shape[1]:
        return Rows(Z, response, prior.root / deviation), None
    coordinates, basis = row_space(prior.whiten(Z))
    scale = np.full(coordinates.shape[1], 1.0 / deviation)
    return Rows(coordinates, response, scale), basis
