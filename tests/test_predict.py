"""A choice that is saved forecasts what the estimator forecasts, and a file is never trusted."""

from __future__ import annotations

import copy
import io
import json
import re
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import temperance
from temperance import estimators
from temperance.app.cli import main
from temperance.app.cli.console import Output
from temperance.app.cli.display import BETAS, _ranked_grid
from temperance.app.cli.predict import forecasts
from temperance.app.saved import choice
from temperance.app.saved import estimators as plain
from temperance.app.saved import posteriors as posteriors
from temperance.app.saved.record import Record
from temperance.app.tables import prepare
from temperance.posteriors import CovarianceRoot, LowRankRoot, MixturePosterior

pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")

# The estimators as the command asks for them, which is for forecasts.
Regressor = partial(estimators.GibbsRegressor, random_state=0)
Classifier = partial(estimators.GibbsClassifier, random_state=0)


@pytest.fixture(autouse=True)
def plain_surroundings(monkeypatch, tmp_path):
    for name in ("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def command(monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["temperance", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        return SimpleNamespace(code=left.value.code, out=out, err=err)

    return run


def houses(n=40, columns=2):
    random = np.random.default_rng(7)
    X = random.normal(100, 30, (n, columns))
    place = random.choice(["bay", "inland", "ocean"], n, p=[0.2, 0.3, 0.5])
    new = random.random(n) < 0.4
    sold = pd.date_range("2020-01-01", periods=n, freq="36h").strftime("%Y-%m-%dT%H:%M")
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(columns)])
    weight = random.integers(0, 3, n)
    price = 3 * X[:, 0] - 50 * (place == "inland") + 20 * new + 40 * random.normal(size=n)
    return frame.assign(place=place, new=new, sold=sold, weight=weight, price=price)


