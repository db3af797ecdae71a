"""Folds of many rows are solved exactly, and sketched by one fit of all rows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scenarios import LOGISTIC
from scipy import special
from temperance.models.glm.fast.fold_rows import fold_rows
from temperance.search.minimise import THOROUGH, minimise

from temperance import calibrate, models, strategies
from temperance.data import Data
from temperance.losses import Logistic
from temperance.models.glm import fast
from temperance.models.glm.fast import fold_sketch
from temperance.models.glm.model import Problem
from temperance.models.glm.rows import Rows
from temperance.plans import Folds
from temperance.strategies.selection import minimum_of

NAMES = ["jaakkola", "full", "laplace", "mean-field"]
BETAS = np.array([0.0, 1e-3, 0.02, 0.3, 1.0, 3.0])


@pytest.fixture(autouse=True)
def many_numbers(monkeypatch):
    """Take folds out by Newton steps where it does not pay yet."""
    monkeypatch.setattr(fast, "MANY_NUMBERS", 0)


def labelled(n, d=3, signal=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = (rng.random(n) < special.expit(signal * X[:, 0])).astype(float)
    return Data(X, y, rng.uniform(0.5, 1.5, n))


def uneven(data, transfer="beta", n_folds=4):
    fold = np.random.default_rng(1).integers(0, n_folds, len(data))
    fold[: len(data) // 7] = 2
    return Folds(data.weights, fold, n_folds, transfer)


def whitened(model, data):
    prior = model.prior(data.X.shape[1])
    return Rows(prior.whiten(data.X), data.X @ prior.mean, data.y, data.weights[None])


@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize("transfer", ["beta", "alpha"])
@pytest.mark.parametrize("name", NAMES)
def test_the_curve_is_that_of_explicit_pairs(name, transfer, risk):
    data = labelled(1000)
    plan = uneven(data, transfer)
    assert fast.many_in_folds(plan, 3)
    found = LOGISTIC[name].risk_curve(data, plan, risk)
    expected = LOGISTIC[name].risk_curve(data, plan.pairs(), risk)
    values, slopes = found(BETAS, derivative=True)
    expected_values, expected_slopes = expected(BETAS, derivative=True)
    np.testing.assert_allclose(values, expected_values, rtol=1e-10)
    np.testing.assert_allclose(slopes, expected_slopes, rtol=1e-6, atol=1e-9)
    for each, other in zip(found.rows(0.7), expected.rows(0.7), strict=True):
        np.testing.assert_allclose(each, other, rtol=1e-8)


@pytest.mark.parametrize("transfer", ["beta", "alpha"])
@pytest.mark.parametrize("name", NAMES)
def test_the_sketch_is_the_displayed_step(name, transfer):
    """From the fit of all rows under the mean of the training sets' weights, by dense sums."""
    model, data, beta = LOGISTIC[name], labelled(900), 0.4
    plan = uneven(data, transfer)
    rows = whitened(model, data)
    weights = plan.pairs().likelihood_weights
    sketch = fold_sketch.FoldSketch(fold_rows(rows, plan), model.approximation(Logistic()))
    found = sketch.at(beta).now
    approximation = model.approximation(Logistic())
    averaged = rows.weighted(weights.mean(axis=0)[None])
    u, root = model.gaussian(Problem(averaged, approximation, None, model.prior(3)))(beta)
    is_diagonal = approximation.diagonal
    variance = ((rows.Z @ (np.diag(root) if is_diagonal else root)) ** 2).sum(axis=1)
    force = approximation.forces(rows.offset + rows.Z @ u, variance, rows.y)
    for k, w in enumerate(weights):
        hessian = np.eye(3) + beta * (rows.Z.T * (w * force.hessian)) @ rows.Z
        pull = rows.Z.T @ (w * force.pull)
        mean = u - np.linalg.solve(hessian, u + beta * pull)
        curvature = (rows.Z.T * (w * force.curvature)) @ rows.Z
        # The fit of all rows is itself rough.
        np.testing.assert_allclose(found.mean[k], mean, atol=2e-4)
        diagonal = np.diagonal(curvature) if is_diagonal else curvature
        np.testing.assert_allclose(found.curvature[k], diagonal, rtol=1e-3, atol=0.05)


