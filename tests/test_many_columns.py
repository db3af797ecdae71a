"""More columns than rows: estimators in memory of the size of the inputs."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.preprocessing import PolynomialFeatures

from temperance import GibbsClassifier, GibbsRegressor, models
from temperance import data as memory
from temperance import plans as grouping
from temperance.data import Data
from temperance.plans import LeaveOneOut, number_distinct, number_rows

pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")


@pytest.mark.parametrize("target", ["draws", "forecasts"])
@pytest.mark.parametrize(
    "estimator",
    [
        GibbsRegressor(random_state=0),
        GibbsRegressor(noise_variance=1.0, random_state=0),
        GibbsClassifier(posterior="laplace", random_state=0),
        GibbsClassifier(posterior="jaakkola", strategy="bayes"),
        GibbsClassifier(posterior="full", strategy="bayes"),
    ],
    ids=["unknown variance", "known variance", "laplace", "jaakkola", "full"],
)
def test_memory_is_a_few_times_that_of_the_inputs(estimator, target):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 20_000))
    y = (X[:, 0] > 0).astype(int)
    tracemalloc.start()
    try:
        model = clone(estimator).set_params(target=target).fit(X, y)
        model.predict(X)
        model.predict_interval(X)
        model.gains(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 30 * X.nbytes
    assert len(model.terms_) == 20_000


def test_bayes_by_backprop_takes_memory_of_the_size_of_the_inputs():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 1000))
    y = (X[:, 0] > 0).astype(float)
    model = models.MeanFieldLogistic(method="sgd", steps=5)
    tracemalloc.start()
    try:
        model.posterior(X, y, 8.0)
        model.risk_curve(Data(X, y, np.ones(8)), LeaveOneOut(np.ones(8)))(1.0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * X.nbytes


@given(
    rows=st.lists(st.lists(st.sampled_from([-0.0, 0.0, 1.0, 2.0]), min_size=7, max_size=7)),
    responses=st.lists(st.sampled_from([0.0, 1.0]), min_size=6, max_size=6),
)
@settings(deadline=None)
def test_rows_are_numbered_in_order_whatever_their_length(rows, responses):
    rows = (rows or [[0.0] * 7])[:6]
    X, y = np.array(rows), np.array(responses[: len(rows)])
    both = [(response, *row) for response, row in zip(y.tolist(), X.tolist(), strict=True)]
    ranks = {row: rank for rank, row in enumerate(sorted(set(both)))}
    found = number_rows(Data(X, y, np.ones(len(y))))
    assert found.tolist() == [ranks[row] for row in both]


def test_of_many_columns_few_are_sorted(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.integers(0, 2, (6, 500)).astype(float), 2, axis=0)
    looked_at = []

    def counted(columns):
        columns = list(columns)
        looked_at.extend(columns)
        return number_distinct(columns)

    monkeypatch.setattr(grouping, "number_distinct", counted)
    found = number_rows(Data(X, np.ones(12), np.ones(12)))
    assert len(set(found.tolist())) == 6
    assert len(looked_at) < 20


@pytest.mark.parametrize(("columns", "degree"), [(150, 1), (150, 2), (12, 4)])
def test_terms_are_named_as_scikit_learn_does(columns, degree):
    """In memory of the names, where scikit-learn makes a matrix of terms and columns."""
    X = np.random.default_rng(0).standard_normal((3, columns))
    tracemalloc.start()
    try:
        model = GibbsRegressor(degree=degree, strategy="bayes", prior_scale=1.0)
        names = model.fit(X, X[:, 0]).terms_
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    theirs = PolynomialFeatures(degree, include_bias=False).fit(X).get_feature_names_out()
    assert names == list(theirs)
    assert peak < 500 * len(names) + 1e6


def test_terms_that_do_not_fit_are_refused(monkeypatch):
    X = np.random.default_rng(0).standard_normal((20, 100))
    monkeypatch.setattr(memory, "available_bytes", lambda: 1e6)
    with pytest.raises(ValueError) as error:
        GibbsRegressor(degree=2).fit(X, X[:, 0])
    assert str(error.value) == (
        "degree must be small enough to fit, got 2: 5.15e+03 powers and products of 100 columns in "
        "each of 20 rows would take 3.3e+06 bytes of memory, 1e+06 are available"
    )
