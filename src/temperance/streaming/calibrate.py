r"""Calibrate linear models on blocks of rows, in one pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.calibration import Calibration, KnownErrors, StandardErrors, mean_and_error
from temperance.curves import RiskCurve
from temperance.models import GaussianLinear, NormalInverseGammaLinear
from temperance.resources import threads_for
from temperance.strategies import Bayes, KFold, Naive, SampleSplitting, strategy_named
from temperance.strategies.selection import conclude, warn_of_minimum
from temperance.streaming.accumulate import accumulate
from temperance.types import Array, Data, FoldPlan, Plan, Risk
from temperance.validation import as_bounds, one_of, refuse_overflow, shown

OnePass = KFold | SampleSplitting | Naive  # Bayes is a subclass of Naive


def calibrate_blocks(
    model: GaussianLinear | NormalInverseGammaLinear,
    blocks: Iterable[Any],
    strategy: OnePass | str | None = None,
    *,
    bounds: tuple[float, float] = (0.0, 3.0),
    risk: Risk = "gibbs",
    seed: int | np.random.Generator | None = 0,
) -> Calibration:
    r"""Choose beta from blocks of rows, each of which is read once.

    The Gibbs risk of a linear model depends on the rows of a fold through

    .. math:: \sum_i w_i \, [x_i \; y_i]'[x_i \; y_i]

    alone, so peak memory is O(d^2) for each fold plus one block, for any number of rows.  The
    result equals that of :func:`temperance.calibrate` on all rows with the same folds.

    Parameters
    ----------
    model : GaussianLinear or NormalInverseGammaLinear
    blocks : iterable of (X, y) or (X, y, weights)
        A generator, memory-mapped arrays (:func:`blocks_of_arrays`), the row groups of a Parquet
        file (:func:`blocks_of_parquet`).  The result does not depend on how rows are divided into
        blocks; blocks may be empty.
    strategy : KFold, SampleSplitting(shuffle=True), Naive or Bayes
        By default ten folds with ``transfer="beta"``.  The fold of a row depends on its position
        (:func:`fold_numbers`); identical rows are not kept together.
    bounds : (float, float)
        Range allowed for beta.
    risk : {"gibbs"}
        There is no predictive risk: it needs single rows, which are not kept.
    seed : int, Generator or None
        Seed of the folds.

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
    if not isinstance(model, GaussianLinear | NormalInverseGammaLinear):
        raise ValueError(
            "model must be GaussianLinear or NormalInverseGammaLinear to be calibrated on blocks, "
            f"got {shown(model)}"
        )
    one_of("risk", risk, ("gibbs", "predictive"))
    if risk == "predictive":
        raise ValueError(
            "risk must be 'gibbs' on blocks, got 'predictive': forecasts need the rows again; use "
            "calibrate on a sample of them"
        )
    chosen: Any = KFold() if strategy is None else strategy
    if isinstance(chosen, str):
        chosen = strategy_named(chosen)
    limits, n_folds = as_bounds(bounds), _folds_of(chosen)
    if isinstance(chosen, KFold):
        chosen = replace(chosen, duplicates="apart")  # equal rows are not detected
    if isinstance(chosen, Bayes) and not limits[0] <= 1 <= limits[1]:
        raise ValueError(f"bounds must contain beta = 1 for Bayes, got {limits!r}")
    with threads_for(0):
        moments = accumulate(blocks, n_folds, seed)
        if moments.count.min() < 1:
            raise ValueError(
                f"blocks must hold at least {n_folds} rows for {chosen!r}, got "
                f"{int(moments.count.sum())}"
            )
        rows, fold = moments.as_data()
        model.check(rows)
        with refuse_overflow(rows.X, rows.y):
            curve = model.risk_curve(rows, _plan(chosen, rows, fold))
            minimum = chosen.locate(curve, limits)
        found = conclude(model, rows, rows, chosen, "gibbs", limits, curve, minimum)
        errors: StandardErrors = KnownErrors()
        if isinstance(chosen, KFold):
            errors = FoldErrors(curve, minimum.beta, fold)
    calibration = replace(found, errors=errors)
    warn_of_minimum(calibration)
    return calibration


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


def _folds_of(strategy: Any) -> int:
    if isinstance(strategy, KFold) and strategy.duplicates != "together":
        return strategy.n_folds
    if isinstance(strategy, SampleSplitting) and strategy.shuffle and strategy.repeats == 1:
        return 2
    if isinstance(strategy, Naive):
        return 1
    raise ValueError(
        "strategy must be KFold, SampleSplitting(shuffle=True), Naive or Bayes, which need one "
        f"pass over the blocks, got {shown(strategy)}"
    )


def _plan(strategy: OnePass, rows: Data, fold: NDArray[np.intp]) -> Plan | FoldPlan:
    if isinstance(strategy, KFold):
        return FoldPlan(rows.weights, fold, strategy.n_folds, strategy.transfer)
    if isinstance(strategy, Naive):
        return strategy.plan(rows, np.random.default_rng(0))
    first = (fold == 0)[None]
    train = np.concatenate([first, ~first]) if strategy.both_directions else first
    return Plan(train * rows.weights, ~train * rows.weights, rows.size, strategy.transfer)
