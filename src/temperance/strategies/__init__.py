"""Strategies: rules that choose beta from the data."""

from difflib import get_close_matches

from temperance.selection import CurveStrategy
from temperance.strategies.bayes import Bayes
from temperance.strategies.bootstrap import Bootstrap
from temperance.strategies.from_splitter import FromSplitter
from temperance.strategies.k_fold import KFold
from temperance.strategies.leave_one_out import LeaveOneOut
from temperance.strategies.naive import Naive
from temperance.strategies.oracle import Oracle
from temperance.strategies.safe_bayes import SafeBayes
from temperance.strategies.sample_splitting import SampleSplitting
from temperance.types import Strategy

__all__ = [
    "Bayes",
    "Bootstrap",
    "CurveStrategy",
    "FromSplitter",
    "KFold",
    "LeaveOneOut",
    "NAMES",
    "Naive",
    "Oracle",
    "SafeBayes",
    "SampleSplitting",
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
}


def strategy_named(name: str) -> Strategy:
    """Return the strategy of this name with its defaults.

    Examples
    --------
    >>> strategy_named("k-fold")
    KFold(n_folds=10, transfer='beta', group_duplicates=False)
    """
    if name not in NAMES:
        near = get_close_matches(name, NAMES, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"strategy must be one of {', '.join(NAMES)}, got {name!r}{hint}")
    return NAMES[name]()
