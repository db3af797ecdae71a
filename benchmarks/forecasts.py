"""What default forecasts are worth and cost: ``python -m benchmarks.forecasts``.

The gain of ``GibbsRegressor()`` is its mean log score on new rows, in nats a row, minus that of
``GibbsRegressor(strategy="bayes")``.  Data depend on ``--seed`` only: two versions see the same.
Errors of means over real data are between data sets, others between repetitions.
``forecasts-average.json``, for ``--against``, is what the average over beta, the default before
stacking, did on the same data.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.linear_model import BayesianRidge
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks import problems
from benchmarks.forecasts_data import regressions
from benchmarks.machine import machine, versions
from benchmarks.timing import once
from temperance import GibbsRegressor, calibrate, models, strategies

NEW, TRAIN, CLIP = 2000, 500, 1.0  # rows to forecast; most rows to train; nats
WRONG = ((30, 3), (100, 5), (100, 30), (400, 8), (1500, 5))
RIGHT = ((12, 2), (25, 24), (30, 3), (30, 40), (60, 20), (70, 110), *WRONG[1:])
FITS = ((50, 5), (200, 10), (2000, 20), (20_000, 20), (100_000, 10), (100, 200))
KINDS: dict[
    str, Callable[[np.ndarray, np.random.Generator], np.ndarray]
] = {  # added to a linear mean
    "outliers": lambda X, rng: rng.normal(0, np.where(rng.random(len(X)) < 0.05, 10, 1)),
    "lognormal": lambda X, rng: rng.lognormal(size=len(X)) - np.exp(0.5),
    "t2.5": lambda X, rng: rng.standard_t(2.5, len(X)),
    "heteroscedastic": lambda X, rng: rng.normal(0, np.exp(0.7 * X[:, 0])),
    "omitted square": lambda X, rng: X[:, 0] ** 2 - 1 + rng.standard_normal(len(X)),
    "right": lambda X, rng: rng.standard_normal(len(X)),
}
NUMBERS = ("gain", "over BayesianRidge", "RMSE ratio")
Numbers = dict[str, Any]


def generator(*key: int | str) -> np.random.Generator:
    """Return the generator of one data set: the others do not change it."""
    return np.random.default_rng([k if isinstance(k, int) else zlib.crc32(k.encode()) for k in key])


def judge(X: np.ndarray, y: np.ndarray, X_new: np.ndarray, y_new: np.ndarray) -> list[float]:
    """Return the gains over beta = 1 and over BayesianRidge, and the ratio of RMSE to its."""
    model = GibbsRegressor().fit(X, y)
    bayes = GibbsRegressor(strategy="bayes").fit(X, y)
    scaler = StandardScaler().fit(X)
    ridge = BayesianRidge().fit(scaler.transform(X), y)
    mean, std = ridge.predict(scaler.transform(X_new), return_std=True)
    score = model.forecast(X_new).log_density(y_new).mean()
    error, its_error = (np.mean((y_new - m) ** 2) for m in (model.predict(X_new), mean))
    return [
        score - bayes.forecast(X_new).log_density(y_new).mean(),
        score - stats.norm(mean, std).logpdf(y_new).mean(),
        np.sqrt(error / its_error),
    ]


def simulated(kind: str, n: int, d: int, asked: argparse.Namespace) -> Iterator[list[float]]:
    """Judge fresh data sets of a kind, with standard normal inputs."""
    for repeat in range(asked.repeats):
        rng = generator(asked.seed, kind, n, d, repeat)
        X = rng.standard_normal((n + NEW, d))
        y = rng.standard_normal() + X @ rng.normal(0, 0.5, d) + KINDS[kind](X, rng)
        yield judge(X[:n], y[:n], X[n:], y[n:])


def real(name: str, X: Any, y: Any, asked: argparse.Namespace) -> Iterator[list[float]]:
    """Judge random splits in halves, of at most 500 and 2000 rows."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    size = min(len(y) // 2, TRAIN)
    for split in range(asked.splits):
        order = generator(asked.seed, name, split).permutation(len(y))
        train, new = order[:size], order[size : size + NEW]
        yield judge(X[train], y[train], X[new], y[new])


