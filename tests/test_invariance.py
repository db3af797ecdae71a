"""Laws of the estimators: answers do not depend on how rows, columns and responses are written."""

import numpy as np
import pytest

from temperance import GibbsClassifier, GibbsRegressor
from temperance.estimators.coordinates import distinct_columns

TOLERANCE = 1e-8
NEW = np.random.default_rng(9).standard_normal((7, 4))

CASES = {
    "forecasts": GibbsRegressor(),
    "known noise": GibbsRegressor(noise_variance=1.5),
    "leave-one-out": GibbsRegressor(strategy="leave-one-out"),
    "coefficients": GibbsRegressor(target="coefficients"),
    "sandwich": GibbsRegressor(target="coefficients", strategy="sandwich"),
    "classes": GibbsClassifier(),
}


def data(n=60):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, 4)) * [1.0, 3.0, 0.2, 1.0]
    return X, X @ [1.0, -0.3, 2.0, 0.0] + rng.standard_t(2.5, n)


def answers(estimator, X, y, at, unit=1.0, shift=0.0, columns=None):
    """Return beta, weights, forecasts and coefficients in the units of the plain problem."""
    model = estimator.fit(X, y)
    chosen = model.calibration_
    weights = [] if chosen.weights is None else chosen.weights.weights
    columns = slice(0, 4) if columns is None else columns
    if hasattr(model, "classes_"):
        found = [model.predict_proba(at).ravel(), model.coef_[0][columns]]
    else:
        low, high = model.predict_interval(at).T
        ends = np.sort([(low - shift) / unit, (high - shift) / unit], axis=0)
        law = model.coefficients()
        widths = np.diff(law.interval(0.9), axis=1)[1:, 0]
        found = [ends.ravel(), model.coef_[columns] / unit, widths[columns] / abs(unit)]
    return np.concatenate([[chosen.beta], np.atleast_1d(weights), *found])


def plain(estimator):
    X, y = data()
    y = (y > 0).astype(int) if isinstance(estimator, GibbsClassifier) else y
    return X, y, answers(estimator, X, y, NEW)


@pytest.mark.parametrize("estimator", CASES.values(), ids=CASES)
@pytest.mark.parametrize("value", [0.0, 1.0, 1e6])
def test_a_constant_column_changes_nothing(estimator, value):
    X, y, expected = plain(estimator)
    more, at = (np.column_stack([part, np.full(len(part), value)]) for part in (X, NEW))
    np.testing.assert_allclose(answers(estimator, more, y, at), expected, atol=TOLERANCE)
    assert estimator.coef_.ravel()[4] == 0.0


@pytest.mark.parametrize("estimator", CASES.values(), ids=CASES)
def test_repeats_of_a_column_share_its_coefficient(estimator):
    X, y, expected = plain(estimator)
    more, at = (part[:, [0, 1, 2, 3, 1]] for part in (X, NEW))
    found = answers(estimator, more, y, at)
    coefficients = expected.copy()
    # The last entries are coefficients, and their deviations for regressions.
    for first in (-4,) if isinstance(estimator, GibbsClassifier) else (-8, -4):
        coefficients[first + 1] /= 2
    np.testing.assert_allclose(found, coefficients, atol=TOLERANCE)


@pytest.mark.parametrize("name", [name for name in CASES if name != "classes"])
def test_the_order_of_columns_does_not_matter(name):
    X, y, expected = plain(CASES[name])
    order = [2, 0, 3, 1]
    back = np.argsort(order)
    found = answers(CASES[name], X[:, order], y, NEW[:, order], columns=back)
    np.testing.assert_allclose(found, expected, atol=TOLERANCE)


@pytest.mark.parametrize("name", [name for name in CASES if name != "classes"])
@pytest.mark.parametrize(("unit", "shift"), [(-1.0, 0.0), (1.0, 100.0), (1e6, 0.0), (1e-6, 0.0)])
def test_units_sign_and_origin_of_the_response_do_not_matter(name, unit, shift):
    X, y, expected = plain(CASES[name])
    estimator = CASES[name]
    if name == "known noise":
        estimator = GibbsRegressor(noise_variance=1.5 * unit**2)
    found = answers(estimator, X, shift + unit * y, NEW, unit, shift)
    np.testing.assert_allclose(found, expected, atol=TOLERANCE)


