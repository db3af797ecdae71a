r"""The entry points: calibrate models on blocks of rows, on partitions, from moments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from temperance.calibration import Calibration
from temperance.checks import as_bounds, one_of, shown, whole
from temperance.data import Risk, threads_for
from temperance.strategies import Bayes, KFold, LeaveOneOut, ReferenceRisk, Stacking, strategy_named
from temperance.streaming import linear
from temperance.streaming.accumulate import FoldMoments
from temperance.streaming.folds import FoldNumbers
from temperance.streaming.linear import Linear, folds_of, source_of
from temperance.streaming.mode_sums import LaplaceModel
from temperance.streaming.modes import calibrate_modes, is_laplace
from temperance.streaming.partitions import Blocks, Folded, Partitions, merged
from temperance.table import LEAST

ONE_PASS = "KFold, SampleSplitting(shuffle=True), Naive or Bayes"


def calibrate_moments(
    model: Linear,
    moments: FoldMoments | Iterable[FoldMoments],
    strategy: Any = None,
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
    model : GaussianLinear, NormalInverseGammaLinear or HierarchicalLinear
    moments : FoldMoments, or an iterable of those of partitions
        From :func:`partition_moments`.
    strategy : KFold, SampleSplitting(shuffle=True), Naive or Bayes
        By default as many folds as the moments have.
    bounds : (float, float)
        Range allowed for beta.

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
    total = moments if isinstance(moments, FoldMoments) else merged(_refusing_others(moments))
    strategy = KFold(total.n_folds) if strategy is None else strategy
    chosen = as_strategy(strategy, as_linear(model), "gibbs", bounds)
    n_folds = folds_of(chosen)
    if n_folds is None:
        raise ValueError(f"strategy must be {ONE_PASS}, which need one pass, got {shown(chosen)}")
    if n_folds != total.n_folds:
        raise ValueError(f"moments must have {n_folds} folds for {chosen!r}, got {total.n_folds}")
    with threads_for(0):
        return linear.from_moments(model, total, chosen, as_bounds(bounds))


def calibrate_blocks(
    model: Linear | LaplaceModel,
    blocks: Iterable[Any],
    strategy: Any = None,
    *,
    bounds: tuple[float, float] = (0.0, 3.0),
    risk: Risk = "predictive",
    folds: Literal["rows", "blocks"] | None = None,
    seed: int | np.random.Generator | None = 0,
) -> Calibration:
    r"""Choose beta, or weights over beta, from blocks of rows, which are read once or a few times.

    Memory is O(d^2) for each fold plus one block and a sample of losses, for any number of rows.
    Curves and posteriors are those of :func:`temperance.calibrate` on all rows with the same folds;
    so are weights of betas and errors of up to 50,000 rows, and of more rows those of a sample.

    Parameters
    ----------
    model : linear, or a Laplace approximation
        GaussianLinear, NormalInverseGammaLinear, HierarchicalLinear; LaplaceLogistic or a Laplace
        GibbsLinear, which take folds of blocks, and a pass for each step of Newton's method.
    blocks : iterable of (X, y) or (X, y, weights)
        A generator, memory-mapped arrays (:func:`blocks_of_arrays`), the row groups of a Parquet
        file (:func:`blocks_of_parquet`).  Blocks may be empty.  Forecasts need blocks that can be
        read twice: a list, or an object whose ``__iter__`` begins anew.
    strategy : KFold, SampleSplitting(shuffle=True), Naive, Bayes, LeaveOneOut or Stacking
        By default :class:`temperance.strategies.Stacking` for forecasts, and ten folds for the
        Gibbs risk.  Identical rows are not kept together.  The first four take one pass for the
        Gibbs risk, others two, and a third if some rows determine a direction alone.
    bounds : (float, float)
        Range allowed for beta.
    risk : {"predictive", "gibbs"}
    folds : {"rows", "blocks"}, optional
        Whether the fold of a row depends on its place among all rows (:func:`fold_numbers`), so
        that the result does not depend on how rows are divided into blocks; or each block draws
        its own folds, as the workers of a cluster do (:func:`partition_moments`).  The first by
        default where one pass is enough; more take the second.
    seed : int, Generator or None
        Seed of the folds; an integer for folds of blocks.

    Returns
    -------
    Calibration
        Its ``data`` are a few rows that stand for all.  Standard errors and ranges of one pass are
        those between folds, nan without folds; those of several are over rows.

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
    >>> calibration = calibrate_blocks(models.GaussianLinear(), blocks(), risk="gibbs")
    >>> calibration.data.size, calibration.beta < 1
    (50.0, True)
    """
    if folds is not None:
        one_of("folds", folds, ("rows", "blocks"))
    chosen = as_strategy(strategy, model, risk, bounds)
    n_folds = folds_of(source_of(chosen)) or 1
    again = risk == "predictive" or isinstance(chosen, LeaveOneOut) or is_laplace(model)
    if again and folds == "rows" and n_folds > 1:
        raise ValueError(
            f"folds must be 'blocks' for {chosen!r}, which needs the rows again, got 'rows'"
        )
    if again and isinstance(blocks, Iterator):
        raise ValueError(
            f"blocks must be readable several times for {chosen!r} and risk={risk!r}: a list, or "
            f"an object whose __iter__ begins anew, got {type(blocks).__name__}"
            + ("; or pass risk='gibbs', which takes one pass" if risk == "predictive" else "")
        )
    if n_folds == 1:
        seed = 0
    in_order = None if again or folds == "blocks" else FoldNumbers(n_folds, seed)
    number = whole("seed", seed, 0) if in_order is None else 0
    folded = Folded(n_folds, number, in_order=in_order)
    return calibrate_partitions(model, Blocks(blocks), chosen, folded, bounds=bounds, risk=risk)


def calibrate_partitions(
    model: Linear | LaplaceModel,
    partitions: Partitions,
    strategy: Any,
    folded: Folded,
    *,
    bounds: tuple[float, float] = (0.0, 3.0),
    risk: Risk = "predictive",
) -> Calibration:
    """Choose beta from partitions that an engine can pass over; see :func:`calibrate_blocks`."""
    limits = as_bounds(bounds)
    with threads_for(0):
        if is_laplace(model):
            return calibrate_modes(model, partitions, folded, strategy, limits, risk)
        exact = as_linear(model)
        if risk == "predictive" or folds_of(strategy) is None:
            return linear.calibrate_in_passes(exact, partitions, folded, strategy, limits, risk)
        return linear.from_moments(exact, partitions.total(folded), strategy, limits)


def as_strategy(
    strategy: Any, model: Any, risk: Risk, bounds: tuple[float, float], n_folds: int = 10
) -> Any:
    """Return a strategy by its name, one given, or the default; refuse those for rows in memory."""
    one_of("risk", risk, ("gibbs", "predictive"))
    limits, folds = as_bounds(bounds), KFold(whole("n_folds", n_folds, 2))
    laplace = is_laplace(model)
    if not laplace:
        as_linear(model)
    chosen = strategy_named(strategy) if isinstance(strategy, str) else strategy
    if chosen is None:
        chosen = folds if risk == "gibbs" else Stacking()
    if isinstance(chosen, Stacking):
        if risk != "predictive":
            raise ValueError(f"Stacking is for forecasts: risk must be 'predictive', got {risk!r}")
        if limits[1] < LEAST:
            raise ValueError(f"bounds must reach beyond {LEAST:g} to stack, got {limits!r}")
        source = folds if chosen.source is None and laplace else source_of(chosen)
        return replace(chosen, source=as_strategy(source, model, risk, bounds))
    if isinstance(chosen, ReferenceRisk):
        raise ValueError("ReferenceRisk needs rows in memory: use calibrate, or other strategies")
    if isinstance(chosen, Bayes) and not limits[0] <= 1 <= limits[1]:
        raise ValueError(f"bounds must contain beta = 1 for Bayes, got {limits!r}")
    if isinstance(chosen, KFold) and chosen.duplicates == "auto":
        return replace(chosen, duplicates="apart")
    together = isinstance(chosen, LeaveOneOut) and chosen.duplicates == "together"
    if together or not isinstance(chosen, LeaveOneOut) and folds_of(chosen) is None:
        raise ValueError(
            f"strategy must be {ONE_PASS}, LeaveOneOut or Stacking of these on blocks and "
            f"partitions, where equal rows are not seen, got {shown(chosen)}"
        )
    return chosen


def as_linear(model: Any) -> Linear:
    """Return the model; refuse those whose risk does not follow from sums over rows."""
    if not isinstance(model, Linear):
        raise ValueError(
            "model must be GaussianLinear, NormalInverseGammaLinear, HierarchicalLinear, "
            "LaplaceLogistic or GibbsLinear(posterior='laplace') to be calibrated on blocks, got "
            f"{shown(model)}"
        )
    return model


def _refusing_others(moments: Any) -> Iterator[FoldMoments]:
    try:
        iterator = iter(moments)
    except TypeError:
        raise ValueError(f"moments must be FoldMoments, got {shown(moments)}") from None
    for each in iterator:
        if not isinstance(each, FoldMoments):
            raise ValueError(f"moments must be FoldMoments, got {shown(each)} among them")
        yield each