def summary(judged: Iterator[list[float]]) -> Numbers:
    """Return means over data sets with their standard errors."""
    values = np.array(list(judged)).T
    return {name: _mean(row) for name, row in zip(NUMBERS, values, strict=True)}


def _mean(values: Any) -> list[float]:
    values = np.asarray(values, dtype=float)
    return _short(values.mean(), values.std(ddof=1) / np.sqrt(len(values)))


def _short(*values: float) -> list[float]:
    return [float(f"{v:.5g}") for v in values]


def overalls(part: str, settings: dict[str, Numbers]) -> dict[str, Numbers]:
    """Return means over all settings; also over those of a kind, or of means within 1 nat."""
    every = list(settings.values())
    means = {"all": {name: _pooled(part, every, name) for name in NUMBERS}}
    if part != "simulated":
        within = {name: _pooled(part, every, name, CLIP) for name in NUMBERS[:2]}
        return means | {"all, each within 1 nat": within}
    for kind in list(KINDS)[:-1]:
        some = [each for name, each in settings.items() if name.startswith(f"{kind} ")]
        means[kind] = {name: _pooled(part, some, name) for name in NUMBERS}
    return means


def _pooled(part: str, settings: list[Numbers], name: str, clip: float = np.inf) -> list[float]:
    means, errors = np.array([each[name] for each in settings]).T
    clipped = np.clip(means, -clip, clip)
    if part == "real":
        return _mean(clipped)
    errors = np.where(clipped == means, errors, 0.0)
    return _short(clipped.mean(), np.sqrt((errors**2).sum()) / len(means))


def medians(calls: dict[str, Callable[[], Any]], repeats: int, budget: float) -> np.ndarray:
    """Return CPU seconds of calls that take turns, (rounds, calls): fewer rounds if they last."""
    with threadpool_limits(1, user_api="blas"):
        first = [once(call) for call in calls.values()]  # warms up, unless it takes long
        rounds = min(repeats, int(budget / sum(first)))
        took = [[once(call) for call in calls.values()] for _ in range(rounds)]
    return np.array(took or [first])


def fit_times() -> Iterator[tuple[str, Numbers]]:
    """Yield the median times of fits, and quartiles of their ratio."""
    for n, d in FITS:
        X, y = problems.regression(n, d)
        ours, theirs = partial(GibbsRegressor().fit, X, y), partial(BayesianRidge().fit, X, y)
        took = medians({"ours": ours, "theirs": theirs}, 25, 30.0)
        default, ridge = np.median(took, axis=0)
        quartiles = np.quantile(took[:, 0] / took[:, 1], [0.25, 0.75])
        times = dict(zip(("default", "BayesianRidge"), _short(default, ridge), strict=True))
        ratio = {"ratio": _short(default / ridge)[0], "quartiles": _short(*quartiles)}
        yield f"fit {n}x{d}", times | ratio


def calibration_times() -> Iterator[tuple[str, Numbers]]:
    """Yield the median times of ``calibrate`` at 1000 x 20."""
    X, y = problems.regression(1000, 20)
    rules = (strategies.KFold(10), strategies.LeaveOneOut(), strategies.SafeBayes())
    normal, gamma = models.GaussianLinear(1.0), models.NormalInverseGammaLinear()
    used = (normal, gamma, models.HierarchicalLinear(intercept=False))
    for model, risk in product(used, ("gibbs", "predictive")):
        for rule in (*rules, strategies.Bootstrap(1000)):
            call = partial(calibrate, model, X, y, rule, risk=risk)
            took = np.median(medians({"": call}, 9, 8.0))
            name = f"{type(model).__name__} {risk} {type(rule).__name__}"
            yield name, {"seconds": _short(took)[0]}


