"""Calibrations of hostile problems: each ends in a right answer or in a refusal in one line."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from . import oracles
from .problems import problem


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Parameters
    ----------
    ending : "answer", or the refusal's message
    failure : one line, or None if all is well
    seconds : processor time of the calibration alone
    """

    ending: str
    failure: str | None
    seconds: float


def run(seed: int) -> str | None:
    """Return what is wrong with the calibration of a problem in one line, None if all is well."""
    return examine(seed).failure


def examine(seed: int) -> Outcome:
    """Calibrate a problem and hold the answer against the oracles."""
    case = problem(seed)
    begin = time.process_time()
    try:
        result = oracles.calibrated(case)
        repr(result)
    except Exception as error:  # noqa: BLE001
        seconds = time.process_time() - begin
        wrong = oracles.manners_of(error)
        failure = None if wrong is None else f"manners: {wrong} | {case}"
        return Outcome(f"{type(error).__name__}: {error}", failure, seconds)
    seconds = time.process_time() - begin
    checks = [*oracles.ALWAYS, *oracles.PLAIN]
    for check in checks:
        try:
            wrong = check(case, result)
        except Exception as error:  # noqa: BLE001
            wrong = f"{type(error).__name__}{oracles._place(error)}: {error}"
        if wrong is not None:
            return Outcome("answer", f"{check.__name__}: {wrong} | {case}", seconds)
    changes = oracles.changes(case)
    if changes:
        chosen = changes[int(np.random.default_rng(seed).integers(len(changes)))]
        try:
            wrong = oracles.same_answer(case, result, chosen)
        except Exception as error:  # noqa: BLE001
            wrong = f"{chosen.name}: {type(error).__name__}{oracles._place(error)}: {error}"
        if wrong is not None:
            return Outcome("answer", f"same_answer: {wrong} | {case}", seconds)
    return Outcome("answer", None, seconds)
