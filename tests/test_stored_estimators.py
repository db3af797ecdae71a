"""Stored estimators: what a pickle of a fitted one holds, and what it can do."""

from __future__ import annotations

import copy
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris

from temperance import GibbsClassifier, GibbsRegressor
from temperance.app.explanation import explain

pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")

STORED = {
    "regressor": GibbsRegressor(random_state=0),
    "known variance": GibbsRegressor(noise_variance=1.0, degree=2, random_state=0),
    "mean-field": GibbsClassifier(random_state=0),
    "laplace": GibbsClassifier(posterior="laplace", random_state=0),
    "full": GibbsClassifier(posterior="full", strategy="bayes", random_state=0),
}
BETAS = np.array([0.2, 1.0])


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:90, :6], y[:90]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X[::2], np.array(["setosa", "versicolor", "virginica"])[y[::2]]


def stored(fitted):
    return pickle.loads(pickle.dumps(fitted))


@pytest.fixture(scope="module", params=STORED)
def once(request, cancer):
    return clone(STORED[request.param]).fit(*cancer)


@pytest.fixture
def fitted(once):
    """An estimator that a test may change."""
    return copy.deepcopy(once)


@pytest.mark.parametrize("rows", [40, 6], ids=["long", "wide"])
@pytest.mark.parametrize("name", STORED)
def test_no_value_of_the_training_data_is_stored(name, rows):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((rows, 9)), rng.standard_normal(rows)
    classes = isinstance(STORED[name], GibbsClassifier)
    one = clone(STORED[name]).set_params(degree=1).fit(X, y > 0 if classes else y)
    values = [X, one.coordinates_.rows(X)[:, 1:]]
    if not classes:
        values += [y, one._response(y)]
    training = {value.tobytes() for value in np.concatenate([each.ravel() for each in values])}
    left_out = pickle.dumps(one)
    assert not [each for each in training if each in left_out]
    # Negative control: the same search finds what is kept on request.
    kept = pickle.dumps(one.set_params(keep_data=True))
    assert len([each for each in training if each in kept]) > len(training) / 3


@pytest.mark.parametrize("name", ["regressor", "laplace"])
def test_no_row_is_stored_in_disguise(name):
    """Directions of a posterior with more columns than rows mix all rows."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((6, 40)), np.arange(6) % 2
    one = clone(STORED[name]).fit(X, y)
    rows = one.coordinates_.rows(X)
    posterior = one.calibration_.posterior
    if name == "regressor":
        rows = rows[:, 1:] - posterior.centre
        found = [posterior.directions]
    else:
        found = [part.root.directions for part in getattr(posterior, "parts", [posterior])]
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    for directions in found:
        cosines = rows @ directions
        assert np.abs(cosines).max() < 0.99
        assert np.linalg.norm(cosines, axis=1) == pytest.approx(1.0)  # but span the same


@pytest.mark.slow
def test_a_pickle_is_as_large_as_the_posterior(fitted, cancer):
    X, y = cancer
    X, y = np.tile(X, (20, 1)), np.tile(y, 20)
    X += 1e-3 * np.random.default_rng(0).standard_normal(X.shape)
    large = clone(fitted).fit(X, y)
    assert len(pickle.dumps(large)) < len(pickle.dumps(fitted)) + 100
    posterior = large.calibration_.posterior
    parts = getattr(posterior, "parts", [posterior])
    count = len(getattr(parts, "weights", parts))  # of mixed posteriors
    width = 1 + large.coef_.shape[-1]
    each = 24 * width if hasattr(parts, "weights") else 16 * width**2 + 500
    assert len(pickle.dumps(large)) < 16 * width**2 + count * each + 6000
    assert len(pickle.dumps(large.set_params(keep_data=True))) > X.nbytes


def test_the_stored_answer_the_same(fitted, cancer, tmp_path):
    X, _ = cancer
    joblib.dump(fitted, tmp_path / "model.joblib")
    for other in (
        stored(fitted),
        stored(stored(fitted)),
        joblib.load(tmp_path / "model.joblib"),
        copy.copy(fitted),
        copy.deepcopy(fitted),
    ):
        np.testing.assert_array_equal(other.predict(X), fitted.predict(X))
        np.testing.assert_array_equal(other.predict_interval(X), fitted.predict_interval(X))
        np.testing.assert_array_equal(other.sample_y(X, 2), fitted.sample_y(X, 2))
        np.testing.assert_array_equal(other.coefficients().scale, fitted.coefficients().scale)
        assert other.terms_ == fitted.terms_
        assert repr(other.calibration_) == repr(fitted.calibration_)
        assert explain(other.calibration_) == explain(fitted.calibration_)
    with pytest.raises(AttributeError):
        clone(fitted).coef_  # noqa: B018


def test_what_is_not_stored_is_said_in_one_line(fitted, cancer):
    X, y = cancer
    other = stored(fitted)
    for ask in (
        lambda: other.gains(X, y),
        lambda: other.coefficients(beta=1.0),
        lambda: other.calibration_.posterior_at(0.5),
        lambda: other.calibration_.data.X,
        lambda: other.calibration_.data.y,
        lambda: other.calibration_.data.weights,
    ):
        with pytest.raises(ValueError) as error:
            ask()
        assert str(error.value) == (
            "the training data are needed for this, and were not stored with the estimator; "
            "fit with keep_data=True to store them"
        )


def test_the_curve_is_stored_at_the_betas_of_the_table(fitted):
    ours, other = fitted.calibration_, stored(fitted).calibration_
    betas = ours.table.betas
    np.testing.assert_allclose(other.curve(betas), ours.curve(betas), rtol=1e-12)
    assert other.table.losses.shape == (len(betas), 1)
    between = np.sqrt(betas[1:-1] * betas[2:])
    np.testing.assert_allclose(other.curve(between), ours.curve(between), rtol=0.05)
    assert other.plot() is not None


def test_data_are_kept_on_request_and_in_memory(fitted, cancer):
    X, y = cancer
    kept = clone(fitted).set_params(keep_data=True).fit(X, y)
    for other in (stored(kept), copy.copy(fitted), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(other.gains(X, y), fitted.gains(X, y))
        np.testing.assert_array_equal(
            other.calibration_.curve(BETAS), fitted.calibration_.curve(BETAS)
        )
    assert copy.deepcopy(fitted).calibration_.data.y is not fitted.calibration_.data.y


def test_every_class_is_stored(iris):
    X, y = iris
    one = GibbsClassifier(posterior="laplace", random_state=0).fit(X, y)
    other = stored(one)
    np.testing.assert_array_equal(other.predict_proba(X), one.predict_proba(X))
    assert repr(other.calibration_) == repr(one.calibration_)
    with pytest.raises(ValueError, match="keep_data=True"):
        other.predict_proba(X, beta=1.0)
