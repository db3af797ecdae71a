"""What a report says, as plain numbers and words: computed in one place, drawn in another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from temperance.types import Array


@dataclass(frozen=True)
class Interval:
    """A posterior mean and the ends of a central interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Coefficient:
    """One coefficient under Bayes' posterior and under that of the chosen beta."""

    name: str
    bayes: Interval
    calibrated: Interval


@dataclass(frozen=True)
class Choice:
    """The beta that a strategy takes; one of them is the report's own."""

    strategy: str
    beta: float
    own: bool = False


@dataclass(frozen=True, eq=False)
class Marginals:
    """Posterior densities of some coefficients at each beta; those of the choice at its place.

    The density at ``mean + offset`` is ``height`` times the largest one.  Shapes: ``names`` (p,),
    ``mean`` (betas, p), ``offset`` and ``height`` (betas, p, points), offsets ascending.  ``total``
    is the number of coefficients of which these are some.
    """

    names: list[str]
    mean: Array
    offset: Array
    height: Array
    total: int


@dataclass(frozen=True, eq=False)
class Band:
    """Predictive mean and 95 % band along a single input, at each beta; the choice at its place.

    For a response of two classes the mean is the probability of the second, and the band its
    credible interval.  Shapes: ``grid`` (m,), ``mean``, ``low`` and ``high`` (betas, m), ``points``
    (rows, 2) holds inputs and responses.
    """

    input_name: str
    response_name: str
    grid: Array
    mean: Array
    low: Array
    high: Array
    points: Array


@dataclass(frozen=True, eq=False)
class Part:
    """The calibration, with the coefficients of the model or of one class.

    ``betas`` ascend over the bounds and hold the choice and (if inside) 1; ``risk`` is the curve
    there.  Above ``grain`` they are told apart by their ratios.  ``at`` is the place of the choice,
    which may be an average over betas: then the median of their weights is there, and
    ``choice_risk`` differs from the curve.  ``beta_range`` holds the betas that the data do not
    tell from the choice, or 95 % of the weights; nothing if beta was given.  ``coefficients`` are
    all ``n_coefficients`` of them, or those the most standard deviations away from zero.
    """

    name: str
    betas: Array
    grain: float
    risk: Array
    at: int
    averaged: bool
    beta_range: tuple[float, float] | None
    choice_risk: float
    standard_error: float
    bayes_risk: float
    gain: float
    gain_error: float
    choices: list[Choice]
    coefficients: list[Coefficient]
    n_coefficients: int
    marginals: Marginals
    band: Band | None = None


@dataclass(frozen=True, eq=False)
class Reliability:
    """What was promised against what happened, with standard errors; all of shape (k,)."""

    promised: Array
    happened: Array
    error: Array


@dataclass(frozen=True, eq=False)
class HeldOut:
    """How forecasts fared on rows that had no part in them.

    Kind "intervals": share of responses inside central intervals of each level.  Kind
    "probabilities": share of a class among rows given similar probabilities.  ``scores`` are
    rows (measure, Bayes, calibrated) in words and digits.
    """

    kind: Literal["intervals", "probabilities"]
    rows: int
    bayes: Reliability
    calibrated: Reliability
    scores: list[tuple[str, str, str]]


@dataclass(frozen=True, eq=False)
class Contents:
    """A whole report.

    ``choice_name`` says what stands against Bayes: one beta, or an average.  ``reading`` says what
    coefficients compare with, if there is anything to say.  ``ranking`` is a table of strategies on
    rows held out, its first row the headings, or empty.
    """

    title: str
    words: list[str]
    risk_name: str
    choice_name: str
    reading: str
    parts: list[Part]
    held_out: HeldOut
    ranking: list[tuple[str, ...]]
    notices: list[str]
    settings: list[tuple[str, str]]
    command: str
