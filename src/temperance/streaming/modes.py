r"""Laplace approximations on partitions: Newton's method by sums over rows, one pass for a step.

For the training set t of each fold, that of all rows, and every beta of some panels
(:mod:`temperance.streaming.panels`), the mode theta in whitened coordinates minimises

    J = c sum_i w_i l(u_i, y_i) + |theta|^2 / 2,    u = offset + Z theta,    c = beta f_t,

with f_t the factor on beta in the training set.  A pass adds up the loss, its gradient and its
Hessian at all modes that have not been found (:mod:`temperance.streaming.mode_sums`).  At theta = 0
these are the same at every beta, so that the first step of all takes one pass.  A step that does
not make J smaller is shortened.

The modes of all rows are found first: one training set costs a tenth of ten.  If rows are many,
those of some rows come before.  The modes outside of a fold are near those of all rows at the beta
of equally much information, where a pass gives the sums of every fold at once; two or three passes
remain.  The Hessians of all rows also tell which betas the panels of the folds need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeGuard

import numpy as np
from numpy.typing import NDArray

from temperance.calibration import BetaWeights, Calibration
from temperance.checks import non_negative, shown
from temperance.data import Array, Data, Risk
from temperance.models import GibbsLinear, LaplaceLogistic
from temperance.models.glm.gaussians import inverse_root
from temperance.models.glm.model import refuse_without_likelihood
from temperance.posteriors import GaussianPosterior
from temperance.search.log_scale import HUGE, Ruler, Scale
from temperance.strategies import Average, KFold
from temperance.strategies.selection import warn_of_minimum
from temperance.streaming.averages import MixedLosses, averaged, refuse_other_risk, source_of
from temperance.streaming.loss_sums import LossSums, SummedCurve
from temperance.streaming.mode_sums import (
    LaplaceModel,
    LossesAtModes,
    Modes,
    ModeSums,
    SumByFold,
    SumOutsideFolds,
    as_forms,
)
from temperance.streaming.panels import Panels
from temperance.streaming.partitions import Partitions
from temperance.streaming.row_losses import GatherLosses, LossesOfRows, Other
from temperance.uncertainty.standard_errors import RowErrors, error_inflation

MOST_PASSES = 38  # of Newton's method; the first one and that of the losses come on top
CLOSE = 1e-9  # last step to a mode, in standard deviations of the posterior: Hessians are older
ROUNDING = 1e-12  # part of J
SHORTER = 0.25
DEGREE, WIDEST = 24, 4.5  # of the polynomials on a panel, and of panels: errors of 1e-10
ENOUGH = 1000  # rows for each column whose modes are near those of all rows
MANY = 8  # times as many rows, from which on some of them come first
NEGLIGIBLE = 1e-9  # change of a risk
RESOLVED = 1e-9  # the last coefficients on a panel beside the risk; if larger, panels are halved
MODE_RESOLVED = 1e-8  # the same beside the largest coefficient of a mode
LEAST_PASSES = 4  # that halved panels take
FLATTER = 30.0  # how much smaller eigenvalues of folds may be than those of all rows, at first
NOT_FOUND = (
    "X and y must have modes that Newton's method finds in 40 passes over the rows, got some that "
    "it does not; standardise X, leave out columns that depend on others, or narrow bounds"
)


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


class Found(NamedTuple):
    """Modes (t, b, k) at nodes, Hessians of the losses there, and how many passes are left."""

    panels: Panels
    modes: Array
    hessian: Array
    left: int

    def at(self, beta: Array) -> Array:
        """Return the modes at other betas (g,), interpolated: (t, g, k)."""
        return self.panels.weights(beta)[0] @ self.modes

    def hessian_at(self, beta: Array) -> Array:
        """Return the Hessians at other betas (g,), interpolated: (t, g, k, k)."""
        return np.einsum("gb,tbjk->tgjk", self.panels.weights(beta)[0], self.hessian, optimize=True)


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

    def parameters_used(self, data: Data, betas: Array) -> Array:
        """Return how many parameters the posteriors take from the data: d - tr(S_0^-1 S)."""
        roots = [self.whitened(float(beta))[1] for beta in betas]
        return np.array([len(root) - float((root**2).sum()) for root in roots])


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
    refuse_other_risk(strategy, risk)
    source = source_of(strategy)
    if not isinstance(source, KFold) or source.duplicates == "together":
        kind = type(model).__name__
        raise ValueError(
            f"strategy must be KFold for {kind} on partitions, or Average(KFold()), got "
            f"{shown(strategy)}"
        )
    start = partitions.total(SumByFold(model, source.n_folds, seed, None))
    _refuse_start(start, source, model.row_loss.binary)
    size = float(start.weight.sum())
    columns = start.gradient.shape[2] + _offsets(model)
    modes = Modes(model, source.n_folds, seed, columns)
    whole = _of_all_rows(partitions, modes, start.together, max(bounds[1], 1.0))
    share = start.others.weight / size
    factors = 1 / share if source.transfer == "alpha" else np.ones_like(share)
    summed, found = _held_out(partitions, modes, whole, share, factors, risk)
    posteriors = Posteriors(model, whole.panels, whole.modes[0], whole.hessian[0])
    curve = summed.curve(f"{model.row_loss.method}, by passes over the rows")
    data = summed.tested
    inflate = partial(error_inflation, posteriors, data)
    average = None
    if isinstance(strategy, Average):

        def sums_of(average: BetaWeights) -> LossSums:
            at = _losses(modes, found, np.append(average.betas, 1.0), factors, risk)
            return _gathered(partitions, MixedLosses(at, average))

        average, minimum, value, errors = averaged(
            strategy, summed, curve, posteriors, data, bounds, sums_of, inflate
        )
    else:
        minimum = strategy.locate(curve, bounds)
        value = float(curve(minimum.beta))
        weights, beta = summed.weights, minimum.beta
        errors = RowErrors(curve, beta, weights, partial(inflate, beta))
    calibration = ModeCalibration(
        model=model,
        data=data,
        strategy=strategy,
        kind=risk,
        bounds=bounds,
        minimum=minimum,
        risk=value,
        errors=errors,
        curve=curve,
        average=average,
        found=posteriors,
    )
    warn_of_minimum(calibration)
    return calibration


def _offsets(model: LaplaceModel) -> int:
    """Return how many columns of X have no coefficient."""
    return int(isinstance(model, GibbsLinear) and model.offset_column is not None)


def _refuse_start(start: ModeSums, strategy: KFold, binary: bool) -> None:
    size, ones = float(start.weight.sum()), float(start.labels.sum())
    if not size > 0:
        raise ValueError("X must have at least one row of positive weight, got none")
    if not np.isfinite(size):
        raise ValueError("weights must have a finite sum over all rows, got infinity")
    if binary and not 0 < ones < size:
        raise ValueError(f"y must hold both classes 0 and 1, got only {float(ones > 0)!r}")
    if not (start.weight > 0).all():
        raise ValueError(f"X must have a row in every fold of {strategy!r}, got none in one")


def _of_all_rows(partitions: Partitions, modes: Modes, start: ModeSums, upper: float) -> Found:
    """Return the modes of all rows at nodes up to a beta, from the sums at 0.

    Those of many rows are found near the modes of some.
    """
    columns, count = start.gradient.shape[2], float(start.rows[0])
    every = int(count / (ENOUGH * columns))
    every = every if every >= MANY else 1
    at = SumByFold(modes.model, modes.n_folds, modes.seed, modes.columns)

    def sums(theta: Array, every: int = 1) -> ModeSums:
        return partitions.total(replace(at, theta=theta[0], every=every)).together

    # The gradient, too, bounds how fast posteriors leave the prior at beta = 0.
    fastest = np.linalg.norm(start.hessian[0, 0], 2), np.linalg.norm(start.gradient)
    # Where classes are apart, Hessians nearly vanish.
    panels = _panels(upper, max(*map(float, fastest), 1e-100), 0.0)
    left, zero = MOST_PASSES, np.zeros((1, 1, columns))
    if every > 1:
        start, left = sums(zero, every), left - 1
    theta: Array = np.repeat(zero, len(panels.nodes), axis=1)
    begin = start.repeated(len(panels.nodes))
    found = _newton(partial(sums, every=every), panels, np.ones(1), theta, begin, left)
    if every > 1:
        panels, left = _narrowed(found, 1.0), found.left - 1
        theta = found.at(panels.nodes)
        found = _newton(sums, panels, np.ones(1), theta, sums(theta), left)
    while not found.panels.resolves(found.modes[0], MODE_RESOLVED):
        panels, theta, left = _finer(found)
        found = _newton(sums, panels, np.ones(1), theta, sums(theta), left)
    return found


def _held_out(
    partitions: Partitions,
    modes: Modes,
    whole: Found,
    share: Array,
    factors: Array,
    risk: Risk,
) -> tuple[SummedCurve, Found]:
    """Return the curve of the losses of all rows, each under the posterior of the other folds."""
    model, n_folds, seed, columns = modes.model, modes.n_folds, modes.seed, modes.columns

    def sums(theta: Array) -> ModeSums:
        return partitions.total(SumOutsideFolds(model, n_folds, seed, columns, theta))

    panels = _narrowed(whole, float(factors.max()))
    near = whole.at(min(float(np.mean(factors * share)), 1.0) * panels.nodes)
    start = partitions.total(SumByFold(model, n_folds, seed, columns, near[0])).others
    theta, left = np.repeat(near, n_folds, axis=0), whole.left - 1
    while True:
        found = _newton(sums, panels, factors, theta, start, left)
        losses = _gathered(partitions, _losses(modes, found, panels.nodes, factors, risk))
        if panels.resolves(losses.plain, RESOLVED):
            return SummedCurve(losses, panels, Scale(panels.ruler.offset)), found
        panels, theta, left = _finer(found._replace(left=found.left - 1))
        start = sums(theta)


def _losses(modes: Modes, found: Found, betas: Array, factors: Array, risk: Risk) -> LossesAtModes:
    """Return the losses of rows at betas under the posteriors of other folds."""
    means, hessian = found.at(betas), found.hessian_at(betas)
    c = np.multiply.outer(factors, betas)[..., None, None]
    roots = np.stack([inverse_root(each) for each in np.eye(hessian.shape[-1]) + c * hessian])
    forms = as_forms(roots @ roots.swapaxes(2, 3))
    return LossesAtModes(
        modes.model, modes.n_folds, modes.seed, modes.columns, betas, risk, means, forms
    )


def _gathered(partitions: Partitions, losses: LossesOfRows) -> LossSums:
    """Return the sums of losses over all rows, in one pass."""
    base = int(np.argmin(np.abs(losses.beta - 1.0)))
    return partitions.total(GatherLosses(losses, Other(), None, base)).sums


def _panels(upper: float, fastest: float, slowest: float) -> Panels:
    """Return panels for posteriors whose eigenvalues lie about between two."""
    ruler = Ruler.of_scale((0.0, upper), Scale(1 / fastest))
    largest = FLATTER / slowest if slowest > 0 else HUGE
    return Panels(ruler, DEGREE, WIDEST, min(max(largest, 2 * ruler.offset), HUGE))


def _narrowed(found: Found, factor: float) -> Panels:
    """Return panels without betas beyond which the posteriors of all rows hardly change."""
    ruler, values = found.panels.ruler, np.linalg.eigvalsh(found.hessian[0])
    return _panels(ruler.upper, factor / ruler.offset, float(values.min()))


def _finer(found: Found) -> tuple[Panels, Array, int]:
    """Return more panels, the modes there and the passes left for them, if these are enough."""
    if found.left < LEAST_PASSES:
        raise ValueError(NOT_FOUND)
    finer = found.panels.finer()
    return finer, found.at(finer.nodes), found.left - 1


def _newton(
    sums_at: Callable[[Array], ModeSums],
    panels: Panels,
    factors: Array,
    theta: Array,
    start: ModeSums,
    left: int,
) -> Found:
    """Return the modes of t sets of rows, from points theta (t, b, k) with known sums."""
    c = np.multiply.outer(factors, panels.nodes)
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
    return Found(panels, theta + step, hessian, left)


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
