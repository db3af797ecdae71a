r"""Gaussian coefficients of several classes; probabilities are posterior expectations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from temperance.checks import open_units
from temperance.data import Array, batches
from temperance.models.glm.softmax.quadrature import (
    contrasts,
    log_expected_softmax,
    log_softmax_at,
    sobol_nodes,
)
from temperance.posteriors.covariance_root import CovarianceRoot, low_rank_root
from temperance.posteriors.gaussian import GaussianPosterior
from temperance.posteriors.mixture import MixturePosterior

if TYPE_CHECKING:
    from temperance.models.linear_predictor import GaussianPrior


@dataclass(frozen=True, eq=False)
class ContrastLaw:
    r"""Distribution N(mean, R R') of contrasts v = C'u of whitened coefficients u of K classes.

    Coefficients are theta_k = S_0^{1/2} u_k, with u ~ N(0, I) under the prior, and C of shape
    (K, K - 1) has orthonormal columns that are orthogonal to the vector of ones.  Probabilities
    depend on v only.  Along the mean of the classes, and orthogonal to the span of the rows, the
    posterior is the prior.

    Parameters
    ----------
    mean : array of shape (K - 1, k)
    root : R, array of shape ((K - 1) k, (K - 1) k)
    prior : GaussianPrior, that of one class
    basis : orthonormal array of shape (d, k) whose span the mean lies in, or None for all
    """

    mean: Array
    root: Array
    prior: GaussianPrior
    basis: Array | None

    @property
    def n_classes(self) -> int:
        """Number of classes K."""
        return len(self.mean) + 1

    @cached_property
    def coefficients(self) -> Array:
        """Mean of the coefficients of each class, (K, d); they sum to 0 over the classes."""
        means = contrasts(self.n_classes) @ self.mean
        if self.basis is not None:
            means = means @ self.basis.T
        return self.prior.unwhiten(means.T).T

    def logits(self, Z: Array) -> tuple[Array, Array]:
        """Return mean (n, K - 1) and covariance (n, K - 1, K - 1) of contrasts of the logits."""
        whitened = self.prior.whiten(Z)
        along, across = whitened, np.zeros(len(Z))
        if self.basis is not None:
            along = whitened @ self.basis
            across = ((whitened - along @ self.basis.T) ** 2).sum(axis=1)
        c = len(self.mean)
        cov = across[:, None, None] * np.eye(c)
        for rows in batches(len(Z), c * len(self.root)):
            spread = (along[rows] @ self._blocks).swapaxes(0, 1)
            cov[rows] += spread @ spread.swapaxes(1, 2)
        return along @ self.mean.T, cov

    def covariance_root(self) -> CovarianceRoot:
        """Return the root of the covariance of all coefficients, those of the first class first."""
        K, C = self.n_classes, contrasts(self.n_classes)
        if self.basis is not None:
            one = self.prior.root
            outer = np.tile(one, K) if one.ndim == 1 else np.kron(np.eye(K), one)
            return low_rank_root(outer, np.kron(C, self.basis), self.root)
        d = self.mean.shape[1]
        known = np.tensordot(C, self._blocks, 1)  # (K, d, (K - 1) d)
        common = np.broadcast_to(np.eye(d) / np.sqrt(K), (K, d, d))
        root = np.concatenate([known, common], axis=2)
        return CovarianceRoot(np.concatenate([self.prior.unwhiten(block) for block in root]))

    def of_class(self, k: int, design: Callable[[ArrayLike], Array]) -> GaussianPosterior:
        """Return the distribution of the coefficients of class k minus their mean over classes."""
        K = self.n_classes
        share = np.sqrt(1 - 1 / K)  # of the prior's deviation
        known = np.tensordot(contrasts(K)[k], self._blocks, 1) / share
        triangle = np.asarray(np.linalg.qr(known.T, mode="r"))
        prior = type(self.prior)(self.prior.mean, share * self.prior.root)
        return GaussianPosterior(
            self.coefficients[k], prior.posterior_root(triangle.T, self.basis), design
        )

    def mixed(self) -> ContrastLaw:
        """Return the same distribution in a basis that does not contain single rows.

        The basis are the eigenvectors of the covariance, averaged over the contrasts.
        """
        if self.basis is None:
            return self
        axes = np.linalg.eigh(np.einsum("aiq,ajq->ij", self._blocks, self._blocks))[1]
        root = (axes.T @ self._blocks).reshape(self.root.shape)
        return replace(self, mean=self.mean @ axes, root=root, basis=self.basis @ axes)

    @property
    def _blocks(self) -> Array:
        return self.root.reshape(*self.mean.shape, -1)


@dataclass(frozen=True, eq=False)
class SoftmaxPosterior(GaussianPosterior):
    r"""N(mean, A A') over the coefficients of K classes, those of the first class first.

    Parameters
    ----------
    mean : array of shape (K d,)
    root : the square root A of the covariance
    design : maps inputs to the rows z of the logits z'theta_k
    law : ContrastLaw, the distribution of the contrasts between classes
    """

    law: ContrastLaw

    @property
    def coefficients(self) -> Array:
        """Means of the coefficients of each class, shape (K, d); they sum to 0 over the classes."""
        return self.law.coefficients

    def of_class(self, k: int) -> GaussianPosterior:
        """Return the distribution of the coefficients of class k minus their mean over classes.

        Probabilities depend on these differences only.
        """
        return self.law.of_class(k, self.design)

    def logits(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return mean (n, K - 1) and covariance (n, K - 1, K - 1) of the contrasts C'f."""
        Z = self.design(X)
        d = self.coefficients.shape[1]
        if Z.shape[1] != d:
            raise ValueError(f"X must have {d} columns, got {Z.shape[1]}")
        return self.law.logits(Z)

    def log_predict(self, X: ArrayLike) -> Array:
        """Return log probabilities of the classes, shape (n, K)."""
        return log_expected_softmax(*self.logits(X))

    def predict(self, X: ArrayLike) -> Array:
        """Return probabilities of the classes at ``X``, (n, K): posterior expectations."""
        return np.exp(self.log_predict(X))

    def mixed(self, weights: Array, others: Sequence[SoftmaxPosterior]) -> SoftmaxMixture:
        """Return the mixture of this posterior and others of the same classes."""
        return SoftmaxMixture(weights, (self, *others))

    def interval(self, X: ArrayLike, level: ArrayLike = 0.95) -> Array:
        """Return central credible intervals of the probabilities, (n, K, 2).

        For several levels the shape is (levels, n, K, 2).
        """
        return credible_intervals(np.ones(1), [self], X, level)


@dataclass(frozen=True, eq=False)
class SoftmaxMixture(MixturePosterior):
    """A mixture of posteriors of several classes."""

    @property
    def coefficients(self) -> Array:
        """Means of the coefficients of each class, shape (K, d)."""
        return np.tensordot(self.weights, [part.coefficients for part in self.parts], 1)

    def of_class(self, k: int) -> MixturePosterior:
        """Return the distribution of the coefficients of class k minus their mean over classes."""
        return MixturePosterior(self.weights, tuple(part.of_class(k) for part in self.parts))

    def log_predict(self, X: ArrayLike) -> Any:
        """Return log probabilities of the classes, shape (n, K)."""
        parts = np.array([part.log_predict(X) for part in self.parts])
        return special.logsumexp(parts, b=self.weights[:, None, None], axis=0)

    def interval(self, X: ArrayLike, level: ArrayLike = 0.95) -> Array:
        """Return central credible intervals of the probabilities, shaped as those of each part."""
        return credible_intervals(self.weights, self.parts, X, level)


def credible_intervals(
    weights: Array, parts: Sequence[SoftmaxPosterior], X: ArrayLike, level: ArrayLike
) -> Array:
    """Return intervals of probabilities under a mixture, by quantiles over fixed points."""
    levels = open_units("level", level)
    tails = np.stack([(1 - levels) / 2, (1 + levels) / 2])  # (2, levels or nothing)
    laws = [part.logits(X) for part in parts]
    n, c = laws[0][0].shape
    points = sobol_nodes(c).points
    share = np.repeat(weights, len(points)) / len(points)
    ends = np.empty((*tails.shape, n, c + 1))
    for rows in batches(n, len(share) * (c + 1)):
        logs = np.concatenate(
            [log_softmax_at(mean[rows], cov[rows], points) for mean, cov in laws], axis=2
        )
        ends[..., rows, :] = _weighted_quantiles(logs, share, tails)
    return np.exp(np.moveaxis(ends, 0, -1))


def _weighted_quantiles(values: Array, share: Array, q: Array) -> Array:
    """Return quantiles (..., n, K) of values (n, K, points) with weights ``share``."""
    order = np.argsort(values, axis=2)
    sorted_values = np.take_along_axis(values, order, axis=2)
    below = np.cumsum(share[order], axis=2)
    places = (below < np.asarray(q)[..., None, None, None]).sum(axis=-1)
    places = np.minimum(places, values.shape[2] - 1)
    n, K, _ = values.shape
    return sorted_values[np.arange(n)[:, None], np.arange(K), places]
