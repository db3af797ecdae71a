"""Claims of the results on logistic regression, and of the appendix on its algorithms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from temperance.data import Array
from temperance_studies.settings import AS_STATED, VERSIONS, least_risk
from temperance_studies.thesis.verdicts.claim import Check, Claim
from temperance_studies.thesis.verdicts.comparisons import beats, best_choices
from temperance_studies.thesis.verdicts.convergence import BETAS as STEP_BETAS
from temperance_studies.thesis.verdicts.convergence import EM_STEPS
from temperance_studies.thesis.verdicts.estimates import of_mean, of_median
from temperance_studies.thesis.verdicts.evidence import Evidence
from temperance_studies.thesis.verdicts.strategies import BAYES, BOOTSTRAP, NAIVE, SAFE, SPLIT
from temperance_studies.thesis.verdicts.variational import (
    BETAS,
    JAAKKOLA,
    KEYS,
    MEAN_FIELD,
    Variational,
)

WHERE = "results, logistic regression"
NEAR = (1.4, 2.0)  # "about 1.7"
SAME_BETA = 0.3  # difference up to which two choices are similar
CONVERGED = 0.01  # relative error of a mean
NATS = 0.1  # gap to the optimum of a variational objective
SMALL_MEAN = 0.1  # size of a mean whose optimum is 0 and whose posterior deviation is 1
NEAR_LEAST = 0.25  # "close to the minimal prediction error": relative difference

Curves = Callable[[Variational], Mapping[str, Array]]


def below(evidence: Evidence, curves: Curves, one: str, other: str) -> list[Check]:
    """Return checks that one posterior's risk is below the other's, at each beta."""
    return [
        Check(version, f"beta = {beta:g}:", of_mean(difference[:, i]), high=0.0)
        for version in VERSIONS
        for difference in [_difference(curves(evidence.variational[version]), one, other)]
        for i, beta in enumerate(BETAS)
    ]


def _difference(values: Mapping[str, Array], one: str, other: str) -> Array:
    return values[one] - values[other]


def apart(
    evidence: Evidence, values: Curves, where: str, low: float = -math.inf, high: float = math.inf
) -> list[Check]:
    """Return checks of mean-field minus Jaakkola, of one number for each data set."""
    return [
        Check(
            version,
            where,
            of_mean(_difference(values(evidence.variational[version]), MEAN_FIELD, JAAKKOLA)),
            low,
            high,
        )
        for version in VERSIONS
    ]


def rises(evidence: Evidence) -> list[Check]:
    """Return checks of the rise of the risk from its minimum, mean-field minus Jaakkola."""
    checks = []
    for version in VERSIONS:
        found = evidence.variational[version]
        for i, beta in ((BETAS.index(b), b) for b in (0.5, 3.0)):
            rise = {k: found.generalisation[k][:, i] - found.best_risk[k] for k in KEYS}
            difference = of_mean(_difference(rise, MEAN_FIELD, JAAKKOLA))
            checks.append(Check(version, f"at beta = {beta:g}:", difference, low=0.0))
    return checks


def slope_errors(evidence: Evidence) -> list[Check]:
    """Return checks of the covariance's relative error as slope, mean-field minus Jaakkola."""
    checks = []
    for version in VERSIONS:
        errors = evidence.variational[version].slope_error
        means = f"{errors[MEAN_FIELD].mean():.2f} minus {errors[JAAKKOLA].mean():.2f}:"
        difference = of_mean(_difference(errors, MEAN_FIELD, JAAKKOLA))
        checks.append(Check(version, means, difference, high=0.0))
    return checks


def covariance_choice(evidence: Evidence) -> list[Check]:
    """Return checks of the excess risk at the covariance's zero, mean-field minus Jaakkola."""
    checks = []
    for version in VERSIONS:
        found = evidence.variational[version]
        excess = {k: found.zero_risk[k] - found.best_risk[k] for k in KEYS}
        betas = ", ".join(
            f"{name} {np.median(found.zero[key]):.2f} for {np.median(found.best[key]):.2f}"
            for name, key in (("mean-field", MEAN_FIELD), ("Jaakkola", JAAKKOLA))
        )
        difference = of_mean(_difference(excess, MEAN_FIELD, JAAKKOLA))
        checks.append(Check(version, f"median beta {betas};", difference, high=0.0))
    return checks


def near_the_least(evidence: Evidence) -> list[Check]:
    """Return checks that splitting's risk is near the least, for mean-field only."""
    checks = []
    for version in VERSIONS:
        # Both settings have the same true distribution.
        least = least_risk(evidence.settings(version)[JAAKKOLA])
        for key, name, low, high, part in (
            (MEAN_FIELD, "mean-field", -math.inf, NEAR_LEAST, "close for mean-field"),
            (JAAKKOLA, "Jaakkola", NEAR_LEAST, math.inf, "not for Jaakkola"),
        ):
            above = of_mean(evidence.values(version, key, SPLIT, "risk") / least - 1)
            checks.append(Check(version, name, above, low, high, part=part))
    return checks


