"""Studies: strategies compared by their true risk, stored as they go, and summed up."""

from temperance.study.compare import compare
from temperance.study.ledger import Ledger
from temperance.study.strategies import STRATEGIES, SafeBayesAsCoded
from temperance.study.summary import by_setting, overall

__all__ = ["STRATEGIES", "Ledger", "SafeBayesAsCoded", "by_setting", "compare", "overall"]
