r"""The strategy that is taken where none is named, or only its name is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from temperance.strategies.average import Average
from temperance.strategies.k_fold import KFold
from temperance.strategies.leave_one_out import LeaveOneOut
from temperance.strategies.reference.strategy import ReferenceRisk
from temperance.types import CountsParameters, Data, Risk, Strategy, Transfer

MANY_ROWS = 10_000  # that nobody need look at to know that they fill ten folds


def default_strategy(model: object, risk: Risk = "gibbs", transfer: Transfer = "beta") -> Strategy:
    """Return what was measured to serve a model and risk best, and ten folds elsewhere.

    For the predictive risk, the average over beta, if the model says how many parameters it uses:
    by leave-one-out where the model has the attribute ``cheap_leave_one_out``, else by ten folds.
    For the Gibbs risk, :class:`ReferenceRisk` if the model's attribute ``reference_by_default`` is
    true; of those in :mod:`temperance.models` the linear ones have it.
    ``docs/how-to-choose.md`` has the measurements and what they must reach.  Only folds can hold
    alpha.

    Examples
    --------
    >>> from temperance import models
    >>> default_strategy(models.GaussianLinear())
    ReferenceRisk(veto=2.0, duplicates='auto')
    >>> default_strategy(models.GaussianLinear(), risk="predictive")
    Average(source=LeaveOneOut(transfer='beta'), spread=0.5)
    """
    if transfer == "alpha":
        return KFold(transfer=transfer)
    if risk == "predictive":
        return average_for(model) if isinstance(model, CountsParameters) else KFold()
    return ReferenceRisk() if getattr(model, "reference_by_default", False) else KFold()


def average_for(model: object) -> Average:
    """Return the average by what the model can afford: leave-one-out or ten folds.

    A model whose posterior at beta = 1 may be far from Bayes has the attribute ``spread_of_beta``.
    """
    cheap = getattr(model, "cheap_leave_one_out", False)
    spread = getattr(model, "spread_of_beta", Average.spread)
    return Average(LeaveOneOut() if cheap else KFold(), spread)


def fitting(strategy: Any, data: Data) -> Any:
    """Return a strategy with no more folds than there are distinct rows."""
    if isinstance(strategy, Average):
        return replace(strategy, source=fitting(strategy.source, data))
    if not isinstance(strategy, KFold) or len(data) > MANY_ROWS:
        return strategy
    most = strategy.most_folds(data)
    if most < 2:
        raise ValueError(f"X and y must have at least 2 distinct rows, got {most}")
    return replace(strategy, n_folds=min(strategy.n_folds, most))


def holding(strategy: Any, transfer: Transfer) -> Any:
    """Return a strategy that carries ``transfer`` from a part of the rows to the whole."""
    if isinstance(strategy, Average):
        return replace(strategy, source=holding(strategy.source, transfer))
    return replace(strategy, transfer=transfer) if hasattr(strategy, "transfer") else strategy
