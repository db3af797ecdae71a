"""Claims of the results on linear regression with known variance, including its four cases."""

from __future__ import annotations

import math

import numpy as np

from temperance_studies.settings import least_risk
from temperance_studies.thesis.constant import without_constant
from temperance_studies.thesis.verdicts.claim import Check, Claim
from temperance_studies.thesis.verdicts.comparisons import (
    CLOSE,
    NEAR_BAYES,
    NEAR_BOUND,
    NEAR_PRIOR,
    SIMILAR,
    beats,
    best_choices,
    choices,
    each,
    loses_to_all,
)
from temperance_studies.thesis.verdicts.estimates import Estimate, of_mean, of_median, of_ratio
from temperance_studies.thesis.verdicts.evidence import Evidence
from temperance_studies.thesis.verdicts.strategies import (
    BAYES,
    BOOTSTRAP,
    NAIVE,
    SAFE,
    SPLIT,
    THESIS,
)

WHERE = "results, linear regression"
MIDDLE = "linear-40-40-8"
EASY, NOISY_MANY, NOISY_FEW, ACCURATE_FEW = (
    "linear-100-20-4",
    "linear-100-20-20",
    "linear-40-40-16",
    "linear-16-40-0.2",
)
FAR = 0.5  # distance beyond which a choice is not close to the best beta
GAP = 0.1  # share of the risk by which the empirical error must be below it
DATA_SETS = 10


def underestimation(evidence: Evidence, key: str, low: float, high: float) -> list[Check]:
    """Return checks of the share of the risk by which the empirical error is below it."""
    from temperance import expected_risk
    from temperance_studies.settings import true_risk

    checks = []
    for version, _ in evidence.present((key,)):
        setting = evidence.settings(version)[key]
        data = evidence.data(version, key, min(evidence.repeats, DATA_SETS))
        for beta in (1.0, 3.0):
            pairs = [
                (
                    true_risk(setting, X, y, beta * len(y)),
                    expected_risk(setting.model, (X, y), (X, y), beta * len(y), risk="gibbs"),
                )
                for X, y in data
            ]
            risk, empirical = without_constant(setting, np.array(pairs, dtype=float).T)
            gap = of_ratio(risk - empirical, risk)
            checks.append(Check(version, f"beta = {beta:g}:", gap, low, high))
    return checks


def above_the_least(evidence: Evidence) -> list[Check]:
    """Return checks of the best risk relative to the least risk of any parameter."""
    checks = []
    for version, key in evidence.present((MIDDLE,)):
        setting = evidence.settings(version)[key]
        least = without_constant(setting, least_risk(setting))
        above = of_mean(evidence.values(version, key, BAYES, "best_risk") / least - 1)
        checks.append(Check(version, "at the best beta:", above, low=GAP))
    return checks


def distance(evidence: Evidence, version: str, key: str, name: str) -> Estimate:
    """Return the median distance of a choice from the best beta."""
    chosen, best = (evidence.values(version, key, name, c) for c in ("beta", "best_beta"))
    return of_median(np.abs(chosen - best))


def bootstrap_between(evidence: Evidence) -> list[Check]:
    """Return checks that the bootstrap's risk is above those of two others, below Bayes'."""
    worse, better = "worse than both", "better than Bayes"
    return [
        Check(
            v,
            f"less {other}",
            evidence.difference(v, MIDDLE, BOOTSTRAP, other),
            low,
            high,
            part=part,
        )
        for v, _ in evidence.present((MIDDLE,))
        for other, low, high, part in (
            (SPLIT, 0.0, math.inf, worse),
            (SAFE, 0.0, math.inf, worse),
            (BAYES, -math.inf, 0.0, better),
        )
    ]


def below_the_best(evidence: Evidence) -> list[Check]:
    """Return checks of the median of SafeBayes' choice minus the best beta."""
    return each(
        evidence,
        (EASY,),
        (SAFE,),
        lambda v, k, s: of_median(
            evidence.values(v, k, s, "beta") - evidence.values(v, k, s, "best_beta")
        ),
        high=0.0,
    )


