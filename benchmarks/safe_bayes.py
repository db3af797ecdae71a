"""SafeBayes at fixed beta beside a loop that refits at every step."""

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
STEPS = 400  # steps of the loop that are timed when it is too long


def stepwise_risk(
    X: np.ndarray, y: np.ndarray, beta: float, first: int = 1, last: int | None = None
) -> float:
    """Predict row t from the posterior of the rows before it; prior N(0, I), unit noise."""
    d = X.shape[1]
    precision, linear = np.eye(d), np.zeros(d)
    seen = X[:first]
    precision += beta * seen.T @ seen
    linear += beta * seen.T @ y[:first]
    total = 0.0
    for z, response in zip(X[first:last], y[first:last], strict=True):
        mean, spread = np.linalg.solve(precision, np.column_stack([linear, z])).T
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
        middle = n // 2
        stepwise_risk(X, y, 1.0, middle, middle + 20)  # warm up
        part = min(
            once(partial(stepwise_risk, X, y, 1.0, middle, middle + STEPS)) for _ in range(2)
        )
        start = once(partial(stepwise_risk, X, y, 1.0, middle, middle))
        numbers = {"points": points}
        if not quick:
            numbers["peak memory over the data"] = peak_bytes(ours) / X.nbytes
        yield Record(
            "safe-bayes",
            "SafeBayes at fixed beta",
            named(n, d),
            took,
            "a loop of refits",
            (part - start) / STEPS * n * points,
            AIM,
            f"{STEPS} steps timed at one beta, carried to all and to scipy's {points} betas",
            numbers,
        )
