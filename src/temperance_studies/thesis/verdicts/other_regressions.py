"""Claims of the results on a Gaussian mean, a polynomial, and unknown variance."""

from __future__ import annotations

import math
from dataclasses import replace

from temperance_studies.settings import VERSIONS
from temperance_studies.thesis.verdicts.claim import Check, Claim
from temperance_studies.thesis.verdicts.comparisons import CLOSE, beats, choices, each
from temperance_studies.thesis.verdicts.estimates import Estimate, of_mean
from temperance_studies.thesis.verdicts.evidence import Evidence
from temperance_studies.thesis.verdicts.strategies import (
    BAYES,
    BOOTSTRAP,
    NAIVE,
    SAFE,
    SPLIT,
    THESIS,
)
from temperance_studies.thesis.verdicts.sweeps import (
    larger_noise_or_dimension,
    mixture_against_gaussian,
)

MEAN, POLYNOMIAL = "mean-40-4", "polynomial"
GAUSSIAN, MIXTURE, UNIFORM = "unknown-gaussian", "unknown-mixture", "unknown-uniform"
UNKNOWN = "results, unknown variance"
MARGIN = 0.02  # largest negligible difference, as a share of the risk
NEAR_TENTH = (0.05, 0.2)  # "0.1"
COVERED = 0.9


def covers(
    evidence: Evidence, name: str, areas: tuple[str, ...], low: float, high: float
) -> list[Check]:
    """Return checks of the share of an area where a band contains the function."""
    return [
        Check(version, f"{area}:", of_mean(evidence.coverage[version][name, area]), low, high)
        for version in VERSIONS
        for area in areas
    ]


def spread(evidence: Evidence, version: str, key: str) -> Estimate:
    """Return the mean risk of the worst of the five minus that of the best."""
    worst = evidence.extreme(version, key, THESIS, worst=True)
    return evidence.difference(version, key, worst, evidence.extreme(version, key, THESIS))


def more_contrasted(evidence: Evidence) -> list[Check]:
    """Return checks of the strategies' spread, uniform minus normal noise as stated."""
    (version,) = {v for v, _ in evidence.present((UNIFORM,))}
    difference = spread(evidence, version, UNIFORM).minus(spread(evidence, version, GAUSSIAN))
    return [Check(version, "uniform minus Gaussian:", difference, low=0.0)]


def uniform_close(evidence: Evidence) -> list[Check]:
    """Return checks that the excess risk is small relative to Bayes', and the risk lower."""
    ratios = each(evidence, (UNIFORM,), (SPLIT, SAFE), evidence.ratio, high=CLOSE)
    differences = beats(evidence, (UNIFORM,), (SPLIT, SAFE))
    return [
        *(replace(c, where=f"{c.where}, part:", part="close to the best") for c in ratios),
        *(
            replace(c, where=f"{c.where} minus Bayes:", part="better than Bayes")
            for c in differences
        ),
    ]


def naive_under_uniform(evidence: Evidence) -> list[Check]:
    """Return checks that the naive strategy's risk is above that of each of the others."""
    others = tuple(name for name in THESIS if name != NAIVE)
    return [
        Check(v, f"less {other}", evidence.difference(v, UNIFORM, NAIVE, other), low=0.0)
        for v, _ in evidence.present((UNIFORM,))
        for other in others
    ]


