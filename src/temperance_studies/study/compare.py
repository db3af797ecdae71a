r"""Compare strategies by true risk or coverage, on many data sets of settings where it is known."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from temperance.calibrate import calibrate
from temperance.calibration import Calibration
from temperance.checks import as_bounds, one_of, whole
from temperance.data import Array, Risk, threads_for
from temperance.messages import TemperanceWarning
from temperance.protocols import Strategy
from temperance_studies.settings import (
    ParameterSetting,
    Setting,
    best_beta,
    true_risk,
    true_risk_of_mixture,
)
from temperance_studies.study.coverage import coverage_result, refuse_without_parameter, with_groups
from temperance_studies.study.database import Row
from temperance_studies.study.identity import digest, generator
from temperance_studies.study.ledger import NUMBERS, Ledger
from temperance_studies.study.measures import MEASURES, Result
from temperance_studies.study.progress import Report, reporting
from temperance_studies.study.strategies import Choice, as_choices, resolve

if TYPE_CHECKING:
    import pandas as pd

Settings = (
    Mapping[str, Setting]
    | Mapping[str, ParameterSetting]
    | Iterable[Setting]
    | Iterable[ParameterSetting]
)
What = Literal["risk", "coverage"]


class Task(NamedTuple):
    """One data set and the strategies that have no result on it, with their digests."""

    setting: Any
    repetition: int
    strategies: tuple[tuple[str, Strategy], ...]
    seed: int
    bounds: tuple[float, float]
    risk: Risk
    measure: What = "risk"


def compare(
    settings: Settings,
    strategies: Mapping[str, Choice] | Iterable[str] | None = None,
    repeats: int = 30,
    seed: int = 0,
    n_jobs: int = -1,
    *,
    store: str | os.PathLike[str] | None = None,
    risk: Risk = "gibbs",
    bounds: tuple[float, float] = (0.0, 3.0),
    measure: What = "risk",
    progress: Report | bool | None = None,
) -> pd.DataFrame:
    r"""Return the choices of each strategy on many data sets, and how good each choice is.

    The random numbers of a data set depend on the seed, its setting and its repetition; those of a
    strategy on the strategy as well.  So other settings, strategies, repeats or workers do not
    change any number.  All strategies get the same data.

    Parameters
    ----------
    settings : mapping from names to settings, or settings
        See :mod:`temperance_studies.settings` for settings and how to write one.
    strategies : mapping from names to strategies, or names; all of ``STRATEGIES`` by default
        A value may also be a function that returns the strategy for a setting.  For coverage a
        strategy without groups gets those of the setting.
    repeats : int
        Number of data sets of each setting.
    seed : int
    n_jobs : int
        Workers of joblib, -1 for one on each core; ``joblib.parallel_config`` sets the backend.
        Tested: loky (the default), threading, multiprocessing, dask and ray.  All give the same
        numbers; ray and multiprocessing cannot return results one by one, and commit them a few
        data sets at a time.
    store : path, optional
        SQLite file to which the results of each data set are committed as they arrive.  An
        interrupted study is resumed; repeats and strategies can be added.  A file with other
        settings, seed, bounds, risk or version of the library is refused, as is one of a
        development version whose numbers have changed since (``study.ledger.NUMBERS``).
        All results read are checked: altered results are computed again under a ``StoreWarning``; a
        file with other damage is refused.
    risk : {"gibbs", "predictive"}
        The risk that strategies estimate and that choices are judged by: the expected loss of a
        draw from the posterior, as in the thesis, or the loss of forecasts.  "stacking" and other
        mixtures over beta need the second.
    bounds : (float, float)
        Range allowed for beta.
    measure : {"risk", "coverage"}
        The true risk of each choice, or whether its 95 % credible sets cover the setting's
        parameter: the ``parameter`` of a :class:`temperance_studies.settings.ParameterSetting`, of
        other settings the minimiser on their population.
    progress : function, False or None
        Called with the number of data sets done and the total; ``None`` is a bar on terminals.

    Returns
    -------
    DataFrame
        One row for each setting, repetition and strategy: ``beta``, ``alpha``; ``risk``, the true
        risk of that choice, and ``excess``, its difference to ``best_risk`` at ``best_beta``, which
        is negative where a mixture over beta is better than any one; ``bayes_risk``, the true risk
        of beta = 1; ``estimated_risk`` and ``estimated_error``, the strategy's own estimates;
        ``seconds`` of the choice.  For coverage: ``beta``, ``alpha``; ``joint``, 1 if the joint set
        covers and 0 if not; ``single``, the share of the intervals of single coefficients that
        cover, with their mean ``length``; ``covered``, 1 or 0 for each of them, as text;
        ``seconds``.

    Examples
    --------
    >>> from temperance_studies.settings import GaussianNoise, MeanSetting
    >>> setting = MeanSetting(40, GaussianNoise(4.0), 4.0)
    >>> table = compare([setting], ["bayes", "k-fold"], repeats=2, n_jobs=1)
    >>> table[["repetition", "strategy", "beta"]]
       repetition strategy  beta
    0           0    bayes   1.0
    1           0   k-fold   3.0
    2           1    bayes   1.0
    3           1   k-fold   3.0
    """
    named, choices = _named(settings), as_choices(strategies)
    ledger, tasks = _opened(named, choices, repeats, seed, store, risk, bounds, measure)
    with ledger:
        with reporting(progress, len(tasks)) as report, _quiet(), threads_for(0):
            for done, (setting, repetition, results) in enumerate(_performed(tasks, n_jobs), 1):
                ledger.add(setting, repetition, results)
                report(done, len(tasks))
        table = ledger.table()
    found = _asked_for(table, named, choices, repeats)[list(MEASURES[measure].columns)]
    if len(found) != len(named) * len(choices) * repeats:
        raise ValueError(f"store {str(store)!r} lost results while the study ran; run it again")
    return found


def remaining(
    settings: Settings,
    strategies: Mapping[str, Choice] | Iterable[str] | None = None,
    repeats: int = 30,
    seed: int = 0,
    *,
    store: str | os.PathLike[str] | None = None,
    risk: Risk = "gibbs",
    bounds: tuple[float, float] = (0.0, 3.0),
    measure: What = "risk",
) -> int:
    """Return the number of data sets that :func:`compare` would compute; it computes none.

    Parameters
    ----------
    settings, strategies, repeats, seed, store, risk, bounds, measure
        As in :func:`compare`, with the same errors.

    Examples
    --------
    >>> from temperance_studies.settings import GaussianNoise, MeanSetting
    >>> remaining([MeanSetting(40, GaussianNoise(4.0), 4.0)], ["bayes"], repeats=5)
    5
    """
    named, choices = _named(settings), as_choices(strategies)
    ledger, tasks = _opened(named, choices, repeats, seed, store, risk, bounds, measure)
    ledger.close()
    return len(tasks)


def _opened(
    settings: dict[str, Any],
    choices: dict[str, Choice],
    repeats: int,
    seed: int,
    store: str | os.PathLike[str] | None,
    risk: Risk,
    bounds: tuple[float, float],
    measure: What,
) -> tuple[Ledger, list[Task]]:
    """Open the store of this study, and return it with the missing tasks."""
    whole("repeats", repeats, 1)
    whole("seed", seed, 0)
    one_of("risk", risk, ("gibbs", "predictive"))
    one_of("measure", measure, MEASURES)
    for setting in settings.values():
        (refuse_without_parameter if measure == "coverage" else _refuse_without_risk)(setting)
    limits = as_bounds(bounds)
    chosen = {
        label: {name: resolve(choice, setting) for name, choice in choices.items()}
        for label, setting in settings.items()
    }
    digests = {label: digest(setting) for label, setting in settings.items()}
    ledger = Ledger(store, _description(settings, seed, limits, risk, measure))
    try:
        ledger.ask(settings, chosen, repeats)
        tasks = _missing(ledger, settings, digests, chosen, repeats)
        return ledger, [
            Task(*each, seed=seed, bounds=limits, risk=risk, measure=measure) for each in tasks
        ]
    except BaseException:
        ledger.close()
        raise


def perform(task: Task) -> tuple[str, int, list[tuple[str, Row]]]:
    """Return the results of all strategies on one data set, with the digests of the strategies."""
    setting, identity = task.setting, digest(task.setting)
    try:
        with _quiet(), threads_for(0):
            X, y = setting.draw(generator(task.seed, task.repetition, identity))
            measured = _coverages if task.measure == "coverage" else _risks
            results = measured(task, identity, X, y)
    except Exception as error:
        error.add_note(f"in setting {setting.name!r}, repetition {task.repetition}")
        raise
    return identity, task.repetition, results


def _chosen(
    task: Task, identity: str, name: str, strategy: Strategy, X: Any, y: Array
) -> tuple[Calibration, float]:
    """Return a strategy's choice, and the seconds that it took."""
    rng = generator(task.seed, task.repetition, identity, name)
    began = time.perf_counter()
    choice = calibrate(
        task.setting.model, X, y, strategy, bounds=task.bounds, risk=task.risk, seed=rng
    )
    return choice, time.perf_counter() - began


