"""Comparisons in settings that the thesis has no figure of."""

from __future__ import annotations

from typing import Any

import numpy as np

from temperance.datasets import AS_CODED, VERSIONS
from temperance.strategies import Bayes, Bootstrap, SafeBayes, SampleSplitting
from temperance.types import Array, Strategy
from temperance.verdicts.claim import Check
from temperance.verdicts.estimates import of_ratio, of_separate_ratio
from temperance.verdicts.evidence import Evidence
from temperance.verdicts.strategies import BAYES, BOOTSTRAP, SAFE, SPLIT

FEW, MANY, COLUMNS, VARIANCE, DRAWS = 20, 160, 40, 8.0, 200
FACTOR = 1.5  # "not really worse"


def excess_of(table: Any, strategy: str) -> Array:
    """Excess risks of one strategy, by repetition."""
    rows = table[table["strategy"] == strategy].sort_values("repetition")
    return np.asarray(rows["excess"], dtype=float)


def bootstrap_with_more_rows(evidence: Evidence) -> list[Check]:
    """Ratio of the bootstrap's excess to Bayes', with many rows less that with few."""
    from temperance.datasets import GaussianNoise, LinearSetting

    rules: dict[str, Strategy] = {BAYES: Bayes(), BOOTSTRAP: Bootstrap(n_draws=DRAWS)}
    checks = []
    for version in VERSIONS:
        noise = GaussianNoise(VARIANCE**2 if version == AS_CODED else VARIANCE)
        ratio = {}
        for n in (FEW, MANY):
            setting = LinearSetting(n, COLUMNS, noise, VARIANCE, seed=evidence.seed)
            table = evidence.compare({f"linear-{n}-{COLUMNS}-{VARIANCE:g}": setting}, rules)
            ratio[n] = of_ratio(excess_of(table, BOOTSTRAP), excess_of(table, BAYES))
        where = f"{ratio[MANY].mean:.2f} less {ratio[FEW].mean:.2f}:"
        checks.append(Check(version, where, ratio[MANY].minus(ratio[FEW]), high=0.0))
    return checks


def mixture_against_gaussian(evidence: Evidence) -> list[Check]:
    """Excess risks under mixture noise, in parts of those under normal noise of that variance."""
    from temperance.datasets import GaussianNoise, UnknownVarianceSetting

    rules: dict[str, Strategy] = {
        BAYES: Bayes(),
        SPLIT: SampleSplitting(transfer="alpha"),
        SAFE: SafeBayes(transfer="alpha"),
    }
    checks = []
    for version, key in evidence.present(("unknown-mixture",)):
        mixture: Any = evidence.settings(version)[key]
        noise = GaussianNoise(mixture.noise.variance)
        gaussian = UnknownVarianceSetting(mixture.n, mixture.d, noise, seed=evidence.seed)
        table = evidence.compare({f"unknown-gaussian-{noise.variance:g}": gaussian}, rules)
        for name in rules:
            ratio = of_separate_ratio(
                evidence.values(version, key, name, "excess"), excess_of(table, name)
            )
            checks.append(Check(version, name, ratio, high=FACTOR))
    return checks
