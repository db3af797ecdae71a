r"""Gaussian expectations of the softmax log loss, at nodes that are fixed.

The loss of label y at logits f is log sum_k exp(f_k - f_y): it depends on differences only, so that
K logits are f = C g + a common shift, with orthonormal contrasts C of shape (K, K - 1).  For
g ~ N(m, A A), with the symmetric root A, expectations are sums over nodes xi of N(0, I)

    E l = sum_s w_s l(C (m + A xi_s), y),

smooth functions of m and A, and their slopes are those of the sums.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import linalg, special

from temperance.data import Array, Labels, Risk, batches

SPACING = {1: 0.18, 2: 0.5}  # of lattices, by dimension
RADIUS = 7.0  # beyond which N(0, I) has less than 1e-10
SOBOL_BITS = 9  # in more dimensions, 2^9 points and their opposites


class Nodes(NamedTuple):
    """Points (s, dimension) and weights (s,) whose first three moments are those of N(0, I)."""

    points: Array
    weights: Array


class Logits(NamedTuple):
    """Mean (..., c) and covariance (..., c, c) of the contrasts of rows, and their derivatives."""

    mean: Array
    cov: Array
    d_mean: Array
    d_cov: Array


@lru_cache
def contrasts(n_classes: int) -> Array:
    """Return orthonormal columns (K, K - 1) that are orthogonal to the vector of ones."""
    return _fixed(linalg.helmert(n_classes).T)


@lru_cache
def differences(n_classes: int) -> Array:
    """Return, for each label y, the rows C_k - C_y of the other classes, (K, K - 1, K - 1)."""
    C = contrasts(n_classes)
    others = [np.delete(C, label, axis=0) - C[label] for label in range(n_classes)]
    return _fixed(np.array(others))


@lru_cache
def nodes(dimension: int) -> Nodes:
    r"""Return the nodes: a lattice up to two dimensions, Sobol points in more.

    The lattice holds the contrasts of integers, h C'j, and is the same however the classes are
    named.  On it sums of analytic functions under a Gaussian converge exponentially in 1/h.
    """
    return _lattice(dimension) if dimension in SPACING else sobol_nodes(dimension)


@lru_cache
def sobol_nodes(dimension: int) -> Nodes:
    """Return Sobol points and their opposites, all of one weight."""
    from scipy.stats import qmc  # takes long to import

    uniform = qmc.Sobol(dimension, scramble=False).random_base2(SOBOL_BITS)
    half = special.ndtri(uniform + 0.5 ** (SOBOL_BITS + 1))  # the middle of each cell
    points = np.concatenate([half, -half])
    return _standardised(points, np.ones(len(points)))


def _lattice(dimension: int) -> Nodes:
    spacing = SPACING[dimension]
    reach = int(np.ceil(RADIUS / spacing * np.sqrt(2))) + 1
    # Contrasts do not change when one and the same number is added to all: the first may be 0.
    steps = np.arange(-reach, reach + 1)
    axes = np.meshgrid(*[steps] * dimension, indexing="ij")
    integers = np.column_stack([np.zeros(axes[0].size), *map(np.ravel, axes)])
    points = spacing * integers @ contrasts(dimension + 1)
    squares = (points**2).sum(axis=1)
    inside = squares <= RADIUS**2
    return _standardised(points[inside], np.exp(-0.5 * squares[inside]))


def _standardised(points: Array, weights: Array) -> Nodes:
    """Return nodes with exact second moments; the odd ones vanish with every point's opposite."""
    weights = weights / weights.sum()
    values, axes = np.linalg.eigh((points.T * weights) @ points)
    return Nodes(_fixed(points @ (axes / np.sqrt(values)) @ axes.T), _fixed(weights))


def _fixed(array: Array) -> Array:
    array.flags.writeable = False
    return array