CLAIMS = (
    Claim(
        "mean-no-winner",
        "results, Gaussian mean",
        "For a Gaussian mean no strategy has a notably lower risk than another.",
        "risk minus Bayes' relative to it, paired, in mean-40-4; claimed within 0.02",
        lambda e: each(
            e,
            (MEAN,),
            (NAIVE, SPLIT, BOOTSTRAP, SAFE),
            lambda v, k, s: e.relative(v, k, s, BAYES),
            -MARGIN,
            MARGIN,
        ),
    ),
    Claim(
        "polynomial-choice",
        "results, polynomial regression",
        "Sample splitting chooses beta = 0.1 for the polynomial.",
        "median choice; claimed in (0.05, 0.2)",
        lambda e: choices(e, (POLYNOMIAL,), (SPLIT,), *NEAR_TENTH),
    ),
    Claim(
        "polynomial-better",
        "introduction; results, polynomial regression",
        "Sample splitting is better than Bayes for the polynomial.",
        "risk minus Bayes', paired; claimed below 0",
        lambda e: beats(e, (POLYNOMIAL,), (SPLIT,)),
    ),
    Claim(
        "polynomial-close",
        "results, polynomial regression",
        "There its risk is close to the least of any beta.",
        "excess risk relative to Bayes'; claimed below 0.25",
        lambda e: each(e, (POLYNOMIAL,), (SPLIT,), e.ratio, high=CLOSE),
    ),
    Claim(
        "polynomial-split-band",
        "results, polynomial regression",
        "There sample splitting's 2-sd band is wide enough where there are no data.",
        "share of [-2.5, -1] and [1, 2.5] where the band holds the function; claimed above 0.9",
        lambda e: covers(e, SPLIT, ("left", "right"), COVERED, math.inf),
    ),
    Claim(
        "polynomial-bayes-band",
        "results, polynomial regression",
        "There Bayes' band is too narrow on the left.",
        "share of [-2.5, -1] where the band holds the function; claimed below 0.9",
        lambda e: covers(e, BAYES, ("left",), -math.inf, COVERED),
    ),
    Claim(
        "polynomial-least-squares-band",
        "results, polynomial regression",
        "There the limit of least squares is too sure of itself everywhere.",
        "share of each area where its band holds the function; claimed below 0.9",
        lambda e: covers(e, "least squares", ("left", "middle", "right"), -math.inf, COVERED),
    ),
    Claim(
        "unknown-gaussian",
        UNKNOWN,
        "With Gaussian noise, as noise or dimension grow, sample splitting and SafeBayes are to be "
        "preferred to Bayes.",
        "risk minus Bayes', paired, at n = 60: noise variance 7 and 14 (as coded squared) with "
        "d = 40, and d = 60 and 80 with variance 3.5; claimed below 0",
        larger_noise_or_dimension,
    ),
    Claim(
        "unknown-mixture",
        UNKNOWN,
        "With mixture noise, sample splitting, bootstrap and SafeBayes are better than Bayes.",
        "risk minus Bayes', paired, in unknown-mixture; claimed below 0",
        lambda e: beats(e, (MIXTURE,), (SPLIT, BOOTSTRAP, SAFE)),
    ),
    Claim(
        "mixture-not-worse",
        UNKNOWN,
        "Mixture noise is hardly worse than Gaussian noise of variance (sigma2 + delta2)/2.",
        "mean excess risk under the one relative to that under the other, other data; claimed "
        "below 1.5",
        mixture_against_gaussian,
    ),
    Claim(
        "uniform-close",
        UNKNOWN,
        "With uniform noise, sample splitting and SafeBayes are almost as good as the best beta "
        "and clearly better than Bayes.",
        "excess risk relative to Bayes' in unknown-uniform, claimed below 0.25; risk minus Bayes', "
        "paired, claimed below 0",
        uniform_close,
        one_version=True,
    ),
    Claim(
        "uniform-naive",
        UNKNOWN,
        "With uniform noise the naive strategy is notably worse than the others.",
        "risk of the naive strategy minus that of each, paired; claimed above 0",
        naive_under_uniform,
        one_version=True,
    ),
    Claim(
        "uniform-contrasted",
        UNKNOWN,
        "The strategies differ more under uniform than under Gaussian noise.",
        "risk of the worst minus that of the best of the five, paired, its difference between the "
        "two noises; claimed above 0",
        more_contrasted,
        one_version=True,
    ),
)
