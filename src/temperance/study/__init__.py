"""Studies: strategies compared by their true risk, with stored results and summaries."""

from temperance.study.compare import compare, remaining
from temperance.study.ledger import Ledger
from temperance.study.plan import Comparison, united
from temperance.study.strategies import STRATEGIES
from temperance.study.summary import by_setting, overall

__all__ = [
    "STRATEGIES",
    "Comparison",
    "Ledger",
    "by_setting",
    "compare",
    "overall",
    "remaining",
    "united",
]
