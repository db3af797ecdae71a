"""``temperance reproduce``: the command around figures, study and verdicts."""

from __future__ import annotations

import io
import re
import sqlite3
import sys
import time
from dataclasses import dataclass

import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from temperance.app.cli import console
from temperance.app.cli.app import app
from temperance.strategies import Bayes, KFold
from temperance_studies.settings import GaussianNoise, MeanSetting
from temperance_studies.study import Comparison, compare
from temperance_studies.thesis import command as reproduce
from temperance_studies.thesis import comparisons as cli_comparisons
from temperance_studies.thesis import verdicts
from temperance_studies.thesis.figures import FIGURES
from temperance_studies.thesis.settings import thesis_settings


@pytest.fixture
def command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        return CliRunner(env={"COLUMNS": "100"}).invoke(app, ["reproduce", *map(str, words)])

    return run


def test_the_list_names_every_figure(command):
    done = command("--list")
    assert done.exit_code == 0
    for label in FIGURES:
        assert re.search(rf"^{label} ", done.stdout, re.M), label


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name a figure, or give --all, --verdicts or --list"),
        (("joyplot",), "there is no figure 'joyplot'; did you mean joyplot_linreg1?"),
        (("zzz",), "there is no figure 'zzz'; --list shows all"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(command, words, message, tmp_path):
    done = command(*words)
    assert (done.exit_code, done.stderr) == (2, f"temperance: {message}\n")
    assert list(tmp_path.iterdir()) == []


def test_a_figure_is_its_table_and_two_pictures(command, tmp_path):
    done = command("gaussian_plots", "--repeats", 2, "--version", "as-coded", "--jobs", 1)
    assert done.exit_code == 0, done.stderr
    lines = (
        r" +\d+\.\d s  comparisons\n +\d+\.\d s  gaussian_plots-as-coded\n +\d+\.\d s  figures\n"
    )
    assert re.fullmatch(lines, done.stdout)
    assert done.stderr == ""
    out = tmp_path / "reproduction"
    stem = "gaussian_plots-as-coded"
    assert {path.name for path in out.iterdir() if path.is_file()} == {
        f"{stem}.{kind}" for kind in ("csv", "png", "svg")
    }
    table = pd.read_csv(out / f"{stem}.csv")
    assert set(table.repetition.dropna()) == {0, 1}
    direct = FIGURES["gaussian_plots"].compute(2, 0, "as-coded")
    pd.testing.assert_frame_equal(table, direct, check_dtype=False)


def test_figures_share_results_and_a_second_run_computes_nothing(command, tmp_path, monkeypatch):
    words = ("linreg1_boxplot", "--repeats", 2, "--version", "as-stated", "--jobs", 1)
    assert command(*words).exit_code == 0
    (store,) = (tmp_path / "reproduction" / "results").glob("linear-40-40-8-*-0.sqlite")
    with sqlite3.connect(store) as connection:
        stored = connection.execute("SELECT count(*) FROM results").fetchone()[0]
    assert stored == 2 * 7

    def never(task):
        raise AssertionError("computed again")

    # The function of the same name hides the module.
    monkeypatch.setattr(sys.modules["temperance_studies.study.compare"], "perform", never)
    assert command(*words, "--debug").exit_code == 0
    assert command("boxplots_example", *words[1:], "--debug").exit_code == 0
    # Negative control: what is not stored is computed.
    assert command("linreg1_boxplot", "--repeats", 3, *words[3:]).exit_code == 1


class Recorded:
    """In place of a bar: what it would show."""

    def __init__(self):
        self.told = []

    def __call__(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.told.append("closed")

    def expect(self, total):
        self.told.append(total)

    def say(self, doing):
        self.told.append(doing)

    def step(self, left):
        self.told.append(left)


@pytest.mark.slow
def test_one_bar_shows_the_whole_run(command, monkeypatch):
    bar = Recorded()
    monkeypatch.setattr(cli_comparisons, "Steps", bar)
    words = ("gaussian_plots", "linreg1_boxplot", "boxplots_example", "--repeats", 3, "--jobs", 1)
    assert command(*words).exit_code == 0
    total, *told, last = bar.told
    # Two settings in two versions, three data sets each; two figures share theirs.
    assert (total, last) == (12, "closed")
    names = [each for each in told if isinstance(each, str)]
    once = ["mean-40-4", "mean-40-4, as coded", "linear-40-40-8", "linear-40-40-8, as coded"]
    # The first data sets of all, then the rest.
    assert names == [*once, *once]
    left = [each for each in told if not isinstance(each, str)]
    assert len(left) == 12 and left[-1] == 0 and all(each > 0 for each in left[:-1])
    bar.told.clear()
    assert command(*words).exit_code == 0
    assert bar.told == [0, "closed"]


def test_the_bar_names_the_setting_and_the_time_left(monkeypatch, tmp_path):
    shown = io.StringIO()
    terminal = Console(file=shown, force_terminal=True, width=100)
    monkeypatch.setattr(console, "errors", lambda: terminal)
    monkeypatch.setattr(console, "QUIET_SECONDS", 0.0)
    setting = Slow(8, GaussianNoise(1.0), 1.0)
    study = cli_comparisons.StoredStudy(tmp_path / "results", 1)
    done = study.run([Comparison("one", setting, {"bayes": Bayes()})], 4, 0)
    assert done == {"one": (4, 0)}
    assert re.search(r"one .*/4.* left .*0:00:0\d", shown.getvalue())
    assert study.run([Comparison("one", setting, {"bayes": Bayes()})], 5, 0) == {"one": (1, 4)}


@dataclass(frozen=True)
class Slow(MeanSetting):
    """A setting whose data take a moment, so that a bar can be seen."""

    def draw(self, rng):
        time.sleep(0.1)
        return super().draw(rng)


def test_a_store_of_something_else_is_refused_before_anything_is_computed(command, tmp_path):
    words = ("gaussian_plots", "--repeats", 2, "--version", "as-stated", "--jobs", 1)
    assert command(*words).exit_code == 0
    (store,) = (tmp_path / "reproduction" / "results").glob("mean-40-4-*.sqlite")
    store.unlink()
    mean = {"mean-40-4": thesis_settings()["mean-40-4"]}
    compare(mean, {"bayes": Bayes()}, 1, n_jobs=1, bounds=(0, 2), store=store)
    done = command("overfit_example", *words)
    assert done.exit_code == 2 and done.stdout == ""
    assert "holds another study (bounds: [0, 2] in the file, [0, 3] asked for)" in done.stderr
    assert not (tmp_path / "reproduction" / "overfit_example-as-stated.png").exists()


@pytest.mark.filterwarnings("default::temperance_studies.study.StoreWarning")
def test_damaged_results_are_told_in_one_line_and_computed_again(command, tmp_path):
    words = ("gaussian_plots", "--repeats", 2, "--version", "as-stated", "--jobs", 1)
    assert command(*words).exit_code == 0
    table = (tmp_path / "reproduction" / "gaussian_plots-as-stated.csv").read_bytes()
    (store,) = (tmp_path / "reproduction" / "results").glob("mean-40-4-*.sqlite")
    connection = sqlite3.connect(store)
    connection.execute("UPDATE results SET risk = 0 WHERE repetition = 1")
    connection.commit()
    connection.close()
    done = command(*words)
    assert done.exit_code == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("temperance: store ") and "damaged results, which are dropped" in line
    assert (tmp_path / "reproduction" / "gaussian_plots-as-stated.csv").read_bytes() == table


def test_a_figure_without_versions_is_drawn_once(command, tmp_path):
    assert command("joyplot_linreg1", "--version", "as-coded").exit_code == 0
    assert (tmp_path / "reproduction" / "joyplot_linreg1.png").exists()


def test_verdicts_are_a_page_that_says_how_it_was_made(command, tmp_path, monkeypatch):
    asked = []

    def evidence(compare, repeats, seed):
        setting = {"mean-40-4": thesis_settings()["mean-40-4"]}
        asked.append(compare(setting, {"bayes": Bayes(), "folds": KFold(5)}, repeats, seed))
        return "found"

    def page(found, run):
        assert run.workers == 1
        return f"{found} in {list(run.seconds)} of {run.data_sets} by {run.command}\n"

    mean = thesis_settings()["mean-40-4"]
    asked_for = [Comparison("mean-40-4", mean, {"bayes": Bayes()})]
    monkeypatch.setattr(verdicts, "planned", lambda seed: asked_for)
    monkeypatch.setattr(verdicts, "evidence", evidence)
    monkeypatch.setattr(verdicts, "page", page)
    words = ("overfit_example", "--verdicts", "--repeats", 2, "--seed", 3, "--jobs", 1)
    done = command(*words, "--page", "page.md")
    assert done.exit_code == 0, done.stderr
    first, *_, last = (tmp_path / "page.md").read_text().strip().splitlines()
    assert first == (
        "found in ['comparisons', 'figures', 'verdicts'] of {'mean-40-4': (2, 0)} by "
        "temperance reproduce overfit_example --verdicts --repeats 2 --seed 3 --jobs 1 "
        "--out reproduction --page page.md"
    )
    assert last.endswith("(reproduction/overfit_example-as-coded.png)")
    assert len(asked[0]) == 4


def test_pictures_that_were_not_drawn_are_not_shown(tmp_path):
    assert reproduce._pictures(tmp_path, tmp_path) == ""
