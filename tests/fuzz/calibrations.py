"""Calibrations of hostile problems: each ends in a right answer or in a refusal in one line."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from temperance.calibration import Calibration

from . import oracles
from .problems import Problem, problem

NOT_FOUND = "an answer, but elsewhere on its curve a refusal"


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Parameters
    ----------
    ending : "answer", with a note if a fit that the oracles asked for was refused, or the refusal
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
        with oracles.only_own_warnings():
            repr(result)
    except Exception as error:  # noqa: BLE001
        seconds = time.process_time() - begin
        wrong = oracles.manners_of(error)
        failure = None if wrong is None else f"manners: {wrong} | {case}"
        return Outcome(f"{type(error).__name__}: {error}", failure, seconds)
    seconds = time.process_time() - begin
    try:
        wrong = _judged(case, result)
    except ValueError as error:
        if not oracles.not_found(error):
            raise
        return Outcome(NOT_FOUND, None, seconds)
    return Outcome("answer", None if wrong is None else f"{wrong} | {case}", seconds)


def _judged(case: Problem, result: Calibration) -> str | None:
    """Return the first objection of an oracle; raise where one asks for a fit that is refused."""
    checks = [*oracles.ALWAYS, *oracles.PLAIN]
    changes = oracles.changes(case)
    if changes:
        chosen = changes[int(np.random.default_rng(case.seed).integers(len(changes)))]
        checks.append(partial(oracles.same_answer, change=chosen))
    for check in checks:
        name = getattr(check, "__name__", "same_answer")
        try:
            wrong = check(case, result)
        except Exception as error:  # noqa: BLE001
            if oracles.not_found(error):
                raise
            wrong = oracles.exception_in_words(error)
        if wrong is not None:
            return f"{name}: {wrong}"
    return None
