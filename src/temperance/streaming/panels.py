r"""Functions of beta from their values at a few betas, to about 13 digits.

Risks of linear models are analytic in beta but for singularities at negative betas of at least the
ruler's offset, 1 / (largest eigenvalue): there s = 1 / (1 + beta lambda) has its poles.  In
t = log(beta + offset) these lie at imaginary part pi or beyond.  On a panel of width h in t the
polynomial of degree p through Chebyshev's points has an error of the order

    rho^-p,    rho = x + sqrt(x^2 + 1),    x = 2 pi / h,

that is 1e-14 for h = 3.5 and p = 24.  If no singularity lies beyond -b, for b = 1 / (smallest
eigenvalue), then t = log(beta + offset) - log(1 + beta / b) has the same property, and ends at
log(b / offset) however large beta becomes: many rows then need no more panels than few.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.polynomial import chebyshev

from temperance.data import Array
from temperance.search.log_scale import HUGE, Ruler

WIDTH, DEGREE = 3.5, 24
FARTHER = 1e3


@dataclass(frozen=True)
class Panels:
    """Panels in t from beta = 0 to the upper end of a ruler; neighbours share a node."""

    ruler: Ruler
    degree: int = DEGREE
    widest: float = WIDTH
    largest: float = HUGE  # there is no singularity at betas below -largest

    @property
    def nodes(self) -> Array:
        """Betas at which values are needed, ascending."""
        x = (_points(self.degree)[0][1:] + 1) / 2
        t = (np.arange(self._count)[:, None] + x) * self._width
        begin, growth = self.ruler.offset, np.expm1(t.ravel())
        betas = np.append(0.0, begin * growth / (1 - begin / self.largest * (1 + growth)))
        betas[-1] = self.ruler.upper
        return betas

    def weights(self, beta: Array) -> tuple[Array, Array]:
        """Return matrices from values at the nodes to values and slopes at betas (g,)."""
        upper, p = self.ruler.upper, self.degree
        if beta.size and beta.max() > upper * (1 + 1e-12):
            raise ValueError(
                f"beta must be at most {upper:g}, the largest of the pass over the rows, got "
                f"{float(beta.max())!r}"
            )
        t = self._t(beta)
        panel = np.clip((t / self._width).astype(int), 0, self._count - 1)
        x = np.clip(2 * (t / self._width - panel) - 1, -1.0, 1.0)
        _, transform, derivative = _points(p)
        value = chebyshev.chebvander(x, p) @ transform
        slope = chebyshev.chebvander(x, p - 1) @ derivative
        tail = (self.largest - self.ruler.offset) / (self.largest + beta)
        slope *= (2 / self._width * tail / self.ruler.rate(beta))[:, None]  # dx/dt dt/dbeta
        places = panel[:, None] * p + np.arange(p + 1)
        found = np.zeros((2, len(beta), self._count * p + 1))
        for whole, part in zip(found, (value, slope), strict=True):
            np.put_along_axis(whole, places, part, axis=1)
        return found[0], found[1]

    def resolves(self, values: Array, tolerance: float) -> bool:
        """Return whether the last coefficients on every panel are small beside a function (g,).

        Of several functions, values (g, m), each is compared with the largest.
        """
        _, transform, _ = _points(self.degree)
        places = np.arange(self._count)[:, None] * self.degree + np.arange(self.degree + 1)
        last = np.abs(np.tensordot(transform[-3:], values[places], (1, 1)))
        return bool(last.max() <= tolerance * np.abs(values).max())

    def finer(self) -> Panels:
        """Return panels half as wide that also bear singularities farther out."""
        return replace(self, widest=self.widest / 2, largest=min(FARTHER * self.largest, HUGE))

    def _t(self, beta: Array) -> Array:
        return np.asarray(self.ruler.t(beta) - np.log1p(beta / self.largest), dtype=float)

    @property
    def _end(self) -> float:
        return float(self._t(np.array(self.ruler.upper)))

    @property
    def _count(self) -> int:
        return max(1, math.ceil(self._end / self.widest))

    @property
    def _width(self) -> float:
        return self._end / self._count


@cache
def _points(degree: int) -> tuple[Array, Array, Array]:
    """Return Chebyshev's points in [-1, 1], and maps to the series and that of the derivative."""
    x = chebyshev.chebpts2(degree + 1)
    transform = np.linalg.inv(chebyshev.chebvander(x, degree))
    return x, transform, chebyshev.chebder(transform)
