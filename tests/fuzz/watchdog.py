"""A limit on how long one case may take."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

WALL_PER_CPU = 10  # a loaded machine may give a case a tenth of a processor


class OutOfTimeError(BaseException):
    """A case took too long; no handler of errors may keep it."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `OutOfTimeError` after so many seconds of processor time, or ten times that in all."""
    timers = (
        (signal.SIGVTALRM, signal.ITIMER_VIRTUAL, seconds),
        (signal.SIGALRM, signal.ITIMER_REAL, WALL_PER_CPU * seconds),
    )
    before = []
    for number, timer, limit in timers:
        before.append((number, timer, signal.signal(number, _stop)))
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for number, timer, handler in before:
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    place = ""
    while frame is not None and not place:
        file = frame.f_code.co_filename
        if "temperance/" in file and "/fuzz/" not in file:
            place = f" in {file.rsplit('temperance/', 1)[1]}:{frame.f_lineno}"
        frame = frame.f_back
    raise OutOfTimeError(f"out of time{place}")
