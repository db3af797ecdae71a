"""Comparisons in settings without a figure in the thesis."""

from __future__ import annotations

from typing import Any

from temperance.protocols import Strategy
from temperance.strategies import Bayes, Bootstrap, SafeBayes, SampleSplitting
from temperance_studies.settings import (
    AS_CODED,
    VERSIONS,
    GaussianNoise,
    LinearSetting,
    UnknownVarianceSetting,
    Version,
)
from temperance_studies.study.plan import Comparison
from temperance_studies.thesis.verdicts.claim import Check
from temperance_studies.thesis.verdicts.estimates import of_mean, of_ratio, of_separate_ratio
from temperance_studies.thesis.verdicts.evidence import Evidence, column
from temperance_studies.thesis.verdicts.strategies import BAYES, BOOTSTRAP, SAFE, SPLIT

FEW, MANY, COLUMNS, VARIANCE, DRAWS = 20, 160, 40, 8.0, 200
FACTOR = 1.5  # "not really worse"
PARTS: dict[str, Strategy] = {
    BAYES: Bayes(),
    SPLIT: SampleSplitting(transfer="alpha"),
    SAFE: SafeBayes(transfer="alpha"),
}
# For unknown variance, the setting of the figure has n = 60, d = 40 and variance 3.5.
ROWS = 60
LARGER = (
    ("larger noise", 40, 7.0),
    ("larger noise", 40, 14.0),
    ("larger dimension", 60, 3.5),
    ("larger dimension", 80, 3.5),
)


def comparisons(seed: int) -> list[Comparison]:
    """Return all comparisons of the sweeps."""
    return [
        each
        for version in VERSIONS
        for each in (
            *(_linear(n, version, seed) for n in (FEW, MANY)),
            _as_wide_as_the_mixture(version, seed),
            *(_unknown(d, number, version, seed) for _, d, number in LARGER),
        )
    ]


def _noise(number: float, version: Version) -> GaussianNoise:
    return GaussianNoise(number**2 if version == AS_CODED else number)


def _linear(n: int, version: Version, seed: int) -> Comparison:
    setting = LinearSetting(n, COLUMNS, _noise(VARIANCE, version), VARIANCE, seed=seed)
    rules: dict[str, Strategy] = {BAYES: Bayes(), BOOTSTRAP: Bootstrap(n_draws=DRAWS)}
    return Comparison(f"linear-{n}-{COLUMNS}-{VARIANCE:g}", setting, rules)


def _as_wide_as_the_mixture(version: Version, seed: int) -> Comparison:
    from temperance_studies.thesis.settings import thesis_settings

    mixture: Any = thesis_settings(version, seed)["unknown-mixture"]
    noise = GaussianNoise(mixture.noise.variance)
    gaussian = UnknownVarianceSetting(mixture.n, mixture.d, noise, seed=seed)
    return Comparison(f"unknown-gaussian-{noise.variance:g}", gaussian, PARTS)


def _unknown(d: int, number: float, version: Version, seed: int) -> Comparison:
    setting = UnknownVarianceSetting(ROWS, d, _noise(number, version), seed=seed, version=version)
    return Comparison(f"unknown-{ROWS}-{d}-{number:g}", setting, PARTS)


def bootstrap_with_more_rows(evidence: Evidence) -> list[Check]:
    """Return checks of the bootstrap's excess relative to Bayes', many minus few rows."""
    checks = []
    for version in VERSIONS:
        ratio = {}
        for n in (FEW, MANY):
            table = evidence.compare(_linear(n, version, evidence.seed))
            ratio[n] = of_ratio(*(column(table, name, "excess") for name in (BOOTSTRAP, BAYES)))
        where = f"{ratio[MANY].mean:.2f} minus {ratio[FEW].mean:.2f}:"
        checks.append(Check(version, where, ratio[MANY].minus(ratio[FEW]), high=0.0))
    return checks


def mixture_against_gaussian(evidence: Evidence) -> list[Check]:
    """Return checks of excess risks under mixture noise relative to normal noise."""
    checks = []
    for version in VERSIONS:
        table = evidence.compare(_as_wide_as_the_mixture(version, evidence.seed))
        for name in PARTS:
            mixture = evidence.values(version, "unknown-mixture", name, "excess")
            ratio = of_separate_ratio(mixture, column(table, name, "excess"))
            checks.append(Check(version, name, ratio, high=FACTOR))
    return checks


def larger_noise_or_dimension(evidence: Evidence) -> list[Check]:
    """Return checks of risk minus Bayes', unknown variance, larger noise or dimension."""
    checks = []
    for version in VERSIONS:
        for part, d, number in LARGER:
            table = evidence.compare(_unknown(d, number, version, evidence.seed))
            bayes = column(table, BAYES, "risk")
            for name in (SPLIT, SAFE):
                difference = of_mean(column(table, name, "risk") - bayes)
                where = f"d = {d}, variance {number:g}, {name}"
                checks.append(Check(version, where, difference, high=0.0, part=part))
    return checks
