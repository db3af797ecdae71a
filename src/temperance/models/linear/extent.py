r"""The betas at which a risk curve moves, whatever the units of inputs, responses and prior.

A direction of eigenvalue lambda is learnt around beta = 1 / lambda: shrinkage is 1 / (1 + beta
lambda).  Below all of these, and above, the prediction of every row is what it is at 0 and at
infinity.  A noise of unknown variance moves by itself, see
:meth:`temperance.models.linear.noise.InverseGammaVariance.moving`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from temperance.models.linear.spectrum import Spectrum
from temperance.types import Array


class Misfits(NamedTuple):
    """Ranges over training sets, of each the least positive number and the largest.

    The misfit Q grows like the squares of the responses times beta at first, and like the remainder
    times beta, plus the square of the length of the coefficients, at last.
    """

    exposure: tuple[float, float]
    squares: tuple[float, float]
    remainder: tuple[float, float]
    length: tuple[float, float]


def positive_range(*parts: Array | float) -> tuple[float, float]:
    """Return the least positive of some numbers, and the largest; zeros if there is none."""
    numbers = np.concatenate([np.ravel(part) for part in parts])
    numbers = numbers[(numbers > 0) & np.isfinite(numbers)]
    return (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 0.0)


def union(parts: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return the range of several."""
    return positive_range(*(np.array(part) for part in parts))


def misfits_of(spectrum: Spectrum, exposure: Array) -> Misfits:
    """Return the ranges of decomposed training sets."""
    squares = spectrum.projection**2
    length = np.divide(
        squares, spectrum.sigma**2, out=np.zeros(squares.shape), where=spectrum.sigma > 0
    )
    return Misfits(
        positive_range(exposure),
        positive_range(spectrum.remainder + squares.sum(axis=1)),
        positive_range(spectrum.remainder),
        positive_range(length.sum(axis=1)),
    )
