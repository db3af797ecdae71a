r"""What all models of a linear predictor z'theta share: rows from inputs, a Gaussian prior."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temperance.models.prior import GaussianPrior, gaussian_prior
from temperance.types import Array, Data
from temperance.validation import as_inputs


class Regression:
    """Rows z from inputs and the prior of their coefficients; presets write their own."""

    prior_mean: ArrayLike
    prior_cov: ArrayLike | None

    def design(self, X: ArrayLike) -> Array:
        """Check inputs and turn them into rows."""
        return self.features(as_inputs(X))

    def features(self, inputs: Array) -> Array:
        """Take valid inputs as rows; add a column of ones for an intercept."""
        if inputs.shape[1] == 0:
            raise ValueError("X must have at least one column, got 0 (None is for GaussianMean)")
        return inputs

    def prior(self, dimension: int) -> GaussianPrior:
        """Return the prior of ``dimension`` coefficients."""
        return gaussian_prior(self.prior_mean, self.prior_cov, dimension)

    def parameters_used(self, data: Data, betas: Array) -> Array:
        """Return how many parameters the posterior takes from the data: d - tr(S_0^-1 S)."""
        prior = self.prior(self.features(data.X[:1]).shape[1])
        alphas = betas * data.size
        posteriors = (self.posterior(data.X, data.y, a, data.weights) for a in alphas.tolist())
        return np.array([posterior.root.decided_by_data(prior.root) for posterior in posteriors])

    def posterior(
        self, X: ArrayLike, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> Any:
        """Return the Gaussian posterior at ``alpha``."""
        raise NotImplementedError(f"{type(self).__name__} must have a posterior")

    def check(self, data: Data) -> None:
        """Refuse inputs that do not fit the design or the prior."""
        self.prior(self.features(data.X[:1]).shape[1])  # one row tells the width
