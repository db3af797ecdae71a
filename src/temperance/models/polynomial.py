r"""Polynomial regression: linear regression on the powers of one input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from temperance.models.gaussian_linear import KnownVarianceRegression
from temperance.models.prior import GaussianPrior, gaussian_prior
from temperance.types import Array
from temperance.validation import whole


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
        """Vandermonde rows of the single input."""
        if inputs.shape[1] != 1:
            raise ValueError(f"X must have one column for Polynomial, got {inputs.shape[1]}")
        with np.errstate(over="ignore"):
            powers = np.vander(inputs[:, 0], self.n_powers, increasing=True)
        if not np.isfinite(powers[:, -1]).all():
            largest = float(np.abs(inputs).max())
            raise ValueError(
                f"X must have finite powers up to {self.n_powers - 1}, got entries of {largest!r}"
            )
        return powers

    def prior(self, dimension: int) -> GaussianPrior:
        """Return the prior, of variances 2^-k unless given."""
        cov = 0.5 ** np.arange(dimension) if self.prior_cov is None else self.prior_cov
        return gaussian_prior(self.prior_mean, cov, dimension)
