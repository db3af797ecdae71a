"""The command line: the library's numbers, one line for every mistake, nothing half done."""

from __future__ import annotations

import errno
import html
import json
import os
import pty
import re
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import typer
from sklearn.datasets import load_diabetes

import temperance
import temperance.app.report
from temperance import data as memory
from temperance import estimators
from temperance.app.cli import console, installed, main, trials
from temperance.app.cli.request import Request, as_written
from temperance.app.explanation import explain, in_percent
from temperance.app.held_out import coverage, hold_out
from temperance.app.tables import Table, TableError
from temperance.calibration import VERDICTS
from temperance.strategies import NAMES, Bootstrap
from temperance_studies.thesis import command as reproduce

pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")

# The estimators as the command asks for them, which is for forecasts.
GibbsRegressor, GibbsClassifier = estimators.GibbsRegressor, estimators.GibbsClassifier
PURPOSES = {"gibbs": "draws", "predictive": "forecasts"}

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def record(self):
        assert (self.code, self.err) == (0, "")
        return json.loads(self.out, parse_constant=pytest.fail)


@pytest.fixture(autouse=True)
def plain_surroundings(monkeypatch, tmp_path):
    """A wide window, nothing that asks for colours, and a directory of one's own."""
    for name in ("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "500")
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def few_strategies(monkeypatch):
    """Compare two strategies only, where the others would say nothing more."""
    monkeypatch.setattr(trials, "NAMES", ("k-fold", "bayes"))


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command in this process."""
    monkeypatch.setattr(trials, "RESAMPLES_BESIDE", 10)
    monkeypatch.setattr(trials, "N_HELD_OUT_FOLDS", 2)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["temperance", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        return Done(left.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def on(command):
    """Run ``calibrate`` on a frame, stored as CSV, with a target."""

    def run(frame, target, *words, name="data.csv"):
        stored(frame, name)
        return command("calibrate", name, "--target", target, *words)

    return run


def stored(frame, name):
    if name.endswith("parquet"):
        frame.to_parquet(name)
    else:
        frame.to_csv(name, index=False)


def houses(n=40):
    """Prices with noise of variance 1600."""
    random = np.random.default_rng(7)
    area, age = random.normal(100, 30, n), random.uniform(0, 80, n)
    price = 3 * area - age + 40 * random.normal(size=n)
    weight = random.integers(0, 4, n).astype(float)
    return pd.DataFrame({"area": area, "age": age, "weight": weight, "price": price})


def visits(n=36, classes=("no", "yes")):
    random = np.random.default_rng(3)
    dose, heat = random.normal(size=n), random.normal(size=n)
    score = np.digitize(
        dose + 0.7 * random.normal(size=n), np.linspace(-0.6, 0.6, len(classes))[1:]
    )
    weight = random.integers(1, 4, n).astype(float)
    healed = np.array(classes)[score]
    return pd.DataFrame({"dose": dose, "heat": heat, "weight": weight, "healed": healed})


CLASSES = ("better", "same", "worse")
LAPLACE = ("--posterior", "laplace")
# A model that is quickly fitted to houses.
QUICK = ("--noise-variance", "1600", "--prior-scale", "1", "--strategy", "bayes")


def run_apart(*words, script=None, **options):
    """Run the command, or a script that calls it, in a process of its own."""
    head = ["-m", "temperance"] if script is None else ["-c", script]
    return subprocess.run(
        [sys.executable, *head, *map(str, words)], capture_output=True, text=True, **options
    )


# --- what is printed ------------------------------------------------------------------------------


class TestWords:
    def test_every_quantity_is_there_and_explained(self, on):
        done = on(houses(), "price", "--drop", "weight", "--model", "known-variance",
                  "--noise-variance", "100", "--for", "forecasts")  # fmt: skip
        frame = houses()
        fitted = GibbsRegressor(noise_variance=100.0, random_state=0)
        chosen = fitted.fit(frame[["area", "age"]], frame["price"]).calibration_
        lines = [line.rstrip() for line in done.out.splitlines()]
        assert (done.code, done.err) == (0, "")
        assert lines[:4] == [
            "data      data.csv, 40 rows; price from 2 columns",
            "model     linear regression, noise variance 100",
            "strategy  Stacking(source=None)",
            "for       forecasts: predictive risk, closed form",
        ]
        printed = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in lines[5:10])
        low, high = chosen.beta_range
        assert list(printed) == ["gain", "beta", "range", "risk", "Bayes' risk"]
        assert printed["beta"] == f"mixed: {in_percent(chosen.weights)}"
        assert printed["range"].startswith(f"{low:.3g} to {high:.3g}  (single betas not told apart")
        assert printed["Bayes' risk"] == f"{chosen.bayes_risk:.5g}"
        gain, verdict = printed["gain"].split(": ")
        assert verdict == {"temper": "temper", "keep": "keep Bayes"}[chosen.verdict] == "temper"
        for words, value, error in (
            (printed["risk"], chosen.risk, chosen.standard_error),
            (gain.split(" over Bayes")[0], chosen.gain, chosen.gain_standard_error),
        ):
            numbers = [float(number) for number in words.split(" ± ")]
            assert numbers == pytest.approx([value, error], rel=0.01)
        assert "Forecasts are mixed over β" in explain(chosen)
        assert explain(chosen) in lines

    def test_the_gain_and_the_verdict_come_before_a_single_beta(self, on):
        words = ("--drop", "weight", "--strategy", "k-fold")
        done = on(houses(), "price", *words)
        frame = houses()
        fitted = GibbsRegressor(strategy="k-fold", random_state=0)
        chosen = fitted.fit(frame[["area", "age"]], frame["price"]).calibration_
        lines = done.out.splitlines()
        first = next(k for k, line in enumerate(lines) if line.startswith("gain"))
        names = [re.split(r"\s{2,}", line)[0] for line in lines[first : first + 7]]
        assert names == ["gain", "beta", "range", "alpha", "risk", "Bayes' risk", "minimum"]
        printed = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in lines[first : first + 7])
        assert printed["gain"].endswith(f"over Bayes: {VERDICTS[chosen.verdict]}")
        assert printed["beta"] == f"{chosen.beta:.4g}"
        assert printed["range"].endswith("(not told apart by the data)")
        assert printed["alpha"] == f"{chosen.alpha:.4g}"
        assert printed["minimum"] == chosen.where

    @pytest.mark.parametrize("strategy", ["bayes", "naive", "sandwich"])
    def test_without_rows_held_out_there_is_no_verdict(self, on, strategy):
        done = on(houses(), "price", "--strategy", strategy)
        assert "keep Bayes" not in done.out.lower() and "temper" not in done.out
        [result] = on(houses(), "price", "--strategy", strategy, "--json").record["results"]
        assert result["verdict"] is None

    def test_a_mixture_of_one_beta_is_said_to_be_one(self, on):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"x": rng.standard_normal(200)})
        frame["y"] = frame["x"] + rng.standard_normal(200)
        done = on(frame, "y")
        assert re.search(r"^beta +mixed: (99|100) % at 1$", done.out, re.M)
        assert "has its weight at β = 1, which is Bayes." in done.out

    def test_without_a_file_it_runs_on_the_bundled_patients(self, command):
        frame = load_diabetes(as_frame=True, scaled=False).frame
        record = command("calibrate", "--json").record
        # Column by column, as tables lie in memory: rounding depends on it.
        inputs = pd.DataFrame({name: frame[name] for name in frame.columns.drop("target")})
        agree(record, GibbsRegressor(random_state=0).fit(inputs, frame["target"]))
        assert record["data"] == "diabetes"
        assert record["target"] == "progression"
        assert record["rows"] == 442
        # All other options hold for them too.
        other = command("calibrate", "--json", "-t", "bmi", "--drop", "progression").record
        assert other["target"] == "bmi"
        assert other["columns"] == ["age", "sex", "bp", "s1", "s2", "s3", "s4", "s5", "s6"]

    def test_three_classes_have_one_beta(self, on):
        frame = visits(classes=CLASSES)
        done = on(frame, "healed", *LAPLACE)
        fitted = GibbsClassifier(random_state=0).fit(
            frame[["dose", "heat", "weight"]], frame["healed"]
        )
        assert "laplace posterior of all classes" in done.out
        assert explain(fitted.calibration_) in " ".join(done.out.split())

    @pytest.mark.parametrize("name", ["[red]x[/red]", "<b>$x</b>", "a\\[/]b", "Größe 温度"])
    @pytest.mark.usefixtures("few_strategies")
    def test_names_are_never_read_as_markup(self, on, name):
        frame = houses().rename(columns={"age": name, "price": f"{name}!"})
        frame[name] = np.where(frame[name] > 40, "[bold]old", "new")
        done = on(frame, f"{name}!", *QUICK, "--report", "[x].html")
        assert f"; {name}! from 3 columns" in done.out
        assert f"{name!r} with '[bold]old'" in done.out
        assert "The report is in [x].html" in done.out

    @pytest.mark.parametrize("encoding", ["ascii", pytest.param("utf-8", marks=pytest.mark.slow)])
    def test_any_encoding_of_the_output_will_do(self, encoding):
        stored(houses(), "data.csv")
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        done = subprocess.run(
            [sys.executable, "-m", "temperance", "calibrate", "data.csv", "-t", "price", *QUICK],
            capture_output=True,
            env=environment,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert ("β" in done.stdout.decode(encoding)) == (encoding == "utf-8")


class TestData:
    def test_csv_and_parquet_give_the_same(self, on):
        records = [
            on(houses(), "price", "--json", name=name).record
            for name in ("data.csv", "data.parquet")
        ]
        for record in records:
            record.pop("command")
            assert record.pop("data") in record.pop("settings")["data"]
        assert records[0] == records[1]

    def test_text_becomes_contrasts_with_its_most_frequent_level(self, on):
        frame = houses().assign(colour=["red", "green", "blue", "red"] * 10)
        record = on(frame, "price", "--json").record
        assert record["columns"][3:] == ["colour=blue", "colour=green"]
        assert record["reference_levels"] == {"colour": "red"}
        said = "Text is compared with its most frequent level: 'colour' with 'red'."
        assert said in record["notices"]
        inputs = frame[["area", "age", "weight"]].assign(
            **{f"colour={c}": (frame["colour"] == c).astype(float) for c in ("blue", "green")}
        )
        agree(record, GibbsRegressor(random_state=0).fit(inputs, frame["price"]))

    def test_missing_values_are_refused_by_column_and_count_unless_dropped(self, on):
        frame = houses()
        frame.loc[[1, 5], "area"] = np.nan
        frame.loc[[5, 9], "age"] = np.nan
        refused(
            on(frame, "price"),
            "3 of 40 rows have missing values, in 'area' (2), 'age' (2); leave the rows out with "
            "--drop-missing or the columns with --drop (empty cells, NA, N/A, NaN, NULL and None "
            "count as missing)",
        )
        record = on(frame, "price", "--drop-missing", "--json").record
        assert record["rows"] == 37
        assert (
            "Rows left out for missing values: 3 of 40 rows, in 'area' (2), 'age' (2)."
            in record["notices"]
        )
        kept = frame.dropna()
        agree(record, GibbsRegressor(random_state=0).fit(kept[kept.columns[:3]], kept["price"]))

    def test_constant_columns_are_left_out_with_a_notice(self, on):
        frame = houses().assign(land="here", floors=1)
        done = on(frame, "price")
        assert "price from 3 columns" in done.out
        assert "• Columns left out, the same in every row: 'land', 'floors'." in done.out

    @pytest.mark.parametrize(
        ("frame", "target", "words"),
        [
            (houses(), "price", "The target, 'price', is numeric: this is a regression."),
            (
                houses().assign(weight=houses()["weight"] + 1),
                "weight",
                "The target, 'weight', is numeric: this is a regression (--model logistic makes it "
                "a classification).",
            ),
            (visits(), "healed", "The target, 'healed', is text: the model is logistic."),
            (
                visits().assign(healed=lambda frame: frame["healed"] == "yes"),
                "healed",
                "The target, 'healed', is true or false: the model is logistic (--model linear "
                "makes it a regression).",
            ),
            (
                visits(classes=(4, 6)),
                "healed",
                "The target, 'healed', has two distinct values: the model is logistic (--model "
                "linear makes it a regression).",
            ),
        ],
        ids=["numbers", "few numbers", "text", "truth", "two values"],
    )
    def test_the_model_is_chosen_from_the_target_which_is_said(self, on, frame, target, words):
        model = "logistic" if "is logistic" in words else "linear"
        done = on(frame, target, *(LAPLACE if model == "logistic" else ()))
        assert f"model     {model} regression" in done.out
        assert f"• {words}" in done.out

    @pytest.mark.parametrize("model", ["linear", "logistic"])
    def test_a_model_that_is_given_is_taken_without_a_word(self, on, model):
        frame = visits(classes=(0, 1))
        done = on(frame, "healed", "--model", model, *(LAPLACE if model == "logistic" else ()))
        assert f"model     {model} regression" in done.out
        assert "the model is" not in done.out


# --- the numbers ----------------------------------------------------------------------------------


def plain(value):
    return None if isinstance(value, float) and not np.isfinite(value) else value


def agree(record, fitted, names=None):
    """Numbers of the JSON are those of an estimator, but for rounding."""
    parts, chosen = fitted.parts(), fitted.calibration_
    [printed] = record["results"]
    assert printed["class"] == (parts[0][0] or None if len(parts) == 1 else None)
    assert printed["n"] == chosen.data.size
    assert printed["minimum"] == chosen.where
    for name in (
        "beta",
        "alpha",
        "risk",
        "standard_error",
        "bayes_risk",
        "gain",
        "gain_standard_error",
        "at_bound",
        "flat",
    ):
        assert printed[name] == pytest.approx(plain(getattr(chosen, name)), rel=1e-12), name
    held_out = chosen.table is not None and getattr(chosen.strategy, "holds_rows_out", True)
    assert printed["verdict"] == (chosen.verdict if held_out else None)
    if chosen.weights is None:
        assert printed["weights"] is None
    else:
        for name in ("betas", "weights"):
            np.testing.assert_allclose(
                printed["weights"][name], getattr(chosen.weights, name), rtol=1e-12
            )
    laws = [
        fitted.coefficients(k) if label else fitted.coefficients()
        for k, (label, _) in enumerate(parts)
    ]
    first = 0 if fitted.fit_intercept else 1
    expected = [
        (label or None, mean, low, high)
        for (label, _), law in zip(parts, laws, strict=True)
        for mean, low, high in list(zip(law.mean, *law.interval(0.95).T, strict=True))[first:]
    ]
    found = record["coefficients"]
    assert [(each["class"], each["mean"], each["low"], each["high"]) for each in found] == expected
    if names is not None:
        assert [each["name"] for each in found] == names


@pytest.mark.parametrize("columns", [3, 25])
def test_for_coefficients_they_are_printed(on, columns):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, columns))).add_prefix("x")
    frame["y"] = frame["x0"] + rng.standard_normal(60)
    options = ["--for", "coefficients", "--strategy", "sandwich"]
    lines = on(frame, "y", *options).out.splitlines()
    first = 1 + next(k for k, line in enumerate(lines) if line.startswith("coefficient "))
    printed = [re.split(r"  +", line) for line in lines[first : first + min(columns + 1, 20)]]
    expected = on(frame, "y", *options, "--json").record["coefficients"]
    assert printed == [
        [each["name"], f"{each['mean']:.4g}", f"{each['low']:.4g} to {each['high']:.4g}"]
        for each in expected[:20]
    ]
    rest = lines[first + len(printed) :]
    assert rest == (["and 6 more: --json prints all"] if columns == 25 else [])


def test_for_forecasts_coefficients_are_not_printed(on):
    assert "95 % interval" not in on(houses(), "price").out


OPTIONS = {
    "known variance": (
        ["--model", "known-variance", "--noise-variance", "900"],
        (),
        {"noise_variance": 900.0},
    ),
    "known variance, without a model": (["--noise-variance", "900"], (), {"noise_variance": 900.0}),
    "square": (["--model", "polynomial"], (), {"degree": 2}),
    "cube": (
        ["--model", "polynomial", "--degree", "3", "--noise-variance", "1e3"],
        (),
        {"degree": 3, "noise_variance": 1000.0},
    ),
    "alpha": (["--transfer", "alpha"], (), {"transfer": "alpha"}),
    "bounds": (["--bounds", "0.123456789", "0.7"], (), {"bounds": (0.123456789, 0.7)}),
    "prior": (["--prior-scale", "0.1"], (), {"prior_scale": 0.1}),
    "raw": (["--no-standardize"], (), {"standardize": False}),
    "no constant": (["--no-intercept"], (), {"fit_intercept": False}),
    "seed": (["--seed", "5"], (), {"random_state": 5}),
}


class TestDefault:
    KNOWN = ("--model", "known-variance", "--noise-variance", "100")

    @pytest.mark.parametrize(
        "words, expected",
        [
            ((), "stacking"),
            (KNOWN, "stacking"),
            ((*KNOWN, "--for", "draws"), "reference-risk"),
            ((*KNOWN, "--for", "draws", "--transfer", "alpha"), "k-fold"),
            ((*KNOWN, "--strategy", "bayes"), "bayes"),
        ],
    )
    def test_it_is_named_and_that_of_the_estimator(self, on, words, expected):
        frame = houses()
        own, asked = (
            on(frame, "price", *words, *more, "--json").record["results"]
            for more in ((), ("--strategy", expected))
        )
        assert own == asked


class TestAgreement:
    @pytest.mark.parametrize(
        ("strategy", "risk"),
        [
            (strategy, risk)
            for strategy in [*NAMES, "reference-risk"]
            for risk in ("gibbs", "predictive")
            if (strategy, risk) != ("stacking", "gibbs")
        ],
    )
    def test_of_every_strategy_and_risk(self, on, strategy, risk):
        frame, purpose = houses(), PURPOSES[risk]
        # Forecasts by a prior that learns its scale have no reference.
        scale = 1.0 if (strategy, risk) == ("reference-risk", "predictive") else "auto"
        scale = 1.0 if strategy == "bootstrap" else scale  # a thousand fits
        words = ("-s", strategy, "--for", purpose, "--prior-scale", scale, "--json")
        record = on(frame, "price", *words).record
        fitted = GibbsRegressor(
            strategy=strategy, target=purpose, prior_scale=scale, random_state=0
        )
        fitted.fit(frame[["area", "age", "weight"]], frame["price"])
        agree(record, fitted, ["intercept", "area", "age", "weight"])

    @pytest.mark.parametrize(("words", "given", "options"), OPTIONS.values(), ids=OPTIONS)
    def test_of_every_option(self, on, words, given, options):
        frame = houses()
        record = on(frame, "price", *words, "--json").record
        fitted = GibbsRegressor(*given, **{"random_state": 0, **options})
        agree(record, fitted.fit(frame[["area", "age", "weight"]], frame["price"]))

    @pytest.mark.parametrize(
        "strategy", [pytest.param(s, marks=[pytest.mark.slow] * (s == "bootstrap")) for s in NAMES]
    )
    def test_of_two_classes(self, on, strategy):
        frame = visits(24)
        record = on(frame, "healed", *LAPLACE, "-s", strategy, "--json").record
        fitted = GibbsClassifier(posterior="laplace", strategy=strategy, random_state=0)
        fitted.fit(frame[["dose", "heat", "weight"]], frame["healed"])
        agree(record, fitted, ["intercept", "dose", "heat", "weight"])
        assert record["task"] == "classification"
        assert [each["class"] for each in record["results"]] == ["yes"]

    @pytest.mark.parametrize("posterior", ["mean-field", "jaakkola", "laplace", "full"])
    def test_of_every_posterior(self, on, posterior):
        frame = visits()
        record = on(frame, "healed", "--posterior", posterior, "--degree", "2", "--json").record
        fitted = GibbsClassifier(posterior=posterior, degree=2, random_state=0)
        agree(record, fitted.fit(frame[["dose", "heat", "weight"]], frame["healed"]))

    @pytest.mark.parametrize("risk", ["gibbs", "predictive"])
    def test_of_three_classes(self, on, risk):
        frame = visits(classes=CLASSES)
        record = on(frame, "healed", *LAPLACE, "--for", PURPOSES[risk], "--json").record
        fitted = GibbsClassifier(posterior="laplace", target=PURPOSES[risk], random_state=0)
        agree(record, fitted.fit(frame[["dose", "heat", "weight"]], frame["healed"]))
        assert [each["class"] for each in record["results"]] == [None]
        assert {each["class"] for each in record["coefficients"]} == set(CLASSES)

    def test_of_weights(self, on):
        frame = houses()
        record = on(frame, "price", "--weights", "weight", "--json").record
        fitted = GibbsRegressor(random_state=0)
        fitted.fit(frame[["area", "age"]], frame["price"], sample_weight=frame["weight"])
        agree(record, fitted, ["intercept", "area", "age"])
        assert record["results"][0]["n"] == frame["weight"].sum()
        frame = visits()
        record = on(frame, "healed", "--weights", "weight", *LAPLACE, "--json").record
        fitted = GibbsClassifier(posterior="laplace", random_state=0)
        fitted.fit(frame[["dose", "heat"]], frame["healed"], sample_weight=frame["weight"])
        agree(record, fitted)

    def test_numbers_that_do_not_exist_are_null(self, on):
        # One row of positive weight stays in each tested half: no standard error.
        frame = houses(10).assign(weight=[1.0] + [0.0] * 4 + [1.0] + [0.0] * 4)
        words = ("-s", "sample-splitting", "--weights", "weight", "--json")
        [result] = on(frame, "price", *words).record["results"]
        assert result["standard_error"] is None
        assert result["gain_standard_error"] is None
        assert result["risk"] is not None


class TestComparison:
    WORDS = ("--model", "known-variance", "--noise-variance", "100", "--for", "forecasts")

    def compare(self, on, *words, frame=None):
        frame = houses() if frame is None else frame
        return on(frame, frame.columns[-1], *words, "--compare")

    @pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.slow), True])
    def test_all_strategies_are_ranked_by_their_gain_on_rows_held_out(self, on, weighted):
        frame = houses(30)
        inputs, weights = frame[["area", "age", "weight"]], None
        words = [*self.WORDS, "--prior-scale", "1", "--seed", "2"]
        if weighted:
            inputs, weights = frame[["area", "age"]], frame["weight"].to_numpy()
            words += ["--weights", "weight"]
        ranking = self.compare(on, *words, "--json", frame=frame).record["comparison"]
        assert {each["strategy"] for each in ranking} == {*NAMES, "reference-risk"}
        gains = [each["held_out_gain"] for each in ranking]
        assert gains == sorted(gains, reverse=True)
        assert len(set(gains)) > 4
        for each in ranking:
            name = each["strategy"]
            strategy = Bootstrap(n_draws=10) if name == "bootstrap" else name
            asked = GibbsRegressor(
                noise_variance=100.0, strategy=strategy, prior_scale=1.0, random_state=2
            )
            held = hold_out(asked, inputs, frame["price"], weights, n_folds=2, seed=2)
            scores = held.calibrated.log_score
            assert (
                each["held_out_gain"],
                each["held_out_gain_standard_error"],
            ) == held.mean(held.gains)
            assert (
                each["held_out_log_score"],
                each["held_out_log_score_standard_error"],
            ) == held.mean(scores)
            inside = coverage(held.calibrated.place, 0.95)
            assert each["held_out_hits"] == pytest.approx(np.average(inside, weights=weights))
            asked.fit(inputs, frame["price"], sample_weight=weights)
            assert [part["beta"] for part in each["results"]] == [asked.inverse_temperature_]

    @pytest.mark.parametrize(
        "words, offered", [((), False), (("--prior-scale", "1"), True), (("--for", "draws"), True)]
    )
    def test_reference_risk_is_compared_where_there_is_a_reference(self, on, words, offered):
        words = (*self.WORDS, *words, "--bounds", "0.9", "1.1", "--json")
        ranking = self.compare(on, *words).record["comparison"]
        assert ("reference-risk" in {each["strategy"] for each in ranking}) == offered

    @pytest.mark.slow
    def test_the_strategy_asked_for_is_not_made_cheaper(self, on):
        words = (*self.WORDS, "-s", "bootstrap", "--json")
        record = self.compare(on, *words).record
        [own] = [each for each in record["comparison"] if each["strategy"] == "bootstrap"]
        assert own["results"] == record["results"]
        assert "n_draws=1000" in record["settings"]["strategy"]

    def test_the_table_has_the_order_of_the_json(self, on):
        words = (*self.WORDS, "--prior-scale", "1", "--bounds", "0.9", "1.1")
        compared = self.compare(on, *words, "--json").record["comparison"]
        gains = [each["held_out_gain"] for each in compared]
        done = self.compare(on, *words)
        places = re.findall(r"^(\d)  (\S+) ", done.out, re.M)
        assert [name for _, name in places] == [each["strategy"] for each in compared]
        shared = [sum(other > gain for other in gains) + 1 for gain in gains]
        assert [int(place) for place, _ in places] == shared
        assert len(set(shared)) < len(shared)  # several at a bound
        assert "gain over Bayes" in done.out and "in 95 %" in done.out

    @pytest.mark.slow
    def test_classes_are_compared_by_those_guessed_right(self, on):
        frame = visits(24)[["dose", "healed"]]
        record = self.compare(on, *LAPLACE, "--json", frame=frame).record
        [own] = [each for each in record["comparison"] if each["strategy"] == "stacking"]
        held = hold_out(
            GibbsClassifier(posterior="laplace", random_state=0),
            frame[["dose"]],
            frame["healed"],
            n_folds=2,
        )
        guesses = np.where(held.calibrated.probabilities[:, 1] > 0.5, "yes", "no")
        assert own["held_out_hits"] == pytest.approx(np.mean(guesses == frame["healed"]))

    @pytest.mark.parametrize(
        ("name", "asked", "rows", "columns", "left_out"),
        [
            ("leave-one-out", {}, 10_000, 10, False),
            ("leave-one-out", {}, 200_000, 1, True),
            ("leave-one-out", {"compare": True}, 200_000, 1, False),
            # A few rows per column: every row is refitted, with large matrices.
            ("leave-one-out", {}, 500, 10, False),
            ("leave-one-out", {}, 500, 100, True),
            ("leave-one-out", {"compare": True}, 1000, 200, True),
            ("leave-one-out", {"degree": 3}, 500, 10, True),
            ("safe-bayes", {}, 10_000, 10, False),
            ("safe-bayes", {}, 34_000, 1, False),
            ("safe-bayes", {}, 35_000, 1, True),
            ("safe-bayes", {"compare": True}, 40_000, 1, False),
            ("bootstrap", {}, 10_000, 10, False),
            ("bootstrap", {}, 20_000, 1, True),
            ("bootstrap", {"compare": True}, 20_000, 1, False),
            ("k-fold", {}, 100_000, 10, False),
        ],
    )
    def test_how_much_is_too_much(self, name, asked, rows, columns, left_out):
        inputs = pd.DataFrame(np.arange(rows * columns).reshape(rows, columns) / 7)
        table = Table("table", inputs, np.arange(rows) % 2, "y", "classification", None, ())
        reason = trials._reason_against(name, Request(**asked), table)
        assert (reason is not None) is left_out

    def test_a_mixture_has_no_beta_in_the_table(self, on):
        words = (*self.WORDS, "--prior-scale", "1")
        assert re.search(r"^\d  stacking +mixed ", self.compare(on, *words).out, re.M)

    def test_bounds_below_those_of_a_mixture_leave_it_out(self, on):
        words = (*self.WORDS, "--strategy", "k-fold", "--bounds", "1e-4", "5e-4")
        done = self.compare(on, *words)
        assert "Left out, because it begins at beta = 0.001: stacking" in done.out

    def test_what_would_take_too_long_is_left_out_and_said(self, on, monkeypatch):
        monkeypatch.setattr(trials, "MOST_COST_COMPARED", 0)
        frame = visits(24)[["dose", "healed"]]
        done = self.compare(on, *LAPLACE, frame=frame)
        assert (
            "• Warning: Left out, because many fits would take long (ask for one alone with "
            "--strategy): bootstrap, safe-bayes, leave-one-out" in done.out
        )
        places = re.findall(r"^(\d)  (\S+) ", done.out, re.M)
        assert {name for _, name in places} == {*NAMES} - {
            "bootstrap",
            "safe-bayes",
            "leave-one-out",
        }

    @pytest.mark.parametrize("bounds", [("2", "3"), ("0", "0.5")])
    def test_bounds_without_bayes_leave_bayes_out(self, on, bounds):
        words = (*self.WORDS, "--prior-scale", "1", "--bounds", *bounds, "--report", "page.html")
        done = self.compare(on, *words)
        assert "Left out, because beta = 1 is out of bounds: bayes" in done.out
        assert Path("page.html").exists()

    def test_a_class_of_one_row_is_refused(self, on):
        frame = visits(24)[["dose", "healed"]]
        frame.loc[3, "healed"] = "maybe"
        refused(
            self.compare(on, *LAPLACE, frame=frame),
            "the target, 'healed', has only one row of 'maybe'; comparisons and reports hold rows "
            "out and need two of each class",
        )

    @pytest.mark.slow
    def test_classes_without_weight_have_no_part(self, on):
        frame = visits(24)[["dose", "weight", "healed"]]
        words = ("--weights", "weight", *LAPLACE, "--json", "--report", "page.html")
        ours = self.compare(on, *words, frame=frame).record
        more = pd.DataFrame({"dose": 0.5, "weight": 0.0, "healed": ["maybe", "zero", "zero"]})
        theirs = self.compare(on, *words, frame=pd.concat([frame, more])).record
        assert theirs["results"] == ours["results"]
        assert to_twelve_digits(theirs["comparison"]) == to_twelve_digits(ours["comparison"])


def to_twelve_digits(record):
    """Round every number, since sums may be taken in another order."""
    return json.loads(json.dumps(record), parse_float=lambda digits: f"{float(digits):.12g}")


# --- the command itself ---------------------------------------------------------------------------


def test_help_names_every_option(command):
    done = command("calibrate", "--help")
    text = ANSI.sub("", done.out)
    assert (done.code, done.err) == (0, "")
    for name in Request.__dataclass_fields__:
        word = {"data": "data", "purpose": "--for"}.get(name, "--" + name.replace("_", "-"))
        assert re.search(rf"(?<!\S){word}(?!\S)", text, re.I), word
    for word in ("--no-standardize", "--no-intercept", "--debug", "--help", "-t", "-s", *NAMES):
        assert word in text, word
    for word in ("known-variance", "polynomial", "mean-field", "jaakkola", "forecasts", "draws"):
        assert word in text, word
    assert "\\b" not in text
    assert "temperance calibrate houses.csv --target price --save houses.json\n" in re.sub(
        r" +\n", "\n", text
    )


def test_help_of_the_whole_names_the_command(command):
    text = ANSI.sub("", command("--help").out)
    assert "calibrate" in text
    assert "--version" in text
    assert command("-h").out == command("--help").out
    bare = command()
    assert "Usage: temperance" in ANSI.sub("", bare.out + bare.err)
    assert "temperance: " not in bare.err


def test_version(command):
    assert command("--version") == (0, f"temperance {temperance.__version__}\n", "")


def test_the_package_runs_as_a_module():
    done = run_apart("--version")
    assert (done.returncode, done.stdout) == (0, f"temperance {temperance.__version__}\n")


@pytest.mark.parametrize("missing", ["typer", pytest.param("rich", marks=pytest.mark.slow)])
def test_without_its_libraries_it_says_how_to_get_them(missing):
    script = (
        f"import sys; sys.modules[{missing!r}] = None; from temperance.app.cli import main; main()"
    )
    done = run_apart("calibrate", script=script)
    hint = f"temperance: the command line needs {missing}: pip install 'temperance[cli]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", hint)


def test_a_library_that_is_needed_later_is_named(command, monkeypatch):
    def table(self):
        raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

    monkeypatch.setattr(Request, "table", table)
    refused(command("calibrate"), "this needs pyarrow: pip install 'temperance[cli]'")


ODD = "a 'name' with $HOME, \"quotes\" and Größe"
COMMANDS = {
    "bundled": ["calibrate"],
    "draws": ["calibrate", "--for", "draws", "-s", "leave-one-out", "--seed", "4"],
    "bounds": ["calibrate", "data.csv", "-t", "price", "--bounds", "0.1234567891", "2.0000001"],
    "numbers": [
        *("calibrate", "data.csv", "-t", "price", "--model", "known-variance"),
        *("--noise-variance", "1234567.8901", "--prior-scale", "1e-3", "--transfer", "alpha"),
        "--compare",
    ],
    "switches": ["calibrate", "data.csv", "-t", "price", "--no-standardize", "--no-intercept"],
    "columns": [
        *("calibrate", "data.csv", "-t", "price", "--weights", "weight"),
        *("--drop", "colour", "--drop", "age", "--drop-missing", "--model", "polynomial"),
        *("--degree", "3"),
    ],
    "odd names": ["calibrate", f"{ODD}.csv", "-t", ODD, "--drop", "--dash"],
    "a dash first": ["calibrate", "--target", "-y", "--", "-data.csv"],
    "classes": ["calibrate", "visits.csv", "-t", "healed", *LAPLACE, "--degree", "2"],
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_the_command_in_the_json_makes_it_again(command, words):
    stored(houses().assign(colour="red"), "data.csv")
    stored(houses().rename(columns={"price": ODD, "age": "--dash"}), f"{ODD}.csv")
    stored(houses().rename(columns={"price": "-y"}), "-data.csv")
    stored(visits(), "visits.csv")
    record = command(words[0], "--json", *words[1:]).record
    name, *again = shlex.split(record["command"])
    assert name == "temperance"
    assert command(*again).record == record


@pytest.mark.usefixtures("few_strategies")
def test_the_command_in_the_report_makes_it_again(on, command):
    assert on(houses(), "price", "--json", "--report", "my page.html").record["rows"] == 40
    page = Path("my page.html").read_bytes()
    [shown] = re.findall(r"<pre><code>(.*?)</code></pre>", page.decode(), re.S)
    Path("my page.html").unlink()
    name, *again = shlex.split(html.unescape(shown))
    assert (name, "--json" in again) == ("temperance", False)
    assert command(*again).code == 0
    assert Path("my page.html").read_bytes() == page


# --- what goes wrong ------------------------------------------------------------------------------


def refused(done, message, code=2):
    assert done.out == ""
    assert done.err == f"temperance: {message}\n"
    assert done.code == code


GOOD = "x,z,price\n" + "".join(f"{k},{(7 * k) % 5},{3 * k + k % 4}\n" for k in range(12))
COLUMNS = "the columns are 'x', 'z', 'price'"
REPAIR = (
    "correct it, leave the cell empty and use --drop-missing, or leave the column out with --drop"
)
TARGET = ("--target", "price")
BAD_FILES = {
    "missing": (None, TARGET, "there is no file 'data.csv'"),
    "empty": ("", TARGET, "'data.csv' is empty"),
    "no such column": (
        GOOD,
        ("--target", "Prise"),
        f"there is no column 'Prise' for --target; did you mean 'price'? {COLUMNS}",
    ),
    "no column like it": (
        GOOD,
        ("-t", "weight"),
        f"there is no column 'weight' for --target; {COLUMNS}",
    ),
    "no target": (GOOD, (), "--target must name a column of data.csv: 'x', 'z', 'price'"),
    "no target among many": (
        ",".join(f"c{k}" for k in range(15)) + "\n" + ",".join("1" * 15) + "\n",
        (),
        "--target must name a column of data.csv: "
        + ", ".join(f"'c{k}'" for k in range(12))
        + " and 3 more",
    ),
    "no such column to drop": (
        GOOD,
        (*TARGET, "--drop", "y"),
        f"there is no column 'y' for --drop; {COLUMNS}",
    ),
    "text among numbers": (
        GOOD.replace("4,3,12", "4,3,12 or so"),
        (*TARGET, "--model", "linear"),
        f"column 'price' has text among its numbers: '12 or so' in data row 5; {REPAIR}",
    ),
    "one class": (
        "x,price\n" + "1,low\n2,low\n" * 6,
        TARGET,
        "the target, 'price', has a single class, 'low', in every row; there is nothing to learn "
        "from it",
    ),
    "huge": (
        GOOD.replace("4,3,", "4,1e308,"),
        TARGET,
        "column 'z' must be 0 or between 1e-50 and 1e+50 in size, got at most 1e+308; change its "
        "unit, or leave it out with --drop",
    ),
    "a known variance in other units": (
        "x,price\n" + "".join(f"{k},{k}e-40\n" for k in range(12)),
        (*TARGET, "--noise-variance", "1e300"),
        "--noise-variance must be in units of y squared, got 1e+300 where y has the standard "
        "deviation 3.45e-40",
    ),
    "infinite": (
        GOOD.replace("4,3,", "4,inf,"),
        TARGET,
        f"column 'z' has inf in data row 5; {REPAIR}",
    ),
    "three rows": (
        "x,price\n1,2\n2,5\n3,7\n",
        TARGET,
        "data.csv has 3 rows, too few to calibrate on: at least 10 are needed",
    ),
    "binary": (
        "\x89PNG\r\n\x1a\n\x00",
        TARGET,
        "'data.csv' is neither text nor Parquet (byte 9 is NUL); expected CSV or Parquet",
    ),
    "bounds": (
        GOOD,
        (*TARGET, "--bounds", "2", "1"),
        "--bounds must satisfy 0 <= lower < upper <= 1e+100, got (2.0, 1.0)",
    ),
    "bounds without Bayes": (
        GOOD,
        (*TARGET, "--bounds", "0", "0.5", "-s", "bayes"),
        "--bounds must contain beta = 1 for Bayes, got (0.0, 0.5)",
    ),
    "no noise variance": (
        GOOD,
        (*TARGET, "--model", "known-variance"),
        "--model known-variance needs --noise-variance, in units of the target squared",
    ),
    "noise variance of an unknown": (
        GOOD,
        (*TARGET, "--model", "linear", "--noise-variance", "2"),
        "--noise-variance is for the models known-variance and polynomial, not linear",
    ),
    "noise variance of classes": (
        "x,price\n" + "1,low\n2,high\n" * 6,
        (*TARGET, "--noise-variance", "2"),
        "--noise-variance is for the models known-variance and polynomial, not logistic",
    ),
    "negative noise variance": (
        GOOD,
        (*TARGET, "--model", "known-variance", "--noise-variance", "-2"),
        "--noise-variance must be positive, got -2.0",
    ),
    "prior scale": (
        GOOD,
        (*TARGET, "--prior-scale", "0"),
        "--prior-scale must be positive, got 0.0",
    ),
    "too high a degree": (
        GOOD,
        (*TARGET, "--model", "polynomial", "--degree", "100000"),
        "--degree must be small enough to fit, got 100000: 5e+09 powers and products of 2 columns "
        "in each of 12 rows would take 1.92e+12 bytes of memory, 1e+10 are available",
    ),
    "too small a noise variance": (
        GOOD,
        (*TARGET, "--noise-variance", "1e-320"),
        "--noise-variance must be in units of y squared, got 1e-320 where y has the standard "
        "deviation 10.8",
    ),
    "degree": (
        GOOD,
        (*TARGET, "--degree", "2"),
        "--degree is for the models polynomial and logistic, not linear",
    ),
    "posterior": (
        GOOD,
        (*TARGET, "--posterior", "full"),
        "--posterior is for the model logistic, not linear",
    ),
    "report in no directory": (
        GOOD,
        (*TARGET, "--report", "nowhere/page.html"),
        "--report nowhere/page.html lies in a directory that does not exist",
    ),
    "report onto a directory": (
        GOOD,
        (*TARGET, "--report", "."),
        "--report must name a file, . is a directory",
    ),
    "report onto the data": (
        GOOD,
        (*TARGET, "--report", "./data.csv"),
        "--report would overwrite the data in data.csv",
    ),
}


@pytest.mark.parametrize(("content", "words", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files_and_options_get_one_line(command, content, words, message, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1e10)
    if content is not None:
        Path("data.csv").write_bytes(content.encode("latin-1"))
    refused(command("calibrate", "data.csv", *words), message)
    assert content is None or Path("data.csv").read_bytes() == content.encode("latin-1")


WRONG_OPTIONS = {
    "calibrate --seed -1": "Invalid value for '--seed': '-1' is not an integer of at least 0",
    "calibrate --seed first": "Invalid value for '--seed': 'first' is not an integer of at least 0",
    "calibrate --seed": "Option '--seed' requires an argument",
    "calibrate --degree 0": "Invalid value for '--degree': '0' is not an integer of at least 1",
    "calibrate --noise-variance abc": (
        "Invalid value for '--noise-variance': 'abc' is not a number"
    ),
    "calibrate --prior-scale wide": (
        "Invalid value for '--prior-scale': 'wide' is not a number or auto"
    ),
    "calibrate --bounds 1": "Option '--bounds' requires 2 arguments",
    "calibrate --bounds 0 much": "Invalid value for '--bounds': 'much' is not a number",
    "calibrate --strategy": "Option '--strategy' requires an argument",
    "calibrate --strategy kfold": (
        "Invalid value for '--strategy' / '-s': 'kfold' is not one of 'stacking', 'k-fold', "
        "'reference-risk', 'leave-one-out', 'bootstrap', 'safe-bayes', 'sample-splitting', "
        "'naive', 'bayes', 'coverage', 'sandwich', 'fisher-information', 'prior-information', "
        "'fitted-coverage'"
    ),
    "calibrate --model tree": (
        "Invalid value for '--model': 'tree' is not one of 'linear', 'known-variance', "
        "'polynomial', 'logistic'"
    ),
    "calibrate --for risk": (
        "Invalid value for '--for': 'risk' is not one of 'forecasts', 'coefficients', 'draws'"
    ),
    "calibrate --transfer n": "Invalid value for '--transfer': 'n' is not one of 'beta', 'alpha'",
    "calibrate --posterior exact": (
        "Invalid value for '--posterior': 'exact' is not one of 'mean-field', 'jaakkola', "
        "'laplace', 'full'"
    ),
    "calibrate --compare=yes": "Option '--compare' does not take a value",
    "calibrate --report": "Option '--report' requires an argument",
    "reproduce --repeats 1": "Invalid value for '--repeats': '1' is not an integer of at least 2",
    "reproduce --seed a": "Invalid value for '--seed': 'a' is not an integer of at least 0",
    "reproduce --jobs many": "Invalid value for '--jobs': 'many' is not an integer",
    "reproduce --version": "Option '--version' requires an argument",
    "reproduce --version new": (
        "Invalid value for '--version': 'new' is not one of 'as-stated', 'as-coded', 'both'"
    ),
    "reproduce --all=1": "Option '--all' does not take a value",
}


@pytest.mark.parametrize(("words", "message"), WRONG_OPTIONS.items(), ids=WRONG_OPTIONS)
def test_wrong_options_get_one_line(command, words, message):
    name, *_ = words.split()
    refused(command(*words.split()), f"{message}; see temperance {name} --help")


@pytest.mark.parametrize(
    ("words", "named"), [("--betta", "--betta"), ("one.csv two.csv", "two.csv")]
)
def test_words_without_a_place_get_one_line(command, words, named):
    done = command("calibrate", *words.split())
    assert (done.code, done.out) == (2, "")
    assert re.fullmatch(r"temperance: .*; see temperance calibrate --help\n", done.err)
    assert named in done.err


WRONG_VALUES = {
    "--jobs 0": "--jobs must be a number of workers, -1 for one on each core, got 0",
    "--page page.md": "--page page.md is the file of the verdicts; ask for --verdicts too",
    "--verdicts --page nowhere/page.md": (
        "--page nowhere/page.md lies in a directory that does not exist"
    ),
    "--out data.csv": "--out must name a directory, data.csv cannot be made: file exists",
    "--out /proc": "--out /proc cannot be written to: no such file or directory",
    "--verdicts --out made": "--page must name a file, made/reproduction.md is a directory",
}


@pytest.mark.parametrize(("words", "message"), WRONG_VALUES.items(), ids=WRONG_VALUES)
def test_wrong_values_are_refused_before_figures_are_made(command, words, message, monkeypatch):
    monkeypatch.setattr(reproduce, "_compared", pytest.fail)
    Path("data.csv").write_text(GOOD)
    Path("made/reproduction.md").mkdir(parents=True)
    refused(command("reproduce", "overfit_example", *words.split()), message)


def test_arguments_of_the_library_get_the_names_of_the_command():
    assert as_written("X and y must be long, got 1") == "the table must be long, got 1"
    assert as_written("X must be finite") == "the inputs must be finite"
    assert as_written("prior_scale must be positive") == "--prior-scale must be positive"
    assert as_written("bounded must stay") == "bounded must stay"


def test_a_directory_in_place_of_a_file_gets_one_line(command):
    Path("data.csv").mkdir()
    message = "'data.csv' is a directory; name a file in it"
    refused(command("calibrate", "data.csv", *TARGET), message)


def test_a_file_without_permission_gets_one_line(command, monkeypatch):
    def read_bytes(path):
        raise PermissionError(13, "Permission denied", str(path))

    Path("data.csv").touch()
    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    message = "there is no permission to read 'data.csv'"
    refused(command("calibrate", "data.csv", *TARGET), message)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_permission_is_asked_of_the_system(command):
    stored(houses(), "data.csv")
    Path("data.csv").chmod(0)
    message = "there is no permission to read 'data.csv'"
    refused(command("calibrate", "data.csv", *TARGET), message)
    Path("closed").mkdir(mode=0o500)
    message = (
        "--report closed/page.html lies in a directory that cannot be written to: permission denied"
    )
    refused(command("calibrate", "--report", "closed/page.html"), message)


class TestReportsThatCannotBeWritten:
    @pytest.fixture(autouse=True)
    def idle(self, monkeypatch):
        """Fail if any work is done."""
        monkeypatch.setattr(trials, "_trial", pytest.fail)

    @pytest.mark.parametrize(
        "path", ["nowhere/page.html", ".", "pipe", "data.csv", "/proc/page.html"]
    )
    def test_are_refused_before_the_work(self, on, path, monkeypatch):
        monkeypatch.setattr(Request, "table", pytest.fail)  # nor is the table read
        os.mkfifo("pipe")
        done = on(houses(), "price", "--report", path)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("temperance: --report ")
        assert stat.S_ISFIFO(os.stat("pipe").st_mode)

    def test_for_want_of_permission_too(self, on, monkeypatch):
        def refuse(**options):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
        message = (
            "--report page.html lies in a directory that cannot be written to: read-only file "
            "system"
        )
        refused(on(houses(), "price", "--report", "page.html"), message)


@pytest.mark.usefixtures("few_strategies")
def test_a_report_may_have_the_longest_name_that_there_is(on):
    name = "p" * 250 + ".html"
    assert on(houses(), "price", *QUICK, "--report", name).code == 0
    assert [each.name for each in Path().iterdir() if each.suffix == ".html"] == [name]


class TestDebug:
    def test_shows_the_traceback(self):
        done = run_apart("calibrate", "nothing.csv", "-t", "y", "--debug")
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.startswith("Traceback (most recent call last):\n")
        assert done.stderr.endswith("TableError: there is no file 'nothing.csv'\n")

    def test_lets_errors_through(self, command, monkeypatch):
        monkeypatch.setattr(sys, "argv", ["temperance", "calibrate", "-t", "y", "--debug"])
        with pytest.raises(TableError, match="there is no column 'y'"):
            main()


def test_the_unexpected_gets_one_line_and_a_code_of_its_own(command, monkeypatch):
    def broken(*arguments):
        raise RuntimeError("two\n  lines of [bold]trouble[/bold]")

    monkeypatch.setattr(trials, "_trial", broken)
    message = (
        "unexpected RuntimeError: two lines of [bold]trouble[/bold]; --debug shows where it came "
        "from"
    )
    refused(command("calibrate"), message, code=1)
    monkeypatch.setattr(sys, "argv", ["temperance", "calibrate", "--debug"])
    with pytest.raises(RuntimeError, match="trouble"):
        main()


@pytest.mark.usefixtures("few_strategies")
def test_errors_of_the_system_name_the_file(on, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device", "page.html")

    monkeypatch.setattr(os, "replace", full)
    done = on(houses(), "price", *QUICK, "--report", "page.html")
    refused(done, "page.html: no space left on device")


# --- the report as a file -------------------------------------------------------------------------


@pytest.mark.usefixtures("few_strategies")
class TestFile:
    def report(self, on, *words):
        return on(houses(), "price", *QUICK, "--report", "page.html", *words)

    def test_is_a_page_in_utf_8_that_the_output_names(self, on):
        frame = houses().rename(columns={"area": "Größe 温度"})
        done = on(frame, "price", *QUICK, "--report", "page.html")
        assert done.out.endswith("\nThe report is in page.html\n")
        text = Path("page.html").read_bytes().decode("utf-8")
        assert text.startswith("<!DOCTYPE html>")
        assert "price from 3 columns" in text and "Gr\\u00f6\\u00dfe" in text and "β" in text
        assert self.report(on, "--json").record["report"] == "page.html"

    @pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
    def test_has_the_permissions_of_other_new_files(self, on, umask, mode):
        before = os.umask(umask)
        try:
            self.report(on)
            assert os.umask(umask) == umask
        finally:
            os.umask(before)
        assert stat.S_IMODE(os.stat("page.html").st_mode) == mode

    def test_replaces_an_older_one_and_keeps_links(self, on):
        Path("deep").mkdir()
        Path("deep/old.html").write_text("old")
        Path("page.html").symlink_to("deep/old.html")
        assert self.report(on).code == 0
        assert Path("page.html").is_symlink()
        assert Path("deep/old.html").read_text(encoding="utf-8").startswith("<!DOCTYPE")
        assert sorted(os.listdir("deep")) == ["old.html"]

    @pytest.mark.parametrize(
        ("owner", "name", "error", "code"),
        [
            (temperance.app.report, "render", RuntimeError("no words"), 1),
            (temperance.app.report, "compute", ValueError("no numbers"), 2),
            (os, "replace", OSError(5, "Input/output error"), 2),
            (os, "chmod", KeyboardInterrupt(), 130),
            (os, "replace", KeyboardInterrupt(), 130),
        ],
    )
    @pytest.mark.parametrize("older", [True, False])
    def test_is_whole_or_as_it_was(self, on, monkeypatch, older, owner, name, error, code):
        def fail(*arguments):
            raise error

        monkeypatch.setattr(owner, name, fail)
        if older:
            Path("page.html").write_text("older")
        done = self.report(on)
        assert (done.code, done.out) == (code, "")
        assert len(done.err.splitlines()) == 1
        assert sorted(os.listdir()) == ["data.csv", "page.html"][: 1 + older]
        assert not older or Path("page.html").read_text() == "older"


# --- progress and interruption --------------------------------------------------------------------

SLOWED = """
import sys, time
from temperance.app.cli import console, main, trials

console.QUIET_SECONDS, trial = 0.2, trials._trial

def slowly(*arguments):
    time.sleep(0.8)
    return trial(*arguments)

trials._trial = slowly
main()
"""


# However slow the machine, this is over before the bar shows itself.
PATIENT = """
from temperance.app.cli import console, main

console.QUIET_SECONDS = 600
main()
"""


def on_terminal(*words, script=None):
    """Run with stderr on a terminal; returns the exit code, stdout and what the terminal got."""
    head = ["-m", "temperance"] if script is None else ["-c", script]
    controller, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        [sys.executable, *head, *words], stdout=subprocess.PIPE, stderr=terminal, env=environment
    )
    os.close(terminal)
    seen = b""
    while True:
        try:
            got = os.read(controller, 65536)
        except OSError:  # how Linux says that nobody holds the other end
            break
        if not got:
            break
        seen += got
    os.close(controller)
    out = process.communicate(timeout=60)[0]
    return process.returncode, out.decode(), seen.decode()


def test_names_cannot_command_the_terminal(on):
    frame = visits(24)[["dose", "healed"]].rename(columns={"healed": "he\x1b[31maled"})
    frame["he\x1b[31maled"] = frame["he\x1b[31maled"].map(lambda label: f"{label}\x1b[2J")
    done = on(frame, "he\x1b[31maled", *LAPLACE)
    assert "\x1b" not in done.out
    assert "he\\x1b[31maled" in done.out


class TestProgress:
    WORDS = ("calibrate", "data.csv", "--target", "price", *QUICK)

    @pytest.fixture(autouse=True)
    def data(self):
        stored(houses(), "data.csv")

    def test_is_shown_on_a_terminal_and_taken_away(self):
        code, out, seen = on_terminal(*self.WORDS, "--json", script=SLOWED)
        assert code == 0
        assert json.loads(out)["rows"] == 40
        assert re.search(r"(reading|bayes) .*0/\? .*0:00:0\d", ANSI.sub("", seen))
        assert seen.endswith("\x1b[1A\x1b[2K")  # up to its line, and that line is wiped

    def test_is_not_shown_for_quick_work(self):
        code, out, seen = on_terminal(*self.WORDS, script=PATIENT)
        assert (code, seen) == (0, "")
        assert ANSI.search(out) is None

    def test_is_shown_on_terminals_only(self, command, monkeypatch):
        monkeypatch.setattr(console, "QUIET_SECONDS", 0.0)
        done = command(*self.WORDS)
        assert (done.code, done.err) == (0, "")
        assert ANSI.search(done.out) is None
        assert "\r" not in done.out

    def test_errors_are_one_line_on_a_terminal(self):
        code, out, seen = on_terminal("calibrate", "data.csv", "-t", "prise", script=PATIENT)
        assert (code, out) == (2, "")
        assert (
            ANSI.sub("", seen)
            .strip()
            .startswith("temperance: there is no column 'prise' for --target")
        )
        assert seen.count("\n") == 1

    @pytest.mark.parametrize("words", [[], ["--compare"], ["--report", "page.html"]])
    def test_counts_every_step(self, command, monkeypatch, words):
        counted = []

        class Steps:
            def expect(self, total):
                counted.append(total)

            def __enter__(self):
                return self

            def __exit__(self, *failure):
                pass

            def say(self, doing):
                assert isinstance(doing, str)

            def step(self):
                counted.append(1)

        monkeypatch.setattr(trials, "Steps", Steps)
        assert command(*self.WORDS, *words).code == 0
        assert counted[0] == len(counted) - 1


INTERRUPTED = """
import signal
from temperance.app.cli import console, installed, main, trials

signal.signal(signal.SIGINT, signal.default_int_handler)
trial = trials._trial

def announced(*arguments):
    print("working", flush=True)
    return trial(*arguments)

trials._trial = announced
main()
"""


def test_an_interrupt_leaves_one_line_and_nothing_else():
    stored(visits(300), "data.csv")
    words = ("data.csv", "-t", "healed", "-s", "bootstrap", "--report", "page.html")
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, "calibrate", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "working\n"
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "temperance: interrupted\n")
    assert os.listdir() == ["data.csv"]


@pytest.mark.parametrize(
    "words",
    [
        ["calibrate", "data.csv", "-t", "price", *QUICK],
        ["predict", "saved.json", "data.csv"],
        pytest.param(["calibrate", "--help"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_a_reader_that_has_seen_enough_gets_no_complaint(words, command):
    stored(houses(), "data.csv")
    command("calibrate", "data.csv", "-t", "price", *QUICK, "--save", "saved.json")
    # A pipe whose reader has gone before the first word, however slow the machine is.
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "temperance", *words], stdout=writer, stderr=subprocess.PIPE
        )
    finally:
        os.close(writer)
    assert (done.stderr, done.returncode) == (b"", 141)


def test_an_interrupt_before_the_work_leaves_one_line_too(command, monkeypatch):
    def interrupted(**options):
        raise KeyboardInterrupt

    monkeypatch.setattr("temperance.app.cli.app.app", interrupted)
    refused(command("calibrate"), "interrupted", code=130)


def with_commands(monkeypatch, *entries):
    monkeypatch.setattr(
        installed, "entry_points", lambda group: entries if group == "temperance.commands" else ()
    )
    app = typer.Typer()
    app.callback()(lambda: None)
    installed.add_installed(app)
    return app


def test_reproduce_says_what_to_install_where_its_package_is_missing(monkeypatch, capsys):
    app = with_commands(monkeypatch)
    assert app(["reproduce", "--all", "--jobs", "2"], standalone_mode=False) == 2
    assert "pip install temperance-studies" in capsys.readouterr().err


def test_commands_of_other_packages_are_found_by_their_entry_points(monkeypatch, capsys):
    class Entry:
        name = "reproduce"

        @staticmethod
        def load():
            return lambda: print("found")

    with_commands(monkeypatch, Entry)(["reproduce"], standalone_mode=False)
    assert capsys.readouterr().out == "found\n"
