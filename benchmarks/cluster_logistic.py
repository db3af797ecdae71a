"""A logistic model on rows that are nowhere in one place: time, passes and memory.

``python -m benchmarks.cluster logistic --rows 10000000 --columns 50`` prints them, beside
scikit-learn's own fits of one model to a part of the rows.  Each partition is generated from (seed,
number) whenever a pass needs it, by one of two processes.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.machine import machine, versions
from benchmarks.timing import once
from temperance import models
from temperance.data import Data
from temperance.plans import Folds
from temperance.strategies import KFold, Stacking
from temperance.streaming.calibrate import calibrate_partitions
from temperance.streaming.dask_partitions import DaskPartitions
from temperance.streaming.folds import partition_folds
from temperance.streaming.partitions import Blocks, Folded, S, Statistic
from temperance.table import half_decades

MODEL, FOLDS, PROCESSES = models.LaplaceLogistic(), 10, 2
STACK = Stacking(KFold(FOLDS, duplicates="apart"))
PARTITION, COMPARED, PART = 100_000, 100_000, 1_000_000
BETAS = half_decades((0.0, 3.0))


def block(number: int, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Generate a partition; 1 is a label of 50 % of its rows."""
    rng = np.random.default_rng([0, number])
    X = rng.standard_normal((rows, columns))
    theta = np.random.default_rng(1).standard_normal(columns) / np.sqrt(columns)
    return X, (rng.random(rows) < 1 / (1 + np.exp(-(X @ theta)))).astype(float)


@dataclass(frozen=True, eq=False)
class Timed(DaskPartitions):
    """Partitions that say how long each pass takes."""

    took: list[float] = field(default_factory=list)

    def total(self, statistic: Statistic[S]) -> S:
        """Return the statistic of all rows, in one pass."""
        begin = time.perf_counter()
        found = super().total(statistic)
        self.took.append(time.perf_counter() - begin)
        points = getattr(statistic, "theta", None)
        many = "" if points is None else f" at {points[..., 0].size} points"
        kind = type(statistic).__name__
        print(f"pass {len(self.took)}: {kind}{many}, {self.took[-1]:.1f} s", flush=True)
        return found


def calibrated(rows: int, columns: int) -> None:
    """Calibrate in passes over generated partitions, and print what it took."""
    import dask
    from distributed import Client, LocalCluster

    size = min(PARTITION, rows // 4)
    generate = dask.delayed(block, pure=False, nout=2)
    with (
        LocalCluster(n_workers=PROCESSES, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        parts = [tuple(generate(number, size, columns)) for number in range(rows // size)]
        partitions = Timed(parts, client)
        begin, used = time.perf_counter(), processor(client)
        found = calibrate_partitions(MODEL, partitions, STACK, Folded(FOLDS))
        wall, used = time.perf_counter() - begin, processor(client) - used
        peaks = [peak(), *client.run(peak).values()]
    print(found)
    print(
        f"{rows} x {columns}, {len(parts)} partitions, {FOLDS} folds: {len(partitions.took)} "
        f"passes, {wall:.0f} s on {PROCESSES} processes, {used:.0f} s of processors, "
        f"{1e6 * used / rows:.0f} microseconds a row; peak memory {sum(peaks) / 2**20:.0f} MB: "
        + ", ".join(f"{each / 2**20:.0f}" for each in peaks)
    )


def processor(client: Any) -> float:
    """Return the processor's seconds of this process and of all workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def peak() -> int:
    """Return the most memory that this process has held, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def compared(rows: int, columns: int) -> None:
    """Print how far the curve lies from that in memory, relative to it."""
    size = rows // 4
    blocks = [block(number, size, columns) for number in range(4)]
    took: dict[str, float] = {}

    def timed(name: str, call: Callable[[], Any]) -> Any:
        results: list[Any] = []
        took[name] = once(lambda: results.append(call()))
        return results[0]

    found = timed(
        "passes", lambda: calibrate_partitions(MODEL, Blocks(blocks), STACK, Folded(FOLDS))
    )
    fold = np.concatenate([partition_folds(FOLDS, 0, number).take(size) for number in range(4)])
    X, y = (np.concatenate(part) for part in zip(*blocks, strict=True))
    ones = np.ones(len(y))
    curve = MODEL.risk_curve(Data(X, y, ones), Folds(ones, fold, FOLDS), "predictive")
    values = timed("memory", lambda: np.array([curve(float(beta)) for beta in BETAS]))
    error = np.abs(found.curve(BETAS) / values - 1).max()
    print(
        f"{rows} x {columns}: curve within {error:.1e} of that in memory; {took['passes']:.0f} s "
        f"in passes, {took['memory']:.0f} s in memory at {len(BETAS)} betas"
    )


def beside(rows: int, columns: int) -> None:
    """Print how long scikit-learn takes to fit one model to some rows."""
    from sklearn.linear_model import LogisticRegression, SGDClassifier

    size = min(PARTITION, rows)
    blocks = [block(number, size, columns) for number in range(rows // size)]
    X, y = (np.concatenate(part) for part in zip(*blocks, strict=True))
    exact = LogisticRegression(fit_intercept=False, tol=1e-8, max_iter=1000)
    stochastic = SGDClassifier(loss="log_loss", alpha=1 / len(y), fit_intercept=False)

    def once_through() -> None:
        for part in blocks:
            stochastic.partial_fit(*part, classes=[0.0, 1.0])

    print(
        f"LogisticRegression, {len(y)} x {columns}, one fit: {once(lambda: exact.fit(X, y)):.1f} s"
    )
    print(f"SGDClassifier.partial_fit, {len(y)} x {columns}, once: {once(once_through):.1f} s")
    distance = np.linalg.norm(stochastic.coef_ - exact.coef_) / np.linalg.norm(exact.coef_)
    print(f"its coefficients are {distance:.1e} away, relative to the exact ones")


def main(rows: int, columns: int) -> None:
    """Measure and print."""
    print(f"{machine()}, {versions()}\n", flush=True)
    calibrated(rows, columns)
    compared(min(rows, COMPARED), columns)
    beside(min(rows, PART), columns)