def visits(n=40, classes=("no", "yes")):
    frame = houses(n).drop(columns="price")
    noise = np.random.default_rng(8).normal(size=n)
    order = np.argsort(np.argsort(frame["x0"] / 30 + noise))
    return frame.assign(healed=np.array(classes)[order * len(classes) // n])


CASES = {
    "linear": (houses(), Regressor(), ()),
    "known": (houses(), Regressor(noise_variance=1600.0), ("--noise-variance", "1600")),
    "square": (houses(), Regressor(degree=2), ("--model", "polynomial")),
    "no constant": (houses(), Regressor(fit_intercept=False), ("--no-intercept",)),
    "raw": (houses(), Regressor(standardize=False), ("--no-standardize",)),
    "wide": (houses(12, 30), Regressor(), ()),
    "copies": (
        houses().assign(x2=lambda frame: frame["x1"], flat=1.0)[
            ["x0", "flat", "x1", "x2", "place", "new", "sold", "weight", "price"]
        ],
        Regressor(),
        (),
    ),
    "yes or no": (visits(), Classifier(), ()),
    "true or false": (visits(classes=(False, True)), Classifier(posterior="laplace"), ("laplace",)),
    "numbers": (visits(classes=(2, 7)), Classifier(posterior="jaakkola"), ("jaakkola",)),
    "wide classes": (
        houses(14, 30).assign(price=lambda frame: frame["price"] > 300),
        Classifier(posterior="full"),
        ("full",),
    ),
    "three": (visits(classes=("a", "b", "c")), Classifier(), ()),
}


def saved(command, name="linear", *more):
    """Save a choice, and return the table with the estimator that was fitted to it."""
    frame, estimator, words = CASES[name]
    if words and words[0] in ("laplace", "jaakkola", "full"):
        words = ("--posterior", *words)
    frame.to_csv("data.csv", index=False)
    target = frame.columns[-1]
    done = command("calibrate", "data.csv", "-t", target, "--weights", "weight",
                   "--dates-as-days", "--save", "saved.json", *words, *more)  # fmt: skip
    assert (done.code, done.err) == (0, "")
    table = prepare(frame, target, name="data.csv", weights="weight", dates_as_days=True)
    fitted = estimator.fit(table.inputs, table.target, sample_weight=table.weights)
    return table, fitted


def refused(done, message, code=2):
    assert (done.out, done.err, done.code) == ("", f"temperance: {message}\n", code)


class TestForecasts:
    @pytest.mark.parametrize("name", CASES)
    def test_are_those_of_the_estimator(self, command, name):
        table, fitted = saved(command, name)
        levels = () if hasattr(fitted, "classes_") else ("--level", "0.9", "--level", ".5")
        done = command("predict", "saved.json", "data.csv", *levels)
        assert (done.code, done.err) == (0, "")
        found = pd.read_csv(io.StringIO(done.out))
        assert found["row"].tolist() == list(range(1, len(table.target) + 1))
        if hasattr(fitted, "classes_"):
            assert list(found)[2:] == [f"p({label})" for label in fitted.classes_]
            probabilities = fitted.predict_proba(table.inputs)
            np.testing.assert_allclose(found.iloc[:, 2:], probabilities, rtol=1e-11)
            assert found["forecast"].tolist() == fitted.predict(table.inputs).tolist()
        else:
            law = fitted.forecast(table.inputs)
            assert list(found)[1:] == ["forecast", "low_90", "high_90", "low_50", "high_50"]
            expected = np.column_stack([law.mean, law.interval(0.9), law.interval(0.5)])
            np.testing.assert_allclose(found.iloc[:, 1:], expected, rtol=1e-11)

    def test_of_any_file_with_the_columns(self, command):
        saved(command)
        words = ("predict", "saved.json")
        whole = command(*words, "data.csv").out
        assert whole.splitlines()[0] == "row,forecast,low_95,high_95"
        assert whole == command(*words, "data.csv", "--out", "-").out
        frame = pd.read_csv("data.csv").drop(columns="price")
        frame.iloc[:, ::-1].assign(note="?").to_parquet("other.parquet")
        assert command(*words, "other.parquet").out == whole
        frame.head(1).to_csv("one.csv", sep=";", decimal=",", index=False)
        first = pd.read_csv(io.StringIO(command(*words, "one.csv").out))
        np.testing.assert_allclose(first, pd.read_csv(io.StringIO(whole)).head(1), rtol=1e-12)

    def test_of_a_single_column(self, command):
        houses()[["x0", "price"]].to_csv("data.csv", index=False)
        assert command("calibrate", "data.csv", "-t", "price", "--save", "saved.json").code == 0
        Path("new.csv").write_text("x0\n100\n")
        assert command("predict", "saved.json", "new.csv").out.startswith("row,forecast")

    @pytest.mark.parametrize("name", ["[red]out.csv", "out.parquet"])
    def test_go_to_a_file_of_the_kind_that_its_name_says(self, command, name):
        saved(command)
        printed = pd.read_csv(io.StringIO(command("predict", "saved.json", "data.csv").out))
        done = command("predict", "saved.json", "data.csv", "--out", name)
        assert (done.code, done.err) == (0, "")
        assert done.out == f"Forecasts of 40 rows are in {name}\n"
        read = pd.read_csv if name.endswith("csv") else pd.read_parquet
        pd.testing.assert_frame_equal(read(name), printed)

    def test_rows_that_are_not_known(self, command):
        saved(command)
        frame = pd.read_csv("data.csv").head(4)
        frame.loc[1, "place"] = "moon"
        frame.loc[2, "x1"] = np.nan
        frame.to_csv("new.csv", index=False)
        said = (
            "data row 3 with missing values, in 'x1'; data row 2 with a level of 'place' that the"
            " model has not seen: 'moon'"
        )
        refused(
            command("predict", "saved.json", "new.csv"),
            f"{said}; --skip-unknown leaves such rows out",
        )
        done = command("predict", "saved.json", "new.csv", "--skip-unknown")
        assert done.code == 0
        assert pd.read_csv(io.StringIO(done.out))["row"].tolist() == [1, 4]
        assert done.err.splitlines() == [
            f"temperance: Left out: {each}" for each in said.split("; ")
        ]

    def test_that_are_too_large(self, command):
        saved(command)
        record = json.loads(Path("saved.json").read_text())
        record["model"]["response"] = {"centre": [1e308], "unit": [1e308]}
        Path("saved.json").write_text(json.dumps(record))
        done = command("predict", "saved.json", "data.csv")
        assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)


class TestOptions:
    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--level", "95"], "--level must lie between 0 and 1, got 95.0"),
            (["--level", "0"], "--level must lie between 0 and 1, got 0.0"),
            (["--out", "data.csv"], "--out would overwrite data.csv"),
            (["--out", "saved.json"], "--out would overwrite saved.json"),
            (["--out", "."], "--out must name a file, . is a directory"),
            (["--out", "no/x.csv"], "--out no/x.csv lies in a directory that does not exist"),
        ],
    )
    def test_of_predict(self, command, words, message):
        saved(command)
        before = Path("data.csv").read_bytes(), Path("saved.json").read_bytes()
        refused(command("predict", "saved.json", "data.csv", *words), message)
        assert (Path("data.csv").read_bytes(), Path("saved.json").read_bytes()) == before

    def test_classes_have_no_intervals(self, command):
        saved(command, "yes or no")
        refused(
            command("predict", "saved.json", "data.csv", "--level", "0.5"),
            "--level is for forecasts of numbers; this model gives the probability of each class",
        )

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--save", "data.csv"], "--save would overwrite the data in data.csv"),
            (
                ["--save", "x", "--report", "./x"],
                "--save and --report name the same file, x",
            ),
            (["--save", "no/x"], "--save no/x lies in a directory that does not exist"),
        ],
    )
    def test_of_saving(self, command, words, message):
        houses().drop(columns="sold").to_csv("data.csv", index=False)
        refused(command("calibrate", "data.csv", "-t", "price", *words), message)

    def test_what_is_written_is_said(self, command):
        houses().drop(columns="sold").to_csv("data.csv", index=False)
        words = ("calibrate", "data.csv", "-t", "price", "--save", "saved.json")
        assert command(*words).out.endswith("\nThe choice is in saved.json\n")
        record = json.loads(Path("saved.json").read_text())
        assert record["about"]["command"].startswith("temperance calibrate data.csv")
        assert record["about"]["seed"] == 0
        first = Path("saved.json").read_bytes()
        assert json.loads(command(*words, "--json").out)["saved"] == "saved.json"
        assert Path("saved.json").read_bytes() == first


