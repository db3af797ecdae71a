"""What a result says, and that it is true."""

from __future__ import annotations

import pickle
import sys
import warnings
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from scenarios import MODELS, data_for
from threadpoolctl import threadpool_info, threadpool_limits

from temperance import Calibration, calibrate, expected_risk, losses, models, strategies
from temperance import data as threads
from temperance.messages import BoundWarning, FlatCurveWarning
from temperance.rules import BetaWeights, Choice, Gain
from temperance.table import mean_and_error

matplotlib.use("Agg")

rng = np.random.default_rng(0)
N, D = 23, 12
X = rng.standard_normal((N, D))
y = X[:, 0] + 2 * rng.standard_normal(N)
WEIGHTS = rng.uniform(0.5, 2.0, N)
MODEL = models.GaussianLinear(noise_variance=0.5, prior_mean=0.1, prior_cov=2.0)


def calibrated(strategy="k-fold", **options) -> Calibration:
    return calibrate(MODEL, X, y, strategy, **{"risk": "gibbs"} | options)


def summary(calibration):
    return [
        calibration.beta,
        calibration.risk,
        calibration.standard_error,
        calibration.bayes_risk,
        calibration.gain_standard_error,
    ]


def away(row):
    """All rows but one, and that one."""
    kept = np.arange(N) != row
    return (X[kept], y[kept]), (X[~kept], y[~kept])


def left_out_losses(beta, risk="gibbs"):
    """Leave-one-out losses with one fit per row."""
    return np.array([expected_risk(MODEL, *away(i), beta * (N - 1), risk=risk) for i in range(N)])


def test_the_choice_lies_inside_in_these_tests():
    calibration = calibrated()
    assert 0.01 < calibration.beta < 1
    assert not (calibration.at_bound or calibration.flat)


@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
def test_errors_are_those_of_a_mean_over_rows(risk):
    calibration = calibrated("leave-one-out", risk=risk)
    losses, bayes = (left_out_losses(beta, risk) for beta in (calibration.beta, 1.0))
    assert calibration.risk == pytest.approx(losses.mean())
    error = losses.std(ddof=1) / np.sqrt(N)
    assert calibration.standard_error == pytest.approx(error)
    assert calibration.bayes_risk == pytest.approx(bayes.mean())
    assert calibration.gain == pytest.approx((bayes - losses).mean())
    paired = (bayes - losses).std(ddof=1) / np.sqrt(N)
    assert calibration.gain_standard_error == pytest.approx(paired)
    apart = np.hypot(bayes.std(ddof=1), losses.std(ddof=1)) / np.sqrt(N)
    assert abs(paired - apart) > 0.02 * apart


def test_one_observation_has_no_error():
    loss, weights = np.array([3.0, 5.0]), np.array([1.0, 1.0])
    mean, error = mean_and_error(loss, np.array([1.0, 0.0]), weights)
    assert mean == 3.0 and np.isnan(error)
    assert mean_and_error(loss, weights, weights) == (4.0, 1.0)
    mean, error = mean_and_error(loss[:1], weights[:1], np.array([5e-324]))
    assert mean == 3.0 and np.isnan(error)


def test_the_curve_averages_rows_not_folds():
    calibration = calibrated(strategies.KFold(5), weights=WEIGHTS)
    _, plan = calibration.strategy.planned(calibration.data, np.random.default_rng(0))
    plan = plan.pairs()
    assert len(np.unique((plan.test > 0).sum(axis=1))) > 1
    folds = [
        expected_risk(MODEL, (X, y, train), (X, y, test), 0.4 * train.sum(), risk="gibbs")
        for train, test in zip(plan.train, plan.test, strict=True)
    ]
    by_rows = np.average(folds, weights=plan.test.sum(axis=1))
    assert calibration.curve(0.4) == pytest.approx(by_rows)
    assert abs(np.mean(folds) - by_rows) > 1e-4


