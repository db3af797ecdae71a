"""Strategies: rules that choose beta from the data."""

from typing import Any

from temperance.linear.reference_risk import ReferenceRisk
from temperance.protocols import Strategy
from temperance.strategies.bayes import Bayes
from temperance.strategies.bootstrap import Bootstrap
from temperance.strategies.coarsened import Coarsened
from temperance.strategies.coverage import Coverage
from temperance.strategies.fisher_information import FisherInformation
from temperance.strategies.fitted_coverage import FittedCoverage
from temperance.strategies.from_splitter import FromSplitter
from temperance.strategies.k_fold import KFold
from temperance.strategies.leave_one_out import LeaveOneOut
from temperance.strategies.naive import Naive
from temperance.strategies.oracle import Oracle
from temperance.strategies.prior_information import PriorInformation
from temperance.strategies.rate import RateStrategy
from temperance.strategies.safe_bayes import SafeBayes
from temperance.strategies.sample_splitting import SampleSplitting
from temperance.strategies.sandwich import Sandwich
from temperance.strategies.selection import PlanStrategy
from temperance.strategies.stacking import Stacking, default_strategy, feasible

__all__ = [
    "Bayes",
    "Bootstrap",
    "Coarsened",
    "Coverage",
    "FOR_SOME_MODELS",
    "FisherInformation",
    "FittedCoverage",
    "FromSplitter",
    "KFold",
    "LeaveOneOut",
    "NAMES",
    "Naive",
    "Oracle",
    "PlanStrategy",
    "PriorInformation",
    "RATES",
    "RateStrategy",
    "ReferenceRisk",
    "SafeBayes",
    "SampleSplitting",
    "Sandwich",
    "Stacking",
    "default_strategy",
    "feasible",
    "name_of",
    "strategy_named",
]

NAMES: dict[str, type] = {
    "bayes": Bayes,
    "naive": Naive,
    "sample-splitting": SampleSplitting,
    "bootstrap": Bootstrap,
    "safe-bayes": SafeBayes,
    "k-fold": KFold,
    "leave-one-out": LeaveOneOut,
    "stacking": Stacking,
}

# Names that only some models accept: linear ones.
FOR_SOME_MODELS: dict[str, type] = {"reference-risk": ReferenceRisk}

# Rules that make credible sets cover, without a risk curve; models need information(data) for most.
RATES: dict[str, type] = {
    "coverage": Coverage,
    "sandwich": Sandwich,
    "fisher-information": FisherInformation,
    "prior-information": PriorInformation,
    "fitted-coverage": FittedCoverage,
}


def strategy_named(name: str, **options: Any) -> Strategy:
    """Return the strategy of this name; ``options`` replace its defaults.

    Examples
    --------
    >>> strategy_named("k-fold")
    KFold(n_folds=10, transfer='beta', duplicates='auto')
    """
    known = NAMES | FOR_SOME_MODELS | RATES
    if name not in known:
        raise ValueError(
            f"strategy must be one of {', '.join(known)}, got {name!r}{_suggestion(name)}"
        )
    return known[name](**options)


def name_of(strategy: Strategy) -> str:
    """Return the registered name of a strategy's class, or else the name of its class.

    Examples
    --------
    >>> name_of(KFold(5))
    'k-fold'
    """
    names = {kind: name for name, kind in (NAMES | FOR_SOME_MODELS | RATES).items()}
    return names.get(type(strategy), type(strategy).__name__)


def _suggestion(name: str) -> str:
    from difflib import get_close_matches

    names = NAMES | FOR_SOME_MODELS | RATES
    spellings = {kind.__name__.lower(): known for known, kind in names.items()}
    spellings |= {known: known for known in names} | {"loo": "leave-one-out", "cv": "k-fold"}
    near = get_close_matches(name.lower(), spellings, n=1)
    return f" (did you mean {spellings[near[0]]!r}?)" if near else ""
