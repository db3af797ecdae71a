r"""Stacking: mix the forecasts at all betas, with weights that held-out rows vote for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from temperance import plans
from temperance.calibration import Calibration, has_likelihood, preferences_of
from temperance.data import Data, Risk
from temperance.plans import AnyPlan, Transfer
from temperance.protocols import Model, Strategy
from temperance.rules import Choice, stack
from temperance.strategies.k_fold import KFold
from temperance.strategies.selection import PlanStrategy
from temperance.table import LEAST, HeldOut, half_decades


@dataclass(frozen=True)
class Stacking(PlanStrategy):
    r"""Mix the forecasts at all betas instead of choosing one beta.

    .. math::

        \hat w = \arg\max_w \sum_i v_i \log \sum_k w_k\, p_{\beta_k}(y_i \mid x_i, \text{others})
        + c \log w_{\text{Bayes}}

    over weights w of betas from .001 (of networks from their ``lowest_beta``) to the upper bound,
    half a decade apart.  Every held-out row has a vote, and c more votes are for Bayes: for linear
    models c = 2 + p / (1 - p/n)^2, with p effective parameters at beta = 1, for others 1.  The
    posterior is the mixture; ``beta`` is the median of the weights.  The gain over Bayes is that of
    weights refitted without each tenth of the rows.

    Parameters
    ----------
    source : PlanStrategy, optional
        How rows are held out; by default one at a time where the model makes that cheap (of more
        than 20,000 rows so many are tested), otherwise in ten folds.

    References
    ----------
    .. [1] Y. Yao, A. Vehtari, D. Simpson, A. Gelman, Using stacking to average Bayesian predictive
       distributions, Bayesian Analysis 13, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from temperance import calibrate, models
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> y = X[:, 0] + rng.standard_t(2.5, 200)
    >>> calibration = calibrate(models.NormalInverseGammaLinear(), X, y, Stacking())
    >>> calibration.gain > 0
    True
    """

    source: PlanStrategy | None = None

    def __post_init__(self) -> None:
        """Refuse a source without held-out rows."""
        if self.source is not None and not getattr(self.source, "holds_rows_out", False):
            raise ValueError(
                f"source must hold rows out, as LeaveOneOut() does, got {self.source!r}"
            )

    @property
    def groups(self) -> Any:
        """Labels of rows that the source holds out together."""
        return getattr(self.source, "groups", None)

    def planned(self, data: Data, rng: np.random.Generator) -> tuple[Data, AnyPlan]:
        """Return the rows and the plan of the source, or one row at a time."""
        if self.source is not None:
            return self.source.planned(data, rng)
        rows, pieces = plans.observations(data, "auto")
        if len(rows.y) < 2:
            raise ValueError(f"X and y must have at least 2 distinct rows, got {len(rows)}")
        places = plans.hashed(rows)
        return rows, plans.LeaveOneOut(rows.weights, pieces=pieces, places=places)

    def rule(self, table: HeldOut, bounds: tuple[float, float]) -> Choice:
        """Return weights of betas within the bounds."""
        weights = stack(table, half_decades(bounds, least=max(LEAST, table.betas[0])))
        flat = bool(np.isinf(table.votes))
        return Choice(weights.median, flat=flat, searched=False, weights=weights)

    def select(
        self,
        model: Model,
        data: Data,
        bounds: tuple[float, float],
        rng: np.random.Generator,
        risk: Risk = "predictive",
    ) -> Calibration:
        """Return the weighted betas within ``bounds``."""
        if not has_likelihood(model):
            raise ValueError(
                "strategy must be another than Stacking, which is for forecasts, for "
                f"{type(model).__name__} with a loss that is no likelihood"
            )
        if risk != "predictive":
            raise ValueError(f"Stacking is for forecasts: risk must be 'predictive', got {risk!r}")
        if bounds[1] < LEAST:
            raise ValueError(f"bounds must reach {LEAST:g} to stack, got {bounds!r}")
        if self.source is None and not preferences_of(model).leave_one_out:
            folds = replace(self, source=KFold().feasible(data))
            return super(Stacking, folds).select(model, data, bounds, rng, risk)
        return super().select(model, data, bounds, rng, risk)


def default_strategy(
    model: object, risk: Risk = "predictive", transfer: Transfer = "beta"
) -> Strategy:
    """Return the strategy that was best in benchmarks for a model, or model class, and a risk.

    Forecasts are stacked over beta.  For the Gibbs risk it is :class:`ReferenceRisk` for models
    that prefer it (the linear ones of a given prior), otherwise K-fold, as with
    ``transfer="alpha"``.  ``docs/evidence-defaults.md`` has the measurements.

    Examples
    --------
    >>> from temperance import models
    >>> default_strategy(models.GaussianLinear())
    Stacking(source=None)
    >>> default_strategy(models.GaussianLinear(), risk="gibbs")
    ReferenceRisk(veto=2.0, duplicates='auto')
    """
    if transfer == "alpha":
        return KFold(transfer=transfer)
    if risk == "predictive" and has_likelihood(model):
        return Stacking()
    if not preferences_of(model).reference:
        return KFold()
    from temperance.linear.reference_risk import ReferenceRisk

    return ReferenceRisk()


def feasible(strategy: Any, data: Data) -> Any:
    """Return a strategy with no more folds than there are distinct rows."""
    return strategy.feasible(data) if isinstance(strategy, KFold) else strategy
