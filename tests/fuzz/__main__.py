"""Run many cases: ``python -m tests.fuzz --kind calibrations --cases 20000``."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from .cases import Result, case, described, leave_interrupts, module_of, without_numbers

KINDS = ("calibrations", "stores", "signals", "tables", "draws")
HARD_LIMIT = 60.0  # seconds of processor time, then the case has failed
REPORT_EVERY = 5.0  # seconds


@dataclass
class Totals:
    """What is known of the cases so far."""

    cases: int
    begin: float = field(default_factory=time.monotonic)
    done: int = 0
    endings: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    slowest: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Count a result."""
        self.done += 1
        self.endings[result.ending] += 1
        if result.failure is not None:
            self.failures[sort_of(result.failure)] += 1
        self.slowest = sorted([*self.slowest, result], key=lambda each: -each.seconds)[:5]

    def progress(self) -> str:
        """Return one line."""
        slowest = self.slowest[0] if self.slowest else None
        worst = f", slowest {slowest.seconds:.1f} s ({slowest.seed})" if slowest else ""
        return (
            f"{self.done} of {self.cases} in {time.monotonic() - self.begin:.0f} s, "
            f"{sum(self.failures.values())} failures{worst}"
        )

    def summary(self) -> str:
        """Return all that was counted."""
        lines = [self.progress(), "endings:"]
        lines += [f"{count:7d}  {ending}" for ending, count in self.endings.most_common()]
        if self.failures:
            lines += ["failures:"]
            lines += [f"{count:7d}  {sort}" for sort, count in self.failures.most_common()]
        lines += ["slowest, in seconds of processor time:"]
        lines += [f"{each.seconds:7.2f}  {each.kind} {each.seed}" for each in self.slowest]
        return "\n".join(lines)


def sort_of(failure: str) -> str:
    """Return what a failure has in common with others: the words before the problem, no numbers."""
    return without_numbers(failure.partition(" | ")[0])[:100]


def results(jobs: list[tuple[str, int, float]], processes: int) -> Iterator[Result | None]:
    """Yield results as they come, and None now and then while none does."""
    if processes == 1:
        yield from map(case, jobs)
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, initializer=leave_interrupts, maxtasksperchild=500) as pool:
        pending = pool.imap_unordered(case, jobs, chunksize=1)
        while True:
            try:
                yield pending.next(timeout=REPORT_EVERY)
            except StopIteration:
                return
            except multiprocessing.TimeoutError:
                yield None


def main(arguments: list[str] | None = None) -> int:
    """Run the cases; return 1 if any failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--kind", default="calibrations", help=", ".join(KINDS) + "; commas")
    parser.add_argument("--cases", type=int, default=1000, help="of each kind")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--seed", type=int, help="run and show this one case")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--limit", type=float, default=HARD_LIMIT, help="seconds for a case")
    asked = parser.parse_args(arguments)
    kinds = []
    for kind in asked.kind.split(","):
        try:
            module_of(kind)
        except ModuleNotFoundError as error:
            if error.name != f"{__package__}.{kind}":
                raise
            print(f"kind must be one of {', '.join(KINDS)} that is there, got {kind!r}")
            continue
        kinds.append(kind)
    if not kinds:
        return 1
    if asked.seed is not None:
        return sum([show(kind, asked.seed, asked.limit) for kind in kinds]) and 1
    seeds = range(asked.start, asked.start + asked.cases)
    jobs = [(kind, seed, asked.limit) for seed in seeds for kind in kinds]
    totals, told = Totals(len(jobs)), time.monotonic()
    try:
        for result in results(jobs, asked.processes):
            if result is not None:
                totals.add(result)
                if result.failure is not None:
                    print(f"{result.kind} {result.seed} {result.failure}", flush=True)
            if time.monotonic() - told > REPORT_EVERY:
                print(totals.progress(), flush=True)
                told = time.monotonic()
    except KeyboardInterrupt:
        print("interrupted")
    print(totals.summary())
    return 1 if totals.failures else 0


def show(kind: str, seed: int, limit: float) -> bool:
    """Run one case and print all that is known of it; return whether it failed."""
    module = module_of(kind)
    print(described(module, seed))
    result = case((kind, seed, limit))
    print(f"{result.ending}, {result.seconds:.2f} s of processor time")
    print(result.failure or "all is well")
    return result.failure is not None


if __name__ == "__main__":
    sys.exit(main())