def test_the_curve_takes_numbers_and_arrays():
    curve = calibrated().curve
    betas = np.array([[0.0, 0.3, 1.0], [2.0, 3.0, 10.0]])
    values, slopes = curve(betas, derivative=True)
    assert values.shape == slopes.shape == (2, 3)
    np.testing.assert_array_equal(values, curve(betas))
    for at, value, slope in zip(betas.flat, values.flat, slopes.flat, strict=True):
        assert np.ndim(curve(at)) == 0
        assert (value, slope) == pytest.approx(curve(float(at), derivative=True), rel=1e-12)
    step = 1e-5
    np.testing.assert_allclose(
        slopes[1], (curve(betas[1] + step) - curve(betas[1] - step)) / (2 * step), rtol=1e-5
    )


@pytest.mark.parametrize("strategy", ["k-fold", "leave-one-out", "bootstrap", "safe-bayes"])
def test_the_choice_is_the_lowest_point_of_its_curve(strategy):
    calibration = calibrated(strategy, weights=WEIGHTS)
    assert calibration.risk == pytest.approx(calibration.curve(calibration.beta))
    assert calibration.bayes_risk == pytest.approx(calibration.curve(1.0))
    assert calibration.risk <= calibration.curve(np.linspace(0, 3, 301)).min() + 1e-12
    _, slope = calibration.curve(calibration.beta, derivative=True)
    assert abs(slope) < 1e-5


def test_the_posterior_is_that_of_all_data():
    calibration = calibrated(weights=WEIGHTS)
    assert calibration.alpha == pytest.approx(calibration.beta * WEIGHTS.sum())
    precision = np.eye(D) / 2.0 + calibration.beta * (X.T * WEIGHTS) @ X / 0.5
    shift = 0.1 / 2.0 + calibration.beta * X.T @ (WEIGHTS * y) / 0.5
    np.testing.assert_allclose(calibration.posterior.mean, np.linalg.solve(precision, shift))
    np.testing.assert_allclose(calibration.posterior.cov, np.linalg.inv(precision))
    assert calibration.posterior is calibration.posterior


@pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
@pytest.mark.parametrize(
    "model, options, expected",
    [
        (MODEL, {"risk": "gibbs"}, strategies.ReferenceRisk()),
        (models.Polynomial(1), {"risk": "gibbs"}, strategies.ReferenceRisk()),
        (MODEL, {}, strategies.Stacking()),
        (models.GaussianMean(), {}, strategies.Stacking()),
        (models.NormalInverseGammaLinear(), {"risk": "gibbs"}, strategies.ReferenceRisk()),
        (models.NormalInverseGammaLinear(), {}, strategies.Stacking()),
        (models.LaplaceLogistic(), {"risk": "gibbs"}, strategies.KFold(10, "beta")),
        (models.LaplaceLogistic(), {}, strategies.Stacking(strategies.KFold(10, "beta"))),
        (models.GibbsLinear(losses.Huber()), {}, strategies.KFold(10, "beta")),
    ],
    ids=[
        "known", "preset", "predictive", "mean", "unknown", "unknown, predictive",
        "logistic", "logistic, predictive", "no likelihood",
    ],
)  # fmt: skip
def test_the_default_is_what_was_measured_to_earn_it(model, options, expected):
    inputs = X[:, :1] if isinstance(model, models.Polynomial) else X
    inputs = None if isinstance(model, models.GaussianMean) else inputs
    response = (y > 0).astype(int) if isinstance(model, models.LaplaceLogistic) else y
    default = calibrate(model, inputs, response, **options)
    assert default.strategy == expected
    again = calibrate(model, inputs, response, expected, **options)
    assert summary(default) == pytest.approx(summary(again), rel=0, abs=0, nan_ok=True)


@pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
def test_few_rows_take_as_many_folds_as_there_are():
    labels = (y > 0).astype(int)
    for risk, source in (("gibbs", None), ("predictive", "source")):
        chosen = calibrate(models.LaplaceLogistic(), X[:6], labels[:6], risk=risk).strategy
        assert (getattr(chosen, source) if source else chosen) == strategies.KFold(6)


