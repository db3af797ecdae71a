"""Every shortcut gives the numbers of the plain path, through what production runs."""

import numpy as np
import pytest
from temperance.models.linear import fast, gaussian, normal_inverse_gamma
from temperance.models.linear.fast import deletion_sums

from temperance import calibrate, models, strategies
from temperance.checks import as_data

MODELS = {
    "known variance": models.GaussianLinear(0.7, prior_mean=0.2, prior_cov=3.0),
    "unknown variance": models.NormalInverseGammaLinear(a=1.5, b=0.8),
}
STRATEGIES = {
    "k-fold": strategies.KFold(4),
    "k-fold, alpha": strategies.KFold(4, transfer="alpha"),
    "torn rows": strategies.KFold(3, duplicates="apart"),
    "leave-one-out": strategies.LeaveOneOut(),
    "leave-one-out, alpha": strategies.LeaveOneOut(transfer="alpha"),
    "split": strategies.SampleSplitting(),
    "split, alpha": strategies.SampleSplitting(transfer="alpha"),
    "safe-bayes": strategies.SafeBayes(),
    "safe-bayes, alpha": strategies.SafeBayes(transfer="alpha"),
    "bootstrap": strategies.Bootstrap(n_draws=5),
    "naive": strategies.Naive(),
}
SHAPES = {"tall": (60, 4), "square": (14, 14), "wide": (9, 20)}
BETAS = np.array([0.0, 1e-6, 1e-2, 0.4, 1.0, 3.0, 50.0])


def problem(shape, weighted):
    n, d = SHAPES[shape]
    rng = np.random.default_rng([n, d])
    X = rng.normal(size=(n, d)) * np.geomspace(0.3, 3.0, d)
    y = X @ rng.normal(size=d) / np.sqrt(d) + rng.normal(size=n)
    return as_data(X, y, rng.integers(1, 4, n).astype(float) if weighted else None)


def without_shortcuts(monkeypatch):
    for module in (gaussian, normal_inverse_gamma):
        monkeypatch.setattr(module, "choose", lambda *problem: None)


def curve_of(model, strategy, data, risk):
    rows, plan = strategy.planned(data, np.random.default_rng(1))
    return model.risk_curve(rows, plan, risk)


@pytest.mark.usefixtures("shortcuts")
@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize("weighted", [False, True], ids=["once", "weights"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_shortcuts_give_the_numbers_of_the_plain_path(
    strategy, model, shape, weighted, risk, monkeypatch
):
    monkeypatch.setattr(deletion_sums, "LARGE_PROBLEM", 0)
    data = problem(shape, weighted)
    task = MODELS[model], STRATEGIES[strategy], data, risk
    quick = curve_of(*task)
    value, slope = quick.evaluate(BETAS)
    losses, weights = quick.rows(0.4)
    without_shortcuts(monkeypatch)
    plain = curve_of(*task)
    expected, d_expected = plain.evaluate(BETAS)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    np.testing.assert_allclose(slope, d_expected, rtol=1e-7, atol=1e-9 * np.abs(d_expected).max())
    np.testing.assert_allclose(losses, plain.rows(0.4)[0], rtol=1e-9)
    np.testing.assert_allclose(weights, plain.rows(0.4)[1], rtol=1e-12)


@pytest.mark.parametrize("name", ["k-fold", "leave-one-out", "split", "safe-bayes"])
@pytest.mark.parametrize("model", MODELS)
def test_choices_are_those_of_the_plain_path(model, name, shortcuts, monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 5))
    y = X @ rng.normal(size=5) + 3 * rng.standard_t(3, size=300)
    task = dict(strategy=STRATEGIES[name], bounds=(0.0, 10.0), seed=1)
    quick = calibrate(MODELS[model], X, y, **task)
    without_shortcuts(monkeypatch)
    plain = calibrate(MODELS[model], X, y, **task)
    assert abs(quick.beta - plain.beta) <= 1e-6 * max(plain.beta, 1e-3)


def test_small_problems_take_the_plain_path(monkeypatch):
    data = problem("tall", False)
    called = []
    monkeypatch.setattr(
        gaussian, "plain_curve", lambda *task: called.append(task) or fast.choose(*task)
    )
    curve_of(MODELS["known variance"], strategies.KFold(4), data, "gibbs")
    assert len(called) == 1


@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize("name", ["k-fold", "leave-one-out"])
def test_gram_matrices_make_way_for_rows_where_they_lose_digits(name, risk, shortcuts, monkeypatch):
    """Columns whose Gram matrix has a condition number of 1e10."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[:, 2] = X[:, 1] + 1e-5 * X[:, 2]
    data = as_data(X, X @ [1.0, 2.0, 3.0] + rng.normal(size=200))
    model = models.GaussianLinear(1.0, prior_cov=1e6)
    value, _ = curve_of(model, STRATEGIES[name], data, risk).evaluate(BETAS[1:])
    without_shortcuts(monkeypatch)
    expected, _ = curve_of(model, STRATEGIES[name], data, risk).evaluate(BETAS[1:])
    np.testing.assert_allclose(value, expected, rtol=1e-10)
