"""``temperance calibrate``: choose beta for a table, compare strategies, write a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from temperance.app.cli.console import one_line_errors
from temperance.app.cli.options import number_or, real_number, whole_number
from temperance.app.cli.request import (
    LossName,
    ModelName,
    PosteriorName,
    Purpose,
    Request,
    as_written,
)
from temperance.app.cli.trials import run

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
            "stacking",
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
            help="How beta is chosen: stacking (default for forecasts), k-fold, reference-risk "
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
            "rows (predictive risk). coefficients: their intervals cover (a rate). "
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
    the risk of every exponent beta on the likelihood (Bayes is 1), and mixes
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
