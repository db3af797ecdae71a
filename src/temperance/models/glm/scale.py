r"""The betas between which the curves of models of a linear predictor move.

In whitened coordinates the prior is N(0, I).  At beta the rows have added about beta lam to its
precision along an axis, lam an eigenvalue of their information sum_i w_i h_i z_i z_i', and have
moved its mean by beta sum_i w_i g_i z_i, h and g curvature and slope of the loss under the prior.
Below

    min(1 / lam_max, 1 / (|sum_i w_i g_i z_i| min(1, max_i |z_i|)))

the posterior is the prior: predictors move by parts of their deviations, or of one.  Above

    1 / (p (1 - p) min(lam_min, sum_i w_i / k)),        p (1 - p) = LEAST_CURVATURE,

lam_min for h = 1, the data outweigh the prior along every axis that matters to predictors, and the
variances of predictors are small, with curvatures as small as those of probabilities of 1/1000.
Variances go on to fall like 1/beta, and losses by as little.  Where a hyperplane separates the
classes there is no such end: predictors keep moving away, by log beta, or under a very wide prior
together with their deviations.
"""

from __future__ import annotations

import numpy as np

from temperance.data import Array
from temperance.models.glm.newton import Approximation
from temperance.models.glm.rows import Rows
from temperance.plans import AnyPlan, Plan, PrefixPlan
from temperance.search.log_scale import Scale

LEAST_CURVATURE = 1e-3
MATTERS = 1e-4  # variance of a predictor under the prior, along one axis
INDEPENDENT = 1e-6


def plan_scale(
    rows: Rows, plan: AnyPlan, approximation: Approximation, steep: bool = False
) -> Scale:
    """Return the betas between which the plan's curve moves.

    Under a wide prior a steep loss has a curvature and a risk that are both larger than near its
    minimum by orders of magnitude: the betas at which the prior gives way are not worth a look.
    """
    weights, alone = largest_weights(plan)
    weighted = rows.weighted(weights[None])
    if not steep:
        return Scale(*beta_scale(weighted, approximation, alone))
    centre, curvature = approximation.loss.typical(rows.y, rows.offset)
    informed = weights * curvature
    pull = float(np.linalg.norm((informed * (centre - rows.offset)) @ rows.Z))
    return Scale(*scale_of_forces(weighted, pull, float(informed @ rows.lengths), alone))


def largest_weights(plan: AnyPlan) -> tuple[Array, bool]:
    """Return the largest weight of each row in any training set, and if some may be of one row."""
    if isinstance(plan, Plan):
        return plan.likelihood_weights.max(axis=0), True
    if isinstance(plan, PrefixPlan):
        most = max(float(plan.exponents_of(order).max()) for order in plan.orders)
        return most * plan.weights, True
    return float(plan.exponents.max()) * plan.weights, False


def beta_scale(
    rows: Rows, approximation: Approximation, alone: bool = False
) -> tuple[float, float]:
    """Return the smallest and the largest beta at which posteriors of these rows move.

    Parameters
    ----------
    rows : Rows
        Whitened, of one weighting: the largest weights that any training set gives them.
    approximation : Approximation
        For slope and curvature of its loss.
    alone : bool
        Whether training sets may be as small as one row.

    Returns
    -------
    Both are positive, infinite where the rows say nothing, and right within some factors of ten;
    what moves below a thousandth of the one, or above the other, is about a thousandth of all.
    """
    weights, lengths = rows.weights[0], rows.lengths
    force = approximation.forces(rows.offset, lengths, rows.y)
    pull = np.linalg.norm((weights * force.pull) @ rows.Z)
    curvature = float((weights * force.curvature) @ lengths)  # the eigenvalues' sum
    return scale_of_forces(rows, float(pull), curvature, alone)


def scale_of_forces(rows: Rows, pull: float, curvature: float, alone: bool) -> tuple[float, float]:
    """Return the scale from the length of the loss's slope at the prior and its curvature."""
    weights, lengths = rows.weights[0], rows.lengths
    rate = max(curvature, pull * min(1.0, float(np.sqrt(lengths.max(initial=0.0)))))
    if not rate > 0:
        return np.inf, np.inf
    each, least = weights * lengths, float(weights[weights > 0].min())
    lowest = min(_lowest_eigenvalue(rows.Z, weights), float(weights.sum()) / min(rows.Z.shape))
    if alone:
        lowest = min(lowest, float(each[each > 0].min(initial=np.inf)), least)
    lowest = max(lowest, MATTERS * least, np.finfo(float).tiny)
    return 1 / rate, max(1 / lowest, 1 / rate) / LEAST_CURVATURE


def _lowest_eigenvalue(Z: Array, weights: Array) -> float:
    """Return a lower bound of the eigenvalues of Z' diag(w) Z that matter.

    By the smaller of the matrices over columns and over rows, scaled to a diagonal of ones.
    """
    weighted = np.sqrt(weights)[:, None] * Z
    gram = weighted.T @ weighted if len(Z) >= Z.shape[1] else weighted @ weighted.T
    squares = np.diagonal(gram)
    kept = squares > MATTERS * weights[weights > 0].min(initial=np.inf)
    if not kept.any():
        return np.inf
    size = np.sqrt(squares[kept])
    cosines = gram[np.ix_(kept, kept)] / size[:, None] / size
    return float(size.min() ** 2 * max(np.linalg.eigvalsh(cosines)[0], INDEPENDENT))
