"""Checks that many claims use: one for each setting and strategy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from temperance_studies.thesis.verdicts.claim import Check
from temperance_studies.thesis.verdicts.estimates import Estimate
from temperance_studies.thesis.verdicts.evidence import Evidence
from temperance_studies.thesis.verdicts.strategies import BAYES, BOOTSTRAP, NAIVE

# Numerical meaning of words for which the thesis gives no number.
CLOSE = 0.25  # "almost as good as the best": at most this share of Bayes' excess risk
SIMILAR = (0.5, 2.0)  # "similar": excess risks within a factor of two
SMALL = 0.05  # "imperceptible": this share of the risk
NEAR_BOUND = 2.5  # "close to the maximum" of 3
NEAR_BAYES = (0.5, 1.5)  # "close to 1"
NEAR_PRIOR = 0.25  # "close to 0"

SIMPLE = ("linear-100-20-4", "mean-40-4")
COMPLEX = (
    "linear-40-40-8",
    "linear-100-20-20",
    "linear-40-40-16",
    "linear-16-40-0.2",
    "polynomial",
    "unknown-gaussian",
    "unknown-mixture",
    "unknown-uniform",
    "logistic-jaakkola",
    "logistic-mean-field",
)
ALL = (*SIMPLE, *COMPLEX)
OTHERS = (BAYES, NAIVE, BOOTSTRAP)
Measure = Callable[[str, str, str], Estimate]


def each(
    evidence: Evidence,
    keys: Sequence[str],
    strategies: Iterable[str],
    measure: Measure,
    low: float = -math.inf,
    high: float = math.inf,
) -> list[Check]:
    """Return one check for each setting and strategy; ``measure(version, key, strategy)``."""
    strategies = tuple(strategies)
    checks = []
    for version, key in evidence.present(keys):
        for name in strategies:
            place = [key] if len(keys) > 1 else []
            place += [name] if len(strategies) > 1 or not place else []
            checks.append(Check(version, " ".join(place), measure(version, key, name), low, high))
    return checks


def beats(
    evidence: Evidence, keys: Sequence[str], strategies: Iterable[str], other: str = BAYES
) -> list[Check]:
    """Return checks that risks are below another strategy's."""
    return each(
        evidence, keys, strategies, lambda v, k, s: evidence.difference(v, k, s, other), high=0.0
    )


def beats_best_of(
    evidence: Evidence, keys: Sequence[str], strategies: Iterable[str], others: Sequence[str]
) -> list[Check]:
    """Return checks that risks are below that of the best of several others."""

    def measure(version: str, key: str, name: str) -> Estimate:
        rivals = [other for other in others if other != name]
        return evidence.difference(version, key, name, evidence.extreme(version, key, rivals))

    return each(evidence, keys, strategies, measure, high=0.0)


def loses_to_all(
    evidence: Evidence, keys: Sequence[str], strategy: str, others: Sequence[str]
) -> list[Check]:
    """Return checks that the risk is above that of the worst of several others."""

    def measure(version: str, key: str, name: str) -> Estimate:
        rivals = [other for other in others if other != name]
        worst = evidence.extreme(version, key, rivals, worst=True)
        return evidence.difference(version, key, name, worst)

    return each(evidence, keys, (strategy,), measure, low=0.0)


def choices(
    evidence: Evidence, keys: Sequence[str], strategies: Iterable[str], low: float, high: float
) -> list[Check]:
    """Return checks of median choices; two finite bounds mean a value with tolerance."""
    found = each(evidence, keys, strategies, evidence.beta, low, high)
    return [replace(check, about=math.isfinite(high - low)) for check in found]


def best_choices(evidence: Evidence, keys: Sequence[str], low: float, high: float) -> list[Check]:
    """Return checks of medians of the best beta."""
    about = math.isfinite(high - low)
    return [
        Check(v, k if len(keys) > 1 else "best beta", evidence.best_beta(v, k), low, high, about)
        for v, k in evidence.present(keys)
    ]
