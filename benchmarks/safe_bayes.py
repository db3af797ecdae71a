"""SafeBayes beside a loop that refits at every step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar

from benchmarks.problems import named, regression
from benchmarks.record import Record
from benchmarks.timing import compare
from temperance import calibrate, models, strategies

LOOP = "a plain loop"
CONSTANT = np.log(2 * np.pi)


def stepwise_risk(X: np.ndarray, y: np.ndarray, beta: float) -> float:
    """Forecast row t from the posterior of the rows before it; prior N(0, I), unit noise."""
    precision, linear = np.eye(X.shape[1]), np.zeros(X.shape[1])
    total = 0.0
    for t, (x, response) in enumerate(zip(X, y, strict=True)):
        if t > 0:
            mean, spread = np.linalg.solve(precision, np.column_stack([linear, x])).T
            total += 0.5 * ((response - x @ mean) ** 2 + x @ spread + CONSTANT)
        precision += beta * np.outer(x, x)
        linear += beta * response * x
    return total / (len(y) - 1)


def plain_loop(X: np.ndarray, y: np.ndarray) -> float:
    """Let scipy search for beta, one pass over the rows for each value that it tries."""
    risk = partial(stepwise_risk, X, y)
    return minimize_scalar(risk, bounds=(0.0, 3.0), method="bounded").x


def measure(quick: bool) -> Iterator[Record]:
    """Yield the calibration and the loop."""
    n, d = (300, 5) if quick else (10_000, 20)
    X, y = regression(n, d)
    ours = partial(
        calibrate, models.GaussianLinear(1.0), X, y, strategies.SafeBayes(), risk="gibbs"
    )
    theirs = {LOOP: partial(plain_loop, X, y)}
    yield from compare("safe-bayes", named(n, d), {"SafeBayes": (ours, LOOP)}, theirs)
