"""The command with other losses: numbers, reports, saved choices, and one line for misfits."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from browser import Visit
from scipy import stats

from temperance.app.cli import main, trials
from temperance.app.cli.predict import forecasts
from temperance.app.held_out import coverage, hold_out
from temperance.app.saved import choice
from temperance.app.tables import prepare
from temperance.estimators import GibbsClassifier, GibbsRegressor
from temperance.strategies import rate

pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")


def table(n=40):
    random = np.random.default_rng(0)
    a = random.normal(size=n)
    mean = np.exp(0.7 + 0.5 * a)
    return pd.DataFrame(
        {
            "a": a,
            "visits": random.negative_binomial(2, 2 / (2 + mean)),
            "healed": np.where(a + random.normal(size=n) > 0, "yes", "no"),
            "price": 300 + 50 * a + 40 * random.standard_t(3, size=n),
        }
    )


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Run the command in this process on the table, with few strategies and folds."""
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trials, "NAMES", ("k-fold", "bayes"))
    monkeypatch.setattr(trials, "N_HELD_OUT_FOLDS", 2)
    monkeypatch.setattr(rate, "BLOCKS", 2)
    table().to_csv("table.csv", index=False)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["temperance", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        return SimpleNamespace(code=left.value.code, out=out, err=err)

    return run


def asked(target, *words):
    others = [name for name in ("visits", "healed", "price") if name != target]
    drops = [word for name in others for word in ("--drop", name)]
    return ["calibrate", "table.csv", "-t", target, *drops, *words]


# The weak prior of numbers saves the search for its scale.
CASES = {
    "quantile": ("price", ["--loss", "quantile", "--quantile", "0.6"]),
    "huber": ("price", ["--loss", "huber"]),
    "student-t": ("price", ["--loss", "student-t", "--prior-scale", "1"]),
    "poisson": ("visits", ["--loss", "poisson", "--prior-scale", "1"]),
    "negative-binomial": ("visits", ["--loss", "negative-binomial", "--prior-scale", "1"]),
    "probit": ("healed", ["--loss", "probit", "--posterior", "laplace", "--prior-scale", "1"]),
    "hinge": ("healed", ["--loss", "hinge"]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_saved_choice_forecasts_what_the_estimator_does(command, name):
    target, words = CASES[name]
    strategy = [] if name in ("quantile", "huber", "hinge") else ["-s", "k-fold"]
    done = command(*asked(target, *words, *strategy, "--save", "saved.json"))
    assert (done.code, done.err) == (0, "")
    frame = table()
    options = {"loss": name, "strategy": strategy[-1] if strategy else None}
    if target == "healed":
        posterior = "laplace" if name == "probit" else None
        model = GibbsClassifier(posterior=posterior, **options)
    else:
        model = GibbsRegressor(quantile=0.6 if name == "quantile" else 0.5, **options)
    if "--prior-scale" in words:
        model.set_params(prior_scale=1.0)
    fitted = model.fit(frame[["a"]], frame[target])
    stored = choice.read(Path("saved.json")).fitted
    inputs = frame[["a"]].iloc[:5]
    levels = [] if target == "healed" else [0.5, 0.95]
    ours, theirs = (forecasts(each, inputs, levels) for each in (fitted, stored))
    pd.testing.assert_frame_equal(ours, theirs, check_exact=False, rtol=1e-9)
    predicted = command("predict", "saved.json", "table.csv")
    assert (predicted.code, predicted.err) == (0, "")
    assert len(predicted.out.splitlines()) == 1 + len(frame)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quantile", "hinge"])
def test_no_word_of_bayes_in_output_and_report(command, tmp_path, name, browser):
    target, words = CASES[name]
    done = command(*asked(target, *words, "--compare", "--report", "page.html"))
    assert (done.code, done.err) == (0, "")
    assert "k-fold" in done.out
    assert "Bayes" not in done.out
    page = (tmp_path / "page.html").read_text()
    script = page.rindex("<script")
    assert "Bayes" not in page[:script]  # all but the script's own words
    data = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    assert data["bayes"] is False
    assert data["held_out"]["kind"] == "losses"
    if name == "hinge":
        record = command(*asked(target, *words, "-s", "k-fold", "--json"))
        assert "Bayes" not in record.out
        assert json.loads(record.out)["results"][0]["gain"] is None
        return
    assert "pinball loss per row (lower is better)" in page
    assert "responses at or below the line, in % (60 is right)" in page
    assert "Fitted 0.6 quantile and its 95 % credible band" in page
    visit = Visit(browser, tmp_path / "page.html")
    assert visit.said == []
    assert visit.page.locator("#band-area").count() == 1
    assert visit.page.locator("#band-bayes").count() == 0
    assert visit.page.locator(".bayes-fill").count() == 0
    assert visit.page.locator("#reliability-chart").count() == 0
    assert "Bayes" not in visit.page.locator("main").inner_text()
    before = visit.state()
    visit.slide(3)
    assert visit.state() != before
    visit.close()


def test_rows_held_out_of_a_quantile():
    frame = table()
    X, y = frame[["a"]].to_numpy(), frame["price"].to_numpy()
    model = GibbsRegressor(loss="quantile", quantile=0.6, target="draws", strategy="sandwich")
    held = hold_out(model, X, y, n_folds=3)
    assert held.bayes is None
    assert held.gains is None
    share = held.mean(held.calibrated.below)[0]
    assert share == pytest.approx(0.6, abs=4 * np.sqrt(0.24 / len(y)))
    # At most q above the line and 1 - q below it, whatever the line.
    assert (held.calibrated.loss >= 0).all()


def test_coverage_of_counts_is_their_level():
    law = stats.poisson(1.3)
    counts = np.arange(60)
    place = np.column_stack([law.cdf(counts - 1), law.cdf(counts)])
    for level in (0.1, 0.5, 0.95):
        assert law.pmf(counts) @ coverage(place, level) == pytest.approx(level)


MISFITS = {
    "poisson of prices": (
        asked("price", "--loss", "poisson"),
        "the target, 'price', must hold counts 0, 1, 2, ..., got ",
    ),
    "quantile alone": (asked("price", "--quantile", "0.9"), "--quantile is for --loss quantile"),
    "no quantile": (
        asked("price", "--loss", "quantile", "--quantile", "2"),
        "--quantile must ",
    ),
    "hinge of a linear model": (
        asked("healed", "--loss", "hinge", "--model", "linear"),
        "--loss hinge is for the model logistic, not linear",
    ),
    "known noise": (
        asked("price", "--loss", "huber", "--noise-variance", "3"),
        "--loss huber is for the model linear or polynomial, not known-variance",
    ),
    "forecasts": (
        asked("price", "--loss", "huber", "--for", "forecasts"),
        "--for forecasts is for likelihoods, and --loss huber is none",
    ),
    "bayes": (
        asked("price", "--loss", "quantile", "-s", "bayes"),
        "--strategy bayes is for likelihoods, and --loss quantile is none",
    ),
    "reference": (
        asked("visits", "--loss", "poisson", "-s", "reference-risk"),
        "--strategy reference-risk is for --loss squared, not poisson",
    ),
    "jaakkola": (
        asked("healed", "--loss", "probit", "--posterior", "jaakkola"),
        "--posterior jaakkola is for --loss logistic, not probit",
    ),
    "laplace": (
        asked("healed", "--loss", "hinge", "--posterior", "laplace"),
        "--posterior laplace is not for --loss hinge, which has no curvature",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_misfits_are_one_line(command, name):
    words, message = MISFITS[name]
    done = command(*words)
    assert done.code == 2
    assert done.err.startswith(f"temperance: {message}")
    assert done.err.count("\n") == 1


def test_bounds_have_the_units_of_the_loss():
    frame = table()
    X, y = frame[["a"]], frame["price"]

    def model(unit):
        options = {"loss": "quantile", "target": "draws", "strategy": "sandwich"}
        return GibbsRegressor(**options).fit(X, unit * y)

    one, small = model(1.0), model(1e-4)
    assert small.inverse_temperature_ == pytest.approx(1e4 * one.inverse_temperature_, rel=1e-4)
    assert small.inverse_temperature_ > 3
    assert not small.calibration_.at_bound


@pytest.fixture(scope="module")
def saved():
    prepared = prepare(table()[["a", "price"]], "price", name="table")
    model = GibbsRegressor(loss="quantile", target="draws", strategy="naive")
    return choice.written(model.fit(prepared.inputs, prepared.target), prepared, {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "square"}, "loss.name must be one of"),
        ({"name": "poisson"}, "must be that of a regressor"),
        ({"name": "hinge"}, "must be that of a regressor"),
        ({"quantile": 2.0}, "quantile must"),
        ({"quantile": "0.9"}, "loss.quantile must be a number"),
    ],
)
def test_a_saved_loss_is_not_trusted(saved, tmp_path, change, message):
    record = json.loads(saved)
    record["model"]["posterior"]["loss"] |= change
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match=message) as refused:
        choice.read(path)
    assert "\n" not in str(refused.value)
