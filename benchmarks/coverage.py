"""Coverage of the parameter, for docs/coverage.md: python -m benchmarks.coverage.

Two tables: the estimators as a user calls them, and strategies side by side.  Results are stored
data set by data set, so that an interrupted run is resumed and more repetitions are added.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import temperance
from temperance import GibbsClassifier, GibbsRegressor
from temperance.messages import TemperanceWarning
from temperance.strategies import Sandwich, strategy_named
from temperance_studies.settings import COVERAGE, parameter_of
from temperance_studies.study import Ledger, SandwichCovariance, compare, coverage_by_setting
from temperance_studies.study.coverage import LEVEL, credible_level
from temperance_studies.study.identity import digest
from temperance_studies.study.ledger import NUMBERS
from temperance_studies.study.measures import CoverageResult

BOUNDS = (0.0, 3.0)  # those of calibrate
ESTIMATED = tuple(name for name in COVERAGE if name != "mean")
KINDS = ("mean", "heteroscedastic", "median", "logistic")  # those of Wu and Martin
METHODS = (
    "bayes", "k-fold", "safe-bayes", "fisher-information", "prior-information", "sandwich",
    "coverage", "fitted-coverage",
)  # fmt: skip
HC3 = "sandwich, HC3"
# With the pinball loss: no likelihood, or more than 5 seconds a data set.
NOT_FOR_MEDIANS = ("bayes", "prior-information", "safe-bayes", "coverage", "k-fold")


@dataclass(frozen=True)
class Fit:
    """An estimator for coefficients, with its default strategy or another."""

    strategy: str | None = None

    def estimator(self, kind: str) -> Any:
        """Return the estimator, as a user would write it."""
        rule = Sandwich(correction="HC3") if self.strategy == HC3 else self.strategy
        if kind == "logistic":
            return GibbsClassifier(target="coefficients", strategy=rule)
        if kind == "poisson":
            return GibbsRegressor("poisson", target="coefficients", strategy=rule)
        if kind == "median":
            return GibbsRegressor("quantile", strategy=rule)
        return GibbsRegressor(target="coefficients", strategy=rule)


def fitted(kind: str, setting: Any, fit: Fit, X: Any, y: Any) -> CoverageResult:
    """Return what the intervals of the estimator's coefficients cover, and its joint set."""
    began = time.perf_counter()
    model = fit.estimator(kind).fit(X[:, 1:], y, groups=setting.groups)
    seconds, theta = time.perf_counter() - began, parameter_of(setting)
    low, high = model.coefficients().interval(LEVEL).T
    covered = (low <= theta) & (theta <= high)
    return CoverageResult(
        beta=model.inverse_temperature_,
        alpha=model.calibration_.alpha,
        joint=float(credible_level(model.calibration_.posterior, _scaled(model, theta)) <= LEVEL),
        single=float(covered.mean()),
        length=float((high - low).mean()),
        covered="".join(str(int(each)) for each in covered),
        seconds=seconds,
    )


def _scaled(model: Any, theta: Any) -> Any:
    """Return coefficients of the inputs in the units of the estimator's model."""
    terms, response = model.coordinates_.terms, getattr(model, "_response", None)
    centre, unit = (0.0, 1.0) if response is None else (response.centre[0], response.unit[0])
    level = theta[0] + theta[1:] @ terms.centre - centre
    return np.append(level, theta[1:] * terms.unit) / unit


def estimators(
    kinds: Iterable[str], rows: Iterable[int], fits: Iterable[Fit], repeats: int, store: str
) -> pd.DataFrame:
    """Return the coverage of estimators in settings; stored results are not computed again."""
    settings = {f"{kind} {n}": COVERAGE[kind](n) for kind in kinds for n in rows}
    named = {fit.strategy or "default": fit for fit in fits}
    # The settings are not part of the description: they may be added.
    description = {
        "version": temperance.__version__,
        "numbers": NUMBERS,
        "measure": "coverage",
        "of": "estimators",
    }
    with Ledger(store, description) as ledger:
        ledger.ask(settings, dict.fromkeys(settings, named), repeats)
        known = ledger.keys()
        for label, setting in settings.items():
            identity = digest(setting)
            for repetition in range(repeats):
                X, y = setting.draw(np.random.default_rng([repetition, setting.n]))
                for fit in named.values():
                    if ledger.key(identity, repetition, digest(fit)) not in known:
                        result = fitted(label.split()[0], setting, fit, X, y)
                        ledger.add(identity, repetition, [(digest(fit), result)])
        table = ledger.table()
    asked = table["setting"].isin(list(settings)) & table["strategy"].isin(list(named))
    return coverage_by_setting(table[asked & (table["repetition"] < repeats)])


def methods(kinds: Iterable[str], rows: Iterable[int], repeats: int, store: str) -> pd.DataFrame:
    """Return the coverage of strategies in settings, side by side."""
    parts = []
    for kind in kinds:
        for n in rows:
            setting = {f"{kind} {n}": COVERAGE[kind](n)}
            left_out = NOT_FOR_MEDIANS if kind == "median" else ()
            rules: dict[str, Any] = {
                name: strategy_named(name) for name in METHODS if name not in left_out
            }
            rules[HC3] = Sandwich(correction="HC3")
            rules["sandwich()"] = SandwichCovariance()
            rules["sandwich(), HC3"] = SandwichCovariance(correction="HC3")
            common: dict[str, Any] = {"repeats": repeats, "measure": "coverage", "bounds": BOUNDS}
            common |= {"n_jobs": 1, "progress": False}
            parts.append(compare(setting, rules, store=f"{store}-{kind}-{n}.sqlite", **common))
            if kind != "median":  # the pinball loss has no forecasts
                forecasts = compare(
                    setting,
                    {"k-fold, predictive": strategy_named("k-fold")},
                    store=f"{store}-{kind}-{n}-predictive.sqlite",
                    risk="predictive",
                    **common,
                )
                parts.append(forecasts)
    return coverage_by_setting(pd.concat(parts, ignore_index=True))


def main() -> None:
    """Measure what is asked for, and print it as a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("what", choices=("estimators", "methods"))
    parser.add_argument("--setting", nargs="+", choices=tuple(COVERAGE), help="all by default")
    parser.add_argument("--rows", nargs="+", type=int, default=[50, 100, 400])
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--strategy", nargs="+", default=["default"], help="of estimators, or HC3")
    parser.add_argument("--store", default="coverage", help="beginning of the names of the files")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", TemperanceWarning)
    if asked.what == "estimators":
        rules = {"default": None, "HC3": HC3}
        fits = [Fit(rules.get(name, name)) for name in asked.strategy]
        kinds = asked.setting or ESTIMATED
        store = f"{asked.store}-estimators.sqlite"
        table = estimators(kinds, asked.rows, fits, asked.repetitions, store)
    else:
        table = methods(asked.setting or KINDS, asked.rows, asked.repetitions, asked.store)
    print(table.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
