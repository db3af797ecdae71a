r"""Neural networks in JAX, trained at a grid of betas and on all folds side by side."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

try:
    import jax
    import optax  # noqa: F401
except ImportError:
    raise ImportError("NeuralNetwork needs JAX and Optax: pip install 'temperance[jax]'") from None

import jax.numpy as jnp

from temperance.checks import as_data, non_negative, positive, shown, whole
from temperance.curves import GivesCurve, RiskCurve
from temperance.data import Array, Data, Risk
from temperance.models.neural.certificate import certified_risk
from temperance.models.neural.curve import Found, Grid, NeuralRiskCurve
from temperance.models.neural.ensemble import Ensemble
from temperance.models.neural.hmc import HMC
from temperance.models.neural.last_layer import LastLayerLaplace
from temperance.models.neural.losses import OutputLoss, loss_from
from temperance.models.neural.mean_field import MeanField
from temperance.models.neural.memory import lanes_for
from temperance.models.neural.method import Method
from temperance.models.neural.network import Network, Prior, on_device, vector_of
from temperance.models.neural.posterior import NeuralPosterior
from temperance.models.neural.risks import tested_losses
from temperance.models.neural.training import Run, Task, Trained, Training
from temperance.models.sampled.compiled import kept_on_disk
from temperance.models.sampled.own_rows import MayCarryRows, as_rows_of
from temperance.models.sampled.progress import writer
from temperance.plans import AnyPlan, Pairs
from temperance.posteriors.mixture import mixed
from temperance.protocols import Certified, Preferences
from temperance.rules import BetaWeights
from temperance.table import HeldOut

METHODS: dict[str, type[Method]] = {
    "mean-field": MeanField,
    "laplace-last-layer": LastLayerLaplace,
    "hmc": HMC,
    "ensemble": Ensemble,
}


@dataclass(frozen=True, eq=False, init=False)
class NeuralNetwork(MayCarryRows, GivesCurve):
    r"""A neural network in JAX with a Gaussian prior on its parameters.

    .. math:: \pi_\beta(\theta) \propto \exp\Big(-\beta \sum_i w_i l(f_\theta(x_i), y_i)\Big)
              \prod_j N(\theta_j; \mu_j, s_j^2)

    Networks of all pairs of a plan are trained at a grid of betas side by side; between betas the
    curve is smoothed, and its error is part of the result.

    Parameters
    ----------
    apply : function (params, X) -> outputs
        The network, in JAX, for n rows at a time: ``module.apply`` of Flax, or
        ``lambda params, X: jax.vmap(equinox.combine(params, static))(X)``.
    params : pytree of arrays, or function of a JAX key that returns one
        Where training starts.
    loss : {"softmax", "logistic", "gaussian"} or function (outputs, y) -> number
        "softmax" is for logits (n, K) and classes 0 ... K - 1, "logistic" for the log odds of class
        1, "gaussian" for real responses.  A function gets outputs and response of one row, and is
        treated as minus a log likelihood.
    prior_scale : float or pytree of numbers or arrays like ``params``
        Standard deviations of the prior.
    prior_mean : float or pytree like ``params``
        Means of the prior: 0, or parameters trained on other rows.
    posterior : {"mean-field", "laplace-last-layer", "hmc", "ensemble"}
        Or an object with settings: :class:`MeanField`, :class:`LastLayerLaplace`, :class:`HMC`,
        :class:`Ensemble` of :mod:`temperance.models.neural`.
    noise_scale : float, optional
        Standard deviation of responses around the outputs, for ``loss="gaussian"``.  By default its
        logarithm is one more parameter, with the prior N(0, 1).
    data : pair (X, y), optional
        Rows that no matrix holds: arrays of any shape (images, sequences, integers) or pytrees of
        arrays, n rows each.  Then ``calibrate(model, model.X, model.y)``.
    training : Training
        Steps, learning rate and size of mini-batches.
    betas_per_decade, lowest_beta : int, float
        The grid: powers of 10^(1/betas_per_decade) within the bounds of the search, and 0 instead
        of betas below the lowest. Lower it by a hundred for a loss that is larger by a hundred.
    draws : int
        Draws of a posterior for the loss of a row or a forecast.
    side_by_side : int, optional
        Number of networks that are trained at the same time; by default as many as fit into memory.
    seed : int
        Seed of starts, mini-batches and draws.
    progress : function (line), bool or None
        Called with a line of text; by default the line is shown on a terminal or in a notebook.
    cache : bool
        Whether compiled programs are kept on disk for the next process, see docs/any-model.md.

    Notes
    -----
    Computations are in single precision, on the device that JAX takes by default.

    Examples
    --------
    See docs/neural-networks.md.
    """

    apply: Callable[[Any, Any], Any]
    params: Any
    row_loss: OutputLoss
    prior_scale: Any
    prior_mean: Any
    method: Method
    data: tuple[Any, Any] | None
    training: Training
    betas_per_decade: int
    lowest_beta: float
    draws: int
    side_by_side: int | None
    seed: int
    progress: Callable[[str], None] | bool | None
    cache: bool

    preferences: ClassVar[Preferences] = Preferences(only_curves=True)

    def __init__(
        self,
        apply: Callable[[Any, Any], Any],
        params: Any,
        loss: Any = "softmax",
        *,
        prior_scale: Any = 1.0,
        prior_mean: Any = 0.0,
        posterior: Method | str = "mean-field",
        noise_scale: float | None = None,
        data: tuple[Any, Any] | None = None,
        training: Training | None = None,
        betas_per_decade: int = 3,
        lowest_beta: float = 0.01,
        draws: int = 64,
        side_by_side: int | None = None,
        seed: int = 0,
        progress: Callable[[str], None] | bool | None = None,
        cache: bool = True,
    ) -> None:
        if not callable(apply):
            raise ValueError(f"apply must be a function (params, X) -> outputs, got {shown(apply)}")
        if training is not None and not isinstance(training, Training):
            raise ValueError(f"training must be Training(...), got {shown(training)}")
        method = method_named(posterior)
        if isinstance(method, Ensemble) and not is_function(params):
            raise ValueError(
                "params must be a function of a JAX key for posterior='ensemble', whose members "
                f"have different starts, got {shown(type(params).__name__)}"
            )
        if side_by_side is not None:
            whole("side_by_side", side_by_side, 1)
        for name, value in (
            ("apply", apply),
            ("params", params),
            ("row_loss", loss_from(loss, noise_scale)),
            ("prior_scale", prior_scale),
            ("prior_mean", prior_mean),
            ("method", method),
            ("data", as_rows_of(data)),
            ("training", training or Training()),
            ("betas_per_decade", whole("betas_per_decade", betas_per_decade, 1)),
            ("lowest_beta", positive("lowest_beta", lowest_beta)),
            ("draws", whole("draws", draws, 2)),
            ("side_by_side", side_by_side),
            ("seed", whole("seed", seed, 0)),
            ("progress", progress),
            ("cache", bool(cache)),
        ):
            object.__setattr__(self, name, value)
        _ = self.prior

    def starts(self, count: int) -> list[Any]:
        """Return so many pytrees of parameters at which training starts."""
        if not is_function(self.params):
            return [self.params] * count
        key = jax.random.key(self.seed)
        return [self.params(jax.random.fold_in(key, each)) for each in range(count)]

    @cached_property
    def network(self) -> Network:
        """The network as a function of one vector."""
        leaves, tree = jax.tree.flatten(self.starts(1)[0])
        return Network(self.apply, self.row_loss, tree, tuple(np.shape(leaf) for leaf in leaves))

    @cached_property
    def prior(self) -> Prior:
        """Means and standard deviations of all parameters, with those of the loss."""
        like = self.starts(1)[0]
        vector_of("params", like)
        scale = vector_of("prior_scale", self.prior_scale, like)
        if scale.min() <= 0:
            raise ValueError(f"prior_scale must be positive, got {float(scale.min())!r}")
        mean = vector_of("prior_mean", self.prior_mean, like)
        own = self.row_loss.parameters
        return Prior(*on_device((np.append(mean, np.zeros(own)), np.append(scale, np.ones(own)))))

    def check(self, data: Data) -> None:
        """Refuse rows that network or loss cannot take."""
        X, y = on_device(jax.tree.map(lambda part: part[:2], self.rows(data)))
        theta = np.zeros(self.network.size, dtype=np.float32)
        try:
            outputs = jax.eval_shape(lambda t: self.network.outputs(t, X), theta)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"apply must take params and X of {_shapes(X)}, got {_first_line(error)}"
            ) from None
        shape = getattr(outputs, "shape", ())
        if shape[:1] != np.shape(jax.tree.leaves(X)[0])[:1]:
            raise ValueError(
                f"apply must return outputs of n rows, an array, got {_shapes(outputs)} for "
                f"{_shapes(X)}"
            )
        self.row_loss.check(self.rows(data)[1], shape)
        losses = jax.eval_shape(self.network.losses, theta, X, y)
        if losses.shape != shape[:1]:
            raise ValueError(
                f"loss must return one number of the outputs and y of a row, got {_shapes(losses)}"
            )

    def task(self, data: Data, weights: Array, pair: Array, betas: Array) -> Task:
        """Return what networks are trained on, on the device."""
        X, y = on_device(self.rows(data))
        return Task(X, y, self.prior, on_device(weights), pair, betas.astype(np.float32))

    def lanes(self, X: Any, y: Any) -> int:
        """Return how many networks are trained at the same time on such rows."""
        return self.side_by_side or lanes_for(
            self.network, X, y, self.training.batch_size, self.method.draws_per_step
        )

    def fitted(self, task: Task) -> Trained:
        """Return the posteriors of a task, with a leading axis."""
        members = self.method.members
        own = np.zeros(self.row_loss.parameters)
        vectors = [np.append(vector_of("params", each), own) for each in self.starts(members)]
        start = self.prior.u(on_device(np.array(vectors)))
        lanes = self.lanes(task.X, task.y)
        run = Run(self.training, self.seed, lanes, writer(self.progress))
        try:
            found = self.method.fit(self.network, task, run, start)
        except KeyboardInterrupt:
            with suppress(Exception, KeyboardInterrupt):  # of a function that raised it before
                run.tell("")
            raise KeyboardInterrupt(
                "while networks were trained: none of them is kept, the same call begins anew"
            ) from None
        run.tell("")
        return found

    def risk_curve(self, data: Data, plan: AnyPlan, risk: Risk = "gibbs") -> RiskCurve:
        """Return the curve that the plan estimates: networks at a grid of betas, smoothed."""
        self.check(data)
        pairs = plan.pairs()
        fits = NetworkFits(self, data, pairs, risk == "predictive")
        return NeuralRiskCurve(Grid(fits, pairs, self.lowest_beta, self.betas_per_decade))

    def posterior(
        self, X: ArrayLike | None, y: ArrayLike, alpha: float, weights: ArrayLike | None = None
    ) -> NeuralPosterior:
        """Return the posterior at ``alpha`` on all data."""
        data = as_data(X, y, weights)
        return self._posteriors(data, np.array([non_negative("alpha", alpha) / data.size]))[0]

    def mixture(self, data: Data, weights: BetaWeights, table: HeldOut | None) -> Any:
        """Return the mixture of the posteriors at some betas, which are trained side by side."""
        kept = weights.without_negligible()
        return mixed(kept.weights, self._posteriors(data, kept.betas))

    def _posteriors(self, data: Data, betas: Array) -> list[NeuralPosterior]:
        self.check(data)
        with kept_on_disk(self.cache):
            task = self.task(data, data.weights[None], np.zeros(len(betas), dtype=int), betas)
            found = self.fitted(task)
        return [
            NeuralPosterior(
                self.network,
                self.method,
                task.of(np.array([k])),
                jax.tree.map(lambda leaf, k=k: leaf[k], found.variables),
                bool(np.all(found.settled[k])),
                self.draws,
                self.seed,
            )
            for k in range(len(betas))
        ]

    def certified(
        self, posterior: Any, data: Data, loss: Literal["zero-one", "brier"], delta: float
    ) -> Certified:
        """Return risk on the rows and divergence from the prior, for a certificate."""
        return certified_risk(posterior, *self.rows(data), loss, delta)


@dataclass(frozen=True, eq=False)
class NetworkFits:
    """Trains the networks of a plan at some betas, and tests them."""

    model: NeuralNetwork
    data: Data
    plan: Pairs
    predictive: bool

    @property
    def method(self) -> Method:
        """The kind of posterior."""
        return self.model.method

    def __call__(self, betas: Array) -> Found:
        """Return the losses at some betas."""
        model, pairs = self.model, len(self.plan.test)
        index, test = self.plan.tested_rows()
        with kept_on_disk(model.cache):
            task = model.task(
                self.data,
                self.plan.likelihood_weights,
                np.tile(np.arange(pairs), len(betas)),
                np.repeat(betas, pairs),
            )
            fitted = model.fitted(task)
            found = tested_losses(
                model.network, model.method, model.draws, self.predictive, task, fitted.variables,
                jnp.asarray(index), on_device(test), jax.random.key(model.seed),
            )  # fmt: skip
        shape = (len(betas), pairs, -1)
        return Found(
            np.asarray(found.losses, dtype=float).reshape(shape),
            np.asarray(found.influence, dtype=float).reshape(shape),
            np.asarray(fitted.settled).reshape(shape),
        )


def method_named(posterior: Any) -> Method:
    """Return the kind of posterior of a name, or with settings."""
    if isinstance(posterior, str) and posterior in METHODS:
        return METHODS[posterior]()
    if type(posterior) in METHODS.values():
        return posterior
    raise ValueError(
        f"posterior must be one of {', '.join(map(repr, METHODS))}, or such an object with "
        f"settings, got {shown(posterior)}"
    )


def is_function(params: Any) -> bool:
    """Return whether parameters are given by a function; modules of Equinox are callable trees."""
    leaves = jax.tree.leaves(params)
    return callable(params) and len(leaves) == 1 and leaves[0] is params


def _shapes(tree: Any) -> str:
    return f"shape {shown(jax.tree.map(np.shape, tree))}"


def _first_line(error: Exception) -> str:
    return shown(str(error).splitlines()[0] if str(error) else type(error).__name__)
