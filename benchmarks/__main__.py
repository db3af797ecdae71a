"""Run, store, draw and write: ``python -m benchmarks`` from the root of the repository."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks import from_disk, growth, linear, safe_bayes, thesis, threads
from benchmarks.machine import machine, versions
from benchmarks.record import Results

ROOT = Path(__file__).resolve().parents[1]
PARTS = {
    "linear": linear,
    "safe-bayes": safe_bayes,
    "thesis": thesis,
    "growth": growth,
    "threads": threads,
    "from-disk": from_disk,
}
STORED = "performance.json"


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and do what it says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument(
        "--only",
        choices=PARTS,
        nargs="+",
        default=list(PARTS),
        metavar="PART",
        help=f"measure these again: {', '.join(PARTS)}",
    )
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
    stored = folder / STORED
    if not asked.page:
        shown = list(sys.argv[1:] if arguments is None else arguments)
        if "--out" in shown:
            del shown[shown.index("--out") : shown.index("--out") + 2]
        command = shlex.join(["python", "-m", "benchmarks", *shown])
        results = run(command, asked.only, asked.quick)
        if len(asked.only) < len(PARTS) and stored.exists():
            results = Results.read(stored).updated(results)
        results.write(stored)
    write(Results.read(stored), folder)
    print(f"-- the page: {folder / 'performance.md'}")


def run(command: str, parts: list[str], quick: bool) -> Results:
    """Measure, and say so as it goes."""
    records = []
    for name in parts:
        begin = time.perf_counter()
        limit = None if name == "threads" else 1
        with threadpool_limits(limit, user_api="blas"):
            for record in PARTS[name].measure(quick):
                beside = "" if record.ratio is None else f"  {record.ratio:.3g} x {record.beside}"
                print(f"{record.work}, {record.case}: {record.ours:.4g} s{beside}", flush=True)
                records.append(record)
        print(f"-- {name}: {time.perf_counter() - begin:.0f} s", flush=True)
    return Results(command, machine(), versions(), records)


def write(results: Results, folder: Path) -> None:
    """Draw the figures and write the page."""
    from benchmarks.figure import draw_growth, draw_ratios
    from benchmarks.page import page

    draw_ratios(results, folder / "performance-ratios.png")
    draw_growth(results, folder / "performance-growth.png")
    (folder / "performance.md").write_text(page(results))


if __name__ == "__main__":
    main()