def lowest_risks(evidence: Evidence) -> list[Check]:
    """Return checks that two strategies are below the other three for mean-field."""
    return [
        Check(check.version, f"{name} minus {other}", check.estimate, check.low, check.high)
        for name in (SPLIT, SAFE)
        for other in (BOOTSTRAP, BAYES, NAIVE)
        for check in beats(evidence, (MEAN_FIELD,), (name,), other)
    ]


def em_errors(evidence: Evidence) -> list[Check]:
    """Return checks of the median relative error of the mean after the text's 5 steps."""
    return [
        Check(
            AS_STATED,
            f"beta = {beta:g}:",
            of_median(evidence.convergence.em_error[EM_STEPS[0], beta]),
            high=CONVERGED,
        )
        for beta in STEP_BETAS
    ]


CLAIMS = (
    Claim(
        "mean-field-generalises",
        WHERE,
        "The mean-field posterior has a lower generalisation error than Jaakkola's.",
        "risk, mean-field minus Jaakkola on the same data, up to 10 data sets; claimed below 0",
        lambda e: [
            *below(e, lambda found: found.generalisation, MEAN_FIELD, JAAKKOLA),
            *apart(e, lambda found: found.best_risk, "best beta:", high=0.0),
        ],
    ),
    Claim(
        "jaakkola-fits",
        WHERE,
        "Jaakkola's posterior has a lower empirical error than the mean-field one.",
        "empirical error, Jaakkola minus mean-field on the same data, up to 10 data sets; claimed "
        "below 0",
        lambda e: below(e, lambda found: found.empirical, JAAKKOLA, MEAN_FIELD),
    ),
    Claim(
        "mean-field-distinct",
        WHERE,
        "The mean-field risk has a distinct minimum, Jaakkola's is flat.",
        "rise of the risk from its minimum to beta = 0.5 and 3, mean-field minus Jaakkola on the "
        "same data; claimed above 0",
        rises,
    ),
    Claim(
        "logistic-best-beta",
        WHERE,
        "Both risks are least at a beta of about 1.7.",
        "median best beta; claimed in (1.4, 2)",
        lambda e: best_choices(e, KEYS, *NEAR),
    ),
    Claim(
        "logistic-same-beta",
        WHERE,
        "The two posteriors have a similar best beta.",
        "best beta, mean-field minus Jaakkola on the same data; claimed within 0.3",
        lambda e: apart(e, lambda found: found.best, "difference", -SAME_BETA, SAME_BETA),
    ),
    Claim(
        "covariance-slope",
        WHERE + ", proposition",
        "Minus the covariance is a better slope for mean-field than for Jaakkola's posterior.",
        "relative error as slope of the empirical error at beta = 1, against the exact implicit "
        "derivative, mean-field minus Jaakkola; claimed below 0",
        slope_errors,
    ),
    Claim(
        "covariance-choice",
        WHERE + ", proposition",
        "Where the covariance vanishes, mean-field is nearer to its best risk than Jaakkola.",
        "excess risk there, by the rule of the figure logreg_boxplots, mean-field minus Jaakkola, "
        "same data, up to 10 data sets; claimed below 0",
        covariance_choice,
    ),
    Claim(
        "backprop-strategies",
        WHERE,
        "For mean-field, sample splitting and SafeBayes have lower risks than bootstrap, Bayes and "
        "naive.",
        "risk minus that of each, paired, in logistic-mean-field; claimed below 0",
        lowest_risks,
    ),
    Claim(
        "backprop-near-least",
        WHERE,
        "The strategies' risks are close to the least of any parameter for mean-field, not for "
        "Jaakkola.",
        "sample splitting's risk above the least risk, relative to it; claimed below 0.25 for "
        "mean-field and above for Jaakkola",
        near_the_least,
    ),
    Claim(
        "five-em-steps",
        WHERE,
        "Five EM steps are enough for Jaakkola's posterior.",
        "median relative error of the posterior mean, up to 20 data sets; claimed below 0.01",
        em_errors,
    ),
    Claim(
        "two-hundred-sgd-steps",
        WHERE + "; appendix",
        "Two hundred stochastic steps let Bayes by Backprop converge.",
        "nats of the ELBO to its optimum, median of up to 20 data sets; claimed below 0.1",
        lambda e: [
            Check(
                AS_STATED, f"beta = {beta:g}:", of_median(e.convergence.elbo_gap[beta]), high=NATS
            )
            for beta in STEP_BETAS
        ],
    ),
    Claim(
        "backprop-slower",
        WHERE,
        "Two hundred stochastic steps are much slower than five EM steps.",
        "ratio of their seconds on the same data, median; claimed above 5",
        lambda e: [Check(AS_STATED, "ratio", of_median(e.convergence.seconds_ratio), low=5.0)],
        timed=True,
    ),
    Claim(
        "prior-mean",
        "appendix",
        "At beta = 0 the means of Bayes by Backprop converge to zero.",
        "root mean square of the means after 200 steps, where the posterior deviation is 1; "
        "claimed below 0.1",
        lambda e: [Check(AS_STATED, "size", of_mean(e.convergence.prior_mean), high=SMALL_MEAN)],
    ),
)
