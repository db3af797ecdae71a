r"""Any loss of a linear predictor, with a Gaussian approximation of its Gibbs posterior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import one_of
from temperance.data import Array, Data
from temperance.losses import Squared
from temperance.losses.base import Loss, PredictorLoss
from temperance.models.glm.full_covariance import FullCovariance
from temperance.models.glm.laplace import Laplace
from temperance.models.glm.mean_field import MeanField, diagonal_prior
from temperance.models.glm.model import GibbsRegression
from temperance.models.glm.newton import Approximation
from temperance.models.glm.nuisance import fitted_to_rows
from temperance.models.linear_predictor import GaussianPrior
from temperance.posteriors import (
    ClassPosterior,
    GaussianPosterior,
    GaussianRegressionPosterior,
    PredictorPosterior,
    ResponsePosterior,
)
from temperance.protocols import Preferences

APPROXIMATIONS: dict[str, Callable[[PredictorLoss], Approximation]] = {
    "full-covariance": FullCovariance,
    "mean-field": MeanField,
    "laplace": Laplace,
}
PosteriorName = Literal["full-covariance", "mean-field", "laplace"]


@dataclass(frozen=True, eq=False, init=False)
class GibbsLinear(GibbsRegression):
    r"""Gibbs posterior of the coefficients of a linear predictor, for any loss.

    .. math:: \pi_\beta(\theta) \propto \exp\Big(-\beta \sum_i w_i
              l(o_i + z_i'\theta, y_i)\Big) N(\theta; \mu_0, S_0)

    Its approximation is the Gaussian N(m, S) that minimises
    :math:`\beta \sum_i w_i E\, l(o_i + z_i'\theta, y_i) + KL(N(m, S) | N(\mu_0, S_0))`, of full
    or of diagonal covariance, or Laplace's: the mode and the curvature there.

    Parameters
    ----------
    loss : Loss
        From :mod:`temperance.losses`, or your own.
    posterior : {"full-covariance", "mean-field", "laplace"}
    prior_mean : float or array of shape (d,)
    prior_cov : float, variances of shape (d,), or matrix of shape (d, d)
    offset : int, optional
        Column of X whose coefficient is 1: the logarithm of exposures, for counts.  It is no
        coefficient of the posterior.

    Notes
    -----
    A free parameter of the loss (``StudentT(scale="auto")``) is fitted by maximum likelihood to all
    rows, once.  Folds use the same value, so their test rows have influenced it.

    Examples
    --------
    >>> from temperance.losses import Pinball
    >>> model = GibbsLinear(Pinball(0.5))
    >>> posterior = model.posterior([[1.0], [1.0], [1.0]], [0.0, 1.0, 5.0], alpha=30.0)
    >>> posterior.mean.round(2)
    array([0.94])
    """

    row_loss: Loss
    kind: PosteriorName
    prior_mean: ArrayLike
    prior_cov: ArrayLike
    offset_column: int | None

    def __init__(
        self,
        loss: Loss,
        posterior: PosteriorName = "full-covariance",
        prior_mean: ArrayLike = 0.0,
        prior_cov: ArrayLike = 1.0,
        offset: int | None = None,
    ) -> None:
        if not isinstance(loss, Loss):
            raise ValueError(f"loss must be an object of temperance.losses, got {loss!r}")
        one_of("posterior", posterior, APPROXIMATIONS)
        if posterior == "laplace" and not loss.smooth:
            raise ValueError(
                f"posterior must be 'full-covariance' or 'mean-field' for the {loss.name}, which "
                "has no curvature, got 'laplace'"
            )
        if offset is not None and (isinstance(offset, bool) or not isinstance(offset, Integral)):
            raise ValueError(f"offset must be the index of a column of X, got {offset!r}")
        for name, value in (
            ("row_loss", loss),
            ("kind", posterior),
            ("prior_mean", prior_mean),
            ("prior_cov", prior_cov),
            ("offset_column", None if offset is None else int(offset)),
        ):
            object.__setattr__(self, name, value)

    @property
    def preferences(self) -> Preferences:
        """How far averages go from beta = 1, where the posterior may be far from Bayes."""
        return Preferences(wide=True) if self.kind == "laplace" else Preferences()

    def approximation(self, loss: PredictorLoss) -> Approximation:
        """Return the approximation under a loss."""
        return APPROXIMATIONS[self.kind](loss)

    def fitted_loss(self, data: Data) -> Loss:
        """Return the loss with its free parameter fitted to all rows."""
        if not self.row_loss.free:
            return self.row_loss
        inputs = data.X
        return fitted_to_rows(self.row_loss, self.features(inputs), self.offset(inputs), data)

    def features(self, inputs: Array) -> Array:
        """Return the rows without the offset."""
        if self.offset_column is None:
            return super().features(inputs)
        self._refuse_other_columns(inputs)
        return super().features(np.delete(inputs, self.offset_column, axis=1))

    def offset(self, inputs: Array) -> Array:
        """Return the offset of each row."""
        if self.offset_column is None:
            return np.zeros(len(inputs))
        self._refuse_other_columns(inputs)
        return inputs[:, self.offset_column]

    def _refuse_other_columns(self, inputs: Array) -> None:
        columns = inputs.shape[1]
        if not -columns <= (self.offset_column or 0) < columns:
            raise ValueError(
                f"offset must be a column of X, which has {columns}, got {self.offset_column!r}"
            )

    def prior(self, dimension: int) -> GaussianPrior:
        """Return the prior, diagonal for a mean-field posterior."""
        if self.kind == "mean-field":
            return diagonal_prior(self.prior_mean, self.prior_cov, dimension)
        return super().prior(dimension)

    def forecasting(self, coefficients: GaussianPosterior, loss: Loss) -> Any:
        """Return a posterior that forecasts responses or classes, if the loss is a likelihood."""
        mean, root, design = coefficients.mean, coefficients.root, coefficients.design
        if isinstance(loss, Squared) and self.offset_column is None:
            return GaussianRegressionPosterior(mean, root, design, loss.noise_variance)
        kinds = {(True, True): ClassPosterior, (True, False): ResponsePosterior}
        kind = kinds.get((loss.likelihood, loss.binary), PredictorPosterior)
        return kind(mean, root, design, loss, self.offset)
