r"""Polynomial regression: linear regression on the powers of one input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import whole
from temperance.data import Array, Data
from temperance.models.linear.gaussian import KnownVarianceRegression
from temperance.models.linear_predictor import GaussianPrior, gaussian_prior
from temperance.resources import refuse_too_large

COPIES = 4  # copies of the matrix of powers that exist at a time, at most
MOST_HALVES = 1024  # number of powers of one half that are not zero in double precision


@dataclass(frozen=True, eq=False)
class Polynomial(KnownVarianceRegression):
    r"""Regression on the powers 0, ..., n_powers - 1 of one input.

    .. math:: z = (1, x, ..., x^{p - 1}), \qquad \theta_k \sim N(0, 2^{-k}).

    Parameters
    ----------
    n_powers : int
        Number of columns p; the degree is ``n_powers - 1``.
    noise_variance : float
    prior_mean : float or array of shape (n_powers,)
    prior_cov : float, variances, matrix, or ``None`` for the variances ``2**-k``

    Examples
    --------
    >>> Polynomial(n_powers=3).design([2.0, 3.0])
    array([[1., 2., 4.],
           [1., 3., 9.]])
    """

    n_powers: int
    noise_variance: float = 1.0
    prior_mean: ArrayLike = 0.0
    prior_cov: ArrayLike | None = None

    def __post_init__(self) -> None:
        """Refuse fewer than one power."""
        super().__post_init__()
        whole("n_powers", self.n_powers, 1)

    def features(self, inputs: Array) -> Array:
        """Return the powers of the single input as rows."""
        if inputs.shape[1] != 1:
            raise ValueError(f"X must have one column for Polynomial, got {inputs.shape[1]}")
        self._refuse_too_large(len(inputs))
        with np.errstate(over="ignore", invalid="ignore"):
            powers = np.vander(inputs[:, 0], self.n_powers, increasing=True)
        if not np.isfinite(powers).all():
            raise ValueError(
                f"X must have finite powers up to {self.n_powers - 1}, got numbers up to "
                f"{float(np.abs(inputs).max())!r}"
            )
        return powers

    def prior(self, dimension: int) -> GaussianPrior:
        """Return the prior; its variances are 2^-k unless ``prior_cov`` is given."""
        if self.prior_cov is not None:
            return gaussian_prior(self.prior_mean, self.prior_cov, dimension)
        if dimension > MOST_HALVES:
            raise ValueError(
                f"n_powers must be at most {MOST_HALVES} for the prior variances 2^-k, got "
                f"{self.n_powers!r}; give prior_cov for more"
            )
        return gaussian_prior(self.prior_mean, 0.5 ** np.arange(dimension), dimension)

    def check(self, data: Data) -> None:
        """Refuse inputs that do not fit the design, the prior or the memory."""
        self._refuse_too_large(len(data))
        super().check(data)

    def _refuse_too_large(self, rows: int) -> None:
        what = f"n_powers={self.n_powers!r} for {rows} rows"
        refuse_too_large(what, COPIES * rows * min(self.n_powers, 10**100))
