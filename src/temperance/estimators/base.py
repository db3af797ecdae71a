"""Common code of both estimators: arguments, inputs, calibration."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from temperance.calibrate import as_strategy as named_or_given
from temperance.calibration import Calibration, preferences_of
from temperance.checks import LARGEST, as_bounds, one_of, positive, shown, whole
from temperance.data import Array, Data, Labels, Risk
from temperance.estimators.coordinates import Coordinates, coordinates_of
from temperance.estimators.inputs import (
    as_groups,
    as_seed,
    refuse_certainty,
    refuse_extreme_units,
    validated,
)
from temperance.estimators.losses import bounds_of_loss
from temperance.estimators.prior_scale import WEAK_SCALE
from temperance.estimators.stored import without_data
from temperance.messages import PriorWarning
from temperance.plans import Transfer
from temperance.protocols import Model, NoMinimiserError, Strategy
from temperance.strategies import (
    RATES,
    Coverage,
    FromSplitter,
    RateStrategy,
    Sandwich,
    Stacking,
    default_strategy,
    feasible,
    strategy_named,
)
from temperance.strategies.selection import stacked_data
from temperance.uncertainty.information import CORRECTIONS, Correction

Target = Literal["forecasts", "coefficients", "draws"]
MANY_COLUMNS = 2  # rows for each column, at most, with which the prior matters
FEW_RESAMPLES = 100  # of losses with kinks
BOUNDS, FAR_BOUNDS = (0.0, 3.0), (0.0, 100.0)
# The risk that belongs to each target; for coefficients it judges, and does not choose.
RISKS: dict[str, Risk] = {"forecasts": "predictive", "coefficients": "gibbs", "draws": "gibbs"}


class GibbsEstimator(BaseEstimator):
    """Base of the estimators: coordinates for the inputs, and a calibration of the rows."""

    degree: int
    strategy: Strategy | str | None
    transfer: Transfer
    target: Target | None
    bounds: tuple[float, float] | None
    prior_scale: float | Literal["auto"]
    standardize: bool
    fit_intercept: bool
    random_state: Any
    keep_data: bool
    coordinates_: Coordinates
    calibration_: Calibration

    @property
    def terms_(self) -> list[str]:
        """Names of the terms: the inputs, or their powers and products."""
        check_is_fitted(self)
        return self.coordinates_.names(_check_feature_names_in(self))

    @property
    def likelihood(self) -> bool:
        """Whether the loss is minus a log likelihood, so that responses can be forecast."""
        raise NotImplementedError(f"{type(self).__name__} must say what its loss is")

    @property
    def smooth(self) -> bool:
        """Whether the loss has no kinks."""
        raise NotImplementedError(f"{type(self).__name__} must say what its loss is")

    @property
    def closed_form(self) -> bool:
        """Whether posteriors of resamples have a closed form."""
        return False

    def _target(self) -> Target:
        """Return the target; by default forecasts, and coefficients if these are impossible."""
        if self.target is None:
            return "forecasts" if self.likelihood else "coefficients"
        one_of("target", self.target, RISKS)
        if self.target == "forecasts" and not self.likelihood:
            raise ValueError(
                "target must be 'coefficients' or 'draws' for a loss that is no likelihood, got "
                "'forecasts'"
            )
        return self.target

    def _risk(self) -> Risk:
        """Return the risk that belongs to the target."""
        return RISKS[self._target()]

    def _bounds(self, model: Model, data: Data) -> tuple[float, float]:
        if self.bounds is not None:
            return as_bounds(self.bounds)
        if not self.likelihood:
            return bounds_of_loss(model, data)
        far = self._risk() == "predictive" and preferences_of(model).wide
        return FAR_BOUNDS if far or self._target() == "coefficients" else BOUNDS

    def _learns_scale(self) -> bool:
        """Return whether the scale of the prior is learnt."""
        if isinstance(self.prior_scale, str) and self.prior_scale != "auto":
            raise ValueError(
                f"prior_scale must be a positive number or 'auto', got {self.prior_scale!r}"
            )
        return isinstance(self.prior_scale, str)

    def _given_variance(self, rows: Array) -> float | None:
        """Return the prior variance that is given, or None if it is learnt.

        For coefficients the prior is weak unless they are many: shrinkage would move their
        intervals away from what they should cover.
        """
        if not self._learns_scale():
            return self._prior_variance()
        many = MANY_COLUMNS * rows.shape[1] >= len(rows)
        return None if many or self._target() != "coefficients" else WEAK_SCALE**2

    def _prior_variance(self) -> float:
        scale = positive("prior_scale", self.prior_scale)
        if not 1e-100 < scale < 1e100:
            raise ValueError(f"prior_scale must lie between 1e-100 and 1e100, got {shown(scale)}")
        return scale**2

    def _choose_coordinates(self, X: Array, weights: Array) -> Coordinates:
        refuse_extreme_units("X", X)
        degree = whole("degree", self.degree, 1)
        one_of("standardize", self.standardize, (False, True))
        one_of("fit_intercept", self.fit_intercept, (False, True))
        one_of("keep_data", self.keep_data, (False, True))
        return coordinates_of(X, weights, degree, self.standardize, self.fit_intercept)

    def _calibrate(
        self, model: Model, rows: Array, y: Array, weights: Array, groups: ArrayLike | None
    ) -> Calibration:
        """Return the choice of the strategy, with groups held out together if there are any."""
        data, labels = Data(rows, y, weights), None
        if not weights.all():
            used = weights > 0
            data = Data(rows[used], y[used], weights[used])
        if groups is not None:
            labels = as_groups(groups, weights)
        refuse_certainty(model, data.X, data.weights)
        risk, bounds, seed = self._risk(), self._bounds(model, data), as_seed(self.random_state)
        strategy: Any = self.strategy
        usual = strategy is None and self._target() == "coefficients"
        if usual:
            strategy = self.usual_strategy()

        def choose(strategy: Any) -> Calibration:
            if labels is not None:
                strategy = by_groups(strategy, labels, model, risk, self.transfer)
            chosen = as_strategy(strategy, self.transfer, model, data, risk)
            return chosen.select(model, data, bounds, np.random.default_rng(seed), risk)

        with warnings.catch_warnings():
            if self._learns_scale():  # nobody gave this prior; the rule that is printed says it
                warnings.simplefilter("ignore", PriorWarning)
            try:
                return choose(strategy)
            except NoMinimiserError:
                if not usual:
                    raise
                # It keeps the prior; a fit with kinks takes its time.
                return choose(Coverage() if self.smooth else Coverage(n_draws=FEW_RESAMPLES))

    def usual_strategy(self) -> Strategy:
        """Return the default strategy, for data of any size."""
        if self._target() == "coefficients":
            if self.closed_form:
                return Coverage()
            return Sandwich(correction="HC3") if self.smooth else Sandwich()
        return default_strategy(self.kind_of_model(), self._risk(), self.transfer)

    def kind_of_model(self) -> type[Any]:
        """Return the class of the model that is calibrated."""
        raise NotImplementedError(f"{type(self).__name__} must say what it calibrates")

    def parts(self) -> list[tuple[str, Calibration]]:
        """Return the calibration, with the name of each class that has coefficients or ''."""
        raise NotImplementedError(f"{type(self).__name__} must say what it calibrated")

    def _problem(self, rows: Array, y: Array) -> Data:
        """Return other rows and responses in the units of the model."""
        raise NotImplementedError(f"{type(self).__name__} must say what its model sees")

    def _law_of(self, beta: float | None, sandwich: Correction | None) -> Any:
        """Return the posterior of the model's parameters, or the Gaussian of the sandwich."""
        if sandwich is None:
            return self._posterior(beta)
        if beta is not None:
            raise ValueError(f"beta must be None with a sandwich, which has none, got {beta!r}")
        one_of("sandwich", sandwich, CORRECTIONS)
        return self.calibration_.sandwich(correction=sandwich)

    def _posterior(self, beta: float | None = None) -> Any:
        """Return the posterior of the model's parameters, at the choice or at another beta."""
        check_is_fitted(self)
        chosen = self.calibration_
        return chosen.posterior if beta is None else chosen.posterior_at(beta)

    def gains(self, X: ArrayLike, y: ArrayLike) -> Array:
        r"""Return the loss of each row under Bayes' posterior minus that under the calibrated one.

        The loss is that of the target's risk: ``E[-log p(y | x, theta)]`` under the posterior, or
        ``-log E[p(y | x, theta)]``.

        Parameters
        ----------
        X, y : arrays of shape (n, d) and (n,)
            The rows may be new.

        Returns
        -------
        array of shape (n,)
        """
        check_is_fitted(self)
        if not self.likelihood:
            raise ValueError("gains over Bayes are for likelihoods, and the loss is none")
        return _gains(self.calibration_, self._problem(self._rows(X), np.asarray(y)), self._risk())

    def _rows(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        rows = self.coordinates_.rows(validated(self, X, reset=False))
        if not max(rows.max(), -rows.min()) <= LARGEST:
            raise ValueError(f"X must lie within {LARGEST:g} of the rows of the fit, in their unit")
        return rows

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: everything, or everything but the training data."""
        state: dict[str, Any] = super().__getstate__()
        if self.keep_data or "calibration_" not in state:
            return state
        return {**state, "calibration_": without_data(self.calibration_)}

    def __copy__(self) -> Self:
        """Return a shallow copy, with the training data."""
        return self._with(self.__dict__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a deep copy, with the training data."""
        return self._with(deepcopy(self.__dict__, memo))

    def _with(self, state: dict[str, Any]) -> Self:
        other = type(self).__new__(type(self))
        other.__dict__.update(state)
        return other


def _gains(known: Calibration, new: Data, risk: Risk) -> Array:
    rows, plan = stacked_data(known.data, new)
    table = known.model.held_out(rows, plan, risk, known.bounds)
    bayes = table.at(np.ones(1))[0]
    return (bayes - known.losses_in(table))[-len(new) :]


def as_strategy(
    strategy: Strategy | str | None, transfer: Transfer, model: Model, data: Data, risk: Risk
) -> Any:
    """Return an instance as it is; a name or the default gets ``transfer`` and fits the data."""
    one_of("transfer", transfer, ("beta", "alpha"))
    if strategy is None:
        return feasible(default_strategy(model, risk, transfer), data)
    if isinstance(strategy, str):
        named: Any = strategy_named(strategy)
        if transfer == "alpha" and isinstance(named, Stacking):
            raise ValueError("transfer must be 'beta' for strategy='stacking', got 'alpha'")
        if hasattr(named, "transfer"):
            named = replace(named, transfer=transfer)
        return feasible(named, data)
    return named_or_given(strategy)


def by_groups(
    strategy: Strategy | str | None, groups: Labels, model: Model, risk: Risk, transfer: Transfer
) -> Strategy:
    """Return the strategy with groups held out together, or refuse other strategies."""
    from sklearn.model_selection import GroupKFold

    count = len(np.unique(groups))
    if isinstance(strategy, str) and strategy in RATES:
        strategy = strategy_named(strategy)
    if isinstance(strategy, RateStrategy) and "groups" in vars(strategy):
        return replace(cast(Any, strategy), groups=groups)
    if strategy not in (None, "k-fold", "stacking"):
        raise ValueError(
            "groups are for the strategies 'stacking', 'k-fold', 'coverage', 'sandwich', "
            "'fisher-information' and 'fitted-coverage'; give others a splitter by "
            f"strategies.FromSplitter(splitter, groups=...), got strategy {shown(strategy)}"
        )
    if count < 2:
        raise ValueError(f"groups must hold at least 2 groups, got {count}")
    one_of("transfer", transfer, ("beta", "alpha"))
    apart = FromSplitter(GroupKFold(min(10, count)), transfer, groups)
    usual = default_strategy(model, risk, transfer) if strategy is None else None
    return Stacking(apart) if strategy == "stacking" or isinstance(usual, Stacking) else apart
