r"""Laplace approximations on partitions: Newton's method by sums over rows, one pass for a step.

For the training set t of each fold, that of all rows, and every beta of a table, the mode theta in
whitened coordinates minimises

    J = c sum_i w_i l(u_i, y_i) + |theta|^2 / 2,    u = offset + Z theta,    c = beta f_t,

with f_t the factor on beta in the training set.  A pass adds up the loss, its gradient and its
Hessian at all modes that have not been found (:mod:`temperance.streaming.mode_sums`).  At theta = 0
these are the same at every beta, so that the first step of all takes one pass.  A step that does
not make J smaller is shortened.

The modes of all rows are found first: one training set costs a tenth of ten.  The modes outside of
a fold are near those of all rows at the beta of equally much information, where a pass gives the
sums of every fold at once; two or three passes remain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from temperance.calibration import Calibration
from temperance.checks import non_negative, shown
from temperance.data import Array, Data, Risk
from temperance.models import GibbsLinear, LaplaceLogistic
from temperance.models.glm.gaussians import inverse_root
from temperance.models.glm.model import refuse_without_likelihood
from temperance.posteriors import GaussianPosterior
from temperance.strategies import KFold, Stacking
from temperance.streaming.accumulate import refuse_empty
from temperance.streaming.mode_sums import (
    LaplaceModel,
    LossesAtModes,
    ModeSums,
    SumAtPoints,
)
from temperance.streaming.partitions import Folded, Partitions
from temperance.streaming.sample import (
    STACKED,
    SecondPass,
    Smooth,
    StreamedCalibration,
    betas_for,
    concluded,
    first_pass,
)
from temperance.table import LEAST, half_decades

FINE = 4, LEAST  # betas in a decade for a minimum, and the least of them
PRIOR = 0.03  # beta times the largest eigenvalue below which posteriors are next to the prior
MOST_PASSES = 38  # of Newton's method; the first one and that of the losses come on top
CLOSE = 1e-9  # last step to a mode, in standard deviations of the posterior: Hessians are older
ROUNDING = 1e-12  # part of J
SHORTER = 0.25
NEGLIGIBLE = 1e-9  # change of a risk
NOT_FOUND = (
    "X and y must have modes that Newton's method finds in 40 passes over the rows, got some that "
    "it does not; standardise X, leave out columns that depend on others, or narrow bounds"
)


def is_laplace(model: Any) -> TypeGuard[LaplaceModel]:
    """Tell whether a model's posteriors are Laplace's, under a loss without free parameters."""
    if not isinstance(model, GibbsLinear):
        return isinstance(model, LaplaceLogistic)
    loss = model.row_loss
    if model.kind != "laplace" or loss.free or not (loss.convex and loss.likelihood):
        raise ValueError(
            "model must be GibbsLinear with posterior='laplace' and a loss that is a log-concave "
            f"likelihood without free parameters to be calibrated on partitions, got {model!r}"
        )
    return True


class Found(NamedTuple):
    """Modes (t, b, k) at betas (b,), Hessians of the losses there, and how many passes are left."""

    betas: Array
    modes: Array
    hessian: Array
    left: int

    def at(self, betas: Array) -> tuple[Array, Array]:
        """Return the modes (t, g, k) at other betas, and the Hessians, interpolated."""
        b, g = len(self.betas), len(betas)

        def between(part: Array) -> Array:
            found = Smooth(self.betas, part.swapaxes(0, 1).reshape(b, -1))(betas)
            return found.reshape(g, len(part), *part.shape[2:]).swapaxes(0, 1)

        return between(self.modes), between(self.hessian)


@dataclass(frozen=True, eq=False, repr=False)
class ModeCalibration(StreamedCalibration):
    """A calibration whose posteriors come from the modes that were found in passes."""

    found: Found = field(kw_only=True)

    def posterior_at(self, beta: float) -> Any:
        """Return the posterior at another beta on all data; Bayes is 1.

        Between the betas of the passes it is interpolated.
        """
        model: Any = self.model
        ((mean,),), ((hessian,),) = self.found.at(np.array([non_negative("beta", beta)]))
        prior = model.prior(len(mean))
        root = inverse_root((np.eye(len(mean)) + beta * hessian)[None])[0]
        coefficients = GaussianPosterior(
            prior.mean + prior.unwhiten(mean), prior.posterior_root(root), model.design
        )
        return model.forecasting(coefficients, model.row_loss)


def calibrate_modes(
    model: LaplaceModel,
    partitions: Partitions,
    folded: Folded,
    strategy: Any,
    bounds: tuple[float, float],
    risk: Risk,
) -> Calibration:
    """Choose beta for the Laplace approximation by folds, in passes over the partitions."""
    if risk == "predictive":
        refuse_without_likelihood(model.row_loss)
    stacked = isinstance(strategy, Stacking)
    source = strategy.source if stacked else strategy
    if not isinstance(source, KFold) or source.duplicates == "together":
        raise ValueError(
            f"strategy must be KFold for {type(model).__name__} on partitions, or "
            f"Stacking(KFold()), got {shown(strategy)}"
        )
    start, largest = first_pass(partitions, SumAtPoints(model, folded), folded)
    size, columns, ones = float(start.weight.sum()), start.gradient.shape[2], start.labels.sum()
    refuse_empty(start.rows, size, source)
    if model.row_loss.binary and not 0 < ones < size:
        raise ValueError(f"y must hold both classes 0 and 1, got only {float(ones > 0)!r}")
    offsets = int(isinstance(model, GibbsLinear) and model.offset_column is not None)
    newton = Newton(partitions, model, replace(folded, columns=columns + offsets))
    betas = betas_for(bounds, *(STACKED if stacked else FINE))
    whole = newton.of_all_rows(start.together, betas)
    share = start.others.weight / size
    factors = 1 / share if source.transfer == "alpha" else np.ones_like(share)
    outside = newton.outside_folds(whole, betas, share, factors)
    c = np.multiply.outer(factors, betas)[..., None, None]
    roots = np.stack([inverse_root(each) for each in np.eye(columns) + c * outside.hessian])
    losses = LossesAtModes(model, newton.folded, betas, risk, outside.modes, roots)
    sample = partitions.total(SecondPass(losses, newton.folded, largest))
    method = f"{model.row_loss.method}, by passes over the rows"
    table = sample.table(betas, np.empty((len(betas), 0)), risk, 1.0, method)
    if not stacked:
        whole = newton.also_at(strategy.rule(table, bounds).beta, whole)
    data = Data(np.empty((1, 0)), np.zeros(1), np.array([size]))
    return concluded(ModeCalibration, model, data, strategy, bounds, table, found=whole)


@dataclass(frozen=True, eq=False)
class Newton:
    """Newton's method by passes over the partitions."""

    partitions: Partitions
    model: LaplaceModel
    folded: Folded

    def by_fold(self, theta: Array) -> ModeSums:
        """Return the sums of folds at points (1, b, k), or over the rows outside of each."""
        return self.partitions.total(SumAtPoints(self.model, self.folded, theta))

    def all_rows(self, theta: Array) -> ModeSums:
        """Return the sums over all rows at points theta (1, b, k)."""
        return self.by_fold(theta).together

    def of_all_rows(self, start: ModeSums, betas: Array) -> Found:
        """Return the modes of all rows, from the sums at 0, also at betas next to the prior."""
        # The gradient, too, bounds how fast posteriors leave the prior.
        steep = np.linalg.norm(start.hessian[0, 0], 2), np.linalg.norm(start.gradient)
        lowest, least = PRIOR / max(*map(float, steep), 1.0), float(betas[betas > 0][0])
        if lowest < least:
            betas = np.unique(np.append(betas, half_decades((lowest, least))))
        b, k = len(betas), start.gradient.shape[2]
        start, theta = start.repeated(b), np.zeros((1, b, k))
        return _newton(self.all_rows, betas, np.ones(1), theta, start, MOST_PASSES)

    def also_at(self, beta: float, found: Found) -> Found:
        """Return the modes of all rows also at another beta."""
        if beta in found.betas:
            return found
        at, place = np.array([beta]), found.betas.searchsorted(beta)
        theta, _ = found.at(at)
        start = self.all_rows(theta)
        one = _newton(self.all_rows, at, np.ones(1), theta, start, found.left - 1)
        modes = np.insert(found.modes, place, one.modes[:, 0], axis=1)
        hessian = np.insert(found.hessian, place, one.hessian[:, 0], axis=1)
        return Found(np.insert(found.betas, place, beta), modes, hessian, one.left)

    def outside_folds(self, whole: Found, betas: Array, share: Array, factors: Array) -> Found:
        """Return the modes of the rows outside of each fold, which have a share of the weight."""
        near, _ = whole.at(min(float(np.mean(factors * share)), 1.0) * betas)
        theta, start = np.repeat(near, self.folded.n_folds, axis=0), self.by_fold(near).others
        return _newton(self.by_fold, betas, factors, theta, start, whole.left - 1)


