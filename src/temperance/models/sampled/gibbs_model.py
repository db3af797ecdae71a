r"""Models given by a loss and a prior in JAX; the risk curve comes from draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

try:
    import jax  # noqa: F401
except ImportError:
    raise ImportError("GibbsModel needs JAX: pip install 'temperance[jax]'") from None

from temperance.checks import as_data, non_negative, one_of, open_unit, shown, whole
from temperance.curves import RiskCurve
from temperance.data import Data, Risk
from temperance.models.sampled.arviz_tree import arviz_tree, require_arviz
from temperance.models.sampled.batched import BatchedLadders, Programs
from temperance.models.sampled.compiled import kept_on_disk
from temperance.models.sampled.curve import PairedDraws, risk_curve_from
from temperance.models.sampled.draws import Draws
from temperance.models.sampled.information import InformationFromDraws
from temperance.models.sampled.interrupted import Interrupted
from temperance.models.sampled.ladder import Ladders, Report
from temperance.models.sampled.mixture import MixesDraws
from temperance.models.sampled.own_rows import MayCarryRows, as_rows_of
from temperance.models.sampled.prior import prior_from
from temperance.models.sampled.progress import reporter
from temperance.models.sampled.reliability import warn_of
from temperance.models.sampled.settings import NUTS, SHAPE_OF_POSTERIOR, SMC, sampler_named
from temperance.models.sampled.target import Target
from temperance.plans import AnyPlan, Pairs
from temperance.protocols import Preferences

CHAINS = 4  # number of chains into which islands are joined in a posterior
KEPT_PROGRAMS = 16  # sets of compiled functions that stay in memory
MOST_REFITS = 20  # of leave-one-out: with 8 islands each they cost less than ten folds


@dataclass(frozen=True, eq=False)
class GibbsModel(MayCarryRows, MixesDraws, InformationFromDraws):
    r"""A model given by a loss and a prior in JAX.

    .. math:: \pi_\beta(\theta) \propto \exp(-\beta \sum_i w_i l(\theta, x_i, y_i)) \pi_0(\theta)

    Posteriors are sampled at a few betas, chosen so that neighbours overlap.  Multistate
    reweighting gives the risk at every beta between them, its slope and its error.

    Parameters
    ----------
    loss : function (theta, x, y) -> scalar
        Loss at one observation, x of shape (d,) and y a number, or a row of ``data``, in JAX.  The
        predictive risk treats it as minus a log likelihood.
    prior : NumPyro distribution, pytree of them, or NumPyro model without observations
        ``theta`` is a draw of it: an array, a pytree of arrays, or a dict of the model's sites.
        It must be proper and continuous; parameters may have bounds.
    log_prior : function theta -> scalar
        Instead of ``prior``, the log density of a proper prior of unbounded parameters; a constant
        may be left out.
    draw_prior : function of a JAX key -> theta
        Independent draws of ``exp(log_prior)``, with which ladders begin; draws of another density
        are refused.  Without it the prior is sampled by NUTS.
    init : pytree
        A parameter at which that sampler starts, beside ``log_prior`` without ``draw_prior``.
    likelihood : bool
        Whether the loss is minus a log likelihood, so that beta = 1 is Bayes.  If not, say so:
        nothing is compared with beta = 1, and there is no predictive risk.
    data : pair (X, y), optional
        Rows that no matrix holds: arrays of any shape (images, sequences, integers) or pytrees of
        arrays, n rows each.  Then ``calibrate(model, model.X, model.y)``.
    sampler : {"smc", "nuts"}, SMC or NUTS
        From :mod:`temperance.models.sampled.settings`.
    overlap : float
        Least share of effective draws from a rung to the next; a larger one gives more rungs.
    seed : int
        Seed of the draws.
    progress : function (beta, upper, rungs), bool or None
        Called at every rung; by default a line on a terminal or in a notebook.
    cache : bool
        Whether compiled programs are kept on disk for the next process, see docs/any-model.md.

    Notes
    -----
    All computations are in double precision, for any setting of JAX, which is not changed.

    Examples
    --------
    >>> import jax.numpy as jnp, numpy as np, numpyro.distributions as dist
    >>> from temperance import expected_risk, models
    >>> def absolute(theta, x, y):
    ...     return jnp.abs(y - x @ theta)
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((30, 2))
    >>> y = X[:, 0] + rng.standard_t(2, 30)
    >>> model = models.GibbsModel(absolute, dist.Normal(0.0, 1.0).expand([2]))
    >>> risk = expected_risk(model, (X, y), (X, y), alpha=[0.0, 30.0], risk="gibbs")
    >>> bool(risk[1] < risk[0])  # the training risk falls with alpha
    True
    """

    loss: Callable[[Any, Any, Any], Any]
    prior: Any = None
    _: KW_ONLY
    log_prior: Callable[[Any], Any] | None = None
    draw_prior: Callable[[Any], Any] | None = None
    init: Any = None
    likelihood: bool = True
    data: tuple[Any, Any] | None = None
    sampler: SMC | NUTS | str = "smc"
    overlap: float = 0.5
    seed: int = 0
    progress: Report | bool | None = None
    cache: bool = True

    constants: ClassVar[str] = "constants as in loss"
    preferences: ClassVar[Preferences] = Preferences(leave_one_out=True, only_curves=True)

    def __post_init__(self) -> None:
        """Refuse invalid functions, priors and settings."""
        if not callable(self.loss):
            raise ValueError(f"loss must be a function, got {shown(self.loss)}")
        object.__setattr__(self, "data", as_rows_of(self.data))
        sampler_named(self.sampler)
        one_of("likelihood", self.likelihood, (True, False))
        open_unit("overlap", self.overlap)
        whole("seed", self.seed, 0)
        _ = self.target

    def check(self, data: Data) -> None:
        """Refuse a loss or prior that is not finite, or that JAX cannot trace."""
        require_arviz()
        with kept_on_disk(self.cache):
            self.target.check(*self.rows(data))

    @property
    def target(self) -> Target:
        """Loss and prior as functions of a vector."""
        given = (self.loss, self.prior, self.log_prior, self.draw_prior, self.init)
        with kept_on_disk(self.cache):
            return _target(*(_Same(part) for part in given))

    def _programs(self, pairs: int) -> Programs:
        settings = sampler_named(self.sampler)
        return _programs(
            self.target, settings.kind, *settings.shape(pairs), settings.moves, self.cache
        )

    def ladders(self, data: Data, plan: Pairs, pairs: int | None = None) -> BatchedLadders:
        """Return the ladders of a plan's pairs, which are sampled as betas are needed."""
        return BatchedLadders(
            self._programs(pairs or len(plan.test)),
            *self.rows(data),
            plan,
            self.seed,
            self.overlap,
            reporter(self.progress),
        )

    def risk_curve(self, data: Data, plan: AnyPlan, risk: Risk = "gibbs") -> RiskCurve:
        """Return the curve that the plan estimates, from draws."""
        if risk == "predictive" and not self.likelihood:
            raise ValueError("risk must be 'gibbs' with likelihood=False, got 'predictive'")
        self.check(data)

        def ladders(pairs: Pairs) -> Ladders:
            return self._interrupted.ladders(data, pairs, lambda: self.ladders(data, pairs))

        return risk_curve_from(ladders, plan, risk, MOST_REFITS)

    @cached_property
    def _interrupted(self) -> Interrupted:
        return Interrupted()

    def posterior(
        self, X: ArrayLike | None, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> Any:
        """Return draws of the posterior at ``alpha`` on all data, as an ArviZ object."""
        data = as_data(X, y, weights)
        self.check(data)
        beta = non_negative("alpha", alpha) / data.size
        settings = sampler_named(self.sampler)
        every = np.tile(data.weights, (settings.ladders, 1))
        plan = Pairs(every, every, data.size)
        ladders = self.ladders(data, plan, SHAPE_OF_POSTERIOR)
        curve = PairedDraws(ladders, plan, "gibbs")
        reliability = curve.reliability(beta)
        warn_of(reliability, sum(ladder.trained.size for ladder in curve.ladders))
        flat = ladders.top()
        flat = flat.reshape(-1, *flat.shape[2:])
        if curve.ladders[0].replicates and len(flat) % CHAINS == 0:  # join islands
            flat = flat.reshape(CHAINS, -1, flat.shape[-1])
        named = ladders.programs.named(flat)
        losses = ladders.programs.losses(flat.reshape(-1, flat.shape[-1]), *self.rows(data))
        draws = Draws(named, losses.reshape(*flat.shape[:2], -1), reliability.divergent)
        return self.as_posterior(draws, data, beta, str(reliability))

    def shape_of_posterior(self) -> tuple[int, int]:
        """Return the number of chains and of draws of each."""
        groups, size = sampler_named(self.sampler).shape(1)
        return (CHAINS, groups * size // CHAINS) if groups > CHAINS else (groups, size)

    def as_posterior(self, drawn: Draws, data: Data, beta: float, method: str) -> Any:
        """Return draws as an ArviZ object."""
        temperature = {"alpha": beta * data.size, "beta": beta, "size": data.size}
        about = {"model": type(self).__name__, "seed": self.seed, "method": method}
        return arviz_tree(drawn, {"y": data.y}, temperature | about)


@dataclass(frozen=True, eq=False)
class _Same:
    """An argument that is equal to itself alone."""

    value: Any

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


# One target and its compiled functions serve all models of the same functions, for any seed.
@lru_cache(maxsize=KEPT_PROGRAMS)
def _target(loss: _Same, *prior: _Same) -> Target:
    return Target(loss.value, prior_from(*(part.value for part in prior)))


@lru_cache(maxsize=KEPT_PROGRAMS)
def _programs(
    target: Target, kind: str, groups: int, size: int, moves: int, cache: bool
) -> Programs:
    return Programs(target, kind, groups, size, moves, cache)
