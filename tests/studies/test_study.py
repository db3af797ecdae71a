"""Studies: the numbers, their independence of how they are computed, and the store."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from temperance import calibrate
from temperance.messages import TemperanceWarning
from temperance.strategies import (
    Bayes,
    Bootstrap,
    KFold,
    LeaveOneOut,
    Naive,
    Oracle,
    ReferenceRisk,
    SafeBayes,
    SampleSplitting,
    Sandwich,
    Stacking,
)
from temperance_studies.settings import (
    COVERAGE,
    GaussianNoise,
    LinearSetting,
    LogisticSetting,
    MeanSetting,
    UnknownVarianceSetting,
)
from temperance_studies.settings.truth import representative_rows
from temperance_studies.study import (
    STRATEGIES,
    Ledger,
    SandwichCovariance,
    StoreWarning,
    by_setting,
    compare,
    overall,
)
from temperance_studies.study.identity import canonical, digest, generator
from temperance_studies.study.ledger import NUMBERS as NUMBERS_OF_THE_STUDY
from temperance_studies.thesis.defaults.fresh import LinkSetting
from temperance_studies.thesis.figures.covariance_rule import CovarianceRule
from temperance_studies.thesis.safe_bayes import SafeBayesAsCoded
from temperance_studies.thesis.settings import thesis_settings

pd = pytest.importorskip("pandas")
joblib = pytest.importorskip("joblib")

SETTINGS = {
    "line": LinearSetting(12, 4, GaussianNoise(4.0), variance=1.0),
    "mean": MeanSetting(8, GaussianNoise(1.0), variance=1.0),
}
CHOICES = {
    "bayes": Bayes(),
    "bootstrap": Bootstrap(n_draws=7),
    "split": SampleSplitting(shuffle=True),
}
NUMBERS = [
    "beta", "alpha", "risk", "excess", "best_beta", "best_risk", "bayes_risk", "estimated_risk",
    "estimated_error",
]  # fmt: skip


def same(one, other):
    """Whether two tables have the same numbers to the last bit; seconds aside."""
    pd.testing.assert_frame_equal(
        one.drop(columns="seconds"), other.drop(columns="seconds"), check_exact=True
    )


@pytest.fixture(scope="module")
def table():
    return compare(SETTINGS, CHOICES, repeats=3, seed=4, n_jobs=1)


@pytest.fixture
def store(tmp_path):
    return tmp_path / "study.sqlite"


class TestNumbers:
    def test_columns_and_rows(self, table):
        assert list(table.columns) == ["setting", "repetition", "strategy", *NUMBERS, "seconds"]
        assert len(table) == 2 * 3 * 3
        assert list(table["setting"].unique()) == list(SETTINGS)
        assert list(table["strategy"][:3]) == list(CHOICES)
        assert np.all(np.isfinite(table[NUMBERS].to_numpy()))

    def test_equals_a_naive_loop(self, table):
        for label, setting in SETTINGS.items():
            for repetition in range(3):
                X, y = setting.draw(generator(4, repetition, digest(setting)))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", TemperanceWarning)
                    oracle = calibrate(
                        setting.model, X, y, Oracle(*setting.population), risk="gibbs"
                    )
                    for name, strategy in CHOICES.items():
                        rng = generator(4, repetition, digest(setting), digest(strategy))
                        choice = calibrate(setting.model, X, y, strategy, risk="gibbs", seed=rng)
                        row = table[
                            (table["setting"] == label)
                            & (table["repetition"] == repetition)
                            & (table["strategy"] == name)
                        ].iloc[0]
                        assert row["beta"] == choice.beta
                        assert row["alpha"] == choice.alpha
                        assert row["estimated_risk"] == choice.risk
                        assert row["estimated_error"] == choice.standard_error
                        assert row["best_beta"] == oracle.beta
                        risk = oracle.curve([choice.beta, oracle.beta, 1.0])
                        expected = [risk[0], max(risk[0] - risk[1], 0), risk[1], risk[2]]
                        found = row[["risk", "excess", "best_risk", "bayes_risk"]].astype(float)
                        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)

    def test_a_rule_without_a_curve_estimates_no_risk(self):
        found = compare(SETTINGS, {"sandwich": Sandwich(), "bayes": Bayes()}, 2, 1, 1)
        assert found["beta"].notna().all() and found["risk"].notna().all()
        assert found[found["strategy"] == "sandwich"]["estimated_risk"].isna().all()

    def test_the_risk_of_a_stack_is_that_of_the_mixture(self):
        setting = UnknownVarianceSetting(30, 6, GaussianNoise(4.0))
        table = compare({"line": setting}, ["stacking"], 1, risk="predictive", n_jobs=1)
        X, y = setting.draw(generator(0, 0, digest(setting)))
        posterior = calibrate(setting.model, X, y, Stacking()).posterior
        X_new, y_new, _ = representative_rows(setting, "predictive")
        expected = -posterior.predictive(X_new).log_density(y_new).mean()
        # The posterior leaves out betas of negligible weight.
        np.testing.assert_allclose(table["risk"][0], expected, rtol=1e-4)

    def test_the_excess_of_a_mixture_may_be_negative(self, monkeypatch):
        study = sys.modules["temperance_studies.study.compare"]
        setting = UnknownVarianceSetting(30, 6, GaussianNoise(4.0))
        monkeypatch.setattr(study, "true_risk_of_mixture", lambda *of: -1.0)
        table = compare([setting], ["stacking", "bayes"], 1, risk="predictive", n_jobs=1)
        mixed, bayes = table.to_dict("records")
        assert mixed["risk"] == -1.0 and mixed["excess"] == -1.0 - mixed["best_risk"] < 0
        assert bayes["excess"] == bayes["risk"] - bayes["best_risk"] >= 0

    def test_data_are_shared_by_the_strategies(self, table):
        per = table.groupby(["setting", "repetition"])["best_risk"].nunique()
        assert set(per) == {1}
        assert table["best_risk"].nunique() == 6

    @pytest.mark.parametrize("backend", ["loky", "threading"])
    def test_the_same_for_any_workers_and_backend(self, table, backend):
        with joblib.parallel_config(backend=backend):
            same(table, compare(SETTINGS, CHOICES, repeats=3, seed=4, n_jobs=2))
        assert not any(
            each[2] is TemperanceWarning for each in warnings.filters
        )  # nothing is left behind

    def test_a_backend_without_generators(self, table, monkeypatch):
        # Tasks come to it in several parts, and one pool of workers serves for all.
        monkeypatch.setattr(os, "cpu_count", lambda: 1)
        started = []
        backend = joblib.parallel.BACKENDS["threading"]
        monkeypatch.setattr(backend, "supports_return_generator", False)
        configure = backend.configure

        def counted(self, *arguments, **options):
            started.append(self)
            return configure(self, *arguments, **options)

        monkeypatch.setattr(backend, "configure", counted)
        with joblib.parallel_config(backend="threading"):
            same(table, compare(SETTINGS, CHOICES, repeats=3, seed=4, n_jobs=2))
        assert len(started) == 1

    @pytest.mark.filterwarnings("default")
    def test_dask_with_a_worker_that_dies(self, table, tmp_path):
        distributed = pytest.importorskip("distributed")
        pids, store = [], tmp_path / "study.db"
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=":0"
            ) as cluster,
            distributed.Client(cluster) as client,
            joblib.parallel_config(backend="dask"),
        ):

            def kill_one(done, total):
                if not pids:
                    pids.extend(client.run(os.getpid).values())
                    os.kill(pids[0], signal.SIGKILL)

            found = compare(SETTINGS, CHOICES, repeats=3, seed=4, store=store, progress=kill_one)
            client.wait_for_workers(2, timeout=20)
            assert pids[0] not in client.run(os.getpid).values()  # it did die
        same(table, found)
        # Nothing is lost in the store, either.
        same(table, compare(SETTINGS, CHOICES, repeats=3, seed=4, store=store, n_jobs=1))

    def test_the_same_for_other_subsets_and_orders(self, table):
        swapped = {name: SETTINGS[name] for name in ("mean", "line")}
        found = compare(swapped, {"split": CHOICES["split"]}, repeats=2, seed=4, n_jobs=1)
        kept = table[(table["strategy"] == "split") & (table["repetition"] < 2)]
        order = ["setting", "repetition"]
        same(
            found.sort_values(order).reset_index(drop=True),
            kept.sort_values(order).reset_index(drop=True),
        )
        assert list(found["setting"].unique()) == ["mean", "line"]

    def test_another_seed_gives_other_numbers(self, table):
        other = compare(SETTINGS, {"bayes": Bayes()}, repeats=3, seed=5, n_jobs=1)
        assert not set(other["risk"]) & set(table["risk"])

    def test_names_resolve_and_logistic_bootstraps_are_short(self):
        logistic = thesis_settings()["logistic-jaakkola"]
        assert STRATEGIES["bootstrap"](logistic) == Bootstrap(n_draws=50)
        assert STRATEGIES["bootstrap"](SETTINGS["line"]) == Bootstrap(n_draws=200)
        found = compare([SETTINGS["mean"]], ["naive", "leave-one-out"], repeats=1, n_jobs=1)
        assert list(found["strategy"]) == ["naive", "leave-one-out"]
        assert list(found["setting"]) == ["mean of 8, variance 1"] * 2

    def test_predictive_risk_and_bounds(self):
        found = compare(
            SETTINGS, {"k": KFold(4)}, repeats=1, n_jobs=1, risk="predictive", bounds=(0.5, 0.7)
        )
        assert found["beta"].between(0.5, 0.7).all()
        assert found["best_beta"].between(0.5, 0.7).all()

    def test_a_logistic_setting(self):
        setting = thesis_settings("as-coded")["logistic-mean-field"]
        found = compare({"log": setting}, ["bayes", "naive"], repeats=1, n_jobs=1)
        assert np.all(found["excess"] >= 0)
        assert found["risk"][0] == found["bayes_risk"][0]

    def test_progress_is_told(self):
        told = []
        compare(SETTINGS, {"bayes": Bayes()}, 2, n_jobs=1, progress=lambda *at: told.append(at))
        assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]

    def test_a_bar_with_the_time_left(self, capsys):
        pytest.importorskip("rich")
        compare(SETTINGS, {"bayes": Bayes()}, 2, n_jobs=1, progress=True)
        error = capsys.readouterr().err
        assert "4/4" in error and "left" in error
        compare(SETTINGS, {"bayes": Bayes()}, 2, n_jobs=1)
        assert capsys.readouterr().err == ""

    def test_an_error_tells_where(self):
        with pytest.raises(ValueError, match="n_folds") as caught:
            compare(SETTINGS, {"k": KFold(10)}, repeats=1, n_jobs=1)
        assert "in setting 'mean of 8, variance 1', repetition 0" in caught.value.__notes__


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"settings": {}}, "settings must hold at least one"),
            ({"settings": {"a": SETTINGS["mean"], "b": SETTINGS["mean"]}}, "settings must differ"),
            ({"strategies": {}}, "strategies must hold at least one"),
            ({"strategies": ["k-folds"]}, "did you mean 'k-fold'"),
            ({"strategies": "bayes"}, "strategies must be a mapping or a list"),
            ({"strategies": {"k": KFold}}, r"strategies\['k'\] must be a strategy"),
            ({"repeats": 0}, "repeats must be"),
            ({"seed": -1}, "seed must be"),
            ({"risk": "sharp"}, "risk must be one of"),
            ({"bounds": (3, 1)}, "bounds"),
            ({"store": "/nowhere/at/all.sqlite"}, "store must lie in an existing folder"),
        ],
    )
    def test_one_clear_line(self, options, message):
        arguments = {"settings": SETTINGS, "strategies": CHOICES, "repeats": 1, "n_jobs": 1}
        with pytest.raises(ValueError, match=message):
            compare(**(arguments | options))

    def test_two_settings_of_one_name(self):
        one, other = (LinearSetting(9, 2, GaussianNoise(v), variance=1.0) for v in (1.0, 2.0))
        with pytest.raises(ValueError, match="different names"):
            compare([one, other], ["bayes"], 1, n_jobs=1)


@dataclass(frozen=True)
class Counted(MeanSetting):
    """A setting that leaves a trace of every draw."""

    trace: str = ""

    def draw(self, rng):
        with open(self.trace, "a") as file:
            file.write("x")
        return super().draw(rng)


@dataclass(frozen=True)
class Stopping(MeanSetting):
    """A setting that is interrupted at its third draw."""

    trace: str = ""

    def draw(self, rng):
        with open(self.trace, "a+") as file:
            file.write("x")
            file.seek(0)
            if len(file.read()) == 3:
                raise KeyboardInterrupt
        return super().draw(rng)


class TestStore:
    def run(self, store, **options):
        arguments = {"repeats": 2, "seed": 1, "n_jobs": 1, "store": store}
        return compare(SETTINGS, CHOICES, **(arguments | options))

    def test_the_same_with_a_store_and_again_from_it(self, store):
        first = self.run(store)
        same(first, self.run(None))
        again = self.run(store)
        pd.testing.assert_frame_equal(first, again, check_exact=True)  # seconds, too

    def test_only_the_missing_is_computed(self, store, tmp_path):
        trace = tmp_path / "trace"
        setting = Counted(8, GaussianNoise(1.0), 1.0, trace=str(trace))
        compare([setting], {"bayes": Bayes()}, 2, n_jobs=1, store=store)
        assert trace.read_text() == "xx"
        compare([setting], {"bayes": Bayes()}, 3, n_jobs=1, store=store)
        assert trace.read_text() == "xxx"
        both = compare([setting], {"bayes": Bayes(), "n": Naive()}, 3, n_jobs=1, store=store)
        assert len(trace.read_text()) == 6
        assert len(both) == 6
        part = compare([setting], {"n": Naive()}, 2, n_jobs=1, store=store)
        assert len(trace.read_text()) == 6
        assert list(part["strategy"]) == ["n", "n"]

    @pytest.mark.parametrize(
        ("options", "differs"),
        [
            ({"seed": 2}, "seed: 1 in the file, 2 asked for"),
            ({"bounds": (0, 2)}, r"bounds: \[0, 3\] in the file, \[0, 2\] asked for"),
            ({"risk": "predictive"}, 'risk: "gibbs" in the file, "predictive" asked for'),
        ],
    )
    def test_another_study_is_refused(self, store, options, differs):
        self.run(store)
        before = Ledger(store).table()
        with pytest.raises(ValueError, match=rf"study.sqlite' holds another study \({differs}"):
            self.run(store, **options)
        pd.testing.assert_frame_equal(before, Ledger(store).table())

    def test_other_settings_are_refused(self, store):
        self.run(store)
        for other in (
            {"line": SETTINGS["line"]},
            SETTINGS | {"mean": MeanSetting(9, GaussianNoise(1.0), variance=1.0)},
        ):
            with pytest.raises(ValueError, match="holds another study .settings: .*mean"):
                compare(other, CHOICES, 2, 1, 1, store=store)

    def test_another_version_is_refused(self, store, monkeypatch):
        self.run(store)
        monkeypatch.setattr("temperance.__version__", "99.0", raising=False)
        with pytest.raises(ValueError, match='version: .* in the file, "99.0" asked for'):
            self.run(store)

    @pytest.mark.parametrize(
        ("generation", "order"), [(NUMBERS_OF_THE_STUDY - 1, "before"), (99, "after")]
    )
    def test_numbers_of_another_generation_are_refused(self, store, monkeypatch, generation, order):
        study = sys.modules["temperance_studies.study.compare"]
        with monkeypatch.context() as patch:
            patch.setattr(study, "NUMBERS", generation)
            self.run(store)
        message = (
            "study.sqlite' was made by a version of the library that gives other numbers, "
            rf"{order} this one \(generation {generation} in the file, "
            rf"{NUMBERS_OF_THE_STUDY} now\); "
            "take another file, or delete this one"
        )
        with pytest.raises(ValueError, match=message):
            self.run(store)

    def test_a_name_is_never_used_for_two_strategies(self, store):
        self.run(store)
        with pytest.raises(ValueError, match="another strategy named 'bayes'.*give it another"):
            compare(SETTINGS, {"bayes": Naive()}, 2, 1, 1, store=store)
        assert set(self.run(store)["beta"][::3]) == {1.0}

    def test_an_empty_file_is_filled(self, store):
        store.touch()
        same(self.run(store), self.run(None))

    def test_two_at_once_hold_all_that_both_asked_for(self, store):
        # A second process opens the store, and asks for more, while the first goes on.
        counts = []

        def progress(done, total):
            if done == 2:
                counts.append(len(self.run(store, repeats=3)))

        assert len(self.run(store, progress=progress)) == 2 * 2 * 3
        assert counts == [2 * 3 * 3]
        with Ledger(store) as ledger:
            assert len(ledger.table()) == 2 * 3 * 3

    def test_a_ledger_needs_a_file_or_a_description(self, store):
        with pytest.raises(ValueError, match="does not exist"):
            Ledger(store)
        store.touch()
        with pytest.raises(ValueError, match="is empty"):
            Ledger(store)

    def test_parquet_holds_the_same(self, store, tmp_path):
        pytest.importorskip("pyarrow")
        table = self.run(store)
        with Ledger(store) as ledger:
            path = ledger.export(tmp_path / "study.parquet")
            ledger.export(path)  # over an older one
            with pytest.raises(ValueError, match="existing folder"):
                ledger.export(tmp_path / "no" / "study.parquet")
        pd.testing.assert_frame_equal(pd.read_parquet(path), table, check_exact=True)
        assert sorted(each.name for each in tmp_path.iterdir()) == ["study.parquet", "study.sqlite"]

    def test_no_pickle_in_the_file(self, store):
        self.run(store)
        connection = sqlite3.connect(store)
        kinds = {
            kind
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
            for row in connection.execute(f"SELECT * FROM {table}").fetchall()
            for kind in map(type, row)
        }
        connection.close()
        assert kinds == {str, int, float}

    def test_an_interrupt_leaves_a_valid_store(self, store, tmp_path):
        trace = tmp_path / "trace"
        setting = Stopping(8, GaussianNoise(1.0), 1.0, trace=str(trace))
        with pytest.raises(KeyboardInterrupt):
            compare([setting], {"bayes": Bayes()}, 5, n_jobs=1, store=store)
        with pytest.warns(StoreWarning, match="lacks 3 of the 5 results asked for, 0 of them"):
            ledger = Ledger(store)
        with ledger:
            assert len(ledger.table()) == 2
        assert len(compare([setting], {"bayes": Bayes()}, 5, n_jobs=1, store=store)) == 5
        assert len(trace.read_text()) == 3 + 3


KILLED = """
import sys
from temperance_studies.study import compare
sys.path.insert(0, sys.argv[1])
from test_study import CHOICES, Counted, GaussianNoise
if __name__ == "__main__":
    setting = Counted(200, GaussianNoise(1.0), 1.0, trace=sys.argv[3])
    compare([setting], CHOICES, 4000, n_jobs=1, store=sys.argv[2])
