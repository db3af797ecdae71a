"""SafeBayes at fixed beta beside loops that refit at every step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar

from benchmarks.problems import named, regression
from benchmarks.record import Record
from benchmarks.timing import once, peak_bytes, seconds
from temperance import calibrate, models
from temperance.strategies import SafeBayes

AIM = 1 / 100
LOOPS = {"a plain loop": False, "a thrifty loop": True}
STEPS = 400  # steps of the loop that are timed when it is too long


def stepwise_risk(
    X: np.ndarray,
    y: np.ndarray,
    beta: float,
    first: int = 1,
    last: int | None = None,
    thrifty: bool = False,
) -> float:
    """Predict row t from the posterior of the rows before it; prior N(0, I), unit noise.

    The plain loop computes the mean and the covariance of each posterior; the thrifty one solves
    for the two numbers that the loss needs.
    """
    d = X.shape[1]
    precision, linear = np.eye(d), np.zeros(d)
    seen = X[:first]
    precision += beta * seen.T @ seen
    linear += beta * seen.T @ y[:first]
    total = 0.0
    for z, response in zip(X[first:last], y[first:last], strict=True):
        if thrifty:
            mean, spread = np.linalg.solve(precision, np.column_stack([linear, z])).T
        else:
            covariance = np.linalg.inv(precision)
            mean, spread = covariance @ linear, covariance @ z
        total += 0.5 * ((response - z @ mean) ** 2 + z @ spread)
        precision += beta * np.outer(z, z)
        linear += beta * response * z
    return total


def evaluations() -> int:
    """Count the curve's points that scipy.optimize asks for, on a small problem."""
    X, y = regression(100, 30)
    found = minimize_scalar(
        lambda beta: stepwise_risk(X, y, beta), bounds=(0.0, 3.0), method="bounded"
    )
    return int(found.nfev)


def measure(quick: bool) -> Iterator[Record]:
    """Yield calibrations beside the loop, whose time is carried to all steps and points."""
    points = evaluations()
    for n, d in [(2000, 20)] if quick else [(10_000, 100), (100_000, 100)]:
        X, y = regression(n, d)
        model = models.GaussianLinear(noise_variance=1.0)
        ours = partial(calibrate, model, X, y, SafeBayes())
        took = seconds({"ours": ours}, repeats=2)["ours"]
        numbers = {} if quick else {"peak memory over the data": peak_bytes(ours) / X.nbytes}
        for name, thrifty in LOOPS.items():
            yield Record(
                "safe-bayes",
                "SafeBayes at fixed beta",
                named(n, d),
                took,
                name,
                _step(X, y, thrifty) * n * points,
                None if thrifty else AIM,
                f"{STEPS} steps timed at one beta, carried to all and to scipy's {points} betas",
                {"points": points, **({} if thrifty else numbers)},
            )


def _step(X: np.ndarray, y: np.ndarray, thrifty: bool) -> float:
    """Return the seconds of one step, timed in the middle of the rows."""
    middle = len(y) // 2
    loop = partial(stepwise_risk, X, y, 1.0, middle, thrifty=thrifty)
    loop(last=middle + 20)  # warm up
    part = min(once(partial(loop, last=middle + STEPS)) for _ in range(2))
    return (part - once(partial(loop, last=middle))) / STEPS
