"""The study of real data: its numbers, their independence of workers, its picture and its page."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from temperance import GibbsClassifier, GibbsRegressor
from temperance.strategies import Bayes, KFold, Naive
from temperance_studies.settings import load
from temperance_studies.thesis.real_data.splits import (
    CASES,
    REGRESSIONS,
    STRATEGIES,
    Case,
    calibration_error,
    split,
    splits,
)
from temperance_studies.thesis.real_data.summary import by_case, overall

pd = pytest.importorskip("pandas")
pytest.importorskip("joblib")
pytest.importorskip("matplotlib")
pytest.importorskip("statsmodels")

from temperance_studies.thesis.real_data import figure as figure  # noqa: E402
from temperance_studies.thesis.real_data import page as page  # noqa: E402

DOCS = Path(__file__).resolve().parents[2] / "docs"
KNOWN = Case("ccard", 48, "known variance")
CLASSES = Case("spector", 21, "Laplace")
SMALL = (KNOWN, Case("engel", 50, "unknown variance", 2), CLASSES)
CHOICES = {"bayes": Bayes(), "naive": Naive(), "k-fold": KFold(5)}

ignore_warnings = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")


@pytest.fixture(scope="module")
def table():
    return splits(SMALL, CHOICES, repeats=3, seed=7, n_jobs=1)


@pytest.fixture(scope="module")
def documented():
    return pd.read_csv(DOCS / "real-data.csv")


def cell(table, case, **keys):
    kept = table[(table["case"] == case.name) & (table["model"] == case.model)]
    for name, value in keys.items():
        kept = kept[kept[name] == value]
    (line,) = kept.to_dict("records")
    return line


class TestNumbers:
    def test_rows(self, table):
        assert len(table) == 3 * 3 * 2 * 3
        assert list(table["strategy"][:3]) == list(CHOICES)
        assert list(table["case"].unique()) == [case.name for case in SMALL]
        classes = table["model"] == "Laplace"
        assert table["coverage"].isna().equals(classes)
        assert table["right"].notna().equals(classes)
        assert np.isfinite(table[["beta", "log_score", "gain", "gibbs_gain"]].to_numpy()).all()

    @ignore_warnings
    @pytest.mark.parametrize("risk", ["gibbs", "predictive"])
    def test_regression_recomputed(self, table, risk):
        X, y, X_new, y_new = split(KNOWN, 1, 7)
        found = cell(table, KNOWN, repetition=1, risk=risk, strategy="naive")
        target = "draws" if risk == "gibbs" else "forecasts"
        model = GibbsRegressor(
            noise_variance=y.var() / 4, strategy="naive", target=target, prior_scale=1.0
        )
        model.fit(X, y)
        law, bayes = model.forecast(X_new), model.forecast(X_new, beta=1.0)
        low, high = law.interval(0.95).T
        assert found["beta"] == pytest.approx(model.inverse_temperature_, rel=1e-12)
        assert found["log_score"] == pytest.approx(law.log_density(y_new).mean(), rel=1e-12)
        gain = (law.log_density(y_new) - bayes.log_density(y_new)).mean()
        assert found["gain"] == pytest.approx(gain, rel=1e-9)
        assert found["coverage"] == np.mean((low <= y_new) & (y_new <= high))
        assert (found["train"], found["test"]) == (48, 24)
        # Gibbs risk of a Gaussian: half the expected squared error in units of the variance.
        risks = []
        for beta in (1.0, model.inverse_temperature_):
            law = model.forecast(X_new, beta=beta)
            spread = law.std**2 - y.var() / 4
            risks.append(np.mean(((y_new - law.mean) ** 2 + spread) / (2 * y.var() / 4)))
        assert found["gibbs_gain"] == pytest.approx(risks[0] - risks[1], rel=1e-6, abs=1e-9)

    @ignore_warnings
    def test_classification_recomputed(self, table):
        X, y, X_new, y_new = split(CLASSES, 2, 7)
        found = cell(table, CLASSES, repetition=2, risk="predictive", strategy="naive")
        model = GibbsClassifier(posterior="laplace", strategy="naive", prior_scale=1.0).fit(X, y)
        happened = np.arange(len(y_new)), y_new.astype(int)
        score = np.log(model.predict_proba(X_new)[happened]).mean()
        bayes = np.log(model.predict_proba(X_new, beta=1.0)[happened]).mean()
        assert found["log_score"] == pytest.approx(score, rel=1e-9)
        assert found["gain"] == pytest.approx(score - bayes, rel=1e-6)
        assert found["right"] == np.mean(model.predict(X_new) == y_new)

    def test_bayes_gains_nothing(self, table):
        bayes = table[table["strategy"] == "bayes"]
        assert (bayes["beta"] == 1).all()
        assert bayes["gain"].abs().max() < 1e-12
        assert bayes["gibbs_gain"].abs().max() < 1e-12

    def test_calibration_error_by_hand(self):
        confidence = np.array([0.62, 0.68, 0.95, 0.96, 1.0])
        right = np.array([True, False, True, True, False])
        # Bins of .6 to .7 and of .9 to 1.
        by_hand = (abs(0.62 + 0.68 - 1) + abs(0.95 + 0.96 + 1.0 - 2)) / 5
        assert calibration_error(confidence, right) == pytest.approx(by_hand)
        assert calibration_error(np.ones(3), np.ones(3)) == 0


class TestSeeds:
    def test_workers_and_company_change_nothing(self, table):
        alone = splits(
            [CLASSES, KNOWN],
            {"k-fold": KFold(5)},
            repeats=2,
            seed=7,
            n_jobs=2,
            risks=["predictive"],
        )
        kept = table[
            (table["strategy"] == "k-fold")
            & (table["risk"] == "predictive")
            & (table["repetition"] < 2)
        ]
        order = ["model", "repetition"]
        both = [
            part[part["model"] != "unknown variance"]
            .sort_values(order)
            .drop(columns="seconds")
            .reset_index(drop=True)
            for part in (alone, kept)
        ]
        pd.testing.assert_frame_equal(*both, check_exact=True)

    def test_splits_differ_and_keep_the_classes(self):
        one, two = split(CLASSES, 0, 0), split(CLASSES, 1, 0)
        assert not np.array_equal(one[0], two[0])
        assert not np.array_equal(one[0], split(CLASSES, 0, 1)[0])
        assert abs(one[1].mean() - load("spector").y.mean()) < 0.05

    def test_models_of_the_same_data_see_the_same_rows(self):
        known, unknown = (Case("engel", 50, kind) for kind in REGRESSIONS)
        for one, other in zip(split(known, 3, 0), split(unknown, 3, 0), strict=True):
            assert np.array_equal(one, other)

    def test_refuses_what_does_not_fit(self):
        with pytest.raises(ValueError, match="model must suit a regression, got 'Laplace'"):
            split(Case("engel", 50, "Laplace"), 0, 0)
        with pytest.raises(ValueError, match="strategies must be .* got 'bayes'"):
            splits([KNOWN], "bayes")
        with pytest.raises(ValueError, match="risks must be"):
            splits([KNOWN], ["bayes"], risks=["error"])

    def test_at_least_eight_data_sets_and_all_strategies(self):
        assert len({case.data for case in CASES}) >= 8
        assert len(set(CASES)) == len(CASES)
        assert len(STRATEGIES) == 7
        assert all(getattr(each, "transfer", "beta") == "beta" for each in STRATEGIES.values())


def lines(gains, case="a", strategy="k-fold"):
    known = {"model": "m", "case": case, "risk": "gibbs", "strategy": strategy}
    rest = ("train", "test", "beta", "log_score", "coverage", "right", "calibration_error")
    return [
        known | dict.fromkeys(rest, 1.0) | {"seconds": 0.5, "gain": gain, "gibbs_gain": -gain}
        for gain in gains
    ]


class TestSummary:
    def test_known_numbers(self):
        summary = by_case(pd.DataFrame(lines([0.1, 0.2, 0.3])))
        (line,) = summary.to_dict("records")
        assert line["gain"] == pytest.approx(0.2)
        assert line["gain_error"] == pytest.approx(0.1 / np.sqrt(3))
        assert line["gibbs_gain"] == pytest.approx(-0.2)
        assert (line["repeats"], line["seconds"]) == (3, 0.5)

    def test_counts_and_worst_case(self):
        rows = lines([0.1, 0.2, 0.3]) + lines([-1.0, -1.1], "b") + lines([-1.0, 1.01], "c")
        rows += lines([0.0, 0.0], strategy="bayes")
        found = overall(by_case(pd.DataFrame(rows)), "gain").to_dict("records")
        assert len(found) == 1
        assert (found[0]["cases"], found[0]["better"], found[0]["worse"]) == (3, 1, 1)
        assert (found[0]["worst_case"], found[0]["least"]) == ("b", pytest.approx(-1.05))
        assert found[0]["median"] == pytest.approx(0.005)

    def test_refuses_one_repetition(self):
        with pytest.raises(ValueError, match="at least 2 repetitions"):
            by_case(pd.DataFrame(lines([0.1])))


class TestPicture:
    def test_from_the_file_alone(self, documented):
        drawn = figure.draw(documented)
        predictive, gibbs, covered = drawn.axes
        assert len(predictive.containers) == len(gibbs.containers) == len(STRATEGIES) - 1
        labels = [tick.get_text() for tick in predictive.get_yticklabels()]
        assert labels == [case.name for case in CASES]
        marked = predictive.containers[0][0].get_xdata()
        own = documented[(documented.risk == "predictive") & (documented.strategy == "naive")]
        assert np.array_equal(marked, own["gain"])
        assert len(covered.containers[0][0].get_xdata()) == own["coverage"].notna().sum()

    def test_refuses_another_table(self, documented):
        with pytest.raises(ValueError, match=r"got none named \['gain'\]"):
            figure.draw(documented.drop(columns="gain"))
        with pytest.raises(ValueError, match="must have rows"):
            figure.draw(documented[:0])


class TestPage:
    def test_is_of_all_cases(self, documented):
        keys = documented[["model", "case"]].drop_duplicates().itertuples(index=False, name=None)
        assert list(keys) == [(case.model, case.name) for case in CASES]
        assert set(documented["strategy"]) == set(STRATEGIES)
        assert documented["repeats"].nunique() == 1

    def test_tables_are_those_of_the_file(self, documented):
        text = (DOCS / "real-data.md").read_text(encoding="utf-8")
        assert page.filled(text, page.tables(documented)) == text
        (repeats,) = documented["repeats"].unique()
        assert f"--repeats {repeats} " in text

    @pytest.mark.slow
    def test_command_redraws(self, tmp_path, documented, capsys):
        for name in ("real-data.csv", "real-data.md"):
            shutil.copy(DOCS / name, tmp_path)
        written = tmp_path / "real-data.md"
        text = written.read_text(encoding="utf-8")
        written.write_text(re.sub(r"^\| known .*\n", "", text, flags=re.MULTILINE))
        page.main(["--out", str(tmp_path), "--redraw"])
        assert written.read_text(encoding="utf-8") == text
        assert (tmp_path / "real-data.png").read_bytes().startswith(b"\x89PNG")
        written.unlink()
        page.main(["--out", str(tmp_path), "--redraw"])
        assert "| model | case |" in capsys.readouterr().out

    def test_refuses_a_page_without_places(self):
        with pytest.raises(ValueError, match="one place for the table 'overall', got 0"):
            page.filled("nothing", {"overall": "| a |"})
