"""What a partition costs on a cluster, the numbers of docs/cluster.md.

``python -m benchmarks.cluster`` prints them; with ``logistic`` after it, those of a logistic model
on many rows (:mod:`benchmarks.cluster_logistic`).

Seconds are those of one core, on the processor's clock, with one thread of BLAS; those of the
scheduler are the processor's time of the process in which it runs, divided by the partitions.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import cluster_logistic
from benchmarks.machine import machine, versions
from benchmarks.timing import once, peak_bytes, seconds
from temperance import models
from temperance.streaming import calibrate_blocks, calibrate_dask
from temperance.streaming.partitions import Folded, S, Statistic, merge_group
from temperance.streaming.sample import MOST

PAGE = Path(__file__).resolve().parents[1] / "docs" / "spark.md"
MODEL = models.GaussianLinear(noise_variance=1.0)
ROWS, COLUMNS = (10_000, 100_000), (10, 50, 100)
LOGISTIC = (1_000, 10), (10_000, 10), (1_000, 50), (10_000, 50)
MACHINES, CORES, PARTITION, TARGET = 20, 8, 1_000_000, (1_000_000_000, 100)


class Cost(NamedTuple):
    """Cost of one pass over one partition."""

    rows: int
    columns: int
    seconds: float
    size: int  # bytes of the statistic
    merge: float  # seconds to merge eight of them
    peak: int  # bytes held beyond the rows

    @property
    def row(self) -> float:
        """Seconds for each row."""
        return self.seconds / self.rows


class Recorded:
    """One partition, whose statistics are kept: what a pass computes is measured afterwards."""

    def __init__(self, block: tuple[Any, ...]) -> None:
        self.block, self.statistics = block, []

    def total(self, statistic: Statistic[S]) -> S:
        """Compute the statistic of the partition."""
        self.statistics.append(statistic)
        return statistic(0, self.block)


def some_rows(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a partition."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, X[:, 0] + 2 * rng.standard_normal(n)


def first_pass(n: int, d: int) -> Cost:
    """Measure the moments of ten folds."""
    return cost(Folded(10), some_rows(n, d), n, d, lambda each: len(each.to_bytes()))


def second_pass(n: int, d: int, total: int | None = None) -> Cost:
    """Measure the losses of a stack and their sample, of so many rows or of 100 partitions."""
    from temperance.streaming.calibrate import as_strategy, calibrate_partitions

    partition = Recorded(some_rows(n, d))
    stack = as_strategy(None, MODEL, "predictive", (0.0, 3.0))
    calibrate_partitions(MODEL, partition, stack, Folded(1))
    every = max(1.0, (total or 100 * n) / MOST)
    statistic = replace(partition.statistics[1], largest=np.uint64(2**63 / every) * np.uint64(2))

    def size(found: Any) -> int:
        return found.losses.nbytes + found.keys.nbytes + found.weights.nbytes

    return cost(statistic, partition.block, n, d, size)


def newton_pass(n: int, d: int) -> Cost:
    """Measure a step of the modes of ten folds of a logistic model, at all betas."""
    from temperance.streaming.calibrate import as_strategy, calibrate_partitions

    X, y = some_rows(n, d)
    model, partition = models.LaplaceLogistic(), Recorded((X, (y > 0).astype(float)))
    stack = as_strategy(None, model, "predictive", (0.0, 3.0))
    calibrate_partitions(model, partition, stack, Folded(10))
    asked = partition.statistics
    (step, *_) = (each for each in asked if len(getattr(each, "theta", "")) == 10)
    nodes = step.theta.shape[1]
    print(f"Logistic model of {n} x {d}: {len(asked)} passes, {nodes} betas", flush=True)

    def size(found: Any) -> int:
        return sum(part.nbytes for part in found[1:])

    return cost(step, partition.block, n, d, size)


def cost(
    statistic: Any, block: tuple[Any, ...], n: int, d: int, size: Callable[[Any], int]
) -> Cost:
    """Measure a statistic of a partition, and a merge of eight."""
    found = statistic(0, block)
    took = seconds({"pass": lambda: statistic(0, block), "merge": lambda: merge_group([found] * 8)})
    peak = peak_bytes(lambda: statistic(0, block))
    return Cost(n, d, took["pass"], size(found), took["merge"], peak)


def scheduling(partitions: int) -> float:
    """Return the seconds that the scheduler spends on one partition."""
    import dask.array as da
    from distributed import Client, LocalCluster

    X, y = some_rows(20 * partitions, 2)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        rows = da.from_array(X, chunks=(20, 2)), da.from_array(y, chunks=20)
        kept = [each.persist() for each in rows]
        calibrate_dask(MODEL, *kept, client=client, risk="gibbs")
        return once(lambda: calibrate_dask(MODEL, *kept, client=client, risk="gibbs")) / partitions


def on_this_machine(partitions: int, n: int, d: int) -> tuple[float, float]:
    """Return the wall seconds of blocks in this process, and of two workers on this machine."""
    import dask.array as da
    from distributed import Client, LocalCluster

    X, y = some_rows(n * partitions, d)
    blocks = [(X[i * n : (i + 1) * n], y[i * n : (i + 1) * n]) for i in range(partitions)]
    alone = min(
        once(
            lambda: calibrate_blocks(MODEL, blocks, risk="gibbs", folds="blocks"), time.perf_counter
        )
        for _ in range(3)
    )
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        kept = [da.from_array(X, (n, d)).persist(), da.from_array(y, n).persist()]
        calibrate_dask(MODEL, *kept, client=client, risk="gibbs")
        together = min(
            once(
                lambda: calibrate_dask(MODEL, *kept, client=client, risk="gibbs"), time.perf_counter
            )
            for _ in range(3)
        )
    return alone, together


def on_spark(partitions: int, n: int, d: int) -> tuple[float, float, float]:
    """Return the wall seconds that Spark takes to start, and the page's recipe, twice."""
    import pandas as pd
    from pyspark.sql import SparkSession

    begin = time.perf_counter()
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.adaptive.enabled", "false")
        .getOrCreate()
    )
    start = time.perf_counter() - begin
    X, y = some_rows(n * partitions, d)
    whole = pd.DataFrame(X, columns=[f"x{i}" for i in range(d)]).assign(y=y)
    (recipe,) = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        whole.to_parquet(f"{folder}/rows.parquet", row_group_size=n)
        rows = spark.read.parquet(f"{folder}/rows.parquet").repartition(partitions)
        rows = rows.localCheckpoint()
        code = compile(recipe, "docs/spark.md", "exec", dont_inherit=True)
        first, second = (
            once(lambda: exec(code, {"rows": rows}), time.perf_counter) for _ in range(2)
        )
    spark.stop()
    return start, first, second


