"""Hostile problems from fixed seeds; ``make fuzz`` runs as many more as there is time for."""

import pytest
from fuzz import __main__ as driver
from fuzz import calibrations
from fuzz.problems import problem
from fuzz.watchdog import OutOfTimeError, limited

CASES, CHUNK = 260, 20
# Each was wrong once, or held to be.
ONCE_WRONG = (145, 246, 250, 30124, 100105, 100117, 100288, 100517, 100598, 100660, 100801, 101163,
              101234, 101271, 101319, 101355, 101434, 101494, 101510, 101658, 200530,
              200984, 201164, 201921, 201976, 212075, 212233, 212674, 212796, 212846,
              212989, 213373, 214533, 214832, 215042, 300769)  # fmt: skip


def chunk(first):
    """The first forty always, the others among slow tests."""
    return pytest.param(first, marks=pytest.mark.slow if first >= 40 else ())


@pytest.mark.parametrize("first", [chunk(first) for first in range(0, CASES, CHUNK)])
def test_calibrations_of_hostile_problems_are_right_or_refused(first):
    failures = []
    for seed in range(first, first + CHUNK):
        try:
            with limited(30):
                failures.append(calibrations.run(seed))
        except OutOfTimeError as error:
            failures.append(f"{error} | {problem(seed)}")
    wrong = [failure for failure in failures if failure is not None]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_what_was_wrong_once_is_right(seed):
    assert calibrations.run(seed) is None


def test_a_problem_is_rebuilt_from_its_seed():
    for seed in range(20):
        assert str(problem(seed)) == str(problem(seed))
        assert "\n" not in str(problem(seed))


def test_a_case_that_takes_too_long_is_stopped():
    with pytest.raises(OutOfTimeError), limited(0.05):
        while True:
            try:
                sum(range(1000))
            except Exception:
                pass


def test_the_driver_shows_a_case_and_names_kinds_that_are_missing(capsys):
    assert driver.main(["--kind", "none-such", "--cases", "1"]) == 1
    assert "none-such" in capsys.readouterr().out
    driver.main(["--kind", "calibrations", "--seed", "1"])
    assert "seed 1: " in capsys.readouterr().out
