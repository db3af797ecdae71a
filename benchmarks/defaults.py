r"""What estimators without options are worth: ``python -m benchmarks.defaults``.

Log scores and coverage of forecasts, on simulated data for which the model is right or wrong, and
on real data split at random, beside what a user of scikit-learn would take.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.linear_model import BayesianRidge, LogisticRegressionCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from temperance.datasets.real import REAL, load
from temperance.estimators import GibbsClassifier, GibbsRegressor
from temperance.types import Array

LEVELS = (0.5, 0.8, 0.95)
NEW = 200  # rows that are forecast


class Problem(NamedTuple):
    """Rows to learn from and rows to forecast."""

    X: Array
    y: Array
    X_new: Array
    y_new: Array


class Score(NamedTuple):
    """Mean log score, the share of rows within each central interval, and the widest's width."""

    log_score: float
    covered: Array
    width: float = float("nan")


def right(n: int, d: int, rng: np.random.Generator) -> Problem:
    """Return Gaussian rows, coefficients and noise: the model is right."""
    return _problem(n, rng.standard_normal((n + NEW, d)), rng)


def _problem(
    n: int, X: Array, rng: np.random.Generator, noise: Array | None = None, more: Any = 0.0
) -> Problem:
    theta = rng.standard_normal(X.shape[1]) / np.sqrt(X.shape[1])
    noise = rng.standard_normal(len(X)) if noise is None else noise
    y = X @ theta + more + noise
    return Problem(X[:n], y[:n], X[n:], y[n:])


def correlated(n: int, d: int, rng: np.random.Generator) -> Problem:
    """Return inputs that share 80 % of their variance."""
    X = np.sqrt(0.2) * rng.standard_normal((n + NEW, d))
    return _problem(n, X + np.sqrt(0.8) * rng.standard_normal((n + NEW, 1)), rng)


def nothing(n: int, d: int, rng: np.random.Generator) -> Problem:
    """Return inputs that have nothing to do with the response."""
    X = rng.standard_normal((n + NEW, d))
    y = rng.standard_normal(n + NEW)
    return Problem(X[:n], y[:n], X[n:], y[n:])


def heavy_tails(n: int, d: int, rng: np.random.Generator) -> Problem:
    """Return noise with 3 degrees of freedom."""
    return _problem(n, rng.standard_normal((n + NEW, d)), rng, rng.standard_t(3, n + NEW))


def outliers(n: int, d: int, rng: np.random.Generator) -> Problem:
    """Return noise that is ten times as large in one of twenty rows."""
    noise = rng.standard_normal(n + NEW) * np.where(rng.random(n + NEW) < 0.05, 10, 1)
    return _problem(n, rng.standard_normal((n + NEW, d)), rng, noise)


def uneven(n: int, d: int, rng: np.random.Generator) -> Problem:
    """Return noise whose standard deviation is the size of an input."""
    X = rng.standard_normal((n + NEW, d))
    return _problem(n, X, rng, np.abs(X[:, 0]) * rng.standard_normal(n + NEW))


def omitted_square(n: int, d: int, rng: np.random.Generator) -> Problem:
    """Return a mean with the square of an input, which the model has not."""
    X = rng.standard_normal((n + NEW, d))
    return _problem(n, X, rng, more=X[:, 0] ** 2)


def half_at_zero(n: int, d: int, rng: np.random.Generator) -> Problem:
    """Return rows half of which are exactly zero (Grünwald and van Ommen 2017)."""
    zero = rng.random(n + NEW) < 0.5
    X = np.where(zero[:, None], 0.0, rng.standard_normal((n + NEW, d)))
    signal = 0.1 * X[:, :4].sum(axis=1)
    y = np.where(zero, 0.0, signal + np.sqrt(0.05) * rng.standard_normal(n + NEW))
    return Problem(X[:n], y[:n], X[n:], y[n:])


