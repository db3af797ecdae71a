"""The estimators as users call them, without options, beside scikit-learn's."""

from __future__ import annotations

from collections.abc import Iterator

from sklearn.linear_model import BayesianRidge, LogisticRegressionCV

from benchmarks.problems import classification, named, regression
from benchmarks.record import Record
from benchmarks.timing import compare
from temperance import GibbsClassifier, GibbsRegressor

REGRESSIONS = [(200, 10), (10_000, 10), (100_000, 10), (300, 100)]
CLASSIFICATIONS = [(500, 10, 2), (5000, 10, 2), (500, 10, 3)]  # rows, columns, classes


def measure(quick: bool) -> Iterator[Record]:
    """Yield fits of regressors, then of classifiers."""
    for n, d in [(100, 5), (400, 5)] if quick else REGRESSIONS:
        X, y = regression(n, d)
        yield from _fits("regressor", named(n, d), GibbsRegressor(), BayesianRidge(), X, y)
    for n, d, classes in [(60, 3, 2), (60, 3, 3)] if quick else CLASSIFICATIONS:
        X, y = classification(n, d, classes)
        size = named(n, d) + (f", {classes} classes" if classes > 2 else "")
        yield from _fits("classifier", size, GibbsClassifier(), LogisticRegressionCV(), X, y)


def _fits(section: str, size: str, ours, theirs, X, y) -> Iterator[Record]:
    work, beside = (f"{type(each).__name__}().fit" for each in (ours, theirs))
    return compare(
        section,
        size,
        {work: (lambda: ours.fit(X, y), beside)},
        {beside: lambda: theirs.fit(X, y)},
    )
