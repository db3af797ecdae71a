"""The benchmark runs, its references are right, and its page says what was stored.

Nothing here depends on time.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import coverage, problems, safe_bayes  # noqa: E402
from benchmarks.page import duration, page, ratio, table  # noqa: E402
from benchmarks.record import Record, Results  # noqa: E402
from benchmarks.timing import compare, seconds  # noqa: E402
from temperance import GibbsRegressor, calibrate, models  # noqa: E402
from temperance_studies.settings import COVERAGE  # noqa: E402
from temperance_studies.study.coverage import credible_level  # noqa: E402


@pytest.mark.slow
def test_the_benchmark_runs(tmp_path):
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--out", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    results = Results.read(tmp_path / "performance.json")
    assert results.command == "python -m benchmarks --quick"
    assert all(record.seconds > 0 for record in results.records)
    disk, _ = results.of("from disk")
    assert disk.numbers["largest relative difference of the curves"] < 1e-10
    assert (tmp_path / "performance.md").read_text() == page(results)
    assert (tmp_path / "performance-ratios.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_says_what_was_stored():
    results = Results.read(ROOT / "docs" / "performance.json")
    assert (ROOT / "docs" / "performance.md").read_text() == page(results)


def test_what_stands_beside_an_alternative_has_a_ratio():
    results = Results.read(ROOT / "docs" / "performance.json")
    for record in results.records:
        assert (results.ratio(record) is None) == (record.beside == "")


def test_stored_results_name_no_host_and_no_path():
    text = (ROOT / "docs" / "performance.json").read_text()
    assert os.uname().nodename not in text
    assert str(ROOT) not in text and "/home/" not in text and "/tmp/" not in text
    assert set(json.loads(text)) == {"command", "machine", "versions", "records"}


def test_a_table_has_works_by_sizes_and_alternatives_last():
    records = [
        Record("linear", "10-fold", "9 × 3", 2.0, "other"),
        Record("linear", "leave-one-out", "9 × 3", 0.1, "another"),
        Record("linear", "other", "9 × 3", 1.0),
        Record("linear", "another", "9 × 3", 2.0),
        Record("linear", "10-fold", "99 × 3", 0.03, "other"),
        Record("linear", "other", "99 × 3", 0.1),
        Record("logistic", "other", "9 × 3", 7.0),
    ]
    assert table(Results("", {}, {}, records), "linear").splitlines() == [
        "|  | 9 × 3 | 99 × 3 |",
        "| --- | --- | --- |",
        "| 10-fold | 2 s (2) | 30 ms (0.3) |",
        "| leave-one-out | 100 ms (1/20) |  |",
        "| *other* | 1 s | 100 ms |",
        "| *another* | 2 s |  |",
    ]


def test_numbers_in_words():
    assert [duration(each) for each in (2e-6, 0.012, 3.21, 75)] == [
        "0.002 ms",
        "12 ms",
        "3.2 s",
        "75 s",
    ]
    assert [ratio(each) for each in (123.4, 12.3, 0.5, 0.01)] == ["123", "12", "0.5", "1/100"]
    assert [problems.named(n, 3) for n in (1000, 20_000, 1_000_000, 12_345)] == [
        "1000 × 3",
        "2e4 × 3",
        "1e6 × 3",
        "12345 × 3",
    ]


@pytest.mark.parametrize(("budget", "times"), [(-1.0, 1), (float("inf"), 3)])
def test_calls_take_turns_within_a_budget(budget, times):
    called = []
    calls = {name: lambda name=name: called.append(name) for name in "ab"}
    assert set(seconds(calls, repeats=3, budget=budget)) == {"a", "b"}
    assert called == ["a", "b"] * times


def test_each_call_becomes_a_record():
    found = compare("s", "9 × 3", {"ours": (lambda: None, "theirs")}, {"theirs": lambda: None})
    assert [(each.work, each.beside) for each in found] == [("ours", "theirs"), ("theirs", "")]


def test_classes_are_drawn_by_the_logistic_model():
    X, y = problems.classification(20_000, 1, classes=3)
    assert set(y) == {0.0, 1.0, 2.0}
    # Log odds of two classes are linear in X without an intercept: they are even where X is small.
    counts = np.bincount(y[np.abs(X[:, 0]) < 0.1].astype(int))
    share, error = counts / counts.sum(), np.sqrt(2 / 9 / counts.sum())
    assert np.abs(share - 1 / 3).max() < 4 * error
    far = np.bincount(y[X[:, 0] > 1.5].astype(int), minlength=3)
    assert np.abs(far / far.sum() - 1 / 3).max() > 4 * error  # negative control


def test_the_plain_loop_is_safe_bayes():
    X, y = problems.regression(40, 3)
    found = calibrate(models.GaussianLinear(1.0), X, y, "safe-bayes", risk="gibbs")
    betas = np.array([0.1, 0.7, 2.0])
    naive = [safe_bayes.stepwise_risk(X, y, beta) for beta in betas]
    assert found.curve(betas) == pytest.approx(naive, rel=1e-10)
    assert safe_bayes.plain_loop(X, y) == pytest.approx(found.beta, abs=1e-4)


def test_coverage_of_estimators_is_measured_and_resumed(tmp_path):
    """An estimator at beta = 1 has the intervals of its coefficients, and the script says so."""
    store = str(tmp_path / "coverage.sqlite")
    fits = [coverage.Fit("bayes"), coverage.Fit(coverage.HC3)]
    few = coverage.estimators(["right", "t3"], [50], fits[:1], 3, store)
    more = coverage.estimators(["right", "t3"], [50], fits, 3, store)
    assert list(few["strategy"]) == ["bayes", "bayes"]
    assert list(more["setting"]) == ["right 50", "right 50", "t3 50", "t3 50"]
    same = more[more["strategy"] == "bayes"].reset_index(drop=True)
    assert few.equals(same)  # seconds too: nothing was computed again

    setting = COVERAGE["right"](50)
    X, y = setting.draw(np.random.default_rng([0, 50]))
    model = GibbsRegressor(target="coefficients", strategy="bayes").fit(X[:, 1:], y)
    found = coverage.fitted("right", setting, coverage.Fit("bayes"), X, y)
    low, high = model.coefficients().interval().T
    assert found.length == pytest.approx(np.mean(high - low))
    # The joint set does not change with the units of inputs and response.
    levels = []
    for units in (np.ones(4), np.array([1.0, 7.0, 0.1, 1.0])):
        other = GibbsRegressor(target="coefficients", strategy="bayes")
        other.fit((X * units)[:, 1:], 9 * y)
        theta = coverage._scaled(other, 9 * setting.parameter / units)
        levels.append(credible_level(other.calibration_.posterior, theta))
    assert levels[1] == pytest.approx(levels[0], rel=1e-6)
    assert found.joint == (levels[0] <= 0.95)
