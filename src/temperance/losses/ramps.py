r"""Gaussian expectations of ramps, of which straight lines and squares with kinks are made.

With x ~ N(delta, v), s^2 = v and t = delta / s, and phi and Phi the normal density and law,

    E x_+ = delta Phi(t) + s phi(t),        E x_+^2 = (delta^2 + v) Phi(t) + delta s phi(t),

and d/ddelta E x_+^2 = 2 E x_+.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from temperance.data import Array

PEAK: float = (2 * np.pi) ** -0.5
FAR = 40.0  # deviations beyond which the normal density is 0


class Ramp:
    """The ramp x_+ and its expectation's derivatives, each computed when asked for.

    A variance of 0 leaves the function itself, and no density where it bends.
    """

    def __init__(self, delta: Array, variance: Array) -> None:
        self.delta, self.variance = np.broadcast_arrays(delta, variance)
        self.s = np.sqrt(self.variance)
        self.moves = self.s > 0
        safe = np.where(self.moves, self.s, 1.0)
        with np.errstate(over="ignore"):
            t = np.where(self.moves, self.delta / safe, FAR * np.sign(self.delta))
        self.t = np.clip(t, -FAR, FAR)
        self.phi = PEAK * np.exp(-0.5 * self.t**2)
        with np.errstate(over="ignore"):
            self.inverse = np.where(self.moves & (self.phi > 0), 1 / safe, 0.0)

    def square(self) -> Array:
        """Return E x_+^2."""
        law = self.delta * ndtr(self.t) + self.s * self.phi
        return self.delta * law + self.variance * ndtr(self.t)

    def value(self) -> Array:
        """Return E x_+."""
        return np.where(self.t < -FAR + 1, 0.0, self.delta * ndtr(self.t) + self.s * self.phi)

    def first(self) -> Array:
        """Return Phi(t)."""
        return ndtr(self.t)

    def second(self) -> Array:
        """Return phi(t) / s."""
        return self.phi * self.inverse

    def third(self) -> Array:
        """Return -t phi(t) / s^2."""
        return -self.t * self.phi * self.inverse**2

    def fourth(self) -> Array:
        """Return (t^2 - 1) phi(t) / s^3."""
        return (self.t - 1) * (self.t + 1) * self.phi * self.inverse**3