def measure(part: str, asked: argparse.Namespace) -> Iterator[tuple[str, Numbers]]:
    """Yield the settings of a part with their numbers."""
    if part == "real":
        for name, X, y in regressions():
            shape = {"rows": len(y), "inputs": np.shape(X)[1]}
            yield name, shape | summary(real(name, X, y, asked))
    elif part == "time":
        yield from fit_times()
        yield from calibration_times()
    else:
        kinds, sizes = (["right"], RIGHT) if part == "right" else (list(KINDS)[:-1], WRONG)
        for kind, (n, d) in product(kinds, sizes):
            yield f"{kind} {n}x{d}", summary(simulated(kind, n, d, asked))


def show(title: str, rows: dict[str, Numbers]) -> None:
    """Print a table; pairs are means and errors."""
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    print(f"\n| {title} | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
    for name, row in rows.items():
        print(f"| {name} | {' | '.join(_cell(c, row.get(c, '')) for c in columns)} |", flush=True)


def _cell(column: str, value: Any) -> str:
    if column == "quartiles" and value:
        return "{:.3g} to {:.3g}".format(*value)
    if isinstance(value, list):
        sign = "" if "RMSE" in column else "+"
        return f"{value[0]:{sign}.4f} ± {value[1]:.4f}".replace("-", "−")
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def versus(new: Numbers, old: Numbers) -> dict[str, Numbers]:
    """Return rows of a table of new numbers beside old ones."""
    rows: dict[str, Numbers] = {}
    for part in [part for part in new["parts"] if part in old["parts"]]:
        now, then = new["parts"][part], old["parts"][part]
        for name, means in now.get("overall", {}).items():
            for number, (mean, _) in means.items():
                other = then["overall"][name][number][0]
                rows[f"{part}, {name}, {number}"] = _beside(mean, other)
        if part == "right":
            worst = [min(s["gain"][0] for s in p["settings"].values()) for p in (now, then)]
            rows["right, smallest gain"] = _beside(*worst)
        for name, each in now["settings"].items() if part == "time" else ():
            unit = "ratio" if "ratio" in each else "seconds"
            rows[f"{name}, {unit}"] = _beside(each[unit], then["settings"][name][unit])
    return rows


def _beside(now: float, then: float) -> Numbers:
    return {"new": now, "old": then, "new / old": now / then if then else np.nan}


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, measure, and print tables."""
    parts = ("simulated", "right", "real", "time")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forecasts", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--repeats", type=int, default=20, help="data sets of each setting")
    parser.add_argument("--splits", type=int, default=10, help="splits of each real data set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file for the means and their errors")
    parser.add_argument("--against", type=Path, help="such a file, of another version")
    asked = parser.parse_args(arguments)
    data = {"seed": asked.seed, "repeats": asked.repeats, "splits": asked.splits}
    old = json.loads(asked.against.read_text()) if asked.against else None
    if old and old["data"] != data:
        parser.error(f"--against must be of the same data, {data}, got {old['data']}")
    warnings.simplefilter("ignore")
    found: Numbers = {"data": data, "machine": machine(), "versions": versions(), "parts": {}}
    for part in asked.parts:
        begin, settings = time.perf_counter(), {}
        for name, numbers in measure(part, asked):
            settings[name] = numbers
            print(f"{time.perf_counter() - begin:5.0f} s  {part}: {name}", file=sys.stderr)
        found["parts"][part] = {"settings": settings}
        groups = {part: settings}
        if part == "time":
            groups = {
                u: {n: s for n, s in settings.items() if u in s} for u in ("ratio", "seconds")
            }
        else:
            found["parts"][part]["overall"] = overalls(part, settings)
            groups[f"{part}, means"] = found["parts"][part]["overall"]
        for title, rows in groups.items():
            show(title, rows)
    if asked.json:
        lines = json.dumps(found, indent=1)  # innermost objects take one line each
        short = re.sub(r"\{[^{}]*\}", lambda inner: " ".join(inner[0].split()), lines)
        asked.json.write_text(short + "\n")
    if old:
        show(f"against {asked.against.name}", versus(found, old))


if __name__ == "__main__":
    main()
