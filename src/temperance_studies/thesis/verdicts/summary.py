r"""Strategies compared with Bayes: by setting, over all settings, and by transfer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from temperance_studies.settings import AS_STATED
from temperance_studies.study import ratios as rule
from temperance_studies.study.summary import CLEAR
from temperance_studies.thesis.verdicts.claim import SUPPORTS, Check, word
from temperance_studies.thesis.verdicts.estimates import Estimate
from temperance_studies.thesis.verdicts.evidence import Evidence
from temperance_studies.thesis.verdicts.strategies import BAYES, TRANSFERS, compared

INSIDE = (0.05, 2.9)  # range in which a best beta is not at a bound
STRATEGIES = tuple(compared(""))
Places = list[tuple[str, str]]


@dataclass(frozen=True)
class Overall:
    """One strategy compared with Bayes over several settings."""

    name: str
    ratio: Estimate
    wins: int
    losses: int
    settings: int
    worst: Estimate
    worst_setting: str


def inside(evidence: Evidence) -> Places:
    """Return the settings whose median best beta is not at a bound."""
    return [
        (version, key)
        for version, key in evidence.present()
        if INSIDE[0] < evidence.best_beta(version, key).mean < INSIDE[1]
    ]


def over(evidence: Evidence, places: Places) -> list[Overall]:
    """Return a summary of every strategy over these settings."""
    return [_overall(evidence, places, name) for name in STRATEGIES]


def _overall(evidence: Evidence, places: Places, name: str) -> Overall:
    ratios = {place: evidence.ratio(*place, name) for place in places}
    differences = [evidence.difference(*place, name, BAYES) for place in places]
    worst = max(ratios, key=lambda place: ratios[place].mean)
    return Overall(
        name,
        geometric_mean(list(ratios.values())),
        sum(each.mean < -CLEAR * each.error for each in differences),
        sum(each.mean > CLEAR * each.error for each in differences),
        len(places),
        ratios[worst],
        label(*worst),
    )


def geometric_mean(ratios: list[Estimate]) -> Estimate:
    r"""Return the geometric mean of independent ratios, see :mod:`temperance_studies.study.ratios`.

    Examples
    --------
    >>> geometric_mean([Estimate(4.0, 0.0), Estimate(1.0, 0.0)])
    Estimate(mean=2.0, error=0.0)
    """
    mean = rule.geometric_mean(each.mean for each in ratios)
    errors = [each.error / each.mean for each in ratios if rule.within_limits(each.mean)]
    return Estimate(mean, mean * math.hypot(*errors) / len(ratios))


def label(version: str, key: str) -> str:
    """Return a setting's key, with a mark if it is as coded.

    Examples
    --------
    >>> label("as-coded", "polynomial")
    'polynomial, as coded'
    """
    return key if version == AS_STATED else f"{key}, as coded"


def overall_rows(rows: list[Overall]) -> tuple[list[str], list[list[str]]]:
    """Return header and cells of the summary over settings."""
    header = ["strategy", "excess risk, Bayes = 1", "better than Bayes", "worse", "worst setting"]
    return header, [
        [
            row.name,
            str(row.ratio),
            f"{row.wins} of {row.settings}",
            str(row.losses),
            f"{row.worst}: {row.worst_setting}",
        ]
        for row in rows
    ]


def setting_rows(evidence: Evidence, version: str) -> tuple[list[str], list[list[str]]]:
    """Return header and cells of one version: ratios to Bayes, differences in errors."""
    header = ["setting", "median best beta", "Bayes' excess risk", *STRATEGIES[1:]]
    rows = []
    for _, key in (place for place in evidence.present() if place[0] == version):
        excess = evidence.values(version, key, BAYES, "excess")
        cells = [key, str(evidence.best_beta(version, key)), f"{excess.mean():.3g}"]
        for name in STRATEGIES[1:]:
            difference = evidence.difference(version, key, name, BAYES)
            ratio = evidence.ratio(version, key, name).mean
            shown = "∞" if math.isinf(ratio) else f"{ratio:.2f}"
            cells.append(f"{shown} ({in_errors(difference)})")
        rows.append(cells)
    return header, rows


def in_errors(difference: Estimate) -> str:
    """Return a difference in units of its standard error, bold above 2.

    Examples
    --------
    >>> in_errors(Estimate(0.3, 0.1))
    '**+3.0**'
    """
    if difference.error == 0 or not math.isfinite(difference.error):
        return "0" if difference.mean == 0 else "?"
    units = difference.mean / difference.error
    return f"**{units:+.1f}**" if units > CLEAR else f"{units:+.1f}"


def transfer_rows(evidence: Evidence) -> tuple[list[str], list[list[str]]]:
    """Return header and cells of the comparison of keeping beta with keeping alpha."""
    header = [
        "strategy",
        "excess risk, alpha = 1",
        "beta better",
        "alpha better",
        "beta beats alpha",
    ]
    rows = []
    for name, (alpha, beta) in TRANSFERS.items():
        places = evidence.present()
        checks = [Check(v, k, evidence.difference(v, k, beta, alpha), high=0.0) for v, k in places]
        ratios = [evidence.ratio(v, k, beta, alpha) for v, k in places]
        rows.append(
            [
                name,
                str(geometric_mean(ratios)),
                f"{sum(check.mark == SUPPORTS for check in checks)} of {len(checks)}",
                str(sum(each.estimate.mean > CLEAR * each.estimate.error for each in checks)),
                word(checks),
            ]
        )
    return header, rows


def clear_wins(evidence: Evidence, one: str, other: str) -> tuple[int, int]:
    """Return the numbers of settings where one strategy is clearly better, and worse."""
    differences = [evidence.difference(v, k, one, other) for v, k in evidence.present()]
    better = sum(each.mean < -CLEAR * each.error for each in differences)
    return better, sum(each.mean > CLEAR * each.error for each in differences)


def cost_rows(evidence: Evidence) -> tuple[list[str], list[list[str]]]:
    """Return header and cells of the cost of a choice, in milliseconds."""
    logistic = [place for place in evidence.present() if place[1].startswith("logistic")]
    groups = {
        "exact models, ms": [place for place in evidence.present() if place not in logistic],
        "logistic models, ms": logistic,
    }
    return ["strategy", *groups], [
        [
            name,
            *(_milliseconds(_typical_seconds(evidence, group, name)) for group in groups.values()),
        ]
        for name in STRATEGIES
    ]


# Prefixes of the keys of the settings of a family.
FAMILIES = {
    "known variance": ("linear", "mean", "polynomial"),
    "unknown variance": ("unknown",),
    "Jaakkola": ("logistic-jaakkola",),
    "mean-field": ("logistic-mean-field",),
}


def spent_rows(evidence: Evidence) -> tuple[list[str], list[list[str]]]:
    """Return header and cells of the seconds of all choices, by strategy and model family."""

    def spent(name: str, family: str) -> float:
        return sum(
            float(evidence.values(version, key, name, "seconds").sum())
            for version, key in evidence.present()
            if key.startswith(FAMILIES[family])
        )

    seconds = np.array([[spent(name, family) for family in FAMILIES] for name in STRATEGIES])
    rows = [*zip(STRATEGIES, seconds, strict=True), ("all", seconds.sum(axis=0))]
    header = ["strategy", *(f"{family}, s" for family in FAMILIES), "all, s"]
    return header, [
        [name, *(f"{each:,.1f}" for each in (*values, values.sum()))] for name, values in rows
    ]


def _typical_seconds(evidence: Evidence, places: Places, name: str) -> float:
    medians = [np.median(evidence.values(*place, name, "seconds")) for place in places]
    return float(np.exp(np.mean(np.log(medians)))) if medians else math.nan


def _milliseconds(seconds: float) -> str:
    value = 1000 * seconds
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
