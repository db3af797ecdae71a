"""Linear models beside scikit-learn's, and beside the least that any method must do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from sklearn.linear_model import BayesianRidge, RidgeCV

from benchmarks.problems import named, regression
from benchmarks.record import Record
from benchmarks.timing import seconds
from temperance import calibrate, models

SIZES = [(1000, 10), (1000, 100), (100_000, 10), (10_000, 100), (2000, 500), (100_000, 100)]
LARGE = [(20_000, 500), (1_000_000, 10), (1_000_000, 50)]
QUICK = [(1000, 10), (2000, 50)]
MOST_RIDGE = 1e9  # n d^2 beyond which RidgeCV takes minutes
UNEVEN = [(100_000, 10), (100_000, 100)]
OTHERS = (100_000, 20)  # rows and columns of other risks and models
SMALL = 1e5  # values
MANY_ROWS = 100  # times as many rows as columns: n >> d


def measure(quick: bool) -> Iterator[Record]:
    """Yield strategies, each beside what it competes with."""
    for n, d in QUICK if quick else SIZES + LARGE:
        # Small ones are soon repeated, and disturbed most.
        yield from _of_size(n, d, repeats=2 if quick else 5 if n * d > SMALL else 25)
    if not quick:
        for n, d in UNEVEN:
            yield from _uneven(n, d)
        yield from _other_risks(*OTHERS)


def _of_size(n: int, d: int, repeats: int) -> Iterator[Record]:
    X, y = regression(n, d)
    model = models.GaussianLinear(noise_variance=1.0)
    ours = {
        "10-fold": partial(calibrate, model, X, y, "k-fold"),
        "leave-one-out": partial(calibrate, model, X, y, "leave-one-out"),
        "sample splitting": partial(calibrate, model, X, y, "sample-splitting"),
        "reference risk": partial(calibrate, model, X, y, "reference-risk"),
    }
    theirs = {
        "X'X and eigenvectors": lambda: np.linalg.eigh(X.T @ X),
        "BayesianRidge.fit": lambda: BayesianRidge().fit(X, y),
        "posterior fit": lambda: model.posterior(X, y, alpha=float(n)),
    }
    if n * d**2 <= MOST_RIDGE:
        theirs["RidgeCV, 100 penalties"] = lambda: RidgeCV(np.geomspace(1e-3, 1e6, 100)).fit(X, y)
    took = seconds(ours | theirs, repeats, budget=4.0)
    bare_aims = {"10-fold": 2.0, "leave-one-out": 5.0} if n >= MANY_ROWS * d else {}
    pairs = [
        ("10-fold", "BayesianRidge.fit", 3.0),
        ("leave-one-out", "RidgeCV, 100 penalties", 1.0),
        ("sample splitting", "posterior fit", 1.5),
        ("reference risk", "10-fold", None),
        *((work, "X'X and eigenvectors", bare_aims.get(work)) for work in list(ours)[:2]),
    ]
    for work, beside, aim in pairs:
        if beside in took:
            yield Record("linear", work, named(n, d), took[work], beside, took[beside], aim)


def _uneven(n: int, d: int) -> Iterator[Record]:
    """Yield what looks at all rows where columns differ in size, up to a hundred times."""
    X, y = regression(n, d)
    X = X * np.geomspace(1.0, 0.01, d)
    model, bare = models.GaussianLinear(noise_variance=1.0), "X'X and eigenvectors"
    calls = {
        "leave-one-out": partial(calibrate, model, X, y, "leave-one-out"),
        "reference risk": partial(calibrate, model, X, y, "reference-risk"),
        "10-fold": partial(calibrate, model, X, y, "k-fold"),
        bare: lambda: np.linalg.eigh(X.T @ X),
    }
    took = seconds(calls, repeats=5, budget=4.0)
    for work, beside, aim in (
        ("leave-one-out", bare, 5.0),
        ("reference risk", "10-fold", None),
    ):
        name = f"{work}, uneven columns"
        yield Record("linear", name, named(n, d), took[work], beside, took[beside], aim)


def _other_risks(n: int, d: int) -> Iterator[Record]:
    """Yield what looks at single rows, beside ten folds that need not."""
    X, y = regression(n, d)
    known, unknown = models.GaussianLinear(noise_variance=1.0), models.NormalInverseGammaLinear()
    plain = "10-fold, Gibbs risk, known variance"
    calls = {plain: partial(calibrate, known, X, y, "k-fold")}
    for strategy, named_so in (("k-fold", "10-fold"), ("leave-one-out", "leave-one-out")):
        calls[f"{named_so}, predictive risk"] = partial(
            calibrate, known, X, y, strategy, risk="predictive"
        )
        calls[f"{named_so}, unknown variance"] = partial(calibrate, unknown, X, y, strategy)
        calls[f"{named_so}, predictive risk, unknown variance"] = partial(
            calibrate, unknown, X, y, strategy, risk="predictive"
        )
    took = seconds(calls, repeats=3, budget=4.0)
    for work in list(calls)[1:]:
        yield Record("linear", work, named(n, d), took[work], plain, took[plain])
