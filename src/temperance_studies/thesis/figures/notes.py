"""Short descriptions of the two versions of a setting, for pictures."""

from __future__ import annotations

from temperance_studies.settings import AS_CODED, AS_STATED, Version


def linear_notes(variance: float) -> dict[Version, str]:
    """Return the noise of both versions: the code used the variance as standard deviation."""
    return {
        AS_STATED: f"as stated: the noise has variance {variance:g}",
        AS_CODED: f"as coded: the noise has variance {variance**2:g}",
    }


POLYNOMIAL_NOTES = {
    AS_STATED: "as stated: the noise has variance 0.5",
    AS_CODED: "as coded: noise of variance 0.25, none in the test",
}
UNKNOWN_NOTES = {
    AS_STATED: "as stated: variances 3.5, 0.1 or 12, and 6.75",
    AS_CODED: "as coded: variances squared, the mixture is a sum of draws",
}
LOGISTIC_NOTES = {
    AS_STATED: "as stated: labels of the logistic model",
    AS_CODED: "as coded: tested on other clusters, Jaakkola's prior N(0, 20 I)",
}
