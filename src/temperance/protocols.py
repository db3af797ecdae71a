r"""What models, posteriors and strategies must provide, and what they may.

A *plan* is a set of pairs of weights (w, v) over the same n rows.  A *model* turns a plan into a
table: the loss of every row with v > 0 at every beta, under the posterior

    pi_p(theta)  ∝  exp(-beta sum_i w_pi l(theta, x_i)) pi_0(theta).

A *strategy* makes the plan, and chooses beta or weights of betas from the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from temperance.data import Array, Data, Labels, Risk
from temperance.plans import AnyPlan

if TYPE_CHECKING:
    from temperance.calibration import Calibration
    from temperance.rules import BetaWeights
    from temperance.table import HeldOut


@runtime_checkable
class Posterior(Protocol):
    """Methods that every posterior has."""

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> Array:
        """Return ``size`` draws of the parameters, shape (size, number of parameters)."""
        ...

    def log_prob(self, theta: ArrayLike) -> Any:
        """Return the log density at ``theta``."""
        ...

    def predict(self, X: ArrayLike) -> Any:
        """Return mean and standard deviation of the response, or class probabilities."""
        ...


@runtime_checkable
class SamplingModel(Protocol):
    """A loss and a posterior that can be sampled: enough for the slope by the covariance."""

    def posterior(
        self, X: ArrayLike, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> Posterior:
        """Return the posterior ∝ exp(-alpha r_n) pi_0."""
        ...

    def loss(self, theta: Array, X: Array, y: Array) -> Array:
        """Return the loss of each draw (rows) at each observation (columns)."""
        ...


@runtime_checkable
class Model(Protocol):
    """A posterior, and the table of any plan: strategies need no more.

    Optional methods that a strategy may use are in the protocols below.
    """

    def posterior(
        self, X: ArrayLike, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> Any:
        """Return the posterior ∝ exp(-alpha r_n) pi_0: a :class:`Posterior`, or ArviZ draws."""
        ...

    def held_out(
        self, data: Data, plan: AnyPlan, score: Risk, bounds: tuple[float, float]
    ) -> HeldOut:
        """Return the table of the rows that the plan holds out."""
        ...


@runtime_checkable
class ChecksData(Protocol):
    """A model that refuses data for which it cannot be calibrated."""

    def check(self, data: Data) -> None:
        """Raise a ``ValueError`` that names the argument if the data do not fit."""
        ...


class NoMinimiserError(ValueError):
    """The risk on the data has no unique minimum without the prior."""


class NoCurvatureError(NoMinimiserError):
    """The risk has a minimum whose curvature the rows do not tell."""

    def __init__(self, message: str, minimiser: Array) -> None:
        super().__init__(message)
        self.minimiser = minimiser


class Information(NamedTuple):
    r"""Scores and curvature of the losses at the minimiser of their weighted mean.

    Parameters
    ----------
    minimiser : array of shape (p,)
        The parameters of smallest risk on the data, without the prior.
    scores : array of shape (n, p)
        Gradient of the loss of each row there, whatever the row's weight.
    curvature : array of shape (p, p)
        Weighted mean of the losses' Hessians there.
    prior_root : array of shape (p, p), or (p,) if it is diagonal, optional
        Root C of the prior covariance C C' of the parameters.
    roots : array of shape (n, p), optional
        Vectors r_i whose products r_i r_i' are the Hessians of the rows' losses, for leverages.
    prior_mean : array of shape (p,), optional
    """

    minimiser: Array
    scores: Array
    curvature: Array
    prior_root: Array | None = None
    roots: Array | None = None
    prior_mean: Array | None = None


@runtime_checkable
class HasInformation(Protocol):
    """A model whose losses are smooth functions of finitely many parameters."""

    def information(self, data: Data) -> Information:
        """Return scores and curvature at the minimiser; a NoMinimiserError if there is none."""
        ...


@runtime_checkable
class HasDesign(Protocol):
    """A model with a linear predictor."""

    def design(self, X: ArrayLike) -> Array:
        """Return the rows z of the linear predictor z'theta, shape (n, p)."""
        ...


