"""The work behind ``temperance calibrate``: fit strategies, hold rows out, write files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from temperance.app.cli.console import Steps
from temperance.app.cli.options import refuse_unwritable
from temperance.app.cli.request import FOR_LIKELIHOODS, USUAL_LOSSES, Request
from temperance.app.explanation import unrepaired
from temperance.app.files import write_whole
from temperance.app.tables import Table, TableError
from temperance.calibration import preferences_of
from temperance.checks import shown
from temperance.messages import BoundWarning, FlatCurveWarning
from temperance.models.glm.fast import cost_of_fits, fits_to_leave_one_out
from temperance.strategies import NAMES, Bootstrap
from temperance.strategies.safe_bayes import prefix_lengths
from temperance.table import LEAST

N_HELD_OUT_FOLDS = 5
RESAMPLES_BESIDE = 100  # enough to show the choice of the bootstrap, at a tenth of the cost
# Limits on the estimated cost of a logistic model's fits.  The first is about ten seconds of one
# strategy for the dots of a report, the second three minutes with held-out rows in a comparison.
MANY_FITS = "because many fits would take long (ask for one alone with --strategy)"
MOST_COST_BESIDE, MOST_COST_COMPARED = 2_000_000, 7_000_000


@dataclass(frozen=True, eq=False)
class Trial:
    """One strategy: its fitted estimator, and its forecasts of held-out rows if requested."""

    name: str
    fitted: Any
    held: Any = None


@dataclass(frozen=True, eq=False)
class CalibrateResult:
    """The table, the requested strategy, all strategies if requested, and warnings."""

    table: Table
    own: Trial
    trials: list[Trial] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def run(request: Request) -> CalibrateResult:
    """Return the result of a request, with progress bars."""
    with Steps() as steps:
        _refuse_bad_files(request)
        steps.say("reading")
        table = request.table()
        estimator = request.estimator(table.task)
        request.check_response(estimator, table)
        wide = request.compare or request.report is not None
        if wide:
            _refuse_lone_classes(table)
        own = request.own_strategy(estimator)
        offered = [*NAMES]
        if preferences_of(estimator.kind_of_model()).reference:
            offered.append("reference-risk")
        if not request.likelihood:
            offered = [name for name in offered if name not in FOR_LIKELIHOODS]
        others = [name for name in offered if wide and name != own]
        left_out = {name: why for name in others if (why := _reason_against(name, request, table))}
        names = [own, *(name for name in others if name not in left_out)]
        held_for = names if request.compare else names[: int(wide)]
        steps.expect(len(names) + N_HELD_OUT_FOLDS * len(held_for) + (request.report is not None))
        with noted() as sentences:
            trials = [
                _trial(request, estimator, table, name, name in held_for, steps) for name in names
            ]
        if trials[0].held is not None:
            sentences += filter(None, [unrepaired(trials[0].fitted.calibration_, trials[0].held)])
        for why in dict.fromkeys(left_out.values()):
            left = ", ".join(name for name, reason in left_out.items() if reason == why)
            sentences.append(f"Left out, {why}: {left}")
        result = CalibrateResult(table, trials[0], trials if wide else [], sentences)
        if request.report is not None:
            steps.say("report")
            _write_report(request, result)
            steps.step()
        if request.save is not None:
            _save(request, result)
    return result


def _reason_against(name: str, request: Request, table: Table) -> str | None:
    """Return why a strategy is not run in addition to the requested one, or None."""
    lower, upper = request.bounds or (0.0, 3.0)
    if name == "bayes" and not lower <= 1 <= upper:
        return "because beta = 1 is out of bounds"
    if name == "stacking" and request.transfer == "alpha":
        return "because it keeps beta, not alpha"
    if name == "stacking" and request.risk != "predictive":
        return "because it is for forecasts"
    if name == "stacking" and upper < LEAST:
        return f"because it begins at beta = {LEAST:g}"
    if request.loss is not None and request.loss not in USUAL_LOSSES:
        return MANY_FITS if name in ("leave-one-out", "safe-bayes", "bootstrap") else None
    if table.task != "classification":
        return None
    from temperance.estimators.coordinates import count_terms

    rows, inputs = table.inputs.shape
    columns = count_terms(inputs, request.degree or 1)
    fits = {
        "leave-one-out": fits_to_leave_one_out(rows, columns),
        "safe-bayes": prefix_lengths(1, rows).sum() / rows,
        "bootstrap": RESAMPLES_BESIDE,
    }
    classes = len(set(table.target.tolist()))
    parts = 1 if classes == 2 else classes
    most = MOST_COST_COMPARED if request.compare else MOST_COST_BESIDE
    if parts * cost_of_fits(fits.get(name, 0), rows, columns) <= most:
        return None
    return MANY_FITS


def _refuse_lone_classes(table: Table) -> None:
    if table.task != "classification":
        return
    counted = table.target if table.weights is None else table.target[table.weights > 0]
    labels, counts = np.unique(counted, return_counts=True)
    if counts.min() < 2:
        single = shown(labels[np.argmin(counts)])
        raise TableError(
            f"the target, {shown(table.target_name)}, has only one row of {single}; comparisons "
            "and reports hold rows out and need two of each class"
        )


def _trial(
    request: Request, estimator: Any, table: Table, name: str, held: bool, steps: Steps
) -> Trial:
    from sklearn.base import clone

    from temperance.app.held_out import hold_out

    steps.say(name)
    own = name == request.own_strategy(estimator)
    strategy: Any = Bootstrap(n_draws=RESAMPLES_BESIDE) if name == "bootstrap" and not own else name
    if own:
        strategy = request.strategy  # the default may be more than its name
    requested = clone(estimator).set_params(strategy=strategy)
    fitted = clone(requested).fit(table.inputs, table.target, sample_weight=table.weights)
    steps.step()
    if not held:
        return Trial(name, fitted)
    steps.say(f"{name} on held-out rows")
    return Trial(
        name,
        fitted,
        hold_out(
            requested,
            table.inputs.to_numpy(),  # without names, which every fold would check again
            table.target,
            table.weights,
            n_folds=N_HELD_OUT_FOLDS,
            seed=request.seed,
            step=steps.step,
        ),
    )


@contextmanager
def noted() -> Iterator[list[str]]:
    """Collect distinct warnings as sentences, without those that the result explains."""
    sentences: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield sentences
    for warning in caught:
        sentence = str(warning.message)
        explained = issubclass(warning.category, BoundWarning | FlatCurveWarning)
        if not explained and sentence not in sentences:
            sentences.append(sentence)


def _refuse_bad_files(request: Request) -> None:
    """Refuse output files that cannot be written or would overwrite an input."""
    for option, path in (("--report", request.report), ("--save", request.save)):
        if path is None:
            continue
        if request.data is not None and path.is_file() and path.samefile(request.data):
            raise ValueError(f"{option} would overwrite the data in {path}")
        refuse_unwritable(option, path)
    if request.save is not None and request.report is not None:
        if request.save.resolve() == request.report.resolve():
            raise ValueError(f"--save and --report name the same file, {request.save}")


def _write_report(request: Request, result: CalibrateResult) -> None:
    from temperance.app import report
    from temperance.app.cli.display import ranking, settings

    contents = report.compute(
        result.own.fitted,
        result.table,
        {trial.name: trial.fitted.calibration_ for trial in result.trials},
        result.own.name,
        result.own.held,
        ranking(result) if request.compare else [],
        [*result.table.notices, *result.warnings],
        settings(request, result),
        replace(request, json=False).command(),
    )
    assert request.report is not None
    write_whole(request.report, report.render(contents))


def _save(request: Request, result: CalibrateResult) -> None:
    from temperance.app.cli.display import settings
    from temperance.app.saved import choice

    about = {
        "command": replace(request, json=False).command(),
        "seed": request.seed,
        "settings": dict(settings(request, result)),
    }
    assert request.save is not None
    write_whole(request.save, choice.written(result.own.fitted, result.table, about))
