r"""The entry points: calibrate linear models on blocks of rows, on partitions, from moments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np

from temperance.calibration import Calibration
from temperance.checks import as_bounds, one_of, shown, whole
from temperance.data import Risk
from temperance.resources import threads_for
from temperance.strategies import KFold
from temperance.streaming.accumulate import FoldMoments, accumulate
from temperance.streaming.averages import source_of
from temperance.streaming.mode_sums import LaplaceModel
from temperance.streaming.modes import calibrate_modes, is_laplace
from temperance.streaming.one_pass import (
    ONE_PASS,
    Linear,
    OnePass,
    as_linear,
    as_strategy,
    folds_of,
    from_moments,
)
from temperance.streaming.partitions import Blocks, FoldStatistic, Partitions, merged
from temperance.streaming.several_passes import SEVERAL, calibrate_in_passes, in_passes


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
    linear = as_linear(model)
    total = moments if isinstance(moments, FoldMoments) else merged(_refusing_others(moments))
    chosen = as_strategy(KFold(total.n_folds) if strategy is None else strategy, bounds)
    n_folds = folds_of(chosen)
    if n_folds is None:
        raise ValueError(f"strategy must be {ONE_PASS}, which need one pass, got {shown(chosen)}")
    if n_folds != total.n_folds:
        raise ValueError(f"moments must have {n_folds} folds for {chosen!r}, got {total.n_folds}")
    with threads_for(0):
        return from_moments(linear, total, chosen, as_bounds(bounds))


def calibrate_blocks(
    model: Linear | LaplaceModel,
    blocks: Iterable[Any],
    strategy: Any = None,
    *,
    bounds: tuple[float, float] = (0.0, 3.0),
    risk: Risk = "gibbs",
    folds: Literal["rows", "blocks"] = "rows",
    seed: int | np.random.Generator | None = 0,
) -> Calibration:
    r"""Choose beta from blocks of rows, each of which is read once, or a few times.

    Peak memory is O(d^2) for each fold plus one block, for any number of rows; see
    :func:`calibrate_moments`.  The result equals that of :func:`temperance.calibrate` on all rows
    with the same folds.

    Parameters
    ----------
    model : GaussianLinear, NormalInverseGammaLinear, LaplaceLogistic or a Laplace GibbsLinear
        The last takes folds of blocks, and a pass for each step of Newton's method.
    blocks : iterable of (X, y) or (X, y, weights)
        A generator, memory-mapped arrays (:func:`blocks_of_arrays`), the row groups of a Parquet
        file (:func:`blocks_of_parquet`).  Blocks may be empty.  More than one pass needs a list, or
        an object whose ``__iter__`` begins anew.
    strategy : KFold, SampleSplitting(shuffle=True), Naive, Bayes, LeaveOneOut, ReferenceRisk
        Or an Average over KFold or LeaveOneOut.  By default ten folds with ``transfer="beta"``.
        Identical rows are not kept together.  The first four take one pass for the Gibbs risk;
        others take two, and a third if some rows determine a direction alone.  An average takes
        one or two more than its source.
    bounds : (float, float)
        Range allowed for beta.
    risk : {"gibbs", "predictive"}
        The predictive risk takes two passes; with folds, these must be those of blocks.
        ReferenceRisk has the Gibbs risk alone.
    folds : {"rows", "blocks"}
        Whether the fold of a row depends on its place among all rows (:func:`fold_numbers`), so
        that the result does not depend on how rows are divided into blocks; or each block draws
        its own folds, as the workers of a cluster do (:func:`partition_moments`).
    seed : int, Generator or None
        Seed of the folds; an integer for ``folds="blocks"``.

    Returns
    -------
    Calibration
        Its ``data`` are a few weighted rows with the second moments of all.  Standard errors of
        one pass are those between folds, nan without folds; those of several are over rows.

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
    one_of("risk", risk, ("gibbs", "predictive"))
    one_of("folds", folds, ("rows", "blocks"))
    chosen = as_strategy(KFold() if strategy is None else strategy, bounds)
    logistic = is_laplace(model)
    again = logistic or in_passes(chosen, risk)
    n_folds = folds_of(source_of(chosen))
    if again:
        if n_folds is not None and n_folds > 1 and folds == "rows":
            what = type(model).__name__ if logistic else "the predictive risk of folds"
            raise ValueError(
                f"folds must be 'blocks' for {what}, which needs the rows again, got 'rows'"
            )
        _refuse_to_read_once(blocks, chosen, risk)
    with threads_for(0):
        if again or folds == "blocks":
            number = _integer(seed) if folds == "blocks" else 0
            return calibrate_partitions(
                model, Blocks(blocks), chosen, bounds=bounds, risk=risk, seed=number
            )
        linear = as_linear(model)
        refuse_other_strategies(chosen)
        moments = accumulate(blocks, n_folds or 1, seed)
        return from_moments(linear, moments, chosen, as_bounds(bounds))


def calibrate_partitions(
    model: Linear | LaplaceModel,
    partitions: Partitions,
    strategy: Any,
    *,
    bounds: tuple[float, float] = (0.0, 3.0),
    risk: Risk = "gibbs",
    seed: int = 0,
) -> Calibration:
    """Choose beta from partitions that an engine can pass over; see :func:`calibrate_blocks`."""
    one_of("risk", risk, ("gibbs", "predictive"))
    limits, chosen = as_bounds(bounds), as_strategy(strategy, bounds)
    number = whole("seed", seed, 0)
    if is_laplace(model):
        return calibrate_modes(model, partitions, chosen, limits, risk, number)
    linear = as_linear(model)
    if in_passes(chosen, risk):
        return calibrate_in_passes(linear, partitions, chosen, limits, risk, number)
    refuse_other_strategies(chosen)
    moments = partitions.total(FoldStatistic(folds_of(chosen) or 1, number))
    return from_moments(linear, moments, chosen, limits)


def refuse_other_strategies(strategy: Any) -> None:
    """Refuse strategies that need more than sums over rows."""
    if folds_of(strategy) is None:
        raise ValueError(
            f"strategy must be {ONE_PASS}, which need one pass over the rows, or {SEVERAL}, got "
            f"{shown(strategy)}"
        )


def _refuse_to_read_once(blocks: Any, strategy: Any, risk: str) -> None:
    if isinstance(blocks, Iterator):
        raise ValueError(
            f"blocks must be readable several times for {strategy!r} and risk={risk!r}: a list, or "
            f"an object whose __iter__ begins anew, got {type(blocks).__name__}"
        )


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
