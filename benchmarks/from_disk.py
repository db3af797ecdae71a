"""1e8 values from disk, in one pass, beside the same rows in memory."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap
from sklearn.model_selection import PredefinedSplit

from benchmarks.problems import named
from benchmarks.record import Record
from benchmarks.timing import once, peak_bytes
from temperance import Calibration, calibrate, models, strategies
from temperance.streaming import blocks_of_arrays, calibrate_blocks, fold_numbers

ROWS = 50_000  # of a block
MODEL = models.GaussianLinear(noise_variance=1.0)
PASS, WHOLE = "one pass over blocks", "the same folds in memory, loading included"


def measure(quick: bool) -> Iterator[Record]:
    """Yield the pass over the files, its peak memory and its distance from the answer in memory."""
    n, d = (20_000, 10) if quick else (2_000_000, 50)
    found: dict[str, Calibration] = {}
    with tempfile.TemporaryDirectory() as folder:
        paths = _write(Path(folder), n, d)

        def in_blocks() -> None:
            arrays = (np.load(path, mmap_mode="r") for path in paths)
            blocks = blocks_of_arrays(*arrays, rows=ROWS)
            found[PASS] = calibrate_blocks(MODEL, blocks, risk="gibbs")

        def in_memory() -> None:
            folds = strategies.FromSplitter(PredefinedSplit(fold_numbers(n, 10)))
            rows = (np.load(path) for path in paths)
            found[WHOLE] = calibrate(MODEL, *rows, folds, risk="gibbs")

        # The clock on the wall: to wait for the disk counts.
        took, theirs = (once(call, time.perf_counter) for call in (in_blocks, in_memory))
        peak = peak_bytes(in_blocks)
    betas = np.geomspace(1e-4, 3.0, 9)
    apart = np.abs(found[PASS].curve(betas) / found[WHOLE].curve(betas) - 1).max()
    numbers = {
        "bytes on disk": float(n * (d + 1) * 8),
        "peak bytes": float(peak),
        "largest relative difference of the curves": float(apart),
    }
    yield Record("from disk", PASS, named(n, d), took, WHOLE, numbers)
    yield Record("from disk", WHOLE, named(n, d), theirs)


def _write(folder: Path, n: int, d: int) -> tuple[Path, Path]:
    """Write rows block by block, so that writing them takes no memory either."""
    paths = folder / "X.npy", folder / "y.npy"
    X, y = (
        open_memmap(path, "w+", shape=shape)
        for path, shape in zip(paths, ((n, d), (n,)), strict=True)
    )
    rng = np.random.default_rng(0)
    signal = rng.standard_normal(d) / np.sqrt(d)
    for begin in range(0, n, ROWS):
        part = slice(begin, min(begin + ROWS, n))
        X[part] = rng.standard_normal((part.stop - begin, d))
        y[part] = X[part] @ signal + 2 * rng.standard_normal(part.stop - begin)
    return paths
