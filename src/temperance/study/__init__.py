"""Studies: strategies compared by true risk or coverage, with stored results and summaries."""

from temperance.study.compare import compare, remaining
from temperance.study.coverage import SandwichCovariance
from temperance.study.ledger import Ledger
from temperance.study.plan import Comparison, united
from temperance.study.strategies import STRATEGIES
from temperance.study.summary import by_setting, coverage_by_setting, overall

__all__ = [
    "STRATEGIES",
    "Comparison",
    "Ledger",
    "SandwichCovariance",
    "by_setting",
    "compare",
    "coverage_by_setting",
    "overall",
    "remaining",
    "united",
]
