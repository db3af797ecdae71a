r"""Ratios of excess risks, and their geometric mean over settings.

An excess may be zero, if a strategy always finds the best beta, and negative, if a mixture is
better than any one beta.  Zero divided by zero counts as 1, since neither is worse; any other
excess divided by zero is infinite.  In a geometric mean a ratio counts as at least .01 and at most
100, so that one setting with a very small denominator does not dominate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

LEAST_RATIO = 0.01
MOST_RATIO = 1 / LEAST_RATIO
# The rule, as printed on pages.
RULE = "where less than .01 counts as .01, more than 100 as 100, and 0 / 0 as 1"


def ratio(excess: float, reference: float) -> float:
    """Return the excess divided by the reference.

    Examples
    --------
    >>> ratio(1.0, 4.0), ratio(0.0, 0.0), ratio(1.0, 0.0)
    (0.25, 1.0, inf)
    """
    if reference == 0:
        return 1.0 if excess == 0 else math.copysign(math.inf, excess)
    return excess / reference


def within_limits(value: float) -> bool:
    """Return whether a ratio counts as itself in a geometric mean."""
    return LEAST_RATIO < value < MOST_RATIO


def geometric_mean(ratios: Iterable[float]) -> float:
    r"""Return the geometric mean of ratios, each kept between .01 and 100.

    .. math:: \exp \frac1k \sum_{i=1}^k \log \min(\max(r_i, .01), 100)

    Examples
    --------
    >>> geometric_mean([4.0, 1.0]), round(geometric_mean([0.0, math.inf, 1.0]), 9)
    (2.0, 1.0)
    """
    logs = [math.log(min(max(each, LEAST_RATIO), MOST_RATIO)) for each in ratios]
    return math.exp(sum(logs) / len(logs))