@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize("name", NAMES)
def test_the_sketchs_slopes_are_its_own(name, risk):
    data = labelled(900)
    sketch = LOGISTIC[name].risk_curve(data, uneven(data), risk).sketch
    for beta in (2e-3, 0.05, 0.6, 2.0):
        step = 0.02 * beta
        values, slopes = sketch(np.array([beta - step, beta, beta + step]))
        rise = (values[2] - values[0]) / (2 * step)
        assert slopes[1] * beta == pytest.approx(rise * beta, rel=0.03, abs=3e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_sketchs_error_falls_like_one_over_n(name):
    def error(n):
        data = labelled(n, d=4)
        curve = LOGISTIC_OF_FOUR[name].risk_curve(data, uneven(data))
        betas = np.array([0.1, 1.0, 3.0])
        return np.abs(curve.sketch(betas)[0] - curve(betas)).max()

    few, many = error(800), error(12_800)
    assert many < 2e-5 and many < few / 6


LOGISTIC_OF_FOUR = {
    "jaakkola": models.JaakkolaLogistic(prior_cov=4.0),
    "full": models.FullCovarianceLogistic(prior_cov=4.0),
    "laplace": models.LaplaceLogistic(prior_cov=4.0),
    "mean-field": models.MeanFieldLogistic(prior_cov=4.0),
}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.slow
def test_the_minimum_is_found_where_labels_are_nearly_noise(seed):
    """Heights are of the order of the sketch's error there."""
    rng = np.random.default_rng(seed)
    data = labelled(600 + 100 * seed, 2 + seed % 4, signal=0.2 * (seed % 2), seed=seed)
    model = LOGISTIC_OF_FOUR[NAMES[seed % 4]]
    rows, plan = strategies.KFold(5).planned(data, rng)
    curve = model.risk_curve(rows, plan, "predictive")
    found = minimum_of(curve, (0.0, 3.0))
    exact = model.risk_curve(rows, plan, "predictive")
    best = minimise(exact.evaluate, exact.ruler((0.0, 3.0)), search=THOROUGH)
    span = np.ptp(exact(np.array([1e-4, 1e-3, 1e-2, 0.1, 0.4, best.beta])))
    assert exact(found.beta) - exact(best.beta) < 1e-6 * span


@pytest.mark.parametrize("name", NAMES)
def test_folds_take_few_newton_steps_from_the_sketch(name, monkeypatch):
    data = labelled(4000)
    even = Folds(data.weights, np.arange(4000) % 4, 4)
    curve = LOGISTIC[name].risk_curve(data, even)
    kind = type(LOGISTIC[name].approximation(Logistic()).system(whitened(LOGISTIC[name], data)))
    steps = []
    newton = kind.newton
    monkeypatch.setattr(
        kind,
        "newton",
        lambda self, x, beta: steps.append(len(self.rows.y)) or newton(self, x, beta),
    )
    curve.sketch(BETAS)
    assert set(steps) == {4000}  # all rows at once, never a fold's training set
    steps.clear()
    curve(1.0)
    assert 4 <= sum(size < 4000 for size in steps) <= 4 * 3


def test_training_sets_are_views():
    data = labelled(1000)
    rows = fold_rows(whitened(LOGISTIC["laplace"], data), plan := uneven(data))
    for fold in range(plan.n_folds):
        outside = rows.outside(fold)
        assert np.shares_memory(outside.Z, rows.twice.Z)
        assert np.shares_memory(outside.squares, rows.twice.squares)
        kept = np.flatnonzero(plan.fold != fold)
        assert sorted(outside.Z[:, 0]) == sorted(whitened(LOGISTIC["laplace"], data).Z[kept, 0])


@pytest.mark.parametrize(
    "n, columns, n_folds, start, many",
    [
        (5000, 10, 4, 0, True),
        (4999, 10, 4, 0, False),
        (5000, 10, 2, 0, False),
        (5000, 10, 2, 1, False),
        (5000, 10, 50, 0, True),
        (5000, 10, 51, 0, False),
        (900, 100, 4, 0, True),
        (700, 100, 4, 0, False),  # training sets have fewer than six rows for each column
    ],
)
def test_few_rows_or_folds_are_fitted_one_by_one(n, columns, n_folds, start, many, monkeypatch):
    monkeypatch.setattr(fast, "MANY_NUMBERS", 50_000)
    plan = Folds(np.ones(n), np.arange(n) % n_folds, n_folds, start=start)
    assert fast.many_in_folds(plan, columns) == many


def test_a_calibration_can_be_sent_to_other_processes():
    data = labelled(1000)
    found = calibrate(models.LaplaceLogistic(), data.X, data.y, "k-fold", risk="predictive")
    again = pickle.loads(pickle.dumps(found))
    assert again.curve(0.3) == pytest.approx(found.curve(0.3), rel=1e-10)
    assert again.bayes_risk == pytest.approx(found.bayes_risk, rel=1e-10)


def test_the_sketch_forgets_old_betas(monkeypatch):
    data = labelled(1000)
    model = LOGISTIC["laplace"]
    sketch = fold_sketch.FoldSketch(
        fold_rows(whitened(model, data), uneven(data)), model.approximation(Logistic())
    )
    first = sketch.at(0.1)
    assert sketch.at(0.1) is first
    monkeypatch.setattr(fold_sketch, "MOST_REMEMBERED", 2 * first.now.curvature.size * 3)
    for beta in (0.2, 0.3):
        sketch.at(beta)
    assert sketch.at(0.1) is first
    sketch.at(0.4)
    assert sketch.at(0.1) is not first