"""


@pytest.mark.slow
def test_kill_at_any_moment_loses_only_what_is_in_flight(store, tmp_path):
    script, trace = tmp_path / "killed.py", tmp_path / "trace"
    script.write_text(KILLED)
    here = os.path.dirname(__file__)
    chance = random.Random(3)
    done = 0
    for _ in range(2):
        before = len(trace.read_text()) if trace.exists() else 0
        process = subprocess.Popen([sys.executable, script, here, store, trace])
        while not trace.exists() or len(trace.read_text()) < before + 3:
            time.sleep(0.01)
            assert process.poll() is None
        time.sleep(0.3 * chance.random())
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        drawn = len(trace.read_text()) - before
        with pytest.warns(StoreWarning, match="of the 12000 results asked for"):
            ledger = Ledger(store)
        with ledger:
            kept = len(ledger.table()) // len(CHOICES)
        assert kept - done in (drawn, drawn - 1)
        done = kept
    assert 0 < done
    setting = Counted(200, GaussianNoise(1.0), 1.0, trace=str(trace))
    before = len(trace.read_text())
    more = done + 5
    resumed = compare([setting], CHOICES, more, n_jobs=1, store=store)
    assert len(trace.read_text()) - before == 5
    same(resumed, compare([setting], CHOICES, more, n_jobs=1))


# The least risk, and what each strategy believes its risk to be, on the first data set of seed 0.
GENERATION = {
    4: {
        "linear": [8.6473459, 3.1007879, 2.600491, 11.174026, 9.0470935, 5.2083394, 9.1092795,
                   8.3816201],
        "polynomial": [24.6114, 16.871784, 16.269275, 21.920282, 22.68154, 19.090651, 36.385461,
                       25.295581],
        "unknown variance": [3.9046297, 2.1321039, 1.9125773, 7.3944454, 4.9849278, 3.9620671,
                             7.4899899, 4.5322131],
        "Jaakkola": [4.8802278, 0.0037176045, 0.00019043671, 11.251917, 13.161864, 4.89659,
                     16.00219, 8.2694496],
        "mean-field": [0.75132528, 0.38817657, 0.22047392, 0.90426404, 0.83574187, 0.37838002,
                       0.95674863, 0.73957962],
    }
}  # fmt: skip


def test_other_numbers_need_another_generation():
    stated, coded = thesis_settings(), thesis_settings("as-coded")
    settings = {
        "linear": coded["linear-40-40-8"],
        "polynomial": stated["polynomial"],
        "unknown variance": stated["unknown-mixture"],
        "Jaakkola": coded["logistic-jaakkola"],
        "mean-field": stated["logistic-mean-field"],
    }
    strategies = {
        "bayes": Bayes(),
        "naive": Naive(),
        "split": SampleSplitting(shuffle=True),
        "folds": KFold(5),
        "bootstrap": Bootstrap(n_draws=5),
        "safe": SafeBayes(transfer="alpha"),
        "one out": LeaveOneOut(),
    }
    table = compare(settings, strategies, repeats=1, n_jobs=1)
    assert max(GENERATION) == NUMBERS_OF_THE_STUDY
    for name, part in table.groupby("setting"):
        found = [part["best_risk"].iloc[0], *part["estimated_risk"]]
        expected = GENERATION[NUMBERS_OF_THE_STUDY][name]
        assert found == pytest.approx(expected, rel=1e-5), (
            "a study gives other numbers than before: if they are right, raise NUMBERS in "
            "study/ledger.py and enter them here"
        )


class TestSummary:
    @pytest.fixture
    def known(self):
        rows = []
        for setting, factor in (("a", 4.0), ("b", 0.25), ("c", 0.0)):
            for repetition in range(50):
                excess = 1 + 0.001 * (repetition % 2)
                for strategy, value in (("bayes", excess), ("other", factor * excess)):
                    rows.append((setting, repetition, strategy, 0.5, value, 2.0, 0.002))
        columns = ["setting", "repetition", "strategy", "beta", "excess", "best_beta", "seconds"]
        return pd.DataFrame(rows, columns=columns)

    def test_by_setting(self, known):
        lines = by_setting(known).set_index(["setting", "strategy"])
        a, b = lines.loc[("a", "other")], lines.loc[("b", "other")]
        assert a["ratio"] == pytest.approx(4) and b["ratio"] == pytest.approx(0.25)
        assert a["mean_excess"] == pytest.approx(4 * 1.0005)
        assert a["difference"] == pytest.approx(3 * 1.0005)
        error = 3 * 0.0005 * np.sqrt(50 / 49) / np.sqrt(50)
        assert a["standard_error"] == pytest.approx(error)
        assert a["worse"] and not a["better"] and b["better"] and not b["worse"]
        assert a["repeats"] == 50 and a["median_beta"] == 0.5 and a["median_best_beta"] == 2
        bayes = lines.loc[("a", "bayes")]
        assert bayes["ratio"] == 1 and not bayes["better"] and not bayes["worse"]

    def test_overall(self, known):
        line = overall(known).set_index("strategy").loc["other"]
        assert line["ratio"] == pytest.approx((4 * 0.25 * 0.01) ** (1 / 3))
        assert (line["wins"], line["losses"], line["settings"]) == (2, 1, 3)
        assert line["worst_ratio"] == pytest.approx(4) and line["worst_setting"] == "a"
        assert line["seconds"] == pytest.approx(0.002)

    def test_two_standard_errors_are_needed(self, known):
        part = known[known["setting"] == "a"]
        own, spread = part["strategy"] == "other", (-1.0) ** part["repetition"]
        error = np.sqrt(50 / 49 / 50)
        for shift, better, worse in ((-2.1, 1, 0), (-1.9, 0, 0), (1.9, 0, 0), (2.1, 0, 1)):
            excess = 10 + own * (spread + shift * error)
            lines = by_setting(part.assign(excess=excess))
            assert (lines["better"].sum(), lines["worse"].sum()) == (better, worse)

    def test_a_baseline_without_excess(self, known):
        flat = known.assign(excess=known["excess"].where(known["strategy"] == "other", 0.0))
        ratios = by_setting(flat).set_index(["setting", "strategy"])["ratio"]
        assert ratios[("a", "other")] == np.inf and ratios[("c", "other")] == 1
        line = overall(flat).set_index("strategy").loc["other"]
        assert line["worst_ratio"] == np.inf
        # Infinite counts as 100, 0 / 0 as 1.
        assert line["ratio"] == pytest.approx((100 * 100 * 1) ** (1 / 3))

    def test_another_baseline(self, known):
        line = overall(known[known["setting"] != "c"], "other").set_index("strategy").loc["bayes"]
        assert line["ratio"] == pytest.approx(1)

    def test_refusals(self, known):
        with pytest.raises(ValueError, match="baseline must be .* got 'base'"):
            by_setting(known, "base")
        with pytest.raises(ValueError, match="at least 2 repetitions of 'a'"):
            by_setting(known[known["repetition"] < 1])
        with pytest.raises(ValueError, match="with all its strategies"):
            by_setting(known.drop(index=known.index[1]))


class TestIdentity:
    def test_numbers_and_order_do_not_matter_types_do(self):
        assert canonical(GaussianNoise(8)) == canonical(GaussianNoise(8.0))
        assert canonical(GaussianNoise(8)) != canonical(GaussianNoise(8.5))
        assert canonical({"a": 1, "b": (1, 2)}) == canonical({"b": [1, 2], "a": np.float64(1)})
        assert digest(Bayes()) != digest(Naive())

    def test_splitters_are_told_apart(self):
        selection = pytest.importorskip("sklearn.model_selection")
        one, other = (selection.ShuffleSplit(k, random_state=0) for k in (3, 4))
        assert digest(one) != digest(other)

    def test_functions_are_refused(self):
        with pytest.raises(ValueError, match="made of plain values"):
            digest({"noise": lambda n: n})


def test_safe_bayes_as_coded_trains_before_t_and_tests_after_it():
    rng = np.random.default_rng(0)
    y = rng.standard_normal(6)
    setting = SETTINGS["mean"]
    from temperance.checks import as_data

    data = as_data(None, y)
    plan = SafeBayesAsCoded().plan(data, rng)
    right = SafeBayes(transfer="alpha").plan(data, rng)
    assert np.array_equal(plan.train, right.train[:-1])
    assert np.array_equal(plan.test, right.test[1:])
    assert plan.transfer == "alpha"
    found = setting.model.held_out(data, plan, "gibbs", (0.0, 3.0))(1.0)
    losses = []
    for t in range(1, 5):  # the code's loop
        posterior = setting.model.posterior(None, y[:t], alpha=6.0)
        losses.append(((y[t + 1] - posterior.mean[0]) ** 2 + posterior.cov[0, 0]) / 2)
    assert found == pytest.approx(np.mean(losses) + np.log(2 * np.pi) / 2)
    with pytest.raises(ValueError, match="at least 3 rows"):
        SafeBayesAsCoded().plan(as_data(None, [1.0, 2.0]), rng)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (MeanSetting(8, GaussianNoise(1.0), 1.0), "temperance.datasets.settings.MeanSetting"),
        (GaussianNoise(1.0), "temperance.datasets.noise.GaussianNoise"),
        (LogisticSetting(20, 2, "laplace"), "temperance.datasets.logistic.LogisticSetting"),
        (COVERAGE["mean"](50), "temperance.datasets.coverage.MeanCoverage"),
        (SandwichCovariance(), "temperance.study.coverage.SandwichCovariance"),
        (SafeBayesAsCoded(), "temperance.study.strategies.SafeBayesAsCoded"),
        (ReferenceRisk(), "temperance.strategies.reference_risk.ReferenceRisk"),
        (LinkSetting(20, 2, "laplace"), "temperance_thesis.defaults.fresh.LinkSetting"),
        (
            CovarianceRule(LogisticSetting(20, 2, "laplace")),
            "temperance_thesis.figures.covariance_rule.CovarianceRule",
        ),
    ],
)
def test_a_file_that_moves_changes_no_random_numbers(value, stored):
    """Stored results, and the numbers on the pages, depend on these names."""
    assert json.loads(canonical(value))["type"] == stored


def test_the_library_alone_imports_none_of_it():
    code = (
        "import sys, temperance; "
        "print([m for m in ('joblib', 'pandas', 'pyarrow', 'statsmodels', 'temperance_studies', "
        "'sklearn') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
    code = "import sys, temperance_studies.study; print([m for m in ('joblib', 'pandas', 'pyarrow', 'statsmodels', 'rich') if m in sys.modules])"  # noqa: E501
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
