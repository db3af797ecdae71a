r"""Information from the losses of posterior draws, without the parameters themselves.

Near the minimiser a posterior at b0 is Gaussian, and the losses are quadratic in its coordinates:

    Var_post(sum_i w_i l_i)  =  p / (2 b0^2),
    l_i(t)  =  a_i + b_i't + t'H_i t / 2.

The first gives p, the number of parameters that the data determine, if it is not known.  The
coordinates t of the draws are the p directions along which the losses of the rows vary most; in
these the second is fitted to the draws.  So the minimiser of rows with weights c is -H_c^-1 b_c
with b_c = sum_i c_i b_i and H_c = sum_i c_i H_i, the scores are b_i + H_i t, and the curvature is
H_w / W.  What rates make of these does not depend on the choice of coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from temperance.data import Array, Data, Labels
from temperance.models.credible import gaussian_levels
from temperance.models.sampled.arviz_tree import as_arviz, groups_of, pointwise
from temperance.protocols import Information, NoMinimiserError
from temperance.uncertainty.information import Units, sandwich_root

MOST_MOVES = 6  # of the draws to the rate of the sandwich
NEAR = 1.5  # factor between the two that is near enough
FURTHER = 10.0  # factor to the next beta if draws are too wide for a minimiser
DRAWS_PER_TERM = 5  # draws for each coefficient of a row's quadratic, at least


class Quadratics(NamedTuple):
    """Quadratics of the rows' losses: slopes b (n, p) and Hessians H (n, p, p)."""

    slope: Array
    hessian: Array

    def minimiser(self, weights: Array) -> tuple[Array, Array]:
        """Return minimisers (m, p) and summed Hessians (m, p, p) of weightings (m, n)."""
        n, p = self.slope.shape
        b, H = weights @ self.slope, (weights @ self.hessian.reshape(n, -1)).reshape(-1, p, p)
        try:
            np.linalg.cholesky(H)
        except np.linalg.LinAlgError:
            raise NoMinimiserError(
                "losses must have a minimum among the draws, got none: draw at a larger beta, draw "
                "more, or give dimension to calibrate_from_draws"
            ) from None
        return -np.linalg.solve(H, b[..., None])[..., 0], H


@dataclass(frozen=True, eq=False)
class LossesOfDraws:
    """Losses (n, draws) of rows at draws of the posterior of all rows, of weights (n,), at beta.

    Parameters
    ----------
    losses, weights, beta
    dimension : number of parameters; None to estimate it
    """

    losses: Array
    weights: Array
    beta: float
    dimension: int | None = None

    def information(self) -> Information:
        """Return scores and curvature at the minimiser."""
        found = self.quadratics
        (theta,), (H,) = found.minimiser(self.weights[None])
        return Information(theta, found.slope + found.hessian @ theta, H / self.weights.sum())

    def sandwich_rate(self, otherwise: float) -> float:
        """Return p / tr(J^-1 I), or another number if there is no minimiser among the draws."""
        try:
            found = self.information()
        except NoMinimiserError:
            return otherwise
        weighted = found.scores.T * (self.weights / self.weights.sum())
        total = np.trace(np.linalg.solve(found.curvature, weighted @ found.scores))
        rate = len(found.minimiser) / total if total > 0 else np.inf
        return float(rate) if np.isfinite(rate) else otherwise

    def credible_levels(self, weights: Array) -> Callable[[float], Array]:
        """Return the levels of all rows' minimiser under posteriors of other weights (m, n)."""
        (theta,), _ = self.quadratics.minimiser(self.weights[None])
        centres, H = self.quadratics.minimiser(weights)
        distances = np.einsum("mj,mjk,mk->m", theta - centres, H, theta - centres)
        return lambda beta: gaussian_levels(beta * distances, len(theta))

    @cached_property
    def quadratics(self) -> Quadratics:
        """Quadratics fitted to the losses, in coordinates in which the draws have variance 1."""
        t = self.coordinates()
        count, p = t.shape
        terms = p + p * (p + 1) // 2 + 1
        if count < DRAWS_PER_TERM * terms:
            raise ValueError(
                f"log_likelihood must hold at least {DRAWS_PER_TERM * terms} draws for {p} "
                f"parameters, got {count}"
            )
        upper = np.triu_indices(p)
        squares = t[:, upper[0]] * t[:, upper[1]]
        design = np.column_stack([t, squares, np.ones(count)])
        fitted = np.linalg.lstsq(design, self.losses.T, rcond=None)[0]
        hessian = np.zeros((len(self.losses), p, p))
        hessian[:, upper[0], upper[1]] = fitted[p:-1].T
        return Quadratics(fitted[:p].T, hessian + hessian.swapaxes(1, 2))

    def coordinates(self) -> Array:
        """Return the leading coordinates of the draws, of variance 1, shape (draws, p)."""
        n, count = self.losses.shape
        centred = self.losses - self.losses.mean(axis=1, keepdims=True)
        p = min(self.dimension or self.parameters(centred), n, count)
        if n <= count:
            vectors = np.linalg.eigh(centred @ centred.T)[1][:, -p:]
            along = centred.T @ vectors
        else:
            along = np.linalg.eigh(centred.T @ centred)[1][:, -p:]
        return along / np.sqrt((along**2).mean(axis=0))

    def parameters(self, centred: Array) -> int:
        """Return 2 b0^2 Var(sum_i w_i l_i), rounded, at least 1."""
        return max(1, round(2 * self.beta**2 * float(np.var(self.weights @ centred))))


