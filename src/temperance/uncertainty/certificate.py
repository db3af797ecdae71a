r"""A bound on the risk of a posterior on new rows, from the same rows that it was fitted to.

For a loss in [0, 1], a prior P and n independent rows, with probability 1 - delta, for every
posterior Q at once,

    kl(r(Q) || R(Q)) <= (KL(Q || P) + ln(2 sqrt(n) / delta)) / n,

with r(Q) and R(Q) the expected loss of a draw from Q on the rows and on new rows, and kl the
divergence between coins, kl(q || p) = q ln(q/p) + (1 - q) ln((1 - q)/(1 - p)) (Seeger 2002, Maurer
2004).  The largest R that satisfies it is the bound.  Since it holds for every Q, beta may be
chosen on the same rows, by any rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from scipy import special

from temperance.checks import one_of, open_unit
from temperance.data import Array, Data, all_ones
from temperance.losses.base import Loss
from temperance.losses.quadrature import expectations
from temperance.models.glm.model import GibbsRegression
from temperance.models.linear_predictor import GaussianPrior
from temperance.posteriors import CovarianceRoot, GaussianPosterior, MixturePosterior
from temperance.protocols import Certified, HasCertifiedRisk

if TYPE_CHECKING:
    from temperance.calibration import Calibration

CertifiedLoss = Literal["zero-one", "brier"]
GUESS_OF_BRIER = 0.25  # the loss of the probability 1/2
WORDS = {
    "zero-one": "share of the rows that a draw from the posterior misclassifies",
    "brier": "mean of (y - probability)^2 of a draw; that of the mean forecast is no larger",
}
ROUNDING = 1e-9  # of means and variances of columns that were standardised


@dataclass(frozen=True, repr=False)
class Certificate:
    """An upper bound on the risk on new rows that holds with a given confidence.

    Parameters
    ----------
    bound : the expected loss of a draw from the posterior on a new row is at most this
    empirical_risk : the expected loss of a draw on the rows of the fit; of a network, whose loss is
        a mean over draws, an upper bound on it, which takes a part of 1 - ``confidence``
    kl : KL divergence of the posterior from the prior, in nats; of an average over beta the mean of
        the KL divergences of its parts, which is an upper bound
    n : number of rows
    confidence : probability, over samples of n rows, that the bound holds
    loss : {"zero-one", "brier"}
    seen : what was chosen from the rows in the prior or the units of X; if anything, the bound has
        no guarantee
    classes : number of classes
    """

    bound: float
    empirical_risk: float
    kl: float
    n: int
    confidence: float
    loss: CertifiedLoss
    seen: tuple[str, ...] = ()
    classes: int = 2

    @property
    def vacuous(self) -> bool:
        """Whether guessing has no larger risk than the bound."""
        guess = 1 - 1 / self.classes if self.loss == "zero-one" else GUESS_OF_BRIER
        return self.bound >= guess

    def __repr__(self) -> str:
        """Return the bound, what it comes from and what it needs, a line each."""
        percent = f"{100 * self.confidence:.6g} %"
        title = f"Certificate: with {percent} confidence the risk on new rows is at most"
        holds = "whatever chose beta, for independent rows without a part in prior and units of X"
        if self.seen:
            title, holds = (
                "No certificate, but a number: risk",
                f"not: the rows decided {joined(self.seen)}",
            )
        lines = [
            f"{title} {self.bound:.4f}",
            f"  risk      {WORDS[self.loss]}",
            f"  on rows   {self.empirical_risk:.4f}, on the {self.n} rows of the fit",
            f"  KL        {self.kl:.4g} nats from the prior to the posterior",
            f"  holds     {holds}",
        ]
        if self.vacuous:
            lines.append("  says      nothing: guessing has no larger risk than this")
        elif self.loss == "zero-one":
            lines.append(
                "  votes     the class that most draws vote for is wrong at most twice as often"
            )
        return "\n".join(
            [*lines, "  note      rows kept for a test alone often give a lower bound"]
        )


def certify(
    calibration: Calibration, loss: CertifiedLoss, confidence: float, even_if_seen: bool
) -> Certificate:
    """Return the certificate of the posterior of a calibration."""
    one_of("loss", loss, WORDS)
    one_of("even_if_seen", even_if_seen, (False, True))
    delta = 1 - open_unit("confidence", confidence)
    model, data = calibration.model, calibration.data
    refuse_dependent_rows(data, calibration.strategy)
    if not isinstance(model, HasCertifiedRisk):
        refuse_loss(model, loss)
    seen = calibration.seen or standardised_columns(data.X)
    if seen and not even_if_seen:
        raise ValueError(
            "a certificate needs rows that did not decide the prior or the units of X, got rows "
            f"that decided {joined(seen)}; take these from other rows (GibbsClassifier: "
            "certify=0.1), or pass even_if_seen=True"
        )
    if isinstance(model, HasCertifiedRisk):
        found = model.certified(calibration.posterior, data, loss, delta)
    else:
        found = of_gaussians(model, calibration.posterior, data, loss)
    n = len(data)
    # What draws take of delta to bound the risk on the rows is no longer there for the rows.
    budget = (found.kl + np.log(2 * np.sqrt(n) / (delta - found.spent))) / n
    bound = largest_risk(found.risk, budget)
    return Certificate(bound, found.risk, found.kl, n, float(confidence), loss, seen, found.classes)


def of_gaussians(model: Any, posterior: Any, data: Data, loss: CertifiedLoss) -> Certified:
    """Return risk on the rows and divergence from the prior of a Gaussian or a mixture of them."""
    risk, kl = 0.0, 0.0
    # KL(sum_k w_k Q_k || P) <= sum_k w_k KL(Q_k || P): KL is convex.
    for weight, part in mixture_parts(posterior):
        predictor = part.linear_predictor(data.X)
        losses = zero_one(*predictor, data.y)
        if loss == "brier":
            losses = brier(model.row_loss, *predictor, data.y)
        risk += weight * float(losses.mean())
        kl += weight * gaussian_kl(part, model.prior(len(part.mean)))
    return Certified(risk, kl)


def refuse_loss(model: Any, loss: CertifiedLoss) -> None:
    """Refuse models without Gaussian posteriors of two classes, and losses that they lack."""
    if not (isinstance(model, GibbsRegression) and model.row_loss.binary):
        raise ValueError(
            "a certificate needs a Gaussian posterior of two classes, as the logistic models and "
            f"GibbsLinear with Hinge() have, got {type(model).__name__}"
        )
    row_loss = model.row_loss
    if loss == "brier" and (not row_loss.likelihood or row_loss.free):
        raise ValueError(
            f"loss must be 'zero-one' for the {row_loss.name}, which gives no probabilities, got "
            "'brier'"
        )


def refuse_dependent_rows(data: Data, strategy: Any) -> None:
    """Refuse rows that do not count as independent observations."""
    if not all_ones(data.weights):
        other = float(data.weights[data.weights != 1][0])
        raise ValueError(
            "weights must be 1 for a certificate, which counts independent rows: copies add none, "
            f"got {other!r}"
        )
    for rule in (strategy, getattr(strategy, "source", None)):
        if getattr(rule, "groups", None) is not None:
            raise ValueError(
                "rows must be independent for a certificate, got groups, whose rows depend on each "
                "other; fit one row of each group"
            )


def standardised_columns(X: Array) -> tuple[str, ...]:
    """Return a phrase if a column has mean 0 and variance 1: it was standardised by these rows."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, square = X.mean(axis=0), (X**2).mean(axis=0)
    unit = np.minimum(abs(square - 1), abs(square * len(X) / max(len(X) - 1, 1) - 1))
    for column in np.flatnonzero((abs(mean) < ROUNDING) & (unit < ROUNDING)):
        if len(np.unique(X[:, column])) > 2:  # designs of -1 and 1 are balanced by themselves
            return (f"the units of column {column} of X, whose mean is 0 and variance 1",)
    return ()


