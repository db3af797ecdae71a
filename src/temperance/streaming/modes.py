r"""Laplace approximations on partitions: Newton's method by sums over rows, one pass for a step.

For the training set t of each fold, that of all rows, and every beta of some panels
(:mod:`temperance.streaming.panels`), the mode theta in whitened coordinates minimises

    J = c sum_i w_i l(u_i, y_i) + |theta|^2 / 2,    u = offset + Z theta,    c = beta f_t,

with f_t the factor on beta in the training set.  A pass adds up the loss, its gradient and its
Hessian at all modes that have not been found.  At theta = 0 these are the same at every beta, so
that the first step of all takes one pass.  A step that does not make J smaller is shortened.  The
loss is that of the model's approximation (:mod:`temperance.losses`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, NoReturn, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

from temperance.calibration import LEAST_FREE, Calibration, RowErrors
from temperance.losses.base import Loss, Predictor
from temperance.models import GibbsLinear, LaplaceLogistic
from temperance.models.glm.gaussians import inverse_root, squared_lengths, weighted_gram
from temperance.models.glm.model import refuse_without_likelihood
from temperance.posteriors import GaussianPosterior
from temperance.search.log_scale import Ruler, Scale
from temperance.strategies import KFold
from temperance.strategies.selection import warn_of_minimum
from temperance.streaming.folds import partition_folds
from temperance.streaming.loss_sums import LossSums, SummedCurve
from temperance.streaming.panels import Panels
from temperance.streaming.partitions import Partitions
from temperance.streaming.row_losses import BATCH, Batch, GatherLosses, Other, checked
from temperance.types import Array, Data, Risk, batches
from temperance.validation import non_negative, shown

MOST_PASSES = 38  # of Newton's method; the first one and that of the losses come on top
CLOSE = 1e-9  # distance from a mode, in standard deviations of the posterior
ROUNDING = 1e-12  # part of J
SHORTER = 0.25
DEGREE = 18  # of the polynomials on a panel: errors of 1e-10
RESOLVED = 1e-9  # the last coefficients on a panel beside the risk; if larger, panels are halved
LEAST_PASSES = 4  # that halved panels take
NOT_FOUND = (
    "X and y must have modes that Newton's method finds in 40 passes over the rows, got some that "
    "it does not; standardise X, leave out columns that depend on others, or narrow bounds"
)


LaplaceModel = LaplaceLogistic | GibbsLinear


def is_laplace(model: Any) -> TypeGuard[LaplaceModel]:
    """Tell whether a model's posteriors are Laplace's, under a loss without free parameters."""
    if not isinstance(model, GibbsLinear):
        return isinstance(model, LaplaceLogistic)
    loss = model.row_loss
    # The panels need curves that are analytic in beta, which losses with bends do not give.
    if model.kind != "laplace" or loss.free or not (loss.convex and loss.likelihood):
        raise ValueError(
            "model must be GibbsLinear with posterior='laplace' and a loss that is a log-concave "
            f"likelihood without free parameters to be calibrated on partitions, got {model!r}"
        )
    return True


class ModeSums(NamedTuple):
    """Sums over the rows of t training sets at b points each."""

    weight: Array  # (t,)
    labels: Array  # (t,): sum of the responses
    value: Array  # (t, b)
    gradient: Array  # (t, b, k)
    hessian: Array  # (t, b, k, k)

    def merge(self, *others: Self) -> Self:
        """Return the sums over the rows of all; those without rows do not matter."""
        parts = [each for each in (self, *others) if each.weight.any()] or [self]
        columns = {each.gradient.shape[-1] for each in parts}
        if len(columns) > 1:
            raise ValueError(
                f"X must have the same columns in every partition, got {min(columns)} and "
                f"{max(columns)}"
            )
        return type(self)(*(np.sum(part, axis=0) for part in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False)
class Modes:
    """What is known of the rows of a partition: their folds and their whitened coordinates."""

    model: LaplaceModel
    n_folds: int
    seed: int
    columns: int | None

    @property
    def loss(self) -> Loss:
        """The loss of a linear predictor."""
        return self.model.row_loss

    def whitened(self, data: Data, part: slice) -> tuple[Array, Array, Array, Array]:
        """Return Z, offsets, labels and weights of some rows."""
        Z, offset, _ = self.model.whitened(data.X[part])
        return Z, offset, data.y[part], data.weights[part]

    def folds(self, number: int, data: Data) -> NDArray[np.intp]:
        """Return the folds of the rows of a partition."""
        return partition_folds(self.n_folds, self.seed, number).take(len(data))


@dataclass(frozen=True, eq=False)
class SumAtModes(Modes):
    """The statistic of a step: sums at points theta (t, b, k), or at 0 alone.

    The last training set is that of all rows.
    """

    theta: Array | None = None

    def __call__(self, partition: int, block: Any) -> ModeSums:
        """Return the sums of a partition (X, y) or (X, y, weights)."""
        sums = _no_sums(self._points(1))
        for data in checked(partition, block, self.columns):
            self._refuse(partition, data)
            theta, fold = self._points(data.X.shape[1]), self.folds(partition, data)
            sums = _no_sums(theta)
            for part in batches(len(data), theta.shape[2] + 6 * theta.shape[1], BATCH):
                rows = self.whitened(data, part)
                for number, points in enumerate(theta):
                    trained = fold[part] != number  # no row is in the last fold, that of all rows
                    self._add(sums, number, points, *(each[trained] for each in rows))
        return sums

    def _points(self, columns: int) -> Array:
        return np.zeros((self.n_folds + 1, 1, columns)) if self.theta is None else self.theta

    def _refuse(self, partition: int, data: Data) -> None:
        try:
            self.loss.check(data.y)
            self.model.whitened(data.X)
        except ValueError as error:
            raise ValueError(f"partition {partition}: {error}") from None

    def _add(
        self, sums: ModeSums, t: int, points: Array, Z: Array, offset: Array, y: Array, w: Array
    ) -> None:
        if not len(y):
            return
        u = offset + points @ Z.T
        first, second, _ = self.loss.derivatives(u, y)
        sums.weight[t] += w.sum()
        sums.labels[t] += w @ y
        sums.value[t] += self.loss.value(u, y) @ w
        sums.gradient[t] += (w * first) @ Z
        sums.hessian[t] += weighted_gram(Z, w * second)


@dataclass(frozen=True, eq=False)
class LossesAtModes(Modes):
    """Losses of the rows of each fold under the posterior of the others."""

    beta: Array
    risk: Risk
    means: Array  # (folds, b, k)
    roots: Array  # (folds, b, k, k)

    def partition(self, number: int, data: Data) -> Iterator[Batch]:
        """Yield the losses of batches of rows, in their order."""
        fold, none = self.folds(number, data), np.zeros((1, 1))
        for part in batches(len(data), data.X.shape[1] + 8 * len(self.beta), BATCH):
            Z, offset, y, weights = self.whitened(data, part)
            losses = np.empty((len(y), len(self.beta)))
            for each in np.unique(fold[part]):
                chosen = fold[part] == each
                mean = offset[chosen] + self.means[each] @ Z[chosen].T
                variance = squared_lengths(Z[chosen], self.roots[each])
                predictor = Predictor(mean, variance, none, none)
                losses[chosen] = self.loss.risk(predictor, y[chosen], self.risk)[0].T
            yield Batch(losses, weights, np.zeros(len(y), dtype=bool))


class Found(NamedTuple):
    """Modes (t, b, k) at the nodes, Hessians of the losses there, and how many passes are left."""

    modes: Array
    hessian: Array
    left: int


@dataclass(frozen=True, eq=False, repr=False)
class ModeCalibration(Calibration):
    """A calibration whose posteriors come from the modes that were found in passes."""

    found: Posteriors = field(kw_only=True)

    def posterior_at(self, beta: float) -> Any:
        """Return the posterior at another beta on all data; Bayes is 1."""
        return self.found.at(non_negative("beta", beta))

    def certificate(self, *_: Any, **__: Any) -> NoReturn:
        """Raise an error: a certificate needs the rows, which are not kept."""
        raise ValueError(
            "a certificate needs all rows at once, got sums over partitions; use calibrate(model, "
            "X, y) on rows that fit into memory"
        )


@dataclass(frozen=True, eq=False)
class Posteriors:
    """The posterior of all rows at every beta, interpolated."""

    model: LaplaceModel
    panels: Panels
    modes: Array  # (b, k)
    hessians: Array  # (b, k, k)

    def at(self, beta: float) -> Any:
        """Return the posterior at beta."""
        prior = self.model.prior(self.modes.shape[1])
        mean, root = self.whitened(beta)
        coefficients = GaussianPosterior(
            prior.mean + prior.unwhiten(mean), prior.posterior_root(root), self.model.design
        )
        return self.model.forecasting(coefficients, self.model.row_loss)

    def whitened(self, beta: float) -> tuple[Array, Array]:
        """Return mean and covariance root in whitened coordinates."""
        ((weights,), _) = self.panels.weights(np.array([beta]))
        hessian = np.tensordot(weights, self.hessians, 1)
        root = inverse_root((np.eye(len(hessian)) + beta * hessian)[None])[0]
        return weights @ self.modes, root

    def inflation(self, beta: float, size: float) -> float:
        """Return the factor on standard errors; see ``calibration.error_inflation``."""
        root = self.whitened(min(max(beta, 1.0), self.panels.ruler.upper))[1]
        used = len(root) - float((root**2).sum())
        return max(1 - used / size, LEAST_FREE) ** -1.5


def calibrate_modes(
    model: LaplaceModel,
    partitions: Partitions,
    strategy: Any,
    bounds: tuple[float, float],
    risk: Risk,
    seed: int,
) -> Calibration:
    """Choose beta for the Laplace approximation by folds, in passes over the partitions."""
    if risk == "predictive":
        refuse_without_likelihood(model.row_loss)
    if not isinstance(strategy, KFold) or strategy.duplicates == "together":
        kind = type(model).__name__
        raise ValueError(f"strategy must be KFold for {kind} on partitions, got {shown(strategy)}")
    start = partitions.total(SumAtModes(model, strategy.n_folds, seed, None))
    _refuse_start(start, strategy, model.row_loss.binary)
    size, columns = float(start.weight[-1]), start.gradient.shape[2]
    at = SumAtModes(model, strategy.n_folds, seed, columns)
    factors = size / start.weight if strategy.transfer == "alpha" else np.ones(len(start.weight))
    scale = Scale(1 / (_rate(start) * float(factors.max())))
    ruler = Ruler.of_scale((0.0, max(bounds[1], 1.0)), scale)
    panels, theta, left = Panels(ruler, DEGREE), None, MOST_PASSES
    while True:
        c = np.multiply.outer(factors, panels.nodes)
        found = _newton(partitions, at, start, c, theta, left)
        summed = SummedCurve(_losses(partitions, at, found, c, panels, risk), panels, scale)
        left = found.left - 1
        if panels.resolves(summed.sums.plain, RESOLVED):
            break
        if left < LEAST_PASSES:
            raise ValueError(NOT_FOUND)
        finer = replace(panels, widest=panels.widest / 2)
        theta = panels.weights(finer.nodes)[0] @ found.modes
        panels = finer
    posteriors = Posteriors(model, panels, found.modes[-1], found.hessian[-1])
    curve = summed.curve(f"{at.loss.method}, by passes over the rows")
    minimum = strategy.locate(curve, bounds)
    inflate = partial(posteriors.inflation, minimum.beta, size)
    calibration = ModeCalibration(
        model=model,
        data=summed.tested,
        strategy=strategy,
        kind=risk,
        bounds=bounds,
        minimum=minimum,
        risk=float(curve(minimum.beta)),
        errors=RowErrors(curve, minimum.beta, summed.weights, inflate),
        curve=curve,
        found=posteriors,
    )
    warn_of_minimum(calibration)
    return calibration


def _no_sums(theta: Array) -> ModeSums:
    t, b, k = theta.shape
    shapes: list[tuple[int, ...]] = [(t,), (t,), (t, b), (t, b, k), (t, b, k, k)]
    return ModeSums(*(np.zeros(shape) for shape in shapes))


def _refuse_start(start: ModeSums, strategy: KFold, binary: bool) -> None:
    size, ones = float(start.weight[-1]), float(start.labels[-1])
    if not size > 0:
        raise ValueError("X must have at least one row of positive weight, got none")
    if not np.isfinite(size):
        raise ValueError("weights must have a finite sum over all rows, got infinity")
    if binary and not 0 < ones < size:
        raise ValueError(f"y must hold both classes 0 and 1, got only {float(ones > 0)!r}")
    if not (start.weight[:-1] < size).all():
        raise ValueError(f"X must have a row in every fold of {strategy!r}, got none in one")


def _rate(start: ModeSums) -> float:
    """Return a bound of how fast posteriors leave the prior at beta = 0."""
    pull = float(np.linalg.norm(start.gradient[-1, 0]))
    return max(float(np.trace(start.hessian[-1, 0])), pull, 1e-100)


def _losses(
    partitions: Partitions, at: SumAtModes, found: Found, c: Array, panels: Panels, risk: Risk
) -> LossSums:
    """Return the sums of losses of all rows, each under the posterior of the other folds."""
    precision = np.eye(found.modes.shape[2]) + c[..., None, None] * found.hessian
    roots = np.stack([inverse_root(each) for each in precision[:-1]])
    losses = LossesAtModes(
        at.model, at.n_folds, at.seed, at.columns, panels.nodes, risk, found.modes[:-1], roots
    )
    base = int(np.argmin(np.abs(panels.nodes - 1.0)))
    return partitions.total(GatherLosses(losses, Other(), found.modes.shape[2], base)).sums


def _newton(
    partitions: Partitions,
    at: SumAtModes,
    start: ModeSums,
    c: Array,
    begin: Array | None,
    left: int,
) -> Found:
    """Return the modes at all c (t, b), by passes over the rows, from 0 or where they may be."""
    shape = (*c.shape, start.gradient.shape[2])
    theta = np.zeros(shape)
    objective = c * start.value
    gradient = np.broadcast_to(start.gradient, shape).copy()
    hessian = np.broadcast_to(start.hessian, (*shape, shape[2])).copy()
    step, distance = _step(theta, gradient, hessian, c)
    if begin is not None:
        step = begin  # from 0, where the objective is known
    length = np.ones(c.shape)
    while left > 0:
        (active,) = np.nonzero((distance > CLOSE).any(axis=0))
        if not len(active):
            return Found(theta + step, hessian, left)
        tried = (theta + length[..., None] * step)[:, active]
        sums, left = partitions.total(replace(at, theta=tried)), left - 1
        reached = c[:, active] * sums.value + 0.5 * (tried**2).sum(axis=2)
        before = objective[:, active]
        lower = reached <= before + ROUNDING * np.abs(before)
        old = (theta, objective, gradient, hessian)
        for whole, part in zip(old, (tried, reached, sums.gradient, sums.hessian), strict=True):
            kept = lower.reshape(*lower.shape, *[1] * (part.ndim - 2))
            whole[:, active] = np.where(kept, part, whole[:, active])
        length[:, active] = np.where(lower, 1.0, SHORTER * length[:, active])
        step, distance = _step(theta, gradient, hessian, c)
    raise ValueError(NOT_FOUND)


def _step(theta: Array, gradient: Array, hessian: Array, c: Array) -> tuple[Array, Array]:
    """Return Newton's steps, and their lengths in standard deviations of the posteriors."""
    slope = theta + c[..., None] * gradient
    precision = np.eye(theta.shape[2]) + c[..., None, None] * hessian
    try:
        step = -np.linalg.solve(precision, slope[..., None])[..., 0]
    except np.linalg.LinAlgError:
        raise ValueError(NOT_FOUND) from None
    return step, np.sqrt(np.maximum(-(slope * step).sum(axis=2), 0.0))