def _risks(task: Task, identity: str, X: Any, y: Array) -> list[tuple[str, Row]]:
    """Return the true risks of all choices."""
    setting, n = task.setting, len(y)
    best = best_beta(setting, X, y, task.bounds, task.risk)
    least, bayes = (float(true_risk(setting, X, y, b * n, task.risk)) for b in (best, 1.0))
    results: list[tuple[str, Row]] = []
    for name, strategy in task.strategies:
        choice, seconds = _chosen(task, identity, name, strategy, X, y)
        at = _true_risk(setting, X, y, choice, task.risk)
        excess = at - least
        result = Result(
            beta=choice.beta,
            alpha=choice.alpha,
            risk=at,
            # Of one beta an excess below zero is rounding; a mixture may be better than the best.
            excess=excess if choice.weights is not None else max(excess, 0.0),
            best_beta=best,
            best_risk=least,
            bayes_risk=bayes,
            estimated_risk=choice.risk,
            estimated_error=choice.standard_error,
            seconds=seconds,
        )
        results.append((name, result))
    return results


def _true_risk(setting: Setting, X: Any, y: Array, choice: Calibration, risk: Risk) -> float:
    """Return the true risk of a choice: of the mixture, if betas are weighted."""
    if choice.weights is not None:
        return true_risk_of_mixture(setting, X, y, choice.weights)
    return float(true_risk(setting, X, y, choice.beta * len(y), risk))


