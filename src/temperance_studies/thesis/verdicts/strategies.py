"""The strategies that are compared, with their names."""

from __future__ import annotations

from temperance.protocols import Strategy
from temperance.strategies import (
    Bayes,
    Bootstrap,
    KFold,
    LeaveOneOut,
    Naive,
    SafeBayes,
    SampleSplitting,
)
from temperance_studies.study.strategies import LINEAR_DRAWS, LOGISTIC_DRAWS

BAYES, NAIVE, BOOTSTRAP = "Bayes", "naive", "bootstrap"
SPLIT, SAFE = "sample splitting", "SafeBayes"
THESIS = (BAYES, NAIVE, SPLIT, BOOTSTRAP, SAFE)
# The two kinds of transfer, for every strategy that trains on a part of the rows.
TRANSFERS = {
    "sample splitting": (SPLIT, "sample splitting, beta"),
    "SafeBayes": (SAFE, "SafeBayes, beta"),
    "5-fold": ("5-fold, alpha", "5-fold, beta"),
    "10-fold": ("10-fold, alpha", "10-fold, beta"),
    "leave-one-out": ("leave-one-out, alpha", "leave-one-out, beta"),
}
DEFAULT = "10-fold, beta"


def compared(setting: str) -> dict[str, Strategy]:
    """Return the strategies for the setting of this key.

    The thesis' five keep alpha and have plain names; the names of the others say what they keep.

    Examples
    --------
    >>> compared("logistic-jaakkola")["bootstrap"].n_draws
    50
    """
    draws = LOGISTIC_DRAWS if setting.startswith("logistic") else LINEAR_DRAWS
    return {
        BAYES: Bayes(),
        NAIVE: Naive(),
        SPLIT: SampleSplitting(transfer="alpha"),
        BOOTSTRAP: Bootstrap(n_draws=draws),
        SAFE: SafeBayes(transfer="alpha"),
        "sample splitting, beta": SampleSplitting(),
        "SafeBayes, beta": SafeBayes(),
        "5-fold, alpha": KFold(5, transfer="alpha"),
        "5-fold, beta": KFold(5),
        "10-fold, alpha": KFold(10, transfer="alpha"),
        "10-fold, beta": KFold(10),
        "leave-one-out, alpha": LeaveOneOut(transfer="alpha"),
        "leave-one-out, beta": LeaveOneOut(),
    }
