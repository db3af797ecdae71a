"""Studies: strategies compared by true risk or coverage, with stored results and summaries."""

from temperance_studies.study.compare import compare, remaining
from temperance_studies.study.coverage import SandwichCovariance
from temperance_studies.study.ledger import Ledger, StoreWarning
from temperance_studies.study.plan import Comparison, united
from temperance_studies.study.strategies import STRATEGIES
from temperance_studies.study.summary import by_setting, coverage_by_setting, overall

__all__ = [
    "STRATEGIES",
    "Comparison",
    "Ledger",
    "SandwichCovariance",
    "StoreWarning",
    "by_setting",
    "compare",
    "coverage_by_setting",
    "overall",
    "remaining",
    "united",
]
