"""Linear models beside scikit-learn's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from sklearn.linear_model import BayesianRidge, RidgeCV

from benchmarks.problems import named, regression
from benchmarks.record import Record
from benchmarks.timing import compare
from temperance import calibrate, models

SIZES = [(1000, 10), (100_000, 10), (100_000, 100), (2000, 500), (1_000_000, 50)]
MANY = 2e7  # values beyond which RidgeCV takes minutes: then ten folds only
PENALTIES = np.geomspace(1e-3, 1e6, 100)
FIT, LEAVE_ONE_OUT = "BayesianRidge.fit", "RidgeCV, 100 penalties"
KNOWN, UNKNOWN = models.GaussianLinear(noise_variance=1.0), models.NormalInverseGammaLinear()
WORKS = {
    "10-fold": (KNOWN, "k-fold", "gibbs"),
    "leave-one-out": (KNOWN, "leave-one-out", "gibbs"),
    "reference risk": (KNOWN, "reference-risk", "gibbs"),
    "10-fold, predictive": (KNOWN, "k-fold", "predictive"),
    "leave-one-out, predictive": (KNOWN, "leave-one-out", "predictive"),
    "10-fold, unknown variance": (UNKNOWN, "k-fold", "gibbs"),
    "leave-one-out, unknown variance": (UNKNOWN, "leave-one-out", "gibbs"),
    "10-fold, predictive, unknown variance": (UNKNOWN, "k-fold", "predictive"),
    "leave-one-out, predictive, unknown variance": (UNKNOWN, "leave-one-out", "predictive"),
}


def measure(quick: bool) -> Iterator[Record]:
    """Yield strategies, each beside what it competes with."""
    for n, d in [(500, 5), (1000, 20)] if quick else SIZES:
        X, y = regression(n, d)
        ours = {
            work: (
                partial(calibrate, model, X, y, strategy, risk=risk),
                LEAVE_ONE_OUT if strategy == "leave-one-out" else FIT,
            )
            for work, (model, strategy, risk) in WORKS.items()
            if n * d <= MANY or work == "10-fold"
        }
        theirs = {FIT: partial(BayesianRidge().fit, X, y)}
        if n * d <= MANY:
            theirs[LEAVE_ONE_OUT] = partial(RidgeCV(PENALTIES).fit, X, y)
        yield from compare("linear", named(n, d), ours, theirs)