def expected_losses(
    logits: Logits, labels: Labels, n_classes: int, risk: Risk
) -> tuple[Array, Array]:
    r"""Return E l, or -log E exp(-l) for the predictive risk, of rows, and the slopes in beta.

    Parameters
    ----------
    logits : moments of e rows, of shapes (e, c) and (e, c, c)
    labels : array of shape (e,)
    n_classes : int
    risk : {"gibbs", "predictive"}
    """
    points, _ = nodes(n_classes - 1)
    value, slope = np.empty((2, len(labels)))
    for part in batches(len(labels), len(points) * n_classes):
        moments = Logits(*(each[part] for each in logits))
        value[part], slope[part] = _losses(moments, labels[part], n_classes, risk)
    return value, slope


def _losses(logits: Logits, labels: Labels, n_classes: int, risk: Risk) -> tuple[Array, Array]:
    points, weights = nodes(n_classes - 1)
    root, d_root = symmetric_roots(logits.cov, logits.d_cov)
    D = differences(n_classes)[labels]
    mean, d_mean = (np.matmul(D, each[..., None]) for each in (logits.mean, logits.d_mean))
    against = mean + np.matmul(D @ root, points.T)  # f_k - f_y, of each row, class and node
    loss, share = losses_and_shares(against)
    if risk == "gibbs":
        value = loss @ weights
        share *= weights
    else:
        least = loss.min(axis=1, keepdims=True)
        above = weights * np.exp(least - loss)
        total = above.sum(axis=1)
        little = np.expm1(least - loss) @ weights  # total - 1, with all its digits
        most = np.where(total > 0.5, np.log1p(np.maximum(little, -0.6)), np.log(total))
        value = least[:, 0] - most
        share *= (above / total[:, None])[:, None]
    # Both are means of the losses' slopes over nodes, the latter in proportion to exp(-l).
    slope = (share.sum(axis=2, keepdims=True) * d_mean).sum(axis=(1, 2))
    slope += ((share @ points) * (D @ d_root)).sum(axis=(1, 2))
    return value, slope


def losses_and_shares(against: Array, axis: int = 1) -> tuple[Array, Array]:
    """Return the losses log(1 + sum_k exp(f_k - f_y)) over an axis, and their derivatives.

    Those are the probabilities of the other classes k.  Both have all digits if they are small.
    """
    top = np.maximum(against.max(axis=axis, keepdims=True), 0.0)
    share = np.exp(against - top)
    rest = share.sum(axis=axis, keepdims=True) + np.expm1(-top)
    share /= 1 + rest
    return (top + np.log1p(rest)).squeeze(axis), share


def symmetric_roots(cov: Array, d_cov: Array | None = None) -> tuple[Array, Array]:
    """Return symmetric roots A of covariances (..., c, c) and dA, where A dA + dA A = d_cov."""
    values, axes = np.linalg.eigh(cov)
    sizes = np.sqrt(np.maximum(values, 0.0))
    back = axes.swapaxes(-1, -2)
    root = (axes * sizes[..., None, :]) @ back
    if d_cov is None:
        return root, np.zeros_like(root)
    sums = sizes[..., :, None] + sizes[..., None, :]
    turned = back @ d_cov @ axes
    rate = np.divide(turned, sums, out=np.zeros_like(turned), where=sums > 0)
    return root, axes @ rate @ back


def log_expected_softmax(mean: Array, cov: Array) -> Array:
    """Return log E softmax(C g)_k of each row and class, (e, K), for contrasts g ~ N(mean, cov)."""
    n_classes = mean.shape[1] + 1
    points, weights = nodes(n_classes - 1)
    found = np.empty((len(mean), n_classes))
    for part in batches(len(mean), len(points) * n_classes):
        logs = log_softmax_at(mean[part], cov[part], points)
        top = logs.max(axis=2, keepdims=True)
        found[part] = np.log(np.exp(logs - top) @ weights) + top[..., 0]
    # The sum over the classes is 1 at every node; here it is made so after rounding.
    return found - special.logsumexp(found, axis=1, keepdims=True)


def log_softmax_at(mean: Array, cov: Array, points: Array) -> Array:
    """Return log probabilities of the classes at nodes, (e, K, nodes)."""
    C = contrasts(mean.shape[1] + 1)
    root, _ = symmetric_roots(cov)
    logits = C @ (mean[..., None] + root @ points.T)
    logits -= logits.max(axis=1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return logits
