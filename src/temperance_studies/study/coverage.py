r"""Whether credible sets of a choice cover the parameter of its setting."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from temperance.calibration import Calibration
from temperance.data import Array
from temperance.models.credible import gaussian_levels, student_levels
from temperance.posteriors import GaussianPosterior, NormalInverseGammaPosterior
from temperance.protocols import Strategy
from temperance.strategies import Sandwich
from temperance_studies.settings import parameter_of
from temperance_studies.study.measures import CoverageResult

STORED_AS = "temperance.study.coverage"  # module path that studies store

LEVEL = 0.95


@dataclass(frozen=True)
class SandwichCovariance(Sandwich):
    """For studies of coverage: the Gaussian of ``Calibration.sandwich()`` as the posterior."""


def coverage_result(
    setting: Any, strategy: Strategy, choice: Calibration, seconds: float
) -> CoverageResult:
    """Return whether the joint set and the single intervals cover the setting's parameter."""
    own = isinstance(strategy, SandwichCovariance)
    posterior = choice.sandwich() if own else choice.posterior
    theta = parameter_of(setting)
    low, high = posterior.marginals().interval(LEVEL).T
    covered = (low <= theta) & (theta <= high)
    return CoverageResult(
        beta=choice.beta,
        alpha=choice.alpha,
        joint=float(credible_level(posterior, theta) <= LEVEL),
        single=float(covered.mean()),
        length=float((high - low).mean()),
        covered="".join(str(int(each)) for each in covered),
        seconds=seconds,
    )


def credible_level(posterior: Any, theta: Array) -> float:
    """Return the level of the credible ellipsoid at whose edge ``theta`` lies."""
    student = isinstance(posterior, NormalInverseGammaPosterior)
    if not student and not isinstance(posterior, GaussianPosterior):
        raise ValueError(
            "coverage needs a Gaussian or normal-inverse-gamma posterior, got "
            f"{type(posterior).__name__}"
        )
    distances = posterior.root.squared_distances((theta - posterior.mean)[None])
    if student:
        a, b = np.asarray(posterior.a), np.asarray(posterior.b)
        return float(student_levels(distances, len(theta), a, b)[0])
    return float(gaussian_levels(distances, len(theta))[0])


def with_groups(strategy: Strategy, setting: Any) -> Strategy:
    """Return the strategy with the setting's groups, if it takes groups and has none."""
    groups = getattr(setting, "groups", None)
    options = getattr(strategy, "__dataclass_fields__", {})
    if groups is None or "groups" not in options or cast(Any, strategy).groups is not None:
        return strategy
    return cast(Strategy, replace(cast(Any, strategy), groups=groups))


def refuse_without_parameter(setting: Any) -> None:
    """Refuse a setting that neither has a parameter nor a population to compute it from."""
    parameter_of(setting)
