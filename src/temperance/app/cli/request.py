"""The request on the command line, and the parts of the library that it selects."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from temperance.app.tables import Table, TableError, Task, diabetes, prepare, read_frame
from temperance.checks import shown
from temperance.data import Risk
from temperance.plans import Transfer
from temperance.strategies import FOR_SOME_MODELS, name_of

ModelName = Literal["linear", "known-variance", "polynomial", "logistic"]
LossName = Literal[
    "squared",
    "quantile",
    "huber",
    "student-t",
    "poisson",
    "negative-binomial",
    "logistic",
    "probit",
    "hinge",
]
PosteriorName = Literal["mean-field", "jaakkola", "laplace", "full"]
Purpose = Literal["forecasts", "coefficients", "draws"]

# The purpose, and the risk that belongs to it: it is minimised, except for coefficients.
RISKS: dict[Purpose, Risk] = {
    "forecasts": "predictive",
    "coefficients": "gibbs",
    "draws": "gibbs",
}
PURPOSES: dict[Risk, Purpose] = {risk: purpose for purpose, risk in RISKS.items()}

LEAST_ROWS = 10

OF_CLASSES = ("logistic", "probit", "hinge")  # losses
USUAL_LOSSES = ("squared", "logistic")
NO_LIKELIHOODS = ("quantile", "huber", "hinge")
FOR_LIKELIHOODS = ("stacking", "bayes", "prior-information")  # strategies


@dataclass(frozen=True)
class Request:
    """The options of ``temperance calibrate``; each default is that of the command."""

    data: Path | None = None
    target: str | None = None
    model: ModelName | None = None
    loss: LossName | None = None
    quantile: float | None = None
    strategy: str | None = None
    transfer: Transfer = "beta"
    purpose: Purpose | None = None
    bounds: tuple[float, float] | None = None
    noise_variance: float | None = None
    degree: int | None = None
    posterior: PosteriorName | None = None
    prior_scale: float | Literal["auto"] = "auto"
    standardize: bool = True
    intercept: bool = True
    weights: str | None = None
    drop: tuple[str, ...] = ()
    drop_missing: bool = False
    dates_as_days: bool = False
    seed: int = 0
    compare: bool = False
    json: bool = False
    report: Path | None = None
    save: Path | None = None

    @property
    def risk(self) -> Risk:
        """The risk that is minimised."""
        return RISKS[self.aim]

    @property
    def likelihood(self) -> bool:
        """Whether the loss is minus a log likelihood."""
        return self.loss not in NO_LIKELIHOODS

    @property
    def aim(self) -> Purpose:
        """What should be good: by default forecasts, if the loss can give any."""
        return self.purpose or ("forecasts" if self.likelihood else "coefficients")

    def table(self) -> Table:
        """Return the table in the data file, or the bundled one."""
        name = "diabetes" if self.data is None else self.data.name
        frame = diabetes() if self.data is None else read_frame(self.data)
        target = "progression" if self.data is None and self.target is None else self.target
        if target is None:
            columns = ", ".join(repr(str(name)) for name in list(frame.columns)[:12])
            more = f" and {len(frame.columns) - 12} more" if len(frame.columns) > 12 else ""
            raise TableError(f"--target must name a column of {name}: {columns}{more}")
        table = prepare(
            frame,
            target,
            name=name,
            task=self._task(),
            drop=self.drop,
            weights=self.weights,
            drop_missing=self.drop_missing,
            dates_as_days=self.dates_as_days,
        )
        if len(table.target) < LEAST_ROWS:
            raise TableError(
                f"{name} has {len(table.target)} rows, too few to calibrate on: at least "
                f"{LEAST_ROWS} are needed"
            )
        return table

    def _task(self) -> Task | None:
        if self.loss is not None:
            return "classification" if self.loss in OF_CLASSES else "regression"
        if self.model is None:
            return None
        return "classification" if self.model == "logistic" else "regression"

    def estimator(self, task: Task) -> Any:
        """Return the estimator that the options describe."""
        from temperance.estimators import GibbsClassifier, GibbsRegressor

        shared: dict[str, Any] = {
            "strategy": self.strategy,
            "transfer": self.transfer,
            "target": self.aim,
            "bounds": self.bounds,
            "prior_scale": self.prior_scale,
            "standardize": self.standardize,
            "fit_intercept": self.intercept,
            "random_state": self.seed,
        }
        model = self.model or self._usual(task)
        self._check(model)
        if self.loss is not None:
            self._check_loss(self.loss, model)
            shared["loss"] = self.loss
        if model == "logistic":
            if self.posterior is not None:
                shared["posterior"] = self.posterior
            return GibbsClassifier(degree=self.degree or 1, **shared)
        degree = (self.degree or 2) if model == "polynomial" else 1
        variance = "unknown" if self.noise_variance is None else self.noise_variance
        quantile = 0.5 if self.quantile is None else self.quantile
        return GibbsRegressor(noise_variance=variance, degree=degree, quantile=quantile, **shared)

    def check_response(self, estimator: Any, table: Table) -> None:
        """Refuse responses that the loss does not take, with the name of their column."""
        loss = estimator._loss()
        if loss is None or table.task == "classification":
            return
        try:
            loss.check(table.target)
        except ValueError as error:
            takes = str(error).removeprefix("y ")
            raise TableError(f"the target, {shown(table.target_name)}, {takes}") from None

    def _usual(self, task: Task) -> ModelName:
        if task == "classification":
            return "logistic"
        return "linear" if self.noise_variance is None else "known-variance"

    def own_strategy(self, estimator: Any) -> str:
        """Return the name of the requested strategy, or of the estimator's default."""
        return self.strategy or name_of(estimator.usual_strategy())

    def _check(self, model: ModelName) -> None:
        if model == "known-variance" and self.noise_variance is None:
            raise ValueError(
                "--model known-variance needs --noise-variance, in units of the target squared"
            )
        if self.noise_variance is not None and model not in ("known-variance", "polynomial"):
            raise ValueError(
                f"--noise-variance is for the models known-variance and polynomial, not {model}"
            )
        if self.degree is not None and model not in ("polynomial", "logistic"):
            raise ValueError(f"--degree is for the models polynomial and logistic, not {model}")
        if self.strategy in FOR_SOME_MODELS and model == "logistic":
            raise ValueError(f"--strategy {self.strategy} is not for the model logistic")
        if self.quantile is not None and self.loss != "quantile":
            raise ValueError("--quantile is for --loss quantile")
        if self.posterior is not None and model != "logistic":
            raise ValueError(f"--posterior is for the model logistic, not {model}")

    def _check_loss(self, loss: LossName, model: ModelName) -> None:
        models: tuple[str, ...] = ("logistic",) if loss in OF_CLASSES else ("linear", "polynomial")
        if loss == "squared":
            models = ("linear", "known-variance", "polynomial")
        if model not in models:
            raise ValueError(f"--loss {loss} is for the model {' or '.join(models)}, not {model}")
        if loss in USUAL_LOSSES:
            return
        if self.noise_variance is not None:
            raise ValueError(f"--noise-variance is for --loss squared, not {loss}")
        if self.strategy in FOR_SOME_MODELS:
            raise ValueError(f"--strategy {self.strategy} is for --loss squared, not {loss}")
        if self.posterior == "jaakkola":
            raise ValueError(f"--posterior jaakkola is for --loss logistic, not {loss}")
        if self.posterior == "laplace" and loss == "hinge":
            raise ValueError("--posterior laplace is not for --loss hinge, which has no curvature")
        if self.likelihood:
            return
        if self.purpose == "forecasts":
            raise ValueError(f"--for forecasts is for likelihoods, and --loss {loss} is none")
        if self.strategy in FOR_LIKELIHOODS:
            raise ValueError(
                f"--strategy {self.strategy} is for likelihoods, and --loss {loss} is none"
            )

    def command(self) -> str:
        """Return the command line of the same request."""
        words = ["temperance", "calibrate"]
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                words += _option(field.name, value)
        return shlex.join(words)


def as_written(message: str) -> str:
    """Return a message of the library with the names of the command's options."""
    names = {"X and y": "the table", "X": "the inputs", "y": "the target"}
    names |= {field.name: _dashed(field.name) for field in fields(Request)}
    for name, written in names.items():
        if message.startswith(f"{name} must "):
            return written + message.removeprefix(name)
    return message


def _dashed(name: str) -> str:
    return "--for" if name == "purpose" else "--" + name.replace("_", "-")


def _option(name: str, value: Any) -> list[str]:
    if name == "data":
        return [f"./{value}" if str(value).startswith("-") else str(value)]
    if name in ("standardize", "intercept"):
        return [f"--no-{name}"]
    option = _dashed(name)
    if value is True:
        return [option]
    if name == "drop":
        return [word for column in value for word in (option, column)]
    if isinstance(value, tuple):
        return [option, *map(str, value)]
    return [option, str(value)]