# --- files that anybody may have written ----------------------------------------------------------


BAD_FILES = {
    "empty": (b"", "'saved.json' is empty"),
    "csv": (b"x,y\n1,2\n", "{} line 1 is not JSON"),
    "bytes": (bytes(range(128, 256)), "{} it is not text"),
    "list": (b"[1]", "{} the whole must be an object, got a list"),
    "no format": (b"{}", "{} format is not there"),
    "an older format": (
        b'{"format": 1, "version": "0.1.0"}',
        f"'saved.json' has format 1, and temperance {temperance.__version__} reads format 2: write "
        "it again with temperance calibrate --save\n",
    ),
    "another format": (b'{"format": 99}', "'saved.json' has format 99, and temperance "),
    "true format": (b'{"format": true}', "{} format must be a whole number of at least 0, got Tr"),
    "nan": (b'{"format": NaN}', "{} NaN is no number"),
    "deep": (b"[" * 100_000, "{} it is nested too deeply"),
    "long": (b'{"format": ' + b"1" * 5000 + b"}", "{} "),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_get_one_line(command, name):
    content, message = BAD_FILES[name]
    Path("saved.json").write_bytes(content)
    Path("data.csv").write_text("x,y\n1,2\n")
    done = command("predict", "saved.json", "data.csv")
    start = "'saved.json' is no choice that --save has written:"
    assert done.err.startswith(f"temperance: {message.format(start)}")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)


