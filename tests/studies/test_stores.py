"""What is no store, and stores that were damaged: one line, or the same table."""

import os
import sqlite3
import sys
import tempfile
from contextlib import contextmanager

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("joblib")

from fuzz import signals, stores
from test_study import CHOICES, SETTINGS, Counted, same

from temperance.strategies import Bayes
from temperance_studies.settings import GaussianNoise
from temperance_studies.study import Ledger, StoreWarning, compare
from temperance_studies.study.identity import digest


@pytest.fixture
def store(tmp_path):
    return tmp_path / "study.sqlite"


class TestNoStore:
    """What is given as a store and is none, or cannot be used, gets one line with its name."""

    def refused(self, store, why):
        for use in (
            lambda: compare(SETTINGS, CHOICES, 2, 1, 1, store=store),
            lambda: Ledger(store),
        ):
            with pytest.raises(ValueError, match=why) as caught:
                use()
            assert str(store) in str(caught.value) and "\n" not in str(caught.value)

    def test_a_text_file(self, store):
        store.write_text("setting,beta\n" * 100)
        self.refused(store, "study.sqlite' is no study: file is not a database; take another file")
        assert store.read_text() == "setting,beta\n" * 100

    def test_another_database(self, store):
        connection = sqlite3.connect(store)
        connection.execute("CREATE TABLE cats (name)")
        connection.close()
        before = store.read_bytes()
        self.refused(store, "is a database, but no study")
        assert store.read_bytes() == before

    def test_an_older_format(self, store):
        connection = sqlite3.connect(store)
        connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
        connection.execute("INSERT INTO meta VALUES ('format', 'temperance study, format 2')")
        connection.commit()
        connection.close()
        self.refused(store, r"must be of '.* 3', got '.* 2'; take another file, or delete this one")

    def test_a_folder(self, tmp_path):
        self.refused(tmp_path, "store must be a file, got")

    def test_a_pipe(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")  # opening it would wait for ever
        self.refused(tmp_path / "pipe", "store must be a file, got")

    @pytest.mark.parametrize("store", [3, object(), b"bytes"])
    def test_no_path(self, store):
        self.refused(store, "store must be a path, got")

    def test_a_name_that_no_file_can_have(self, tmp_path):
        with pytest.raises(ValueError, match="store '.*' cannot be used: unable to open"):
            compare(SETTINGS, CHOICES, 2, 1, 1, store=tmp_path / ("x" * 300))
        with pytest.raises(ValueError, match="store must lie in an existing folder, got '.*x00b'"):
            compare(SETTINGS, CHOICES, 2, 1, 1, store=f"{tmp_path}/a\0b")

    @pytest.mark.skipif(
        os.name != "posix" or os.geteuid() != 0, reason="only root can become nobody"
    )
    @pytest.mark.parametrize(
        ("mode", "message"),
        [(0o000, "unable to open database file"), (0o444, "attempt to write a readonly database")],
    )
    def test_a_file_that_may_not_be_written(self, mode, message):
        # In a folder that anybody may enter, unlike those of pytest.
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            store = os.path.join(folder, "study.sqlite")
            compare(SETTINGS, {"bayes": Bayes()}, 1, 1, 1, store=store)
            os.chmod(store, mode)
            with (
                as_nobody(),
                pytest.raises(ValueError, match=f"cannot be used: {message}") as caught,
            ):
                compare(SETTINGS, {"bayes": Bayes()}, 2, 1, 1, store=store)
            assert store in str(caught.value)

    def test_a_full_disk(self, store, monkeypatch):
        table = compare(SETTINGS, CHOICES, 3, 1, 1)
        connect = sqlite3.connect

        def small(*arguments, **options):
            connection = connect(*arguments, **options)
            connection.execute("PRAGMA max_page_count = 10")
            return connection

        with monkeypatch.context() as patch:
            patch.setattr(sqlite3, "connect", small)
            with pytest.raises(ValueError, match="study.sqlite' cannot be used: .* full"):
                compare(SETTINGS, CHOICES, 40, 1, 1, store=store)
        with pytest.warns(StoreWarning, match="of the 240 results asked for"):
            ledger = Ledger(store)
        with ledger:
            assert len(ledger.table()) > 3  # what was committed before
        same(compare(SETTINGS, CHOICES, 3, 1, 1, store=store), table)


@contextmanager
def as_nobody():
    """Give up root's right to read and write every file."""
    user = os.geteuid()
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


class TestDamage:
    """Results that are not as they were written are computed again, or the store is refused."""

    @pytest.fixture
    def table(self, store):
        return compare(SETTINGS, CHOICES, 4, 1, 1, store=store)

    def edit(self, store, statement, *values):
        connection = sqlite3.connect(store)
        connection.execute(statement, values)
        connection.commit()
        connection.close()

    @pytest.mark.parametrize(
        "change",
        [
            "beta = beta + 1e-15",
            "risk = NULL",
            "seconds = 'soon'",
            "repetition = 7",
            "key = substr(key, 2)",
            "checksum = ''",
        ],
    )
    def test_is_told_and_mended(self, store, table, change):
        self.edit(store, f"UPDATE results SET {change} WHERE repetition = 2")
        told = (
            r"study.sqlite' lacks 6 of the 24 results asked for, 6 of them damaged: repetition 2 "
        )
        with pytest.warns(StoreWarning, match=told):
            ledger = Ledger(store)
        with ledger:
            kept = ledger.table()
        same(kept, table[table["repetition"] != 2].reset_index(drop=True))
        told = (
            "study.sqlite' had 6 damaged results, which are dropped and computed again when asked "
            "for: repetition 2 of 'line' by 'bayes', .*, .*, 3 more$"
        )
        with pytest.warns(StoreWarning, match=told) as caught:
            same(compare(SETTINGS, CHOICES, 4, 1, 1, store=store), table)
        assert caught[0].filename == __file__
        same(compare(SETTINGS, CHOICES, 4, 1, 1, store=store), table)  # told once
        with Ledger(store) as ledger:
            same(ledger.table(), table)

    def test_only_the_damaged_are_computed(self, store, tmp_path):
        trace = tmp_path / "trace"
        setting = Counted(8, GaussianNoise(1.0), 1.0, trace=str(trace))
        compare([setting], {"bayes": Bayes()}, 5, n_jobs=1, store=store)
        self.edit(store, "UPDATE results SET risk = risk + 1 WHERE repetition IN (1, 3)")
        with pytest.warns(StoreWarning, match="had 2 damaged results"):
            compare([setting], {"bayes": Bayes()}, 5, n_jobs=1, store=store)
        assert len(trace.read_text()) == 7

    def test_nan_is_no_damage(self, store, monkeypatch):
        study = sys.modules["temperance_studies.study.compare"]
        perform, hard = study.perform, [float("nan"), float("inf"), -float("inf"), -0.0]

        def performed(task):
            identity, repetition, results = perform(task)
            values = dict(zip(("beta", "risk", "excess", "seconds"), hard, strict=True))
            return identity, repetition, [(name, each._replace(**values)) for name, each in results]

        monkeypatch.setattr(study, "perform", performed)
        for _ in range(2):
            found = compare([SETTINGS["mean"]], {"bayes": Bayes()}, 1, n_jobs=1, store=store)
            np.testing.assert_array_equal(found[["beta", "risk", "excess", "seconds"]], [hard])

    def test_a_lost_result_is_missed(self, store, table):
        self.edit(
            store, "DELETE FROM results WHERE repetition = 3 AND strategy = ?", digest(Bayes())
        )
        told = (
            "lacks 2 of the 24 results asked for, 0 of them damaged: repetition 3 of 'line' by 'b"
        )
        with pytest.warns(StoreWarning, match=told):
            Ledger(store).close()
        same(compare(SETTINGS, CHOICES, 4, 1, 1, store=store), table)

    @pytest.mark.parametrize(
        ("statement", "what"),
        [
            ("UPDATE names SET name = 'bayez' WHERE name = 'bayes'", "its table of names is not"),
            ("UPDATE names SET repeats = 1", "its table of names is not"),
            ("UPDATE meta SET value = replace(value, '4', '5')", "its table of meta is not"),
            ("DELETE FROM meta WHERE key = 'description'", "it does not say which study"),
            (
                "ALTER TABLE results RENAME COLUMN alpha TO a",
                "its tables are not as they were made",
            ),
        ],
    )
    def test_beyond_that_is_refused(self, store, table, statement, what):
        self.edit(store, statement)
        message = (
            f"study.sqlite' is damaged: {what}.*; delete it to compute anew, or restore a copy$"
        )
        for use in (
            lambda: compare(SETTINGS, CHOICES, 4, 1, 1, store=store),
            lambda: Ledger(store),
        ):
            with pytest.raises(ValueError, match=message):
                use()

    @pytest.mark.parametrize("byte", [b"\x05", b"\n", b"\xc4"])
    def test_what_sqlite_quotes_is_no_part_of_the_line(self, store, table, byte):
        content = store.read_bytes()
        assert content.count(b" repetition INTEGER") == 1
        store.write_bytes(content.replace(b" repetition INTEGER", byte + b'"epetition INTEGER'))
        for use in (
            lambda: compare(SETTINGS, CHOICES, 4, 1, 1, store=store),
            lambda: Ledger(store),
        ):
            with pytest.raises(ValueError, match="study.sqlite' is damaged: ") as caught:
                use()
            assert type(caught.value) is ValueError and str(caught.value).isprintable()

    def test_results_without_a_name_are_refused(self, store, table):
        self.edit(store, "DELETE FROM names WHERE name = 'split'")
        with Ledger(store) as ledger, pytest.raises(ValueError, match="that it cannot name"):
            ledger.table()
        same(compare(SETTINGS, CHOICES, 4, 1, 1, store=store), table)

    def test_results_that_vanish_while_the_study_runs(self, store):
        def progress(done, total):
            if done == total:
                self.edit(store, "DELETE FROM results WHERE repetition = 0")

        with pytest.raises(ValueError, match="study.sqlite' lost results while the study ran"):
            compare(SETTINGS, CHOICES, 2, 1, 1, store=store, progress=progress)

    @pytest.mark.parametrize(
        "seeds", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (30, 60, 90, 120))]
    )
    def test_however_it_is_done(self, seeds):
        assert [wrong for seed in range(seeds, seeds + 30) if (wrong := stores.run(seed))] == []


# Each signal, alone and two studies at once.
@pytest.mark.parametrize(
    "seed", [2, 6, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (5, 7))]
)
def test_signals_lose_nothing(seed):
    assert signals.run(seed) is None