class InformationFromDraws:
    """Base of sampled models: information from draws near the minimiser.

    The quadratics hold best where credible sets cover: draws begin at beta = 1 and move to the rate
    of the sandwich until they are near it, so that the unit of the loss does not matter.
    """

    def posterior(
        self, X: ArrayLike | None, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> Any:
        """Return draws at ``alpha`` as an ArviZ object."""
        raise NotImplementedError(f"{type(self).__name__} must have a posterior")

    def information(self, data: Data) -> Information:
        """Return scores and curvature of the rows, from draws."""
        return losses_of(self._near_minimiser(data), data.weights).information()

    def credible_levels(
        self, data: Data, weights: Array, theta: Array | None
    ) -> Callable[[float], Array]:
        """Return the levels of the minimiser of all rows, whatever ``theta`` is, from draws."""
        return losses_of(self._near_minimiser(data), data.weights).credible_levels(weights)

    def moved_draws(self, posterior: Any, data: Data, groups: Labels | None) -> Any:
        """Return the draws of a posterior, moved so that their covariance is the sandwich's.

        A mixture is drawn anew at one beta: its spread says nothing of the number of parameters.
        """
        mixture = "betas" in posterior.attrs
        return moved_draws(self._near_minimiser(data) if mixture else posterior, data, groups)

    def _near_minimiser(self, data: Data) -> Any:
        """Return draws of the posterior at a beta near the rate of the sandwich."""
        beta = 1.0
        for _ in range(MOST_MOVES):
            drawn = self.posterior(data.X, data.y, beta * data.size, data.weights)
            rate = losses_of(drawn, data.weights).sandwich_rate(beta * FURTHER)
            if max(rate / beta, beta / rate) < NEAR:
                break
            beta = rate
        return drawn


def losses_of(posterior: Any, weights: Array) -> LossesOfDraws:
    """Return the losses of an ArviZ object of this library, which has its beta."""
    log_likelihood, _ = pointwise(posterior)
    losses = -log_likelihood.reshape(-1, log_likelihood.shape[2]).T
    return LossesOfDraws(losses, weights, float(posterior.attrs["beta"]))


def moved_draws(posterior: Any, data: Data, groups: Labels | None) -> Any:
    r"""Return draws theta + B (t' - t), with t' = t_hat + V^(1/2) t for the sandwich V of t.

    The coordinates t of the draws have mean 0 and covariance 1, and B regresses theta on them.
    """
    near = losses_of(posterior, data.weights)
    t, information = near.coordinates(), near.information()
    root = sandwich_root(information, Units(data, groups))
    values, axes = np.linalg.eigh(root @ root.T)
    symmetric = (axes * np.sqrt(np.maximum(values, 0.0))) @ axes.T
    change = information.minimiser + t @ symmetric - t
    parts = groups_of(posterior)
    group = parts["posterior"].copy()
    for name, values in group.data_vars.items():
        theta = np.asarray(values.values, dtype=float)
        flat = theta.reshape(len(t), -1)
        # t has covariance 1 and mean 0 over the draws, so that B = E[t (theta - mean)'].
        slopes = t.T @ (flat - flat.mean(axis=0)) / len(t)
        group[name] = values.copy(data=(flat + change @ slopes).reshape(theta.shape))
    return as_arviz(parts | {"posterior": group}, posterior.attrs)