def places(value, way=()):
    """Yield the way to every value, of lists only the ends."""
    yield way
    if isinstance(value, dict):
        for name in value:
            yield from places(value[name], (*way, name))
    elif isinstance(value, list) and value:
        for at in {0, len(value) - 1}:
            yield from places(value[at], (*way, at))


HOSTILE = [..., None, True, -1, 1e308, 10**400, "x", [], [[1], [1, 2]], {}, ["x", "x"]]


@pytest.mark.parametrize(
    "name", ["wide", "yes or no", pytest.param("three", marks=pytest.mark.slow)]
)
def test_a_file_that_was_changed_is_refused_or_forecasts(command, name):
    table, _ = saved(command, name)
    record = json.loads(Path("saved.json").read_text())
    inputs = table.inputs.head(2)
    refusals = 0
    for number, way in enumerate(places(record)):
        # Three of the values at each place, in turn; ... takes the place away.
        for value in HOSTILE[number % 4 :: 4]:
            if not way or way[0] == "about":
                continue
            changed = copy.deepcopy(record)
            inside = changed
            for step in way[:-1]:
                inside = inside[step]
            if value is ...:
                del inside[way[-1]]
            else:
                inside[way[-1]] = value
            Path("changed.json").write_text(json.dumps(changed))
            try:
                read = choice.read(Path("changed.json"))
            except ValueError as error:
                assert "\n" not in str(error)
                refusals += 1
                continue
            # What is accepted has the shapes of a choice; its names may be others.
            assert len(read.fitted.feature_names_in_) == inputs.shape[1]
            renamed = inputs.set_axis(read.fitted.feature_names_in_, axis="columns")
            try:
                forecasts(read.fitted, renamed, [])
            except ValueError as error:
                assert "\n" not in str(error)
    assert refusals > 60


class TestPlainPosteriors:
    @pytest.mark.parametrize("name", ["known", "wide", "wide classes", "three"])
    def test_come_back_as_they_were(self, name):
        frame, estimator, _ = CASES[name]
        table = prepare(frame.drop(columns="sold"), frame.columns[-1], name="data")
        fitted = estimator.fit(table.inputs, table.target)
        written = json.loads(json.dumps(plain.as_plain(fitted), allow_nan=False))
        read = plain.from_plain(Record(written), list(table.inputs.columns))
        one, back = fitted.calibration_.posterior, read.calibration_.posterior
        assert posteriors.as_plain(back) == written["posterior"]
        assert type(back) is type(one)
        # Sums of arrays that lie otherwise in memory are rounded otherwise.
        np.testing.assert_allclose(back.mean, one.mean, rtol=1e-12, atol=1e-15)
        laws = back.marginals(), one.marginals()
        ends = [law.interval([0.5, 0.95]) for law in laws]
        np.testing.assert_allclose(*ends, rtol=1e-12)

    @pytest.mark.parametrize("columns", [[0, 2], [1, 2], [-2, 0], [0, 0.5], [0], [0, 10**30]])
    def test_columns_that_do_not_number_those_of_the_model_are_refused(self, columns):
        fitted = Regressor().fit(np.arange(24.0).reshape(12, 2) ** 1.5, np.arange(12.0) % 5)
        written = plain.as_plain(fitted)
        assert written["columns"] == [0, 1]
        with pytest.raises(ValueError, match="^columns must "):
            plain.from_plain(Record({**written, "columns": columns}), ["a", "b"])

    def test_wide_data_keep_their_roots_small(self):
        frame, *_ = CASES["wide"]
        table = prepare(frame.drop(columns="sold"), "price", name="data")
        one = Regressor(prior_scale=1.0, strategy="bayes").fit(table.inputs, table.target)
        root = one.calibration_.posterior.root
        assert isinstance(root, LowRankRoot)
        assert posteriors.as_plain(root)["kind"] == "low-rank root"

    def test_a_mixture_is_written_as_its_parts(self):
        parts = [CovarianceRoot(np.array([1.0, k])) for k in (2.0, 3.0)]
        written = posteriors.as_plain(MixturePosterior(np.array([0.25, 0.75]), parts))
        back = posteriors.from_plain(Record(json.loads(json.dumps(written))))
        np.testing.assert_array_equal(back.weights, [0.25, 0.75])
        assert [part.outer.tolist() for part in back.parts] == [[1, 2], [1, 3]]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"weights": [0.25, 0.7]}, "weights must have the sum 1, got 0.95"),
            ({"weights": [1.0]}, "parts must be 1 of one kind"),
        ],
    )
    def test_a_mixture_that_is_none_is_refused(self, change, message):
        parts = [CovarianceRoot(np.array([1.0, k])) for k in (2.0, 3.0)]
        written = posteriors.as_plain(MixturePosterior(np.array([0.25, 0.75]), parts))
        with pytest.raises(ValueError, match=message):
            posteriors.from_plain(Record({**written, **change}))

    def test_other_kinds_are_refused(self):
        with pytest.raises(ValueError, match="posterior cannot be stored, got object"):
            posteriors.as_plain(object())
        with pytest.raises(ValueError, match="kind must be one of '.*', got 'pickle'"):
            posteriors.from_plain(Record({"kind": "pickle"}))


