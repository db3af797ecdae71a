"""``temperance reproduce``: the command around figures, study and verdicts."""

from __future__ import annotations

import re
import sqlite3
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

from temperance import verdicts
from temperance.cli import reproduce
from temperance.cli.app import app
from temperance.figures import FIGURES
from temperance.strategies import Bayes, KFold


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
    assert re.fullmatch(r" +\d+\.\d s  gaussian_plots-as-coded\n", done.stdout)
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
    monkeypatch.setattr(sys.modules["temperance.study.compare"], "perform", never)
    assert command(*words, "--debug").exit_code == 0
    assert command("boxplots_example", *words[1:], "--debug").exit_code == 0
    # Negative control: what is not stored is computed.
    assert command("linreg1_boxplot", "--repeats", 3, *words[3:]).exit_code == 1


def test_a_figure_without_versions_is_drawn_once(command, tmp_path):
    assert command("joyplot_linreg1", "--version", "as-coded").exit_code == 0
    assert (tmp_path / "reproduction" / "joyplot_linreg1.png").exists()


def test_verdicts_are_a_page_that_says_how_it_was_made(command, tmp_path, monkeypatch):
    asked = []

    def evidence(compare, repeats, seed):
        from temperance.datasets import thesis_settings

        setting = {"mean-40-4": thesis_settings()["mean-40-4"]}
        asked.append(compare(setting, {"bayes": Bayes(), "folds": KFold(5)}, repeats, seed))
        return "found"

    def page(found, timings, line):
        return f"{found} in {list(timings)} by {line}\n"

    monkeypatch.setattr(verdicts, "evidence", evidence)
    monkeypatch.setattr(verdicts, "page", page)
    words = ("overfit_example", "--verdicts", "--repeats", 2, "--seed", 3, "--jobs", 1)
    done = command(*words, "--page", "page.md")
    assert done.exit_code == 0, done.stderr
    first, *_, last = (tmp_path / "page.md").read_text().strip().splitlines()
    assert first == (
        "found in ['overfit_example-as-stated', 'overfit_example-as-coded', 'verdicts'] by "
        "temperance reproduce overfit_example --verdicts --repeats 2 --seed 3 --jobs 1 "
        "--out reproduction --page page.md"
    )
    assert last.endswith("(reproduction/overfit_example-as-coded.png)")
    assert len(asked[0]) == 4


def test_pictures_that_were_not_drawn_are_not_shown(tmp_path):
    assert reproduce._pictures(tmp_path, tmp_path) == ""