def _coverages(task: Task, identity: str, X: Any, y: Array) -> list[tuple[str, Row]]:
    """Return what the credible sets of all choices cover."""
    setting = task.setting
    results: list[tuple[str, Row]] = []
    for name, strategy in task.strategies:
        known = with_groups(strategy, setting)
        choice, seconds = _chosen(task, identity, name, known, X, y)
        results.append((name, coverage_result(setting, known, choice, seconds)))
    return results


def _refuse_without_risk(setting: Any) -> None:
    if not hasattr(setting, "population"):
        raise ValueError(
            f"settings must have a population for measure='risk', got {setting.name!r}; "
            "measure='coverage' needs none"
        )


def _named(settings: Settings) -> dict[str, Any]:
    named: dict[str, Any]
    if isinstance(settings, Mapping):
        named = dict(settings)
    else:
        named = {}
        for setting in settings:
            if setting.name in named and digest(named[setting.name]) != digest(setting):
                raise ValueError(
                    f"settings must have different names, got {setting.name!r} for two of them; "
                    "give a mapping from names to settings"
                )
            named[setting.name] = setting
    if not named:
        raise ValueError("settings must hold at least one, got none")
    digests: dict[str, str] = {}
    for name, setting in named.items():
        other = digests.setdefault(digest(setting), name)
        if other != name:
            raise ValueError(f"settings must differ, got the same as {other!r} and {name!r}")
    return named


