"""``temperance calibrate``: choose beta for a table, compare strategies, write a report."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
import typer

from temperance.app.cli.console import Steps, one_line_errors
from temperance.app.cli.options import number_or, real_number, refuse_unwritable, whole_number
from temperance.app.cli.request import (
    FOR_LIKELIHOODS,
    USUAL_LOSSES,
    LossName,
    ModelName,
    PosteriorName,
    Purpose,
    Request,
    as_written,
)
from temperance.app.explanation import unrepaired
from temperance.app.files import write_whole
from temperance.app.tables import Table, TableError
from temperance.diagnostics import BoundWarning, FlatCurveWarning
from temperance.models.glm.fast import cost_of_fits, fits_to_leave_one_out
from temperance.strategies import NAMES, Bootstrap
from temperance.strategies.safe_bayes import GROWTH
from temperance.types import HasReference
from temperance.validation import shown

N_HELD_OUT_FOLDS = 5
# Enough draws to show its choice, at a tenth of the cost.
RESAMPLES_BESIDE = 100
# Limits on the estimated cost of a logistic model's fits.  The first is about ten seconds of one
# strategy for the dots of a report, the second three minutes with held-out rows in a comparison.
MANY_FITS = "because many fits would take long (ask for one alone with --strategy)"
MOST_COST_BESIDE, MOST_COST_COMPARED = 2_000_000, 7_000_000

DATA, MODEL, CHOICE, OUTPUT = "The data", "The model", "The choice of beta", "The output"


def calibrate(
    data: Annotated[
        Path | None,
        typer.Argument(
            help="CSV or Parquet file; by default bundled data of 442 diabetes patients.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Column to predict.", rich_help_panel=DATA),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(help="Column to leave out; repeat for more.", rich_help_panel=DATA),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help="Column of weights: how many observations a row stands for.", rich_help_panel=DATA
        ),
    ] = None,
    drop_missing: Annotated[
        bool,
        typer.Option(
            "--drop-missing",
            help="Leave out rows with missing values instead of refusing them.",
            rich_help_panel=DATA,
        ),
    ] = False,
    dates_as_days: Annotated[
        bool,
        typer.Option(
            "--dates-as-days",
            help="Count dates in days instead of refusing them.",
            rich_help_panel=DATA,
        ),
    ] = False,
    model: Annotated[
        ModelName | None,
        typer.Option(
            metavar="NAME",
            help="linear, known-variance, polynomial or logistic. By default logistic for classes, "
            "else linear, or known-variance with --noise-variance.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    loss: Annotated[
        LossName | None,
        typer.Option(
            metavar="NAME",
            help="For numbers: squared (default), quantile, huber or student-t; for counts: "
            "poisson or negative-binomial; for two classes: logistic (default), probit or hinge.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    quantile: Annotated[
        float | None,
        real_number("The quantile of --loss quantile (default 0.5).", rich_help_panel=MODEL),
    ] = None,
    noise_variance: Annotated[
        float | None,
        real_number(
            "Known variance of the noise, for known-variance and polynomial.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    degree: Annotated[
        int | None,
        whole_number(
            "Highest power, for polynomial (default 2) and logistic (default 1).",
            least=1,
            rich_help_panel=MODEL,
        ),
    ] = None,
    posterior: Annotated[
        PosteriorName | None,
        typer.Option(
            metavar="NAME",
            help="Gaussian approximation for logistic: mean-field (default), jaakkola, laplace or "
            "full.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    prior_scale: Annotated[
        str,
        number_or(
            "auto",
            "Prior standard deviation of standardised coefficients; auto learns it from the data.",
            rich_help_panel=MODEL,
        ),
    ] = "auto",
    standardize: Annotated[
        bool,
        typer.Option(
            "--standardize/--no-standardize",
            help="Give columns mean 0 and variance 1.",
            rich_help_panel=MODEL,
        ),
    ] = True,
    intercept: Annotated[
        bool,
        typer.Option(
            "--intercept/--no-intercept", help="Include a constant.", rich_help_panel=MODEL
        ),
    ] = True,
    strategy: Annotated[
        Literal[
            "average",
            "k-fold",
            "reference-risk",
            "leave-one-out",
            "bootstrap",
            "safe-bayes",
            "sample-splitting",
            "naive",
            "bayes",
            "coverage",
            "sandwich",
            "fisher-information",
            "prior-information",
            "fitted-coverage",
        ]
        | None,
        typer.Option(
            "--strategy",
            "-s",
            metavar="NAME",
            help="How beta is chosen: average (default for forecasts), k-fold, reference-risk "
            "(default for draws of a regression), leave-one-out, bootstrap, safe-bayes, "
            "sample-splitting, naive or bayes; so that intervals of coefficients cover: coverage, "
            "sandwich, fisher-information, prior-information or fitted-coverage.",
            rich_help_panel=CHOICE,
        ),
    ] = None,
    transfer: Annotated[
        Literal["beta", "alpha"],
        typer.Option(
            help="What is kept fixed from some of the rows to all of them.",
            rich_help_panel=CHOICE,
        ),
    ] = "beta",
    purpose: Annotated[
        Purpose | None,
        typer.Option(
            "--for",
            help="What should be right. forecasts (default): intervals and probabilities of new "
            "rows (predictive risk). coefficients: their intervals cover (strategy coverage). "
            "draws: single draws from the posterior (Gibbs risk). The losses quantile, huber and "
            "hinge have no forecasts; for them the default is coefficients.",
            show_default=False,
            rich_help_panel=CHOICE,
        ),
    ] = None,
    bounds: Annotated[
        tuple[float, float] | None,
        real_number(
            "Range of beta; Bayes is 1. By default 0 3, or 0 100 for several classes.",
            "LOW HIGH",
            rich_help_panel=CHOICE,
        ),
    ] = None,
    seed: Annotated[
        int,
        whole_number("Seed of all random numbers.", least=0, rich_help_panel=CHOICE),
    ] = 0,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Run all strategies and rank them by their risk on held-out rows.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="Write a page with pictures, a slider over beta and a summary in words.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="Write the choice to a file, for temperance predict.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print JSON instead of tables.", rich_help_panel=OUTPUT),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=OUTPUT),
    ] = False,
) -> None:
    """Calibrate how much a model trusts its likelihood, on a table of data.

    Fits a Bayesian regression of the target on all other columns, estimates
    the risk of every exponent beta on the likelihood (Bayes is 1), and averages
    forecasts over beta or takes the beta with the smallest risk.

    \b
    temperance calibrate
    temperance calibrate houses.csv --target price --save houses.json
    temperance calibrate visits.parquet -t healed --compare --report visits.html
    """  # noqa: D301
    with one_line_errors(debug, as_written):
        request = Request(
            data=data,
            target=target,
            model=model,
            loss=loss,
            quantile=quantile,
            strategy=strategy,
            transfer=transfer,
            purpose=purpose,
            bounds=bounds,
            noise_variance=noise_variance,
            degree=degree,
            posterior=posterior,
            prior_scale=cast(Any, prior_scale),
            standardize=standardize,
            intercept=intercept,
            weights=weights,
            drop=tuple(drop or ()),
            drop_missing=drop_missing,
            dates_as_days=dates_as_days,
            seed=seed,
            compare=compare,
            json=json,
            report=report,
            save=save,
        )
        result = run(request)
        from temperance.app.cli import display

        display.show(request, result)


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
        if isinstance(estimator.kind_of_model(), HasReference):
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
    if name == "average" and request.risk != "predictive":
        return "because it is for forecasts"
    if request.loss is not None and request.loss not in USUAL_LOSSES:
        return MANY_FITS if name in ("leave-one-out", "safe-bayes", "bootstrap") else None
    if table.task != "classification":
        return None
    from temperance.estimators.coordinates import count_terms

    rows, inputs = table.inputs.shape
    columns = count_terms(inputs, request.degree or 1)
    fits = {
        "leave-one-out": fits_to_leave_one_out(rows, columns),
        "safe-bayes": min(rows, round(1 / GROWTH)),
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
        {trial.name: trial.fitted.calibration_.beta for trial in result.trials},
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
