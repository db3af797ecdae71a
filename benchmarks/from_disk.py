"""1e8 values from disk, in one pass, beside the same rows in memory."""

from __future__ import annotations

import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap
from sklearn.model_selection import PredefinedSplit

from benchmarks.problems import named
from benchmarks.record import Record
from temperance import calibrate, models, strategies
from temperance.streaming import blocks_of_arrays, calibrate_blocks, fold_numbers

ROWS = 50_000


def measure(quick: bool) -> Iterator[Record]:
    """Yield the pass over the file, its peak memory and its distance from the answer in memory."""
    n, d = (20_000, 10) if quick else (2_000_000, 50)
    model = models.GaussianLinear(noise_variance=1.0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paths = _write(Path(folder), n, d)

        def blocks() -> Iterator[tuple]:
            return blocks_of_arrays(*(np.load(path, mmap_mode="r") for path in paths), rows=ROWS)

        begin = time.perf_counter()
        streamed = calibrate_blocks(model, blocks())
        took = time.perf_counter() - begin
        tracemalloc.start()
        calibrate_blocks(model, blocks())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        begin = time.perf_counter()
        arrays = [np.load(path) for path in paths]
        folds = strategies.FromSplitter(PredefinedSplit(fold_numbers(n, 10)))
        whole = calibrate(model, *arrays, folds)
        theirs = time.perf_counter() - begin
    betas = np.geomspace(1e-4, 3.0, 9)
    apart = np.abs(streamed.curve(betas) / whole.curve(betas) - 1).max()
    yield Record(
        "from disk",
        "10-fold, one pass over blocks",
        named(n, d),
        took,
        "the file loaded and the same folds from a splitter",
        theirs,
        numbers={
            "values": float(n * d),
            "bytes on disk": float(n * (d + 1) * 8),
            "peak bytes": float(peak),
            "largest relative difference of the curves": float(apart),
        },
    )


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