def _description(
    settings: Mapping[str, Any],
    seed: int,
    bounds: tuple[float, float],
    risk: Risk,
    measure: What,
) -> dict[str, Any]:
    import temperance

    # Risk is not named: stores of before there was another measure stay valid.
    named = {} if measure == "risk" else {"measure": measure}
    return {
        **named,
        "version": temperance.__version__,
        "numbers": NUMBERS,
        "settings": dict(settings),
        "seed": seed,
        "bounds": bounds,
        "risk": risk,
    }


def _missing(
    ledger: Ledger,
    settings: Mapping[str, Any],
    digests: Mapping[str, str],
    strategies: Mapping[str, Mapping[str, Strategy]],
    repeats: int,
) -> Iterator[tuple[Any, int, tuple[tuple[str, Strategy], ...]]]:
    """Yield settings and repetitions with the strategies to run there, by repetition first."""
    known = ledger.keys()
    hashed = {
        label: {digest(strategy): strategy for strategy in chosen.values()}
        for label, chosen in strategies.items()
    }
    for repetition in range(repeats):
        for label, setting in settings.items():
            missing = tuple(
                (name, strategy)
                for name, strategy in hashed[label].items()
                if ledger.key(digests[label], repetition, name) not in known
            )
            if missing:
                yield setting, repetition, missing


def _performed(tasks: list[Task], n_jobs: int) -> Iterator[tuple[str, int, list[tuple[str, Row]]]]:
    """Yield the results of the tasks from joblib's workers, in any order, as they finish."""
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    for return_as in ("generator_unordered", "generator"):
        try:
            pool = Parallel(n_jobs=n_jobs, return_as=return_as, batch_size=1)
        except ValueError as error:  # not all backends support it
            if "return_as" not in str(error) and "generator" not in str(error):
                raise
            continue
        yield from pool(delayed(perform)(task) for task in tasks)
        return
    # A backend that returns lists only: a few tasks for each worker at a time, in one pool.
    size = 4 * (os.cpu_count() or 1)
    with Parallel(n_jobs=n_jobs, batch_size=1) as pool:
        for begin in range(0, len(tasks), size):
            yield from pool(delayed(perform)(task) for task in tasks[begin : begin + size])


class _quiet:
    """Silence the library's warnings: many choices lie at a bound."""

    def __enter__(self) -> None:
        # Warning filters belong to the process: only the main thread may restore them.
        self.caught: Any = None
        if threading.current_thread() is threading.main_thread():
            self.caught = warnings.catch_warnings()
            self.caught.__enter__()
        warnings.simplefilter("ignore", TemperanceWarning)

    def __exit__(self, *error: object) -> None:
        if self.caught is not None:
            self.caught.__exit__(*error)


def _asked_for(
    table: pd.DataFrame,
    settings: Mapping[str, Any],
    strategies: Mapping[str, Choice],
    repeats: int,
) -> pd.DataFrame:
    """Return the requested rows of the table, in the requested order."""
    kept = table[(table["repetition"] < repeats) & table["strategy"].isin(list(strategies))]
    place = {name: i for i, name in enumerate([*settings])}
    order = {name: i for i, name in enumerate([*strategies])}
    ranks = np.lexsort(
        (
            kept["strategy"].map(order).to_numpy(),
            kept["repetition"].to_numpy(),
            kept["setting"].map(place).to_numpy(),
        )
    )
    return kept.iloc[ranks].reset_index(drop=True)
