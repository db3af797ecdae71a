r"""The entry points: calibrate a model on data, or evaluate its risk on other data."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from temperance.calibration import Calibration, has_likelihood
from temperance.checks import (
    as_bounds,
    as_data,
    as_non_negative,
    one_of,
    refuse_overflow,
    shown,
    whole,
)
from temperance.data import Data, Risk, threads_for
from temperance.protocols import Model, SamplingModel, Strategy
from temperance.strategies import default_strategy, feasible, strategy_named
from temperance.strategies.selection import stacked_data


def calibrate(
    model: Model,
    X: ArrayLike | None,
    y: ArrayLike,
    strategy: Strategy | str | None = None,
    *,
    bounds: tuple[float, float] = (0.0, 3.0),
    risk: Risk | None = None,
    weights: ArrayLike | None = None,
    seed: int | np.random.Generator | None = 0,
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
        Rule that chooses beta, or its name.  By default forecasts are stacked over beta
        (:class:`temperance.strategies.Stacking`).  For the Gibbs risk it is the reference risk for
        linear models of a given prior, and ten folds for all others; docs/evidence-defaults.md has
        the measurements.
    bounds : (float, float)
        Range allowed for beta.
    risk : {"predictive", "gibbs"}, optional
        Loss of forecasts by the posterior predictive, or expected loss of a draw from the
        posterior; the second by default only for losses that are no likelihood.
    weights : array of shape (n,), optional
        Observation weights; weight k means a row repeated k times.
    seed : int, Generator or None
        Seed of all random numbers; the same seed gives the same result.

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
    if risk is None:
        risk = "predictive" if has_likelihood(model) else "gibbs"
    one_of("risk", risk, ("gibbs", "predictive"))
    limits = as_bounds(bounds)
    _refuse_other_than_models(model)
    data = as_data(X, y, weights)
    if hasattr(model, "check"):
        model.check(data)
    chosen = as_strategy(strategy or feasible(default_strategy(model, risk), data))
    with threads_for(data.X.size), refuse_overflow(data.X, data.y):
        return chosen.select(model, data, limits, _as_generator(seed), risk)


def expected_risk(
    model: Model,
    train: tuple[ArrayLike | None, ArrayLike] | tuple[ArrayLike | None, ArrayLike, ArrayLike],
    test: tuple[ArrayLike | None, ArrayLike] | tuple[ArrayLike | None, ArrayLike, ArrayLike],
    alpha: ArrayLike,
    *,
    risk: Risk = "predictive",
    derivative: bool = False,
    gradient: str = "exact",
    n_draws: int = 10_000,
    seed: int | np.random.Generator | None = 0,
) -> Any:
    r"""Return the risk on the test data of the alpha-posterior of the training data.

    The mean of ``-log E_theta p(x | theta)`` or, with ``risk="gibbs"``,

    .. math:: R(\alpha) = E_{\theta \sim \pi_\alpha^{train}}[r^{test}(\theta)].

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
    >>> risk = expected_risk(model, (None, [2.0, 4.0]), (None, [3.0]), alpha=2.0, risk="gibbs")
    >>> round(risk, 6)  # the posterior is N(2, 1/3): (1 + 1/3) / 2 + log(2 pi) / 2
    1.585605
    """
    one_of("risk", risk, ("gibbs", "predictive"))
    one_of("gradient", gradient, ("exact", "covariance"))
    if gradient == "covariance" and risk != "gibbs":
        raise ValueError(f"risk must be 'gibbs' for the covariance gradient, got {risk!r}")
    whole("n_draws", n_draws, 2)
    at, rng = as_non_negative("alpha", alpha), _as_generator(seed)
    _refuse_other_than_models(model)
    known, new = (_part(name, part) for name, part in (("train", train), ("test", test)))
    if known.X.shape[1] != new.X.shape[1]:
        raise ValueError(
            f"test must have as many columns as train, got {new.X.shape[1]} and {known.X.shape[1]}"
        )
    rows, plan = stacked_data(known, new)
    beta = at / known.size
    with threads_for(rows.X.size), refuse_overflow(rows.X, rows.y):
        table = model.held_out(rows, plan, risk, (0.0, float(np.max(beta, initial=1.0))))
        value, slope = table(beta, derivative=True)
        if derivative and gradient == "covariance" and not callable(getattr(model, "loss", None)):
            raise ValueError(f"model must have the method loss, got {shown(model)}")
        if derivative and gradient == "covariance":
            from temperance.models.sampled.risk_of_draws import covariance_slope

            sampled = cast(SamplingModel, model)
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


def as_strategy(strategy: Strategy | str) -> Strategy:
    """Return the strategy of a name, or an instance; refuse anything else."""
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


def _refuse_other_than_models(model: Any) -> None:
    if isinstance(model, type):
        raise ValueError(f"model must be an instance, got {shown(model)}")
    needed = ("posterior", "held_out")
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
