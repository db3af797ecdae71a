r"""Models given by a loss and a prior in JAX; the risk curve comes from draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

try:
    import blackjax  # noqa: F401
    import jax
except ImportError:
    raise ImportError("GibbsModel needs JAX and BlackJAX: pip install 'temperance[jax]'") from None

from temperance.curves import RiskCurve
from temperance.models.sampled.arviz_tree import arviz_tree
from temperance.models.sampled.batched import BatchedLadders, Programs
from temperance.models.sampled.curve import PairedDraws, risk_curve_from
from temperance.models.sampled.draws import Draws
from temperance.models.sampled.information import InformationFromDraws
from temperance.models.sampled.ladder import Report
from temperance.models.sampled.progress import reporter
from temperance.models.sampled.reliability import warn_of
from temperance.models.sampled.settings import NUTS, SMC, sampler_named
from temperance.models.sampled.target import Target, double_precision
from temperance.types import AnyPlan, Array, Data, Plan, Preferences, Risk
from temperance.validation import as_data, non_negative, open_unit, shown, whole

if TYPE_CHECKING:
    import xarray

CHAINS = 4  # number of chains into which islands are joined in a posterior
MOST_REFITS = 100  # of leave-one-out: they are sampled in parallel


@dataclass(frozen=True, eq=False)
class GibbsModel(InformationFromDraws):
    r"""A model given by a loss and a prior in JAX.

    .. math:: \pi_\beta(\theta) \propto \exp(-\beta \sum_i w_i l(\theta, x_i, y_i)) \pi_0(\theta)

    Posteriors are sampled at a few betas, chosen so that neighbours overlap.  Multistate
    reweighting gives the risk at every beta between them, its slope and its error.

    Parameters
    ----------
    loss : function (theta, x, y) -> scalar
        Loss at one observation, x of shape (d,) and y a number, in JAX.  The predictive risk treats
        it as minus a log likelihood.
    log_prior : function theta -> scalar
        Log density of the prior, which must be proper; a constant may be left out.
    init : pytree, or function of a JAX key
        A parameter to start from, or a function that draws one from the prior.  With a function the
        ladder begins with independent draws; they must have exactly the density ``log_prior``,
        which is not checked.  Any pytree of arrays is accepted.
    sampler : {"smc", "nuts"}, SMC or NUTS
        From :mod:`temperance.models.sampled.settings`.
    overlap : float
        Least share of effective draws from a rung to the next; a larger one gives more rungs.
    seed : int
        Seed of the draws.
    progress : function (beta, upper, rungs), bool or None
        Called at every rung; by default a line on a terminal if rich is installed.

    Notes
    -----
    All computations are in double precision, for any setting of JAX, which is not changed.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, numpy as np
    >>> from temperance import expected_risk, models
    >>> def absolute(theta, x, y):
    ...     return jnp.abs(y - x @ theta)
    >>> def log_prior(theta):
    ...     return -0.5 * jnp.sum(theta**2)
    >>> def draw_prior(key):
    ...     return jax.random.normal(key, (2,))
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((30, 2))
    >>> y = X[:, 0] + rng.standard_t(2, 30)
    >>> model = models.GibbsModel(absolute, log_prior, draw_prior)
    >>> risk = expected_risk(model, (X, y), (X, y), alpha=[0.0, 30.0])
    >>> bool(risk[1] < risk[0])  # the training risk falls with alpha
    True
    """

    loss: Callable[[Any, Any, Any], Any]
    log_prior: Callable[[Any], Any]
    init: Any
    sampler: SMC | NUTS | str = "smc"
    overlap: float = 0.5
    seed: int = 0
    progress: Report | bool | None = None

    preferences: ClassVar[Preferences] = Preferences(only_curves=True)

    def __post_init__(self) -> None:
        """Refuse invalid functions and settings."""
        for name in ("loss", "log_prior"):
            if not callable(getattr(self, name)):
                raise ValueError(f"{name} must be a function, got {shown(getattr(self, name))}")
        sampler_named(self.sampler)
        open_unit("overlap", self.overlap)
        whole("seed", self.seed, 0)

    def check(self, data: Data) -> None:
        """Refuse a loss or prior that is not finite, or that JAX cannot trace."""
        self.target.check(data)

    @cached_property
    def target(self) -> Target:
        """Loss and prior as functions of a vector."""
        start = self.init
        if callable(start):
            try:
                with double_precision():
                    start = start(jax.random.key(self.seed))
            except Exception as error:
                raise ValueError(
                    f"init must be a function of a JAX key, got {type(error).__name__}: {error}"
                ) from error
        try:
            with double_precision():
                leaves = [np.asarray(leaf, dtype=float) for leaf in jax.tree.leaves(start)]
        except (TypeError, ValueError):
            leaves = []
        if not sum(leaf.size for leaf in leaves):
            raise ValueError(f"init must be a pytree of real numbers, got {shown(start)}")
        return Target(self.loss, self.log_prior, start)

    @cached_property
    def _compiled(self) -> dict[tuple[int, int], Programs]:
        return {}

    def _programs(self, pairs: int) -> Programs:
        settings = sampler_named(self.sampler)
        shape = settings.shape(pairs)
        if shape not in self._compiled:
            draw = self.init if callable(self.init) else None
            self._compiled[shape] = Programs(
                self.target, draw, settings.kind, *shape, settings.moves
            )
        return self._compiled[shape]

    def ladders(self, data: Data, plan: Plan) -> BatchedLadders:
        """Return the ladders of a plan's pairs, which are sampled as betas are needed."""
        return BatchedLadders(
            self._programs(len(plan.test)),
            data,
            plan,
            self.seed,
            self.overlap,
            reporter(self.progress),
        )

    def risk_curve(self, data: Data, plan: AnyPlan, risk: Risk = "gibbs") -> RiskCurve:
        """Return the curve that the plan estimates, from draws."""
        self.check(data)
        return risk_curve_from(lambda pairs: self.ladders(data, pairs), plan, risk, MOST_REFITS)

    def posterior(
        self, X: ArrayLike | None, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> xarray.DataTree:
        """Return draws of the posterior at ``alpha`` on all data, as an ArviZ object."""
        data = as_data(X, y, weights)
        self.check(data)
        beta = non_negative("alpha", alpha) / data.size
        plan = Plan(data.weights[None], data.weights[None], data.size)
        ladders = self.ladders(data, plan)
        curve = PairedDraws(ladders, plan, "gibbs")
        reliability = curve.reliability(beta)
        warn_of(reliability, curve.ladders[0].trained.size)
        flat = ladders.top()
        if len(flat) > CHAINS and len(flat) % CHAINS == 0:  # join islands to a few chains
            flat = flat.reshape(CHAINS, -1, flat.shape[-1])
        losses = self._programs(1).losses(flat.reshape(-1, flat.shape[-1]), data.X, data.y)
        draws = Draws(self._named(flat), losses.reshape(*flat.shape[:2], -1), reliability.divergent)
        temperature = {"alpha": beta * data.size, "beta": beta, "size": data.size}
        about = {"model": type(self).__name__, "seed": self.seed, "method": str(reliability)}
        return arviz_tree(draws, {"y": data.y}, temperature | about)

    def _named(self, flat: Array) -> Mapping[str, Array]:
        """Return draws (groups, size, d) as arrays by name."""
        with double_precision():
            tree = jax.vmap(jax.vmap(self.target.unravel))(flat)
        named = {}
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            name = ".".join(_key(part) for part in path)
            named[name or "theta"] = np.asarray(leaf)
        return named


def _key(part: Any) -> str:
    for attribute in ("key", "name", "idx"):
        if hasattr(part, attribute):
            return str(getattr(part, attribute))
    return str(part)
