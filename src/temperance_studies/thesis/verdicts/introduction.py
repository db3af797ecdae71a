"""Claims of the abstract and the introduction."""

from __future__ import annotations

import math

import numpy as np

from temperance_studies.thesis.verdicts.claim import Check, Claim
from temperance_studies.thesis.verdicts.comparisons import (
    ALL,
    COMPLEX,
    NEAR_BAYES,
    NEAR_BOUND,
    OTHERS,
    SIMILAR,
    SIMPLE,
    SMALL,
    beats,
    beats_best_of,
    best_choices,
    choices,
    each,
    loses_to_all,
)
from temperance_studies.thesis.verdicts.estimates import Estimate
from temperance_studies.thesis.verdicts.evidence import Evidence
from temperance_studies.thesis.verdicts.strategies import (
    BAYES,
    BOOTSTRAP,
    NAIVE,
    SAFE,
    SPLIT,
    THESIS,
)
from temperance_studies.thesis.verdicts.sweeps import bootstrap_with_more_rows

WHERE = "introduction"
BOUND = 3.0


def at_the_bound(evidence: Evidence) -> list[Check]:
    """Return checks of the share of naive choices at the upper bound.

    The claim says "always": one data set is sufficient to contradict it, so the share has no error.
    """
    return each(
        evidence,
        ALL,
        (NAIVE,),
        lambda v, k, s: Estimate(
            float(np.mean(evidence.values(v, k, s, "beta") > BOUND - 1e-3)), 0.0
        ),
        low=1 - 1e-9,
    )


CLAIMS = (
    Claim(
        "split-beats-bayes",
        WHERE,
        "In complex or misspecified models sample splitting does better than Bayes.",
        "risk minus Bayes', paired, in the ten settings that are not simple; claimed below 0",
        lambda e: beats(e, COMPLEX, (SPLIT,)),
    ),
    Claim(
        "safe-beats-bayes",
        WHERE,
        "In complex or misspecified models SafeBayes does better than Bayes.",
        "risk minus Bayes', paired, in the ten settings that are not simple; claimed below 0",
        lambda e: beats(e, COMPLEX, (SAFE,)),
    ),
    Claim(
        "best",
        WHERE,
        "In complex or misspecified models sample splitting and SafeBayes do best.",
        "risk minus that of the best among Bayes, naive and bootstrap, paired; claimed below 0",
        lambda e: beats_best_of(e, COMPLEX, (SPLIT, SAFE), OTHERS),
    ),
    Claim(
        "similar",
        WHERE + ", conclusion",
        "Sample splitting and SafeBayes are similarly good.",
        "ratio of their mean excess risks, paired, in all settings; claimed in (0.5, 2)",
        lambda e: each(e, ALL, (SPLIT,), lambda v, k, s: e.ratio(v, k, s, SAFE), *SIMILAR),
    ),
    Claim(
        "split-is-faster",
        "abstract, introduction, conclusion",
        "Sample splitting is faster than SafeBayes.",
        "seconds of sample splitting relative to SafeBayes', median of the paired ratios in all "
        "settings; claimed below 1",
        lambda e: each(e, ALL, (SPLIT,), lambda v, k, s: e.speed(v, k, s, SAFE), high=1.0),
        timed=True,
    ),
    Claim(
        "split-is-safe",
        "abstract",
        "Sample splitting does as well as Bayes or better.",
        "risk minus Bayes' relative to it, paired, in all settings; claimed below 0.05",
        lambda e: each(e, ALL, (SPLIT,), lambda v, k, s: e.relative(v, k, s, BAYES), high=SMALL),
    ),
    Claim(
        "bootstrap-needs-rows",
        WHERE + ", conclusion",
        "The bootstrap does better when there are many observations.",
        "excess risk relative to Bayes' at n = 160 minus that at n = 20, linear regression with "
        "d = 40 and variance 8, 200 draws; claimed below 0",
        bootstrap_with_more_rows,
    ),
    Claim(
        "naive-at-bound",
        WHERE + ", strategies",
        "The naive strategy always chooses the largest beta.",
        "share of data sets with the choice 3, in all settings; claimed 1, so that one data set "
        "can contradict it",
        at_the_bound,
    ),
    Claim(
        "naive-is-worst",
        WHERE,
        "In complex or misspecified models the naive strategy does worse than all others.",
        "risk minus that of the worst of the thesis' other four, paired; claimed above 0",
        lambda e: loses_to_all(e, COMPLEX, NAIVE, THESIS),
    ),
    Claim(
        "simple-similar",
        WHERE + ", conclusion",
        "In simple, well-specified models all strategies do similarly well.",
        "excess risk relative to the least risk, each of the five in the two simple settings; "
        "claimed below 0.05",
        lambda e: each(e, SIMPLE, THESIS, e.relative_excess, high=SMALL),
    ),
    Claim(
        "simple-choices",
        WHERE,
        "In simple models all strategies but Bayes choose a beta close to the maximum.",
        "median choice in the two simple settings; claimed above 2.5",
        lambda e: choices(e, SIMPLE, (NAIVE, SPLIT, BOOTSTRAP, SAFE), NEAR_BOUND, math.inf),
    ),
    Claim(
        "simple-bayes",
        WHERE,
        "In simple models Bayes is worse than the best, but hardly so.",
        "Bayes' excess risk relative to the least risk; claimed in (0, 0.05)",
        lambda e: each(e, SIMPLE, (BAYES,), e.relative_excess, 0.0, SMALL),
    ),
    Claim(
        "bayes-near-best",
        WHERE + ", overfitting example; results",
        "With n = d = 40 the best beta is close to 1, slightly smaller or larger.",
        "median best beta in linear-40-40-8; claimed in (0.5, 1.5)",
        lambda e: best_choices(e, ("linear-40-40-8",), *NEAR_BAYES),
    ),
)
