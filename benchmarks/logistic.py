"""Logistic models beside scikit-learn's cross-validated fits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sklearn.linear_model import LogisticRegressionCV

from benchmarks.problems import classification, named
from benchmarks.record import Record
from benchmarks.timing import compare
from temperance import calibrate, models, strategies

SIZES = [(1000, 20), (10_000, 20), (100_000, 20)]
BESIDE = "LogisticRegressionCV, 10 penalties"
MODELS = {
    "mean-field": models.MeanFieldLogistic(),
    "Jaakkola": models.JaakkolaLogistic(),
    "full covariance": models.FullCovarianceLogistic(),
    "Laplace": models.LaplaceLogistic(),
}
WORKS = {
    "5-fold": (strategies.KFold(5), "gibbs"),
    "leave-one-out": (strategies.LeaveOneOut(), "gibbs"),
    "5-fold, predictive": (strategies.KFold(5), "predictive"),
}


def measure(quick: bool) -> Iterator[Record]:
    """Yield each strategy of each model beside five folds of ten penalties."""
    for n, d in [(100, 3), (600, 3)] if quick else SIZES:
        X, y = classification(n, d)
        ours = {
            f"{name}, {work}": (partial(calibrate, model, X, y, strategy, risk=risk), BESIDE)
            for work, (strategy, risk) in WORKS.items()
            for name, model in MODELS.items()
        }
        theirs = {BESIDE: partial(LogisticRegressionCV(Cs=10, cv=5).fit, X, y)}
        yield from compare("logistic", named(n, d), ours, theirs)