@pytest.mark.parametrize("estimator", CASES.values(), ids=CASES)
def test_units_and_origins_of_the_inputs_do_not_matter(estimator):
    X, y, expected = plain(estimator)
    units, origins = np.array([1e3, 1e-3, 2.0, -1.0]), np.array([0.0, 5.0, -3.0, 100.0])
    found = answers(estimator, X * units + origins, y, NEW * units + origins)
    for first in (-4,) if isinstance(estimator, GibbsClassifier) else (-8, -4):
        last = len(found) if first == -4 else -4
        found[first:last] *= (
            units if first == -8 or isinstance(estimator, GibbsClassifier) else abs(units)
        )
    np.testing.assert_allclose(found, expected, atol=TOLERANCE)


@pytest.mark.parametrize("estimator", CASES.values(), ids=CASES)
def test_the_order_of_rows_does_not_matter(estimator):
    X, y, expected = plain(estimator)
    order = np.random.default_rng(1).permutation(len(y))
    np.testing.assert_allclose(
        answers(estimator, X[order], y[order], NEW), expected, atol=TOLERANCE
    )


@pytest.mark.parametrize("estimator", CASES.values(), ids=CASES)
def test_weights_are_copies(estimator):
    X, y = data(30)
    y = (y > 0).astype(int) if isinstance(estimator, GibbsClassifier) else y
    weights = np.random.default_rng(2).integers(0, 4, len(y))
    found = answers(estimator, np.repeat(X, weights, axis=0), np.repeat(y, weights), NEW)
    estimator.fit(X, y, sample_weight=weights)
    weighted = answers(type("W", (), {"fit": lambda self, *_: estimator})(), X, y, NEW)
    np.testing.assert_allclose(weighted, found, atol=TOLERANCE)


def test_a_column_that_changes_is_noticed():
    X, y, expected = plain(CASES["forecasts"])
    X = X.copy()
    X[0, 0] += 0.1
    assert np.abs(answers(CASES["forecasts"], X, y, NEW) - expected).max() > 1e-4


@pytest.mark.filterwarnings("ignore::temperance.messages.FlatCurveWarning")
def test_a_response_that_is_fitted_exactly_says_nothing_about_beta():
    X, y = data()
    for response in (np.full(len(y), 7.0), X @ [1.0, 2.0, 3.0, 4.0]):
        chosen = GibbsRegressor().fit(X, response).calibration_
        assert chosen.flat
        assert chosen.beta == pytest.approx(1.0)
        assert chosen.gain == pytest.approx(0.0, abs=1e-12)
        assert chosen.verdict == "keep"


def test_as_many_columns_as_rows_are_no_exact_fit():
    rng = np.random.default_rng(0)
    for d in (19, 20, 40):
        chosen = GibbsRegressor().fit(rng.standard_normal((20, d)), rng.standard_normal(20))
        assert not chosen.calibration_.flat


@pytest.mark.parametrize("size", [1.0, 1e3, 1e7])
def test_repeats_are_found_in_columns_of_any_size(size):
    rng = np.random.default_rng(0)
    for _ in range(5):
        X = rng.normal(size, size, (2000, 9))
        found = distinct_columns(X[:, [*range(9), 0, 3, 5, 8]], np.ones(2000), intercept=True)
        np.testing.assert_array_equal(found, [*range(9), 0, 3, 5, 8])


@pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")
def test_whatever_is_chosen_has_a_finite_posterior():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 2)), rng.standard_normal(40)
    y[0] = 1e6
    for strategy in ("leave-one-out", "k-fold"):
        for options in ({}, {"fit_intercept": False}, {"noise_variance": 1e-6}):
            for weights in (np.ones(40), np.full(40, 1e9)):
                model = GibbsRegressor(strategy=strategy, **options).fit(X, y, weights)
                assert np.all(np.isfinite(model.predict_interval(X)))
    twice = GibbsRegressor(strategy="leave-one-out").fit(
        np.repeat(X[1:3], 20, 0), np.repeat(y[1:3], 20)
    )
    assert twice.calibration_.verdict == "keep"
