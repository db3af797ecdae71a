"""Hostile tables and blocks from fixed seeds."""

import numpy as np
import pytest
from fuzz import tables

import temperance.app.report.page
from temperance.streaming import folds


@pytest.mark.parametrize("seed", range(50))
def test_hostile_tables_and_blocks(seed):
    assert tables.run(seed) is None


def first_failure(kind):
    seeds = [seed for seed in range(200) if tables.begin(seed)[0] == kind]
    return next(filter(None, map(tables.run, seeds)), "")


@pytest.mark.slow
def test_cells_that_are_not_escaped_would_be_noticed(monkeypatch):
    monkeypatch.setattr(temperance.app.report.page, "_escape", str)
    assert "in the page as it is" in first_failure("page")


def test_folds_that_depend_on_the_cut_would_be_noticed(monkeypatch):
    monkeypatch.setattr(folds.FoldNumbers, "take", lambda self, count: np.arange(count) % 2)
    assert "risks differ" in first_failure("blocks")


@pytest.mark.parametrize(
    ("code", "out", "err", "found"),
    [
        (1, "", "temperance: unexpected KeyError\n", "exit code 1"),
        (2, "", "temperance: one\ntwo\n", "without its one line"),
        (2, "", "Traceback\n", "without its one line"),
        (0, '{"results": [{"beta": null}], "warnings": []}', "", "beta is not finite"),
        (0, '{"results": [{"beta": 1.0}], "warnings": []}', "careful\n", "words on stderr"),
        (
            0,
            '{"results": [{"beta": 1.0}], "warnings": ["overflow encountered in exp"]}',
            "",
            "a warning of numpy",
        ),
    ],
)
def test_wrong_answers_of_the_command_would_be_noticed(code, out, err, found):
    assert found in tables._wrong(code, out, err)
    assert tables._wrong(0, '{"results": [{"beta": 1.0}], "warnings": []}', "") is None