def _newton(
    sums_at: Callable[[Array], ModeSums],
    betas: Array,
    factors: Array,
    theta: Array,
    start: ModeSums,
    left: int,
) -> Found:
    """Return the modes of t sets of rows, from points theta (t, b, k) with known sums."""
    c = np.multiply.outer(factors, betas)
    theta, gradient, hessian = theta.copy(), start.gradient.copy(), start.hessian
    objective = c * start.value + 0.5 * (theta**2).sum(axis=2)
    step, distance = _step(theta, gradient, hessian, c)
    length, close = np.ones(c.shape), distance <= CLOSE
    while not close.all():
        if left <= 0:
            raise ValueError(NOT_FOUND)
        (active,) = np.nonzero(~close.all(axis=0))
        tried = (theta + length[..., None] * step)[:, active]
        sums, left = sums_at(tried), left - 1
        reached = c[:, active] * sums.value + 0.5 * (tried**2).sum(axis=2)
        before = objective[:, active]
        lower = reached <= before + ROUNDING * np.abs(before)
        old = (theta, objective, gradient, hessian)
        for whole, part in zip(old, (tried, reached, sums.gradient, sums.hessian), strict=True):
            kept = lower.reshape(*lower.shape, *[1] * (part.ndim - 2))
            whole[:, active] = np.where(kept, part, whole[:, active])
        full = np.zeros(c.shape, dtype=bool)
        full[:, active] = lower & (length[:, active] == 1)
        length[:, active] = np.where(lower, 1.0, SHORTER * length[:, active])
        last = distance
        step, distance = _step(theta, gradient, hessian, c)
        close |= distance <= CLOSE
        close |= full & _negligible(distance, last, c * start.weight[:, None], theta.shape[2])
    return Found(betas, theta + step, hessian, left)


def _negligible(
    distance: Array, last: Array, information: Array, columns: int
) -> NDArray[np.bool_]:
    """Tell whether the risk does not change any more, after a full step of Newton's method.

    That the step left a part q = distance / last says that Hessians change by about 2 q along it,
    and by 2 q^2 along the next.  The variance that they give adds k / (2 c W) to the risk at most.
    The next step leaves q^2 of the distance.
    """
    squared = np.divide(distance, last, out=np.ones_like(last), where=last > 0) ** 2
    return (squared * columns <= NEGLIGIBLE * information) & (squared * distance <= CLOSE)


def _step(theta: Array, gradient: Array, hessian: Array, c: Array) -> tuple[Array, Array]:
    """Return Newton's steps, and their lengths in standard deviations of the posteriors."""
    slope = theta + c[..., None] * gradient
    precision = np.eye(theta.shape[2]) + c[..., None, None] * hessian
    try:
        step = -np.linalg.solve(precision, slope[..., None])[..., 0]
    except np.linalg.LinAlgError:
        raise ValueError(NOT_FOUND) from None
    return step, np.sqrt(np.maximum(-(slope * step).sum(axis=2), 0.0))
