r"""What estimators without options are worth: ``python -m benchmarks.defaults``.

Log scores and coverage of forecasts, on simulated data for which the model is right or wrong, and
on real data split at random, beside what a user of scikit-learn would take.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats
from sklearn.linear_model import BayesianRidge, LogisticRegressionCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from temperance.data import Array
from temperance.estimators import GibbsClassifier, GibbsRegressor
from temperance_studies.settings.real import REAL, load

PARTS = ("simulated", "simulated-classes", "regressions", "classifications")
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


def _classes(n: int, X: Array, p: Array, rng: np.random.Generator) -> Problem:
    y = (rng.random(len(X)) < p).astype(float)
    while not 4 <= y[:n].sum() <= n - 4:  # scikit-learn needs a few rows of each class
        y = (rng.random(len(X)) < p).astype(float)
    return Problem(X[:n], y[:n], X[n:], y[n:])


def right_classes(n: int, d: int, rng: np.random.Generator) -> Problem:
    """Return labels of a logistic model."""
    X = rng.standard_normal((n + NEW, d))
    return _classes(n, X, special.expit(X @ rng.standard_normal(d) * 2 / np.sqrt(d)), rng)


def wrong_link(n: int, d: int, rng: np.random.Generator) -> Problem:
    """Return labels whose probability is the distribution function of a Cauchy law."""
    X = rng.standard_normal((n + NEW, d))
    return _classes(n, X, stats.cauchy.cdf(X @ rng.standard_normal(d) * 2 / np.sqrt(d)), rng)


def wrong_labels(n: int, d: int, rng: np.random.Generator) -> Problem:
    """Return steep labels of which a fifth is wrong."""
    X = rng.standard_normal((n + NEW, d))
    p = special.expit(X @ rng.standard_normal(d) * 6 / np.sqrt(d))
    return _classes(n, X, 0.2 + 0.6 * p, rng)


def square_of_classes(n: int, d: int, rng: np.random.Generator) -> Problem:
    """Return labels that depend on the square of an input, which the model has not."""
    X = rng.standard_normal((n + NEW, d))
    predictor = X @ rng.standard_normal(d) / np.sqrt(d) + X[:, 0] ** 2 - 1
    return _classes(n, X, special.expit(2 * predictor), rng)


SIMULATED_CLASSES: list[tuple[Callable[..., Problem], int, int]] = [
    *((right_classes, n, d) for n, d in [(30, 3), (60, 20), (40, 60), (200, 10), (1000, 10)]),
    (wrong_link, 100, 5),
    (wrong_labels, 100, 10),
    (wrong_labels, 60, 30),
    (square_of_classes, 100, 5),
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
        "beta = 1": model.forecast(problem.X_new, beta=1.0),
        "`GibbsRegressor()`": model.forecast(problem.X_new),
        "`BayesianRidge`": peer,
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
    """Forecast by the default, by its model at beta = 1, by Laplace's, by LogisticRegressionCV."""
    model = GibbsClassifier().fit(problem.X, problem.y)
    found = {
        "beta = 1": _class_score(model, problem, beta=1.0),
        "`GibbsClassifier()`": _class_score(model, problem),
    }
    for posterior in ("full", "jaakkola", "laplace"):
        other = GibbsClassifier(posterior=posterior).fit(problem.X, problem.y)
        found[f'`"{posterior}"`'] = _class_score(other, problem)
    peer = LogisticRegressionCV(scoring="neg_log_loss", max_iter=2000)
    found["`LogisticRegressionCV`"] = _class_score(
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


def line(name: str, scores: list[dict[str, Score]]) -> str:
    """Return a line of a table: log scores, and what intervals cover.

    Log scores are less those of the first rule: those of the default at beta = 1.
    """
    first = next(iter(scores[0]))
    cells = [name, f"{np.mean([each[first].log_score for each in scores]):.3f}"]
    for rule in list(scores[0])[1:]:
        gains = np.array([each[rule].log_score - each[first].log_score for each in scores])
        if not np.isnan(gains).all():
            error = gains.std(ddof=1) / np.sqrt(len(gains))
            cells.append(f"{gains.mean():+.3f} ± {error:.3f}".replace("-", "−"))
    for rule in scores[0]:
        covered = np.mean([each[rule].covered for each in scores], axis=0)
        if not np.isnan(covered).all():
            cells.append(" / ".join(f"{c:.3f}".lstrip("0") for c in covered))
        elif rule == "conformal":
            cells.append("too few rows")
    widths = [each["conformal"].width / each[first].width for each in scores if "conformal" in each]
    if widths:
        cells.append("" if np.isnan(widths).any() else f"{np.median(widths):.2f}")
    return f"| {' | '.join(cells)} |"


def header(rules: list[str]) -> str:
    """Return the first two lines of a table of these rules."""
    scored = [rule for rule in rules if rule != "conformal"]
    cells = ["data", f"log score, {scored[0]}", *(f"{rule}, gain" for rule in scored[1:])]
    if "conformal" in rules:
        cells += [f"{rule} covers" for rule in rules] + ["conformal, width"]
    return f"| {' | '.join(cells)} |\n|{'---|' * len(cells)}"


def report(name: str, scores: list[dict[str, Score]], first: bool) -> None:
    """Print the line of a data set, after the head of the table if it is the first."""
    if first:
        print(header(list(scores[0])))
    print(line(name, scores), flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and print the tables that it asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults", description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", help="names of data sets or settings")
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    repetitions = range(asked.seed, asked.seed + asked.repetitions)
    score = classifications if "class" in asked.part else regressions
    sets = named_problems(asked.part, repetitions)
    wanted = (each for each in sets if not asked.only or each[0].rsplit(" ", 1)[0] in asked.only)
    for number, (name, problems) in enumerate(wanted):
        report(name, [score(each) for each in problems], first=number == 0)


def named_problems(part: str, repetitions: range) -> Iterator[tuple[str, Iterator[Problem]]]:
    """Yield the names of a part's data sets or settings, each with its repetitions."""
    if part.startswith("simulated"):
        for draw, n, d in SIMULATED_CLASSES if "class" in part else SIMULATED:
            rngs = (np.random.default_rng([seed, n, d]) for seed in repetitions)
            yield f"{draw.__name__.replace('_', ' ')} {n}x{d}", map(partial(draw, n, d), rngs)
        return
    classes = part == "classifications"
    for name, X, y in real_classifications() if classes else real_regressions():
        yield f"{name} {len(X)}x{X.shape[1]}", (split(X, y, each, classes) for each in repetitions)


if __name__ == "__main__":
    main()