def test_holding_alpha_is_another_choice():
    assert summary(calibrated()) != summary(calibrated(strategies.KFold(10, "alpha")))


@pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
@pytest.mark.parametrize("name", strategies.NAMES)
def test_a_name_is_as_good_as_an_instance(name):
    options = {"risk": "predictive"} if name == "stacking" else {}
    named, instance = (calibrated(each, **options) for each in (name, strategies.NAMES[name]()))
    assert named.strategy == instance.strategy
    assert summary(named) == summary(instance)


def test_the_same_seed_gives_the_same_result():
    first, again, generator, other = (
        calibrated(risk="predictive", seed=seed) for seed in (3, 3, np.random.default_rng(3), 4)
    )
    assert summary(first) == summary(again) == summary(generator) != summary(other)


def test_bayes_is_bayes():
    calibration = calibrated("bayes")
    assert (calibration.beta, calibration.alpha, calibration.gain) == (1.0, N, 0.0)
    # At the end of the bounds it is a choice, not a bound that was hit.
    assert not calibrated("bayes", bounds=(0, 1)).at_bound


NINE = (np.ones((30, 1)), np.full(30, 9.0))
LESS = strategies.Oracle(np.ones((5, 1)), np.full(5, -9.0))  # worse to learn 9 than to stay at 0
BOUNDS = {
    "upper": (
        (*NINE, "naive", (0, 0.1), "predictive"),
        0.1,
        "the estimated predictive risk is smallest at the upper bound beta = 0.1; widen bounds to "
        "see whether it falls further, or check whether the noise variance is too large or the "
        "prior too tight",
        "at the upper bound of [0, 0.1]: the risk may be lower beyond it",
    ),
    "lower": (
        (*NINE, LESS, (0.5, 3), "gibbs"),
        0.5,
        "the estimated risk is smallest at the lower bound beta = 0.5; widen bounds to see whether "
        "it falls further",
        "at the lower bound of [0.5, 3]: the risk may be lower beyond it",
    ),
    "zero": (
        (*NINE, LESS, (0, 3), "gibbs"),
        0.0,
        "the estimated risk is smallest at beta = 0: the prior predicts better than anything "
        "learnt from the data; check the model and its prior",
        "at the lower bound of [0, 3]: the prior alone predicts best",
    ),
}


@pytest.mark.parametrize(
    "model, y, suspects",
    [
        (
            models.GaussianLinear(),
            NINE[1],
            "the noise variance is too large or the prior too tight",
        ),
        (models.LaplaceLogistic(), np.repeat([1.0, 0.0], [28, 2]), "the prior is too tight"),
    ],
)
def test_only_what_a_model_has_is_suspected_at_the_upper_bound(model, y, suspects):
    with pytest.warns(BoundWarning) as caught:
        calibrate(model, NINE[0], y, "naive", bounds=(0, 0.1), risk="predictive")
    (message,) = [str(each.message) for each in caught]
    assert message.endswith(f"whether it falls further, or check whether {suspects}")


@pytest.mark.parametrize("case, beta, warning, words", BOUNDS.values(), ids=BOUNDS)
def test_a_choice_at_a_bound_is_told(case, beta, warning, words):
    *data, bounds, risk = case
    with pytest.warns() as caught:
        calibration = calibrate(models.GaussianLinear(), *data, bounds=bounds, risk=risk)
    assert [(each.category, str(each.message)) for each in caught] == [(BoundWarning, warning)]
    assert caught[0].filename == __file__
    assert (calibration.beta, calibration.at_bound) == (beta, True)
    assert f"  minimum   {words}\n" in repr(calibration)


def test_the_upper_bound_of_the_gibbs_risk_is_a_convention():
    """It favours narrow posteriors and mostly falls, so there is nothing to warn of."""
    calibration = calibrated("naive", bounds=(0, 2.5))
    assert (calibration.beta, calibration.at_bound) == (2.5, True)
    words = "at the upper bound of [0, 2.5]: the risk may be lower beyond it"
    assert f"  minimum   {words}\n" in repr(calibration)