SIMULATED: list[tuple[Callable[..., Problem], int, int]] = [
    *((right, n, d) for n, d in [(40, 20), (100, 40), (200, 80), (300, 6), (30, 40), (25, 24)]),
    *((right, n, d) for n, d in [(9, 2), (60, 20), (500, 5)]),
    (correlated, 60, 20),
    (nothing, 40, 20),
    (nothing, 25, 24),
    (heavy_tails, 60, 10),
    (uneven, 100, 8),
    (outliers, 60, 10),
    (omitted_square, 100, 5),
    (half_at_zero, 100, 40),
]


def forecast_score(law: Any, y: Array) -> Score:
    """Score forecasts of real responses."""
    intervals = law.interval(LEVELS)
    return Score(float(law.log_density(y).mean()), *_kept(intervals, y))


def _kept(intervals: Array, y: Array) -> tuple[Array, float]:
    """Return the share of responses within intervals (levels, n, 2), and the last's mean width."""
    low, high = np.moveaxis(intervals, -1, 0)
    return np.mean((low <= y) & (y <= high), axis=1), float(np.mean(high[-1] - low[-1]))


class Normal:
    """Gaussian forecasts with the interface of the library's."""

    def __init__(self, mean: Array, std: Array) -> None:
        self.law = stats.norm(mean, std)

    def cdf(self, y: Array) -> Array:
        """Probability of at most ``y``."""
        return self.law.cdf(y)

    def log_density(self, y: Array) -> Array:
        """Log density at ``y``."""
        return self.law.logpdf(y)

    def interval(self, levels: tuple[float, ...]) -> Array:
        """Return the ends of central intervals, (levels, n, 2)."""
        return np.array([np.stack(self.law.interval(level), axis=1) for level in levels])


def regressions(problem: Problem) -> dict[str, Score]:
    """Forecast by the default, by its model at beta = 1, and by BayesianRidge."""
    model = GibbsRegressor().fit(problem.X, problem.y)
    scaler = StandardScaler().fit(problem.X)
    ridge = BayesianRidge().fit(scaler.transform(problem.X), problem.y)
    peer = Normal(*ridge.predict(scaler.transform(problem.X_new), return_std=True))
    laws = {
        "GibbsRegressor()": model.forecast(problem.X_new),
        "beta = 1": model.forecast(problem.X_new, beta=1.0),
        "BayesianRidge": peer,
    }
    found = {name: forecast_score(law, problem.y_new) for name, law in laws.items()}
    return found | {"conformal": conformal(problem)}


def conformal(problem: Problem) -> Score:
    """Keep what is promised by CV+ of ridge regression: intervals without a density (MAPIE)."""
    try:
        from mapie.regression import CrossConformalRegressor
    except ImportError:
        return Score(np.nan, np.full(len(LEVELS), np.nan))
    if len(problem.y) * (1 - LEVELS[-1]) <= 1:  # too few residuals for such a quantile
        return Score(np.nan, np.full(len(LEVELS), np.nan))
    ridge = make_pipeline(StandardScaler(), BayesianRidge())
    folds = min(10, len(problem.y))
    model = CrossConformalRegressor(ridge, confidence_level=list(LEVELS), cv=folds)
    model.fit_conformalize(problem.X, problem.y)
    intervals = np.moveaxis(model.predict_interval(problem.X_new)[1], -1, 0)
    return Score(np.nan, *_kept(intervals, problem.y_new))


def classifications(problem: Problem) -> dict[str, Score]:
    """Forecast by each posterior, and by LogisticRegressionCV."""
    found = {}
    for posterior in ("laplace", "mean-field", "jaakkola", "full"):
        model = GibbsClassifier(posterior=posterior).fit(problem.X, problem.y)
        found[posterior] = _class_score(model, problem)
        found[f"{posterior}, beta = 1"] = _class_score(model, problem, beta=1.0)
    peer = LogisticRegressionCV(scoring="neg_log_loss", max_iter=2000)
    found["LogisticRegressionCV"] = _class_score(
        make_pipeline(StandardScaler(), peer).fit(problem.X, problem.y), problem
    )
    return found


