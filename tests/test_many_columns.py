"""More columns than rows: estimators in memory of the size of the inputs."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import PolynomialFeatures

from temperance import GibbsClassifier, GibbsRegressor, memory

pytestmark = pytest.mark.filterwarnings("ignore::temperance.diagnostics.TemperanceWarning")


@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize(
    "estimator",
    [
        GibbsRegressor(random_state=0),
        GibbsRegressor(1.0, random_state=0),
        GibbsClassifier("laplace", random_state=0),
        GibbsClassifier("jaakkola", strategy="bayes"),
        GibbsClassifier("full", strategy="bayes"),
    ],
    ids=["unknown variance", "known variance", "laplace", "jaakkola", "full"],
)
def test_memory_is_a_few_times_that_of_the_inputs(estimator, risk):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 20_000))
    y = (X[:, 0] > 0).astype(int)
    tracemalloc.start()
    try:
        model = clone(estimator).set_params(risk=risk).fit(X, y)
        model.predict(X)
        model.predict_interval(X)
        model.gains(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 25 * X.nbytes
    assert len(model.terms_) == 20_000


def test_rows_that_repeat():
    """Copies are found in all columns, and are worth their weight."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((8, 300)), 2, axis=0)
    y = np.repeat(rng.standard_normal(8), 2)
    copies = GibbsRegressor(random_state=0).fit(X, y)
    weights = GibbsRegressor(random_state=0).fit(X[::2], y[::2], sample_weight=np.full(8, 2.0))
    assert copies.inverse_temperature_ == pytest.approx(weights.inverse_temperature_, rel=1e-6)
    np.testing.assert_allclose(copies.predict(X[::2]), weights.predict(X[::2]), rtol=1e-8)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_terms_are_named_as_scikit_learn_does(degree):
    X = np.random.default_rng(0).standard_normal((40, 3))
    model = GibbsRegressor(degree=degree, strategy="bayes").fit(X, X[:, 0])
    theirs = PolynomialFeatures(degree, include_bias=False).fit(X).get_feature_names_out()
    assert model.terms_ == list(theirs)


def test_terms_that_do_not_fit_are_refused(monkeypatch):
    X = np.random.default_rng(0).standard_normal((20, 100))
    monkeypatch.setattr(memory, "available_bytes", lambda: 1e6)
    with pytest.raises(ValueError) as error:
        GibbsRegressor(degree=2).fit(X, X[:, 0])
    assert str(error.value) == (
        "degree 2 with 5150 powers and products would take 1.65e+06 bytes of memory, 1e+06 are "
        "available"
    )
