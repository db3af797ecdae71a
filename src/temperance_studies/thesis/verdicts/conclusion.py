"""Claims of the conclusion, and questions that the thesis leaves open."""

from __future__ import annotations

from temperance_studies.thesis.verdicts.claim import Check, Claim
from temperance_studies.thesis.verdicts.comparisons import ALL, beats, each
from temperance_studies.thesis.verdicts.estimates import Estimate
from temperance_studies.thesis.verdicts.evidence import Evidence
from temperance_studies.thesis.verdicts.strategies import (
    BAYES,
    BOOTSTRAP,
    DEFAULT,
    NAIVE,
    SAFE,
    SPLIT,
    TRANSFERS,
)

WHERE = "conclusion"
OURS = "open question"


def bootstrap_loses(evidence: Evidence) -> list[Check]:
    """Return checks of the bootstrap's risk above that of the better of the two others."""

    def measure(version: str, key: str, name: str) -> Estimate:
        return evidence.difference(
            version, key, name, evidence.extreme(version, key, (SPLIT, SAFE))
        )

    return each(evidence, ALL, (BOOTSTRAP,), measure, low=0.0)


def keeping_beta(evidence: Evidence, names: tuple[str, ...]) -> list[Check]:
    """Return checks that keeping beta has a lower risk than keeping alpha."""
    return [
        Check(v, f"{k} {name}", evidence.difference(v, k, beta, alpha), high=0.0)
        for v, k in evidence.present(ALL)
        for name, (alpha, beta) in TRANSFERS.items()
        if name in names
    ]


CLAIMS = (
    Claim(
        "bootstrap-not-worth",
        WHERE,
        "The bootstrap is not worth using.",
        "its risk minus that of the better of sample splitting and SafeBayes, paired, in all "
        "settings; claimed above 0",
        bootstrap_loses,
    ),
    Claim(
        "bootstrap-slower",
        WHERE,
        "The bootstrap is slower than sample splitting.",
        "seconds of sample splitting relative to the bootstrap's, median of the paired ratios in "
        "all settings; claimed below 1",
        lambda e: each(e, ALL, (SPLIT,), lambda v, k, s: e.speed(v, k, s, BOOTSTRAP), high=1.0),
        timed=True,
    ),
    Claim(
        "bayes-fastest",
        WHERE,
        "Bayes is faster than the others.",
        "Bayes' seconds relative to those of each of the other four, median of the paired ratios; "
        "claimed below 1",
        lambda e: each(
            e,
            ALL,
            (NAIVE, SPLIT, BOOTSTRAP, SAFE),
            lambda v, k, s: e.speed(v, k, BAYES, s),
            high=1.0,
        ),
        timed=True,
    ),
    Claim(
        "beta-for-parts",
        OURS,
        "Keeping beta fixed beats keeping alpha fixed for sample splitting and SafeBayes.",
        "risk with beta fixed minus risk with alpha fixed, paired, all settings; claimed below 0",
        lambda e: keeping_beta(e, ("sample splitting", "SafeBayes")),
    ),
    Claim(
        "beta-for-folds",
        OURS,
        "Keeping beta fixed beats keeping alpha fixed for 5 folds, 10 folds and leave-one-out.",
        "risk with beta fixed minus risk with alpha fixed, paired, all settings; claimed below 0",
        lambda e: keeping_beta(e, ("5-fold", "10-fold", "leave-one-out")),
    ),
    Claim(
        "default-beats-bayes",
        OURS,
        "10 folds that hold beta, the default of most models, are better than Bayes.",
        "risk minus Bayes', paired, in all settings; claimed below 0",
        lambda e: beats(e, ALL, (DEFAULT,)),
    ),
    Claim(
        "default-beats-thesis",
        OURS,
        "10 folds that hold beta are better than the thesis' sample splitting and SafeBayes.",
        "risk minus that of each, paired, in all settings; claimed below 0",
        lambda e: [
            Check(v, f"{k} {other}", e.difference(v, k, DEFAULT, other), high=0.0)
            for v, k in e.present(ALL)
            for other in (SPLIT, SAFE)
        ],
    ),
)
