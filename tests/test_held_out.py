"""Rows held out: a naive loop gives the same, and forecasts of a true model keep their word."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

from temperance import GibbsClassifier, GibbsRegressor, expected_risk
from temperance.app.held_out import coverage, forecasts, hold_out
from temperance.estimators.base import RISKS

pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")


def line(n=30, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    return X, 5 + X @ [2.0, -1.0] + 2 * random.normal(size=n)


def classes(n=36, labels=("no", "yes"), seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    place = np.digitize(X[:, 0] + random.normal(size=n), np.linspace(-0.5, 0.5, len(labels))[1:])
    return X, np.array(labels)[place]


WEIGHTS = np.random.default_rng(1).integers(1, 4, 36).astype(float)
THREE = ("high", "low", "middle")
CHOICES = {
    "default": {},
    "one beta": {"strategy": "k-fold", "prior_scale": 1.0},
    "draws": {"target": "draws"},
}


def lost(fitted, rows, y, beta, risk):
    """Loss of one row, by the core alone."""
    chosen = fitted.calibration_
    if hasattr(fitted, "classes_"):
        response = float(list(fitted.classes_).index(y))
    else:
        response = (y - fitted._response.centre[0]) / fitted._response.unit[0]
    betas, weights = [chosen.beta if beta is None else beta], [1.0]
    if beta is None and chosen.weights is not None:
        betas, weights = chosen.weights.betas, chosen.weights.weights
    losses = expected_risk(
        chosen.model,
        (chosen.data.X, chosen.data.y, chosen.data.weights),
        (rows, [response]),
        chosen.data.size * np.asarray(betas),
        risk=risk,
    )
    return losses[0] if len(betas) == 1 else -np.log(weights @ np.exp(-losses))


def law_of(forecast):
    """Density and distribution function of the first row of a forecast, by scipy."""
    parts = stats.t(forecast.dof, forecast.location[:, 0], forecast.scale[:, 0])
    return lambda y: forecast.weights @ parts.pdf(y), lambda y: forecast.weights @ parts.cdf(y)


def naive(estimator, X, y, splits, weights=None):
    """One row at a time, from the definitions."""
    weights = np.ones(len(y)) if weights is None else weights
    found = {name: np.full(len(y), np.nan) for name in ("gain", "score", "place", "bayes score")}
    for train, test in splits:
        fitted = clone(estimator).fit(X[train], y[train], sample_weight=weights[train])
        for i in test:
            row = X[i : i + 1]
            rows = fitted.coordinates_.rows(row)
            risk = RISKS[estimator.target or "forecasts"]
            bayes, own = (lost(fitted, rows, y[i], beta, risk) for beta in (1.0, None))
            found["gain"][i] = bayes - own
            for name, beta in (("score", None), ("bayes score", 1.0)):
                if hasattr(fitted, "classes_"):
                    [shares] = fitted.predict_proba(row, beta=beta)
                    found[name][i] = np.log(shares[list(fitted.classes_).index(y[i])])
                    continue
                density, distribution = law_of(fitted.forecast(row, beta=beta))
                found[name][i] = np.log(density(y[i]))
                if beta is None:
                    found["place"][i] = distribution(y[i])
    return found


def same(held, expected):
    close = {"rtol": 1e-8, "atol": 1e-10}
    np.testing.assert_allclose(held.gains, expected["gain"], **close)
    np.testing.assert_allclose(held.calibrated.log_score, expected["score"], **close)
    np.testing.assert_allclose(held.bayes.log_score, expected["bayes score"], **close)
    if held.calibrated.place is not None:
        np.testing.assert_allclose(held.calibrated.place, expected["place"], **close)


class TestAgainstALoop:
    @pytest.mark.parametrize("options", CHOICES.values(), ids=CHOICES)
    @pytest.mark.parametrize("noise, weighted", [("unknown", True), (1.0, False)])
    def test_real_responses(self, options, noise, weighted):
        X, y = line()
        weights = WEIGHTS[:30] if weighted else None
        estimator = GibbsRegressor(noise_variance=noise, **options, bounds=(0, 0.9))
        held = hold_out(estimator, X, y, weights, n_folds=4, seed=3)
        splits = KFold(4, shuffle=True, random_state=3).split(X)
        same(held, naive(estimator, X, y, splits, weights))
        assert np.ptp(held.gains) > 0
        assert held.calibrated.probabilities is None

    @pytest.mark.parametrize(
        "name, labels",
        [
            ("default", ("no", "yes")),
            ("one beta", (3, 7)),
            ("draws", ("no", "yes")),
            pytest.param("default", THREE, marks=pytest.mark.slow),
            ("one beta", THREE),
            pytest.param("draws", THREE, marks=pytest.mark.slow),
        ],
    )
    def test_classes(self, name, labels):
        options = CHOICES[name]
        X, y = classes(labels=labels)
        estimator = GibbsClassifier(posterior="laplace", **options, bounds=(0, 0.8))
        held = hold_out(estimator, X, y, WEIGHTS, n_folds=3, seed=5)
        splits = StratifiedKFold(3, shuffle=True, random_state=5).split(X, y)
        same(held, naive(estimator, X, y, splits, WEIGHTS))
        assert held.calibrated.place is None
        for each in (held.calibrated, held.bayes):
            assert each.probabilities.shape == (36, len(labels))
            np.testing.assert_allclose(each.probabilities.sum(axis=1), 1.0, rtol=1e-9)
            own = each.probabilities[np.arange(36), np.searchsorted(labels, y)]
            np.testing.assert_allclose(np.log(own), each.log_score, rtol=1e-12)

    def test_frames_are_arrays_with_names(self):
        X, y = line()
        frame = pd.DataFrame(X, columns=["a", "b"], index=np.arange(30)[::-1])
        ours = hold_out(GibbsRegressor(random_state=0), frame, pd.Series(y))
        theirs = hold_out(GibbsRegressor(random_state=0), X, y)
        np.testing.assert_allclose(ours.gains, theirs.gains, rtol=1e-9)
        np.testing.assert_allclose(ours.calibrated.place, theirs.calibrated.place, rtol=1e-9)


@pytest.mark.parametrize("noise", ["unknown", 1.0])
def test_gains_in_the_predictive_risk_are_differences_of_log_scores(noise):
    X, y = line()
    # Mixed forecasts leave parts of little weight out.
    for options, close in ((CHOICES["one beta"], 1e-12), ({"prior_scale": 1.0}, 1e-6), ({}, 2e-3)):
        held = hold_out(GibbsRegressor(noise_variance=noise, **options), X, y)
        differences = held.calibrated.log_score - held.bayes.log_score
        np.testing.assert_allclose(held.gains, differences, rtol=1e-8, atol=close)
    gibbs = hold_out(GibbsRegressor(noise_variance=noise, target="draws"), X, y)
    assert not np.allclose(gibbs.gains, gibbs.calibrated.log_score - gibbs.bayes.log_score)


@pytest.mark.parametrize(("options", "close"), [({"strategy": "k-fold"}, 1e-12), ({}, 1e-6)])
def test_gains_of_two_classes_in_the_predictive_risk_are_differences_of_log_scores(options, close):
    # A mixture leaves betas of next to no weight out.
    held = hold_out(GibbsClassifier(posterior="laplace", **options), *classes())
    differences = held.calibrated.log_score - held.bayes.log_score
    np.testing.assert_allclose(held.gains, differences, rtol=1e-8, atol=close)


def test_bayes_gains_nothing():
    held = hold_out(GibbsRegressor(strategy="bayes"), *line())
    np.testing.assert_array_equal(held.gains, 0.0)
    np.testing.assert_array_equal(held.calibrated.log_score, held.bayes.log_score)


def test_rows_keep_their_order():
    """A row that differs from all others by far is the one with the strange forecast."""
    X, y = line()
    y[17] += 100
    held = hold_out(GibbsRegressor(random_state=0), X, y)
    assert np.argmin(held.calibrated.log_score) == 17
    assert held.calibrated.place[17] > 0.999


def test_one_seed_has_one_result():
    X, y = line()
    one, same_, other = (hold_out(GibbsRegressor(random_state=0), X, y, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.gains, same_.gains)
    np.testing.assert_array_equal(one.calibrated.place, same_.calibrated.place)
    assert not np.array_equal(one.calibrated.place, other.calibrated.place)


@pytest.mark.parametrize(
    ("estimator", "data", "n_folds", "steps"),
    [
        (GibbsRegressor(strategy="bayes"), line(), 5, 5),
        (GibbsRegressor(strategy="bayes"), line(), 7, 7),
        (GibbsRegressor(strategy="bayes"), line(4), 5, 4),
        (GibbsClassifier(posterior="laplace", strategy="bayes"), classes(), 5, 5),
        (
            GibbsClassifier(posterior="laplace", strategy="bayes"),
            (classes(20)[0], np.repeat(["a", "rare"], [17, 3])),
            5,
            3,
        ),
    ],
    ids=["five", "seven", "few rows", "classes", "a rare class"],
)
def test_a_step_is_counted_after_every_fold(estimator, data, n_folds, steps):
    counted = []
    hold_out(estimator, *data, n_folds=n_folds, step=lambda: counted.append(1))
    assert len(counted) == steps
    assert not hasattr(estimator, "calibration_")


def test_every_fold_has_every_class():
    """Two classes in order, of which one is rare: plain folds would miss it."""
    X = classes(40)[0]
    y = np.repeat(["common", "rare"], [36, 4])
    held = hold_out(GibbsClassifier(posterior="laplace", strategy="bayes"), X, y, n_folds=4, seed=0)
    splits = list(StratifiedKFold(4, shuffle=True, random_state=0).split(X, y))
    assert all(np.sum(y[test] == "rare") == 1 for _, test in splits)
    same(held, naive(GibbsClassifier(posterior="laplace", strategy="bayes"), X, y, splits))


@pytest.mark.parametrize(("label", "shown"), [("rare", "'rare'"), (9, "9")])
def test_a_class_of_one_row_is_refused(label, shown):
    X, y = classes(labels=("a", "b") if label == "rare" else (1, 2))
    y = y.astype(object)
    y[4] = label
    y = y.astype(str if label == "rare" else int)
    with pytest.raises(ValueError) as error:
        hold_out(GibbsClassifier(posterior="laplace"), X, y)
    assert str(error.value) == (
        f"y must hold every class at least twice to hold rows out, got 1 row of {shown}"
    )


class TestWeights:
    def test_of_one_are_none(self):
        X, y = line()
        ours = hold_out(GibbsRegressor(random_state=0), X, y, np.ones(30))
        theirs = hold_out(GibbsRegressor(random_state=0), X, y)
        np.testing.assert_array_equal(ours.gains, theirs.gains)
        assert ours.mean(ours.gains) == theirs.mean(theirs.gains)

    def test_weigh_the_mean_like_copies(self):
        held = hold_out(GibbsRegressor(random_state=0), *line(), WEIGHTS[:30])
        copies = np.repeat(held.gains, WEIGHTS[:30].astype(int))
        mean, error = held.mean(held.gains)
        assert mean == pytest.approx(copies.mean(), rel=1e-12)
        assert error == pytest.approx(stats.sem(copies), rel=1e-12)

    @pytest.mark.parametrize("labels", [None, ("no", "yes"), THREE])
    @pytest.mark.slow
    def test_of_zero_have_no_part(self, labels):
        """Their rows are forecast, but neither train nor count, and need no class in common."""
        if labels is None:
            estimator, (X, y) = GibbsRegressor(random_state=0), line(36)
            strange = np.array([1e3, -1e3, 0.0])
        else:
            estimator = GibbsClassifier(posterior="laplace", random_state=0)
            X, y = classes(labels=labels)
            strange = np.array(["a", "zz", labels[0]])
        ours = hold_out(estimator, X, y, WEIGHTS)
        X_more = np.vstack([X[:5], np.ones((3, 2)), X[5:]])
        y_more = np.concatenate([y[:5], strange, y[5:]])
        idle = slice(5, 8)
        weights = np.concatenate([WEIGHTS[:5], np.zeros(3), WEIGHTS[5:]])
        theirs = hold_out(estimator, X_more, y_more, weights)
        close = {"rtol": 1e-8, "atol": 1e-10}
        np.testing.assert_allclose(np.delete(theirs.gains, idle), ours.gains, **close)
        scores = theirs.calibrated.log_score
        np.testing.assert_allclose(np.delete(scores, idle), ours.calibrated.log_score, **close)
        assert theirs.mean(scores) == pytest.approx(ours.mean(ours.calibrated.log_score), rel=1e-8)
        if labels is not None:
            assert list(np.isneginf(scores[idle])) == [True, True, False]


class TestForecasts:
    def test_at_another_beta(self):
        X, y = line()
        fitted = GibbsRegressor().fit(X, y)
        law = fitted.forecast(X, beta=0.3)
        at = forecasts(fitted, X, y, beta=0.3)
        np.testing.assert_array_equal(at.log_score, law.log_density(y))
        np.testing.assert_array_equal(at.place, law.cdf(y))
        assert not np.array_equal(at.log_score, forecasts(fitted, X, y).log_score)

    def test_of_one_class_only(self):
        """The rows that are forecast need not show all classes that were learnt."""
        X, y = classes(labels=THREE)
        fitted = GibbsClassifier(posterior="laplace", random_state=0).fit(X, y)
        rows = np.flatnonzero(y == "middle")
        found = forecasts(fitted, X[rows], y[rows])
        np.testing.assert_array_equal(found.log_score, fitted.predict_log_proba(X[rows])[:, 2])


@pytest.mark.parametrize("level", [0.1, 0.5, 0.95])
def test_coverage_is_whether_a_response_lies_in_its_central_interval(level):
    X, y = line(200)
    fitted = GibbsRegressor(strategy="bayes").fit(X, y)
    low, high = fitted.predict_interval(X, level).T
    inside = coverage(forecasts(fitted, X, y).place, level)
    np.testing.assert_array_equal(inside, ((low <= y) & (y <= high)).astype(float))
    assert 0 < inside.mean() < 1


def simulated(noise_variance, n_data_sets=60, n=40):
    """Shares of responses inside Bayes' 95 % intervals, one for each data set of the model."""
    random = np.random.default_rng(11)
    model = GibbsRegressor(
        noise_variance=noise_variance, strategy="bayes", standardize=False, prior_scale=1.0
    )
    shares = []
    for _ in range(n_data_sets):
        X = random.normal(size=(n, 2))
        theta = random.normal(size=3)  # the prior of standard deviation 1
        y = theta[0] + X @ theta[1:] + random.normal(size=n)
        shares.append(coverage(hold_out(model, X, y).bayes.place, 0.95).mean())
    return np.array(shares)


@pytest.mark.slow
def test_intervals_of_the_true_model_keep_their_word():
    shares = simulated(1.0)
    error = stats.sem(shares)
    assert error < 0.01
    assert abs(shares.mean() - 0.95) < 4 * error


@pytest.mark.slow
def test_intervals_of_a_model_that_is_too_sure_do_not():
    shares = simulated(0.1)
    assert shares.mean() < 0.95 - 20 * stats.sem(shares)


def test_copies_are_not_tested_by_each_other():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((40, 12)), rng.standard_normal(40)
    model = GibbsRegressor(noise_variance=2.0, strategy="bayes", prior_scale=1.0)
    copies = np.repeat(X, 5, axis=0), np.repeat(y, 5)
    together = hold_out(model, *copies)
    weighted = hold_out(model, X, y, np.full(40, 5.0))
    one, other = (held.mean(held.bayes.log_score)[0] for held in (weighted, together))
    assert one == pytest.approx(other, abs=0.12)  # the folds are not the same
    # Negative control: rows that differ by next to nothing are not seen as copies, and help.
    apart = hold_out(model, copies[0] + 1e-9 * rng.random((200, 12)), copies[1])
    assert apart.mean(apart.bayes.log_score)[0] > max(one, other) + 0.12
