"""Dask gives what blocks in this process give, to the last digit, also when workers die."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from temperance import models, strategies
from temperance.streaming import calibrate_blocks, calibrate_dask

dask = pytest.importorskip("dask", reason="dask is not installed: pip install 'temperance[dask]'")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

MODEL = models.GaussianLinear(0.3, 0.2, 0.7)
CUTS = (40, 0, 25, 60, 35, 1, 39, 50, 50, 50, 50)
pytestmark = pytest.mark.filterwarnings(
    "ignore::temperance.messages.BoundWarning",
    "default::ResourceWarning",
    "default::DeprecationWarning",
    "default::FutureWarning",
)


def some_rows(d=8, seed=0):
    rng, n = np.random.default_rng(seed), sum(CUTS)
    X = rng.standard_normal((n, d))
    return X, X[:, 0] + 4 * rng.standard_normal(n), rng.uniform(0.5, 2.0, n)


def cut(*arrays):
    edges = np.cumsum((0, *CUTS))
    slices = [slice(*pair) for pair in zip(edges[:-1], edges[1:], strict=True)]
    return [tuple(array[part] for array in arrays) for part in slices]


def as_dask(*arrays):
    return [da.from_array(array, chunks=(CUTS, *array.shape[1:])) for array in arrays]


def one_pass(blocks, strategy=None, **options):
    return calibrate_blocks(MODEL, blocks, strategy, risk="gibbs", folds="blocks", **options)


def same(one, other):
    betas = np.array([0.0, 1e-2, 0.3, 1.0, 3.0])
    for name in ("beta", "risk", "standard_error"):
        np.testing.assert_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.curve(betas), other.curve(betas))


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster.scheduler_address) as client,  # as one elsewhere
    ):
        yield client


ROWS = some_rows()
BLOCKS = cut(*ROWS)


class TestThreads:
    @pytest.mark.parametrize("weighted", [False, True])
    def test_the_same_as_blocks(self, weighted):
        parts = ROWS if weighted else ROWS[:2]
        found = calibrate_dask(MODEL, *as_dask(*parts))
        same(found, calibrate_blocks(MODEL, cut(*parts)))
        found = calibrate_dask(MODEL, *as_dask(*parts), seed=3, risk="gibbs")
        same(found, one_pass(cut(*parts), seed=3))

    def test_other_folds_and_strategies(self):
        X, y = as_dask(*ROWS[:2])
        blocks, five = cut(*ROWS[:2]), strategies.KFold(5)
        found = calibrate_dask(MODEL, X, y, None, 5, 2, risk="gibbs")
        same(found, one_pass(blocks, five, seed=2))
        halves = strategies.SampleSplitting(shuffle=True)
        found = calibrate_dask(MODEL, X, y, strategy=halves, risk="gibbs")
        assert found.risk == one_pass(blocks, halves).risk

    def test_chunks_of_columns_are_joined_with_a_note(self):
        X, y, weights = as_dask(*ROWS)
        with pytest.warns(da.PerformanceWarning, match="^X has 2 chunks of columns"):
            found = calibrate_dask(MODEL, X.rechunk({1: 5}), y, weights)
        same(found, calibrate_blocks(MODEL, BLOCKS))

    def test_other_cuts_of_y_follow_X(self):
        X, y, weights = as_dask(*ROWS)
        found = calibrate_dask(MODEL, X, y.rechunk(90), weights.rechunk(-1))
        same(found, calibrate_blocks(MODEL, BLOCKS))

    def test_unknown_lengths(self):
        X, y = as_dask(*ROWS[:2])
        kept = da.from_array(ROWS[1] > -2, chunks=(CUTS,))
        found = calibrate_dask(MODEL, X[kept], y[kept])
        blocks = [(X[y > -2], y[y > -2]) for X, y in cut(*ROWS[:2])]
        same(found, calibrate_blocks(MODEL, blocks))

    def test_data_frames(self):
        pandas = pytest.importorskip("pandas")
        frames = pytest.importorskip("dask.dataframe")
        table = pandas.DataFrame(ROWS[0], columns=list("abcdefgh")).assign(y=ROWS[1], w=ROWS[2])
        parted, inputs = frames.from_pandas(table, npartitions=4), list("abcdefgh")
        found = calibrate_dask(MODEL, parted[inputs], parted["y"], parted["w"])
        tables = dask.compute(*parted.to_delayed())
        blocks = [(part[inputs], part["y"], part["w"]) for part in tables]
        same(found, calibrate_blocks(MODEL, blocks))


def slow(block, seconds):
    time.sleep(seconds)
    return block


class TestCluster:
    def test_the_same_as_blocks(self, client):
        found = calibrate_dask(MODEL, *as_dask(*ROWS), client=client)
        same(found, calibrate_blocks(MODEL, BLOCKS))

    def test_several_passes(self, client):
        parts = as_dask(*ROWS)
        for strategy, risk in (
            (strategies.LeaveOneOut(), "gibbs"),
            (strategies.KFold(), "predictive"),
            (strategies.Stacking(strategies.KFold()), "predictive"),
        ):
            found = calibrate_dask(MODEL, *parts, client=client, strategy=strategy, risk=risk)
            same(found, calibrate_blocks(MODEL, BLOCKS, strategy, risk=risk))

    def test_logistic_models(self, client):
        X, y = ROWS[0], (ROWS[1] > 0).astype(float)
        model, blocks = models.LaplaceLogistic(), cut(X, y)
        found = calibrate_dask(model, *as_dask(X, y), client=client)
        same(found, calibrate_blocks(model, blocks))
        found = calibrate_dask(model, *as_dask(X, y), None, 5, client=client, risk="gibbs")
        same(found, calibrate_blocks(model, blocks, strategies.KFold(5), risk="gibbs"))

    def test_a_worker_that_dies_changes_nothing(self, client):
        X, y, weights = as_dask(*ROWS)
        X = X.map_blocks(partial(slow, seconds=0.15), dtype=float)
        (pid, *_) = client.run(os.getpid).values()
        client.loop.call_later(0.5, os.kill, pid, signal.SIGKILL)
        found = calibrate_dask(MODEL, X, y, weights, client=client)
        same(found, calibrate_blocks(MODEL, BLOCKS))
        client.wait_for_workers(2, timeout=15)
        assert pid not in client.run(os.getpid).values()  # it did die

    def test_errors_of_workers_name_the_partition(self, client):
        y = ROWS[1].copy()
        y[sum(CUTS[:3]) + 2] = np.nan
        with pytest.raises(ValueError, match="^partition 3: y must be finite, got nan in row 2$"):
            calibrate_dask(MODEL, *as_dask(ROWS[0], y), client=client)


def test_a_cluster_that_goes_away():
    X, y = as_dask(*ROWS[:2])
    X = X.map_blocks(partial(slow, seconds=0.5), dtype=float)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        closing = threading.Timer(0.3, cluster.close)
        closing.start()
        with pytest.raises(RuntimeError, match="^client must stay connected until the") as raised:
            calibrate_dask(MODEL, X, y, client=client)
        assert "\n" not in str(raised.value)
        closing.join()
    with pytest.raises(RuntimeError, match="^client must stay connected until the"):
        calibrate_dask(MODEL, X, y, client=client)


X, Y, W = as_dask(*ROWS)
BAD = {
    "X in memory": (
        lambda: calibrate_dask(MODEL, ROWS[0], Y),
        "X must be a Dask array, data frame or series, got <class 'numpy.ndarray'>; use calibrate",
    ),
    "y in memory": (lambda: calibrate_dask(MODEL, X, ROWS[1]), "y must be a Dask array"),
    "lengths": (
        lambda: calibrate_dask(MODEL, X, Y[:300]),
        "X and y must have the same length, got 400 and 300",
    ),
    "lengths of weights": (
        lambda: calibrate_dask(MODEL, X, Y, W[:300]),
        "X and weights must have the same length, got 400 and 300",
    ),
    "unknown lengths": (
        lambda: calibrate_dask(MODEL, X[Y > 0], Y.rechunk(100)),
        "y must have as many partitions as X if lengths are unknown, got 4 and 11; compute_chunk_",
    ),
    "unequal unknown lengths": (
        lambda: calibrate_dask(MODEL, X[Y > 0], Y),
        r"partition \d+: X and y must have the same length, got ",
    ),
    "dimensions": (
        lambda: calibrate_dask(MODEL, X[:, :, None], Y),
        r"X must have one or two dimensions, got shape \(400, 8, 1\)",
    ),
    "model": (
        lambda: calibrate_dask(models.Polynomial(3), X, Y),
        "model must be GaussianLinear, NormalInverseGammaLinear, HierarchicalLinear, Laplace",
    ),
    "folds": (lambda: calibrate_dask(MODEL, X, Y, n_folds=1), "n_folds must be at least 2, got 1"),
    "client": (
        lambda: calibrate_dask(MODEL, X, Y, client="tcp://here"),
        "client must be a distributed.Client or None, got 'tcp://here'",
    ),
    "seed": (lambda: calibrate_dask(MODEL, X, Y, seed=-1), "seed must be at least 0, got -1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_line(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=f"^{message}") as raised:
        call()
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_the_benchmark_runs():
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.cluster", "--quick"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for part in ("First pass", "Second pass", "Scheduler: ", "in one process", "Estimate for"):
        assert part in done.stdout


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    message = r"^calibrate_dask needs dask: pip install 'temperance\[dask\]'$"
    with pytest.raises(ImportError, match=message):
        calibrate_dask(MODEL, X, Y)
