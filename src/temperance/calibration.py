"""The result: which beta, how good, how sure."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from temperance.curves import RiskCurve
from temperance.optimise import Minimum
from temperance.types import Array, Data, Model, Risk, Strategy
from temperance.validation import non_negative


class StandardErrors(Protocol):
    """How far the estimated risk at the choice, and its gain over Bayes, may be off."""

    @property
    def risk(self) -> float:
        """Standard error of the risk."""
        ...

    @property
    def gain(self) -> float:
        """Standard error of the gain."""
        ...


@dataclass(frozen=True)
class KnownErrors:
    """Standard errors that are numbers already; nan where nothing is known."""

    risk: float = float("nan")
    gain: float = float("nan")


@dataclass(frozen=True, eq=False)
class RowErrors:
    """Standard errors over the tested rows, from their losses at beta and at Bayes."""

    curve: RiskCurve
    beta: float
    multiplicity: Array

    @cached_property
    def risk(self) -> float:
        """Standard error of the risk."""
        return mean_and_error(*self._rows, self.multiplicity)[1]

    @cached_property
    def gain(self) -> float:
        """Standard error of the gain over Bayes, paired over the rows."""
        loss, share = self._rows
        bayes, _ = self.curve.rows(1.0)
        return mean_and_error(bayes - loss, share, self.multiplicity)[1]

    @cached_property
    def _rows(self) -> tuple[Array, Array]:
        return self.curve.rows(self.beta)


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """A choice of beta and what is known about it.

    Parameters
    ----------
    beta, alpha : the exponent on each observation's likelihood and ``beta * n``; Bayes is 1 and n
    risk : estimated risk at the choice
    errors : standard errors, computed when asked for, as is what follows
    standard_error : standard error of ``risk``, over the tested rows
    at_bound : whether the choice lies at a bound
    curve : estimated risk as a function of beta, with slope on request
    bayes_risk, gain, gain_standard_error : estimated risk at beta = 1, what the choice gains over
        it, and the standard error of that difference, paired over the tested rows
    posterior : the posterior at ``alpha`` on all data
    """

    model: Model
    data: Data = field(repr=False)
    strategy: Strategy
    kind: Risk
    bounds: tuple[float, float]
    minimum: Minimum
    risk: float
    errors: StandardErrors = field(repr=False)
    curve: RiskCurve

    @property
    def standard_error(self) -> float:
        """Standard error of the estimated risk at the choice."""
        return self.errors.risk

    @property
    def gain_standard_error(self) -> float:
        """Standard error of the gain over Bayes."""
        return self.errors.gain

    @property
    def beta(self) -> float:
        """Exponent on each observation's likelihood; Bayes is 1."""
        return self.minimum.beta

    @property
    def at_bound(self) -> bool:
        """Whether the choice lies at a bound."""
        return self.minimum.at_bound

    @property
    def flat(self) -> bool:
        """Whether the estimated risk does not depend on beta."""
        return self.minimum.flat

    @property
    def alpha(self) -> float:
        """Weight of the mean risk in the posterior on all data: beta times n."""
        return self.beta * self.data.size

    @cached_property
    def bayes_risk(self) -> float:
        """Estimated risk at beta = 1."""
        return float(self.curve(1.0))

    @property
    def gain(self) -> float:
        """Estimated risk at Bayes less the estimated risk at the choice."""
        return self.bayes_risk - self.risk

    @cached_property
    def posterior(self) -> Any:
        """The posterior at ``alpha`` on all data."""
        return self.posterior_at(self.beta)

    def posterior_at(self, beta: float) -> Any:
        """Return the posterior at another beta on all data; Bayes is 1."""
        alpha = non_negative("beta", beta) * self.data.size
        return self.model.posterior(self.data.X, self.data.y, alpha, self.data.weights)

    def plot(self, ax: Any = None) -> Any:
        """Draw the curve with the choice and Bayes marked; returns the axes."""
        from temperance.plots import plot_calibration

        return plot_calibration(self, ax=ax)

    def __repr__(self) -> str:
        """Answer the user's questions, one per line."""
        lines = [
            f"Calibration of {type(self.model).__name__} by {self.strategy!r}",
            f"  beta      {self.beta:.4g}  (alpha = {self.alpha:.4g} for n = {self.data.size:.4g};"
            " Bayes is beta = 1)",
            f"  risk      {with_error(self.risk, self.standard_error)}  ({self.kind})",
            f"  Bayes     {with_error(self.bayes_risk)},  gain"
            f" {with_error(self.gain, self.gain_standard_error)}",
            f"  minimum   {self.where}",
            f"  method    {self.curve.method}",
        ]
        return "\n".join(lines)

    @property
    def where(self) -> str:
        """Where the minimum lies, in words."""
        lower, upper = (f"{end:g}" for end in self.bounds)
        if not self.minimum.searched:
            return "not sought: beta is given"
        if self.flat:
            return "nowhere: the curve is flat; this is the point closest to Bayes"
        if self.minimum.least is not None:
            return f"at beta = {self.minimum.least:.4g}; the strategy keeps away from it"
        if self.at_bound and self.beta == 0:
            return f"at the lower bound of [{lower}, {upper}]: the prior alone predicts best"
        if self.at_bound:
            end = "upper" if self.beta == self.bounds[1] else "lower"
            return f"at the {end} bound of [{lower}, {upper}]: the risk may be lower beyond it"
        return f"inside the bounds [{lower}, {upper}]"


def mean_and_error(loss: Array, share: Array, multiplicity: Array) -> tuple[float, float]:
    """Weighted mean of row losses and its standard error.

    ``share`` weighs the rows in the mean; ``multiplicity`` counts the observations that a row
    stands for.
    """
    tested = share > 0
    share, loss = share[tested] / share.sum(), loss[tested]
    # As many observations as would give the same variance if all counted the same.
    count = 1 / (share**2 / multiplicity[tested]).sum()
    mean = float(share @ loss)
    if count <= 1:
        return mean, float("nan")
    largest = float(np.abs(loss - mean).max()) or 1.0  # squares of its parts are finite
    return mean, largest * float(np.sqrt(share @ ((loss - mean) / largest) ** 2 / (count - 1)))


def with_error(value: float, error: float | None = None) -> str:
    """Write a number with its standard error, both to three digits of the error."""
    if error is None or not np.isfinite(error):
        return f"{value:.5g}"
    digits = max(0, 2 - int(np.floor(np.log10(error)))) if error > 0 else 4
    return f"{value:z.{min(digits, 12)}f} ± {error:.{min(digits, 12)}f}"