# --- what is printed ------------------------------------------------------------------------------


def fits(text, width=80):
    """Whether lines end with a word within the width, and nothing was cut off."""
    lines = text.splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert max(map(len, lines)) <= width
    assert "…" not in text


class TestEightyColumns:
    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("linear", ("--compare", "--save", "saved.json")),
            ("yes or no", ("--posterior", "laplace")),
            ("three", ("--posterior", "laplace")),
        ],
    )
    def test_lines_fit_and_end_with_a_word(self, command, name, words):
        frame, _, _ = CASES[name]
        frame.to_csv("data.csv", index=False)
        words = ("-t", frame.columns[-1], "--drop", "sold", *words)
        done = command("calibrate", "data.csv", *words)
        assert (done.code, done.err) == (0, "")
        fits(done.out)
        assert "alibrated" not in done.out
        assert (re.search(" chosen beta +gain over", done.out) is not None) == (
            "--compare" in words
        )

    @pytest.mark.parametrize("betas", ["0.0342", "0.163, 0.0899, 0.0598"])
    def test_only_betas_are_broken_in_a_ranking(self, betas, capsys):
        row = ("6", "a-strategy-of-a-long-name", betas, "-0.02214 ± 0.00854", "-0.69596 ± 0.00185",
               "46.5%")  # fmt: skip
        heads = ("", "strategy", "chosen beta", "gain over Bayes", "log score", "right")
        Output().print(_ranked_grid([heads, row], "k-fold", 80))
        text = capsys.readouterr().out
        fits(text)
        assert all(cell in text for cell in (*row[:2], *row[3:]))
        assert [word for word in text.split() if word.strip(",") in betas.split(", ")] == (
            betas.split()
        )

    def test_colours_leave_no_blanks_either(self, monkeypatch, capsys):
        monkeypatch.setenv("FORCE_COLOR", "1")
        grid = _ranked_grid([("", BETAS), ("a", "b")], BETAS, 80)
        Output().print(grid)
        assert not re.search(r" (\x1b\[[0-9;]*m)*$", capsys.readouterr().out, re.M)

    def test_the_class_that_is_modelled_is_said(self, command):
        visits().to_csv("data.csv", index=False)
        words = (
            "calibrate",
            "data.csv",
            "-t",
            "healed",
            "--drop",
            "sold",
            "--posterior",
            "laplace",
        )
        out = command(*words).out
        assert "\nclass     probability of healed = yes, against no\n" in out
        record = json.loads(command(*words, "--json").out)
        assert record["settings"]["class"] == "probability of healed = yes, against no"
