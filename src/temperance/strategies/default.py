r"""The default strategy of a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from temperance.data import Data, Risk
from temperance.plans import Transfer
from temperance.protocols import Strategy, counts_parameters, preferences_of
from temperance.strategies.average import Average
from temperance.strategies.k_fold import KFold
from temperance.strategies.leave_one_out import LeaveOneOut
from temperance.strategies.reference.strategy import ReferenceRisk

MANY_ROWS = 10_000  # data with more rows have enough distinct ones for ten folds: no check


def default_strategy(model: object, risk: Risk = "gibbs", transfer: Transfer = "beta") -> Strategy:
    """Return the strategy that was best in benchmarks for a model, or model class, and a risk.

    For the predictive risk it is the average over beta, if the parameters used are counted:
    by leave-one-out where that is cheap, otherwise by ten folds.  For the Gibbs risk it is
    :class:`ReferenceRisk` for models that prefer it (the linear ones of :mod:`temperance.models`);
    see :class:`temperance.protocols.Preferences`.  ``docs/evidence-defaults.md`` has the
    measurements and the required results.  With ``transfer="alpha"`` it is K-fold.

    Examples
    --------
    >>> from temperance import models
    >>> default_strategy(models.GaussianLinear())
    ReferenceRisk(veto=2.0, duplicates='auto')
    >>> default_strategy(models.GaussianLinear(), risk="predictive")
    Average(source=LeaveOneOut(transfer='beta'), spread=0.1)
    """
    if transfer == "alpha":
        return KFold(transfer=transfer)
    if risk == "predictive":
        return average_for(model) if counts_parameters(model) else KFold()
    return ReferenceRisk() if preferences_of(model).reference else KFold()


def average_for(model: object) -> Average:
    """Return the average by leave-one-out where the model makes that cheap, or by ten folds."""
    preferred = preferences_of(model)
    source = LeaveOneOut() if preferred.leave_one_out else KFold()
    return Average(source, preferred.spread_of_beta)


def with_feasible_folds(strategy: Any, data: Data) -> Any:
    """Return a strategy with no more folds than there are distinct rows."""
    if isinstance(strategy, Average):
        return replace(strategy, source=with_feasible_folds(strategy.source, data))
    if not isinstance(strategy, KFold) or len(data) > MANY_ROWS:
        return strategy
    most = strategy.most_folds(data)
    if most < 2:
        raise ValueError(f"X and y must have at least 2 distinct rows, got {most}")
    return replace(strategy, n_folds=min(strategy.n_folds, most))


def with_transfer(strategy: Any, transfer: Transfer) -> Any:
    """Return a copy of a strategy with this ``transfer``, from a part of the rows to all."""
    if isinstance(strategy, Average):
        return replace(strategy, source=with_transfer(strategy.source, transfer))
    return replace(strategy, transfer=transfer) if hasattr(strategy, "transfer") else strategy
