r"""The mean of a Gaussian with known variance: linear regression on a constant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import as_inputs
from temperance.data import Array
from temperance.models.linear.gaussian import KnownVarianceRegression


@dataclass(frozen=True, eq=False)
class GaussianMean(KnownVarianceRegression):
    r"""The unknown mean of observations with known variance.

    .. math:: l(\theta, y) = (y - \theta)^2 / (2 s_2), \qquad \theta \sim N(\mu_0, S_0).

    The model has no inputs: pass ``None`` for ``X``.

    Examples
    --------
    >>> posterior = GaussianMean(noise_variance=1.0).posterior(None, [2.0, 4.0], alpha=2.0)
    >>> posterior.mean
    array([2.])
    """

    noise_variance: float = 1.0
    prior_mean: ArrayLike = 0.0
    prior_cov: ArrayLike = 1.0

    def design(self, X: ArrayLike | None) -> Array:
        """Return one column of ones, with a row for each row of ``X``; one row for ``None``."""
        return self.features(np.empty((1, 0)) if X is None else as_inputs(X))

    def features(self, inputs: Array) -> Array:
        """Return one column of ones."""
        return np.ones((len(inputs), 1))