def _class_score(model: Any, problem: Problem, **options: Any) -> Score:
    log_probabilities = model.predict_log_proba(problem.X_new, **options)
    happened = problem.y_new[:, None] == model.classes_
    return Score(float(log_probabilities[happened].mean()), np.full(len(LEVELS), np.nan))


FURTHER = {  # regressions of statsmodels that the study of real data has not: response, left out
    "scotland": ("YES", ()),
    "strikes": ("duration", ()),
    "cancer": ("cancer", ()),
    "grunfeld": ("invest", ("firm",)),
    "macrodata": ("infl", ("year", "quarter")),
}


def real_regressions() -> Iterator[tuple[str, Array, Array]]:
    """Yield the regressions among the real data, and five more."""
    for name in REAL:
        data = load(name)
        if data.task == "regression":
            yield name, data.X, data.y
    for name, (response, left_out) in FURTHER.items():
        table = import_module(f"statsmodels.datasets.{name}").load_pandas().data
        X = table.drop(columns=[response, *left_out])
        yield name, X.to_numpy(float), table[response].to_numpy(float)


def real_classifications() -> Iterator[tuple[str, Array, Array]]:
    """Yield the classifications among the real data."""
    for name in REAL:
        data = load(name)
        if data.task == "classification":
            some = np.random.default_rng(0).permutation(len(data))[:1500]
            yield name, data.X[some], data.y[some]


def split(X: Array, y: Array, seed: int, classes: bool) -> Problem:
    """Train on half of the rows, at most 300, and test on the rest."""
    size = min(len(y) // 2, 300)
    parts = train_test_split(
        X, y, train_size=size, random_state=seed, stratify=y if classes else None
    )
    return Problem(parts[0], parts[2], parts[1], parts[3])


def show(name: str, scores: list[dict[str, Score]], peer: str) -> list[dict[str, float]]:
    """Print a line for a data set and return its means."""
    cells = [f"{name:28}"]
    means = []
    for rule in scores[0]:
        differences = [each[rule].log_score - each[peer].log_score for each in scores]
        covered = np.mean([each[rule].covered for each in scores], axis=0)
        error = np.std(differences) / np.sqrt(len(differences))
        means.append({rule: float(np.mean(differences))})
        coverage = "" if np.isnan(covered[0]) else " " + "/".join(f"{c:.3f}" for c in covered)
        widths = [each[rule].width / each[peer].width for each in scores]
        if np.isfinite(widths).all():
            coverage += f" width {np.median(widths):.2f}"
        if np.isnan(differences).all():
            cells.append(f"{rule}{coverage}")
        elif rule == peer:
            cells.append(f"{np.mean([each[rule].log_score for each in scores]):8.3f}{coverage}")
        else:
            cells.append(f"{np.mean(differences):+.3f}±{error:.3f}{coverage}")
    print(" | ".join(cells), flush=True)
    return means


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and print the tables that it asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults", description=__doc__)
    parser.add_argument("part", choices=("simulated", "regressions", "classifications"))
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", help="names of data sets or settings")
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    repetitions = range(asked.seed, asked.seed + asked.repetitions)
    if asked.part == "simulated":
        print("log score less BayesianRidge's, coverage of 50, 80, 95 %")
        for draw, n, d in SIMULATED:
            name = f"{draw.__name__} {n}x{d}"
            if not asked.only or name in asked.only or draw.__name__ in asked.only:
                rngs = (np.random.default_rng([seed, n, d]) for seed in repetitions)
                show(name, [regressions(draw(n, d, rng)) for rng in rngs], "BayesianRidge")
        return
    classes = asked.part == "classifications"
    sets, score = (
        (real_classifications, classifications) if classes else (real_regressions, regressions)
    )
    peer = "LogisticRegressionCV" if classes else "BayesianRidge"
    print(f"log score less {peer}'s")
    for name, X, y in sets():
        if not asked.only or name in asked.only:
            problems = (split(X, y, seed, classes) for seed in repetitions)
            show(f"{name} {X.shape[0]}x{X.shape[1]}", [score(p) for p in problems], peer)


if __name__ == "__main__":
    main()
