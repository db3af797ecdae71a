r"""Calibrated Bayesian regression as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from temperance.calibration import Calibration
from temperance.checks import (
    as_data,
    as_numbers,
    one_of,
    positive,
    refuse_non_finite,
    shown,
    whole,
)
from temperance.data import Array, Data, threads_for
from temperance.estimators.base import GibbsEstimator, Target
from temperance.estimators.coordinates import raw_scale, standard_scale
from temperance.estimators.inputs import as_seed, as_weights, refuse_extreme_units, validated
from temperance.estimators.losses import loss_model, regression_loss
from temperance.estimators.prior_scale import (
    SHAPE,
    averaged_scales,
    guessed_noise_variance,
    most_evident_regression,
    weak_noise_model,
)
from temperance.forecasts import Forecast
from temperance.losses import Loss
from temperance.models import (
    GaussianLinear,
    GibbsLinear,
    HierarchicalLinear,
    NormalInverseGammaLinear,
)
from temperance.plans import Transfer
from temperance.protocols import Strategy
from temperance.uncertainty.information import Correction

LinearModel = GaussianLinear | NormalInverseGammaLinear | HierarchicalLinear


class GibbsRegressor(RegressorMixin, GibbsEstimator):
    r"""Bayesian linear regression with a temperature that is calibrated on the data.

    .. math::

        \pi_\beta(\theta) \propto \exp\Bigl(-\beta \sum_i l(\theta, (x_i, y_i))\Bigr) \pi_0(\theta)

    with the Gaussian log loss l, or another.  ``strategy="bayes"`` is the ordinary posterior,
    beta = 1; every other strategy estimates which beta has the smallest risk on new data.

    Parameters
    ----------
    loss : {"squared", "quantile", "huber", "student-t", "poisson", "negative-binomial"} or Loss
        The loss of a row: Gaussian responses, the pinball loss of a quantile, Huber's loss,
        Student-t responses with 4 degrees of freedom, counts with a log link, or any loss of
        :mod:`temperance.losses`.
    quantile : float
        The quantile of ``loss="quantile"``.
    noise_variance : "unknown" or float
        ``"unknown"``: it has an inverse gamma prior and is inferred; predictions are Student-t.  A
        number: the variance of the noise in units of y squared; predictions are Gaussian.
    degree : int
        Highest total degree of the powers and products of inputs.
    strategy : str, Strategy or None
        Rule that chooses beta: a name from :data:`temperance.strategies.NAMES` or
        :data:`temperance.strategies.RATES`, "reference-risk", or an instance.  By default forecasts
        are stacked over beta, by leave-one-out; for draws beta is chosen by reference risk.
    transfer : {"beta", "alpha"}
        What a named strategy keeps equal from a part of the rows to all rows.
    target : {"forecasts", "coefficients", "draws"} or None
        What should be right: forecasts of new responses; credible intervals of the coefficients,
        which then cover by :class:`temperance.strategies.Coverage` for the squared loss, by
        :class:`temperance.strategies.Sandwich` for quantiles and other losses with kinks, and with
        ``correction="HC3"`` for the other losses; or single draws from the posterior, whose mean
        loss is the Gibbs risk.  By default forecasts, and coefficients if the loss is no
        likelihood.
    bounds : (float, float) or None
        Range allowed for beta; by default (0, 3), and (0, 100) for coefficients; for a loss that is
        no likelihood (0, 100 / mean loss at the prior mean).
    prior_scale : "auto" or float
        Prior standard deviation of the coefficients of the standardised terms.  ``"auto"``: it is
        learnt by the evidence; forecasts are averaged over scales, for draws the scale of largest
        evidence is used.  For coefficients it is 10, hardly any shrinkage, if rows are at least
        twice as many as terms.  A number is in standard deviations of y.
    standardize : bool
        Give inputs, terms and response mean 0 and variance 1 before fitting (without an intercept:
        mean square 1 about 0).  Results are always in the original units.
    fit_intercept : bool
        Whether the terms include a constant.
    random_state : int, RandomState or None
        Seed of the random folds or resamples of strategies that use them.  ``None`` is 0, so that
        the result is reproducible.
    keep_data : bool
        Whether a stored estimator (pickle, joblib) contains the training data.  Without them it
        can predict and show its numbers, but not the posterior at another beta.

    Attributes
    ----------
    inverse_temperature_ : float
        The exponent beta on each observation's likelihood; Bayes is 1.
    coef_ : array of shape (terms,)
        Posterior means, in units of y per unit of the term.  The terms are the inputs; with
        ``degree`` above 1 the powers and products of the standardised inputs.
    intercept_ : float
    calibration_ : Calibration
        The choice of beta with its estimated risk, standard error and curve, in standardised units.
    terms_ : list of str
        Names of the terms: the inputs, or their powers and products.
    coordinates_ : Coordinates
        The map from inputs to the rows of the model.
    n_features_in_ : int
    feature_names_in_ : array of str, if the inputs have names

    See Also
    --------
    GibbsClassifier : the same for classes.
    temperance.calibrate : the underlying function, for your own models.

    Notes
    -----
    A weight of k counts exactly like k copies of a row under ``"k-fold"``, ``"naive"`` and
    ``"bayes"``; the other strategies depend on rows or on their order.

    The standardisation and a first estimate of the noise variance, which sets the scale of its
    prior, use all rows and are the same for all parts of a strategy: they belong to the model, not
    to the fit.  The weights of the prior's scales are learnt from the training rows of each part.

    The three targets lead to different choices, sometimes to opposite ones.  ``"draws"`` evaluates
    single draws from the posterior and favours narrow posteriors; its intervals are too narrow for
    forecasts, and for coefficients to cover.

    References
    ----------
    .. [1] L. Perrotta, Practical calibration of the temperature parameter in Gibbs posteriors,
       2020, arXiv:2004.10522.

    Examples
    --------
    Train on half of the diabetes patients, test on the other half:

    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import train_test_split
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X, X_new, y, y_new = train_test_split(X, y, train_size=0.5, random_state=0)
    >>> model = GibbsRegressor().fit(X, y)
    >>> low, high = model.predict_interval(X_new, level=0.95).T
    >>> print(f"covered {np.mean((low < y_new) & (y_new < high)):.0%}")
    covered 95%
    >>> print(f"log score {model.forecast(X_new).log_density(y_new).mean():.3f}")
    log score -5.430
    """

    calibration_: Calibration

    def __init__(
        self,
        loss: str | Loss = "squared",
        quantile: float = 0.5,
        noise_variance: float | str = "unknown",
        degree: int = 1,
        strategy: Strategy | str | None = None,
        transfer: Transfer = "beta",
        target: Target | None = None,
        bounds: tuple[float, float] | None = None,
        prior_scale: float | Literal["auto"] = "auto",
        standardize: bool = True,
        fit_intercept: bool = True,
        random_state: Any = None,
        keep_data: bool = False,
    ) -> None:
        self.loss = loss
        self.quantile = quantile
        self.noise_variance = noise_variance
        self.degree = degree
        self.strategy = strategy
        self.transfer = transfer
        self.target = target
        self.bounds = bounds
        self.prior_scale = prior_scale
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.keep_data = keep_data

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> GibbsRegressor:
        """Choose beta and fit the posterior at it.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
            A weight of k counts like k copies of a row.
        groups : array of shape (n,), optional
            Groups of rows that are held out together.

        Returns
        -------
        The estimator itself.
        """
        squared = self._loss() is None
        if not squared or self.quantile != 0.5:
            self._refuse_unused()
        inputs, targets = validated(self, X, y, y_numeric=True, ensure_min_samples=2)
        response = as_numbers("y", targets, copy=False)[:, None]
        refuse_non_finite("y", response, ("row",))  # None in an object array is nan here
        refuse_extreme_units("y", response)
        weights = as_weights(sample_weight, inputs)
        with threads_for(inputs.size):
            self.coordinates_ = self._choose_coordinates(inputs, weights)
            self._response = raw_scale(1)
            if self.standardize and squared:
                self._response = standard_scale(response, weights, self.fit_intercept)
            rows, scaled = self.coordinates_.rows(inputs), self._response(response)[:, 0]
            self.calibration_ = self._calibrate(
                self._model(rows, scaled, weights), rows, scaled, weights, groups
            )
            self.inverse_temperature_ = self.calibration_.beta
            means = self.coordinates_.means(self.calibration_.posterior, self._response)
            self.intercept_, self.coef_ = float(means[0]), means[1:]
        return self

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: counts are not negative."""
        tags = super().__sklearn_tags__()
        counts = ("poisson", "negative-binomial")
        discrete = self.loss in counts if isinstance(self.loss, str) else self.loss.discrete
        tags.target_tags.positive_only = bool(discrete)
        return tags

    def _loss(self) -> Loss | None:
        """Return the loss if it is another than the squared one."""
        if isinstance(self.loss, str) and self.loss == "squared":
            return None
        return regression_loss(self.loss, self.quantile)

    def _refuse_unused(self) -> None:
        """Refuse arguments that the loss does not use."""
        squared, name = self._loss() is None, shown(self.loss)
        if self.quantile != 0.5 and not (isinstance(self.loss, str) and self.loss == "quantile"):
            raise ValueError(
                f"quantile is for loss='quantile', got {shown(self.quantile)} for loss={name}"
            )
        if not squared and self.noise_variance != "unknown":
            raise ValueError(
                f"noise_variance is for loss='squared', got {shown(self.noise_variance)} for "
                f"loss={name}"
            )

    def _model(self, rows: Array, y: Array, weights: Array) -> LinearModel | GibbsLinear:
        loss = self._loss()
        if loss is not None:
            used = weights > 0
            data = Data(rows[used], y[used], weights[used])
            loss.check(data.y)
            scale = None if self._learns_scale() else float(np.sqrt(self._prior_variance()))
            forecasts = self._risk() == "predictive"
            return loss_model(loss, "full-covariance", data, self.fit_intercept, scale, forecasts)
        known = None
        if not isinstance(self.noise_variance, str):
            known = self._scaled_variance(positive("noise_variance", self.noise_variance))
        else:
            one_of("noise_variance", self.noise_variance, ("unknown",))
        given = self._given_variance(rows)
        if given is not None:
            if known is None:
                return weak_noise_model(rows, y, weights, given)
            return GaussianLinear(noise_variance=known, prior_cov=given)
        guess = guessed_noise_variance(rows, y, weights)
        scales = averaged_scales(y, weights, guess if known is None else known)
        model = HierarchicalLinear(known, SHAPE, SHAPE * guess, scales, self.fit_intercept)
        if self._risk() == "predictive":
            return model
        used = weights > 0
        return most_evident_regression(model, rows[used], y[used], weights[used])

    def kind_of_model(self) -> Any:
        """Return the class of the model that is calibrated, or one like it."""
        loss = self._loss()
        if loss is not None:
            return GibbsLinear(loss)
        if self._learns_scale() and self._risk() == "predictive":
            return HierarchicalLinear
        known = not isinstance(self.noise_variance, str)
        return GaussianLinear if known else NormalInverseGammaLinear

    def _scaled_variance(self, given: float) -> float:
        unit = float(self._response.unit[0])
        variance = given / unit / unit
        if not 1e-300 < variance < 1e300:
            raise ValueError(
                f"noise_variance must be in units of y squared, got {given!r} where y has the "
                f"standard deviation {unit:.3g}"
            )
        return variance

    def coefficients(
        self, *, beta: float | None = None, sandwich: Correction | None = None
    ) -> Forecast:
        """Return the distributions of intercept and coefficients, in units of X and y.

        Parameters
        ----------
        beta : float, optional
            Another beta than the choice.
        sandwich : {"HC0", "HC3"} or None
            Take the covariance of the sandwich instead of the posterior's, see
            :meth:`temperance.Calibration.sandwich`: for where no single beta fits all directions.
        """
        check_is_fitted(self)
        return self.coordinates_.coefficients(self._law_of(beta, sandwich), self._response)

    def forecast(self, X: ArrayLike, *, beta: float | None = None) -> Any:
        """Return the distribution of responses at ``X``, at the chosen or another ``beta``."""
        rows = self._rows(X)
        self._refuse_without_likelihood("forecast")
        law = self._posterior(beta).predictive(rows)
        if not isinstance(law, Forecast):
            return law
        centre, unit = self._response.centre[0], self._response.unit[0]
        return replace(law, location=centre + unit * law.location, scale=unit * law.scale)

    def fitted_value(
        self, X: ArrayLike, *, beta: float | None = None, sandwich: Correction | None = None
    ) -> Forecast:
        """Return the posterior distribution of the linear predictor at ``X``.

        It is the quantile for ``loss="quantile"``, the logarithm of the mean for counts, and the
        centre of the responses for other losses.  ``beta`` and ``sandwich`` are those of
        :meth:`coefficients`.
        """
        rows = self._rows(X)
        law = self._law_of(beta, sandwich).combination(rows)
        centre, unit = self._response.centre[0], self._response.unit[0]
        return replace(law, location=centre + unit * law.location, scale=unit * law.scale)

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return the mean of new responses at ``X``, and their standard deviation on request.

        For a loss that is no likelihood they are those of the fitted value.
        """
        law = self._law(X)
        return (law.mean, law.std) if return_std else law.mean

    def predict_interval(
        self, X: ArrayLike, level: ArrayLike = 0.95, *, sandwich: Correction | None = None
    ) -> Array:
        """Return the ends of central intervals: (n, 2), or (levels, n, 2) for several levels.

        They are for new responses.  For a loss that is no likelihood they are the credible band of
        the fitted value, such as a quantile, and ``sandwich`` is that of :meth:`fitted_value`.
        """
        if sandwich is None:
            return self._law(X).interval(level)
        if self.likelihood:
            raise ValueError(
                f"sandwich must be None for new responses, got {sandwich!r}; fitted_value(X, "
                "sandwich=...) has the band of the fitted value"
            )
        return self.fitted_value(X, sandwich=sandwich).interval(level)

    def predict_quantile(self, X: ArrayLike, q: ArrayLike) -> Array:
        """Return quantiles of new responses: (n,), or (levels, n) for several q."""
        return self.forecast(X).quantile(q)

    def _law(self, X: ArrayLike) -> Any:
        """Return the distribution of new responses, or of fitted values if they have none."""
        check_is_fitted(self)
        return self.forecast(X) if self.likelihood else self.fitted_value(X)

    @property
    def closed_form(self) -> bool:
        """Whether the loss is the squared one."""
        return self._loss() is None

    @property
    def smooth(self) -> bool:
        """Whether the loss has no kinks."""
        loss = self._loss()
        return loss is None or loss.smooth

    @property
    def likelihood(self) -> bool:
        """Whether the loss is minus a log likelihood, so that responses can be forecast."""
        loss = self._loss()
        return loss is None or loss.likelihood

    def _refuse_without_likelihood(self, asked: str) -> None:
        loss = self._loss()
        if loss is not None and not loss.likelihood:
            raise ValueError(
                f"{asked} is for likelihoods, and the {loss.name} is none; fitted_value has the "
                "posterior of what was fitted"
            )

    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Return draws of responses at ``X``, shape (n, n_samples).

        The responses of one draw share their coefficients and noise variance.
        """
        rows, size = self._rows(X), whole("n_samples", n_samples, 1)
        self._refuse_without_likelihood("sample_y")
        draws = self._posterior().sample_response(rows, size, as_seed(random_state))
        return self._response.centre[0] + self._response.unit[0] * draws.T

    def parts(self) -> list[tuple[str, Calibration]]:
        """Return the only calibration, under an empty name."""
        check_is_fitted(self)
        return [("", self.calibration_)]

    def _problem(self, rows: Array, y: Array) -> Data:
        response = as_numbers("y", y)[:, None]
        return as_data(rows, self._response(response)[:, 0])
