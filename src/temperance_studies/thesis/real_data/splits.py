r"""Strategies on real data: repeated random splits into training rows and test rows.

The true distribution is unknown, so held-out rows are used in its place.  The results are in
``docs/real-data.md``, which :mod:`temperance_studies.thesis.real_data.page` writes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from temperance.checks import one_of, whole
from temperance.data import Array, Risk, threads_for
from temperance.messages import TemperanceWarning
from temperance.protocols import Strategy
from temperance.strategies import (
    Bayes,
    Bootstrap,
    KFold,
    LeaveOneOut,
    Naive,
    SafeBayes,
    SampleSplitting,
    strategy_named,
)
from temperance_studies.study.identity import digest, generator
from temperance_studies.study.progress import Report, reporting

if TYPE_CHECKING:
    import pandas as pd

STORED_AS = "temperance.study.real_data"  # module path that studies store
Kind = Literal["known variance", "unknown variance", "Laplace", "mean-field", "full covariance"]
REGRESSIONS: tuple[Kind, ...] = ("known variance", "unknown variance")
POSTERIORS: dict[str, Any] = {
    "Laplace": "laplace",
    "mean-field": "mean-field",
    "full covariance": "full",
}
TARGETS: dict[Risk, str] = {"gibbs": "draws", "predictive": "forecasts"}
GUESS = 0.25  # assumed noise variance, as a share of the variance of the training responses
PRIOR_SCALE = 1.0  # one prior for all strategies
LEVEL = 0.95
BINS = 10

# All keep beta.  Fifty resamples, since each is a fit in logistic regression.
STRATEGIES: dict[str, Strategy] = {
    "bayes": Bayes(),
    "naive": Naive(),
    "sample-splitting": SampleSplitting(),
    "safe-bayes": SafeBayes(),
    "bootstrap": Bootstrap(n_draws=50),
    "k-fold": KFold(),
    "leave-one-out": LeaveOneOut(),
}


@dataclass(frozen=True)
class Case:
    """A data set, the number of training rows, and the model.

    Parameters
    ----------
    data : str
        One of :data:`temperance_studies.settings.REAL`.
    train : int
        Number of training rows; all others are held out.
    model : {"known variance", "unknown variance", "Laplace", "mean-field", "full covariance"}
        Linear regression whose noise variance is assumed to be a quarter of the variance of the
        training responses, or is inferred; logistic regression with one of three posteriors.
    degree : int
        Highest degree of powers and products of the inputs.
    """

    data: str
    train: int
    model: Kind
    degree: int = 1

    @property
    def name(self) -> str:
        """Name of the case among those of the same model."""
        return f"{self.data}, {self.train} rows" + (", squares" if self.degree == 2 else "")

    def estimator(self, y: Array, **arguments: Any) -> Any:
        """Return the estimator for these training responses, not fitted."""
        from temperance.estimators import GibbsClassifier, GibbsRegressor

        options = {"degree": self.degree, "prior_scale": PRIOR_SCALE, **arguments}
        if self.model in POSTERIORS:
            return GibbsClassifier(posterior=POSTERIORS[self.model], **options)
        known = self.model == "known variance"
        variance: Any = GUESS * float(np.var(y)) if known else "unknown"
        return GibbsRegressor(noise_variance=variance, **options)


_REGRESSIONS = (
    ("diabetes", 100, 1),
    ("diabetes", 330, 1),
    ("diabetes", 100, 2),
    ("engel", 50, 1),
    ("statecrime", 34, 1),
    ("ccard", 48, 1),
    ("star98", 60, 1),
)
CASES: tuple[Case, ...] = (
    *(Case(name, n, kind, degree) for kind in REGRESSIONS for name, n, degree in _REGRESSIONS),
    Case("breast-cancer", 60, "Laplace"),
    Case("wine", 40, "Laplace"),
    Case("iris", 50, "Laplace"),
    Case("digits", 40, "Laplace"),
    Case("fair", 100, "Laplace"),
    Case("fair", 250, "Laplace"),
    Case("spector", 21, "Laplace"),
    Case("wine", 40, "mean-field"),
    Case("wine", 40, "full covariance"),
    Case("digits", 40, "full covariance"),
)  # fmt: skip


class Result(NamedTuple):
    """The choice of a strategy on one split, and the quality of its forecasts."""

    model: str
    case: str
    repetition: int
    risk: Risk
    strategy: str
    train: int
    test: int
    beta: float
    log_score: float
    gain: float
    gibbs_gain: float
    coverage: float
    right: float
    calibration_error: float
    seconds: float


class Task(NamedTuple):
    """One split of one data set, for all strategies and risks."""

    case: Case
    repetition: int
    strategies: tuple[tuple[str, Strategy], ...]
    risks: tuple[Risk, ...]
    seed: int


def splits(
    cases: Iterable[Case] = CASES,
    strategies: Mapping[str, Strategy] | Iterable[str] | None = None,
    repeats: int = 20,
    seed: int = 0,
    n_jobs: int = -1,
    *,
    risks: Iterable[Risk] = ("gibbs", "predictive"),
    progress: Report | bool | None = None,
) -> pd.DataFrame:
    r"""Return the results of every strategy on held-out rows of repeated random splits.

    The rows of a split depend on the seed, the repetition, the data and the number of training
    rows; the folds of a strategy on the model and the strategy as well.  So other cases,
    strategies, repeats or workers do not change any number.  All strategies and models get the same
    rows, in random order; the classes of a split have the proportions of the whole.

    Parameters
    ----------
    cases : cases
        Data with models.
    strategies : mapping from names to strategies, or names; all of ``STRATEGIES`` by default
    repeats : int
        Number of splits of each case.
    seed : int
    n_jobs : int
        Workers of joblib, -1 for one on each core.
    risks : some of "gibbs" and "predictive"
        Risks that the strategies minimise.
    progress : function, False or None
        Called with the number of splits done and the total; ``None`` is a bar on terminals.

    Returns
    -------
    DataFrame
        One row for each case, repetition, risk and strategy, all measures on held-out rows:
        ``log_score``, the mean log density or log probability; ``gain``, that minus Bayes' on the
        same rows; ``gibbs_gain``, Bayes' Gibbs risk minus the strategy's; ``coverage`` of central
        95 % intervals, for regressions; share of classes that are ``right`` and the expected
        ``calibration_error``, for classifications.  ``seconds`` are those of the fit.

    Examples
    --------
    >>> table = splits([Case("engel", 50, "known variance")], ["bayes", "k-fold"], 1, n_jobs=1)
    >>> table[["risk", "strategy", "beta"]].round(2)
             risk strategy  beta
    0       gibbs    bayes  1.00
    1       gibbs   k-fold  3.00
    2  predictive    bayes  1.00
    3  predictive   k-fold  1.38
    """
    import pandas as pd

    whole("repeats", repeats, 1)
    whole("seed", seed, 0)
    chosen, requested = tuple(_chosen(strategies).items()), tuple(risks)
    for risk in requested:
        one_of("risks", risk, ("gibbs", "predictive"))
    wanted = list(cases)
    tasks = [Task(case, k, chosen, requested, seed) for k in range(repeats) for case in wanted]
    found: dict[tuple[int, Case], list[Result]] = {}
    with reporting(progress, len(tasks)) as report:
        for done, (task, results) in enumerate(_performed(tasks, n_jobs), 1):
            found[task.repetition, task.case] = results
            report(done, len(tasks))
    ordered = [line for case in wanted for k in range(repeats) for line in found[k, case]]
    return pd.DataFrame(ordered, columns=list(Result._fields))


def perform(task: Task) -> tuple[Task, list[Result]]:
    """Return the results of each strategy and risk on one split."""
    case = task.case
    try:
        with warnings.catch_warnings(), threads_for(0):
            warnings.simplefilter("ignore", TemperanceWarning)
            rows = split(case, task.repetition, task.seed)
            return task, [
                _judged(task, rows, risk, name, strategy)
                for risk in task.risks
                for name, strategy in task.strategies
            ]
    except Exception as error:
        error.add_note(f"in case {case.name!r} ({case.model}), repetition {task.repetition}")
        raise


def split(case: Case, repetition: int, seed: int) -> tuple[Array, Array, Array, Array]:
    """Return inputs and responses of the training rows, then those of the held-out rows."""
    from sklearn.model_selection import train_test_split

    from temperance_studies.settings import load

    data = load(case.data)
    classes = data.task == "classification"
    if classes != (case.model in POSTERIORS):
        raise ValueError(f"model must suit a {data.task}, got {case.model!r} for {case.data!r}")
    X, X_new, y, y_new = train_test_split(
        data.X,
        data.y,
        train_size=case.train,
        stratify=data.y if classes else None,
        random_state=_state(seed, repetition, case.data, case.train),
    )
    return X, y, X_new, y_new


def _judged(
    task: Task,
    rows: tuple[Array, Array, Array, Array],
    risk: Risk,
    name: str,
    strategy: Strategy,
) -> Result:
    from temperance.app.held_out import coverage, forecasts, hits

    case, (X, y, X_new, y_new) = task.case, rows
    state = _state(task.seed, task.repetition, case, strategy)
    estimator = case.estimator(y, strategy=strategy, target=TARGETS[risk], random_state=state)
    began = time.perf_counter()
    estimator.fit(X, y)
    seconds = time.perf_counter() - began
    own, bayes = forecasts(estimator, X_new, y_new), forecasts(estimator, X_new, y_new, beta=1.0)
    covered = right = error = np.nan
    if own.place is not None:
        covered = float(coverage(own.place, LEVEL).mean())
    else:
        hit = hits(own, y_new, estimator.classes_)
        right, error = float(hit.mean()), calibration_error(own.probabilities.max(axis=1), hit)
    return Result(
        model=case.model,
        case=case.name,
        repetition=task.repetition,
        risk=risk,
        strategy=name,
        train=len(y),
        test=len(y_new),
        beta=float(np.mean(estimator.inverse_temperature_)),
        log_score=float(own.log_score.mean()),
        gain=float((own.log_score - bayes.log_score).mean()),
        gibbs_gain=float(copy(estimator).set_params(target="draws").gains(X_new, y_new).mean()),
        coverage=float(covered),
        right=float(right),
        calibration_error=float(error),
        seconds=seconds,
    )


def calibration_error(confidence: Array, right: Array) -> float:
    r"""Return the expected calibration error: the mean gap between confidence and accuracy.

    .. math:: \sum_b \frac{n_b}{n} \Bigl| \frac1{n_b} \sum_{i \in b} (c_i - h_i) \Bigr|

    over ten bins of equal width, with confidence c in the predicted class and h = 1 if it is
    correct.
    """
    bins = np.minimum((BINS * confidence).astype(int), BINS - 1)
    return float(np.abs(np.bincount(bins, confidence - right)).sum() / len(confidence))


def _performed(tasks: list[Task], n_jobs: int) -> Iterator[tuple[Task, list[Result]]]:
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    yield from pool(delayed(perform)(task) for task in tasks)


def _chosen(strategies: Mapping[str, Strategy] | Iterable[str] | None) -> dict[str, Strategy]:
    if strategies is None:
        return STRATEGIES
    if isinstance(strategies, str):
        raise ValueError(f"strategies must be a mapping or a list of names, got {strategies!r}")
    if isinstance(strategies, Mapping):
        return dict(strategies)
    return {name: STRATEGIES.get(name) or strategy_named(name) for name in strategies}


def _state(seed: int, repetition: int, *parts: Any) -> int:
    return int(generator(seed, repetition, digest(parts)).integers(2**31))