CLAIMS = (
    Claim(
        "middle-lower",
        WHERE,
        "With n = d = 40 and variance 8, sample splitting and SafeBayes do better than Bayes.",
        "risk minus Bayes', paired, in linear-40-40-8; claimed below 0",
        lambda e: beats(e, (MIDDLE,), (SPLIT, SAFE)),
    ),
    Claim(
        "middle-close",
        WHERE,
        "In that case both are almost as good as the best beta.",
        "excess risk relative to Bayes'; claimed below 0.25",
        lambda e: each(e, (MIDDLE,), (SPLIT, SAFE), e.ratio, high=CLOSE),
    ),
    Claim(
        "middle-bootstrap",
        WHERE,
        "In that case the bootstrap is a little worse than both, and better than Bayes.",
        "risk of the bootstrap minus that of each, paired; claimed above 0, above 0, below 0",
        bootstrap_between,
    ),
    Claim(
        "middle-least",
        WHERE,
        "In that case no strategy comes near the least risk of any parameter.",
        "risk at the best beta minus the least risk, relative to the latter; claimed above 0.1",
        above_the_least,
    ),
    Claim(
        "easy-no-overfitting",
        WHERE + ", many observations, little noise",
        "With n = 100, d = 20 and variance 4 there is hardly any overfitting.",
        "median best beta in linear-100-20-4; claimed above 2.5",
        lambda e: best_choices(e, (EASY,), NEAR_BOUND, math.inf),
    ),
    Claim(
        "easy-safe-bayes",
        WHERE + ", many observations, little noise",
        "There SafeBayes chooses too small a beta.",
        "SafeBayes' choice minus the best beta, median; claimed below 0",
        below_the_best,
    ),
    Claim(
        "easy-curves",
        WHERE + ", many observations, little noise",
        "There generalisation and empirical error are similar.",
        "empirical error below the risk, relative to the risk, up to 10 data sets; claimed within "
        "0.1",
        lambda e: underestimation(e, EASY, -GAP, GAP),
    ),
    Claim(
        "noisy-many-best",
        WHERE + ", many observations, much noise",
        "With n = 100, d = 20 and variance 20 overfitting begins around beta = 1.",
        "median best beta in linear-100-20-20; claimed in (0.5, 1.5)",
        lambda e: best_choices(e, (NOISY_MANY,), *NEAR_BAYES),
    ),
    Claim(
        "noisy-many-choices",
        WHERE + ", many observations, much noise",
        "There sample splitting and SafeBayes choose close to the best beta.",
        "median distance of the choice from the best beta; claimed below 0.5",
        lambda e: each(
            e, (NOISY_MANY,), (SPLIT, SAFE), lambda v, k, s: distance(e, v, k, s), high=FAR
        ),
    ),
    Claim(
        "noisy-many-bootstrap",
        WHERE + ", many observations, much noise",
        "There the bootstrap does well.",
        "risk of the bootstrap minus Bayes', paired; claimed below 0",
        lambda e: beats(e, (NOISY_MANY,), (BOOTSTRAP,)),
    ),
    Claim(
        "noisy-many-curves",
        WHERE + ", many observations, much noise",
        "There the empirical error does not underestimate the risk.",
        "empirical error below the risk, relative to the risk, up to 10 data sets; claimed below "
        "0.1",
        lambda e: underestimation(e, NOISY_MANY, -math.inf, GAP),
    ),
    Claim(
        "noisy-few-best",
        WHERE + ", few observations, much noise",
        "With n = d = 40 and variance 16 the best beta tends to 0.",
        "median best beta in linear-40-40-16; claimed below 0.25",
        lambda e: best_choices(e, (NOISY_FEW,), -math.inf, NEAR_PRIOR),
    ),
    Claim(
        "noisy-few-choices",
        WHERE + ", few observations, much noise",
        "There sample splitting and SafeBayes choose values near 0.",
        "median choice; claimed below 0.25",
        lambda e: choices(e, (NOISY_FEW,), (SPLIT, SAFE), -math.inf, NEAR_PRIOR),
    ),
    Claim(
        "noisy-few-bootstrap",
        WHERE + ", few observations, much noise",
        "There the bootstrap behaves like the naive strategy.",
        "ratio of their mean excess risks, paired; claimed in (0.5, 2)",
        lambda e: each(
            e, (NOISY_FEW,), (BOOTSTRAP,), lambda v, k, s: e.ratio(v, k, s, NAIVE), *SIMILAR
        ),
    ),
    Claim(
        "noisy-few-curves",
        WHERE + ", few observations, much noise",
        "There the empirical error underestimates the risk.",
        "empirical error below the risk, relative to the risk, up to 10 data sets; claimed above "
        "0.1",
        lambda e: underestimation(e, NOISY_FEW, GAP, math.inf),
    ),
    Claim(
        "accurate-few-split",
        WHERE + ", few observations, little noise",
        "With n = 16, d = 40 and variance 0.2 sample splitting does worse than all others.",
        "risk minus that of the worst of the thesis' other four, paired; claimed above 0",
        lambda e: loses_to_all(e, (ACCURATE_FEW,), SPLIT, THESIS),
    ),
    Claim(
        "accurate-few-curves",
        WHERE + ", few observations, little noise",
        "There the empirical error underestimates the risk.",
        "empirical error below the risk, relative to the risk, up to 10 data sets; claimed above "
        "0.1",
        lambda e: underestimation(e, ACCURATE_FEW, GAP, math.inf),
    ),
)
