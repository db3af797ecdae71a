r"""The last layer of a frozen network: a linear model on its features, from any framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import as_numbers, refuse_non_finite, shown
from temperance.data import Array
from temperance.losses.base import Loss
from temperance.models.glm.gibbs_linear import GibbsLinear, PosteriorName
from temperance.models.glm.softmax.model import SoftmaxLogistic

Features = Callable[[Array], ArrayLike]


def LastLayer(
    features: Features | ArrayLike,
    loss: Loss | str = "softmax",
    *,
    prior_cov: ArrayLike = 1.0,
    posterior: PosteriorName = "full-covariance",
    n_classes: int | None = None,
) -> LinearLastLayer | SoftmaxLastLayer:
    r"""Return the model of the last layer of a network whose other layers are frozen.

    .. math:: \pi_\beta(\theta) \propto \exp\Big(-\beta \sum_i w_i l(z_i'\theta, y_i)\Big)
              N(\theta; 0, S_0), \qquad z_i = (1, \phi(x_i)),

    with the features phi of a row.  There is no training: the risk curve, every strategy and the
    posterior are those of :class:`GibbsLinear`, or of :class:`SoftmaxLogistic` for several classes.

    Parameters
    ----------
    features : function X -> array of shape (n, d), or array of shape (N, d)
        The network without its last layer, or its outputs; then X are numbers of rows.  Arrays of
        numpy, so from any framework.
    loss : Loss of :mod:`temperance.losses`, or "softmax"
    prior_cov : float, variances of shape (1 + d,), or matrix
        Prior covariance of the coefficients; that of the bias is the first.
    posterior : {"full-covariance", "mean-field", "laplace"}
        Kind of posterior of :class:`GibbsLinear`; that of :class:`SoftmaxLogistic` is Laplace's.
    n_classes : int, optional
        Number of classes for "softmax", by default the largest label and one.

    Examples
    --------
    >>> import numpy as np
    >>> from temperance import calibrate, models
    >>> rng = np.random.default_rng(0)
    >>> features = rng.standard_normal((50, 3))  # of 40 rows to train and 10 to predict
    >>> y = np.argmax(features[:40] + rng.standard_normal((40, 3)), axis=1)
    >>> calibration = calibrate(models.LastLayer(features), np.arange(40), y, "k-fold")
    >>> calibration.posterior.predict(np.arange(40, 50)).shape
    (10, 3)
    """
    of_rows = features_from(features)
    if isinstance(loss, Loss):
        return LinearLastLayer(of_rows, loss, posterior, prior_cov)
    if not isinstance(loss, str) or loss != "softmax":
        raise ValueError(
            f"loss must be an object of temperance.losses or 'softmax', got {shown(loss)}"
        )
    return SoftmaxLastLayer(of_rows, prior_cov, n_classes)


class LinearLastLayer(GibbsLinear):
    """A loss of a linear predictor on features of frozen layers; see :func:`LastLayer`."""

    def __init__(
        self, of_rows: Features, loss: Loss, posterior: PosteriorName, prior_cov: ArrayLike
    ) -> None:
        super().__init__(loss, posterior, prior_cov=prior_cov)
        object.__setattr__(self, "of_rows", of_rows)

    of_rows: Features

    def features(self, inputs: Array) -> Array:
        """Return 1 and the features of each row."""
        return with_bias(self.of_rows, inputs)


class SoftmaxLastLayer(SoftmaxLogistic):
    """Several classes on features of frozen layers; see :func:`LastLayer`."""

    def __init__(self, of_rows: Features, prior_cov: ArrayLike, n_classes: int | None) -> None:
        super().__init__(prior_cov, n_classes)
        object.__setattr__(self, "of_rows", of_rows)

    of_rows: Features

    def features(self, inputs: Array) -> Array:
        """Return 1 and the features of each row."""
        return with_bias(self.of_rows, inputs)


def features_from(features: Any) -> Features:
    """Return the function of features; an array is indexed by numbers of rows."""
    if callable(features):
        return features
    known = as_numbers("features", features)
    if known.ndim != 2 or not known.size:
        raise ValueError(
            f"features must be a function or an array of shape (N, d), got shape {known.shape}"
        )

    def at(numbers: Array) -> Array:
        index = numbers.astype(int)
        strange = numbers[(index != numbers) | (index < 0) | (index >= len(known))]
        if numbers.shape[1] != 1 or len(strange):
            got = f"shape {numbers.shape}" if numbers.shape[1] != 1 else repr(float(strange[0]))
            raise ValueError(
                f"X must hold numbers of the {len(known)} rows of features, 0 ... "
                f"{len(known) - 1}, got {got}"
            )
        return known[index[:, 0]]

    return at


def with_bias(of_rows: Features, inputs: Array) -> Array:
    """Return 1 and the features of each row, after checking them."""
    found = as_numbers("features", of_rows(inputs), copy=False)
    if found.ndim != 2 or len(found) != len(inputs):
        raise ValueError(
            f"features must return an array of shape ({len(inputs)}, d), got shape {found.shape}"
        )
    refuse_non_finite("features", found)
    return np.column_stack([np.ones(len(found)), found])
