r"""The entry points: calibrate a model on data, or evaluate its risk on other data."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from temperance.calibration import Calibration
from temperance.checks import as_bounds, as_data, as_non_negative, one_of, shown, whole
from temperance.data import Data, Risk
from temperance.models.sampled.risk_of_draws import covariance_slope
from temperance.protocols import (
    ChecksData,
    Model,
    SamplingModel,
    Strategy,
    has_likelihood,
    preferences_of,
)
from temperance.resources import threads_for
from temperance.strategies import Average, KFold, default_strategy, strategy_named
from temperance.strategies.default import average_for, with_feasible_folds
from temperance.strategies.selection import stack


def calibrate(
    model: Model,
    X: ArrayLike | None,
    y: ArrayLike,
    strategy: Strategy | str | None = None,
    *,
    bounds: tuple[float, float] = (0.0, 3.0),
    risk: Risk = "gibbs",
    weights: ArrayLike | None = None,
    seed: int | np.random.Generator | None = 0,
    optimiser: str = "deterministic",
) -> Calibration:
    r"""Choose the temperature of a Gibbs posterior: the exponent beta of its likelihood.

    .. math::

        \hat\beta = \arg\min_{\beta \in bounds} \hat R(\beta), \qquad
        \pi_\beta(\theta) \propto \exp(-\beta \sum_i w_i l(\theta, X_i)) \pi_0(\theta).

    Parameters
    ----------
    model : Model
        A loss and a prior, from :mod:`temperance.models` or your own.
    X : array of shape (n, d), or None for a model without inputs
        Numpy arrays, lists and pandas objects are accepted.  Arrays of floats are not copied: do
        not change them while the result is in use, since its posterior is computed from them.
    y : array of shape (n,)
    strategy : Strategy or str
        Rule that chooses beta, or its name.  By default reference risk for the Gibbs risk of linear
        models, an average over beta for the predictive risk of linear, logistic and sampled models,
        and ten folds for all others; docs/evidence-defaults.md has the measurements.
    bounds : (float, float)
        Range allowed for beta.
    risk : {"gibbs", "predictive"}
        Expected loss of a draw from the posterior, or loss of the posterior predictive.
    weights : array of shape (n,), optional
        Observation weights; weight k means a row repeated k times.
    seed : int, Generator or None
        Seed of all random numbers; the same seed gives the same result.
    optimiser : {"deterministic", "stochastic"}
        Scan and refine the curve, or descend noisy covariance slopes from posterior draws (for
        models that can only be sampled; Gibbs risk only).

    Returns
    -------
    Calibration

    Examples
    --------
    >>> import numpy as np
    >>> from temperance import calibrate, models
    >>> rng = np.random.default_rng(1)
    >>> X = rng.standard_normal((40, 20))
    >>> y = X[:, 0] + 3 * rng.standard_normal(40)
    >>> calibration = calibrate(models.GaussianLinear(noise_variance=1.0), X, y)
    >>> calibration.beta < 1
    True
    """
    one_of("risk", risk, ("gibbs", "predictive"))
    one_of("optimiser", optimiser, ("deterministic", "stochastic"))
    if optimiser == "stochastic" and risk != "gibbs":
        raise ValueError(f"risk must be 'gibbs' for the stochastic optimiser, got {risk!r}")
    limits = as_bounds(bounds)
    _refuse_other_than_models(model, optimiser)
    chosen = None if strategy is None else _as_strategy(strategy)
    if strategy == "average":
        chosen = average_for(model)
    if isinstance(chosen, Average) and not has_likelihood(model):
        raise ValueError(
            "strategy must be another than Average, which is for forecasts, for "
            f"{type(model).__name__} with a loss that is no likelihood and has none"
        )
    data = as_data(X, y, weights)
    if isinstance(model, ChecksData):
        model.check(data)
    if chosen is None:
        usual = default_strategy(model, risk) if optimiser == "deterministic" else KFold()
        chosen = with_feasible_folds(usual, data)
    rng = _as_generator(seed)
    with threads_for(data.X.size):
        return chosen.select(model, data, limits, rng, risk, optimiser)


def expected_risk(
    model: Model,
    train: tuple[ArrayLike | None, ArrayLike] | tuple[ArrayLike | None, ArrayLike, ArrayLike],
    test: tuple[ArrayLike | None, ArrayLike] | tuple[ArrayLike | None, ArrayLike, ArrayLike],
    alpha: ArrayLike,
    *,
    risk: Risk = "gibbs",
    derivative: bool = False,
    gradient: str = "exact",
    n_draws: int = 10_000,
    seed: int | np.random.Generator | None = 0,
) -> Any:
    r"""Return the risk on the test data of the alpha-posterior of the training data.

    .. math:: R(\alpha) = E_{\theta \sim \pi_\alpha^{train}}[r^{test}(\theta)]

    or, with ``risk="predictive"``, the mean of ``-log E_theta p(x | theta)``.

    Parameters
    ----------
    model : Model
    train, test : (X, y) or (X, y, weights)
    alpha : float or array
        Weight of the mean training risk; the number of training observations is Bayes.
    risk : {"gibbs", "predictive"}
    derivative : bool
        Whether to return the derivative in alpha as well.
    gradient : {"exact", "covariance"}
        The derivative of the risk itself, or the thesis' ``-Cov[r_train, r_test]`` under the
        posterior, from ``n_draws`` draws: the same for exact posteriors, wrong for variational
        ones; Gibbs risk only.
    n_draws, seed : int, int or Generator
        Draws of ``gradient="covariance"``.

    Returns
    -------
    The risk, in the shape of ``alpha``; with ``derivative`` the pair (risk, slope).

    Examples
    --------
    >>> from temperance import expected_risk, models
    >>> model = models.GaussianMean(noise_variance=1.0)
    >>> risk = expected_risk(model, (None, [2.0, 4.0]), (None, [3.0]), alpha=2.0)
    >>> round(risk, 6)  # the posterior is N(2, 1/3): (1 + 1/3) / 2
    0.666667
    """
    one_of("risk", risk, ("gibbs", "predictive"))
    one_of("gradient", gradient, ("exact", "covariance"))
    if gradient == "covariance" and risk != "gibbs":
        raise ValueError(f"risk must be 'gibbs' for the covariance gradient, got {risk!r}")
    whole("n_draws", n_draws, 2)
    at, rng = as_non_negative("alpha", alpha), _as_generator(seed)
    _refuse_other_than_models(model, "stochastic" if gradient == "covariance" else "deterministic")
    known, new = (_part(name, part) for name, part in (("train", train), ("test", test)))
    if known.X.shape[1] != new.X.shape[1]:
        raise ValueError(
            f"test must have as many columns as train, got {new.X.shape[1]} and {known.X.shape[1]}"
        )
    rows, plan = stack(known, new)
    beta = at / known.size
    with threads_for(rows.X.size):
        value, slope = model.risk_curve(rows, plan, risk)(beta, derivative=True)
        if derivative and gradient == "covariance":
            sampled = cast(SamplingModel, model)  # others were refused above
            slope = np.vectorize(
                lambda each: covariance_slope(sampled, rows, plan, each, n_draws, rng),
                otypes=[float],
            )(beta)
    value, slope = (float(v) if at.ndim == 0 else v for v in (value, slope / known.size))
    return (value, slope) if derivative else value


def _part(name: str, part: Any) -> Data:
    if not isinstance(part, tuple | list) or len(part) not in (2, 3):
        got = type(part).__name__
        if isinstance(part, tuple | list):
            got += f" of length {len(part)}"
        raise ValueError(f"{name} must be (X, y) or (X, y, weights), got {got}")
    try:
        return as_data(*part)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _as_strategy(strategy: Strategy | str) -> Strategy:
    if isinstance(strategy, str):
        return strategy_named(strategy)
    if isinstance(strategy, type) or not callable(getattr(strategy, "select", None)):
        hint = ""
        if isinstance(strategy, type):
            hint = f" (did you mean {strategy.__name__}()?)"
        elif hasattr(strategy, "split"):
            hint = " (wrap a splitter in strategies.FromSplitter)"
        raise ValueError(
            f"strategy must be a name or an instance with a method select, got "
            f"{shown(strategy)}{hint}"
        )
    return strategy


def _refuse_other_than_models(model: Any, optimiser: str = "deterministic") -> None:
    needed = ("posterior", "risk_curve" if optimiser == "deterministic" else "loss")
    if isinstance(model, type):
        raise ValueError(f"model must be an instance, got {shown(model)}")
    if optimiser == "stochastic" and preferences_of(model).only_curves:
        raise ValueError(
            f"optimiser must be 'deterministic' for {type(model).__name__}, whose curve comes from "
            "draws already, got 'stochastic'"
        )
    missing = [name for name in needed if not callable(getattr(model, name, None))]
    if missing:
        raise ValueError(
            f"model must have the methods {', '.join(needed)}, got {shown(model)} without "
            f"{', '.join(missing)}"
        )


def _as_generator(seed: int | np.random.Generator | None) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ValueError(
            f"seed must be a non-negative integer, a Generator or None, got {shown(seed)}"
        ) from None
