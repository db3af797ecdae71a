"""Small and large problems with one thread of BLAS, and with all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks.problems import named, regression
from benchmarks.record import Record
from benchmarks.timing import seconds
from temperance import calibrate, models
from temperance import resources as limits


def measure(quick: bool) -> Iterator[Record]:
    """Yield the library's choice beside leaving all threads to BLAS."""
    model = models.GaussianLinear(noise_variance=1.0)
    sizes = (
        [(100, 20), (1000, 50)]
        if quick
        else [(100, 20), (1000, 50), (2000, 200), (100_000, 100), (500_000, 100), (1_200_000, 100)]
    )
    for n, d in sizes:
        call = partial(calibrate, model, *regression(n, d), "k-fold")
        took = seconds(
            {
                "chosen": call,
                "one": partial(_with_limit, float("inf"), call),
                "all": partial(_with_limit, -1, call),
            },
            repeats=9,
            clock=time.perf_counter,
        )
        yield Record(
            "threads",
            "10-fold",
            named(n, d),
            took["chosen"],
            "all threads",
            took["all"],
            numbers={"one thread": took["one"]},
        )


def _with_limit(elements: float, call: Callable[[], Any]) -> None:
    """Call with another size of problem from which BLAS has all threads."""
    before = limits.LARGE
    limits.LARGE = elements
    try:
        call()
    finally:
        limits.LARGE = before
