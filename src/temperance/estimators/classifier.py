r"""Calibrated Bayesian classification as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from temperance.calibration import Calibration
from temperance.checks import as_data, one_of, shown, whole
from temperance.data import Array, Data, threads_for
from temperance.estimators.base import GibbsEstimator, Target
from temperance.estimators.certify import decided_by_rows, rows_apart
from temperance.estimators.inputs import (
    as_seed,
    as_weights,
    refuse_labels_of_several_kinds,
    validated,
)
from temperance.estimators.losses import classification_loss, loss_model
from temperance.estimators.prior_scale import most_predictive_classes
from temperance.forecasts import Forecast
from temperance.losses import Loss
from temperance.models import (
    FullCovarianceLogistic,
    GibbsLinear,
    JaakkolaLogistic,
    LaplaceLogistic,
    MeanFieldLogistic,
    SoftmaxLogistic,
)
from temperance.plans import Transfer
from temperance.protocols import Strategy
from temperance.uncertainty.information import Correction

if TYPE_CHECKING:
    from temperance.uncertainty.certificate import Certificate

POSTERIORS: dict[str, type] = {
    "mean-field": MeanFieldLogistic,
    "jaakkola": JaakkolaLogistic,
    "laplace": LaplaceLogistic,
    "full": FullCovarianceLogistic,
}


OF_ANY_LOSS: dict[str, Any] = {
    "mean-field": "mean-field",
    "full": "full-covariance",
    "laplace": "laplace",
}


def _has_probabilities(estimator: Any) -> bool:
    if not estimator.likelihood:
        raise AttributeError(
            f"probabilities are for likelihoods, and loss={estimator.loss!r} is none; "
            "decision_function has margins"
        )
    return True


def _has_margins(estimator: Any) -> bool:
    return not estimator.likelihood


class GibbsClassifier(ClassifierMixin, GibbsEstimator):
    r"""Bayesian logistic regression with a temperature that is calibrated on the data.

    .. math::

        \pi_\beta(\theta) \propto \exp\Bigl(-\beta \sum_i l(\theta, (x_i, y_i))\Bigr) \pi_0(\theta)

    with the logistic log loss l, or another.  ``strategy="bayes"`` is the ordinary posterior,
    beta = 1; every other strategy estimates which beta has the smallest risk on new data.

    Parameters
    ----------
    loss : {"logistic", "probit", "hinge"} or Loss
        The loss of a row of two classes, or any loss of labels of :mod:`temperance.losses`.  The
        hinge loss is no likelihood: it gives classes and margins, and no probabilities.  For more
        than two classes the loss is the logistic one.
    posterior : {"mean-field", "jaakkola", "laplace", "full"} or None
        Gaussian approximation of the posterior for two classes; for more it is Laplace's.  By
        default the full covariance for coefficients, whose intervals a mean field would make too
        narrow, and the mean field otherwise.
    degree : int
        Highest total degree of the powers and products of inputs.
    strategy : str, Strategy or None
        Rule that chooses beta: a name from :data:`temperance.strategies.NAMES` or an instance.  By
        default probabilities are stacked over beta, with ten folds; for draws ten folds choose one
        beta.
    transfer : {"beta", "alpha"}
        What a named strategy keeps equal from a part of the rows to all rows.
    target : {"forecasts", "coefficients", "draws"} or None
        What should be right: probabilities of the classes; credible intervals of the
        coefficients, which then cover by :class:`temperance.strategies.Sandwich`, or if a plane
        separates the classes by :class:`temperance.strategies.Coverage` (two classes only); or
        single draws from the posterior, whose mean loss is the Gibbs risk.  By default
        probabilities, and coefficients if the loss is no likelihood.
    bounds : (float, float) or None
        Range allowed for beta; by default (0, 3), and (0, 100) for Laplace posteriors, which at
        beta = 1 may be far from Bayes.
    prior_scale : "auto" or float
        Prior standard deviation of the coefficients of the standardised terms.  ``"auto"`` takes
        the scale that forecasts best in ten folds of all rows at beta = 1 (Laplace posteriors: at 2
        or 16), the same in all parts of a strategy; an intercept then has 10.
    standardize : bool
        Give inputs and terms mean 0 and variance 1 before fitting.
    fit_intercept : bool
        Whether the terms include a constant.
    random_state : int, RandomState or None
        Seed of the random folds or resamples of strategies that use them.  ``None`` is 0, so that
        the result is reproducible.
    certify : float or None
        Share of the rows, chosen at random by ``random_state``, that gives the standardisation and
        the prior, and nothing else.  The posterior comes from the other rows, for which
        ``certificate`` then holds.  By default all rows serve for both.
    keep_data : bool
        Whether a stored estimator (pickle, joblib) contains the training data.  Without them it
        can predict and show its numbers, but not the posterior at another beta.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    inverse_temperature_ : float
        The exponent beta on each observation's likelihood; Bayes is 1.
    coef_, intercept_ : arrays of shape (1, terms) and (1,), or (n_classes, terms) and (n_classes,)
        Posterior means, per unit of the term.  The terms are the inputs; with ``degree`` above 1
        the powers and products of the standardised inputs.  With more than two classes each class
        has a row, minus the mean over the classes, on which probabilities do not depend.
    calibration_ : Calibration
    terms_ : list of str
        Names of the terms: the inputs, or their powers and products.
    coordinates_ : Coordinates
        The map from inputs to the rows of the model.
    n_features_in_ : int
    feature_names_in_ : array of str, if the inputs have names

    See Also
    --------
    GibbsRegressor : the same for real responses.
    temperance.calibrate : the underlying function, for your own models.

    Notes
    -----
    The probability of a class is the posterior expectation of the logistic function, by quadrature,
    not its value at the posterior mean.  With more than two classes there is one joint posterior
    and one beta, see :class:`temperance.models.SoftmaxLogistic`.

    A weight of k counts exactly like k copies of a row under ``"k-fold"``, ``"naive"`` and
    ``"bayes"``; the other strategies depend on rows or on their order.

    Examples
    --------
    Train on half of the breast cancer data, test on the other half:

    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, X_new, y, y_new = train_test_split(X, y, train_size=0.5, random_state=0, stratify=y)
    >>> for strategy in ("bayes", "stacking"):
    ...     model = GibbsClassifier(strategy=strategy).fit(X, y)
    ...     score = model.predict_log_proba(X_new)[np.arange(len(y_new)), y_new].mean()
    ...     beta, right = model.inverse_temperature_, model.score(X_new, y_new)
    ...     print(f"{strategy:9}beta {beta:.3f}  log score {score:.3f}  right {right:.1%}")
    bayes    beta 1.000  log score -0.079  right 97.5%
    stacking beta 1.047  log score -0.081  right 98.2%
    """

    def __init__(
        self,
        loss: str | Loss = "logistic",
        posterior: Literal["mean-field", "jaakkola", "laplace", "full"] | None = None,
        degree: int = 1,
        strategy: Strategy | str | None = None,
        transfer: Transfer = "beta",
        target: Target | None = None,
        bounds: tuple[float, float] | None = None,
        prior_scale: float | Literal["auto"] = "auto",
        standardize: bool = True,
        fit_intercept: bool = True,
        random_state: Any = None,
        certify: float | None = None,
        keep_data: bool = False,
    ) -> None:
        self.loss = loss
        self.posterior = posterior
        self.degree = degree
        self.strategy = strategy
        self.transfer = transfer
        self.target = target
        self.bounds = bounds
        self.prior_scale = prior_scale
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.certify = certify
        self.keep_data = keep_data

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> GibbsClassifier:
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
        self._posterior_kind()
        inputs, labels = validated(self, X, y, ensure_min_samples=2)
        refuse_labels_of_several_kinds("y", labels)
        check_classification_targets(labels)
        weights = as_weights(sample_weight, inputs)
        self.classes_ = np.unique(labels[weights > 0])
        if len(self.classes_) < 2:
            only = shown(self.classes_[0])
            raise ValueError(f"y must hold at least two classes, got 1 class: {only}")
        if len(self.classes_) > 2 and self._loss() is not None:
            raise ValueError(
                f"loss must be 'logistic' for {len(self.classes_)} classes, got "
                f"{shown(self.loss)}: Only binary classification is supported."
            )
        codes = np.searchsorted(self.classes_, labels).astype(float)
        first, others = rows_apart(self.certify, codes, weights, groups, self.random_state)
        with threads_for(inputs.size):
            self.coordinates_ = self._choose_coordinates(inputs[first], weights[first])
            rows = self.coordinates_.rows(inputs)
            model = self._model(rows[first], codes[first], weights[first])
            calibration = self._calibrate(
                model, rows[others], codes[others], weights[others], groups
            )
            self.calibration_ = replace(calibration, seen=self._decided_by_rows())
            self.inverse_temperature_ = self.calibration_.beta
            means = np.stack([law.mean for law in self.class_coefficients()])
            self.intercept_, self.coef_ = means[:, 0], means[:, 1:]
        return self

    def certificate(
        self,
        loss: Literal["zero-one", "brier"] = "zero-one",
        confidence: float = 0.95,
        *,
        even_if_seen: bool = False,
    ) -> Certificate:
        """Return the certificate of :meth:`temperance.Calibration.certificate`."""
        check_is_fitted(self)
        return self.calibration_.certificate(loss, confidence, even_if_seen=even_if_seen)

    def _decided_by_rows(self) -> tuple[str, ...]:
        """Return what the rows of the posterior have decided of the prior and the units of X."""
        if self.certify is not None:
            return ()
        learns_mean = self._loss() is not None and self.fit_intercept
        return decided_by_rows(self.standardize, self._learns_scale(), learns_mean)

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: other losses than the logistic one are of two classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = isinstance(self.loss, str) and self.loss == "logistic"
        return tags

    def _loss(self) -> Loss | None:
        """Return the loss if it is another than the logistic one."""
        return classification_loss(self.loss)

    def _posterior_kind(self) -> str:
        """Return the name of the approximation of the posterior."""
        if self.posterior is None:
            return "full" if self._target() == "coefficients" else "mean-field"
        one_of("posterior", self.posterior, POSTERIORS)
        return self.posterior

    @property
    def smooth(self) -> bool:
        """Whether the loss has no kinks."""
        loss = self._loss()
        return loss is None or loss.smooth

    @property
    def likelihood(self) -> bool:
        """Whether the loss is minus a log likelihood, so that classes have probabilities."""
        loss = self._loss()
        return loss is None or loss.likelihood

    def _model(self, rows: Array, codes: Array, weights: Array) -> Any:
        loss, kind = self._loss(), self.kind_of_model()
        if loss is not None:
            used = weights > 0
            data = Data(rows[used], codes[used], weights[used])
            scale = None if self._learns_scale() else float(np.sqrt(self._prior_variance()))
            forecasts = self._risk() == "predictive"
            return loss_model(loss, kind.kind, data, self.fit_intercept, scale, forecasts)
        given = self._given_variance(rows)
        if given is not None:
            return kind(prior_cov=given)
        used = weights > 0
        return most_predictive_classes(
            kind, rows[used], codes[used], weights[used], self.fit_intercept
        )

    def kind_of_model(self) -> Any:
        """Return the class of the model that is calibrated, or one like it."""
        loss = self._loss()
        if loss is not None:
            kind = self._posterior_kind()
            one_of("posterior", kind, OF_ANY_LOSS)
            return GibbsLinear(loss, OF_ANY_LOSS[kind])
        several = len(getattr(self, "classes_", ())) > 2
        return SoftmaxLogistic if several else POSTERIORS[self._posterior_kind()]

    def coefficients(
        self, k: int = 0, *, beta: float | None = None, sandwich: Correction | None = None
    ) -> Forecast:
        """Return the distributions of intercept and coefficients of the k-th row of ``coef_``.

        Parameters
        ----------
        k : int
            The class, if there are more than two.
        beta : float, optional
            Another beta than the choice.
        sandwich : {"HC0", "HC3"} or None
            For two classes: the covariance of the sandwich instead of the posterior's, see
            :meth:`temperance.Calibration.sandwich`.
        """
        check_is_fitted(self)
        if sandwich is not None:
            return self.coordinates_.coefficients(self._law_of(beta, sandwich))
        rows = len(self.classes_) if len(self.classes_) > 2 else 1
        if whole("k", k, 0) >= rows:
            raise ValueError(f"k must be less than {rows}, got {k!r}")
        return self.class_coefficients(beta=beta)[k]

    def class_coefficients(self, *, beta: float | None = None) -> list[Forecast]:
        """Return the distributions of (intercept, coefficients) of all rows of ``coef_``."""
        check_is_fitted(self)
        posterior = self._posterior(beta)
        blocks = [posterior]
        if len(self.classes_) > 2:
            blocks = [posterior.of_class(k) for k in range(len(self.classes_))]
        return [self.coordinates_.coefficients(block) for block in blocks]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: ArrayLike, *, beta: float | None = None) -> Array:
        """Return log probabilities of the classes, shape (n, n_classes).

        At the chosen beta by default, or at another ``beta``.
        """
        found = self._posterior(beta).log_predict(self._rows(X))
        return np.column_stack(found) if len(self.classes_) == 2 else found

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike, *, beta: float | None = None) -> Array:
        """Return probabilities of the classes, shape (n, n_classes): posterior expectations."""
        return np.exp(self.predict_log_proba(X, beta=beta))

    def predict(self, X: ArrayLike) -> Array:
        """Return the most probable class of each row, or the class on its side of the margin."""
        if not self.likelihood:
            check_is_fitted(self)
            return self.classes_[(self.decision_function(X) > 0).astype(int)]
        most_probable = np.argmax(self.predict_log_proba(X), axis=1)
        return self.classes_[most_probable]

    @available_if(_has_margins)  # type: ignore[untyped-decorator]
    def decision_function(self, X: ArrayLike, *, beta: float | None = None) -> Array:
        """Return the posterior mean of the linear predictor; above 0 it is the second class."""
        return self._posterior(beta).combination(self._rows(X)).mean

    def predict_interval(
        self, X: ArrayLike, level: ArrayLike = 0.95, *, beta: float | None = None
    ) -> Array:
        """Return the ends of central credible intervals of the probabilities.

        For two classes those of the second, shape (n, 2); for more classes those of each, shape
        (n, n_classes, 2).  For a loss that is no likelihood: intervals of the linear predictor.
        """
        rows, posterior = self._rows(X), self._posterior(beta)
        if len(self.classes_) > 2:
            return posterior.interval(rows, level)
        band, loss = posterior.combination(rows).interval(level), self._loss()
        if loss is None:
            return special.expit(band)
        return loss.response_mean(band) if loss.likelihood else band

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Return draws of classes at ``X``, shape (n, n_samples)."""
        size, rng = whole("n_samples", n_samples, 1), np.random.default_rng(as_seed(random_state))
        steps = self.predict_proba(X).cumsum(axis=1)[:, None, :-1]
        uniform = rng.random((len(steps), size, 1))
        return self.classes_[(uniform > steps).sum(axis=2)]

    def parts(self) -> list[tuple[str, Calibration]]:
        """Return the calibration, with the name of each class that has a row of ``coef_``."""
        check_is_fitted(self)
        named = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        return [(str(label), self.calibration_) for label in named]

    def _problem(self, rows: Array, y: Array) -> Data:
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise ValueError(
                f"y must hold the classes of the fit, {shown(self.classes_)}, got "
                f"{shown(y[unknown][0])}"
            )
        return as_data(rows, np.searchsorted(self.classes_, y).astype(float))