def mixture_parts(posterior: Any) -> list[tuple[float, GaussianPosterior]]:
    """Return weights and Gaussians of a posterior or of a mixture of posteriors."""
    if isinstance(posterior, MixturePosterior):
        return list(zip(posterior.weights.tolist(), posterior.parts, strict=True))
    return [(1.0, posterior)]


def gaussian_kl(posterior: GaussianPosterior, prior: GaussianPrior) -> float:
    r"""Return KL(N(m, S) || N(mu_0, S_0)).

    .. math:: \tfrac12 \big(\mathrm{tr}(S_0^{-1} S) - d + (m - \mu_0)'S_0^{-1}(m - \mu_0)
              + \ln\det S_0 - \ln\det S\big)
    """
    root = CovarianceRoot(prior.root)
    distance = float(root.squared_distances((posterior.mean - prior.mean)[None])[0])
    decided = posterior.root.decided_by_data(prior.root)  # d - tr(S_0^-1 S)
    wider = root.log_determinant - posterior.root.log_determinant
    return max(0.5 * (distance - decided) + wider, 0.0)


def zero_one(mean: Array, variance: Array, y: Array) -> Array:
    r"""Return P((2y - 1) u <= 0) = Phi(-(2y - 1) mu / sqrt(v)) of predictors u ~ N(mu, v)."""
    against = (1 - 2 * y) * mean
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = against / np.sqrt(variance)
    # A predictor that is known to be 0 is half wrong.
    return special.ndtr(np.where(against == 0, 0.0, deviations))


def brier(row_loss: Loss, mean: Array, variance: Array, y: Array) -> Array:
    r"""Return E (y - p(u))^2, p(u) the probability of class 1, of predictors u ~ N(mu, v)."""
    return expectations(SquaredMiss(row_loss), mean, variance, y, range(1))[0]


@dataclass(frozen=True)
class SquaredMiss(Loss):
    """Loss (y - p(u))^2 with the probability p of a likelihood of labels."""

    likelihood_of_labels: Loss
    name: ClassVar[str] = "Brier loss"
    binary: ClassVar[bool] = True
    convex: ClassVar[bool] = False

    def value(self, u: Array, y: Array) -> Array:
        """Return the squared miss."""
        return np.square(y - self.likelihood_of_labels.response_mean(u))

    def derivatives(self, u: Array, y: Array) -> tuple[Array, Array, Array]:
        """Raise an error: no posterior is fitted by this loss."""
        raise NotImplementedError("the Brier loss of a draw has no use for derivatives")

    def bends(self, y: Array) -> tuple[Array, Array]:
        """Return the middle between the classes, where p changes within a few units."""
        return np.zeros_like(y), np.ones_like(y)


def coin_kl(q: float, p: float) -> float:
    r"""Return kl(q || p) = q ln(q/p) + (1 - q) ln((1 - q)/(1 - p))."""
    return float(special.rel_entr(q, p) + special.rel_entr(1 - q, 1 - p))


def largest_risk(risk: float, budget: float) -> float:
    """Return the largest p with kl(risk || p) <= budget, rounded up, by bisection.

    Examples
    --------
    >>> round(largest_risk(0.0, 0.1), 6)  # 1 - exp(-0.1)
    0.095163
    """
    low, high = risk, 1.0
    while low < (middle := (low + high) / 2) < high:
        if coin_kl(risk, middle) <= budget:
            low = middle
        else:
            high = middle
    return high


def joined(phrases: tuple[str, ...]) -> str:
    """Return phrases as one."""
    return " and ".join(phrases)
