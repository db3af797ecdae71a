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
from scenarios import gaussian_data

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import problems, safe_bayes, thesis_method  # noqa: E402
from benchmarks.growth import slope  # noqa: E402
from benchmarks.page import duration, page, ratio  # noqa: E402
from benchmarks.record import Record, Results  # noqa: E402
from temperance import expected_risk, models  # noqa: E402
from temperance.types import Data, PrefixPlan  # noqa: E402


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
    sections = {record.section for record in results.records}
    assert sections >= {"linear", "safe-bayes", "thesis", "growth in rows", "threads", "from disk"}
    assert all(record.ours > 0 for record in results.records)
    (disk,) = results.of("from disk")
    assert disk.numbers["largest relative difference of the curves"] < 1e-10
    assert (tmp_path / "performance.md").read_text() == page(results)
    for name in ("performance-ratios.png", "performance-growth.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_the_page_says_what_was_stored():
    results = Results.read(ROOT / "docs" / "performance.json")
    assert (ROOT / "docs" / "performance.md").read_text() == page(results)


def test_stored_results_name_no_host_and_no_path():
    text = (ROOT / "docs" / "performance.json").read_text()
    assert os.uname().nodename not in text
    assert str(ROOT) not in text and "/home/" not in text and "/tmp/" not in text
    assert set(json.loads(text)) == {"command", "machine", "versions", "records"}


def test_the_page_names_aims_that_were_missed():
    records = [
        Record("linear", "10-fold", "9 x 3", 2.0, "other", 1.0, aim=3.0),
        Record("linear", "leave-one-out", "9 x 3", 4.0, "other", 1.0, aim=3.0),
        Record("linear", "no aim", "9 x 3", 4.0, "other", 1.0),
    ]
    machine = {"cores": 2, "processor": "one", "blas": "a", "blas_threads": 1}
    text = page(Results("python -m benchmarks", machine, {"numpy": "2"}, records))
    assert "1 of 2 were reached. Missed, with the ratios:\n\n" in text
    assert "- leave-one-out beside other, aim 3: 4 at 9 × 3\n" in text
    assert "| leave-one-out | 9 × 3 | 4 s | other | 1 s | 4 | 3, missed |" in text


def test_numbers_in_words():
    assert [duration(each) for each in (2e-6, 0.012, 3.21, 75, 7200, 2e6)] == [
        "0.002 ms",
        "12 ms",
        "3.2 s",
        "75 s",
        "2 h",
        "23 days",
    ]
    assert [ratio(each) for each in (123.4, 12.3, 0.5, 0.01)] == [
        "123",
        "12",
        "0.5",
        "1 / 100",
    ]
    assert [problems.named(n, 3) for n in (1000, 20_000, 1_000_000, 12_345)] == [
        "1000 x 3",
        "2e4 x 3",
        "1e6 x 3",
        "12345 x 3",
    ]


def test_slopes_are_exponents():
    records = [
        Record("growth", "a", str(n), 3.0 * n**1.5, numbers={"at": n, "peak": 7.0 * n})
        for n in (10, 20, 40, 80)
    ]
    assert slope(records) == pytest.approx(1.5)
    assert slope(records, "peak") == pytest.approx(1.0)


def test_the_stepwise_loop_is_safe_bayes():
    X, y = problems.regression(40, 3)
    plan = PrefixPlan(np.ones(40), np.arange(40)[None])
    curve = models.GaussianLinear(1.0).risk_curve(Data(X, y, np.ones(40)), plan)
    for thrifty in (False, True):
        found = safe_bayes.stepwise_risk(X, y, 0.7, thrifty=thrifty) / 39
        assert found == pytest.approx(curve(0.7), rel=1e-10)
    split = safe_bayes.stepwise_risk(X, y, 0.7, 1, 20) + safe_bayes.stepwise_risk(X, y, 0.7, 20)
    assert split / 39 == pytest.approx(curve(0.7), rel=1e-10)


LINEAR = {
    "known": (thesis_method.KnownVariance(), models.GaussianLinear(1.0)),
    "unknown": (thesis_method.UnknownVariance(), models.NormalInverseGammaLinear()),
}


@pytest.mark.parametrize("name", LINEAR)
def test_the_thesis_method_has_the_right_risks_and_slopes(name):
    reference, model = LINEAR[name]
    data = gaussian_data(20, 3)
    train, test = (data.X[:12], data.y[:12]), (data.X[12:], data.y[12:])
    value, exact = expected_risk(model, train, test, 9.0, derivative=True)
    assert reference.expected_risk(train, test, 9.0) == pytest.approx(value, rel=1e-10)
    rng = np.random.default_rng(0)
    slopes = [thesis_method.slope(reference, train, test, 9.0, rng) for _ in range(40)]
    error = np.std(slopes, ddof=1) / np.sqrt(40)
    assert abs(np.mean(slopes) - exact) < 4 * error
    assert abs(np.mean(slopes) - 2 * exact) > 4 * error  # negative control


@pytest.mark.parametrize(
    ("reference", "model", "close"),
    [
        (thesis_method.Jaakkola(), models.JaakkolaLogistic(), 0.02),
        (thesis_method.Backprop(), models.MeanFieldLogistic(), 0.5),
    ],
    ids=["jaakkola", "backprop"],
)
def test_the_thesis_method_fits_what_the_models_fit(reference, model, close):
    """As far as its few steps go, which is the thesis' own error."""
    X, y = problems.classification(60, 3)
    mean, _ = reference.fit(X, y, 60.0, np.random.default_rng(0))
    assert np.abs(mean - model.posterior(X, y, 60.0).mean).max() < close


@pytest.mark.parametrize("strategy", ["naive", "sample splitting", "SafeBayes"])
def test_the_thesis_method_descends_and_optimises(strategy):
    X, y = problems.regression(30, 10)
    reference = thesis_method.KnownVariance()
    best = thesis_method.optimise(reference, strategy, X, y)
    assert 0 <= best <= 90
    rng = np.random.default_rng(0)
    assert 0 < thesis_method.descend(reference, strategy, X, y, rng, steps=2) <= 90
    assert thesis_method.time_of_descent(reference, strategy, X, y, lambda call: call() or 1.0) > 0


def test_resamples_are_as_many_and_as_large_as_stated():
    X, y = problems.regression(7, 2)
    pairs = list(thesis_method.pairs("bootstrap", X, y, np.random.default_rng(0)))
    assert len(pairs) == thesis_method.RESAMPLES
    assert all(len(train[1]) == 7 and test[0] is X for train, test in pairs)


def test_a_part_can_be_measured_again():
    machine = {"cores": 2}
    older = Results("all", machine, {}, [Record("a", "w", "c", 1.0), Record("b", "w", "c", 1.0)])
    found = older.updated(Results("part", machine, {}, [Record("a", "w", "c", 2.0)]))
    assert [(record.section, record.ours) for record in found.records] == [("a", 2.0), ("b", 1.0)]
    assert found.command == "all"
