"""The contents of a report as plain numbers and text; computed and drawn elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from temperance.data import Array


@dataclass(frozen=True)
class Interval:
    """A posterior mean and the ends of a central interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Coefficient:
    """One coefficient under Bayes' posterior, if there is one, and under the chosen beta's."""

    name: str
    bayes: Interval | None
    calibrated: Interval


@dataclass(frozen=True)
class StrategyChoice:
    """The beta of a strategy; one of them is the report's own.

    If it mixes several, ``weights`` are pairs of a beta and its weight, without negligible ones.
    """

    strategy: str
    beta: float
    own: bool = False
    weights: list[tuple[float, float]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Marginals:
    """Posterior densities of some coefficients at each beta; the choice at its own index.

    The density at ``mean + offset`` is ``height`` times the largest one.  Shapes: ``names`` (p,),
    ``mean`` (betas, p), ``offset`` and ``height`` (betas, p, points), offsets ascending.  ``total``
    is the number of all coefficients.
    """

    names: list[str]
    mean: Array
    offset: Array
    height: Array
    total: int


@dataclass(frozen=True, eq=False)
class Band:
    """Predictive mean and 95 % band along a single input, at each beta; the choice at its index.

    For a response of two classes the mean is the probability of the second, and the band its
    credible interval; for a loss that is no likelihood they are those of the fitted value.  Shapes:
    ``grid`` (m,), ``mean``, ``low`` and ``high`` (betas, m), ``points`` (rows, 2) are inputs and
    responses.
    """

    input_name: str
    response_name: str
    grid: Array
    mean: Array
    low: Array
    high: Array
    points: Array


@dataclass(frozen=True, eq=False)
class ReportPart:
    """The calibration, with the coefficients of the model or of one class.

    ``betas`` ascend within the bounds and contain the choice and (if inside, and if the loss is a
    likelihood) 1; ``risk`` is the curve there.  If they begin at 0, the slider is logarithmic in
    beta above ``grain``, otherwise everywhere, and ``grain`` is 0.  ``at`` is the index of the
    choice.  If that is a mixture over betas, ``mixed`` is its weights as a phrase; it stands at
    the median of the weights, which another place may have as well, and ``choice_risk`` differs
    from the curve.  ``beta_range`` and ``range_meaning`` are a range of single betas, None if beta
    was given, and what it is.  ``verdict`` says whether to temper; it may be empty.
    ``coefficients`` are all ``n_coefficients`` of them, or those the most standard deviations away
    from zero.
    """

    name: str
    betas: Array
    grain: float
    risk: Array
    at: int
    mixed: str
    beta_range: tuple[float, float] | None
    range_meaning: str
    choice_risk: float
    standard_error: float
    bayes_risk: float
    gain: float
    gain_error: float
    verdict: str
    choices: list[StrategyChoice]
    coefficients: list[Coefficient]
    n_coefficients: int
    marginals: Marginals
    band: Band | None = None


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Forecast probabilities and observed frequencies, with standard errors; shape (k,) each."""

    promised: Array
    happened: Array
    error: Array


@dataclass(frozen=True, eq=False)
class HeldOutSummary:
    """Quality of forecasts on held-out rows.

    Kind "intervals": share of responses inside central intervals of each level.  Kind
    "probabilities": share of a class among rows with similar forecast probabilities.  Kind
    "losses", of a loss that is no likelihood: scores alone.  ``scores`` are rows (measure, Bayes,
    calibrated) as text, without Bayes if there is none.
    """

    kind: Literal["intervals", "probabilities", "losses"]
    rows: int
    bayes: ReliabilityCurve | None
    calibrated: ReliabilityCurve | None
    scores: list[tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Contents:
    """A whole report.

    ``choice_name`` is what is compared with Bayes: one beta, or a mixture.  ``reading`` says what
    the coefficients of text compare; it may be empty.  ``widths`` says what their intervals are
    for, ``band`` what the band along a single input is.  ``bayes`` is whether beta = 1 is Bayes.
    ``ranking`` is a table of strategies on held-out rows, with headings in its first row, or empty.
    """

    title: str
    words: list[str]
    risk_name: str
    choice_name: str
    reading: str
    widths: str
    band: str
    bayes: bool
    parts: list[ReportPart]
    held_out: HeldOutSummary
    ranking: list[tuple[str, ...]]
    notices: list[str]
    settings: list[tuple[str, str]]
    command: str