@pytest.mark.parametrize("bounds, closest", [((0, 3), 1.0), ((2, 5), 2.0)])
def test_a_flat_curve_is_told(bounds, closest):
    with pytest.warns() as caught:
        calibration = calibrate(
            models.GaussianLinear(), np.zeros((N, 1)), y, "k-fold", bounds=bounds
        )
    (warning,) = caught
    assert warning.category is FlatCurveWarning and warning.filename == __file__
    assert str(warning.message) == (
        "the estimated risk does not depend on beta; the data say nothing about it, keep Bayes "
        "(beta = 1) or use more data"
    )
    assert (calibration.beta, calibration.flat, calibration.at_bound) == (closest, True, False)
    assert "nowhere: the curve is flat; this is the point closest to Bayes" in repr(calibration)


def test_a_fixed_choice_speaks_of_no_minimum():
    assert "  minimum   not sought: beta is given\n" in repr(calibrated("bayes"))


def told(calibration, choice=None, **known):
    """The same calibration with other numbers in what it prints."""
    told = replace(calibration, choice=choice or calibration.choice)
    vars(told).update(known)
    return told


def test_the_result_answers_in_words():
    calibration = told(
        calibrated(weights=WEIGHTS * 25 / WEIGHTS.sum()),
        Choice(0.123456),
        _risk=(1.234567, 0.0456),
        _gain=Gain(0.265433, 0.00789),
        bayes_risk=1.5,
        beta_range=(0.01, 2.0),
    )
    lines = [
        "Calibration of GaussianLinear by KFold(n_folds=10, transfer='beta', duplicates='auto')",
        "  gain      0.2654 ± 0.0079 over Bayes: temper",
        "  beta      0.1235  (alpha = 3.086 for n = 25; Bayes is beta = 1)",
        "  range     0.01 to 2  (not told apart by the data)",
        "  risk      1.235 ± 0.046, Bayes 1.5  (gibbs)",
        "  minimum   inside the bounds [0, 3]",
        "  method    closed form",
    ]
    assert repr(calibration).splitlines() == lines
    few = told(calibration, **vars(calibration) | {"_gain": Gain(0.265433, 0.00789, True)})
    lines[1] = "  gain      0.2654 ± 0.0079 over Bayes, much of it from few rows: temper"
    assert repr(few).splitlines() == lines
    alone = told(calibration, **vars(calibration) | {"beta_range": (0.5, 0.5)})
    assert "  range     0.5 alone\n" in repr(alone)


def test_a_mixture_answers_in_words():
    weights = BetaWeights(np.array([0.1, 1.0]), np.array([0.5, 0.5]))
    calibration = told(
        calibrated("stacking", risk="predictive"),
        Choice(weights.median, searched=False, weights=weights),
        _risk=(1.234567, 0.0456),
        _gain=Gain(0.0054, 0.001),
        bayes_risk=1.24,
        beta_range=(0.1, 1.0),
    )
    assert repr(calibration).splitlines() == [
        "Calibration of GaussianLinear by Stacking(source=None)",
        "  gain      0.0054 ± 0.0010 over Bayes: keep Bayes",
        "  beta      0.3162  (alpha = 7.273 for n = 23; Bayes is beta = 1)",
        "  range     0.1 to 1  (single betas not told apart by the data)",
        "  risk      1.235 ± 0.046, Bayes 1.24  (predictive)",
        "  minimum   not sought: the posterior is a mixture over beta",
        "  method    closed form",
    ]


@pytest.mark.parametrize(
    "error, words",
    [
        (np.nan, "1234.6"),
        (0.0, "1234.5679 ± 0.0000"),
        (3.21, "1234.6 ± 3.2"),
        (4321.0, "1235 ± 4321"),
        (1e-9, "1234.567890 ± 0.000000"),
    ],
)
def test_digits_follow_the_error(error, words):
    calibration = told(calibrated(risk="predictive"), _risk=(1234.56789, error), bayes_risk=2.0)
    assert f"  risk      {words}, Bayes 2  (predictive)\n" in repr(calibration)


