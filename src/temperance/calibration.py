"""The result of a calibration: beta or weights of betas, the gain, and its errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import non_negative
from temperance.data import Array, Data, Risk
from temperance.messages import TemperanceWarning
from temperance.protocols import (
    HasNoiseVariance,
    HasPreferences,
    KnowsLikelihood,
    MixesPosteriors,
    Model,
    Preferences,
    SaysConstants,
    Strategy,
)
from temperance.rules import (
    BetaWeights,
    Choice,
    Gain,
    Verdict,
    cross_fitted,
    gain_of,
    not_told_apart,
    verdict_of,
)
from temperance.table import HeldOut, mean_and_error
from temperance.uncertainty.information import DIFFERENT, Correction

if TYPE_CHECKING:
    from temperance.uncertainty.certificate import Certificate

MOST_DIGITS = 6  # after the point
NEGLIGIBLE_GAIN = 0.01  # nats per observation

VERDICTS: dict[Verdict, str] = {"keep": "keep Bayes", "temper": "temper"}

# The gain over Bayes in a word, or why there is none.
Versus = Literal[
    "better", "the same", "unknown", "no likelihood", "no risk curve", "no standard error"
]


@dataclass(frozen=True, eq=False)
class Rate:
    """A beta that a rule gives without a risk curve.

    Parameters
    ----------
    value : the rule's beta, which may lie outside the bounds
    rule : what the rule matches, as a phrase
    interval : function that returns a range of beta or None, called on first use
    interval_of : the uncertainty that the range shows, as a phrase
    by_direction : rates of the directions of the parameters, ascending, if the rule has them
    """

    value: float
    rule: str
    interval: Callable[[], tuple[float, float] | None] | None = None
    interval_of: str = ""
    by_direction: Array | None = None

    @property
    def no_single_rate(self) -> bool:
        """Whether the rates of two directions differ by more than a factor of three."""
        found = self.by_direction
        return found is not None and bool(found[-1] > DIFFERENT * found[0])


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """A choice of beta, or weights of betas, with what held-out rows say of it.

    Parameters
    ----------
    beta, alpha : the exponent on each observation's likelihood and ``beta * n``; Bayes is 1 and n
    weights : the weights of betas, if the posterior is a mixture; ``beta`` is then their median
    table : losses of held-out rows; None if the strategy estimates no risk, and then risks and
        errors are nan
    risk, standard_error : mean loss of held-out rows at the choice, and its standard error over
        rows or groups
    bayes_risk, gain, gain_standard_error : estimated risk at beta = 1, its difference from the risk
        at the choice, and the standard error of that difference, paired over rows or groups; nan
        if the loss is no likelihood, where beta = 1 is not Bayes
    verdict : "temper" if the gain is worth it, or "keep" Bayes
    at_bound, flat : whether the choice lies at a bound, whether the risk does not depend on beta
    rate : the rule that gave beta, if there is no table
    seen : what was chosen from the rows in the prior or the units of X, as phrases; a certificate
        needs rows from which nothing of these was chosen
    posterior : the posterior at ``alpha`` on all data, or the mixture
    """

    model: Model
    data: Data = field(repr=False)
    strategy: Strategy
    kind: Risk
    bounds: tuple[float, float]
    choice: Choice
    table: HeldOut | None
    rate: Rate | None = field(default=None, kw_only=True)
    seen: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def beta(self) -> float:
        """Exponent on each observation's likelihood; Bayes is 1."""
        return self.choice.beta

    @property
    def weights(self) -> BetaWeights | None:
        """The weights of betas, if several are mixed."""
        return self.choice.weights

    @property
    def at_bound(self) -> bool:
        """Whether the choice lies at a bound."""
        return self.choice.at_bound

    @property
    def flat(self) -> bool:
        """Whether the estimated risk does not depend on beta."""
        return self.choice.flat

    @property
    def likelihood(self) -> bool:
        """Whether the loss is minus a log likelihood, so that beta = 1 is Bayes."""
        return has_likelihood(self.model)

    @property
    def alpha(self) -> float:
        """Weight of the mean risk in the posterior on all data: beta times n."""
        return self.beta * self.data.size

    def curve(self, beta: ArrayLike, derivative: bool = False) -> Any:
        """Return the mean loss of held-out rows at ``beta``; with ``derivative``, (risk, slope)."""
        if self.table is None:
            raise ValueError(f"{type(self.strategy).__name__} has no risk curve")
        return self.table(beta, derivative)

    @cached_property
    def losses(self) -> Array:
        """The loss of each held-out row at the choice.

        For a mixture the weights are refitted without each tenth of the rows.
        """
        if self.table is None:
            raise ValueError(f"{type(self.strategy).__name__} has no losses of held-out rows")
        if self.weights is not None:
            return cross_fitted(self.table, self.weights.betas)
        return self.table.at(np.array([self.beta]))[0]

    def losses_in(self, table: HeldOut) -> Array:
        """Return the losses at the choice, or of the mixture, of the rows of another table."""
        if self.weights is not None:
            return self.weights.mixed(table.at(self.weights.betas))
        return table.at(np.array([self.beta]))[0]

    @cached_property
    def _risk(self) -> tuple[float, float]:
        if self.table is None:
            return float("nan"), float("nan")
        table = self.table
        mean, error = mean_and_error(self.losses, table.share, table.counts, table.groups)
        return (mean if self.weights is not None else float(table(self.beta))), error

    @cached_property
    def _gain(self) -> Gain:
        if self.table is None or not self.likelihood:
            return Gain(float("nan"), float("nan"))
        return gain_of(self.table, self.losses)

    @property
    def risk(self) -> float:
        """Estimated risk at the choice."""
        return self._risk[0]

    @property
    def standard_error(self) -> float:
        """Standard error of the estimated risk at the choice."""
        return self._risk[1]

    @cached_property
    def bayes_risk(self) -> float:
        """Estimated risk at beta = 1; nan without a table, or if the loss is no likelihood."""
        if self.table is None or not self.likelihood:
            return float("nan")
        return float(self.table(1.0))

    @property
    def gain(self) -> float:
        """Estimated risk at Bayes minus the estimated risk at the choice."""
        return self.bayes_risk - self.risk

    @property
    def gain_standard_error(self) -> float:
        """Standard error of the gain over Bayes; nan if the loss is no likelihood."""
        return self._gain.error

    @property
    def verdict(self) -> Verdict:
        """``"temper"`` if the gain less its standard error exceeds .005, else ``"keep"`` Bayes."""
        return verdict_of(self._gain)

    @cached_property
    def beta_range(self) -> tuple[float, float] | None:
        """The betas that the held-out rows do not tell apart from the best single one.

        Their mean loss is larger by at most two standard errors of the difference.  For a rule
        without a table it is its own range, or None.
        """
        if self.rate is not None:
            return None if self.rate.interval is None else self.rate.interval()
        if self.table is None or self.flat:
            return self.bounds
        if self.weights is not None:
            betas = self.weights.betas
            best = float(betas[self.table.risk(betas).argmin()])
            return not_told_apart(self.table, best, (float(betas[0]), float(betas[-1])))
        if not self.choice.searched:
            return self.beta, self.beta
        return not_told_apart(self.table, self.beta, self.bounds)

    @property
    def versus_bayes(self) -> Versus:
        """Comparison with Bayes by an interval of two standard errors of the gain, or why not."""
        if not self.likelihood:
            return "no likelihood"
        gain, error = self.gain, self.gain_standard_error
        if np.isnan(gain):
            return "no risk curve"
        if np.isnan(error):
            return "no standard error"
        if gain > 2 * error:
            return "better"
        return "the same" if gain + 2 * error <= NEGLIGIBLE_GAIN else "unknown"

    @cached_property
    def posterior(self) -> Any:
        """The posterior at ``alpha`` on all data, or the mixture over betas."""
        if self.weights is None:
            return self.posterior_at(self.beta)
        if isinstance(self.model, MixesPosteriors):
            return self.model.mixture(self.data, self.weights, self.table)
        from temperance.posteriors.mixture import mixed

        weights = self.weights.without_negligible()
        return mixed(weights.weights, [self.posterior_at(beta) for beta in weights.betas])

    def posterior_at(self, beta: float) -> Any:
        """Return the posterior at another beta on all data; for a likelihood Bayes is 1."""
        alpha = non_negative("beta", beta) * self.data.size
        return self.model.posterior(self.data.X, self.data.y, alpha, self.data.weights)

    def sandwich(
        self, groups: ArrayLike | None = None, correction: Correction | None = None
    ) -> Any:
        r"""Return a Gaussian with the sampling covariance of the minimiser of the risk.

        .. math:: N(\hat\theta, J^{-1} I J^{-1} / n),

        with the curvature J of the mean loss and the covariance I of its scores at the minimiser.
        No scalar beta gives this covariance if the rates of the directions differ.  For a sampled
        model the result is the draws of ``posterior``, moved so that they have this covariance:
        theta becomes theta_hat + Omega (theta - mean).

        Parameters
        ----------
        groups : array of shape (n,), optional
            Labels of rows that depend on each other; by default those of the strategy.
        correction : {"HC0", "HC3"} or None
            Scores at the minimiser as they are, or divided by 1 - h_i with the leverages h_i; by
            default that of the strategy, or "HC0".
        """
        from temperance.posteriors.sandwich import sandwich_posterior

        given = getattr(self.strategy, "groups", None) if groups is None else groups
        usual: Correction = getattr(self.strategy, "correction", "HC0")
        return sandwich_posterior(self.model, self.data, self.posterior, given, correction or usual)

    def certificate(
        self,
        loss: Literal["zero-one", "brier"] = "zero-one",
        confidence: float = 0.95,
        *,
        even_if_seen: bool = False,
    ) -> Certificate:
        r"""Return an upper bound on the risk on new rows, for Gaussian posteriors of two classes.

        With probability ``confidence`` over samples of n independent rows, at every beta at once,

        .. math:: kl(r \,\|\, R) \le \frac{KL(Q \,\|\, P) + \ln(2 \sqrt n / \delta)}{n},

        where r and R are the expected losses of a draw from the posterior Q on the rows and on new
        rows, P is the prior and :math:`\delta` is 1 - ``confidence``; the bound is the largest
        such R.

        Parameters
        ----------
        loss : {"zero-one", "brier"}
            Whether a draw misclassifies a row, or the square of y minus the draw's probability.
        confidence : float
            The probability that the bound holds.
        even_if_seen : bool
            Return the number, without its guarantee, if the prior or the units of X depend on the
            rows.
        """
        from temperance.uncertainty.certificate import certify

        return certify(self, loss, confidence, even_if_seen)

    def plot(self, ax: Any = None) -> Any:
        """Draw the curve with the choice, and Bayes if there is a likelihood; return the axes."""
        from temperance.plots import plot_calibration

        return plot_calibration(self, ax=ax)

    def __repr__(self) -> str:
        """Return a summary of the result, one line per quantity."""
        # Warnings are for the call that chose beta; here they would hide what is printed.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TemperanceWarning)
            return self.summary()

    def summary(self) -> str:
        """Return what is printed, one line per quantity."""
        bayes = "; Bayes is beta = 1" if self.likelihood else ""
        beta = f"{self.beta:.4g}  (alpha = {self.alpha:.4g} for n = {self.data.size:.4g}{bayes})"
        lines = [f"Calibration of {type(self.model).__name__} by {self.strategy!r}"]
        if self.table is not None and self.likelihood:
            gain = with_error(self.gain, self.gain_standard_error)
            few = ", much of it from few rows" if self._gain.few_rows else ""
            held_out = getattr(self.strategy, "holds_rows_out", True)
            verdict = f": {VERDICTS[self.verdict]}" if held_out else ""
            lines.append(f"  gain      {gain} over Bayes{few}{verdict}")
        lines += [f"  beta      {beta}", *self._range_line()]
        if self.table is not None:
            risk = with_error(self.risk, self.standard_error)
            constants = f"; {self.model.constants}" if isinstance(self.model, SaysConstants) else ""
            than = f", Bayes {with_error(self.bayes_risk)}" if self.likelihood else ""
            lines.append(f"  risk      {risk}{than}  ({self.kind}{constants})")
        lines.append(f"  {'minimum' if self.rate is None else 'rule':10}{self.where}")
        if self.table is not None:
            lines.append(f"  method    {self.table.method_at(self.beta)}")
        return "\n".join([*lines, *self._direction_lines()])

    def _direction_lines(self) -> list[str]:
        if self.rate is None or not self.rate.no_single_rate:
            return []
        assert self.rate.by_direction is not None
        least, most = self.rate.by_direction[[0, -1]]
        return [
            f"  rates     {least:.3g} to {most:.3g} by direction: no single beta fits all, "
            "sandwich() does"
        ]

    def _range_line(self) -> list[str]:
        given = not self.choice.searched and self.weights is None and self.rate is None
        found = None if given else self.beta_range
        if found is None:
            return []
        low, high = found
        if self.rate is not None:
            return [f"  range     {low:.3g} to {high:.3g}  ({self.rate.interval_of})"]
        label = "not told apart by the data"
        if self.weights is not None:
            label = f"single betas {label}"
        if low == high:
            return [f"  range     {low:.3g} alone"]
        return [f"  range     {low:.3g} to {high:.3g}  ({label})"]

    @property
    def where(self) -> str:
        """Location of the minimum, or the rule that gave beta, as a phrase."""
        lower, upper = (f"{end:g}" for end in self.bounds)
        if self.rate is not None:
            beyond = f"; at the bound of [{lower}, {upper}]" if self.at_bound else ""
            return self.rate.rule + beyond
        if self.weights is not None:
            return "not sought: the posterior is a mixture over beta"
        if not self.choice.searched:
            return "not sought: beta is given"
        if self.flat:
            near = "Bayes" if self.likelihood else "1"
            return f"nowhere: the curve is flat; this is the point closest to {near}"
        if self.choice.least is not None:
            return f"at beta = {self.choice.least:.4g}; the strategy keeps away from it"
        if self.at_bound and self.beta == 0:
            return f"at the lower bound of [{lower}, {upper}]: the prior alone predicts best"
        if self.at_bound:
            end = "upper" if self.beta == self.bounds[1] else "lower"
            return f"at the {end} bound of [{lower}, {upper}]: the risk may be lower beyond it"
        return f"inside the bounds [{lower}, {upper}]"


def with_error(value: float, error: float | None = None) -> str:
    """Return a number with its standard error as text, to two digits of the error."""
    if error is None or not np.isfinite(error):
        return f"{value:.5g}"
    digits = max(0, 1 - int(np.floor(np.log10(error)))) if error > 0 else 4
    return f"{value:z.{min(digits, MOST_DIGITS)}f} ± {error:.{min(digits, MOST_DIGITS)}f}"


def preferences_of(model: object) -> Preferences:
    """Return the model's preferences, or the defaults."""
    return model.preferences if isinstance(model, HasPreferences) else Preferences()


def known_noise_variance(model: object) -> float | None:
    """Return the noise variance that a model assumes; None if it has none or infers it."""
    return model.noise_variance if isinstance(model, HasNoiseVariance) else None


def has_likelihood(model: object) -> bool:
    """Return whether a model's loss is minus a log likelihood, so that beta = 1 is Bayes."""
    return not isinstance(model, KnowsLikelihood) or bool(model.likelihood)
