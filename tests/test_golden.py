"""Calibrations give the numbers that were recorded, except where they changed on purpose.

``python -m tests.golden.write`` records them anew, or only those of the problems that it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from golden.kinds import Problem, numbers_of, quietly
from golden.problems import ON_PURPOSE, PROBLEMS
from golden.write import stored, text_of

Curve = Callable[[np.ndarray], np.ndarray]
EQUAL = 1e-9  # relative difference of the curve between two choices that are equally good


@cache
def written() -> dict[str, dict[str, Any]]:
    return stored()


def differences(
    problem: Problem, found: dict[str, Any], before: dict[str, Any], curve: Curve | None = None
) -> dict[str, str]:
    """Return what differs by more than its tolerance, with both numbers."""
    # If log beta changes by 1, a risk and a posterior change by about their own size at most.
    moved = distance(found["beta"], before["beta"])
    level = max(1.0, abs(before["risk"] or 0.0))
    error = max(before["gain_standard_error"] or 0.0, 0.01 * level)
    coefficients, forecasts = (size_of(before[key]) for key in ("intervals", "forecasts"))
    tolerance = {
        "beta": problem.beta_rtol * before["beta"],
        "beta_range": problem.range_rtol * np.abs(as_numbers(before["beta_range"])),
        "curve": problem.rtol * np.maximum(1.0, np.abs(as_numbers(before["curve"]))),
        "gain_standard_error": 10 * problem.rtol * error + moved * level,
        "risk": (problem.rtol + moved) * level,
        "mean": (10 * problem.rtol + moved) * coefficients,
        "intervals": (10 * problem.rtol + moved) * coefficients[..., None],
        "forecasts": (10 * problem.rtol + moved) * forecasts[..., None],
    }
    added = {"curve": problem.constant, "risk": problem.constant}
    differ = {
        key: f"was {before[key]} and is {found[key]}"
        for key in tolerance
        if not equal(found[key], before[key], added.get(key, 0.0), tolerance[key])
    }
    if "beta" in differ and equally_good(curve, found["beta"], before["beta"]):
        del differ["beta"]
    return differ


def as_numbers(values: Any) -> np.ndarray:
    return np.asarray(np.nan if values is None else values, dtype=float)


def size_of(ends: Any) -> np.ndarray:
    """Return the larger end of each interval, in absolute value."""
    return np.abs(np.atleast_1d(as_numbers(ends))).max(axis=-1)


def distance(beta: float | None, other: float) -> float:
    """Return how far apart the logarithms are; 1 at most, and if one is 0."""
    if beta == other:
        return 0.0
    return min(1.0, abs(float(np.log(beta / other)))) if beta and other else 1.0


def equal(found: Any, before: Any, added: float, tolerance: Any) -> bool:
    """Return whether numbers are as before, up to the constant added and the tolerance."""
    if found is None or before is None:
        return found is before
    now, then = as_numbers(found), as_numbers(before) + added
    return now.shape == then.shape and bool(np.all(np.abs(now - then) <= tolerance))


def equally_good(curve: Curve | None, beta: float | None, other: float) -> bool:
    """Return whether two choices are as good as each other, where the curve is flat."""
    if curve is None or beta is None:
        return False
    values = quietly(curve, np.array([beta, other]))
    return bool(np.ptp(values) <= EQUAL * max(1.0, np.abs(values).max()))


def on_purpose(name: str) -> set[str]:
    """Return the quantities of a problem that changed on purpose; "" stands for any."""
    named = [entry.partition(": ") for entry in ON_PURPOSE]
    return {quantity for problem, _, quantity in named if problem == name}


def test_the_numbers_are_those_of_the_problems():
    assert set(written()) == set(PROBLEMS)


def test_what_changed_on_purpose_is_among_the_numbers():
    for entry in ON_PURPOSE:
        name, _, quantity = entry.partition(": ")
        assert name in PROBLEMS and quantity in {"", *written()[name]}, entry


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_calibration_gives_the_recorded_numbers(name):
    problem, excused = PROBLEMS[name], on_purpose(name)
    solution = quietly(problem.solved)
    found = quietly(numbers_of, problem, solution)
    calibration = solution.calibration
    curve = None if calibration.table is None else calibration.curve
    changed = differences(problem, found, written()[name], curve)
    if "" in excused:
        assert changed, f"{name} is as it was: take it out of ON_PURPOSE"
        return
    unchanged = excused - set(changed)
    assert not unchanged, f"{unchanged} of {name} are as they were: take them out of ON_PURPOSE"
    unexpected = [f"{key} {words}" for key, words in changed.items() if key not in excused]
    assert not unexpected, "\n".join(unexpected)


NOTICED = ("linear-40-40-8/k-fold", "rates/sandwich", "hierarchical/leave-one-out")


@pytest.mark.parametrize("key", list(written()[NOTICED[0]]))
@pytest.mark.parametrize("name", NOTICED)
def test_another_number_is_noticed(name, key):
    problem, before = replace(PROBLEMS[name], constant=0.0), written()[name]
    missing = before[key] is None
    change = 1 + (0.01 if key in ("beta", "beta_range") else 3e-6)
    other = 0.0 if missing else (as_numbers(before[key]) * change).tolist()
    assert key in differences(problem, before | {key: other}, before)
    assert missing or key in differences(problem, before | {key: None}, before)
    assert not differences(problem, before, before)


def test_another_choice_is_as_good_where_the_curve_is_flat():
    assert equally_good(lambda beta: 1 + 0 * beta, 0.5, 2.0)
    assert not equally_good(lambda beta: 1 + 1e-8 * beta, 0.5, 2.0)
    assert not equally_good(None, 0.5, 2.0)


def test_a_constant_is_added_to_the_curve_and_to_nothing_else():
    name, constant = "mean/split/predictive", 0.5 * np.log(2 * np.pi * 4.0)
    problem, before = PROBLEMS[name], written()[name]
    with_constant = before | {
        key: (as_numbers(before[key]) + constant).tolist() for key in ("curve", "risk")
    }
    without, gained = replace(problem, constant=0.0), replace(problem, constant=constant)
    assert not differences(without, before, before)
    assert set(differences(without, with_constant, before)) == {"curve", "risk"}
    assert not differences(gained, with_constant, before)
    assert set(differences(gained, before, before)) == {"curve", "risk"}


def test_numbers_are_written_with_all_their_digits():
    text = text_of({"a": {"risk": 0.1 + 0.2, "beta": 0.1}})
    assert text == '{\n  "a": {\n    "beta": 0.1,\n    "risk": 0.30000000000000004\n  }\n}\n'