@pytest.mark.parametrize(
    "mean, error, verdict", [(0.02, 0.01, "temper"), (0.02, 0.016, "keep"), (0.004, 0.0, "keep")]
)
def test_a_gain_must_be_worth_it(mean, error, verdict):
    assert told(calibrated(), _gain=Gain(mean, error)).verdict == verdict


@pytest.fixture
def pyplot():
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_the_plot_marks_the_choice_and_bayes(pyplot):
    calibration = calibrated(risk="predictive")
    axes = calibration.plot()
    assert isinstance(axes, matplotlib.axes.Axes)
    assert "predictive" in axes.get_ylabel()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert any("Bayes" in label for label in labels)
    assert any(f"{calibration.beta:.3g}" in label for label in labels)
    drawn = np.concatenate([line.get_xydata() for line in axes.lines])
    for point in [(calibration.beta, calibration.risk), (1.0, calibration.bayes_risk)]:
        assert np.abs(drawn - point).max(axis=1).min() < 1e-9
    axes.figure.canvas.draw()


def test_the_plot_goes_where_it_is_told(pyplot):
    figure, axes = pyplot.subplots()
    assert calibrated("leave-one-out").plot(ax=axes) is axes
    assert pyplot.get_fignums() == [figure.number]


@pytest.mark.parametrize("missing", ["matplotlib", "matplotlib.pyplot"])
def test_a_plot_without_matplotlib_says_what_to_install(monkeypatch, missing):
    calibration = calibrated()
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=r"^plots need matplotlib: pip install 'temperance\[plot"):
        calibration.plot()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("strategy", ["k-fold", "leave-one-out", "safe-bayes"])
def test_results_travel_between_processes(name, strategy):
    """Pickled in memory, as joblib does; no file of ours is ever a pickle."""
    data = data_for(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundWarning)
        sent = calibrate(MODELS[name], data.X, data.y, strategy, risk="gibbs")
    received = pickle.loads(pickle.dumps(sent))
    assert received.curve(0.3) == pytest.approx(sent.curve(0.3), rel=1e-12)
    np.testing.assert_allclose(received.posterior.mean, sent.posterior.mean, rtol=1e-12)


def test_small_problems_use_one_thread_of_blas(monkeypatch):
    limits = []

    class Watched(strategies.Naive):
        def plan(self, data, rng):
            limits.extend(pool["num_threads"] for pool in blas_pools())
            return super().plan(data, rng)

    with threadpool_limits(2, user_api="blas"):
        before = [pool["num_threads"] for pool in blas_pools()]
        calibrate(MODEL, X, y, Watched(), risk="gibbs")
        assert [pool["num_threads"] for pool in blas_pools()] == before
        assert set(limits) == {1}
        monkeypatch.setattr(threads, "LARGE", 10)
        limits.clear()
        calibrate(MODEL, X, y, Watched(), risk="gibbs")
        assert limits == before


def test_nothing_is_limited_where_blas_has_one_thread(monkeypatch):
    monkeypatch.setattr("threadpoolctl.ThreadpoolController.limit", None)
    with threadpool_limits(1, user_api="blas"), threads.threads_for(0):
        assert {pool["num_threads"] for pool in blas_pools()} == {1}


def blas_pools():
    return [pool for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_standard_error_of_rows_that_are_tested_unequally_often():
    """Share p_i with variance s^2 each: the mean has variance s^2 sum p_i^2."""
    rng = np.random.default_rng(0)
    share = rng.integers(1, 6, 400).astype(float)
    losses = rng.standard_normal((2000, 400))
    estimates = [mean_and_error(loss, share, np.ones(400)) for loss in losses]
    means, errors = np.array(estimates).T
    assert np.mean(errors) == pytest.approx(means.std(), rel=0.05)
