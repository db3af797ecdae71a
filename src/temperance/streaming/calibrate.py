r"""Calibrate linear models from second moments of folds, which one pass over the rows gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from temperance.calibration import Calibration, KnownErrors, StandardErrors, mean_and_error
from temperance.curves import RiskCurve
from temperance.models import GaussianLinear, NormalInverseGammaLinear
from temperance.resources import threads_for
from temperance.strategies import Bayes, KFold, Naive, SampleSplitting, strategy_named
from temperance.strategies.selection import conclude, warn_of_minimum
from temperance.streaming.accumulate import FoldMoments, accumulate, refuse_no_rows
from temperance.streaming.partitions import Blocks, FoldStatistic, Partitions, merged
from temperance.types import Array, Data, FoldPlan, Plan, Risk
from temperance.validation import as_bounds, one_of, refuse_overflow, shown, whole

Linear = GaussianLinear | NormalInverseGammaLinear
OnePass = KFold | SampleSplitting | Naive  # Bayes is a subclass of Naive
ONE_PASS = "KFold, SampleSplitting(shuffle=True), Naive or Bayes"


def calibrate_moments(
    model: Linear,
    moments: FoldMoments | Iterable[FoldMoments],
    strategy: OnePass | str | None = None,
    *,
    bounds: tuple[float, float] = (0.0, 3.0),
) -> Calibration:
    r"""Choose beta by the Gibbs risk from the second moments of folds.

    The Gibbs risk of a linear model depends on the rows of a fold through

    .. math:: \sum_i w_i \, [x_i \; y_i]'[x_i \; y_i]

    alone.  All calibrations in one pass end here; call it with moments that an engine of your own
    has computed (docs/spark.md).

    Parameters
    ----------
    model : GaussianLinear or NormalInverseGammaLinear
    moments : FoldMoments, or an iterable of those of partitions
        From :func:`partition_moments`.
    strategy : KFold, SampleSplitting(shuffle=True), Naive or Bayes
        By default as many folds as the moments have.
    bounds : (float, float)
        Range allowed for beta.

    Returns
    -------
    Calibration
        As :func:`calibrate_blocks`.

    Examples
    --------
    >>> import numpy as np
    >>> from temperance import models
    >>> from temperance.streaming import partition_moments
    >>> rng = np.random.default_rng(1)
    >>> X = rng.standard_normal((50, 20))
    >>> y = X[:, 0] + 3 * rng.standard_normal(50)
    >>> parts = [partition_moments(X[i::2], y[i::2], partition=i) for i in range(2)]
    >>> calibrate_moments(models.GaussianLinear(), parts).beta < 1
    True
    """
    refuse_other_models(model)
    total = moments if isinstance(moments, FoldMoments) else merged(_refusing_others(moments))
    chosen = as_strategy(KFold(total.n_folds) if strategy is None else strategy, bounds)
    n_folds = folds_of(chosen)
    if n_folds is None:
        raise ValueError(f"strategy must be {ONE_PASS}, which need one pass, got {shown(chosen)}")
    if n_folds != total.n_folds:
        raise ValueError(f"moments must have {n_folds} folds for {chosen!r}, got {total.n_folds}")
    with threads_for(0):
        return _from_moments(model, total, chosen, as_bounds(bounds))


def calibrate_blocks(
    model: Linear,
    blocks: Iterable[Any],
    strategy: OnePass | str | None = None,
    *,
    bounds: tuple[float, float] = (0.0, 3.0),
    risk: Risk = "gibbs",
    folds: Literal["rows", "blocks"] = "rows",
    seed: int | np.random.Generator | None = 0,
) -> Calibration:
    r"""Choose beta from blocks of rows, each of which is read once.

    Peak memory is O(d^2) for each fold plus one block, for any number of rows; see
    :func:`calibrate_moments`.  The result equals that of :func:`temperance.calibrate` on all rows
    with the same folds.

    Parameters
    ----------
    model : GaussianLinear or NormalInverseGammaLinear
    blocks : iterable of (X, y) or (X, y, weights)
        A generator, memory-mapped arrays (:func:`blocks_of_arrays`), the row groups of a Parquet
        file (:func:`blocks_of_parquet`).  Blocks may be empty.
    strategy : KFold, SampleSplitting(shuffle=True), Naive or Bayes
        By default ten folds with ``transfer="beta"``.  Identical rows are not kept together.
    bounds : (float, float)
        Range allowed for beta.
    risk : {"gibbs"}
        There is no predictive risk: it needs single rows, which are not kept.
    folds : {"rows", "blocks"}
        Whether the fold of a row depends on its place among all rows (:func:`fold_numbers`), so
        that the result does not depend on how rows are divided into blocks; or each block draws
        its own folds, as the workers of a cluster do (:func:`partition_moments`).
    seed : int, Generator or None
        Seed of the folds; an integer for ``folds="blocks"``.

    Returns
    -------
    Calibration
        Its ``data`` are a few weighted rows with the second moments of all.  Standard errors are
        those between folds; nan for other strategies.

    Examples
    --------
    >>> import numpy as np
    >>> from temperance import models
    >>> from temperance.streaming import calibrate_blocks
    >>> rng = np.random.default_rng(1)
    >>> def blocks():
    ...     for _ in range(5):
    ...         X = rng.standard_normal((10, 20))
    ...         yield X, X[:, 0] + 3 * rng.standard_normal(10)
    >>> calibration = calibrate_blocks(models.GaussianLinear(), blocks())
    >>> calibration.data.size, calibration.beta < 1
    (50.0, True)
    """
    refuse_other_models(model)
    one_of("risk", risk, ("gibbs", "predictive"))
    one_of("folds", folds, ("rows", "blocks"))
    if risk == "predictive":
        raise ValueError(
            "risk must be 'gibbs' on blocks, got 'predictive': forecasts need the rows again; use "
            "calibrate on a sample of them"
        )
    chosen = as_strategy(KFold() if strategy is None else strategy, bounds)
    n_folds = folds_of(chosen)
    if n_folds is None:
        raise ValueError(
            f"strategy must be {ONE_PASS}, which need one pass over the blocks, got {shown(chosen)}"
        )
    with threads_for(0):
        if folds == "rows":
            moments = accumulate(blocks, n_folds, seed)
        else:
            moments = Blocks(blocks).total(FoldStatistic(n_folds, _integer(seed)))
        return _from_moments(model, moments, chosen, as_bounds(bounds))


def calibrate_partitions(
    model: Linear,
    partitions: Partitions,
    strategy: Any,
    *,
    bounds: tuple[float, float] = (0.0, 3.0),
    risk: Risk = "gibbs",
    seed: int = 0,
) -> Calibration:
    """Choose beta from partitions that an engine can pass over."""
    refuse_other_models(model)
    one_of("risk", risk, ("gibbs", "predictive"))
    limits, chosen = as_bounds(bounds), as_strategy(strategy, bounds)
    n_folds = folds_of(chosen)
    if n_folds is None or risk != "gibbs":
        raise ValueError(
            f"strategy must be {ONE_PASS}, which need one pass over the rows, got {shown(chosen)}"
        )
    moments = partitions.total(FoldStatistic(n_folds, whole("seed", seed, 0)))
    return _from_moments(model, moments, chosen, limits)


def _from_moments(
    model: Linear, moments: FoldMoments, chosen: OnePass, limits: tuple[float, float]
) -> Calibration:
    refuse_no_rows(moments)
    if moments.count.min() < 1:
        raise ValueError(
            f"X must have a row in every fold of {chosen!r}, got none in one of them out of "
            f"{int(moments.count.sum())} rows"
        )
    rows, fold = moments.as_data()
    model.check(rows)
    with refuse_overflow(rows.X, rows.y):
        curve = model.risk_curve(rows, plan_of(chosen, rows, fold))
        minimum = chosen.locate(curve, limits)
    found = conclude(model, rows, rows, chosen, "gibbs", limits, curve, minimum)
    errors: StandardErrors = KnownErrors()
    if isinstance(chosen, KFold):
        errors = FoldErrors(curve, minimum.beta, fold)
    calibration = replace(found, errors=errors)
    warn_of_minimum(calibration)
    return calibration


def refuse_other_models(model: Any) -> None:
    """Refuse models whose risk does not follow from second moments."""
    if not isinstance(model, GaussianLinear | NormalInverseGammaLinear):
        raise ValueError(
            "model must be GaussianLinear or NormalInverseGammaLinear to be calibrated on blocks, "
            f"got {shown(model)}"
        )


def as_strategy(strategy: Any, bounds: tuple[float, float]) -> Any:
    """Return a strategy by its name, or one given, in which equal rows are not detected."""
    chosen = strategy_named(strategy) if isinstance(strategy, str) else strategy
    limits = as_bounds(bounds)
    if isinstance(chosen, Bayes) and not limits[0] <= 1 <= limits[1]:
        raise ValueError(f"bounds must contain beta = 1 for Bayes, got {limits!r}")
    if isinstance(chosen, KFold) and chosen.duplicates == "auto":
        chosen = replace(chosen, duplicates="apart")
    return chosen


def _integer(seed: Any) -> int:
    try:
        return whole("seed", seed, 0)
    except ValueError as error:
        raise ValueError(f'{error} for folds="blocks"') from None


def _refusing_others(moments: Any) -> Iterator[FoldMoments]:
    try:
        iterator = iter(moments)
    except TypeError:
        raise ValueError(f"moments must be FoldMoments, got {shown(moments)}") from None
    for each in iterator:
        if not isinstance(each, FoldMoments):
            raise ValueError(f"moments must be FoldMoments, got {shown(each)} among them")
        yield each


@dataclass(frozen=True, eq=False)
class FoldErrors:
    """Standard errors between folds, of the risk and of the gain over Bayes."""

    curve: RiskCurve
    beta: float
    fold: NDArray[np.intp]

    @property
    def risk(self) -> float:
        """Standard error of the risk."""
        return _between(*self._losses(self.beta))

    @cached_property
    def gain(self) -> float:
        """Standard error of the gain."""
        loss, share = self._losses(self.beta)
        return _between(self._losses(1.0)[0] - loss, share)

    def _losses(self, beta: float) -> tuple[Array, Array]:
        """Return the mean loss of each fold, and its weight."""
        loss, weight = self.curve.rows(beta)
        share = np.bincount(self.fold, weight).astype(float)
        return np.bincount(self.fold, weight * loss) / share, share


def _between(losses: Array, share: Array) -> float:
    return mean_and_error(losses, share, np.ones_like(share))[1]


def folds_of(strategy: Any) -> int | None:
    """Return the number of folds of a strategy of one pass; None for others."""
    if isinstance(strategy, KFold) and strategy.duplicates != "together":
        return strategy.n_folds
    if isinstance(strategy, SampleSplitting) and strategy.shuffle and strategy.repeats == 1:
        return 2
    if isinstance(strategy, Naive):
        return 1
    return None


def plan_of(strategy: OnePass, rows: Data, fold: NDArray[np.intp]) -> Plan | FoldPlan:
    """Return the pairs of train and test weights of a few rows with given folds."""
    if isinstance(strategy, KFold):
        return FoldPlan(rows.weights, fold, strategy.n_folds, strategy.transfer)
    if isinstance(strategy, Naive):
        return strategy.plan(rows, np.random.default_rng(0))
    first = (fold == 0)[None]
    train = np.concatenate([first, ~first]) if strategy.both_directions else first
    return Plan(train * rows.weights, ~train * rows.weights, rows.size, strategy.transfer)