@runtime_checkable
class HasPriorInformation(Protocol):
    """A model of responses whose squared scores can be averaged over the prior."""

    def prior_information(self, data: Data) -> tuple[Array, Array]:
        r"""Return D of each row as the fitted model expects it, and as observed, (n,) each.

        :math:`D(x) = \int |\nabla \log f_\theta(x)|^2 \pi_0(\theta) d\theta`, in coordinates in
        which the prior is N(0, I); the fitted model is that of the minimiser.
        """
        ...


@runtime_checkable
class HasCredibleLevels(Protocol):
    """A model whose posteriors have credible sets in closed form."""

    def credible_levels(
        self, data: Data, weights: Array, theta: Array | None
    ) -> Callable[[float], Array]:
        """Return the function from beta to the level of the credible sets that ``theta`` is on.

        Parameters
        ----------
        data : Data
        weights : array of shape (m, n)
            Weights of the rows, one posterior for each.
        theta : array of shape (p,), or None
            None is the posterior mean of the data at the same beta.

        Returns
        -------
        function from beta to an array of shape (m,)
            Probability of each posterior's highest-density region that has ``theta`` at its edge.
        """
        ...


@runtime_checkable
class MovesDraws(Protocol):
    """A sampled model, whose draws can be moved."""

    def moved_draws(self, posterior: Any, data: Data, groups: Labels | None) -> Any:
        """Return the draws of a posterior, moved so that their covariance is the sandwich's."""
        ...


@runtime_checkable
class MixesPosteriors(Protocol):
    """A sampled model, which draws once for its posteriors at several betas."""

    def mixture(self, data: Data, weights: BetaWeights, table: HeldOut | None) -> Any:
        """Return the average of posteriors over beta; from the table's own draws if it has any."""
        ...


@runtime_checkable
class HasNoiseVariance(Protocol):
    """A model with an assumed noise variance, or None if the variance is inferred."""

    @property
    def noise_variance(self) -> float | None:
        """The variance, or None."""
        ...


@runtime_checkable
class KnowsLikelihood(Protocol):
    """A model that says whether its loss is minus a log likelihood; others have one."""

    @property
    def likelihood(self) -> bool:
        """Whether it is; otherwise beta = 1 is not Bayes."""
        ...


@runtime_checkable
class SaysConstants(Protocol):
    """A model that says whether normalising constants of the likelihood are part of its loss."""

    constants: ClassVar[str]


class Certified(NamedTuple):
    """What a certificate needs of a posterior.

    Parameters
    ----------
    risk : expected loss in [0, 1] of a draw on the rows, or an upper bound on it
    kl : divergence of the posterior from the prior, or an upper bound on it
    classes : number of classes
    spent : probability with which an upper bound on the risk fails
    """

    risk: float
    kl: float
    classes: int = 2
    spent: float = 0.0


@runtime_checkable
class HasCertifiedRisk(Protocol):
    """A model that measures risk and divergence of its posteriors itself, for certificates."""

    def certified(
        self, posterior: Any, data: Data, loss: Literal["zero-one", "brier"], delta: float
    ) -> Certified:
        """Return both; an error if the loss is not among those that it can bound."""
        ...


class Preferences(NamedTuple):
    """Default strategies of a model, chosen by benchmarks.

    Parameters
    ----------
    reference : whether the reference risk does better than ten folds
    leave_one_out : whether leave-one-out is as fast as ten folds
    wide : whether betas far from 1 are worth a look: the posterior at beta = 1 is an approximation
        that may be far from Bayes
    only_curves : whether every posterior takes draws or training of its own
    """

    reference: bool = False
    leave_one_out: bool = False
    wide: bool = False
    only_curves: bool = False


@runtime_checkable
class HasPreferences(Protocol):
    """A model with other default strategies than usual."""

    preferences: ClassVar[Preferences]


@runtime_checkable
class Strategy(Protocol):
    """A rule that chooses beta from the data."""

    def select(
        self,
        model: Model,
        data: Data,
        bounds: tuple[float, float],
        rng: np.random.Generator,
        risk: Risk = "predictive",
    ) -> Calibration:
        """Return the choice, with its table of held-out losses."""
        ...
