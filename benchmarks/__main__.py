"""Run, store, draw and write: ``python -m benchmarks`` from the root of the repository."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks import estimators, from_disk, linear, logistic, safe_bayes
from benchmarks.machine import machine, versions
from benchmarks.record import Results

ROOT = Path(__file__).resolve().parents[1]
PARTS = (estimators, linear, logistic, safe_bayes, from_disk)
STORED = "performance.json"


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and do what it says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument(
        "--page", action="store_true", help="only write the page from stored results"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="folder of the results: docs, or build/benchmarks for quick ones, unless you say so",
    )
    asked = parser.parse_args(arguments)
    folder = asked.out or ROOT / ("build/benchmarks" if asked.quick else "docs")
    folder.mkdir(parents=True, exist_ok=True)
    if not asked.page:
        run(asked.quick).write(folder / STORED)
    write(Results.read(folder / STORED), folder)
    print(f"-- the page: {folder / 'performance.md'}")


def run(quick: bool) -> Results:
    """Measure, and say so as it goes."""
    records = []
    for part in PARTS:
        begin = time.perf_counter()
        with threadpool_limits(1, user_api="blas"):
            for record in part.measure(quick):
                print(f"{record.work}, {record.size}: {record.seconds:.4g} s", flush=True)
                records.append(record)
        print(f"-- {part.__name__}: {time.perf_counter() - begin:.0f} s", flush=True)
    command = "python -m benchmarks" + (" --quick" if quick else "")
    return Results(command, machine(), versions(), records)


def write(results: Results, folder: Path) -> None:
    """Draw the figure and write the page."""
    from benchmarks.figure import draw
    from benchmarks.page import page

    draw(results, folder / "performance-ratios.png")
    (folder / "performance.md").write_text(page(results))


if __name__ == "__main__":
    main()
