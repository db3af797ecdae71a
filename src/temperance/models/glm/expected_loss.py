r"""Expected logistic loss psi(mu, v) = E softplus(f), f ~ N(mu, v).

With the label the loss is psi - y mu = psi(s mu, v), where s = 1 - 2 y: it is the loss of label 0
whose predictor has the sign s.  By that no derivative is a difference from 1, and those of rows far
on the right side keep their digits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from temperance.quadrature import softplus_expectations
from temperance.types import Array


class Partials(NamedTuple):
    """First and second partial derivatives of psi in the mean and the variance."""

    mean: Array
    variance: Array
    mean_mean: Array
    mean_variance: Array
    variance_variance: Array


Loss: TypeAlias = Callable[[Array, Array], Partials]  # of means and variances


def expected_value(mean: Array, variance: Array) -> Array:
    """Return psi itself."""
    return softplus_expectations(mean, variance)[0]


class Forces(NamedTuple):
    """What a row with mean and variance does to a Gaussian: psi_mu, psi_mumu and 2 psi_v."""

    pull: Array
    hessian: Array
    curvature: Array


def expected_forces(mean: Array, variance: Array, rough: bool = False) -> Forces:
    """Differentiate psi as far as a Newton step for the mean needs; 2 psi_v is psi_mumu."""
    first, second = softplus_expectations(mean, variance, derivatives=2, first=1, rough=rough)
    return Forces(first, second, second)


def expected_loss(mean: Array, variance: Array, rough: bool = False) -> Partials:
    """Differentiate psi: d/dmu raises the order of softplus by one, d/dv by two with a half."""
    first, second, third, fourth = softplus_expectations(
        mean, variance, derivatives=4, first=1, rough=rough
    )
    return Partials(first, second / 2, second, third / 2, fourth / 4)


def labelled_partials(loss: Loss, mean: Array, variance: Array, sign: Array) -> Partials:
    """Differentiate psi(s mu, v), the loss of rows whose labels have the signs s = 1 - 2 y."""
    if not np.isfinite(variance).all():
        raise np.linalg.LinAlgError("the variances of the predictors are not finite")
    psi = loss(sign * mean, variance)
    return psi._replace(mean=sign * psi.mean, mean_variance=sign * psi.mean_variance)


def sigmoid_and_slope(x: Array) -> tuple[Array, Array]:
    """Return the sigmoid and its derivative, both with all digits at either end."""
    odds = np.exp(-np.abs(x))
    share = 1 / (1 + odds)
    other = odds * share
    return np.where(x < 0, other, share), share * other


rough_loss = partial(expected_loss, rough=True)
