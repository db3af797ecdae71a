r"""Numbers with standard errors: means, medians and ratios over repetitions."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from temperance.data import Array
from temperance_studies.study.ratios import ratio as ratio_of


class Estimate(NamedTuple):
    """A number and its standard error, which is infinite for a single repetition.

    Examples
    --------
    >>> str(Estimate(0.12345, 0.0121))
    '0.123 ± 0.012'
    """

    mean: float
    error: float

    def __str__(self) -> str:
        """Return the number with two digits of the error, as text."""
        if not math.isfinite(self.mean):
            return "∞" if self.mean > 0 else "-∞" if self.mean < 0 else "?"
        if not math.isfinite(self.error):
            return f"{self.mean:.3g} ± ?"
        if self.error == 0:
            return f"{self.mean:.3g} ± 0"
        decimals = min(max(1 - math.floor(math.log10(self.error)), 0), 6)
        return f"{self.mean:.{decimals}f} ± {self.error:.{decimals}f}"

    def minus(self, other: Estimate) -> Estimate:
        """Return the difference to an estimate from other data."""
        return Estimate(self.mean - other.mean, math.hypot(self.error, other.error))


def of_mean(values: ArrayLike) -> Estimate:
    r"""Return the mean and its standard error, :math:`s / \sqrt{n}`."""
    sample = np.asarray(values, dtype=float)
    if len(sample) < 2:
        return Estimate(float(sample.mean()), math.inf)
    return Estimate(float(sample.mean()), float(sample.std(ddof=1)) / math.sqrt(len(sample)))


def of_median(values: ArrayLike) -> Estimate:
    r"""Return the median and its standard error.

    The error is half the distance between the quantiles :math:`1/2 \pm 1/(2 \sqrt{n})`.
    """
    sample = np.asarray(values, dtype=float)
    middle = float(np.median(sample))
    if len(sample) < 2:
        return Estimate(middle, math.inf)
    half_width = 0.5 / math.sqrt(len(sample))
    low, high = np.quantile(sample, [0.5 - half_width, 0.5 + half_width])
    return Estimate(middle, float(high - low) / 2)


def of_ratio(over: Array, under: Array) -> Estimate:
    r"""Return the ratio of two means over the same repetitions.

    .. math:: r = \bar a / \bar b, \qquad se = s(a - r b) / (\sqrt{n} \, |\bar b|)
    """
    top, bottom = float(np.mean(over)), float(np.mean(under))
    ratio = ratio_of(top, bottom)
    if bottom == 0:
        return Estimate(ratio, 0.0)
    return Estimate(ratio, of_mean(over - ratio * under).error / abs(bottom))


def of_separate_ratio(over: Array, under: Array) -> Estimate:
    r"""Return the ratio of two means over different repetitions; error by the delta method."""
    top, bottom = of_mean(over), of_mean(under)
    ratio = ratio_of(top.mean, bottom.mean)
    if bottom.mean == 0:
        return Estimate(ratio, 0.0)
    return Estimate(ratio, math.hypot(top.error, ratio * bottom.error) / abs(bottom.mean))
