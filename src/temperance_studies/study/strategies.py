r"""Strategies that a study compares, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from temperance.models.glm.logistic import LogisticRegression
from temperance.protocols import Strategy
from temperance.strategies import (
    Bayes,
    Bootstrap,
    KFold,
    LeaveOneOut,
    Naive,
    SafeBayes,
    SampleSplitting,
    strategy_named,
)
from temperance_studies.settings import Setting

Choice = Strategy | Callable[[Setting], Strategy]


# The thesis has about 1000; these are enough for the choice, and a logistic draw takes a slow fit.
LINEAR_DRAWS, LOGISTIC_DRAWS = 200, 50


def bootstrap_for(setting: Setting) -> Strategy:
    """Return the bootstrap with a number of draws that suits the setting's model."""
    logistic = isinstance(setting.model, LogisticRegression)
    return Bootstrap(n_draws=LOGISTIC_DRAWS if logistic else LINEAR_DRAWS)


STRATEGIES: dict[str, Choice] = {
    "bayes": Bayes(),
    "naive": Naive(),
    "sample-splitting": SampleSplitting(),
    "sample-splitting, alpha": SampleSplitting(transfer="alpha"),
    "bootstrap": bootstrap_for,
    "safe-bayes": SafeBayes(),
    "safe-bayes, alpha": SafeBayes(transfer="alpha"),
    "k-fold": KFold(),
    "k-fold, alpha": KFold(transfer="alpha"),
    "leave-one-out": LeaveOneOut(),
    "leave-one-out, alpha": LeaveOneOut(transfer="alpha"),
}


def as_choices(strategies: Mapping[str, Choice] | Iterable[str] | None) -> dict[str, Choice]:
    """Return strategies for names; by default all of ``STRATEGIES``."""
    if strategies is None:
        return dict(STRATEGIES)
    if isinstance(strategies, Mapping):
        chosen = dict(strategies)
    elif isinstance(strategies, str):
        raise ValueError(f"strategies must be a mapping or a list of names, got {strategies!r}")
    else:
        chosen = {name: _named(name) for name in strategies}
    if not chosen:
        raise ValueError("strategies must hold at least one, got none")
    for name, choice in chosen.items():
        if isinstance(choice, type) or not (isinstance(choice, Strategy) or callable(choice)):
            raise ValueError(
                f"strategies[{name!r}] must be a strategy or a function of the setting, "
                f"got {choice!r}"
            )
    return chosen


def resolve(choice: Choice, setting: Setting) -> Strategy:
    """Return the strategy for this setting."""
    return choice if isinstance(choice, Strategy) else choice(setting)


def _named(name: str) -> Choice:
    if not isinstance(name, str):
        raise ValueError(f"strategies must be a mapping or a list of names, got {name!r} in it")
    return STRATEGIES[name] if name in STRATEGIES else strategy_named(name)
