"""Every strategy of the thesis on its own settings, beside its own method."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sklearn.linear_model import LogisticRegressionCV

from benchmarks import thesis_method as method
from benchmarks.problems import classification, named, regression
from benchmarks.record import Record
from benchmarks.timing import once, seconds
from temperance import calibrate, models, strategies

STRATEGIES = {
    "naive": strategies.Naive(),
    "sample splitting": strategies.SampleSplitting("alpha"),
    "SafeBayes": strategies.SafeBayes("alpha"),
    "bootstrap": strategies.Bootstrap(method.RESAMPLES),
}
MODELS = {
    "known variance": (models.GaussianLinear(1.0), method.KnownVariance()),
    "unknown variance": (models.NormalInverseGammaLinear(), method.UnknownVariance()),
    "Jaakkola": (models.JaakkolaLogistic(), method.Jaakkola()),
    "mean-field": (models.MeanFieldLogistic(), method.Backprop()),
}
# Model, rows, columns, and how many of the thesis' settings are of that size.
SETTINGS = [
    ("known variance", 40, 40, 2),
    ("known variance", 100, 20, 2),
    ("known variance", 16, 40, 1),
    ("known variance", 30, 12, 1),
    ("known variance", 40, 1, 1),
    ("unknown variance", 60, 40, 3),
    ("Jaakkola", 50, 30, 1),
    ("mean-field", 50, 30, 1),
]
LARGER = [("Jaakkola", 2000, 20), ("mean-field", 2000, 20)]
REPETITIONS = 30
LOGISTIC = {  # with many rows, and the largest ratios that we accept
    "Jaakkola": (models.JaakkolaLogistic(), 3.0),
    "mean-field": (models.MeanFieldLogistic(), 3.0),
    "full covariance": (models.FullCovarianceLogistic(), None),
    "Laplace": (models.LaplaceLogistic(), None),
}
CARRIED = f"some of the pairs of a step timed, carried to all and to {method.STEPS} steps"


def measure(quick: bool) -> Iterator[Record]:
    """Yield each strategy beside the thesis' method, then the sum over all settings."""
    total_ours = total_theirs = 0.0
    settings = [("unknown variance", 60, 40, 3)] if quick else SETTINGS
    for name, n, d, count in settings:
        for record in _setting(name, n, d, quick):
            yield record
            if record.section == "thesis":
                total_ours += count * REPETITIONS * record.ours
                total_theirs += count * REPETITIONS * record.numbers["as published"]
    yield Record(
        "thesis, all",
        "all settings and strategies, 30 repetitions",
        f"{sum(count for *_, count in settings)} settings",
        total_ours,
        "the thesis' method",
        total_theirs,
        extrapolated="sum of the times above",
    )
    if not quick:
        for name, n, d in LARGER:
            for strategy in ("naive", "sample splitting"):
                yield _beside_descent(name, n, d, strategy)
        yield from _large()


def _setting(name: str, n: int, d: int, quick: bool) -> Iterator[Record]:
    chosen = ("naive", "sample splitting", "SafeBayes") if quick else STRATEGIES
    for strategy in chosen:
        record = _beside_descent(name, n, d, strategy)
        closed = "variance" in name and strategy != "bootstrap"
        if closed:
            X, y = regression(n, d)
            direct = once(partial(method.optimise, MODELS[name][1], strategy, X, y))
            record.numbers["as published"] = direct
        else:
            record.numbers["as published"] = record.theirs
        yield record


def _beside_descent(name: str, n: int, d: int, strategy: str) -> Record:
    model, reference = MODELS[name]
    X, y = (regression if "variance" in name else classification)(n, d)
    ours = seconds(
        {"ours": partial(calibrate, model, X, y, STRATEGIES[strategy])}, repeats=10, budget=3.0
    )["ours"]
    theirs = method.time_of_descent(reference, strategy, X, y, once)
    aim = 1 / 300 if strategy == "bootstrap" else 1 / 1000
    return Record(
        "thesis" if n <= 100 else "thesis, larger",
        f"{name}, {strategy}",
        named(n, d),
        ours,
        "Monte Carlo gradients",
        theirs,
        None if name == "known variance" and strategy != "bootstrap" else aim,
        CARRIED,
    )


def _large() -> Iterator[Record]:
    """Yield five folds beside scikit-learn's, then other strategies beside five folds."""
    for n in (1000, 10_000, 100_000):
        X, y = classification(n, 20)
        for name, (model, aim) in LOGISTIC.items():
            ours = partial(calibrate, model, X, y, strategies.KFold(5))
            calls = {"": ours}
            if n == 100_000:
                calls[", predictive risk"] = partial(ours, risk="predictive")
                calls[", with standard errors"] = lambda ours=ours: repr(ours())
            theirs = {"theirs": lambda X=X, y=y: LogisticRegressionCV(Cs=10, cv=5).fit(X, y)}
            took = seconds(calls | theirs, repeats=4, budget=12.0)
            for what in calls:
                yield Record(
                    "logistic",
                    f"{name}, 5-fold{what}",
                    named(n, 20),
                    took[what],
                    "LogisticRegressionCV, 10 penalties",
                    took["theirs"],
                    None if what else aim,
                )
    yield from _other_strategies(10_000, 20)


def _other_strategies(n: int, d: int) -> Iterator[Record]:
    X, y = classification(n, d)
    plain, model = "mean-field, 5-fold", models.MeanFieldLogistic()
    calls = {plain: partial(calibrate, model, X, y, strategies.KFold(5))}
    others = {
        "sample splitting": strategies.SampleSplitting(),
        "leave-one-out": strategies.LeaveOneOut(),
        "SafeBayes": strategies.SafeBayes(),
    }
    for name, strategy in others.items():
        calls[f"mean-field, {name}"] = partial(calibrate, model, X, y, strategy)
    took = seconds(calls, repeats=2, budget=12.0)
    for work in list(calls)[1:]:
        yield Record("logistic", work, named(n, d), took[work], plain, took[plain])