def table(costs: list[Cost]) -> str:
    """Write a row for each size."""
    lines = [
        "| rows x columns | seconds a partition | microseconds a row | sent | to merge 8 | peak |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for each in costs:
        lines.append(
            f"| {each.rows:,} x {each.columns} | {each.seconds:.3f} | {1e6 * each.row:.2f} | "
            f"{each.size / 1e3:.0f} kB | {1e3 * each.merge:.1f} ms | {each.peak / 1e6:.0f} MB |"
        )
    return "\n".join(lines)


def estimate(first: Cost, second: Cost, overhead: float) -> str:
    """Say what the model gives for very many rows."""
    (n, d), workers = TARGET, MACHINES * CORES
    count = n // PARTITION
    merging = math.ceil(math.log(count, 8))
    lines = []
    for name, each in (("first pass", first), ("second pass", second)):
        computing = math.ceil(count / workers) * PARTITION * each.row
        total = computing + count * overhead + merging * each.merge
        lines.append(
            f"- {name}: {computing:.0f} s of computing on {workers} cores, "
            f"{count * overhead:.1f} s of scheduling, {merging * each.merge:.2f} s of merging in "
            f"{merging} levels, "
            f"{total:.0f} s in all; {count * each.size / 1e6:.0f} MB sent"
        )
    held = 8 * PARTITION * (d + 1) + max(first.peak, second.peak)
    lines.append(f"- memory: {held / 1e9:.1f} GB for each core, its partition included")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("passes", "logistic"), default="passes")
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the logistic model")
    parser.add_argument("--columns", type=int, default=50, help="of the logistic model")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--spark", action="store_true", help="only the recipe of docs/spark.md")
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if asked.what == "logistic":
        with threadpool_limits(1, user_api="blas"):
            cluster_logistic.main(asked.rows, asked.columns)
        return
    if asked.spark:
        start, first, second = on_spark(16, 25_000, 20)
        print(f"\nSpark: {start:.0f} s to start, {first:.1f} s and {second:.1f} s for the recipe")
        return
    quick = asked.quick
    sizes = [(n, d) for d in COLUMNS for n in ROWS] if not quick else [(1000, 5)]
    print(f"{machine()}, {versions()}\n")
    with threadpool_limits(1, user_api="blas"):
        first, second = ([each(*size) for size in sizes] for each in (first_pass, second_pass))
        print("First pass, ten folds\n\n" + table(first))
        print("\nSecond pass, a stack\n\n" + table(second))
        steps = [newton_pass(*size) for size in ([(500, 3)] if quick else LOGISTIC)]
        print("\nStep of a logistic model\n\n" + table(steps))
        overhead = scheduling(20 if quick else 400)
        print(f"\nScheduler: {1e3 * overhead:.1f} ms a partition")
        for n, d in [(500, 5)] if quick else [(1000, 50), (10_000, 50), (50_000, 50)]:
            alone, together = on_this_machine(4 if quick else 20, n, d)
            print(f"20 partitions of {n} x {d}: {alone:.2f} s in one process, {together:.2f} s")
        print(f"\nEstimate for {TARGET[0]:.0e} x {TARGET[1]}\n\n", end="")
        n, d = sizes[-1]
        print(estimate(first[-1], second_pass(n, d, TARGET[0]), overhead))


if __name__ == "__main__":
    sys.exit(main())
